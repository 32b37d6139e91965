"""Python steps: what they get, what they may return, what becomes of it."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from conftest import BUILD, PROGRAM, Run

pytestmark = pytest.mark.numpy

TOOL = BUILD / "tool_py_call"
Call = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Call a step of the given source as the engine does, by the tool."""

    def run_tool(
        source: str, name: str, *words: str, err: bool = False
    ) -> list[dict[str, Any]]:
        (tmp_path / "own.py").write_text("import numpy as np\n" + source)
        done = subprocess.run(
            [
                str(TOOL),
                str(tmp_path),
                f"./own.py:{name}",
                f"python={sys.executable}",
                *words,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [*lines, {"stderr": done.stderr}] if err else lines

    return run_tool


# ------------------------------------------------------------- ownership

OWNERSHIP = """
def same(stack): return stack
def copy(stack): return stack.copy()
def write(stack): stack[0, 0, 0] = 7; return stack
def view(stack): return stack[1:]
def as_signed(stack): return stack.view(np.int16)

buffer, count = np.zeros((3, 4, 5), np.uint16), 0
def module_buffer(stack):
    global count
    count += 1
    buffer[:] = count
    return buffer
def view_of_module_buffer(stack): return module_buffer(stack)[:]

kept = []
def keep_input(stack): kept.append(stack); return stack.copy()
def keep_and_return(stack): kept.append(stack); return stack
def keep_view_and_return(stack): kept.append(stack[0]); return stack
def keep_result(stack): r = stack.copy(); kept.append(r); return r
def keep_view_of_result(stack): r = stack.copy(); kept.append(r[0]); return r
def keep_memory(stack): kept.append(memoryview(stack)); return stack
def keep_dlpack(stack): kept.append(np.from_dlpack(stack)); return stack
def keep_dlpack_of_base(stack):
    kept.append(np.from_dlpack(stack.base))
    return stack
def keep_base(stack): kept.append(stack.base); return stack
def keep_tuple(stack): t = (stack,); kept.append(t); return t

def frombuffer(stack):
    return np.frombuffer(bytearray(120), np.uint16).reshape(3, 4, 5)
def memory(stack): return np.asarray(memoryview(stack))
def with_array(stack, other): return other
"""

KEPT = "the function keeps a reference to it"
FOREIGN = "its memory belongs to another object"
OF_INPUT = "it shares memory with the step's input"


@pytest.mark.parametrize(
    ("name", "words", "same_address", "copied"),
    [
        ("same", [], True, ""),
        ("write", [], True, ""),
        ("as_signed", [], True, ""),
        ("view", [], False, ""),  # further on in the same memory
        ("copy", [], False, ""),
        ("same", ["writable=0"], False, OF_INPUT),
        ("view", ["writable=0"], False, OF_INPUT),
        ("module_buffer", [], False, KEPT),
        ("view_of_module_buffer", [], False, KEPT),
        ("keep_input", [], False, ""),
        ("keep_and_return", [], False, KEPT),
        ("keep_view_and_return", [], False, KEPT),
        ("keep_result", [], False, KEPT),
        ("keep_view_of_result", [], False, KEPT),
        ("keep_memory", [], False, KEPT),
        ("keep_dlpack", [], False, KEPT),
        ("keep_dlpack_of_base", [], False, KEPT),
        ("keep_base", [], False, KEPT),
        ("keep_tuple", [], False, KEPT),
        ("frombuffer", [], False, FOREIGN),
        ("memory", [], False, FOREIGN),
        ("with_array", ["with=other"], False, OF_INPUT),
    ],
)
def test_ownership(call, name, words, same_address, copied):
    (one,) = call(OWNERSHIP, name, *words)
    assert one["code"] == "PF_OK", one["message"]
    assert one["copied"] == copied
    assert (one["address"] == one["input"]) == same_address
    assert one["writable"] == 1, "the engine has the result alone"
    if name == "view" and not copied:
        assert one["address"] == one["input"] + 40


def test_module_buffer_eight_times(call):
    lines = call(OWNERSHIP, "module_buffer", "n=8")
    assert [line["bytes"][0] for line in lines] == list(range(1, 9))
    assert len({line["address"] for line in lines}) == 8


def test_kept_input_is_not_written_again(call):
    """What a function keeps of its input stays as it was."""
    source = OWNERSHIP + (
        "def check(stack):\n"
        "    assert all((k == kept[0]).all() for k in kept)\n"
        "    kept.append(stack)\n"
        "    return stack.copy()\n"
    )
    lines = call(source, "check", "n=8")
    assert [line["code"] for line in lines] == ["PF_OK"] * 8
    assert not any(line["input_is_free"] for line in lines)


def test_input_is_free_after_an_error(call):
    """An exception holds frames, whose locals hold stacks."""
    source = (
        "def fail(stack):\n"
        "    copy = stack[1:]\n"
        "    try:\n"
        "        raise KeyError('inner')\n"
        "    except KeyError as error:\n"
        "        cycle = error  # its traceback holds this frame\n"
        "    raise ValueError('outer') from cycle\n"
    )
    (one,) = call(source, "fail")
    assert one["message"] == "ValueError: outer"
    assert one["input_is_free"] == 1


def test_input_is_read_only_when_shared(call):
    source = "def write(stack): stack[0] = 0; return stack\n"
    (one,) = call(source, "write", "writable=0")
    assert one["message"].startswith("ValueError: assignment destination")


# ------------------------------------------------------- kinds of results

KINDS = """
def flip(stack): return stack[::-1]
def step2(stack): return stack[:, ::2]
def fortran(stack): return np.asfortranarray(stack)
def swapped(stack): return stack.astype(">u2")
def unaligned(stack):
    raw = np.zeros(121, np.uint8)
    view = raw[1:].view(np.uint16).reshape(3, 4, 5)
    view[:] = stack
    return view
def field(stack):
    pairs = np.zeros((3, 4, 5), [("a", "u1"), ("b", "<u2")])
    pairs["b"] = stack
    return pairs["b"]
def broadcast(stack): return np.broadcast_to(stack[0], (3, 4, 5))
def zero_d(stack): return np.array(1.0)
def empty(stack): return stack[:0]
def boolean(stack): return stack > 3
def half(stack): return stack.astype(np.float16)

def scalar(stack): return stack.max()
def nothing(stack): return None
def a_list(stack): return [stack]
def text(stack): return "x"
def objects(stack): return stack.astype(object)
def complexes(stack): return stack.astype(complex)
def records(stack): return np.zeros((3, 4, 5), [("a", "u2")])
def dates(stack): return stack.astype("M8[s]")
def letters(stack): return stack.astype("U3")
def long_double(stack): return stack.astype(np.longdouble)
def masked(stack): return np.ma.masked_less(stack, 3)
def nine_axes(stack): return np.zeros((1,) * 9)
def pair(stack): return stack, {"n": 1}
"""

INPUT = np.arange(120, dtype=np.uint8).view("<u2").reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("flip", INPUT[::-1]),
        ("step2", INPUT[:, ::2]),
        ("fortran", INPUT),
        ("swapped", INPUT),
        ("unaligned", INPUT),
        ("field", INPUT),
        ("broadcast", np.broadcast_to(INPUT[0], (3, 4, 5))),
        ("zero_d", np.array(1.0)),
        ("empty", INPUT[:0]),
        ("boolean", INPUT > 3),
        ("half", INPUT.astype(np.float16)),
    ],
)
def test_results_keep_their_values(call, name, due):
    (one,) = call(KINDS, name)
    assert one["code"] == "PF_OK", one["message"]
    assert one["dtype"] == str(due.dtype)
    assert one["shape"] == list(due.shape)
    assert one["bytes"] == list(due.tobytes()[:64])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scalar", "an object of type numpy.uint16 where a numpy.ndarray"),
        ("nothing", "returned None where"),
        ("a_list", "an object of type list"),
        ("text", "an object of type str"),
        ("objects", "an array of object"),
        ("complexes", "an array of complex128"),
        ("records", "an array of [('a', '<u2')]"),
        ("dates", "an array of datetime64[s]"),
        ("letters", "an array of <U3"),
        ("long_double", "an array of float128"),
        ("masked", "masked array"),
        ("nine_axes", "9 dimensions"),
        ("pair", "a tuple of 2 where a stack and 0 tables are due"),
    ],
)
def test_results_refused_by_name(call, name, message):
    (one,) = call(KINDS, name)
    assert one["code"] == "PF_ESTEP"
    assert message in one["message"]


