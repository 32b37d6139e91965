"""The Python package in an interpreter of its own, which it adopts."""

import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD, Run

pytestmark = pytest.mark.numpy

ENV = {
    "PYTHONPATH": str(BUILD / "python"),
    "LD_PRELOAD": os.environ.get("PF_PRELOAD", ""),
    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""),
}


def test_decorators_tag_and_return_the_function(run_python: Run):
    run_python("""
import plateflow as pf

@pf.numpy
def bare(stack): return stack
@pf.torch(output_type="numpy", result="labels", yields="one", resizes=True)
def full(stack): return stack
@pf.cupy()
class Step:
    def __call__(self, stack): return stack

assert bare("x") == "x"
tags = lambda f: (f.input_memory_type, f.output_memory_type, f.__plateflow__)
assert tags(bare) == ("numpy", "numpy", {})
assert tags(full) == ("torch", "numpy", {
    "result": "labels", "yields": "one", "resizes": True})
assert tags(Step) == ("cupy", "cupy", {})
for bad in ({"result": "x"}, {"yields": "x"}, {"input_type": "x"}):
    try:
        pf.jax(**bad)
    except ValueError as error:
        assert "none of" in str(error)
    else:
        raise AssertionError(bad)
for name in ("numpy", "cupy", "torch", "tensorflow", "jax", "pyclesperanto"):
    assert getattr(pf, name).__name__ == name
""")


def test_array_shares_its_memory(run_python: Run):
    run_python("""
import sys
import numpy as np
from plateflow._core import Array

for dtype in ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32",
              "uint64", "int64", "float16", "float32", "float64"):
    a = Array((2, 3, 4), dtype)
    views = {
        "buffer": np.asarray(memoryview(a)),
        "interface": np.asarray(type("I", (), {
            "__array_interface__": a.__array_interface__, "keep": a})()),
        "dlpack": np.from_dlpack(a),
        "asarray": np.asarray(a),
    }
    for how, view in views.items():
        assert view.dtype == dtype, (how, view.dtype)
        assert view.shape == a.shape == (2, 3, 4)
        assert view.strides == a.strides
        assert view.ctypes.data == a.address, how
        assert view.flags.writeable, how
    views["buffer"][1, 2, 3] = 1
    assert all(v[1, 2, 3] == 1 for v in views.values())
    assert a.address % 64 == 0 and a.nbytes == views["dlpack"].nbytes

before = sys.getrefcount(a)
view = np.asarray(a)
assert sys.getrefcount(a) > before
del view, views
assert sys.getrefcount(a) < before

r = Array((4, 4), "uint8", read_only=True)
assert not np.asarray(r).flags.writeable
assert not np.from_dlpack(r).flags.writeable
assert memoryview(r).readonly
for bad in (lambda: r.__dlpack__(), lambda: r.__dlpack__(stream=1),
            lambda: r.__dlpack__(max_version=(1, 0), dl_device=(2, 0))):
    try:
        bad()
    except BufferError:
        pass
    else:
        raise AssertionError
assert r.__dlpack_device__() == (1, 0)
copy = np.from_dlpack(r, copy=True)
assert copy.ctypes.data != r.address and copy.flags.writeable
assert "dltensor_versioned" in repr(r.__dlpack__(max_version=(1, 1)))
assert '"dltensor"' in repr(a.__dlpack__())
assert '"dltensor"' in repr(a.__dlpack__(max_version=(0, 8)))

b = Array((2,), "bfloat16")
for bad in (lambda: memoryview(b), lambda: b.__array_interface__):
    try:
        bad()
    except (BufferError, AttributeError) as error:
        assert "float32" in str(error)
    else:
        raise AssertionError
assert np.asarray(Array((0, 5), "uint8")).shape == (0, 5)
assert np.asarray(Array((), "uint8")).shape == ()
for shape, dtype in (((-1,), "uint8"), ((2,), "complex"), ((1,) * 9, "uint8"),
                     ((2**62, 4), "uint16")):
    try:
        Array(shape, dtype)
    except (ValueError, RuntimeError):
        pass
    else:
        raise AssertionError(shape)
""")


def test_memory_outlives_its_object(run_python: Run):
    run_python("""
import gc
import numpy as np
from plateflow._core import Array

views = [np.from_dlpack(Array((1 << 20,), "uint8")) for _ in range(4)]
for i, view in enumerate(views):
    view[:] = i
gc.collect()
assert [int(v.sum()) >> 20 for v in views] == [0, 1, 2, 3]
capsules = [Array((8,), "uint8").__dlpack__() for _ in range(3)]
del capsules
gc.collect()
""")


def test_core_is_adopted(run_python: Run):
    done = run_python("""
import signal, sys
import plateflow
from plateflow import _core
assert _core.program_address() is None
assert _core.core_address() > 0
assert plateflow.__version__ == _core.__version__
handler = signal.getsignal(signal.SIGINT)
status, text = _core.main(["plateflow", "--version"])
assert status == 0 and plateflow.__version__ in text
assert signal.getsignal(signal.SIGINT) is handler
assert "numpy" not in sys.modules
print("mine")
""")
    assert done.stdout == "mine\n"
    assert done.stderr == ""


