"""Nothing but its own files: what a run may never touch, and what stops it."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import Run
from plates import MAX, SHAPE, Work, below, hidden, native, python, ramp


@pytest.fixture
def work(tmp_path: Path, run: Run) -> Work:
    """A folder to make a plate and a pipeline in."""
    return Work(tmp_path, run)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in below(folder)}


# ------------------------------------------------------ the plate is sacred


@pytest.mark.native
@pytest.mark.parametrize(
    "place", ["images", "images/deep", "steps/project", "tables", "files"]
)
def test_plate_where_results_go(work: Work, place: str):
    """OUT/images of OUT as the plate: its files would be overwritten."""
    out = work.folder / "out"
    work.plate()
    (out / place).parent.mkdir(parents=True)
    work.plate_folder.rename(out / place)
    work.plate_folder = out / place
    before = bytes_of(out)
    work.pipeline({**MAX, "save": True}, native("smooth", "gaussian"))
    refused = work.run(status=2, out=out)
    assert "plate" in refused.text
    assert bytes_of(out) == before


@pytest.mark.native
def test_results_linked_into_the_plate(work: Work):
    work.plate()
    out = work.folder / "out"
    out.mkdir()
    (out / "images").symlink_to(work.plate_folder)
    before = bytes_of(work.plate_folder)
    work.pipeline(native("smooth", "gaussian"))
    work.run(status=2, out=out)
    assert bytes_of(work.plate_folder) == before


@pytest.mark.native
def test_plate_elsewhere_below_out(work: Work):
    """A plate beside images/ is none of OUT's results."""
    out = work.folder / "out"
    work.plate()
    out.mkdir()
    work.plate_folder.rename(out / "raw")
    work.plate_folder = out / "raw"
    before = bytes_of(work.plate_folder)
    work.pipeline(MAX)
    assert len(work.run(out=out).names) == 2
    assert bytes_of(work.plate_folder) == before


@pytest.mark.native
def test_images_of_one_run_are_the_plate_of_another(work: Work):
    work.plate(channels="12")
    work.pipeline(MAX)
    first = work.run()
    work.plate_folder = first.folder / "images"
    before = bytes_of(first.folder)
    work.pipeline(
        native("smooth", "gaussian"),
        plate={"pattern": "{well}_s{site}_w{channel}.tif"},
    )
    second = work.run()
    assert second.names == first.names
    assert bytes_of(first.folder) == before


# ------------------------------------------------------------ names in OUT

VALUES = ["..", ".", ".hid", "a b", "%s", "é"]


@pytest.mark.native
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "template", ["{site}/{site}/{site}/{site}/{well}", "{site}", "x{site}"]
)
def test_values_cannot_lead_out_of_out(work: Work, value, template):
    """A hostile file name with ".." as its site."""
    work.plate_folder.mkdir()
    for well in ("A01",):
        tifffile.imwrite(
            work.plate_folder / f"{well}_s{value}_w1_z1.tif",
            ramp("A01", "1", "1", 1),
        )
    work.pipeline(
        {**MAX, "save": template},
        plate={
            "pattern": "(?P<well>[A-Z]\\d+)_s(?P<site>.+)_w(?P<channel>\\d)"
            "_z(?P<z>\\d).tif"
        },
    )
    before = set(below(work.folder))
    out = work.run(status=None, out=work.folder / "a/b/c/out")
    assert out.done.returncode in (0, 2)
    new = set(below(work.folder)) - before
    assert all(name.startswith("a/b/c/out/") for name in new)
    if out.done.returncode == 0:
        assert not hidden(out.folder)
        assert len(below(out.folder, ".tif")) == 1


TABLES = [
    # tables of two steps, exit status
    (["images"], ["b"], 2),
    (["a"], ["a"], 2),
    (["a"], ["A"], 2),
    (["cells-1 (x)"], ["b"], None),
    (["../x"], ["b"], 2),
    (["a/b"], ["c"], 2),
    (['a"b'], ["c"], 2),
    (["a"], ["b"], 0),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("first", "second", "status"), TABLES)
def test_names_of_tables(work: Work, first, second, status):
    """SQLite knows no upper case, and images.csv is the run's own."""
    work.plate()
    work.code("def t(stack):\n    return [{'x': 1, 'X': 2, 'x y\"': 3}]\n")
    step = python("t", result="none", input="plate")
    work.pipeline(
        {**step, "tables": first}, {**step, "name": "u", "tables": second}
    )
    before = set(below(work.folder))
    out = work.run(status=status)
    assert out.done.returncode in (0, 2)
    new = set(below(work.folder)) - before
    assert all(name.startswith("out1/") for name in new)
    if out.done.returncode == 0:
        for name in first + second:
            (row, _) = out.table(name)
            assert (row["x"], row["X"], row['x y"']) == ("1", "2", "3")


# -------------------------------------------------------------- the journal

