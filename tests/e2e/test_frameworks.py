"""Arrays of several frameworks in one process, through the real ones.

PF_FRAMEWORKS_PYTHON names an interpreter that has them; what it lacks is
skipped.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, Run

PYTHON = os.environ.get("PF_FRAMEWORKS_PYTHON", "")
ON_HOST = ("numpy", "torch", "jax", "tensorflow")

SETUP = """
import sys
import numpy as np
from plateflow import _core as core

def source(name, dtype="uint16"):
    array = core.convert(core.Array((3, 16, 16), dtype), "numpy")
    array[...] = np.arange(array.size).reshape(array.shape) % 2
    return array, core.convert(array, name)

def address(array):
    return core.convert(core.convert(array, "numpy"), "native").address
"""

STEPS = """
def halve(stack):
    return stack // 2

def clamp(stack):
    import torch
    signed = stack.view(torch.int16)
    signed.clamp_(max=2000)
    return stack

def plus(stack):
    return stack + stack.dtype.type(5)

def double(stack):
    import tensorflow as tf
    return tf.cast(tf.cast(stack, tf.int32) * 2, tf.uint16)

def fails(stack):
    import torch
    return torch.zeros(1 << 50)

def wrong(stack):
    return stack.numpy()
"""


def _needs(*names: str) -> None:
    if not PYTHON:
        pytest.skip("PF_FRAMEWORKS_PYTHON names no interpreter")
    code = (
        "import sys\nfrom importlib.util import find_spec\n"
        "print(*(n for n in sys.argv[1:] if find_spec(n) is None))"
    )
    done = subprocess.run(
        [PYTHON, "-c", code, *names],
        capture_output=True,
        text=True,
        check=True,
    )
    if missing := done.stdout.split():
        pytest.skip(f"{PYTHON} has no {', '.join(missing)}")


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], list[Any]]:
    """Run code behind SETUP; the JSON lines that it printed."""

    def call(code: str) -> list[Any]:
        done = subprocess.run(
            [PYTHON, "-c", SETUP + code],
            env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        return [json.loads(line) for line in lines if line[:1] in '["{']

    return call


@pytest.mark.parametrize("name", ON_HOST[1:])
def test_memory_is_shared(
    name: str, python: Callable[[str], list[Any]]
) -> None:
    """No copy either way, for the types that the framework can hold."""
    _needs(name)
    types = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32")
    (found,) = python(f"""
import json
found = []
for dtype in {(*types, "float16", "float32")!r}:
    array, there = source({name!r}, dtype)
    back = core.convert(there, "numpy")
    found.append([dtype, core.detect(there), bool((back == array).all()),
                  back.ctypes.data == array.ctypes.data])
print(json.dumps(found))""")
    for dtype, detected, equal, same in found:
        assert (dtype, detected, equal, same) == (dtype, name, True, True)


REFUSED = (
    ("jax", "np.zeros((2, 2), 'f8')", "float64 without narrowing it to f"),
    ("jax", "np.zeros((2, 2), 'u8')", "uint64 without narrowing it to uint32"),
    ("torch", "np.zeros(2, 'M8[s]')", "datetime64"),
    ("torch", "[1, 2]", "list is no array"),
    ("pyclesperanto", "np.zeros((2, 2), 'f4')", "not the host's"),
)


@pytest.mark.parametrize(("name", "code", "text"), REFUSED)
def test_refusals(
    name: str, code: str, text: str, python: Callable[[str], list[Any]]
) -> None:
    """What cannot be held is refused with both types named."""
    _needs(name)
    (said,) = python(f"""
import json
try:
    core.convert({code}, {name!r})
    print(json.dumps("taken"))
except Exception as error:
    print(json.dumps(str(error)))""")
    assert text in said


COPIED = (
    ("torch", "np.zeros((4, 4), 'u2')[::-1]", "negative"),
    ("torch", "np.broadcast_to(np.float32(1), (3, 3))", "read-only"),
    ("tensorflow", "np.zeros((4, 4), 'u2')[:, ::2]", "gaps"),
    ("jax", "np.zeros(64, 'u1')[1:33]", "aligned"),
)


@pytest.mark.parametrize(("name", "code", "text"), COPIED)
def test_copies_have_a_reason(
    name: str, code: str, text: str, python: Callable[[str], list[Any]]
) -> None:
    """The log says why memory could not be shared; values are the same."""
    _needs(name)
    entry, equal = python(f"""