# ---------------------------------------------------------------- tables

TABLES = """
class Frame:
    columns = ["a", "b"]
    def to_dict(self): return {}
    def __getitem__(self, name):
        return {"a": np.array([1, 2]), "b": np.array([0.5, np.nan])}[name]
class NAType: pass
def table(stack): return TABLE
"""

INT, REAL, BOOL, TEXT = "integer", "real", "boolean", "text"


@pytest.mark.parametrize(
    ("value", "columns", "rows"),
    [
        (
            "[{'a': 1, 'b': 'x'}, {'b': 'y', 'c': 2.5}]",
            [["a", INT], ["b", TEXT], ["c", REAL]],
            [[1, "x", None], [None, "y", 2.5]],
        ),
        (
            "{'a': [1, 2], 'b': np.array([True, False])}",
            [["a", INT], ["b", BOOL]],
            [[1, 1], [2, 0]],
        ),
        (
            "{'n': 5, 'mean': np.float32(0.5)}",
            [["n", INT], ["mean", REAL]],
            [[5, 0.5]],
        ),
        ("[{'a': 1}, {'a': 2.5}]", [["a", REAL]], [[1], [2.5]]),
        ("[{'a': 1}, {'a': float('nan')}]", [["a", INT]], [[1], [None]]),
        ("[{'a': None}]", [["a", REAL]], [[None]]),
        ("[{'a': NAType()}, {'a': 3}]", [["a", INT]], [[None], [3]]),
        ("[{'a': True}, {'a': 2}]", [["a", INT]], [[1], [2]]),
        ("[{1: np.int8(-3)}]", [["1", INT]], [[-3]]),
        ("[{'a': np.str_('x')}]", [["a", TEXT]], [["x"]]),
        ("[{'a': np.array(4)}]", [["a", INT]], [[4]]),
        (
            "np.array([(1, 2.5)], [('i', 'u2'), ('f', 'f4')])",
            [["i", INT], ["f", REAL]],
            [[1, 2.5]],
        ),
        ("Frame()", [["a", INT], ["b", REAL]], [[1, 0.5], [2, None]]),
        ("{'a': (1, 2), 'b': range(2)}", [["a", INT], ["b", INT]], None),
        ("[]", [], []),
        ("{}", [], []),
        ("{'a': []}", [["a", REAL]], []),
        ("[{'a': -2**63}]", [["a", INT]], [[-(2**63)]]),
    ],
)
def test_tables(call, value, columns, rows):
    source = TABLES.replace("TABLE", value)
    (one,) = call(source, "table", "result=none", "tables=1")
    assert one["code"] == "PF_OK", one["message"]
    (table,) = one["tables"]
    assert table["columns"] == columns
    if rows is not None:
        assert table["rows"] == rows


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[{'a': 1}, 5]", "row 1 of the table is of type int"),
        ("[{'a': 1}, {'a': 'x'}]", 'column "a" holds text and numbers'),
        ("[{'a': 2**63}]", 'column "a", row 0: the integer is beyond'),
        ("[{'a': 'x\\0y'}]", 'column "a", row 0: the text is not'),
        ("[{'a': '\\ud800'}]", 'column "a", row 0: the text is not'),
        ("[{'a': [1]}]", "cannot hold a value of type list"),
        ("[{'a': 1j}]", "cannot hold a value of type complex"),
        ("[{'': 1}]", "has no name"),
        ("{1: [2], '1': [3]}", 'two columns of the table are called "1"'),
        ("{'a': [1], 'b': [1, 2]}", '"a" of the table has 1 rows and "b"'),
        ("{'a': 1, 'b': [1, 2]}", 'column "a" of the table is a single'),
        ("5", "an object of type int where a table is due"),
        ("None", "an object of type NoneType where a table is due"),
        ("({'a': 1}, {'a': 2})", "a tuple of 2 where 1 table is due"),
    ],
)
def test_tables_refused(call, value, message):
    source = TABLES.replace("TABLE", value)
    (one,) = call(source, "table", "result=none", "tables=1")
    assert one["code"] == "PF_ESTEP"
    assert message in one["message"]


