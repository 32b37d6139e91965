"""Code written for arraybridge 0.2 runs with plateflow in its place.

A table of calls and what they give, run once per framework in a process of
its own. Where arraybridge 0.2 is installed (or found on PYTHONPATH) each call
is made there too: what it returns, plateflow returns. Calls that raise there
may work here.
"""

import importlib.util
import json

import pytest
from conftest import Run

FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow", "pyclesperanto", "cupy")

# What the calls are written with; `ab` is the module under test.
PRELUDE = """
import functools, importlib, inspect, json, sys, warnings
import numpy as np
fw = sys.argv[1]

# Arrays by each framework's own means.
def to(a, name=None):
    name = name or fw
    a = np.ascontiguousarray(a)
    if name == "numpy":
        return a.copy()
    module = importlib.import_module(name)
    return {
        "torch": lambda: module.tensor(a),
        "jax": lambda: module.numpy.asarray(a),
        "tensorflow": lambda: module.constant(a),
        "pyclesperanto": lambda: module.push(a),
        "cupy": lambda: module.asarray(a),
    }[name]()

def host(a):
    kind = type(a).__module__.partition(".")[0]
    if kind == "torch":
        return a.numpy()
    if hasattr(a, "get"):
        return a.get()
    return np.asarray(a)

# A GPU number that works without a GPU: arraybridge puts torch's tensors on
# one in any case.
G = None if fw in ("torch", "cupy") else 0
x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
u8 = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
other = "numpy" if fw != "numpy" else "jax"

def minmax(a, dtype):
    scale, offset, top = {
        "uint8": (255, 0, 255), "uint16": (65535, 0, 65535),
        "uint32": (4294967295.0, 0, 4294967040),
        "int16": (65535, 32768, 32639), "int8": (255, 128, 127),
        "int32": (4294967295.0, 2147483648.0, 2147483519),
    }[dtype]
    part = (a - a.min()) / (a.max() - a.min())
    return np.clip(part.astype("f8") * scale - offset, -offset, top
                   ).astype(dtype)

def config(ab, name):
    kind = ab.decorators.PreserveInputDtypeConfig
    return kind(getattr(ab.DtypeConversion, name))

def signature(function):
    return list(inspect.signature(function).parameters)

class Failing:
    def __init__(self, n):
        self.n = n
    def __call__(self, image):
        self.n -= 1
        if self.n >= 0:
            raise MemoryError("Unable to allocate")
        return image

class Raised:
    def __init__(self, error):
        self.kinds = [kind.__name__ for kind in type(error).__mro__]
        self.text = str(error)
    def __repr__(self):
        return f"{self.kinds[0]}: {self.text}"

def is_array(a):
    return hasattr(a, "shape") and hasattr(a, "dtype")

def name_of(dtype):
    return (getattr(dtype, "name", None) or str(dtype)).rpartition(".")[2]

def same(got, want):
    if isinstance(want, Expected):
        return (isinstance(got, Raised) and want.kind in got.kinds
                and all(part in got.text for part in want.parts))
    if isinstance(want, (list, tuple)):
        return (type(got) is type(want) and len(got) == len(want)
                and all(map(same, got, want)))
    if is_array(want):
        if not is_array(got) or name_of(got.dtype) != name_of(want.dtype):
            return False
        got, want = host(got), host(want)
        if got.shape != want.shape:
            return False
        near = abs(got.astype("f8") - want.astype("f8"))
        # Frameworks divide in their own order: the last unit can differ.
        unit = max(abs(want.astype("f8")).max(initial=0) * 2.0**-22, 0)
        whole = np.issubdtype(want.dtype, np.integer)
        return bool((near <= (max(unit, 1) if whole else unit)).all())
    return got == want

class Expected:
    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, parts
    def __repr__(self):
        return f"{self.kind} with {self.parts}"

def outcome(text, ab):
    names = {**globals(), "ab": ab, "dec": getattr(ab, fw)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(text, names)
        except Exception as error:
            return Raised(error)

def load(name):
    module = importlib.import_module(name)
    for part in ("decorators", "utils", "types", "oom_recovery"):
        importlib.import_module(f"{name}.{part}")
    return module
"""

