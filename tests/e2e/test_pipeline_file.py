"""The program and pipelines/pipeline.schema.json agree on pipeline files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import ROOT, Run

pytestmark = pytest.mark.native

FOLDER = ROOT / "pipelines"
SCHEMA = json.loads((FOLDER / "pipeline.schema.json").read_text())
SHIPPED = sorted(
    path
    for folder in (FOLDER, ROOT / "samples")
    for path in folder.glob("*.json")
    if path.name != "pipeline.schema.json"
)

Json = Any
Check = Callable[[Json], tuple[bool, list[dict[str, Any]]]]


def step(**keys: Json) -> Json:
    """A pipeline of one native step; a key that is None is left out."""
    whole = {"name": "a", "function": "native:project", **keys}
    return root(
        steps=[{k: v for k, v in whole.items() if v is not None}],
    )


def second(**keys: Json) -> Json:
    """A pipeline of two native steps, `keys` being the second one's."""
    return root(
        steps=[
            {"name": "a", "function": "native:project"},
            {"name": "b", "function": "native:gaussian", **keys},
        ]
    )


def python(**keys: Json) -> Json:
    """A pipeline of one Python step."""
    return step(function="./steps.py:f", **keys)


def plate(**keys: Json) -> Json:
    """A pipeline whose plate has these keys."""
    return root(plate=keys)


def root(**keys: Json) -> Json:
    """A pipeline with these keys; one that is None is left out."""
    whole = {
        "plateflow": 1,
        "steps": [{"name": "a", "function": "native:project"}],
        **keys,
    }
    return {k: v for k, v in whole.items() if v is not None}