@pytest.mark.parametrize(
    ("value", "result", "n", "n_due"),
    [
        ("(stack, {'n': 1})", "image", 1, 1),
        ("(stack, {'n': 1}, [{'m': 2}])", "labels", 2, 2),
        ("({'n': 1}, {'m': 1})", "none", 2, 2),
        ("({'n': 1},)", "none", 1, 1),
        ("(None, {'n': 1})", "none", 1, 1),
        ("None", "none", 0, 0),
        ("()", "none", 0, 0),
        ("(stack,)", "image", 0, 0),
        ("stack", "image", 1, None),
        ("{'n': 1}", "none", 0, None),
        ("stack", "none", 0, None),
        ("(stack, {'n': 1})", "image", 2, None),
    ],
)
def test_what_is_returned(call, value, result, n, n_due):
    source = f"def step(stack): return {value}\n"
    (one,) = call(source, "step", f"result={result}", f"tables={n}")
    if n_due is None:
        assert one["code"] == "PF_ESTEP"
        assert "the function returned" in one["message"]
    else:
        assert one["code"] == "PF_OK", one["message"]
        assert len(one["tables"]) == n_due
        assert ("dtype" in one) == (result != "none")


# ------------------------------------------------------------------ info

INFO = """
late = []
def step(stack, info):
    s, = info.slices
    late.append(info)
    if len(late) > 1:
        assert late[0].components["well"] == "A01"
        assert late[0].slices[0].path == "/plate/A01.tif"
        for use in (late[0].log, lambda x: late[0].write(x, b"")):
            try:
                use("late")
            except RuntimeError as error:
                assert "is over" in str(error)
            else:
                raise AssertionError
    info.log(f"{info.components} {info.step} {info.group} {info.device} "
             f"{info.stream} {info.seed}")
    info.log(f"{s.channel} {s.pixel_size_um} {s.z_step_um} {s.position_um} "
             f"{s.time_s} {s.path} {s.page} {s.components}")
    info.write("a.txt", b"bytes")
    info.write("b/c", b"") if len(late) > 1 else None
    return stack
"""


