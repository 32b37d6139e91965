"""The engine: which groups run, what their steps get, how they end."""

import sqlite3
from pathlib import Path

import pytest
import tifffile
from conftest import Run
from plates import MAX, Work, below, hidden, native, python

FAILS = """
def bad_well(stack, info, well):
    if info.components["well"] in well.split(","):
        raise ValueError("cannot do " + info.components["well"])
    return stack

def never(stack):
    return 1 / 0

def same(stack):
    return stack
"""
WELLS = [f"{row}{column:02}" for row in "AB" for column in range(1, 13)]


@pytest.fixture
def work(tmp_path: Path, run: Run) -> Work:
    """A folder to make a plate and a pipeline in."""
    return Work(tmp_path, run)


def spoil(path: Path) -> None:
    """Keep the header, break the pixels."""
    image = tifffile.imread(path)
    tifffile.imwrite(path, image, compression="zlib")
    with tifffile.TiffFile(path) as file:
        (offset,) = file.pages[0].dataoffsets
    content = bytearray(path.read_bytes())
    content[offset : offset + 8] = b"\xff" * 8
    path.write_bytes(content)


# ------------------------------------------------------------ how it ends

ENDS = [
    # wells that fail, further words, exit status, done, failed, not run
    ("", "", 0, 24, 0, 0),
    ("B05", "", 4, 23, 1, 0),
    ("A01", "", 4, 23, 1, 0),  # the first canary
    (",".join(WELLS[12:]), "", 4, 12, 12, 0),
    ("B05", "--tolerate 5", 0, 23, 1, 0),
    ("B05", "--tolerate 5%", 0, 23, 1, 0),
    ("B05,B06", "--tolerate 5", 4, 22, 2, 0),
    ("B05", "--tolerate 0", 4, 23, 1, 0),
    ("A03", "--on-error continue", 4, 23, 1, 0),
    ("A03", "--on-error stop", 4, 2, 1, 21),
    ("A01", "--on-error stop", 5, 0, 1, 23),
    ("B05", "--on-error stop --tolerate 100", 4, None, 1, None),
    ("A03,A04", "--on-error stop --only well=A03,A04", 5, 0, 1, 1),
]


@pytest.mark.numpy
@pytest.mark.parametrize(
    ("wells", "words", "status", "done", "failed", "not_run"), ENDS
)
def test_ends(work: Work, wells, words, status, done, failed, not_run):
    """A group that fails costs itself; the exit status tells."""
    work.plate(WELLS, z=[1])
    work.code(FAILS)
    work.pipeline(python("bad_well", parameters={"well": wells}))
    out = work.run(*words.split(), "--workers", 1, status=status)
    groups = out.json["groups"]
    assert groups["failed"] == failed
    if done is not None:
        assert (groups["done"], groups["not run"]) == (done, not_run)
    assert out.json["exit_status"] == status
    assert len(out.names) == groups["done"]
    by_well = {row["well"]: row for row in out.table("images")}
    for well in by_well.keys() & set(wells.split(",")):
        if by_well[well]["status"] != "not run":
            assert by_well[well]["status"] == "failed"
            assert f"cannot do {well}" in by_well[well]["reason"]
    assert not hidden(work.folder)


@pytest.mark.numpy
def test_failure_is_told_with_its_traceback(work: Work):
    """The user's frames first: in the summary, run.json, images.csv and the
    journal."""
    work.plate(["A01", "A02", "A03"])
    work.code(FAILS)
    work.pipeline(python("bad_well", parameters={"well": "A02"}))
    out = work.run(status=4)
    (failure,) = out.json["failures"]
    assert failure["step"] == "bad_well"
    assert failure["group"] == "well A02 site 1 channel 1"
    assert failure["message"].startswith("ValueError: cannot do A02")
    frames = [
        line for line in failure["detail"].splitlines() if "File" in line
    ]
    assert frames[0].strip().startswith(f'File "{work.folder}/steps.py"')
    assert 'raise ValueError("cannot do ' in failure["detail"]
    assert failure["detail"] in out.done.stdout
    assert "2 of 3 groups done" in out.done.stdout
    assert "1 failed" in out.done.stdout
    assert len(out.text.splitlines()) < 25
    row = out.table("images")[1]
    assert (row["well"], row["status"]) == ("A02", "failed")
    assert "bad_well" in row["reason"]
    db = sqlite3.connect(out.folder / "run.sqlite")
    tasks = db.execute("SELECT grp, status FROM tasks ORDER BY grp")
    assert list(tasks) == [(0, "done"), (1, "failed"), (2, "done")]
    assert out.names == [
        f"A0{i}_s1_w1_z{z}.tif" for i in (1, 3) for z in (1, 2, 3)
    ]