# What a schema can say: the place that the program names, and the file.
BAD: list[tuple[str, Json]] = [
    ("", []),
    ("", 1),
    ("", root(plateflow=None)),
    ("plateflow", root(plateflow=2)),
    ("plateflow", root(plateflow="1")),
    ("plateflow", root(plateflow=True)),
    ("", root(steps=None)),
    ("steps", root(steps=[])),
    ("steps", root(steps={})),
    ("steps[0]", root(steps=["native:project"])),
    ("name", root(name="")),
    ("name", root(name=3)),
    ("nmae", root(nmae="x")),
    ("plate", root(plate="auto")),
    ("plate.layuot", plate(layuot="auto")),
    ("plate.layout", plate(layout="")),
    ("plate.layout", plate(layout=["auto"])),
    ("plate", plate(layout="pattern")),
    ("plate.pattern", plate(pattern="{well}.tif")),
    ("plate.pattern", plate(layout="auto", pattern="{well}.tif")),
    ("plate.pages", plate(pages="site")),
    ("plate.planes", plate(planes="all")),
    ("plate.channels", plate(channels=["DNA"])),
    ('plate.channels["1"]', plate(channels={"1": ""})),
    ('plate.channels[""]', plate(channels={"": "DNA"})),
    ('plate.channels["1"]', plate(channels={"1": 1})),
    ("plate.metadata", plate(metadata="wells.csv")),
    ("plate.exclude", plate(exclude="bad.csv")),
    ("steps[0]", step(name=None)),
    ("steps[0]", step(function=None)),
    ("steps[0].name", step(name="")),
    ("steps[0].name", step(name="a b")),
    ("steps[0].name", step(name=".a")),
    ("steps[0].name", step(name="a/b")),
    ("steps[0].name", step(name="a\n")),
    ("steps[0].name", step(name="a" * 65)),
    ("steps[0].name", step(name="previous")),
    ("steps[0].name", step(name="plate")),
    ("steps[0].name", step(name=1)),
    ("steps[0].function", step(function="project")),
    ("steps[0].function", step(function="native:")),
    ("steps[0].function", step(function="a:b:c")),
    ("steps[0].function", step(function="a..b:c")),
    ("steps[0].function", step(function="steps.py")),
    ("steps[0].function", step(function="./steps:f")),
    ("steps[0].function", step(function="./.py:f")),
    ("steps[0].function", step(function="/tmp/steps.py:f")),
    ("steps[0].function", step(function="a:b\n")),
    ("steps[0].function", step(function=["native:project"])),
    ("steps[0].functoin", step(functoin="native:project")),
    ("steps[0].memory_type", step(memory_type="numpy")),
    ("steps[0].memory_type", step(memory_type="torch")),
    ("steps[0].memory_type", python(memory_type="opencl")),
    ("steps[0].memory_type", python(memory_type="native")),
    ("steps[0].memory_type", python(memory_type="cuda")),
    ("steps[0].memory_type", python(memory_type="none")),
    ("steps[0].memory_type", python(memory_type="NumPy")),
    ("steps[0].memory_type", python(memory_type=["cupy", "numpy"])),
    ("steps[0].input_memory_type", python(input_memory_type="numpy")),
    ("steps[0].output_memory_type", python(output_memory_type="numpy")),
    (
        "steps[0].input_memory_type",
        python(
            memory_type="numpy",
            input_memory_type="numpy",
            output_memory_type="numpy",
        ),
    ),
    ("steps[0].stack", step(stack="z")),
    ("steps[0].stack[0]", step(stack=["slice"])),
    ("steps[0].stack[1]", step(stack=["z", "z"])),
    ("steps[0].where", step(where=["A01"])),
    ("steps[0].where.wel", step(where={"wel": ["A01"]})),
    ("steps[0].where.well", step(where={"well": []})),
    ("steps[0].where.well[1]", step(where={"well": ["A01", ""]})),
    ("steps[0].where.site", step(where={"site": -1})),
    ("steps[0].where.site[0]", step(where={"site": [1.5]})),
    ("steps[0].where.site[0]", step(where={"site": [[1]]})),
    ("steps[0].input", step(input=0)),
    ("steps[0].input", step(input="")),
    ("steps[0].with", step(**{"with": "plate"})),
    ("steps[0].with.x", step(**{"with": {"x": 1}})),
    ("steps[0].with.x", step(**{"with": {"x": "previous"}})),
    ("steps[0].with.x", step(**{"with": {"x": {}}})),
    ("steps[0].with.info", step(**{"with": {"info": "plate"}})),
    ('steps[0].with["1x"]', step(**{"with": {"1x": "plate"}})),
    (
        "steps[0].with.x.form",
        step(**{"with": {"x": {"from": "plate", "form": 1}}}),
    ),
    (
        "steps[0].with.x.stack[0]",
        step(**{"with": {"x": {"from": "plate", "stack": ["y"]}}}),
    ),
    (
        "steps[0].with.x.where.well",
        step(**{"with": {"x": {"from": "plate", "where": {"well": {}}}}}),
    ),
    ("steps[0].result", python(result="label")),
    ("steps[0].yields", python(yields="two")),
    ("steps[0].yields", python(yields=1)),
    ("steps[0].yields", python(yields="channel")),
    ("steps[0].yields", python(yields="z", stack=["site"])),
    ("steps[0].yields", python(result="none", tables=["t"], yields="one")),
    ("steps[0].resizes", python(resizes="yes")),
    ("steps[0].parameters", step(parameters=[1])),
    ("steps[0].parameters.info", step(parameters={"info": 1})),
    ('steps[0].parameters["a b"]', step(parameters={"a b": 1})),
    ("steps[0].parameters.a", step(parameters={"a": "{wel}"})),
    ("steps[0].parameters.a", step(parameters={"a": "{well"})),
    ("steps[0].parameters.a.b[1]", step(parameters={"a": {"b": [1, "{}"]}})),
    ("steps[0].input_dtype", python(input_dtype="float")),
    ("steps[0].input_dtype", python(input_dtype="bfloat16")),
    ("steps[0].slice_by_slice", python(slice_by_slice=1)),
    ("steps[0].dtype", python(dtype="keep")),
    ("steps[0].dtype", python(result="labels", dtype="rescale")),
    ("steps[0].device", step(device="gpu:0")),
    ("steps[0].device", step(device="tpu")),
    ("steps[0].device", step(device="opencl:")),
    ("steps[0].device", step(device="opencl:12345")),
    ("steps[0].device", step(device=["cpu"])),
    ("steps[0].concurrency", step(concurrency=0)),
    ("steps[0].concurrency", step(concurrency=1025)),
    ("steps[0].concurrency", step(concurrency="2")),
    ("steps[0].threads", step(threads=0)),
    ("steps[0].threads", step(threads=1.5)),
    ("steps[0].memory", step(memory="4G")),
    ("steps[0].splittable", step(splittable=True)),
    ("steps[0].on_oom", step(on_oom={"retries": 2})),
    ("steps[0].incomplete", step(incomplete="keep")),
    ("steps[0].incomplete", step(incomplete="run", stack=["channel"])),
    ("steps[0].sample", step(sample=0)),
    ("steps[0].sample", step(sample=2**32)),
    ("steps[0].keep", step(keep={"table": "t"})),
    (
        "steps[0].keep[0]",
        python(tables=["t"], keep=[{"table": "t", "column": "n"}]),
    ),
    ("steps[0].keep[0]", python(keep=[{"column": "n", "min": 1}])),
    (
        "steps[0].keep[0].min",
        python(tables=["t"], keep=[{"table": "t", "column": "n", "min": "1"}]),
    ),
    ("steps[0].save", step(save=1)),
    ("steps[0].save", step(save="")),
    ("steps[0].save", step(save="/tmp/{well}.tif")),
    ("steps[0].save", step(save="x/../../y.tif")),
    ("steps[0].save", step(save="{out}.tif")),
    ("steps[0].save", python(result="none", tables=["t"], save=True)),
    ("steps[0].tables", python(tables="t")),
    ("steps[0].tables[0]", python(tables=["a/b"])),
    ("steps[0].tables[0]", python(tables=["images"])),
    ("steps[0].tables[1]", python(tables=["t", "t"])),
    ("steps[0].isolate", python(isolate=False)),
    ("steps[0].timeout", python(timeout=60)),
]

