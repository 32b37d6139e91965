"""Ctrl-C, SIGTERM, kill -9; one worker and eight; calls at a time."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import Run
from plates import MAX, Out, Work, below, hidden, native, python

WELLS = [f"{row}{column:02}" for row in "ABC" for column in range(1, 13)]
CODE = """
import time, threading, pathlib

lock = threading.Lock()
now = most = 0

def slow(stack, seconds=0.1, mark=None):
    global now, most
    with lock:
        now += 1
        most = max(most, now)
    if mark:
        pathlib.Path(mark).touch()
    time.sleep(seconds)
    with lock:
        now -= 1
    return stack, [{"most": most}]

def threads(stack):
    import os
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return [{name: os.environ.get(name, "") for name in names}]
"""


@pytest.fixture
def work(tmp_path: Path, run: Run) -> Work:
    """A folder with steps.py, to make a plate and a pipeline in."""
    work = Work(tmp_path, run)
    work.code(CODE)
    return work


@contextlib.contextmanager
def running(
    work: Work, program: Path, *words: object
) -> Iterator[subprocess.Popen[str]]:
    """The program in a process of its own, once its first call has begun."""
    mark = work.folder / "mark"
    process = subprocess.Popen(
        [
            program,
            "run",
            work.folder / "pipeline.json",
            work.plate_folder,
            "-o",
            work.folder / "out",
            *map(str, words),
        ],
        env={
            "PLATEFLOW_PYTHON": sys.executable,
            **os.environ,
            # A program that ends at once joins no thread.
            "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "")
            + ":report_thread_leaks=0",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 30
        while not mark.exists() and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.communicate()


def finished(process: subprocess.Popen[str], folder: Path) -> Out:
    stdout, stderr = process.communicate(timeout=30)
    done = subprocess.CompletedProcess(
        process.args, process.returncode, stdout, stderr
    )
    return Out(folder, done)


SIGNALS = [
    (signal.SIGINT, 130, "interrupted"),
    (signal.SIGTERM, 143, "terminated"),
    (signal.SIGHUP, 143, "terminated"),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("number", "status", "word"), SIGNALS)
def test_one_signal_finishes_what_runs(
    work: Work, program: Path, number, status, word
):
    work.plate(WELLS, z=[1])
    work.pipeline(
        python("slow", tables=["t"], parameters={"mark": "{out}/../mark"})
    )
    with running(work, program, "--workers", 2) as process:
        time.sleep(0.25)
        process.send_signal(number)
        out = finished(process, work.folder / "out")
    assert out.done.returncode == status
    groups = out.json["groups"]
    assert groups["failed"] == 0
    assert groups["done"] + groups["not run"] == len(WELLS)
    assert 0 < groups["done"] < len(WELLS)
    assert f"{groups['not run']} groups are left" in out.text
    assert word in out.text
    assert len(out.names) == groups["done"] == len(out.table("t"))
    assert out.status.count("not run") == groups["not run"]
    assert not hidden(work.folder)
    for name in out.names:
        out.image(name)


@pytest.mark.numpy
@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGINT, signal.SIGINT),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGINT, signal.SIGTERM),
    ],
)
def test_two_signals_end_at_once(work: Work, program: Path, numbers):
    """Nothing half, no dot-file, and no waiting for a call of 30 seconds."""
    work.plate(WELLS, z=[1])
    work.pipeline(
        native("smooth", "gaussian", save=True),
        python(
            "slow",
            tables=["t"],
            parameters={"seconds": 30, "mark": "{out}/../mark"},
        ),
    )
    with running(work, program, "--workers", 2) as process:
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.3)
        start = time.monotonic()
        out = finished(process, work.folder / "out")
        assert time.monotonic() - start < 5
    assert out.done.returncode == (130 if numbers[0] == signal.SIGINT else 143)
    assert "stopped at once" in out.text
    assert not hidden(work.folder)
    for name in below(out.folder, ".tif"):
        tifffile.imread(out.folder / name)


@pytest.mark.native
def test_two_signals_in_the_middle_of_a_file(work: Work, program: Path):
    """The half file is removed, and no image takes its place."""
    noise = np.random.default_rng(0).integers(0, 60000, (5000, 5000), "u2")
    work.plate(["A01"], z=[1], pixels=lambda *_: noise)
    work.pipeline(MAX)
    (work.folder / "mark").touch()
    with running(work, program, "--compression", "deflate") as process:
        until = time.monotonic() + 60
        while not any("pf-tmp" in name for name in hidden(work.folder)):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out = finished(process, work.folder / "out")
    assert out.done.returncode == 130, out.text
    assert "stopped at once" in out.text
    assert not hidden(work.folder)
    assert below(out.folder, ".tif") == []


@pytest.mark.native
@pytest.mark.parametrize("seed", range(3))
def test_signals_at_any_time(work: Work, program: Path, seed: int):
    """Whenever they come, what is there is whole."""
    rng = np.random.default_rng(seed)
    work.plate(
        WELLS,
        z=[1, 2],
        pixels=lambda *_: rng.integers(0, 999, (300, 300), "u2"),
    )
    work.pipeline(native("smooth", "gaussian", parameters={"sigma": 3}))
    (work.folder / "mark").touch()
    words = ["--compression", "deflate", "--workers", 3]
    with running(work, program, *words) as process:
        time.sleep(float(rng.uniform(0.02, 0.3)))
        process.send_signal(signal.SIGINT)
        time.sleep(float(rng.uniform(0.0, 0.05)))
        process.send_signal(signal.SIGINT)
        out = finished(process, work.folder / "out")
    assert out.done.returncode in (0, 130), out.text
    assert not hidden(work.folder)
    for name in below(work.folder / "out", ".tif"):
        assert tifffile.imread(out.folder / name).shape == (300, 300)


def has_journal(out: Path) -> bool:
    """Whether the run came as far as its first commit: else there is none."""
    path = out / "run.sqlite"
    if not path.exists():
        return False
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


@pytest.mark.native
@pytest.mark.parametrize("seed", range(3))
def test_kill_leaves_nothing_damaged(work: Work, program: Path, seed: int):
    """What a reader takes for an image is one; --fresh clears the way."""
    rng = np.random.default_rng(seed)
    work.plate(
        WELLS,
        z=[1, 2],
        pixels=lambda *_: rng.integers(0, 999, (300, 300), "u2"),
    )
    work.pipeline(native("smooth", "gaussian", parameters={"sigma": 3}))
    (work.folder / "mark").touch()
    with running(work, program, "--workers", 3) as process:
        time.sleep(float(rng.uniform(0.05, 0.3)))
        process.kill()
        finished(process, work.folder / "out")
    images = work.folder / "out/images"
    for name in below(images, ".tif"):
        if Path(name).name[0] != ".":
            assert tifffile.imread(images / name).shape == (300, 300)
    out = work.folder / "out"
    if has_journal(out):
        work.run(out=out, status=2)
    whole = work.run("--fresh", out=out)
    assert len(whole.names) == 2 * len(WELLS)
    assert not hidden(out)


@pytest.mark.numpy
def test_processes_end_with_the_run(work: Work, program: Path):
    """No child of ours is left, also after kill -9."""
    work.plate(WELLS, z=[1])
    work.pipeline(
        python(
            "slow",
            tables=["t"],
            parameters={"seconds": 20, "mark": "{out}/../mark"},
        )
    )
    with running(work, program, "--workers", 2) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("/proc tells no children here")
        mine = children.read_text().split()
        process.kill()
        process.wait()
    assert not [pid for pid in mine if Path(f"/proc/{pid}").exists()]


# -------------------------------------------------------- calls at a time

CONCURRENCY = [
    # workers, concurrency, most calls at a time
    (4, None, 4),
    (4, 1, 1),
    (4, 2, 2),
    (2, 4, 2),
    (1, 4, 1),
]


@pytest.mark.numpy
@pytest.mark.parametrize(("workers", "concurrency", "most"), CONCURRENCY)
def test_concurrency(work: Work, workers, concurrency, most):
    work.plate(WELLS[:16], z=[1])
    keys = {} if concurrency is None else {"concurrency": concurrency}
    work.pipeline(
        python("slow", tables=["t"], parameters={"seconds": 0.05}, **keys)
    )
    out = work.run("--workers", workers)
    assert max(int(row["most"]) for row in out.table("t")) == most
    assert out.json["workers"] == workers


THREADS = [
    # `threads`, in the environment, what the libraries see
    (None, None, "1"),
    (3, None, "3"),
    (None, "5", "5"),
    (3, "5", "3"),  # what the pipeline says wins
]


@pytest.mark.numpy
@pytest.mark.parametrize(("key", "given", "seen"), THREADS)
@pytest.mark.parametrize("workers", [1, 2])
def test_threads(work: Work, key, given, seen, workers):
    """Never derived from the workers."""
    work.plate(WELLS[:2], z=[1])
    keys = {} if key is None else {"threads": key}
    work.pipeline(python("threads", result="none", tables=["t"], **keys))
    env = (
        {}
        if given is None
        else {
            "OMP_NUM_THREADS": given,
            "OPENBLAS_NUM_THREADS": given,
            "MKL_NUM_THREADS": given,
        }
    )
    out = work.run("--workers", workers, env=env)
    for row in out.table("t"):
        assert row["OMP_NUM_THREADS"] == seen
        assert row["OPENBLAS_NUM_THREADS"] == seen
    assert out.json["threads"] == int(seen)


@pytest.mark.numpy
def test_threads_that_differ_are_refused(work: Work):
    work.plate()
    work.pipeline(
        python("slow", tables=["t"], threads=2),
        {**python("threads", result="none", tables=["u"]), "threads": 3},
    )
    assert "threads" in work.run(status=2).text


# -------------------------------------------------------------- same bits


def contents(folder: Path) -> dict[str, bytes]:
    """All that a run writes but what tells of times."""
    return {
        name: (folder / name).read_bytes()
        for name in below(folder)
        if name not in ("run.json", "run.sqlite", "log.txt")
    }


@pytest.mark.numpy
@pytest.mark.parametrize("kind", ["native", "numpy"])
def test_one_worker_and_eight(work: Work, kind: str):
    """Identical bytes: images, labels, tables, lists; failures too."""
    rng = np.random.default_rng(1)
    work.plate(
        WELLS[:12],
        channels="12",
        z=[1, 2, 3],
        pixels=lambda *_: rng.integers(0, 60000, (40, 50), "u2"),
    )
    for well in ("A04", "A07"):
        work.slice(well, "1", "2", 2).write_bytes(b"II*\\0")
    work.slice("A09", "1", "1", 3).unlink()
    work.code(
        """
