"""What a step returns: depth, size, element type; tables; where it is saved.

One call of the engine each, on plates of a few pixels.
"""

import csv
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import Run
from plates import MAX, SHAPE, Work, below, native, python, ramp

CODE = """
def same(stack):
    return stack

def one(stack):
    return stack[:1]

def two(stack):
    return stack[:2]

def per_channel(stack):
    return stack.reshape(2, -1, *stack.shape[1:]).max(1)

def flat(stack):
    return stack[0]

def cropped(stack):
    return stack[:, 1:, 2:]

def empty(stack):
    return stack[:, :0]

def nothing(stack):
    return None

def as_float(stack, factor=1.0, dtype="f8"):
    return stack.astype(dtype) * factor

def odd(stack):
    out = stack.astype("f8")
    out.flat[:8] = [0.5, 1.5, 2.5, -1, 70000, float("nan"), float("inf"), 3.49]
    return out

def dtype_of(stack):
    return [{"dtype": stack.dtype.str, "max": float(stack.max())}]

def labelled(stack, dtype="i8", value=1):
    out = np.zeros(stack.shape, dtype)
    out[..., 0] = value
    return out
"""


@pytest.fixture
def work(tmp_path: Path, run: Run) -> Work:
    """A folder with steps.py, to make a plate and a pipeline in."""
    work = Work(tmp_path, run)
    work.code(CODE)
    return work


# ---------------------------------------------------------- depth and shape

DEPTHS = [
    # function, keys, images of well A01
    (
        "same",
        {},
        [
            "A01_s1_w1_z1.tif",
            "A01_s1_w1_z2.tif",
            "A01_s1_w2_z1.tif",
            "A01_s1_w2_z2.tif",
        ],
    ),
    ("one", {"yields": "one"}, ["A01_s1_w1.tif", "A01_s1_w2.tif"]),
    ("one", {"yields": "one", "stack": ["channel", "z"]}, ["A01_s1.tif"]),
    (
        "one",
        {"yields": "one", "stack": ["well", "z"]},
        ["s1_w1.tif", "s1_w2.tif"],
    ),
    (
        "per_channel",
        {"yields": "channel", "stack": ["channel", "z"]},
        ["A01_s1_w1.tif", "A01_s1_w2.tif"],
    ),
    (
        "cropped",
        {"resizes": True, "stack": []},
        [
            "A01_s1_w1_z1.tif",
            "A01_s1_w1_z2.tif",
            "A01_s1_w2_z1.tif",
            "A01_s1_w2_z2.tif",
        ],
    ),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("function", "keys", "names"), DEPTHS)
def test_depths(work: Work, function, keys, names):
    work.plate(channels="12", z=[1, 2])
    work.pipeline(python(function, **keys))
    out = work.run("--workers", 2)
    got = [n for n in out.names if not n.startswith("A02")]
    assert got == names
    due = ramp("A01", "1", "2", 1)
    if function == "cropped":
        np.testing.assert_array_equal(
            out.image("A01_s1_w2_z1.tif"), due[1:, 2:]
        )
    if function == "per_channel":
        due = work.stack("A01", channel="2", z=(1, 2)).max(0)
        np.testing.assert_array_equal(out.image("A01_s1_w2.tif"), due)


WRONG = [
    # function, keys, what the message holds; the canary stops all of them
    ("one", {}, ['"yields": "one"', "(1, 6, 8)", "(4, 6, 8)"]),
    ("same", {"yields": "one"}, ['"yields": "same"', "(4, 6, 8)"]),
    ("two", {}, ['"yields"', "component", "(2, 6, 8)", "(4, 6, 8)"]),
    ("flat", {}, ["(6, 8)", "(4, 6, 8)", "always 3D"]),
    ("cropped", {}, ["(4, 5, 6)", "(4, 6, 8)", '"resizes": true']),
    ("empty", {"resizes": True}, ["(4, 0, 8)", "empty"]),
    ("flat", {"slice_by_slice": True}, ["(8)", "2D"]),
    ("nothing", {}, ["returned None", "nothing"]),
    ("same", {"tables": ["t"]}, ["table"]),
    ("same", {"result": "none", "tables": ["t"]}, ["table"]),
    (
        "labelled",
        {"result": "labels", "parameters": {"dtype": "f4"}},
        ["integer", "float32"],
    ),
    (
        "labelled",
        {"result": "labels", "parameters": {"value": -1}},
        ["negative"],
    ),
    (
        "labelled",
        {"result": "labels", "parameters": {"value": 1 << 32}},
        ["uint32"],
    ),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("function", "keys", "said"), WRONG)