# What only the program can say: the place, a part of the text, and the file
# (as text where it is no JSON, or where a dump would lose what is wrong).
STEPS = '"steps": [{"name": "a", "function": "native:project"}]'
BAD_FOR_THE_PROGRAM: list[tuple[str, str, Json]] = [
    ("", "the text is empty", ""),
    ("", "byte-order mark", '\ufeff{"plateflow": 1}'),
    ("", "a second time", '{"plateflow": 1, "plateflow": 1, ' + STEPS + "}"),
    ("", "expected the end", '{"plateflow": 1, ' + STEPS + "} x"),
    ("", "remove the comma", '{"plateflow": 1, ' + STEPS + ",}"),
    ("", "no comments", '{"plateflow": 1, // one\n' + STEPS + "}"),
    ("", "double quotes", "{'plateflow': 1, " + STEPS + "}"),
    ("", "is not allowed", '{"plateflow": 1, "name": "\\u0000"}'),
    ("", "surrogate", '{"plateflow": 1, "name": "\\ud800"}'),
    ("", "64 bits", '{"plateflow": 18446744073709551616}'),
    ("", "beyond", '{"plateflow": 1e999}'),
    ("", "is no JSON value", '{"plateflow": NaN}'),
    ("", "deeper than 64", '{"name": ' + "[" * 64 + "]" * 64 + "}"),
    ("plateflow", "the number 1.0", '{"plateflow": 1.0, ' + STEPS + "}"),
    ("steps[0].threads", "the number 2.0", step(threads=2.0)),
    ("steps[1].name", "taken by steps[0]", second(name="a")),
    ("steps[1].input", 'did you mean "a"', second(input="A")),
    ("steps[1].input", "its own result", second(input="b")),
    ("steps[0].input", "unknown earlier step", step(input="smooth")),
    ("steps[1].with.x", "unknown earlier", second(**{"with": {"x": "c"}})),
    (
        "steps[0].with.x",
        'in "parameters" already',
        step(**{"with": {"x": "plate"}}, parameters={"x": 1}),
    ),
    ("steps[0].parameters.p", 'stacks "z"', step(parameters={"p": "{z}"})),
    (
        "steps[0].memory_type",
        "has no form for OpenCL",
        step(function="native:project", memory_type="opencl"),
    ),
    (
        "steps[0].slice_by_slice",
        "slice by slice on a device",
        step(
            function="native:gaussian",
            memory_type="opencl",
            slice_by_slice=True,
        ),
    ),
    (
        "steps[0].device",
        'only with "memory_type": "opencl"',
        step(device="opencl:0"),
    ),
    (
        "steps[0].memory_type",
        'did you mean "numpy"',
        python(memory_type="numppy"),
    ),
    (
        "steps[0].keep[0].table",
        "unknown table",
        python(keep=[{"table": "t", "column": "n", "min": 1}]),
    ),
    (
        "steps[0].keep[0]",
        "nothing is kept",
        python(
            tables=["t"],
            keep=[{"table": "t", "column": "n", "min": 2, "max": 1}],
        ),
    ),
    (
        'plate.channels["2"]',
        "the same name",
        plate(channels={"1": "DNA", "2": "DNA"}),
    ),
    ("steps[0].function", "", step(function="native:projct")),
    (
        "steps[0].parameters.method",
        "",
        step(parameters={"method": "maximum"}),
    ),
]

GOOD: list[Json] = [
    root(),
    root(name="a name with spaces: µ"),
    plate(),
    plate(layout="auto", planes="slices", pages="z"),
    plate(layout="pattern", pattern="{well}_s{site}_w{channel}_z{z}.tif"),
    plate(channels={"1": "DNA", "2": "ER"}),
    step(memory_type="native"),
    step(input_memory_type="native", output_memory_type="native"),
    step(stack=["z"], where={"channel": ["DNA", 1], "site": 3, "well": "A1"}),
    step(stack=[]),
    step(input="plate"),
    step(input="previous", device="cpu", concurrency=1, threads=1),
    second(input="a", parameters={"sigma": 1.5}),
    second(parameters={"sigma": 2}, dtype="float32", input_dtype="float32"),
    step(name="_1.a-B", save="{well}/{site}{{.tif", sample=4294967295),
    step(save=True, incomplete="stop", result="image"),
    step(parameters={"method": "max"}, keep=[], tables=[]),
    step(incomplete="run", stack=["z"], save=False),
]