FOREIGN = {
    "text": b"my notes\n" * 100,
    "no journal": None,  # a database of somebody else's
}


@pytest.mark.native
@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("fresh", [False, True])
def test_run_sqlite_of_somebody_else(work: Work, kind, fresh):
    """It is not believed and not removed."""
    work.plate()
    work.pipeline(MAX)
    out = work.folder / "out"
    out.mkdir()
    path = out / "run.sqlite"
    if FOREIGN[kind] is None:
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE mine(x)")
        db.commit()
        db.close()
    else:
        path.write_bytes(FOREIGN[kind])
    before = path.read_bytes()
    words = ["--fresh"] if fresh else []
    work.run(*words, status=2, out=out)
    assert path.read_bytes() == before
    assert below(out) == ["run.sqlite"]


@pytest.mark.numpy
@pytest.mark.parametrize("fresh", [False, True])
def test_two_runs_into_one_out(work: Work, program: Path, fresh):
    """The second is refused; the first does not notice."""
    work.plate(["A01", "A02", "A03"])
    work.code(
        """
import pathlib, time

def slow(stack, mark):
    pathlib.Path(mark).touch()
    time.sleep(0.4)
    return stack
"""
    )
    work.pipeline(python("slow", parameters={"mark": "{out}/../mark"}))
    out = work.folder / "out"
    words = [
        program,
        "run",
        work.folder / "pipeline.json",
        work.plate_folder,
        "-o",
        out,
        "--workers",
        "1",
    ]
    env = {"PLATEFLOW_PYTHON": sys.executable, **os.environ}
    first = subprocess.Popen(
        words,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    until = time.monotonic() + 20
    while not (work.folder / "mark").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    again = work.run(*(["--fresh"] if fresh else []), status=2, out=out)
    assert "run" in again.text
    text, _ = first.communicate(timeout=30)
    assert first.returncode == 0, text
    assert len(below(out / "images", ".tif")) == 9


# ------------------------------------------------------- writing that fails


@pytest.mark.native
def test_a_name_that_is_taken_by_a_folder(work: Work):
    """Costs the group whose output it is."""
    work.plate(["A01", "A02", "A03"])
    work.pipeline(MAX)
    out = work.folder / "out"
    (out / "images/A02_s1_w1.tif/x").mkdir(parents=True)
    done = work.run(status=4, out=out)
    assert "A02_s1_w1.tif" in done.text
    assert done.status == ["done", "failed", "done"]
    assert not hidden(out)


@pytest.mark.native
def test_out_that_cannot_be_written(work: Work):
    work.plate()
    work.pipeline(MAX)
    done = work.run(status=None, out=Path("/proc/plateflow"))
    assert done.done.returncode in (2, 3)
    assert "/proc/plateflow" in done.text


@pytest.mark.native
@pytest.mark.no_sanitizer
def test_a_full_disk_stops_the_run(work: Work):
    """Exit 3, the file named, nothing half."""
    rng = np.random.default_rng(0)
    work.plate(
        [f"A{i:02}" for i in range(1, 13)],
        z=[1],
        pixels=lambda *_: rng.integers(0, 60000, (100, 100), "u2"),
    )
    work.pipeline(MAX)
    out = work.folder / "out"
    out.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", out],
        capture_output=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        done = work.run("--workers", 2, status=3, out=out)
        assert "No space left" in done.text or "no space is left" in done.text
        for name in below(out, ".tif"):
            assert tifffile.imread(out / name).shape == (100, 100)
        assert not hidden(out)
    finally:
        subprocess.run(["umount", out], check=True)


@pytest.mark.native
def test_stdout_that_is_full(work: Work, program: Path):
    """What was to be printed is not there: no success."""
    work.plate()
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [program, "inspect", work.plate_folder], check=False, stdout=full
        )
    assert done.returncode == 1


@pytest.mark.native
def test_two_plates_in_one_tree(work: Work):
    """The same wells in two plates never meet."""
    for plate in ("P1", "P2"):
        for z in (1, 2):
            path = work.plate_folder / plate / f"A01_w1_z{z}.tif"
            path.parent.mkdir(parents=True, exist_ok=True)
            value = z + 10 * int(plate[1])
            tifffile.imwrite(path, np.full(SHAPE, value, "u2"))
    pattern = {"pattern": "{plate}/{well}_w{channel}_z{z}.tif"}
    work.pipeline(MAX, plate=pattern)
    out = work.run()
    assert out.names == ["P1/A01_w1.tif", "P2/A01_w1.tif"]
    assert [out.image(n).max() for n in out.names] == [12, 22]
    fields = [(r["plate"], r["well"]) for r in out.table("images")]
    assert fields == [("P1", "A01"), ("P2", "A01")]
    out = work.run("--only", "plate=P2")
    assert out.names == ["P2/A01_w1.tif"]