def test_wrong_results_stop_at_the_canary(work: Work, function, keys, said):
    """Exit 2; both shapes; what to write; nothing is left in OUT."""
    work.plate([f"A{i:02}" for i in range(1, 9)], z=[1, 2, 3, 4])
    work.pipeline(python(function, **keys))
    out = work.run("--workers", 1, status=2)
    for word in said:
        assert word in out.text
    assert not below(out.folder)


# ------------------------------------------------------------ element type

NAN = np.nan
DTYPES = [
    # type as read, keys of the step, type of the result, a value, its pixel
    ("u1", {}, "u1", 7, 7),
    ("u2", {}, "u2", 7, 7),
    ("i2", {}, "i2", -7, -7),
    ("f4", {}, "f4", 0.25, 0.25),
    ("u2", {"dtype": "preserve"}, "u2", 40000, 40000),
    ("u2", {"dtype": "native"}, "f8", 7, 7),
    ("u2", {"dtype": "uint8"}, "u1", 300, 255),
    ("u2", {"dtype": "int8"}, "i1", 300, 127),
    ("u2", {"dtype": "float32"}, "f4", 300, 300),
    ("u2", {"dtype": "uint32"}, "u4", 65535, 65535),
    ("u2", {"input_dtype": "float32"}, "u2", 7, 7),
    ("u2", {"input_dtype": "float32", "dtype": "native"}, "f8", 7, 7),
    (
        "u2",
        {"dtype": "unit", "parameters": {"factor": 1 / 65535}},
        "u2",
        777,
        777,
    ),
    ("u1", {"dtype": "unit", "parameters": {"factor": 1 / 255}}, "u1", 3, 3),
    ("u2", {"dtype": "preserve", "parameters": {"factor": 0.5}}, "u2", 7, 4),
    ("u2", {"dtype": "preserve", "parameters": {"factor": 0.5}}, "u2", 5, 2),
    ("u2", {"parameters": {"factor": 2}}, "u2", 40000, 65535),
    ("u2", {"parameters": {"factor": -1}}, "u2", 7, 0),
    ("u2", {"parameters": {"dtype": "f4"}}, "u2", 65535, 65535),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("read", "keys", "due", "value", "pixel"), DTYPES)
def test_dtype(work: Work, read, keys, due, value, pixel):
    work.plate(["A01"], z=[1], pixels=lambda *_: np.full(SHAPE, value, read))
    work.pipeline(python("as_float", **keys))
    got = work.run().image("A01_s1_w1_z1.tif")
    assert got.dtype == due
    np.testing.assert_array_equal(got, np.full(SHAPE, pixel, due))


@pytest.mark.numpy
def test_preserve_rounds_saturates_and_counts(work: Work):
    work.plate(["A01"], z=[1])
    work.pipeline(python("odd"))
    out = work.run()
    got = out.image("A01_s1_w1_z1.tif").flat[:8]
    assert list(got) == [0, 2, 2, 0, 65535, 0, 65535, 3]
    (step,) = out.json["steps"]
    assert (step["clipped"], step["nan"]) == (3, 1)
    warnings = "\n".join(out.json["warnings"])
    assert "3 values were beyond the range" in warnings
    assert "1 NaN" in warnings


@pytest.mark.numpy
def test_rescale_is_min_max_of_the_group(work: Work):
    work.plate(["A01", "A02"], z=[1, 2])
    work.pipeline(python("as_float", dtype="rescale"))
    out = work.run()
    stack = np.stack([out.image(f"A01_s1_w1_z{z}.tif") for z in (1, 2)])
    source = work.stack("A01", z=(1, 2)).astype("f8")
    low, high = source.min(), source.max()
    due = np.rint((source - low) / (high - low) * 65535)
    np.testing.assert_array_equal(stack, due)