def test_info(call):
    first, second, last = call(INFO, "step", "n=2", err=True)
    assert first["code"] == "PF_OK", first["message"] + first["detail"]
    assert second["message"].startswith("PlateflowError: no folders here")
    lines = last["stderr"].splitlines()
    assert lines[:3] == [
        "log: {'well': 'A01', 'site': '2'} smooth well A01 cpu None "
        f"{2**64 - 1}",
        "log: DNA (0.5, 0.25) 2.0 (1.0, 2.0, 3.0) None /plate/A01.tif 2 "
        "{'well': 'A01', 'channel': 'DNA', 'z': '1'}",
        "write: a.txt bytes",
    ]


def test_print_goes_to_the_group(call):
    source = (
        "import sys\n"
        "def step(stack):\n"
        "    print('one', end=' '); print('two\\nthree')\n"
        "    sys.stderr.write('no end')\n"
        "    return stack\n"
    )
    one, last = call(source, "step", err=True)
    assert one["code"] == "PF_OK"
    assert last["stderr"].splitlines() == [
        "log: one two",
        "log: three",
        "log: no end",
    ]


# ------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    ("signature", "params", "words", "reports"),
    [
        ("stack, sigma=1.0", '{"sigma": 2}', [], []),
        (
            "stack, sigma=1.0",
            '{"sgma": 2}',
            [],
            [("sgma", 'no parameter \\"sgma\\"; did you mean \\"sigma\\"?')],
        ),
        ("stack", '{"x": 1}', [], [("x", "it has none")]),
        ("stack, sigma", "{}", [], [("", '\\"sigma\\" is missing')]),
        ("stack, *, sigma", "{}", [], [("", '\\"sigma\\" is missing')]),
        ("stack, info", "{}", [], []),
        ("stack, info", '{"info": 1}', [], [("info", "reserved")]),
        ("stack", '{"stack": 1}', [], [("stack", "the stack itself")]),
        ("stack, **more", '{"anything": 1}', [], []),
        ("stack, /, sigma=1", '{"sigma": 1}', [], []),
        ("*args", "{}", [], []),
        ("", "{}", [], [("", "no parameter for the stack")]),
        ("stack, mask", "{}", ["with=mask"], []),
        ("stack, mask", "{}", ["with=msk"], [("", "msk"), ("", "missing")]),
        (
            "stack, mask",
            '{"mask": 1}',
            ["with=mask"],
            [("mask", 'by \\"with\\" and by')],
        ),
    ],
)
def test_parameters_are_checked(
    call, tmp_path, signature, params, words, reports
):
    source = f"def step({signature}): return stack\n"
    (tmp_path / "own.py").write_text(source)
    done = subprocess.run(
        [
            str(TOOL),
            str(tmp_path),
            "./own.py:step",
            f"python={sys.executable}",
            f"params={params}",
            *words,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = [x for x in done.stdout.splitlines() if '"reported"' in x]
    assert len(lines) == len(reports), done.stdout
    for line, (key, text) in zip(lines, reports, strict=True):
        assert text.replace('\\"', '"') in line
        assert line.endswith(f'"key": "{key}"' + "}")


def test_parameters_keep_their_types(call):
    source = (
        "def step(stack, **p):\n"
        "    assert [type(x) for x in p.values()] == "
        "[int, float, bool, str, type(None), list, dict]\n"
        "    assert p['c'] == [1, 2.0], p\n"
        "    p['c'].append(3)\n"
        "    p['d'].clear()\n"
        "    return stack\n"
    )
    params = (
        'params={"i": 3, "r": 3.0, "b": true, "s": "x", "n": null, '
        '"c": [1, 2.0], "d": {"k": 1}}'
    )
    lines = call(source, "step", params, "n=3")
    assert [line["detail"] for line in lines] == [""] * 3


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        (
            "./own.py:stp",
            "PF_EINVAL",
            'no function "stp"; did you mean "step"',
        ),
        ("./none.py:step", "PF_EINVAL", "there is no file"),
        ("./own.py:", "PF_EINVAL", "is neither"),
        ("./own.py:number", "PF_EINVAL", "is of type int, no function"),
        ("no_such_module:f", "PF_EMISSING", "no Python module"),
        ("numpy.no_such:f", "PF_EMISSING", "no Python module"),
        ("numpy:clp", "PF_EINVAL", 'no function "clp"; did you mean "clip"'),
        ("./needs.py:f", "PF_EMISSING", "No module named 'no_such_module'"),
        ("./broken.py:f", "PF_EINVAL", "SyntaxError"),
        ("./raises.py:f", "PF_EINVAL", "RuntimeError: at import"),
        ("./own.py:Empty", "PF_EINVAL", "has no __call__(stack)"),
        ("./own.py:tagged", "PF_EINVAL", "'gpu', none of numpy"),
    ],
)
def test_functions_that_cannot_be_opened(tmp_path, function, code, message):
    (tmp_path / "own.py").write_text(
        "def step(stack): return stack\n"
        "number = 5\n"
        "class Empty: pass\n"
        "def tagged(stack): return stack\n"
        "tagged.input_memory_type = 'gpu'\n"
    )
    (tmp_path / "needs.py").write_text("import no_such_module\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "raises.py").write_text("raise RuntimeError('at import')\n")
    done = subprocess.run(
        [str(TOOL), str(tmp_path), function, f"python={sys.executable}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answer = json.loads(done.stdout)
    assert answer["code"] == code, answer
    assert message in answer["message"]
    if function.startswith(("./raises", "./needs")):
        assert (
            answer["detail"].splitlines()[1].startswith(f'  File "{tmp_path}')
        ), "the user's frames come first"


def test_library_functions_work_untagged(call, tmp_path):
    done = subprocess.run(
        [
            str(TOOL),
            str(tmp_path),
            "numpy:sqrt",
            f"python={sys.executable}",
            'params={"dtype": "float64"}',
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    one = json.loads(done.stdout)
    assert one["dtype"] == "float64", one["message"]


def test_local_imports_leave_nothing_behind(call, tmp_path):
    package = tmp_path / "helpers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text("VALUE = 5\n")
    (tmp_path / "beside.py").write_text("from helpers.deep import VALUE\n")
    source = (
        "import beside\n"
        "def step(stack): stack[:] = beside.VALUE; return stack\n"
    )
    (one,) = call(source, "step")
    assert one["bytes"][0] == 5
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("raise MemoryError", "PF_ENOMEM", "MemoryError"),
        pytest.param(
            "np.empty(1 << 46)",
            "PF_ENOMEM",
            "MemoryError: Unable to allocate",
            marks=pytest.mark.no_sanitizer,
        ),
        ("raise SystemExit(3)", "PF_ESTEP", "asked the process to exit (3)"),
        ("raise KeyboardInterrupt", "PF_ESTEP", "KeyboardInterrupt"),
        ("raise ValueError('a\\nb')", "PF_ESTEP", "ValueError: a"),
        ("raise ValueError('%s%n\\0')", "PF_ESTEP", "ValueError: %s%n\\0"),
        ("raise ValueError('\\ud800')", "PF_ESTEP", "ValueError: \\ud800"),
        ("1 / 0", "PF_ESTEP", "ZeroDivisionError: division by zero"),
        ("import no_such", "PF_EMISSING", "No module named 'no_such'"),
    ],
)
def test_exceptions(call, body, code, message):
    source = f"def step(stack):\n    stack[:] = 1\n    {body}\n"
    (one,) = call(source, "step")
    assert one["code"] == code
    assert message in one["message"]
    assert "own.py" in one["detail"].splitlines()[1]
    assert "_steps.py" not in one["detail"]


# ------------------------------------------------------ through the engine


@pytest.fixture
def plate(tmp_path: Path) -> Path:
    """Four wells of three planes, each filled with its own number."""
    folder = tmp_path / "plate"
    folder.mkdir()
    for i, well in enumerate(("A01", "A02", "B01", "B02")):
        for z in (1, 2, 3):
            image = np.full((16, 20), 100 * (i + 1) + z, np.uint16)
            tifffile.imwrite(folder / f"{well}_z{z}.tif", image)
    return folder


@pytest.fixture
def pipeline(tmp_path: Path) -> Callable[..., Path]:
    """Write steps.py and a pipeline of its functions; returns its path."""

    def write(source: str, *steps: dict[str, Any]) -> Path:
        (tmp_path / "steps.py").write_text(source)
        path = tmp_path / "pipeline.json"
        path.write_text(
            json.dumps(
                {
                    "plateflow": 1,
                    "name": "test",
                    "plate": {
                        "layout": "pattern",
                        "pattern": "{well}_z{z}.tif",
                    },
                    "steps": [{**COMMON, **s} for s in steps],
                }
            )
        )
        return path

    return write


COMMON = {"memory_type": "numpy", "slice_by_slice": False}


def images(out: Path) -> dict[str, np.ndarray]:
    return {
        path.name: tifffile.imread(path)
        for path in sorted((out / "images").rglob("*.tif"))
    }


STEP = {"name": "s", "function": "./steps.py:step"}


def test_runs(run: Run, plate, pipeline, tmp_path):
    path = pipeline(
        "def step(stack, by): return stack + by\n",
        {**STEP, "parameters": {"by": 7}},
    )
    run("run", path, plate, "-o", tmp_path / "out", "--workers", 2)
    written = images(tmp_path / "out")
    assert len(written) == 12
    assert (written["B01_z2.tif"] == 302 + 7).all()


def test_stack_address_is_the_engines(run: Run, plate, pipeline, tmp_path):
    """Nothing is copied between two Python steps, nor before the first."""
    source = (
        "def first(stack, info):\n"
        "    stack += 1\n"
        "    info.write('address', str(stack.ctypes.data).encode())\n"
        "    return stack\n"
        "def second(stack, info):\n"
        "    info.write('address', str(stack.ctypes.data).encode())\n"
        "    return stack\n"
    )
    path = pipeline(
        source,
        {"name": "a", "function": "./steps.py:first"},
        {"name": "b", "function": "./steps.py:second"},
    )
    out = tmp_path / "out"
    run("run", path, plate, "-o", out, "--only", "well=A01", "--workers", 1)
    read = [(out / "files" / s / "address").read_text() for s in "ab"]
    assert read[0] == read[1]
    assert (images(out)["A01_z1.tif"] == 102).all()


def test_module_buffer_in_eight_groups(run: Run, plate, pipeline, tmp_path):
    source = (
        "import numpy as np\n"
        "buffer = np.zeros((3, 16, 20), np.uint16)\n"
        "def step(stack):\n"
        "    buffer[:] = stack\n"
        "    return buffer\n"
    )
    path = pipeline(source, {**STEP, "concurrency": 1})
    out = tmp_path / "out"
    run("run", path, plate, "-o", out, "--workers", 4)
    for name, image in images(out).items():
        assert (image == tifffile.imread(plate / name)).all(), name


def test_write_then_raise_costs_one_group(run: Run, plate, pipeline, tmp_path):
    source = (
        "def inner(stack):\n"
        "    raise ValueError('no nuclei')\n"
        "def step(stack, info):\n"
        "    stack[:] = 0\n"
        "    if info.components['well'] == 'B01':\n"
        "        inner(stack)\n"
        "    return stack\n"
    )
    path = pipeline(source, {**STEP})
    out = tmp_path / "out"
    done = run("run", path, plate, "-o", out, "--workers", 2, status=4)
    text = done.stdout + done.stderr
    assert "ValueError: no nuclei" in text
    assert "in inner" in text and "B01" in text
    assert sorted({n[:3] for n in images(out)}) == ["A01", "A02", "B02"]
    with open(out / "tables" / "images.csv", encoding="utf-8") as file:
        rows = {row["well"]: row for row in csv.DictReader(file)}
    assert rows["B01"]["status"] == "failed"
    assert "no nuclei" in rows["B01"]["reason"]
    assert rows["A01"]["status"] == "done"


def test_class_is_made_once(run: Run, plate, pipeline, tmp_path):
    source = (
        "import threading\n"
        "class Step:\n"
        "    made = 0\n"
        "    def __init__(self, by):\n"
        "        Step.made += 1\n"
        "        self.by = by\n"
        "    def __call__(self, stack):\n"
        "        assert Step.made == 1\n"
        "        return stack + self.by\n"
    )
    step = {**STEP, "function": "./steps.py:Step", "parameters": {"by": 3}}
    out = tmp_path / "out"
    run("run", pipeline(source, step), plate, "-o", out, "--workers", 4)
    assert (images(out)["A01_z1.tif"] == 104).all()


def test_thread_locals_live_as_long_as_the_worker(
    run: Run, plate, pipeline, tmp_path
):
    source = (
        "import threading\n"
        "local = threading.local()\n"
        "idents = set()\n"
        "def step(stack, info):\n"
        "    local.n = getattr(local, 'n', 0) + 1\n"
        "    info.log(f'call {local.n} of {threading.get_ident()}')\n"
        "    return stack\n"
    )
    out = tmp_path / "out"
    run("run", pipeline(source, STEP), plate, "-o", out, "--workers", 1)
    text = (out / "log.txt").read_text()
    calls = [line.split("call ")[1] for line in text.splitlines()]
    by_thread: dict[str, list[int]] = {}
    for line in calls:
        n, _, ident = line.partition(" of ")
        by_thread.setdefault(ident, []).append(int(n))
    for counts in by_thread.values():
        assert counts == list(range(1, len(counts) + 1))
    assert len(by_thread) <= 2  # the canary's thread may be another one


def test_print_stays_out_of_stdout(run: Run, plate, pipeline, tmp_path):
    source = (
        "import os\n"
        "print('at import')\n"
        "def step(stack, info):\n"
        "    print('printed', info.components['well'])\n"
        "    os.write(1, b'from C\\n')\n"
        "    return stack\n"
    )
    out = tmp_path / "out"
    done = run("run", pipeline(source, STEP), plate, "-o", out)
    assert "printed" not in done.stdout + done.stderr
    assert "from C" not in done.stdout + done.stderr
    lines = (out / "log.txt").read_text().splitlines()
    for well in ("A01", "A02", "B01", "B02"):
        (line,) = [x for x in lines if f"printed {well}" in x]
        assert f"well {well}" in line.partition("printed")[0]
    assert any("from C" in line for line in lines)
    assert any("at import" in line for line in lines)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return stack[0]", "(16, 20)"),
        ("return stack[:, ::2]", "(3, 8, 20)"),
        ("return stack[:2]", "yields"),
        ("return None", "returned None"),
    ],
)
def test_shapes_are_checked(
    run: Run, plate, pipeline, tmp_path, body, message
):
    path = pipeline(f"def step(stack):\n    {body}\n", STEP)
    done = run("run", path, plate, "-o", tmp_path / "out", status=2)
    assert message in done.stdout + done.stderr
    assert not images(tmp_path / "out")


def test_program_and_package_share_the_core(
    run: Run, plate, pipeline, tmp_path
):
    source = (
        "import plateflow\n"
        "from plateflow import _core\n"
        "def step(stack, info):\n"
        "    assert _core.core_address() == _core.program_address()\n"
        "    maps = open('/proc/self/maps').read().split()\n"
        "    files = {m for m in maps if '/libplateflow.so' in m}\n"
        "    assert len(files) == 1, files\n"
        "    info.log('same core')\n"
        "    return stack\n"
    )
    out = tmp_path / "out"
    run("run", pipeline(source, STEP), plate, "-o", out)
    assert "same core" in (out / "log.txt").read_text()


def test_tables_with_a_stack(run: Run, plate, pipeline, tmp_path):
    source = (
        "def step(stack):\n"
        "    return stack, [{'z': i, 'mean': float(p.mean())}\n"
        "                   for i, p in enumerate(stack)]\n"
    )
    out = tmp_path / "out"
    path = pipeline(source, {**STEP, "tables": ["planes"]})
    run("run", path, plate, "-o", out)
    with open(out / "tables" / "planes.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert rows[0]["well"] == "A01"
    assert float(rows[0]["mean"]) == 101


def test_native_pipelines_start_no_interpreter(
    run: Run, plate, pipeline, tmp_path
):
    path = pipeline(
        "raise SystemError\n",
        {
            "name": "p",
            "function": "native:project",
            "memory_type": "native",
            "slice_by_slice": False,
        },
    )
    done = run(
        "run",
        path,
        plate,
        "-o",
        tmp_path / "out",
        env={"PLATEFLOW_PYTHON": "/no/such/python"},
    )
    assert done.returncode == 0


# ------------------------------------------------- choosing the interpreter


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("/no/such/python", "/no/such/python: there is no such file"),
        ("/proc", "the folder has no bin/python3"),
        ("/bin/true", "it does not answer as Python does"),
        ("/bin/false", "cannot use the Python /bin/false"),
        ("no-such-python", "cannot run no-such-python"),
    ],
)
@pytest.mark.parametrize("by", ["option", "variable"])
def test_missing_interpreters(
    run: Run, plate, pipeline, tmp_path, chosen, message, by
):
    path = pipeline("def step(stack): return stack\n", STEP)
    words = ["run", path, plate, "-o", tmp_path / "out"]
    env = {}
    if by == "option":
        words += ["--python", chosen]
    else:
        env["PLATEFLOW_PYTHON"] = chosen
    done = run(*words, status=3, env=env)
    assert message in done.stderr