# Each row: the call; what it gives; where that differs from arraybridge, why.
ARRAYS = [
    ("ab.detect_memory_type(to(x))", "fw"),
    ("ab.convert_memory(x, 'numpy', fw, G)", "to(x)"),
    ("ab.convert_memory(x, 'numpy', fw, gpu_id=G)", "to(x)"),
    ("ab.convert_memory(x, 'numpy', fw)", "to(x)"),
    ("ab.convert_memory(data=u8, source_type='numpy', target_type=fw,"
     " gpu_id=G)", "to(u8)"),
    ("ab.convert_memory(to(x), fw, 'numpy', 0)", "x"),
    ("ab.convert_memory(to(x), fw, 'numpy', 7)", "x"),
    ("ab.convert_memory(to(x), fw, fw, G)", "to(x)"),
    ("ab.convert_memory(x, 'numpy', ab.MemoryType(fw), G)", "to(x)"),
    ("ab.convert_memory(x[:, ::2, ::-1], 'numpy', fw, G)",
     "to(x[:, ::2, ::-1])"),
    ("ab.convert_memory(x[0], 'numpy', fw, G)", "to(x[0])"),
    ("type(ab.convert_memory(x, 'numpy', fw, G)) is type(to(x))", "True"),
    ("ab.stack_slices([x[0], x[1], x[2]], fw, G)", "to(x)"),
    ("ab.stack_slices([to(x[0]), to(x[1])], fw, G)", "to(x[:2])"),
    ("ab.stack_slices([x[0], to(x[1]), x[2]], fw, gpu_id=G)", "to(x)"),
    ("ab.stack_slices([to(x[0]), x[1]], 'numpy', 0)", "x[:2]"),
    ("ab.stack_slices(slices=[u8[0]], memory_type=fw)", "to(u8[:1])"),
    ("type(ab.stack_slices([x[0]], fw, G)) is type(to(x))", "True"),
    ("ab.unstack_slices(to(x), fw, G)", "[to(p) for p in x]"),
    ("ab.unstack_slices(to(x), 'numpy', 0)", "list(x)"),
    ("ab.unstack_slices(x, fw, G, validate_slices=False)",
     "[to(p) for p in x]"),
    ("ab.unstack_slices(array=x, memory_type='numpy', gpu_id=0,"
     " validate_slices=True)", "list(x)"),
    ("ab.process_slices(to(x), lambda p: p, [], {})", "to(x)"),
    ("ab.process_slices(to(x), lambda p, k: p * k, [2.0], {})", "to(x * 2)"),
    ("ab.process_slices(to(x), lambda p, k: p * k, [], {'k': 2.0}, gpu_id=G)",
     "to(x * 2)"),
    ("ab.process_slices(to(x), lambda p: (p, 1, 'a'), (), {})",
     "(to(x), [1, 1, 1], ['a', 'a', 'a'])"),
    ("ab.MemoryType(fw).to_numpy(to(x))", "x"),
    ("ab.MemoryType(fw).from_numpy(x)", "to(x)"),
    ("ab.converters.get_converter(fw).to_numpy(to(x), 0)", "x"),
    ("ab.converters.get_converter('numpy').to_torch(x, None).numpy()"
     " if fw == 'torch' else x", "x"),
    ("ab.utils._supports_dlpack(to(x))", "True"),
    ("ab.utils._get_device_id(to(x), fw)",
     "0 if fw in ('cupy', 'pyclesperanto') else None"),
]  # fmt: skip

