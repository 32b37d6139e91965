"""What a step gets: `where`, `stack`, `slice_by_slice`, `with`, `input`,
`sample`, `incomplete`; and which groups reach it."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from plates import MAX, SHAPE, Work, native, python, ramp

CODE = """
import re

def add(stack, value=100):
    return stack + np.uint16(value)

def double(stack):
    return stack * np.uint16(2)

def minus(stack, other):
    return stack - other

def shape(stack, info, other=None):
    row = {"shape": "x".join(map(str, stack.shape)), "sum": int(stack.sum())}
    names = [re.split("_[swz]|[.]", s.path)[-5:] for s in info.slices]
    for i, c in enumerate(("well", "site", "channel", "z")):
        row[c + "s"] = "+".join(n[i].split("/")[-1] for n in names)
    if other is not None:
        row["other"] = "x".join(map(str, other.shape))
        row["other_sum"] = int(other.sum())
    return [row]
"""
SHAPES = python("shape", result="none", tables=["shapes"])


@pytest.fixture
def work(tmp_path: Path, run: Run) -> Work:
    """A folder with steps.py, to make a plate and a pipeline in."""
    work = Work(tmp_path, run)
    work.code(CODE)
    return work


# ------------------------------------------------------------------ where

WHERE = [
    # where, channels that the step processes
    ({"channel": "1"}, "1"),
    ({"channel": ["1"]}, "1"),
    ({"channel": ["01"]}, "1"),
    ({"channel": 1}, "1"),
    ({"channel": [1, 3]}, "13"),
    ({"channel": "DNA"}, "1"),
    ({"channel": ["DNA", "03"]}, "13"),
    ({"well": "A1", "channel": "2"}, "2"),
    ({"well": "A01"}, "123"),
    ({"well": "A02"}, ""),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("where", "channels"), WHERE)
def test_where_selects_groups(work: Work, where, channels):
    """What does not match passes an image step unchanged."""
    work.plate(["A01", "A02"], channels="123", z=[1])
    work.pipeline(
        python("add", where=where),
        python("double"),
        plate={"channels": {"1": "DNA"}},
    )
    out = work.run("--only", "well=A01")
    for channel in "123":
        due = ramp("A01", "1", channel, 1)
        due = 2 * (due + 100 if channel in channels else due)
        got = out.image(f"A01_s1_w{channel}_z1.tif")
        np.testing.assert_array_equal(got, due)


NO_SUCH = [
    ({"channel": "4"}, 'no channel "4" (it has 1, 2)'),
    ({"channel": ["1", "ER"]}, 'no channel "ER"'),
    ({"well": "C01"}, 'no well "C01" (it has A01, A02)'),
    ({"z": "9"}, 'no z "9"'),
    ({"timepoint": "1"}, 'no timepoint "1"'),
]


@pytest.mark.native
@pytest.mark.parametrize(("where", "said"), NO_SUCH)
@pytest.mark.parametrize("command", ["run", "check", "plan"])
def test_where_the_plate_lacks(work: Work, where, said, command):
    work.plate(channels="12")
    path = work.pipeline({**MAX, "where": where})
    words = ["-o", work.folder / "out"] if command == "run" else []
    done = work.program(command, path, work.plate_folder, *words, status=2)
    text = done.stdout + done.stderr
    assert said in text
    assert f"{path}:" in text
    assert "steps[0].where" in text


@pytest.mark.numpy
@pytest.mark.parametrize("result", ["labels", "none"])
def test_labels_and_none_drop_the_rest(work: Work, result):
    """Only what the step processed goes on."""
    work.plate(channels="12", z=[1])
    keys = {"tables": ["shapes"]} if result == "none" else {}
    first = python("shape" if keys else "add", result=result, **keys)
    work.pipeline(
        {**first, "name": "first", "where": {"channel": "2"}},
        *([] if keys else [python("double", result="labels")]),
    )
    out = work.run()
    if keys:
        assert [row["channel"] for row in out.table("shapes")] == ["2", "2"]
        assert out.names == []
    else:
        assert out.names == ["A01_s1_w2_z1.tif", "A02_s1_w2_z1.tif"]
    assert out.status == ["done", "done"]


@pytest.mark.numpy
def test_what_passed_goes_to_previous_only(work: Work):
    """`input` by name takes only what that step processed."""
    work.plate(channels="12", z=[1])
    work.pipeline(
        python("add", where={"channel": "2"}),
        {**SHAPES, "input": "add"},
        {**SHAPES, "name": "all", "input": "plate", "tables": ["all"]},
    )
    out = work.run()
    rows = out.table("shapes")
    assert [(row["well"], row["channel"]) for row in rows] == [
        ("A01", "2"),
        ("A02", "2"),
    ]
    sums = [int(ramp(w, "1", "2", 1).sum()) + 4800 for w in ("A01", "A02")]
    assert [int(row["sum"]) for row in rows] == sums
    assert [row["channel"] for row in out.table("all")] == list("1212")


SLICES = [
    # where on a stacked component, further keys, planes that the step gets
    ({"z": "2"}, {}, [2]),
    ({"z": ["01", 3]}, {}, [1, 3]),
    ({"z": ["3", "1"]}, {}, [1, 3]),
    ({"z": [1, 2, 3, 4]}, {"sample": 2}, [2, 4]),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("where", "keys", "z"), SLICES)
def test_where_on_a_stacked_component(work: Work, where, keys, z):
    """It selects slices; those left out of an image step stay."""
    work.plate(["A01"], z=[1, 2, 3, 4])
    work.pipeline(
        {**SHAPES, "where": where, "incomplete": "run", **keys},
        python("add", input="plate", where=where),
    )
    out = work.run()
    (row,) = out.table("shapes")
    assert row["zs"] == "+".join(map(str, z))
    assert row["shape"] == f"{len(z)}x{SHAPE[0]}x{SHAPE[1]}"
    taken = {int(v) for v in np.atleast_1d(where["z"])}
    for k in (1, 2, 3, 4):
        due = ramp("A01", "1", "1", k) + (100 if k in taken else 0)
        np.testing.assert_array_equal(out.image(f"A01_s1_w1_z{k}.tif"), due)


# ------------------------------------------------------- stack and sample

STACKS = [
    # stack, groups, slices in each, in order
    (None, 8, "zs", "1+2"),
    ([], 16, "zs", "1"),
    (["z"], 8, "zs", "1+2"),
    (["channel"], 8, "channels", "1+2"),
    (["channel", "z"], 4, "channels", "1+1+2+2"),
    (["z", "channel"], 4, "channels", "1+2+1+2"),
    (["well", "site"], 4, "wells", "A01+A01+A02+A02"),
    (["timepoint"], 16, "zs", "1"),
    (["timepoint", "z"], 8, "zs", "1+2"),
    (
        ["plate", "well", "site", "channel", "z", "timepoint"],
        1,
        "zs",
        "+".join(["1+2"] * 8),
    ),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("stack", "n", "column", "text"), STACKS)
def test_stack(work: Work, stack, n, column, text):
    """The first is the slowest; a component that is absent gives depth 1."""
    work.plate(sites="12", channels="12", z=[1, 2])
    step = SHAPES if stack is None else {**SHAPES, "stack": stack}
    work.pipeline(step)
    rows = work.run().table("shapes")
    assert len(rows) == n
    assert rows[0][column] == text


BAD_STACKS = [
    # steps, place, said
    (
        [MAX, native("b", "gaussian", stack=["z"])],
        "steps[1].stack",
        "already collapsed",
    ),
    ([{**MAX, "stack": ["zed"]}], "steps[0].stack", 'unknown component "zed"'),
    (
        [MAX, native("b", "gaussian", stack=["channel"])],
        "steps[1].stack",
        "not supported yet",
    ),
    (
        [MAX, native("b", "gaussian", where={"z": "1"})],
        "steps[1].where",
        "collapsed",
    ),
    ([native("b", "gaussian", yields="well")], "steps[0].yields", "stack"),
    (
        [{**MAX, "incomplete": "run", "stack": ["channel"]}],
        "steps[0]",
        "not possible where",
    ),
]


@pytest.mark.native
@pytest.mark.parametrize(("steps", "place", "said"), BAD_STACKS)
def test_bad_stacks(work: Work, steps, place, said):
    work.plate(channels="12")
    work.pipeline(*steps)
    out = work.run(status=2)
    assert place in out.text
    assert said in out.text
    assert not out.folder.exists()


SAMPLES = [
    (1, [3]),
    (2, [2, 4]),
    (3, [1, 3, 5]),
    (5, [1, 2, 3, 4, 5]),
    (9, [1, 2, 3, 4, 5]),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("n", "z"), SAMPLES)
def test_sample(work: Work, n, z):
    """Spread evenly, always the same; the stack is not incomplete for it."""
    work.plate(z=[1, 2, 3, 4, 5])
    work.pipeline({**SHAPES, "sample": n})
    out = work.run()
    rows = out.table("shapes")
    assert len(rows) == 2
    for row in rows:
        assert len(row["zs"].split("+")) == len(z)
        assert row["zs"] == rows[0]["zs"]
    assert out.json["images"]["read"] == 2 * len(z)
    work.pipeline({**MAX, "sample": n})
    used = [int(k) for k in rows[0]["zs"].split("+")]
    due = max(ramp("A01", "1", "1", k).max() for k in used)
    assert work.run().image("A01_s1_w1.tif").max() == due


# --------------------------------------------------------- slice_by_slice


@pytest.mark.numpy
def test_slice_by_slice_must_be_said(work: Work):
    """For undecorated functions on stacks deeper than 1, and only there."""
    bare = {
        "name": "add",
        "function": "./steps.py:add",
        "memory_type": "numpy",
    }
    work.plate(z=[1, 2])
    work.pipeline(bare)
    out = work.run(status=2)
    assert '"slice_by_slice": true' in out.text
    assert "stacks of 2 slices" in out.text
    work.run("--until", "add", status=2)
    work.code(
        CODE.replace("def add", "@plateflow.numpy\ndef add").replace(
            "def add", "def add", 1
        )
    )
    (work.folder / "steps.py").write_text(
        "import plateflow\n" + (work.folder / "steps.py").read_text()
    )
    work.run()  # decorated: its author knows that it gets [Z, Y, X]
    work.code(CODE)
    work.pipeline({**bare, "stack": []})
    work.run()


@pytest.mark.numpy
def test_slice_by_slice_gets_planes(work: Work):
    work.plate(["A01"], channels="12", z=[1, 2, 3])
    work.pipeline(
        {**SHAPES, "slice_by_slice": True, "stack": ["channel", "z"]},
        python(
            "add", slice_by_slice=True, input="plate", stack=["channel", "z"]
        ),
    )
    out = work.run()
    rows = out.table("shapes")
    assert [(r["channel"], r["z"]) for r in rows] == [
        (c, z) for c in "12" for z in "123"
    ]
    for row in rows:
        assert row["shape"] == f"{SHAPE[0]}x{SHAPE[1]}"
        assert row["zs"] == row["z"]
        due = ramp("A01", "1", row["channel"], int(row["z"]))
        assert int(row["sum"]) == due.sum()
        name = f"A01_s1_w{row['channel']}_z{row['z']}.tif"
        np.testing.assert_array_equal(out.image(name), due + 100)


# ----------------------------------------------------------- with, input


@pytest.mark.numpy
@pytest.mark.parametrize("slice_by_slice", [False, True])
@pytest.mark.parametrize(
    "written", ["add", {"from": "add"}, {"from": "add", "stack": ["z"]}]
)
def test_with(work: Work, slice_by_slice, written):
    work.plate()
    work.pipeline(
        python("add", parameters={"value": 7}),
        python("double", input="plate"),
        python(
            "minus",
            slice_by_slice=slice_by_slice,
            **{"with": {"other": written}},
        ),
    )
    out = work.run()
    for k in (1, 2, 3):
        source = ramp("A02", "1", "1", k)
        np.testing.assert_array_equal(
            out.image(f"A02_s1_w1_z{k}.tif"), source - 7
        )


@pytest.mark.numpy
@pytest.mark.parametrize("slice_by_slice", [False, True])
def test_with_depth_one_is_broadcast(work: Work, slice_by_slice):
    work.plate()
    work.pipeline(
        MAX,
        {
            **SHAPES,
            "input": "plate",
            "slice_by_slice": slice_by_slice,
            "with": {"other": "project"},
        },
    )
    rows = work.run().table("shapes")
    assert len(rows) == (6 if slice_by_slice else 2)
    plane = f"{SHAPE[0]}x{SHAPE[1]}"
    for row in rows:
        assert row["other"] == (plane if slice_by_slice else f"1x{plane}")
        top = work.stack(row["well"]).max(0)
        assert int(row["other_sum"]) == top.sum()


BAD_WITH = [
    # step before, the step with `with`, said
    (
        [python("add", where={"channel": "1"})],
        python("minus", input="plate", **{"with": {"other": "add"}}),
        "has no result for",
    ),
    (
        [SHAPES],
        python("minus", input="plate", **{"with": {"other": "shape"}}),
        "tables only",
    ),
    ([python("add")], python("minus", **{"with": {"otter": "add"}}), "otter"),
    (
        [python("add")],
        python("minus", **{"with": {"other": "ad"}}),
        'did you mean "add"',
    ),
    ([python("add")], python("minus"), "other"),
    (
        [python("add")],
        python(
            "minus",
            **{"with": {"other": {"from": "add", "stack": ["channel"]}}},
        ),
        "not supported yet",
    ),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("before", "step", "said"), BAD_WITH)
def test_bad_with(work: Work, before, step, said):
    work.plate(channels="12")
    work.pipeline(*before, step)
    out = work.run(status=2)
    assert said in out.text
    assert "steps[1]" in out.text
    assert not out.folder.exists()


@pytest.mark.numpy
def test_a_step_cannot_spoil_what_another_waits_for(work: Work):
    """Its stack is its own; what comes through `with` is read-only."""
    work.plate(["A01", "A02"])
    work.code(
        CODE
        + """