def test_another_version_is_refused(run: Run, plate, pipeline, tmp_path):
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nprintf '3.9\\n/env/bin/python3\\n\\n'\n")
    fake.chmod(0o755)
    path = pipeline("def step(stack): return stack\n", STEP)
    done = run(
        "run",
        path,
        plate,
        "-o",
        tmp_path / "out",
        "--python",
        tmp_path,
        status=3,
    )
    due = "{}.{}".format(*sys.version_info[:2])
    assert (
        f"built for Python {due}, and /env/bin/python3 is 3.9" in done.stderr
    )


def test_environment_folder_and_threads(run: Run, plate, pipeline, tmp_path):
    """--python takes a folder; its packages are the environment's."""
    source = (
        "import os, sys\n"
        "def step(stack, info):\n"
        "    info.log(f'prefix {sys.prefix}')\n"
        "    info.log('OMP ' + os.environ['OMP_NUM_THREADS'])\n"
        "    info.log('BLAS ' + os.environ['OPENBLAS_NUM_THREADS'])\n"
        "    return stack\n"
    )
    out = tmp_path / "out"
    run(
        "run",
        pipeline(source, STEP),
        plate,
        "-o",
        out,
        "--python",
        sys.prefix,
        env={
            "OMP_NUM_THREADS": "3",
            "PLATEFLOW_PYTHON": "/no/such/python",
        },
    )
    text = (out / "log.txt").read_text()
    assert f"prefix {sys.prefix}" in text
    assert "OMP 3" in text
    assert "BLAS " + os.environ.get("OPENBLAS_NUM_THREADS", "1") in text