SCALING = [
    *((f"ab.SCALING_FUNCTIONS[fw](to(x), np.{t})", f"to(minmax(x, '{t}'))")
      for t in ("uint8", "int16", "int32")),
    *((f"ab.SCALING_FUNCTIONS[fw](to(x), np.{t})", f"to(minmax(x, '{t}'))",
       "arraybridge gives float32 but for numpy, and 0 for 2**32")
      for t in ("uint16", "uint32")),
    ("ab.SCALING_FUNCTIONS[fw](to(x), np.int8)", "to(minmax(x, 'int8'))",
     "arraybridge gives 0 and 1"),
    ("ab.SCALING_FUNCTIONS[fw](to(x), np.dtype('uint16'))",
     "to(minmax(x, 'uint16'))",
     "arraybridge gives float32 for torch, jax and tensorflow"),
    ("ab.SCALING_FUNCTIONS[fw](to(u8), np.float32)", "to(x)"),
    ("ab.SCALING_FUNCTIONS[fw](to(x * 0 + 7), np.uint8)",
     "to(u8 * 0 + 7)"),
    ("ab.SCALING_FUNCTIONS[fw]('no array', np.uint8)", "'no array'"),
    ("dec(lambda i: to(x))(to(u8))", "to(minmax(x, 'uint8'))",
     "arraybridge gives float32 for torch, jax and tensorflow"),
    ("dec(lambda i: i)(to(x))", "to(x)"),
    ("dec(lambda i: (to(x), 5))(to(u8))", "(to(minmax(x, 'uint8')), 5)",
     "arraybridge gives float32 for torch, jax and tensorflow"),
    ("dec(lambda i: ())(to(u8))", "()"),
    ("dec(lambda i: 3)(to(u8))", "3"),
    *((f"dec(lambda i: i)(to(x), dtype_config=config(ab, '{t.upper()}'))",
       f"to(minmax(x, '{t}'))")
      for t in ("uint8", "int16", "int32")),
    ("dec(lambda i: i)(to(x), dtype_config=config(ab, 'UINT16'))",
     "to(minmax(x, 'uint16'))", "arraybridge gives float32 but for numpy"),
    ("dec(lambda i: to(x))(to(u8), dtype_config=config(ab, 'NATIVE_OUTPUT'))",
     "to(x)"),
    ("dec(lambda i: i)(to(u8), dtype_config=config(ab, 'FLOAT32'))", "to(x)"),
    ("dec(lambda i, k=1: i * k)(to(x), slice_by_slice=True, k=2.0)",
     "to(x * 2)"),
    ("dec(lambda i: (i, len(i.shape)))(to(x), slice_by_slice=True)",
     "(to(x), [2, 2, 2])"),
    ("dec(lambda i: (i, len(i.shape)))(to(x[0]), slice_by_slice=True)",
     "(to(x[0]), 2)"),
]  # fmt: skip

DECORATORS = [
    ("[dec(lambda i: i).input_memory_type, dec()(lambda i: i)"
     ".output_memory_type]", "[fw, fw]"),
    ("(lambda f: [f.input_memory_type, f.output_memory_type])("
     "dec(input_type='numpy', output_type='jax')(lambda i: i))",
     "['numpy', 'jax']"),
    ("dec(contract=lambda a: True, oom_recovery=False)(lambda i: 5)(to(x))",
     "5"),
    ("dec(contract=lambda a: False)(lambda i: i)(to(x))",
     "Expected('ValueError', '<lambda> violated its output contract')"),
    ("dec(contract='words')(lambda i: i).__processing_contract__",
     "'words'"),
    ("signature(dec(lambda image, k, **more: 0))",
     "['image', 'k', 'slice_by_slice', 'dtype_config', 'more']"),
    ("dec(functools.wraps(json.dumps)(lambda i: i)).__name__", "'dumps'"),
    ("(lambda f: [f.input_memory_type, f.output_memory_type, f(1)])("
     "ab.memory_types('numpy', fw)(lambda i: i + 1))", "['numpy', fw, 2]"),
    ("ab.memory_types('numpy', 'numpy', contract=lambda r: r > 5)("
     "lambda i: i)(1)", "Expected('ValueError', 'output contract')"),
    ("ab.memory_types(input_type='torch', output_type='jax',"
     " contract=3)(lambda i: i).__processing_contract__", "3"),
    ("dec(Failing(2))(x)",
     "x if fw != 'numpy' else Expected('MemoryError', 'Unable')"),
    ("dec(oom_recovery=False)(Failing(1))(x)", "Expected('MemoryError')"),
    ("dec(Failing(3))(x)", "Expected('MemoryError', 'Unable')"),
    ("ab._execute_with_oom_recovery(lambda: 4, fw)", "4"),
    ("ab._execute_with_oom_recovery(functools.partial(Failing(1), 6), fw,"
     " max_retries=1)", "6"),
    ("ab.oom_recovery._is_oom_error(ValueError('no'), fw)", "False"),
    ("ab.oom_recovery._is_oom_error(MemoryError('Unable to allocate'), fw)",
     "True", "arraybridge looks for its own words alone"),
    ("dec.__name__", "fw"),
]  # fmt: skip