RUN = """
import json, os, sys
import plateflow
plate, pipeline, out = sys.argv[1:]
print("before")
summary = plateflow.run(pipeline, plate, out, workers=2,
                        only={"well": ["A01", "A02"]})
assert summary.status == 0, summary.message
assert summary == json.load(open(os.path.join(out, "run.json")))
assert os.listdir(os.path.join(out, "images"))
again = plateflow.run(pipeline, plate, out, fresh=True)
assert again.status == 0
for bad in ((pipeline, plate + "/none", out), ("none.json", plate, out),
            (pipeline, plate, out)):
    try:
        plateflow.run(*bad)
    except plateflow.PlateflowError as error:
        assert error.status == 2 and str(error), error
    else:
        raise AssertionError(bad)
try:
    plateflow.run(pipeline, plate, out, no_such_option=1)
except plateflow.PlateflowError as error:
    assert "no-such-option" in str(error)
print("after")
"""


@pytest.fixture
def plate(tmp_path):
    import numpy as np
    import tifffile

    folder = tmp_path / "plate"
    folder.mkdir()
    for well in ("A01", "A02", "A03"):
        image = np.full((8, 8), 5, np.uint16)
        tifffile.imwrite(folder / f"{well}_s1_w1.tif", image)
    return folder


def write_pipeline(tmp_path, source):
    (tmp_path / "steps.py").write_text(source)
    step = {"name": "s", "function": "./steps.py:step"}
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps({"plateflow": 1, "name": "t", "steps": [step]}))
    return path


def test_run(run_python: Run, tmp_path, plate):
    path = write_pipeline(
        tmp_path,
        "import plateflow\n"
        "@plateflow.numpy\n"
        "def step(stack): return stack + 1\n",
    )
    done = run_python(RUN, plate, path, tmp_path / "out")
    assert done.stdout == "before\nafter\n"
    assert done.stderr == ""


def test_run_with_failures_returns(run_python: Run, tmp_path, plate):
    path = write_pipeline(
        tmp_path,
        "import plateflow\n"
        "@plateflow.numpy\n"
        "def step(stack, info):\n"
        "    if info.components['well'] == 'A03': raise ValueError('no')\n"
        "    return stack\n",
    )
    run_python(
        "import sys, plateflow\n"
        "s = plateflow.run(sys.argv[1], sys.argv[2], sys.argv[3])\n"
        "assert s.status == 4, s.message\n"
        "assert 'ValueError: no' in s.message\n",
        path,
        plate,
        tmp_path / "out",
    )


def test_run_is_interrupted_by_ctrl_c(run_python: Run, tmp_path, plate):
    path = write_pipeline(
        tmp_path,
        "import os, signal, time, plateflow\n"
        "@plateflow.numpy\n"
        "def step(stack, info):\n"
        "    if info.components['well'] == 'A02':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(2)\n"
        "    return stack\n",
    )
    run_python(
        "import sys, plateflow\n"
        "try:\n"
        "    plateflow.run(sys.argv[1], sys.argv[2], sys.argv[3], workers=1)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "else:\n"
        "    raise AssertionError\n",
        path,
        plate,
        tmp_path / "out",
    )
    assert (tmp_path / "out" / "images" / "A02_s1_w1.tif").is_file()
    assert not (tmp_path / "out" / "images" / "A03_s1_w1.tif").exists()


def test_module_is_the_command_line(run: Run, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "plateflow", "--version"],
        env=ENV,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("plateflow ")


def test_describe_looks_at_user_code(tmp_path):
    (tmp_path / "steps.py").write_text(
        "import plateflow\n"
        "print('noise')\n"
        "@plateflow.numpy(result='labels')\n"
        "def segment(stack, sigma: float = 1.0, *, info):\n"
        "    '''Find nuclei.\n\n    More.'''\n"
        "class Mean:\n"
        "    def add(self, stack): ...\n"
        "    def finish(self): ...\n"
    )
    request = {
        "base_dir": str(tmp_path),
        "functions": [
            {"function": "./steps.py:segment", "parameters": ["sigm"]},
            {"function": "./steps.py:Mean"},
            {"function": "./steps.py:none"},
        ],
        "entry_points": True,
    }
    done = subprocess.run(
        [sys.executable, "-m", "plateflow._describe"],
        env=ENV,
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answer = json.loads(done.stdout)
    segment, mean, none = answer["functions"]
    assert segment["signature"] == "(stack, sigma: float = 1.0, *, info)"
    assert segment["help"] == "Find nuclei."
    assert segment["result"] == "labels"
    assert segment["input_memory_type"] == "numpy"
    assert segment["takes_info"] and segment["is_decorated"]
    assert segment["source_file"] == str(tmp_path / "steps.py")
    (report,) = segment["reports"]
    assert report["parameter"] == "sigm"
    assert mean["is_class"] and mean["is_reduction"]
    assert not mean["is_decorated"] and mean["input_memory_type"] is None
    assert none["error"]["code"] == "EINVAL"
    assert isinstance(answer["entry_points"], list)
    assert answer["versions"]["packages"]["plateflow"]
    assert "noise" in done.stderr
