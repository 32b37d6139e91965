"""The documentation says what the program does: keys, options, examples."""

import importlib.machinery
import importlib.util
import json
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import ROOT, Run

Json = Any
Rows = dict[str, dict[str, str]]

DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md"]) + sorted(
    DOCS.glob("*.md")
)
SCHEMA = json.loads((ROOT / "pipelines/pipeline.schema.json").read_text())
# The table of engine/pipeline_keys.c, the schema's object, the page's heading.
TABLES = [
    ("root", SCHEMA, "The file"),
    ("plate", SCHEMA["$defs"]["plate"], "Plate"),
    ("step", SCHEMA["$defs"]["step"], "A step"),
    ("with", SCHEMA["$defs"]["with"], "An array of `with`"),
    ("keep", SCHEMA["$defs"]["keep"], "A row of `keep`"),
]
COMMANDS = ("run", "check", "plan", "inspect", "steps", "doctor")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def sections(page: Path) -> dict[str, str]:
    """Text below each heading of the second level, deeper ones included."""
    parts = re.split(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def first_table(text: str) -> Rows:
    """Rows of the first table by the code in their first cell."""
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines, "no table"
    head, _, *rows = [cells(line) for line in lines[0].splitlines()]
    found: Rows = {}
    for row in rows:
        name = re.match(r"`([^`]+)`", row[0])
        assert name, row
        found[name[1]] = dict(zip(head, row, strict=True))
    return found


def c_rows(table: str) -> Rows:
    """Rows of a table in engine/pipeline_keys.c: type, default, reader."""
    source = (ROOT / "engine/pipeline_keys.c").read_text()
    source = source.replace("\\\n", " ")
    for name, text in re.findall(
        r'^#define (\w+)\s+(".*")\s*$', source, re.MULTILINE
    ):
        source = re.sub(rf"\b{name},", lambda _, t=text: t + ",", source)
    body = source.split(f"struct pf_key {table}_rows[] = {{")[1]
    body = body.split("\n};")[0]
    literal = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    rows = re.findall(
        rf"\{{{literal},\s*{literal},\s*{literal},\s*(\w+)", body
    )
    found = {}
    for key, kind, default, reader in rows:
        texts = [
            "".join(json.loads(t) for t in re.findall(r'"(?:[^"\\]|\\.)*"', x))
            for x in (key, kind, default)
        ]
        found[texts[0]] = {
            "type": texts[1],
            "default": texts[2],
            "reader": reader,
        }
    assert len(found) == body.count("\n    {")
    return found


@pytest.mark.native
@pytest.mark.parametrize(("table", "schema", "heading"), TABLES)
def test_keys(table: str, schema: Json, heading: str):
    known = c_rows(table)
    told = first_table(sections(DOCS / "pipeline.md")[heading])
    assert list(told) == list(known)
    assert set(known) == set(schema["properties"])
    for key, row in told.items():
        assert row["type"] == known[key]["type"], key
        assert row["default"] == known[key]["default"], key
        refused = known[key]["reader"] == "NULL"
        # with.where is read, and refused by the plan.
        refused = refused or (table, key) == ("with", "where")
        assert row["meaning"].startswith("not yet") == refused, key
        assert bool(row["example"]) != refused, key


@pytest.mark.native
@pytest.mark.parametrize("command", COMMANDS)
def test_options(run: Run, command: str):
    text = run(command, "--help").stdout
    printed = {
        long: short
        for short, long in re.findall(
            r"^\s+(?:-(\w), )?(--[\w-]+)", text, re.MULTILINE
        )
    }
    told = first_table(sections(DOCS / "command-line.md")[command])
    assert list(told) and set(told) == set(printed)
    for name, short in printed.items():
        assert (f"`-{short}`" in told[name]["option"]) == bool(short), name


@pytest.mark.native
def test_commands(run: Run):
    """Every command that --help lists has its section, and no other has."""
    listed = re.findall(
        r"^  plateflow (\w+)", run("--help").stdout, re.MULTILINE
    )
    assert tuple(listed) == COMMANDS
    assert set(COMMANDS) <= set(sections(DOCS / "command-line.md"))


def not_yet_options() -> list[str]:
    text = sections(DOCS / "command-line.md")["run"]
    line = re.search(r"^Refused, not yet: (.+?)\.\n", text, re.M | re.S)
    assert line
    return re.findall(r"--[\w-]+", line[1])


@pytest.mark.native
@pytest.mark.parametrize("option", not_yet_options())
def test_options_that_are_not_yet(run: Run, option: str):
    done = run("run", option, "1", status=2)
    assert f"{option} is not supported yet" in done.stderr


@pytest.mark.native
def test_exit_statuses():
    """Those of the table of codes, and 0."""
    source = (ROOT / "include/plateflow/error.h").read_text()
    known = {0, *map(int, re.findall(r"XX\(\w+, (\d+), ", source))}
    text = sections(DOCS / "command-line.md")["Exit status"]
    told = {int(n) for n in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert told == known


@pytest.mark.native
def test_layouts(run: Run, tmp_path: Path):
    """The page's rows are the layouts that the program knows, in its order."""
    whole = {
        "plateflow": 1,
        "plate": {"layout": "?"},
        "steps": [{"name": "a", "function": "native:identity"}],
    }
    (tmp_path / "p.json").write_text(json.dumps(whole))
    done = run("plan", "p.json", ROOT / "samples/plate", status=2)
    known = re.search(r"known are auto, (.+)", done.stderr)
    assert known, done.stderr
    text = sections(DOCS / "formats.md")["Layouts known by name"]
    assert list(first_table(text)) == known[1].split(", ")


def patterns() -> list[tuple[str, str]]:
    text = sections(DOCS / "formats.md")["Names of your own"]
    table = text.split("| pattern | fits |")[1]
    return re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", table, re.MULTILINE)


@pytest.mark.native
@pytest.mark.parametrize(("pattern", "fits"), patterns())
def test_patterns(run: Run, tmp_path: Path, pattern: str, fits: str):
    """Each pattern of the page finds the name beside it."""
    image = tmp_path / "plate" / fits
    image.parent.mkdir(parents=True)
    shutil.copy(next((ROOT / "samples/plate").rglob("*.TIF")), image)
    whole = {
        "plateflow": 1,
        "plate": {"layout": "pattern", "pattern": pattern},
        "steps": [{"name": "a", "function": "native:identity"}],
    }
    (tmp_path / "p.json").write_text(json.dumps(whole))
    plan = json.loads(run("plan", "p.json", "plate", "--json").stdout)
    assert plan["slices"] == 1
    named = set(re.findall(r"\{(\w+)\}|\(\?<(\w+)>", pattern))
    expected = {a or b for a, b in named} - {"any"} | {"plate"}
    assert set(plan["per"]) | {"z"} == expected | {"z"}


# -- examples --------------------------------------------------------------


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each fenced block of one language."""
    text = page.read_text()
    fence = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.M | re.S)
    for found in fence.finditer(text):
        if found[2] == language:
            line = text.count("\n", 0, found.start()) + 1
            yield line, textwrap.dedent(found[3])


def json_blocks() -> list[Any]:
    return [
        pytest.param(page, text, id=f"{page.name}:{line}")
        for page in PAGES
        for line, text in blocks(page, "json")
        if page.name != "adding-a-framework.md"
    ]


def whole_pipeline(text: str) -> tuple[Json, bool]:
    """The pipeline of an example, and whether it stood there as a whole.

    A part is a step, or `"plate": {...}`; the rest is made up.
    """
    if not text.lstrip().startswith("{"):
        text = "{" + text + "}"
    value = json.loads(text)
    if "steps" in value:
        return value, True
    if "function" in value:
        return {"plateflow": 1, "steps": [value]}, False
    step = {"name": "a", "function": "native:identity"}
    return {"plateflow": 1, "steps": [step], **value}, False


@pytest.mark.numpy
@pytest.mark.parametrize(("page", "text"), json_blocks())
def test_examples(run: Run, tmp_path: Path, page: Path, text: str):
    pipeline, is_whole = whole_pipeline(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(pipeline)
    if not is_whole:
        return
    # The functions: those of the page itself, or of the samples.
    code = "\n\n".join(text for _, text in blocks(page, "python"))
    (tmp_path / "my_steps.py").write_text(code)
    shutil.copy(ROOT / "samples/steps.py", tmp_path)
    path = tmp_path / "pipeline.json"
    path.write_text(text)
    run("check", path)
    if pipeline.get("plate", {}).get("layout") != "pattern":
        run("check", path, ROOT / "samples/plate")


@pytest.mark.numpy
def test_framework_of_the_page(run: Run, tmp_path: Path):
    """The entry is the one that is tested; its pipeline is valid, and runs."""
    page = DOCS / "adding-a-framework.md"
    (_, entry), (_, pipeline) = blocks(page, "json")
    path = ROOT / "tests/matrix/paddle.json"
    assert entry == path.read_text()
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(pipeline))
    run("steps", "--frameworks", path)
    pytest.importorskip("paddle")
    (tmp_path / "steps.py").write_text(next(blocks(page, "python"))[1])
    (tmp_path / "p.json").write_text(pipeline)
    plate = ROOT / "samples/plate"
    run("run", "p.json", plate, "-o", "out", "--frameworks", path)
    assert len(list((tmp_path / "out/images").rglob("*.tif"))) == 8


@pytest.mark.numpy
def test_steps_of_the_page_run(run: Run, tmp_path: Path):
    """Each step of writing-steps.md does what its text says it does."""
    page = DOCS / "writing-steps.md"
    code = "\n\n".join(text for _, text in blocks(page, "python"))
    (tmp_path / "my_steps.py").write_text(code)
    names = ("denoise", "bright", "Darken", "brightness", "thumbnail")
    steps: list[Json] = [
        {"name": name, "function": f"./my_steps.py:{name}", "input": "plate"}
        for name in (*names, "middle")
    ]
    steps[3]["tables"] = ["brightness"]
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"plateflow": 1, "steps": steps}))
    run("run", path, ROOT / "samples/plate", "-o", "out")
    rows = (tmp_path / "out/tables/brightness.csv").read_text().splitlines()
    assert rows[0].endswith("plane,mean")
    assert len(rows) == 1 + 16  # planes
    assert len(list((tmp_path / "out/files/thumbnail").iterdir())) == 8
    assert len(list((tmp_path / "out/images").rglob("*.tif"))) == 8


# -- the pages themselves --------------------------------------------------


@pytest.mark.native
def test_native_steps_page(run: Run, root: Path):
    """docs/native-steps.md is what tools/docs-native-steps writes now."""
    path = str(root / "tools/docs-native-steps")
    loader = importlib.machinery.SourceFileLoader("docs_native_steps", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    steps = json.loads(run("steps", "--json").stdout)["native"]
    assert (DOCS / "native-steps.md").read_text() == script.page(steps), (
        "run tools/docs-native-steps"
    )


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the page's headings."""
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    }


@pytest.mark.native
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


@pytest.mark.native
@pytest.mark.parametrize(
    "page",
    [DOCS / "architecture.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda page: page.name,
)
def test_named_files_exist(page: Path):
    """Paths in code such as `engine/run.c` are there."""
    pattern = r"`((?:bridge|engine|steps|include|tests|tools|samples"
    pattern += r"|pipelines|docs)/[\w./-]*)`"
    for name in re.findall(pattern, page.read_text()):
        if "NAME" not in name:
            assert (ROOT / name).exists(), name