ERRORS = [
    ("ab.stack_slices([], fw, G)",
     "Expected('ValueError', 'Cannot stack empty list of slices')"),
    ("ab.stack_slices([x[0], x], fw, G)",
     "Expected('ValueError', 'Slice at index 1 is not a 2D array')"),
    ("ab.stack_slices([x[0], x[1], x[2][1:]], fw, G)",
     "Expected('ValueError', 'Slice at index 2', '(3, 5)', '(4, 5)')",
     "arraybridge raises what the framework does"),
    ("ab.stack_slices([u8[0], x[1]], fw, G)",
     "Expected('ValueError', 'Slice at index 1', 'float32', 'uint8')",
     "arraybridge writes floats into uint8"),
    ("ab.stack_slices([x[0], u8[1]], fw, G)", "to(x[:2])"),
    ("ab.stack_slices([x[0]], fw, -1)",
     "Expected('ValueError', 'Invalid GPU device ID: -1',"
     " 'non-negative') if fw != 'numpy' else x[:1]"),
    ("ab.stack_slices([x[0]], 'nonsense', 0)", "Expected('ValueError')"),
    ("ab.unstack_slices(to(x[0]), fw, G)",
     "Expected('ValueError', 'Array must be 3D, got shape', '4', '5')"),
    ("ab.convert_memory(x, 'numpy', 'nonsense', 0)",
     "Expected('ValueError', \"'nonsense'\", 'Available types')"),
    ("ab.convert_memory(x, 'nonsense', 'numpy', 0)",
     "Expected('ValueError', \"'nonsense'\", 'Available types')"),
    ("ab.convert_memory(to(x), fw, fw, 99)",
     "Expected('MemoryConversionError', 'there is no device', ':99',"
     " 'Source: ' + fw, 'Target: ' + fw) if fw != 'numpy' else x",
     "arraybridge does not look at it"),
    ("ab.convert_memory('text', fw, other, None)",
     "Expected('MemoryConversionError', 'Cannot convert from ' + fw + ' to '"
     " + other, 'Reason: ', 'Source: builtins.str', 'Target: ' + other)",
     "arraybridge raises what it meets"),
    ("ab.convert_memory(x.astype('f8'), 'numpy', 'jax', 0)"
     " if fw == 'jax' else 1",
     "Expected('MemoryConversionError', 'float64', 'float32')"
     " if fw == 'jax' else 1", "arraybridge narrows"),
    ("ab.detect_memory_type([1])",
     "Expected('ValueError', 'Unknown memory type', 'list')"),
    ("str(ab.MemoryConversionError('a', 'b', 'dlpack', 'why'))[:55]",
     "'Cannot convert from a to b using dlpack. Reason: why'"
     " + '. S'", "its message says no Source and Target"),
    ("vars(ab.MemoryConversionError(source_type='a', target_type='b',"
     " method='m', reason='r'))['reason']", "'r'"),
    ("ab.utils._ensure_module('no_such_module')",
     "Expected('ImportError', 'no_such_module', 'not installed')"),
    ("bool(ab.utils.optional_import('no_such_module').a.b)", "False"),
    ("ab.utils.optional_import('no_such_module')()",
     "Expected('ImportError', 'no_such_module')"),
    ("dec(input_type='nonsense')", "Expected('ValueError', 'none of')",
     "arraybridge takes any word"),
]  # fmt: skip