CASTS = ["uint8", "uint16", "int32", "float16", "float32", "float64"]


@pytest.mark.numpy
@pytest.mark.parametrize("where", ["read", "later"])
@pytest.mark.parametrize("dtype", CASTS)
def test_input_dtype(work: Work, dtype, where):
    """Cast while it is stacked, or between two steps; saturating."""
    work.plate(["A01"])
    step = python("dtype_of", result="none", tables=["t"], input_dtype=dtype)
    before = [python("same")] if where == "later" else []
    work.pipeline(*before, step)
    (row,) = work.run().table("t")
    assert np.dtype(row["dtype"]) == np.dtype(dtype)
    top = work.stack("A01").max()
    due = min(top, 255) if dtype == "uint8" else np.dtype(dtype).type(top)
    assert float(row["max"]) == float(due)


LEVELS = [
    # factor, dtype of the step, exit status, the dtype that is proposed
    (1 / 65535, {}, 2, '"dtype": "unit"'),
    (1 / 500, {}, 2, '"dtype": "rescale"'),
    (1 / 65535, {"dtype": "native"}, 0, ""),
    (1 / 65535, {"dtype": "unit"}, 0, ""),
    (1 / 65535, {"dtype": "uint16"}, 0, ""),  # asked for by name
    (1.0, {}, 0, ""),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("factor", "keys", "status", "said"), LEVELS)
def test_lost_levels_stop_at_the_canary(
    work: Work, factor, keys, status, said
):
    """What rounding would leave black is found before the night begins."""
    rng = np.random.default_rng(3)
    work.plate(pixels=lambda *_: rng.integers(0, 4000, (64, 64), "u2"))
    work.pipeline(python("as_float", parameters={"factor": factor}, **keys))
    out = work.run(status=status)
    assert said in out.text
    assert status == 0 or not below(out.folder)


LABELS = ["bool", "u1", "i4", "u4", "i8", "u8"]


@pytest.mark.numpy
@pytest.mark.parametrize("dtype", LABELS)
def test_labels_are_uint32(work: Work, dtype):
    work.plate(["A01"], z=[1])
    work.pipeline(
        python("labelled", result="labels", parameters={"dtype": dtype})
    )
    out = work.run()
    path = out.folder / "images/A01_s1_w1_z1.tif"
    with tifffile.TiffFile(path) as file:
        assert file.pages[0].compression.name == "ADOBE_DEFLATE"
    got = tifffile.imread(path)
    assert got.dtype == np.uint32
    assert got.sum() == SHAPE[0]


# -------------------------------------------------------------------- save

SAVES = [
    # `save` of each step, what is below OUT
    ([None, None], ["images/{}.tif"]),
    ([True, None], ["images/{}.tif", "steps/project/{}.tif"]),
    ([None, True], ["images/{}.tif"]),
    ([None, False], []),
    ([True, False], ["steps/project/{}.tif"]),
    (["{well}/{channel}", None], ["images/{}.tif", "steps/project/A01/1.tif"]),
    ([None, "a_{well}.tif"], ["images/a_A01.tif"]),
    ([None, "{{x}}{well}.tiff"], ["images/{x}A01.tiff"]),
]


@pytest.mark.native
@pytest.mark.parametrize(("saves", "names"), SAVES)
def test_save(work: Work, saves, names):
    work.plate(["A01"])
    steps = [MAX, native("smooth", "gaussian")]
    work.pipeline(
        *(
            step if save is None else {**step, "save": save}
            for step, save in zip(steps, saves, strict=True)
        )
    )
    out = work.run()
    got = [n for n in below(out.folder) if ".tif" in n]
    assert got == sorted(name.replace("{}", "A01_s1_w1") for name in names)