import random, time

def noisy(stack, info):
    time.sleep(random.random() / 50)
    rng = np.random.default_rng(info.seed)
    if info.components["well"] == "A06":
        raise ValueError("no")
    n = int(rng.integers(0, 5))
    return (stack + rng.integers(0, 9, stack.shape, "u2"),
            [{"i": i, "x": rng.random()} for i in range(n)])
"""
    )
    nuclei = [
        native("smooth", "gaussian", parameters={"sigma": 1.5}),
        native("mask", "threshold"),
        native("label", "label", result="labels"),
        native(
            "measure",
            "measure",
            result="none",
            tables=["objects"],
            **{"with": {"intensity": "smooth"}},
        ),
    ]
    first = (
        [MAX]
        if kind == "native"
        else [MAX, python("noisy", tables=["noise"], save=True)]
    )
    work.pipeline(*first, *nuclei)
    runs = {
        n: work.run("--workers", n, status=4, out=work.folder / f"w{n}")
        for n in (1, 2, 8)
    }
    one = contents(runs[1].folder)
    assert len([n for n in one if n.endswith(".tif")]) >= 20
    for n in (2, 8):
        other = contents(runs[n].folder)
        assert other.keys() == one.keys()
        assert [k for k in one if one[k] != other[k]] == []
    failures = [
        {
            (f["group"], f["message"].split(" 0x")[0])
            for f in run.json["failures"]
        }
        for run in runs.values()
    ]
    assert failures[0] == failures[1] == failures[2]


# --------------------------------------------------------------- progress


@pytest.mark.native
def test_progress_json(work: Work):
    """One object a line; failures as they come; how it ended."""
    work.plate(WELLS, z=[1])
    work.slice("B03", "1", "1", 1).write_bytes(b"II*\\0")
    work.pipeline(MAX)
    out = work.run("--progress", "json", "--workers", 2, status=4)
    events = [json.loads(line) for line in out.done.stdout.splitlines()]
    assert events[0]["event"] == "start"
    assert events[0]["groups"] == len(WELLS)
    assert events[-1]["event"] == "end"
    assert events[-1]["exit_status"] == 4
    assert events[-1]["done"] == len(WELLS) - 1
    (group,) = [e for e in events if e["event"] == "group"]
    assert group["status"] == "failed"
    assert group["group"] == "well B03 site 1 channel 1"
    assert "B03_s1_w1_z1.tif" in group["reason"]
    times = [event["seconds"] for event in events]
    assert times == sorted(times)
    assert out.done.stderr == ""


@pytest.mark.native
def test_progress_modes(work: Work):
    work.plate(WELLS[:2], z=[1])
    work.pipeline(MAX)
    assert work.run("--progress", "none").done.stderr == ""
    assert work.run("--progress", "plain").done.stderr == ""
    out = work.run("--progress", "loud", status=2)
    assert "json" in out.text


@pytest.mark.native
def test_progress_line_on_a_terminal(work: Work, program: Path):
    work.plate(WELLS, z=[1])
    work.pipeline(MAX)
    main, end = os.openpty()
    process = subprocess.run(
        [
            program,
            "run",
            work.folder / "pipeline.json",
            work.plate_folder,
            "-o",
            work.folder / "out",
        ],
        stdout=subprocess.PIPE,
        stderr=end,
        check=False,
    )
    os.close(end)
    text = os.read(main, 65536).decode()
    os.close(main)
    assert process.returncode == 0
    assert "36 of 36 groups done, 0 failed" in text
    assert "images/s" in text
    assert "MB/s" in text


@pytest.mark.native
def test_journal_is_whole_while_it_runs(work: Work):
    """The journal can be read after the run by any SQLite."""
    work.plate(WELLS, z=[1])
    work.pipeline(MAX)
    out = work.run("--workers", 4)
    db = sqlite3.connect(f"file:{out.folder}/run.sqlite?mode=ro", uri=True)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    rows = db.execute("SELECT well, status FROM groups ORDER BY id")
    assert list(rows) == [(well, "done") for well in WELLS]