SIGNATURES = {
    "convert_memory": "data source_type target_type gpu_id",
    "detect_memory_type": "data",
    "stack_slices": "slices memory_type gpu_id",
    "unstack_slices": "array memory_type gpu_id validate_slices",
    "process_slices": "image func args kwargs gpu_id",
    "memory_types": "input_type output_type contract",
    "cleanup_all_gpu_frameworks": "device_id",
    "_execute_with_oom_recovery": "func_callable memory_type max_retries",
    "_ensure_module": "module_name",
    "_supports_dlpack": "obj",
    "_get_device_id": "data memory_type",
}
NAMES = {
    "types": "MemoryType CPU_MEMORY_TYPES GPU_MEMORY_TYPES"
    " SUPPORTED_MEMORY_TYPES VALID_MEMORY_TYPES VALID_GPU_MEMORY_TYPES"
    " MEMORY_TYPE_NUMPY MEMORY_TYPE_PYCLESPERANTO ConversionFunc",
    "converters": "convert_memory detect_memory_type",
    "stack_utils": "stack_slices unstack_slices _is_2d _is_3d",
    "decorators": "memory_types DtypeConversion DtypeConversionConfig"
    " PreserveInputDtypeConfig PRESERVE_INPUT_DTYPE_CONFIG"
    " SliceBySliceRuntimeParameter numpy cupy torch tensorflow jax"
    " pyclesperanto",
    "dtype_scaling": "SCALING_FUNCTIONS",
    "slice_processing": "process_slices",
    "oom_recovery": "_execute_with_oom_recovery _is_oom_error"
    " _clear_cache_for_memory_type",
    "exceptions": "MemoryConversionError",
    "utils": "optional_import _ensure_module _supports_dlpack _get_device_id"
    " _supports_cuda_array_interface _set_device _move_to_device",
    "gpu_cleanup": "cleanup_all_gpu_frameworks MEMORY_TYPE_CLEANUP_REGISTRY"
    " cleanup_numpy_gpu cleanup_cupy_gpu cleanup_torch_gpu"
    " cleanup_tensorflow_gpu cleanup_jax_gpu cleanup_pyclesperanto_gpu",
}
ROOT_NAMES = (
    "MemoryType CPU_MEMORY_TYPES GPU_MEMORY_TYPES SUPPORTED_MEMORY_TYPES"
    " convert_memory detect_memory_type memory_types numpy cupy torch"
    " tensorflow jax pyclesperanto DtypeConversion stack_slices"
    " unstack_slices process_slices cleanup_all_gpu_frameworks"
    " MemoryConversionError SCALING_FUNCTIONS _execute_with_oom_recovery"
    " _ensure_module _supports_dlpack _get_device_id"
)

# Reads rows as JSON, prints those that fail as JSON.
RUN = (
    PRELUDE
    + """
importlib.import_module(fw)
pf = load("plateflow")
try:
    live = load("arraybridge")
    live = live if live.__version__.startswith("0.2.") else None
except ImportError:
    live = None
failed = []
for call, expected, *differs in json.loads(sys.argv[2]):
    got = outcome(call, pf)
    want = eval(expected, {**globals(), "ab": pf})
    if not same(got, want):
        failed.append([call, repr(got), repr(want)])
    if live is None or differs:
        continue
    theirs = outcome(call, live)
    if not isinstance(theirs, Raised) and not same(got, theirs):
        failed.append(["arraybridge: " + call, repr(got), repr(theirs)])
    if isinstance(theirs, Raised) and isinstance(want, Expected):
        if want.kind not in theirs.kinds:
            failed.append(["arraybridge: " + call, repr(want), repr(theirs)])
print("ROWS", json.dumps(failed))
"""
)


def is_missing(framework: str) -> str:
    """Say why a framework cannot be tested here, or ''."""
    if importlib.util.find_spec(framework) is None:
        return f"{framework} is not installed"
    if framework == "cupy":
        import cupy

        if not cupy.cuda.is_available():
            return "cupy needs a GPU"
    return ""