BAD_SAVES = [
    ("{well}", "two results"),
    ("fixed.tif", "two results"),
    ("../{well}_{channel}", "below OUT"),
    ("/tmp/{well}_{channel}", "below OUT"),
    (".{well}_{channel}", "below OUT"),
    ("a//{well}_{channel}", "below OUT"),
    ("{well}_{channel}_{z}", "no z any more"),
    ("{well}_{chanel}", "chanel"),
    ("{well", "not closed"),
]


@pytest.mark.native
@pytest.mark.parametrize(("template", "said"), BAD_SAVES)
def test_bad_save(work: Work, template, said):
    work.plate(channels="12")
    work.pipeline({**MAX, "save": template})
    out = work.run(status=2)
    assert said in out.text
    assert "steps[0]" in out.text
    assert not out.folder.exists()


@pytest.mark.native
def test_names_keep_the_folders(work: Work):
    """And lose the folder of a lost component."""
    folder = work.plate_folder
    for well, z in [("A01", 1), ("A01", 2), ("B02", 1), ("B02", 2)]:
        path = folder / f"p1/{well}/z{z}/img_w1.tif"
        path.parent.mkdir(parents=True)
        tifffile.imwrite(path, ramp(well, "1", "1", z))
    pattern = "{plate}/{well}/z{z}/img_w{channel}.tif"
    work.pipeline(MAX, plate={"pattern": pattern})
    assert work.run().names == ["p1/A01/img_w1.tif", "p1/B02/img_w1.tif"]
    work.pipeline(native("same", "gaussian"), plate={"pattern": pattern})
    assert work.run().names == below(folder)


# ------------------------------------------------- parameters, placeholders


@pytest.mark.numpy
def test_placeholders(work: Work):
    """Filled in for each group, in nested values too."""
    work.plate(["A01", "B11"], sites="12", channels="12", z=[1])
    work.code(
        """
def told(stack, text, nested):
    return [{"text": text, "deep": nested["a"][1], "n": str(nested["n"])}]
"""
    )
    nested = {"a": [1, "{site}{{x}}"], "n": 3}
    text = "{well}-{channel}|{out}"
    work.pipeline(
        python(
            "told",
            result="none",
            tables=["t"],
            parameters={"text": text, "nested": nested},
        )
    )
    out = work.run()
    rows = out.table("t")
    assert len(rows) == 8
    for row in rows:
        assert row["text"] == f"{row['well']}-{row['channel']}|{out.folder}"
        assert row["deep"] == f"{row['site']}{{x}}"
        assert row["n"] == "3"


@pytest.mark.native
def test_a_file_per_channel(work: Work):
    """native:flatfield with {channel} in its path, beside the pipeline."""
    work.plate(channels="12", z=[1])
    for channel, factor in ("1", 1.0), ("2", 2.0):
        flat = np.full(SHAPE, factor, "f4")
        flat[:, 0] /= 2
        tifffile.imwrite(work.folder / f"flat_{channel}.tif", flat)
    work.pipeline(
        native(
            "flat",
            "flatfield",
            parameters={"image": "flat_{channel}.tif"},
        )
    )
    out = work.run()
    for channel in "12":
        source = ramp("A02", "1", channel, 1)
        got = out.image(f"A02_s1_w{channel}_z1.tif")
        assert (got[:, 0] > got[:, 1] * 1.5).all()
        assert got.dtype == source.dtype
    (work.folder / "flat_2.tif").unlink()
    out = work.run(status=4)
    assert "flat_2.tif" in out.text
    assert out.names == ["A01_s1_w1_z1.tif", "A02_s1_w1_z1.tif"]


BAD_PLACEHOLDERS = [
    ("{z}", "stacks"),
    ("{wel}", "wel"),
    ("{well", "not closed"),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("text", "said"), BAD_PLACEHOLDERS)
def test_bad_placeholders(work: Work, text, said):
    work.plate()
    work.code("def told(stack, text):\n    return stack\n")
    work.pipeline(python("told", parameters={"text": text}))
    out = work.run(status=2)
    assert said in out.text
    assert "steps[0].parameters.text" in out.text