def test_python_without_a_shared_library(run: Run, plate, pipeline, tmp_path):
    """The program becomes that Python, and does the same."""
    version = "{}.{}".format(*sys.version_info[:2])
    static = tmp_path / "static-python"
    static.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -I ]; then printf "{version}\\n$0\\n\\n"; exit; fi\n'
        f'LD_PRELOAD="$PF_PRELOAD" exec {sys.executable} "$@"\n'
    )
    static.chmod(0o755)
    source = (
        "import sys\n"
        "print('hello')\n"
        "def step(stack, info):\n"
        "    info.log(open('/proc/self/comm').read().strip())\n"
        "    return stack + 1\n"
    )
    path = pipeline(source, STEP)
    out = tmp_path / "out"
    done = run("run", path, plate, "-o", out, "--python", static)
    assert "hello" not in done.stdout
    assert "4 of 4 groups done" in done.stdout
    assert (images(out)["A01_z1.tif"] == 102).all()
    assert "] python" in (out / "log.txt").read_text()
    bad = run("run", path, plate / "none", "-o", out, status=2)
    assert "none" in bad.stderr


def test_a_python_that_cannot_load_the_core(
    run: Run, plate, pipeline, tmp_path
):
    """It is not started over and over."""
    version = "{}.{}".format(*sys.version_info[:2])
    broken = tmp_path / "broken-python"
    broken.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -I ]; then printf "{version}\\n$0\\n\\n"; exit; fi\n'
        'shift 4; exec "$PLATEFLOW" "$@"\n'
    )
    broken.chmod(0o755)
    path = pipeline("def step(stack): return stack\n", STEP)
    done = run(
        "run",
        path,
        plate,
        "-o",
        tmp_path / "out",
        "--python",
        broken,
        status=3,
        env={"PLATEFLOW": str(PROGRAM)},
    )
    assert "did not load its library" in done.stderr