def is_refused(run_python: Run, framework: str) -> bool:
    """Tell whether arrays go into the framework here at all."""
    code = (
        "import sys, plateflow\n"
        "plan = plateflow.plan_conversion('numpy', sys.argv[1])\n"
        "print(plan['mechanism'])\n"
    )
    return run_python(code, framework).stdout.split() == ["refused"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    "rows",
    [ARRAYS, SCALING, DECORATORS, ERRORS],
    ids=["arrays", "scaling", "decorators", "errors"],
)
def test_calls(run_python: Run, framework, rows):
    if why := is_missing(framework):
        pytest.skip(why)
    if is_refused(run_python, framework):
        pytest.skip(f"{framework}'s memory is out of reach here")
    done = run_python(
        RUN,
        framework,
        json.dumps(rows),
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": path()},
    )
    (line,) = [s for s in done.stdout.splitlines() if s.startswith("ROWS")]
    failed = json.loads(line[5:])
    assert not failed, "\n".join(
        f"{call}\n    gives  {got}\n    wanted {want}"
        for call, got, want in failed
    )


def path() -> str:
    """Return the built package's folder, then what is on PYTHONPATH."""
    import os

    from conftest import BUILD

    own = [str(BUILD / "python"), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(part for part in own if part)


@pytest.mark.numpy
def test_names_and_signatures(run_python: Run):
    run_python(
        "import importlib, inspect, json, sys\n"
        "root, signatures, modules = map(json.loads, sys.argv[1:])\n"
        "import plateflow as arraybridge\n"
        "assert 'numpy' not in sys.modules\n"
        "for name in root.split():\n"
        "    assert hasattr(arraybridge, name), name\n"
        "for name, names in signatures.items():\n"
        "    function = getattr(arraybridge, name)\n"
        "    got = list(inspect.signature(function).parameters)\n"
        "    assert got[:len(names.split())] == names.split(), (name, got)\n"
        "for module, names in modules.items():\n"
        "    found = importlib.import_module('plateflow.' + module)\n"
        "    for name in names.split():\n"
        "        assert hasattr(found, name), (module, name)\n",
        *(json.dumps(part) for part in (ROOT_NAMES, SIGNATURES, NAMES)),
    )


@pytest.mark.numpy
def test_memory_types(run_python: Run):
    run_python("""
import pickle
import plateflow as ab
from plateflow.types import VALID_GPU_MEMORY_TYPES, VALID_MEMORY_TYPES

T = ab.MemoryType
assert [t.value for t in T] == [
    "numpy", "cupy", "torch", "tensorflow", "jax", "pyclesperanto"]
assert ab.CPU_MEMORY_TYPES == {T.NUMPY}
assert ab.SUPPORTED_MEMORY_TYPES == set(T)
assert ab.GPU_MEMORY_TYPES == set(T) - {T.NUMPY}
assert VALID_MEMORY_TYPES == {t.value for t in T}
assert VALID_GPU_MEMORY_TYPES == VALID_MEMORY_TYPES - {"numpy"}
C = ab.DtypeConversion
assert {c.name: c.value for c in C} == {
    "PRESERVE_INPUT": "preserve", "NATIVE_OUTPUT": "native",
    "UINT8": "uint8", "UINT16": "uint16", "INT16": "int16", "INT32": "int32",
    "FLOAT32": "float32", "FLOAT64": "float64"}
import numpy as np
assert C.PRESERVE_INPUT.numpy_dtype is None
assert C.UINT16.numpy_dtype is np.uint16
error = ab.MemoryConversionError("a", "b", "m", "r", source="s", target="t")
again = pickle.loads(pickle.dumps(error))
assert str(again) == str(error) and again.source == "s"
""")


@pytest.mark.numpy
def test_beyond_arraybridge(run_python: Run):
    run_python("""
import threading
import numpy as np
import plateflow as pf
from plateflow.devices import AcceleratorDevice, word

x = np.arange(60, dtype=np.uint16).reshape(3, 4, 5)
for device in (None, "cpu", "host", pf.HOST):
    assert pf.convert_memory(x, "numpy", "numpy", device=device) is x
assert pf.convert_memory(x, "numpy", "numpy", pf.HOST) is x

native = pf.convert_memory(x, "numpy", "native")
assert pf.detect_memory_type(native) == "native"
log = pf.conversion_log()
assert {k: log[-1][k] for k in ("source", "target", "bytes")} == {
    "source": "numpy", "target": "native", "bytes": 120}
plan = pf.plan_conversion(x, "native")
assert set(plan) == {"mechanism", "reason"}
assert plan == pf.plan_conversion("numpy", "native", dtype="uint16", ndim=3)
assert log[-1]["mechanism"] == plan["mechanism"], (log[-1], plan)

n = len(pf.conversion_log())
chain = pf.lazy(x).to("native").to("numpy").to("native")
assert len(pf.conversion_log()) == n and chain.memory_type == "native"
assert chain.get() is chain.get()
assert len(pf.conversion_log()) == n + 1
assert pf.lazy(x).get() is x
assert pf.lazy(x).to("native").plan() == plan

assert word("numpy", 3) is None and word("torch", None) is None
for bad, kind in ((-1, ValueError), (1.5, TypeError), (True, TypeError),
                  (10**6, pf.MemoryConversionError),
                  (AcceleratorDevice(10**6), pf.MemoryConversionError)):
    try:
        word("torch", bad)
    except kind as error:
        assert str(error)
    else:
        raise AssertionError(bad)
try:
    pf.convert_memory(x, "numpy", "numpy", 0, device="cpu")
except TypeError:
    pass
else:
    raise AssertionError

with pf.gpu_context(10**6):
    assert pf.convert_memory(x, "numpy", "numpy") is x
    try:
        pf.stack_slices([x[0]], "cupy")
    except pf.MemoryConversionError as error:
        assert "there is no device gpu:1000000" in str(error)
    else:
        raise AssertionError
    seen = []
    other = threading.Thread(
        target=lambda: seen.append(pf.devices.current.get()))
    other.start()
    other.join()
    assert seen == [None]
assert pf.devices.current.get() is None
pf.cleanup_all_gpu_frameworks()
""")


# What a pipeline takes is the function, not what calling it directly does.
STEP = """
import functools
import plateflow
import numpy as np

calls = []

@plateflow.numpy(contract=lambda r: calls.append(1) or False, resizes=True)
def step(stack, k=1):
    '''Help.'''
    return stack.astype(np.float32) * k

both = plateflow.torch(plateflow.numpy(step))
tagged = plateflow.memory_types("numpy", "jax")(step)
ufunc = plateflow.numpy(np.negative)
"""


@pytest.mark.numpy
def test_engine_takes_the_function_itself(run_python: Run, tmp_path):
    (tmp_path / "own.py").write_text(STEP)
    run_python("""
import numpy as np
from plateflow import _steps

def of(name):
    step = _steps.load("./own.py:" + name, ".")
    return step, _steps.describe(step)

image = np.full((1, 2, 2), 3, np.uint8)
step, about = of("step")
assert step(image, k=2).dtype == np.float32
assert about["input_memory_type"] == "numpy" and about["resizes"]
assert about["help"] == "Help." and about["source_file"].endswith("own.py")
assert _steps.check(step, ["k"], []) == []
(report,) = _steps.check(step, ["slice_by_slice"], [])
assert "no parameter" in report[1]
step, about = of("both")
assert step(image).dtype == np.float32
assert about["input_memory_type"] == "torch" and not about["resizes"]
step, about = of("tagged")
assert (about["input_memory_type"], about["output_memory_type"]) == (
    "numpy", "jax")
step, about = of("ufunc")
assert step(image.astype(np.int8))[0, 0, 0] == -3

module = _steps._load_file("own.py")
assert module.calls == []
try:
    module.step(image)
except ValueError as error:
    assert "step violated its output contract" in str(error)
assert module.calls == [1]
""")