SETS = [
    # --set, type and value that Python gets
    ("told.value=3", "int 3"),
    ("told.value=3.0", "float 3.0"),
    ("told.value=-1e3", "float -1000.0"),
    ("told.value=true", "bool True"),
    ("told.value=null", "NoneType None"),
    ("told.value=max", "str max"),
    ("told.value=[1,2.5]", "list [1, 2.5]"),
    ('told.value="3"', "str 3"),
    ("told.value=a=b", "str a=b"),
    ("told.value={well}", "str A01"),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("word", "due"), SETS)
def test_set(work: Work, word, due):
    work.plate(["A01"], z=[1])
    work.code(
        """
def told(stack, value=0):
    return [{"got": f"{type(value).__name__} {value}"}]
"""
    )
    work.pipeline(
        python("told", result="none", tables=["t"], parameters={"value": 9})
    )
    out = work.run("--set", word)
    assert out.table("t")[0]["got"] == due


BAD_SETS = [
    ("told.value", "STEP.PARAM=VALUE"),
    ("value=3", "STEP.PARAM=VALUE"),
    ("tld.value=3", 'did you mean "told"'),
    ("told.valu=3", "valu"),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("word", "said"), BAD_SETS)
def test_bad_set(work: Work, word, said):
    work.plate()
    work.code("def told(stack, value=0):\n    return stack\n")
    work.pipeline(python("told"))
    assert said in work.run("--set", word, status=2).text


# ------------------------------------------------------------------ tables


@pytest.mark.numpy
def test_tables_and_images_csv(work: Work):
    """Stable order; zero-object fields have a row in images.csv; one column
    for each table's rows."""
    work.plate(
        ["B02", "A10", "A2"], sites=["1", "2", "10"], channels="12", z=[1, 2]
    )
    work.code(
        """
def cells(stack, info):
    c = info.components
    n = int(c["site"]) % 3 if c["channel"] == "1" else 1
    rows = [{"n": i, "half": i / 2, "name": f'a,"{i}"', "ok": i > 0}
            for i in range(n)]
    return stack, rows, {"peak": [int(stack.max())]}
"""
    )
    work.pipeline(python("cells", tables=["cells", "peaks"]))
    out = work.run("--workers", 3)
    text = (out.folder / "tables/cells.csv").read_text()
    assert text.splitlines()[0] == "plate,well,site,channel,n,half,name,ok"
    rows = out.table("cells")
    due = [
        (well, site, channel, str(i))
        for well in ("A02", "A10", "B02")
        for site in ("1", "2", "10")
        for channel in "12"
        for i in range(int(site) % 3 if channel == "1" else 1)
    ]
    assert [(r["well"], r["site"], r["channel"], r["n"]) for r in rows] == due
    assert {r["plate"] for r in rows} == {"plate"}
    assert rows[2]["name"] == f'a,"{rows[2]["n"]}"'
    assert {r["ok"] for r in rows} == {"True", "False"}
    assert {r["half"] for r in rows} <= {"0", "0.0", "0.5"}
    assert len(out.table("peaks")) == 18
    fields = out.table("images")
    assert list(fields[0]) == [
        "plate",
        "well",
        "site",
        "status",
        "reason",
        "count_cells",
        "count_peaks",
    ]
    assert [(f["well"], f["site"]) for f in fields] == [
        (w, s) for w in ("A02", "A10", "B02") for s in ("1", "2", "10")
    ]
    assert [f["count_cells"] for f in fields] == ["2", "3", "2"] * 3
    assert {f["status"] for f in fields} == {"done"}


@pytest.mark.numpy
def test_a_field_without_objects_has_its_row(work: Work):
    work.plate(["A01", "A02", "A03"])
    work.code(
        """
def cells(stack, info):
    if info.components["well"] == "A03":
        raise ValueError("broken")
    return [{"x": 1}] if info.components["well"] == "A02" else []
"""
    )
    work.pipeline(python("cells", result="none", tables=["cells"]))
    out = work.run(status=4)
    assert [row["count_cells"] for row in out.table("images")] == [
        "0",
        "1",
        "",
    ]
    assert out.status == ["done", "done", "failed"]
    assert len(out.table("cells")) == 1