CANARIES = [
    # wells, what is said; one canary suffices where there is one group
    (["A01"], "division by zero"),
    (["A01", "A02"], "division by zero"),
    (WELLS, "division by zero"),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("wells", "said"), CANARIES)
@pytest.mark.parametrize("workers", [1, 8])
def test_canary_stops_a_step_that_always_fails(
    work: Work, wells, said, workers
):
    """Exit 2 after two canaries, and OUT can be used again at once."""
    work.plate(wells, z=[1])
    work.code(FAILS)
    work.pipeline(python("never"))
    out = work.run("--workers", workers, status=2)
    assert said in out.text
    assert "steps.py" in out.text
    assert not below(out.folder)
    work.pipeline(python("same"))
    work.run(out=out.folder)


@pytest.mark.numpy
@pytest.mark.parametrize("passes", [True, False])
def test_first_twenty_failures_stop(work: Work, passes):
    """All 16 canaries are unreadable, which says nothing of the step; then it
    fails on each group that it gets."""
    wells = [f"{row}{column:02}" for row in "ABCD" for column in range(1, 13)]
    work.plate(wells, z=[1])
    for i in (0, *range(24, 39)):
        spoil(work.slice(wells[i], "1", "1", 1))
    work.code(FAILS)
    where = {"well": [well for well in wells if well != "A02"]}
    work.pipeline(MAX, python("never", **({"where": where} if passes else {})))
    out = work.run("--workers", 1, status=4 if passes else 5)
    groups = out.json["groups"]
    assert groups["failed"] == 16 + 20
    assert groups["done"] == (1 if passes else 0)
    assert groups["not run"] == len(wells) - 36 - groups["done"]
    for text in (out.json["stopped_because"], out.done.stdout):
        assert 'step "never" failed on each of its first 20' in text
    assert out.status.count("not run") == groups["not run"]
    work.run(status=2, out=out.folder)


@pytest.mark.native
def test_read_errors_are_not_the_steps(work: Work):
    """30 unreadable groups of 32: the two good ones are done."""
    wells = [*WELLS, *(f"C{i:02}" for i in range(1, 9))]
    work.plate(wells, z=[1])
    for well in wells[1:-1]:
        path = work.slice(well, "1", "1", 1)
        path.write_bytes(path.read_bytes()[:-50])
    work.pipeline(MAX)
    out = work.run("--workers", 2, status=4)
    assert out.json["groups"]["failed"] == 30
    assert out.names == ["A01_s1_w1.tif", "C08_s1_w1.tif"]
    for well, row in zip(wells, out.table("images"), strict=True):
        assert row["status"] == (
            "done" if well in ("A01", "C08") else "failed"
        )
        if row["status"] == "failed":
            assert f"{well}_s1_w1_z1.tif" in row["reason"]


@pytest.mark.native
def test_all_failed(work: Work):
    work.plate(["A01", "A02"], z=[1])
    for well in ("A01", "A02"):
        spoil(work.slice(well, "1", "1", 1))
    work.pipeline(MAX)
    out = work.run(status=5)
    assert out.status == ["failed", "failed"]
    assert out.names == []


MISSING = [
    ["--python", "/nonexistent/python3"],
]


@pytest.mark.numpy
@pytest.mark.parametrize("words", MISSING)
def test_missing(work: Work, words):
    work.plate()
    work.code(FAILS)
    work.pipeline(python("same"))
    out = work.run(*words, status=3)
    assert words[-1] in out.text
    assert not out.folder.exists()
    work.pipeline(MAX)  # C steps alone need no interpreter
    out = work.run(*words)
    assert out.json["versions"]["python"] is None