@pytest.fixture
def check(run: Run, tmp_path: Path) -> Check:
    """Check a document, or a text; gives ok, and the messages."""

    def call(document: Json) -> tuple[bool, list[dict[str, Any]]]:
        path = tmp_path / "pipeline.json"
        is_text = isinstance(document, str)
        path.write_text(document if is_text else json.dumps(document))
        done = run("check", path, "--json", status=None)
        answer = json.loads(done.stdout)
        assert done.returncode == (0 if answer["ok"] else 2), done.stderr
        return answer["ok"], answer["messages"]

    return call


def is_valid(document: Json) -> bool:
    """Whether the schema takes it."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return bool(validator.is_valid(document))


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_pipelines_are_valid(path: Path) -> None:
    jsonschema.validate(
        json.loads(path.read_text()),
        SCHEMA,
        jsonschema.Draft202012Validator,
    )


@pytest.mark.parametrize("name", ["project_max", "project_sum", "nuclei"])
def test_program_takes_ready_made_pipelines(run: Run, name: str) -> None:
    done = run("check", FOLDER / f"{name}.json", "--json")
    assert json.loads(done.stdout)["messages"] == []


@pytest.mark.parametrize("row", range(len(BAD)))
def test_both_refuse(check: Check, row: int) -> None:
    where, document = BAD[row]
    ok, messages = check(document)
    assert not is_valid(document), f"the schema takes {document}"
    assert not ok, f"the program takes {document}"
    errors = [m for m in messages if m["severity"] == "error"]
    assert where in [m["where"] for m in errors], errors
    assert all(m["line"] == 1 and m["column"] > 0 for m in errors), errors


@pytest.mark.parametrize("row", range(len(BAD_FOR_THE_PROGRAM)))
def test_program_refuses(check: Check, row: int) -> None:
    where, text, document = BAD_FOR_THE_PROGRAM[row]
    ok, messages = check(document)
    assert not ok
    assert any(m["where"] == where and text in m["text"] for m in messages), (
        messages
    )
    if not isinstance(document, str):
        assert is_valid(document), "belongs into the table for both"


@pytest.mark.parametrize("row", range(len(GOOD)))
def test_both_take(check: Check, row: int) -> None:
    ok, messages = check(GOOD[row])
    assert ok, messages
    assert messages == []
    assert is_valid(GOOD[row])


def test_tables_are_large_enough() -> None:
    assert len(BAD) >= 60
    assert len(GOOD) >= 15


# Where an object of each kind stands in a pipeline.
OBJECTS: dict[str, tuple[str, Callable[[Json], Json]]] = {
    "": ("", lambda keys: {**root(), **keys}),
    "plate": ("plate.", lambda keys: plate(**keys)),
    "step": (
        "steps[0].",
        lambda keys: root(
            steps=[{"name": "a", "function": "native:project", **keys}]
        ),
    ),
    "with": (
        "steps[0].with.x.",
        lambda keys: step(**{"with": {"x": {"from": "plate", **keys}}}),
    ),
    "keep": (
        "steps[0].keep[0].",
        lambda keys: step(
            tables=["t"],
            keep=[{"table": "t", "column": "c", "min": 1, **keys}],
        ),
    ),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_program_knows_the_keys_of_the_schema(check: Check, kind: str) -> None:
    """Each key with null, which none takes: refused for its value."""
    path, make = OBJECTS[kind]
    properties = (SCHEMA["$defs"][kind] if kind else SCHEMA)["properties"]
    for key, schema in properties.items():
        document = make({key: None})
        _, messages = check(document)
        said = [
            m["text"] for m in messages if m["where"].startswith(path + key)
        ]
        assert said, f"{path}{key} is taken"
        assert not any("unknown key" in text for text in said), said
        not_yet = any("is not supported yet" in text for text in said)
        assert not_yet == (schema.get("not") == {}), (key, said)


def test_all_that_is_wrong_is_said_at_once(check: Check) -> None:
    text = """{
  "plateflow": 1,
  "steps": [
    { "name": "smooth", "function": "native:gaussian", "stak": ["z"],
      "threads": "3" },
    { "name": "mask", "function": "native:threshold",
      "input": "smoth", "isolate": true }
  ]
}
"""
    _, messages = check(text)
    found = [(m["line"], m["column"], m["where"], m["text"]) for m in messages]
    assert found == [
        (4, 56, "steps[0].stak", 'unknown key "stak"; did you mean "stack"?'),
        (
            5,
            18,
            "steps[0].threads",
            'expected an integer from 1 to 1024, got the string "3"',
        ),
        (
            7,
            16,
            "steps[1].input",
            'unknown earlier step "smoth"; did you mean "smooth"?',
        ),
        (7, 25, "steps[1].isolate", '"isolate" is not supported yet'),
    ]