@pytest.mark.numpy
def test_rows_of_a_group_that_fails_later_are_not_kept(work: Work):
    """They would stand for a field that is not done."""
    work.plate(["A01", "A02", "A03"])
    work.code(
        """
def cells(stack):
    return stack, [{"x": 1}]

def after(stack, info):
    if info.components["well"] == "A02":
        raise ValueError("late")
    return stack
"""
    )
    work.pipeline(python("cells", tables=["cells"]), python("after"))
    out = work.run(status=4)
    assert [row["well"] for row in out.table("cells")] == ["A01", "A03"]
    assert [r["count_cells"] for r in out.table("images")] == ["1", "", "1"]


@pytest.mark.numpy
def test_the_worst_group_is_the_fields_status(work: Work):
    work.plate(["A01", "A02"], channels="12", z=[1])
    work.code(
        """
def cells(stack, info):
    if info.components["well"] + info.components["channel"] == "A022":
        raise ValueError("broken")
    return [{"x": 1}]
"""
    )
    work.pipeline(python("cells", result="none", tables=["cells"]))
    out = work.run(status=4)
    assert out.status == ["done", "failed"]
    assert "broken" in out.table("images")[1]["reason"]
    assert [row["count_cells"] for row in out.table("images")] == ["2", "1"]


TYPES = [
    # values that four groups return in one column; the type that clashes
    (["1", "2.5", "3", "4"], None),
    (["'a'", "'b'", "''", "None"], None),
    (["1", "2", "'x'", "4"], "text"),
    (["True", "False", "True", "2"], "int"),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("values", "clash"), TYPES)
def test_types_are_checked_once(work: Work, values, clash):
    """The group that differs fails, the table stays as it was."""
    wells = [f"A0{i}" for i in (1, 2, 3, 4)]
    work.plate(wells, z=[1])
    work.code(
        f"""
VALUES = dict(zip({wells}, [{", ".join(values)}]))

def cells(stack, info):
    return [{{"x": VALUES[info.components["well"]]}}]
"""
    )
    work.pipeline(python("cells", result="none", tables=["cells"]))
    out = work.run("--workers", 1, status=4 if clash else 0)
    if clash:
        assert out.status.count("failed") == 1
        assert 'column "x"' in out.text
        assert clash in out.text
        assert len(out.table("cells")) == 3


@pytest.mark.numpy
def test_a_component_is_no_column(work: Work):
    work.plate()
    work.code("def cells(stack):\n    return [{'well': 1}]\n")
    work.pipeline(python("cells", result="none", tables=["cells"]))
    assert "name of a component" in work.run(status=2).text


KEEPS = [
    # rule, statuses of A01, A02, A03 with peaks 1, 2, 3 and n = 0, 1, 2
    ({"column": "peak", "min": 2}, ["excluded", "done", "done"]),
    ({"column": "peak", "max": 2}, ["done", "done", "excluded"]),
    ({"column": "peak", "min": 2, "max": 2}, ["excluded", "done", "excluded"]),
    ({"column": "nan", "min": 0}, ["excluded"] * 3),
    ({"column": "peak", "min": 0}, ["done"] * 3),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("rule", "statuses"), KEEPS)
def test_keep(work: Work, rule, statuses):
    """Excluded groups are listed, are no failures, and end there."""
    work.plate(["A01", "A02", "A03"], z=[1])
    work.code(
        """
def focus(stack, info):
    peak = int(info.components["well"][1:])
    return stack, [{"peak": peak, "nan": float("nan"), "name": "x"}]

def after(stack):
    return [{"x": 1}]
"""
    )
    work.pipeline(
        python("focus", tables=["focus"], keep=[{"table": "focus", **rule}]),
        python("after", result="none", tables=["after"]),
    )
    out = work.run(status=0)
    assert out.status == statuses
    n = statuses.count("done")
    assert len(out.table("after")) == n
    assert out.json["groups"]["excluded"] == 3 - n
    if n < 3:
        assert f"{3 - n} excluded" in out.done.stdout
        reason = out.table("images")[statuses.index("excluded")]["reason"]
        assert "focus" in reason


