"""Steps on OpenCL devices: the host's pixels, and how stacks get there."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run
from plates import Out, below, native

Json = Any
SETS = ["imagexpress_exported", "zstack_multipage"]


def blur(name: str, sigma: float, **keys: Json) -> Json:
    """One Gaussian blur, on a device unless told otherwise."""
    keys = {"memory_type": "opencl", **keys}
    return native(name, "gaussian", parameters={"sigma": sigma}, **keys)


def write(folder: Path, *steps: Json) -> Path:
    """A pipeline file of these steps."""
    folder.mkdir(exist_ok=True)
    path = folder / "p.json"
    path.write_text(json.dumps({"plateflow": 1, "steps": steps}))
    return path


def run_steps(run: Run, folder: Path, plate: Path, *steps: Json) -> Out:
    """Run these steps into folder/out."""
    done = run("run", write(folder, *steps), plate, "-o", folder / "out")
    return Out(folder / "out", done)


def notes(out: Out) -> dict[str, set[str | None]]:
    """What the journal says about the way of each step's stacks."""
    found: dict[str, set[str | None]] = {}
    with sqlite3.connect(out.folder / "run.sqlite") as journal:
        names = [
            name
            for (name,) in journal.execute(
                "SELECT name FROM steps ORDER BY id"
            )
        ]
        for step, note in journal.execute("SELECT step, note FROM tasks"):
            found.setdefault(names[step], set()).add(note)
    return found


@pytest.fixture
def opencl(run: Run, tmp_path: Path) -> None:
    """Skip where there is no OpenCL device."""
    path = write(tmp_path / "probe", blur("a", 1))
    done = run("check", path, status=None)
    if done.returncode == 3:
        pytest.skip(f"no OpenCL device: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr


def same(a: Out, b: Out) -> None:
    """Two runs left the same images, to the bit or nearly."""
    assert a.names == b.names and a.names
    for name in a.names:
        x, y = a.image(name).astype("i8"), b.image(name).astype("i8")
        assert a.image(name).dtype == b.image(name).dtype
        assert np.abs(x - y).max() <= 1
        assert (x != y).mean() <= 0.001


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("plate", SETS)
def test_same_pixels(run: Run, tmp_path: Path, data: Path, plate: str) -> None:
    """C, then two blurs on the device, then C again, equals C alone."""
    first, last = native("in", "identity"), native("out", "identity")
    on_device = run_steps(
        run,
        tmp_path / "a",
        data / plate,
        first,
        blur("wide", 3.3),
        blur("narrow", 0.7),
        last,
    )
    on_host = run_steps(
        run,
        tmp_path / "b",
        data / plate,
        first,
        blur("wide", 3.3, memory_type="native"),
        blur("narrow", 0.7, memory_type="native"),
        last,
    )
    same(on_device, on_host)
    assert notes(on_device) == {
        "in": {None},
        "wide": {"shared with the device"},
        "narrow": {"shared with the host"},
        "out": {None},
    }


@pytest.mark.usefixtures("opencl")
def test_plan_says_the_way(run: Run, tmp_path: Path, data: Path) -> None:
    """A stack stays on the device between steps that are both there."""
    path = write(
        tmp_path / "a",
        blur("a", 1),
        blur("b", 2, device="opencl:0", save=True),
        blur("c", 1, device="cpu"),
        native("d", "identity"),
    )
    plan = json.loads(run("plan", path, data / SETS[0], "--json").stdout)
    ways = [step["mechanism"] for step in plan["steps"]]
    assert "with opencl:" in ways[0] or "to opencl:" in ways[0]
    assert ways[1].startswith("stays on opencl:")
    assert "from opencl:" in ways[2]  # b is saved: its stack was on the host
    assert "from opencl:" in ways[3]


@pytest.mark.usefixtures("opencl")
def test_many_consumers(run: Run, tmp_path: Path, data: Path) -> None:
    """One result for a step on the device, one in C and one that is saved."""
    shared = [
        native("host", "identity", input="a", save=True),
        native("last", "identity", input="device"),
    ]
    outs = [
        run_steps(
            run,
            tmp_path / memory,
            data / SETS[0],
            blur("a", 1.2, memory_type=memory, input_dtype="float32"),
            blur("device", 2, memory_type=memory, where={"channel": ["1"]}),
            *shared,
        )
        for memory in ("opencl", "native")
    ]
    same(*outs)
    for name in below(outs[0].folder / "steps/host"):
        x, y = (out.image(name, "steps/host").astype("i8") for out in outs)
        assert np.abs(x - y).max() <= 1


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"device": "opencl:99"}, "there is no device opencl:99"),
        ({"device": "opencl:9999"}, "there is no device opencl:9999"),
    ],
)
def test_no_such_device(
    run: Run, tmp_path: Path, data: Path, keys: Json, words: str
) -> None:
    """A device that was asked for and is not there is exit 3."""
    path = write(tmp_path / "a", blur("a", 1, **keys))
    for command in (["check", path], ["plan", path, data / SETS[0]]):
        done = run(*command, status=3)
        assert 'step "a"' in done.stderr and words in done.stderr


def test_steps_says_so(run: Run) -> None:
    """`plateflow steps` names the other memory types of a step."""
    said = json.loads(run("steps", "native:gaussian", "--json").stdout)
    said = said[0] if isinstance(said, list) else said
    assert said["twins"] == ["opencl"]
    text = run("steps", "native:gaussian").stdout
    assert 'also with "memory_type": "opencl"' in text


def test_no_opencl(run: Run, tmp_path: Path, data: Path) -> None:
    """Without any device the message says what to install; C runs on."""
    nothing = {"OCL_ICD_VENDORS": str(tmp_path), "OPENCL_VENDOR_PATH": "/none"}
    path = write(tmp_path / "a", blur("a", 1))
    done = run(
        "run",
        path,
        data / SETS[0],
        "-o",
        tmp_path / "o",
        status=3,
        env=nothing,
    )
    assert "pocl-opencl-icd" in done.stderr or "libOpenCL" in done.stderr
    assert not (tmp_path / "o").exists()
    path = write(tmp_path / "b", blur("a", 1, memory_type="native"))
    run("check", path, env=nothing)


@pytest.mark.usefixtures("opencl")
def test_out_of_memory(run: Run, tmp_path: Path, data: Path) -> None:
    """A limit of the device fails groups, with the bytes in the message."""
    path = write(tmp_path / "a", blur("a", 1))
    done = run(
        "run",
        path,
        data / SETS[0],
        "-o",
        tmp_path / "o",
        status=None,
        env={"PLATEFLOW_DEVICE_LIMIT": "1KiB"},
    )
    assert done.returncode == 2  # the first group shows it
    assert "out of memory on opencl:" in done.stdout + done.stderr