import json
value = {code}
there = core.convert(value, {name!r})
print(json.dumps(core.conversion_log()[-1]))
print(json.dumps([bool((core.convert(there, "numpy") == value).all())]))""")
    assert entry["mechanism"] == "copied on the host"
    assert text in entry["reason"]
    assert equal == [True]


@pytest.mark.parametrize("name", ON_HOST[1:])
def test_round_trips_leave_nothing(
    name: str, python: Callable[[str], list[Any]]
) -> None:
    """10,000 round trips: same reference counts, flat memory."""
    _needs(name)
    (found,) = python(f"""
import json, resource
array = source({name!r})[0]
def trips(n):
    for _ in range(n):
        core.convert(core.convert(array, {name!r}), "numpy")
trips(500)
count = sys.getrefcount(array)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
trips(10000)
core.clear_caches()
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([sys.getrefcount(array) - count, after - before]))""")
    references, kib = found
    assert references <= 0
    assert kib < 8 << 10


def test_stacks_of_any_mix(python: Callable[[str], list[Any]]) -> None:
    """Slices of four frameworks become one stack of each."""
    _needs(*ON_HOST[1:])
    (found,) = python(f"""
import json
names = {ON_HOST!r}
slices = [source(name)[1][0] for name in names]
found = []
for name in names:
    stack = core.stack(slices, name)
    planes = core.unstack(stack)
    same = all(bool((np.asarray(core.convert(p, "numpy"))
                     == source("numpy")[0][0]).all()) for p in planes)
    found.append([core.detect(stack), len(planes), same])
print(json.dumps(found))""")
    assert found == [[name, 4, True] for name in ON_HOST]


def _pipeline(folder: Path, *steps: tuple[str, str]) -> Path:
    (folder / "steps.py").write_text(STEPS, encoding="utf-8")
    path = folder / "pipeline.json"
    rows = [
        {
            "name": name,
            "function": f"./steps.py:{name}",
            "memory_type": kind,
            "slice_by_slice": False,
        }
        for name, kind in steps
    ]
    text = json.dumps({"plateflow": 1, "steps": rows})
    path.write_text(text, encoding="utf-8")
    return path


def test_pipeline_of_frameworks(
    run: Run, tmp_path: Path, sample_plate: Path
) -> None:
    """Five steps give the pixels that NumPy gives by hand."""
    _needs(*ON_HOST[1:])
    tifffile = pytest.importorskip("tifffile")
    path = _pipeline(
        tmp_path,
        ("halve", "numpy"),
        ("clamp", "torch"),
        ("plus", "jax"),
        ("double", "tensorflow"),
    )
    env = {"PLATEFLOW_PYTHON": PYTHON}
    plan = json.loads(
        run("plan", path, sample_plate, "--json", env=env).stdout
    )
    assert [step["mechanism"] for step in plan["steps"][1:]] == [
        "shared by DLPack",
        "shared by DLPack (copied where it is not aligned as that needs)",
        "shared by DLPack",
    ]
    run("run", path, sample_plate, "--out", tmp_path / "out", env=env)
    report = json.loads((tmp_path / "out" / "run.json").read_text())
    copied = [step["copied"] for step in report["steps"]]
    assert (copied[0], copied[1], copied[3]) == (0, 0, 0)
    if copied[2]:
        assert "not aligned" in json.dumps(report["warnings"])
    sources = {p.name: p for p in sample_plate.rglob("*.tif")}
    written = list((tmp_path / "out" / "images").rglob("*.tif"))
    assert written
    for image in written:
        if image.name in sources:
            pixels = tifffile.imread(sources[image.name])
            by_hand = ((pixels // 2).clip(max=2000) + 5) * 2
            assert (tifffile.imread(image) == by_hand).all(), image.name


FAILURES = (
    ("fails", "torch", "allocate memory"),
    ("wrong", "torch", "where an array of torch is due"),
)


@pytest.mark.parametrize(("step", "kind", "text"), FAILURES)
def test_failures_are_named(
    run: Run,
    tmp_path: Path,
    sample_plate: Path,
    step: str,
    kind: str,
    text: str,
) -> None:
    """A step that runs out of memory, and one that returns another type."""
    _needs(kind)
    path = _pipeline(tmp_path, (step, kind))
    done = run(
        "run",
        path,
        sample_plate,
        "--out",
        tmp_path / "out",
        status=None,
        env={"PLATEFLOW_PYTHON": PYTHON},
    )
    assert done.returncode
    assert text in done.stdout + done.stderr


def test_missing_framework_is_named(run: Run, tmp_path: Path) -> None:
    """Check names what is not installed, with its pip line: exit 3."""
    path = _pipeline(tmp_path, ("halve", "cupy"))
    done = run("check", path, status=3)
    assert "cupy" in done.stderr