@pytest.mark.numpy
@pytest.mark.parametrize("column", ["name", "missing"])
def test_bad_keep(work: Work, column):
    work.plate()
    work.code("def f(stack):\n    return stack, [{'name': 'x'}]\n")
    work.pipeline(
        python(
            "f",
            tables=["t"],
            keep=[{"table": "t", "column": column, "min": 0}],
        )
    )
    assert f'"{column}"' in work.run(status=2).text


# --------------------------------------------------------------- run.json


@pytest.mark.numpy
def test_run_json_and_journal(work: Work):
    work.plate(["A01", "A02"])
    path = work.pipeline(MAX, python("same"), name="both")
    out = work.run("--workers", 1, "--set", "project.method=min")
    told = out.json
    assert told["exit_status"] == 0
    assert told["stopped_because"] is None
    assert told["groups"] == {
        "all": 2,
        "done": 2,
        "excluded": 0,
        "skipped": 0,
        "not run": 0,
        "failed": 0,
    }
    assert told["images"] == {"read": 6, "written": 2}
    assert told["bytes"]["read"] == 6 * SHAPE[0] * SHAPE[1] * 2
    assert told["bytes"]["written"] >= 2 * SHAPE[0] * SHAPE[1] * 2
    assert told["workers"] == 1
    assert told["plate"]["path"] == str(work.plate_folder)
    assert set(told["seconds"]) >= {
        "run",
        "cpu",
        "to_first_task",
        "read",
        "steps",
        "write",
        "journal",
    }
    assert all(value >= 0 for value in told["seconds"].values())
    assert told["versions"]["python"]
    assert told["versions"]["plateflow"]
    assert told["warnings"] == told["failures"] == []
    assert [step["done"] for step in told["steps"]] == [2, 2]
    as_run = json.loads(path.read_text())
    as_run["steps"][0]["parameters"]["method"] = "min"
    assert told["pipeline"] == as_run
    db = sqlite3.connect(out.folder / "run.sqlite")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert db.execute("SELECT count(*) FROM tasks").fetchone() == (4,)
    listed = {row[0] for row in db.execute("SELECT path FROM files")}
    listed |= {row[0] for row in db.execute("SELECT path FROM outputs")}
    assert listed == set(below(out.folder)) - {"run.sqlite"}


@pytest.mark.native
def test_index_of_images(work: Work):
    work.plate(["A01"], channels="12")
    work.pipeline(MAX)
    out = work.run()
    with (out.folder / "images/index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == out.names
    assert [row["channel"] for row in rows] == ["1", "2"]
    assert {row["z"] for row in rows} == {""}
    # OUT/images is a plate again, by its index.
    again = work.program("inspect", out.folder / "images", "--json")
    listed = json.loads(again.stdout)["slices"]
    assert [item["channel"] for item in listed] == ["1", "2"]
    assert [item["well"] for item in listed] == ["A01", "A01"]


@pytest.mark.numpy
def test_log_holds_what_steps_print(work: Work):
    work.plate(["A01"])
    work.code(
        """
def talk(stack, info):
    print("printed")
    info.log("logged")
    info.write("notes/a.txt", b"written")
    return stack
"""
    )
    work.pipeline(python("talk"))
    out = work.run()
    log = (out.folder / "log.txt").read_text()
    assert "printed" in log
    assert "[talk, well A01 site 1 channel 1] logged" in log
    assert "printed" not in out.text
    path = out.folder / "files/talk/notes/a.txt"
    assert path.read_bytes() == b"written"


BAD_WRITES = ["/etc/x", "../x", "a/../../x", ".hidden", "a/.b", ""]


@pytest.mark.numpy
@pytest.mark.parametrize("name", BAD_WRITES)
def test_bad_write(work: Work, name):
    work.plate(["A01"])
    work.code(
        f"""
def f(stack, info):
    info.write({name!r}, b"")
    return stack
"""
    )
    work.pipeline(python("f"))
    assert "info.write" in work.run(status=2).text
    assert not (work.folder / "x").exists()