def spoil(stack):
    stack[...] = 0
    return stack

def spoil_other(stack, other):
    other[...] = 0
    return stack
"""
    )
    work.pipeline(
        python("add", parameters={"value": 5}),
        python("spoil"),
        python("minus", input="plate", **{"with": {"other": "spoil"}}),
        {**SHAPES, "input": "add"},
    )
    out = work.run()
    sums = [int(row["sum"]) for row in out.table("shapes")]
    assert sums == [int((work.stack(w) + 5).sum()) for w in ("A01", "A02")]
    np.testing.assert_array_equal(
        out.image("A01_s1_w1_z1.tif"), ramp("A01", "1", "1", 1)
    )
    work.pipeline(
        python("add"),
        python("spoil_other", input="plate", **{"with": {"other": "add"}}),
    )
    out = work.run(status=2)
    assert "read-only" in out.text


BAD_INPUT = [
    ([SHAPES, python("add")], "tables only"),
    ([SHAPES, python("add", input="shape")], "tables only"),
    ([MAX, python("add", input="projekt")], 'did you mean "project"'),
    ([python("add", input="double"), python("double")], "double"),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("steps", "said"), BAD_INPUT)
def test_bad_input(work: Work, steps, said):
    work.plate()
    work.pipeline(*steps)
    assert said in work.run(status=2).text


# ------------------------------------------------------------- incomplete

INCOMPLETE = [
    # key, exit status, statuses of A01..A04 where A03 lacks a slice
    (None, 0, ["done", "done", "skipped", "done"]),
    ("skip", 0, ["done", "done", "skipped", "done"]),
    ("run", 0, ["done"] * 4),
    ("stop", 4, ["done", "done", "skipped", "not run"]),
]


@pytest.mark.native
@pytest.mark.parametrize(("key", "status", "statuses"), INCOMPLETE)
def test_incomplete(work: Work, key, status, statuses):
    work.plate(["A01", "A02", "A03", "A04"])
    work.slice("A03", "1", "1", 2).unlink()
    work.pipeline(MAX if key is None else {**MAX, "incomplete": key})
    out = work.run("--workers", 1, status=status)
    assert out.status == statuses
    row = out.table("images")[2]
    if key == "run":
        due = work.stack("A03", z=(1, 3)).max(0)
        np.testing.assert_array_equal(out.image("A03_s1_w1.tif"), due)
    else:
        assert "1 of 3 slices" in row["reason"]
        assert "A03_s1_w1.tif" not in out.names
        assert "1 skipped" in out.done.stdout


@pytest.mark.native
def test_channels_have_siblings_of_their_own(work: Work):
    """A channel of one plane only is no gap."""
    work.plate(channels="1")
    work.plate(channels="2", z=[1])
    work.pipeline(MAX)
    out = work.run()
    assert out.status == ["done", "done"]
    assert len(out.names) == 4


@pytest.mark.native
def test_incomplete_counts_what_the_step_takes(work: Work):
    """A gap outside the step's `where` is none of its business."""
    work.plate(["A01", "A02", "A03"])
    work.slice("A02", "1", "1", 3).unlink()
    work.pipeline({**MAX, "where": {"z": ["1", "2"]}})
    assert work.run().status == ["done"] * 3
    work.pipeline({**MAX, "where": {"z": ["2", "3"]}})
    out = work.run()
    assert out.status == ["done", "skipped", "done"]
    assert "1 of 2 slices" in out.table("images")[1]["reason"]