# -------------------------------------------------------------------- OUT


@pytest.mark.native
def test_used_out_is_refused(work: Work):
    work.plate()
    work.pipeline(MAX)
    out = work.run()
    before = {name: (out.folder / name).stat() for name in below(out.folder)}
    again = work.run(out=out.folder, status=2)
    assert "--fresh" in again.text
    after = {name: (out.folder / name).stat() for name in below(out.folder)}
    assert before == after


@pytest.mark.native
def test_fresh_removes_what_the_journal_lists(work: Work):
    work.plate(["A01", "A02"])
    work.pipeline({**MAX, "save": True}, native("smooth", "gaussian"))
    out = work.run()
    foreign = {
        "images/mine.tif",
        "mine.txt",
        "steps/project/deep/mine.txt",
        "tables/mine.csv",
    }
    for name in foreign:
        (out.folder / name).parent.mkdir(exist_ok=True)
        (out.folder / name).write_text("mine")
    assert len(below(out.folder, ".tif")) == 5
    work.pipeline(native("smooth", "gaussian"))
    work.run("--fresh", "--only", "well=A02", out=out.folder)
    left = set(below(out.folder))
    assert foreign <= left
    assert left - foreign == {
        *(f"images/A02_s1_w1_z{z}.tif" for z in (1, 2, 3)),
        "images/index.csv",
        "log.txt",
        "run.json",
        "run.sqlite",
        "tables/images.csv",
    }
    for name in foreign:
        assert (out.folder / name).read_text() == "mine"


@pytest.mark.native
def test_fresh_sweeps_temporaries(work: Work):
    """What kill -9 left half written goes; somebody's dot-files stay."""
    work.plate()
    work.pipeline({**MAX, "save": True}, native("smooth", "gaussian"))
    out = work.run()
    ours = [
        "images/.A01_s1_w1.tif.pf-tmp",
        "steps/project/.x.tif.pf-tmp",
        "tables/.images.csv.pf-tmp",
        "files/a/.b.pf-tmp",
    ]
    theirs = ["images/.mine", "images/x.pf-tmp", "mine/.x.pf-tmp"]
    for name in ours + theirs:
        (out.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (out.folder / name).write_text("half")
    work.pipeline(MAX)
    work.run("--fresh", "--only", "well=A02", out=out.folder)
    left = set(below(out.folder))
    assert not left & set(ours)
    assert left >= set(theirs)


@pytest.mark.native
def test_fresh_believes_no_path_outside(work: Work):
    """A journal that somebody wrote cannot make --fresh remove theirs."""
    work.plate()
    work.pipeline(MAX)
    out = work.run()
    victims = [work.folder / "victim", work.folder / "victim2"]
    for victim in victims:
        victim.write_text("x")
    db = sqlite3.connect(out.folder / "run.sqlite")
    db.execute("INSERT INTO files VALUES(?)", [str(victims[0])])
    db.execute("INSERT INTO files VALUES('images/../../victim2')")
    db.commit()
    db.close()
    work.run("--fresh", out=out.folder)
    assert all(victim.exists() for victim in victims)


BAD_OUT = [
    "plate",
    "plate/out",
    "plate/deep/er/out",
    "link/out",
    "file",
    "x/../plate/out",
    "new/../plate/out",
    "plate/../plate",
]


@pytest.mark.native
@pytest.mark.parametrize("name", BAD_OUT)
def test_out_is_refused(work: Work, name: str):
    """Inside the plate, also through links and what is not there yet."""
    work.plate()
    (work.folder / "file").write_text("")
    (work.folder / "x").mkdir()
    (work.folder / "link").symlink_to(work.plate_folder)
    work.pipeline(MAX)
    before = below(work.folder)
    out = work.run(out=work.folder / name, status=2)
    assert name.split("/")[-1] in out.text
    assert below(work.folder) == before


@pytest.mark.native
def test_out_beside_a_plate_of_the_same_beginning(work: Work):
    work.plate()
    work.pipeline(MAX)
    work.run(out=work.folder / "plate2")
    done = work.program(
        "run", work.folder / "pipeline.json", work.plate_folder, status=2
    )
    assert "-o OUT" in done.stderr
