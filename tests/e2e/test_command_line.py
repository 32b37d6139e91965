"""The words of the command line, and what `check`, `plan`, `inspect` and
`steps` say as JSON."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import Run
from plates import MAX, Work, below, native, python

CODE = '''
def add(stack, value: int = 1):
    """Add a value to each pixel."""
    return stack + np.uint16(value)
'''


@pytest.fixture
def work(tmp_path: Path, run: Run) -> Work:
    """A folder with a plate of two wells and channels, and steps.py."""
    work = Work(tmp_path, run)
    work.code(CODE)
    work.plate(["A01", "A02"], sites="12", channels="12", z=[1, 2])
    return work


# --------------------------------------------------------------- refusals

NOT_YET = [
    ["--memory", "4G"],
    ["--gpus", "0"],
    ["--isolate"],
    ["--verify"],
    ["--index", "i"],
    ["--scratch", "/tmp"],
    ["--shard", "1/2"],
    ["--gpu-memory", "1G"],
    ["--deterministic"],
    ["--format", "ome-tiff"],
    ["--format", "ome-zarr"],
    ["--tables", "parquet"],
    ["--tables", "cellprofiler"],
    ["--readers", "2"],
    ["--trace", "t.json"],
    ["--plugin", "x.so"],
]
NOT_YET_STEPS = [
    {"memory": 2.0},
    {"splittable": True},
    {"on_oom": {"retries": 1}},
    {"isolate": True},
    {"timeout": 3},
    {"device": "gpu:0"},
    {"memory_type": "cuda"},
]


@pytest.mark.native
@pytest.mark.parametrize("words", NOT_YET, ids=lambda words: " ".join(words))
def test_options_of_later(work: Work, words):
    """Refused, never ignored; nothing is written."""
    work.pipeline(MAX)
    out = work.run(*words, status=2)
    assert "not supported yet" in out.text
    assert words[0] in out.text
    assert not out.folder.exists()


@pytest.mark.native
@pytest.mark.parametrize("keys", NOT_YET_STEPS, ids=json.dumps)
def test_keys_of_later(work: Work, keys):
    function = {"function": "./steps.py:add"} if "memory_type" in keys else {}
    work.pipeline({**MAX, **function, **keys})
    out = work.run(status=2)
    (key,) = keys
    assert f"steps[0].{key}" in out.text
    assert "not supported yet" in out.text or "not yet" in out.text
    assert not out.folder.exists()


@pytest.mark.native
@pytest.mark.parametrize("command", ["merge", "report"])
def test_commands_of_later(run: Run, command):
    assert "not supported yet" in run(command, "x", status=2).stderr


WORDS = [
    # words after `run`, what is said
    (["--worker", "2"], "did you mean --workers"),
    (["--workers", "0"], "1 to 4096"),
    (["--workers", "-1"], "1 to 4096"),
    (["--workers", "two"], "1 to 4096"),
    (["--workers", "99999999999999999999"], "1 to 4096"),
    (["--workers", "2x"], "1 to 4096"),
    (["--workers"], "needs a value"),
    (["--tolerate", "101"], "percentage"),
    (["--tolerate", "-1"], "percentage"),
    (["--tolerate", "nan"], "percentage"),
    (["--tolerate", ""], "percentage"),
    (["--on-error", "ignore"], "continue or stop"),
    (["--compression", "jpeg"], "none, lzw, deflate, zstd or packbits"),
    (["--fresh=yes"], "takes no value"),
    (["--only", "A01"], "COMPONENT=VALUE"),
    (["--only", "wel=A01"], "COMPONENT=VALUE"),
    (["--only", "well="], "COMPONENT=VALUE"),
    (["--only", "well=,"], "no value"),
    (["--only", "well=A07"], 'no well "A07"'),
    (["--only", "z=1"], "never cuts a group"),
    (["--only", "timepoint=1"], 'no timepoint "1"'),
    (["--only", "well=A01", "--only", "well=A02"], "no group"),
    (["--until", "projekt"], 'did you mean "project"'),
    (["one", "more"], "one argument too many"),
    (["-x"], "no option -x"),
    (["--deep"], "no option --deep"),
    (["--json"], "no option --json"),
]


@pytest.mark.native
@pytest.mark.parametrize(("words", "said"), WORDS)
def test_bad_words(work: Work, words, said):
    work.pipeline(MAX)
    out = work.run(*words, status=2)
    assert said in out.text
    assert not out.folder.exists()


PROGRAM = [
    ([], 2, "plateflow COMMAND --help"),
    (["--help"], 0, "plateflow COMMAND --help"),
    (["-h"], 0, "run a pipeline"),
    (["--version"], 0, "plateflow 0."),
    (["rum"], 2, 'did you mean "run"'),
    (["run", "--help"], 0, "--on-error continue|stop"),
    (["check"], 2, "an argument is missing"),
    (["run", "a.json"], 2, "missing"),
    (["inspect", "/nowhere"], 2, "/nowhere"),
    (["check", "/nowhere.json"], 2, "/nowhere.json"),
    (["plan", "/nowhere.json", "/nowhere"], 2, "/nowhere.json"),
    (["steps", "native:nothing"], 2, "native:nothing"),
    (["steps", "native:projekt"], 2, "there are"),
]


@pytest.mark.native
@pytest.mark.parametrize(("words", "status", "said"), PROGRAM)
def test_program(run: Run, words, status, said):
    done = run(*words, status=status)
    assert said in done.stdout + done.stderr
    assert not (done.stderr if status == 0 else done.stdout)


# ------------------------------------------------------- --only and --until

ONLY = [
    # words, wells, sites and channels that are done
    (["well=A02"], "A02", "12", "12"),
    (["well=a2"], "A02", "12", "12"),
    (["well=A01,A02", "channel=2"], "A01 A02", "12", "2"),
    (["well=A01", "site=1", "channel=1,2"], "A01", "1", "12"),
    (["channel=DNA"], "A01 A02", "12", "1"),
    (["site=01"], "A01 A02", "1", "12"),
]


@pytest.mark.native
@pytest.mark.parametrize(("words", "wells", "sites", "channels"), ONLY)
@pytest.mark.parametrize("apart", [False, True])
def test_only(work: Work, words, wells, sites, channels, apart):
    """One list of words, or one option each."""
    work.pipeline(MAX, plate={"channels": {"1": "DNA"}})
    only = (
        [part for word in words for part in ("--only", word)]
        if apart
        else ["--only", *words]
    )
    out = work.run(*only)
    assert out.names == [
        f"{w}_s{s}_w{c}.tif"
        for w in wells.split()
        for s in sites
        for c in channels
    ]
    fields = [(row["well"], row["site"]) for row in out.table("images")]
    assert fields == [(w, s) for w in wells.split() for s in sites]
    assert set(out.status) == {"done"}


@pytest.mark.numpy
def test_until(work: Work):
    """What comes after is not even opened; the last image is saved."""
    later = {
        "name": "later",
        "function": "./nowhere.py:f",
        "memory_type": "numpy",
    }
    work.pipeline(MAX, python("add"), later)
    out = work.run("--until", "project")
    top = work.stack("A01", z=(1, 2)).max(0)
    np.testing.assert_array_equal(out.image("A01_s1_w1.tif"), top)
    out = work.run("--until", "add")
    np.testing.assert_array_equal(out.image("A01_s1_w1.tif"), top + 1)
    assert "nowhere.py" in work.run(status=2).text


COMPRESSIONS = [
    ("none", "NONE"),
    ("lzw", "LZW"),
    ("deflate", "ADOBE_DEFLATE"),
    ("zstd", "ZSTD"),
    ("packbits", "PACKBITS"),
    (None, "NONE"),
]


@pytest.mark.native
@pytest.mark.parametrize(("word", "name"), COMPRESSIONS)
def test_compression(work: Work, word, name):
    work.pipeline(MAX)
    out = work.run(*(["--compression", word] if word else []))
    for image in out.names:
        with tifffile.TiffFile(out.folder / "images" / image) as file:
            assert file.pages[0].compression.name == name
    top = work.stack("A02", z=(1, 2)).max(0)
    np.testing.assert_array_equal(out.image("A02_s1_w1.tif"), top)


# ------------------------------------------------------------------ check


def check(work: Work, *words: object, status: int = 0) -> list[dict]:
    done = work.program(
        "check",
        work.folder / "pipeline.json",
        *words,
        "--json",
        status=status,
    )
    told = json.loads(done.stdout)
    assert told["ok"] is (status == 0)
    assert done.stderr == ""
    return told["messages"]


@pytest.mark.numpy
def test_check(work: Work):
    work.pipeline(MAX, python("add"))
    assert check(work) == []
    assert check(work, work.plate_folder) == []
    done = work.program("check", work.folder / "pipeline.json")
    assert "nothing wrong was found" in done.stdout
    assert below(work.folder, ".sqlite") == []


@pytest.mark.numpy
def test_check_says_all_at_once(work: Work):
    """Of the file, the functions and the plate; each at its place."""
    path = work.pipeline(
        {**MAX, "where": {"well": "Z99"}, "parameters": {"methd": "max"}},
        python("ad"),
        native("c", "gaussian", parameters={"sigma": -1}),
    )
    messages = check(work, work.plate_folder, status=2)
    lines = path.read_text().splitlines()
    places = {message["where"] for message in messages}
    assert "steps[0].parameters.methd" in places
    assert "steps[1].function" in places
    assert "steps[2].parameters.sigma" in places
    for message in messages:
        assert message["severity"] == "error"
        assert message["column"] >= 1
        assert 1 <= message["line"] <= len(lines)
        last = message["where"].split(".")[-1].split("[")[0]
        assert f'"{last}"' in lines[message["line"] - 1]


@pytest.mark.numpy
def test_check_survives_user_code(work: Work):
    """It is looked at in a child process: exit and crash are messages."""
    for code, said in [
        ("import os\nos.abort()\n", "signal 6"),
        ("raise SystemExit(0)\n", "SystemExit"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("def add(stack:\n", "SyntaxError"),
    ]:
        work.code(code)
        work.pipeline(python("add"))
        done = work.program(
            "check", work.folder / "pipeline.json", status=None
        )
        assert done.returncode in (2, 3)
        assert said in done.stdout + done.stderr


# ------------------------------------------------------------------- plan


@pytest.mark.numpy
def test_plan(work: Work):
    work.pipeline(
        MAX,
        python("add", where={"channel": "1"}, save=True),
        native("smooth", "gaussian"),
    )
    path = work.folder / "pipeline.json"
    told = json.loads(
        work.program("plan", path, work.plate_folder, "--json").stdout
    )
    assert told["slices"] == 16
    assert told["groups"] == 8
    assert told["per"] == ["plate", "well", "site", "channel"]
    assert told["deepest"] == 2
    assert told["stack_bytes"] == 2 * 6 * 8 * 2
    first, second, third = told["steps"]
    assert (first["groups"], second["groups"], third["groups"]) == (8, 4, 8)
    assert first["stack"] == ["z"]
    assert first["lost"] == second["lost"] == third["lost"] == ["z"]
    assert second["memory_type"] == "numpy"
    assert (first["saved"], second["saved"], third["saved"]) == (
        None,
        "steps/add",
        "images",
    )
    only = work.program(
        "plan",
        path,
        work.plate_folder,
        "--json",
        "--only",
        "well=A01",
        "--until",
        "add",
    )
    told = json.loads(only.stdout)
    assert (told["groups"], len(told["steps"])) == (4, 2)
    text = work.program("plan", path, work.plate_folder).stdout
    assert "8 groups" in text
    assert "images/A01_s1_w1.tif" in text
    assert not list(work.folder.glob("out*"))


# --------------------------------------------------------- inspect, steps


@pytest.mark.native
def test_inspect(work: Work):
    told = json.loads(
        work.program("inspect", work.plate_folder, "--json").stdout
    )
    assert len(told["slices"]) == 16
    assert told["components"]["well"]["values"] == ["A01", "A02"]
    text = work.program("inspect", work.plate_folder).stdout
    assert "16 slices" in text


@pytest.mark.native
def test_steps(run: Run):
    told = json.loads(run("steps", "--json").stdout)
    names = {step["function"] for step in told["native"]}
    assert names >= {
        f"native:{name}"
        for name in (
            "project",
            "gaussian",
            "rescale_intensity",
            "flatfield",
            "threshold",
            "label",
            "measure",
        )
    }
    assert all(step["help"] for step in told["native"])
    text = run("steps").stdout
    assert "native:project" in text
    one = run("steps", "native:gaussian").stdout
    assert "sigma" in one
    json.loads(run("steps", "native:gaussian", "--json").stdout)


@pytest.mark.no_sanitizer
@pytest.mark.numpy
def test_steps_of_a_file(work: Work):
    done = work.program("steps", "./steps.py:add", cwd=work.folder)
    assert "Add a value to each pixel." in done.stdout
    assert "value" in done.stdout
    told = json.loads(
        work.program(
            "steps", "./steps.py:add", "--json", cwd=work.folder
        ).stdout
    )
    assert "value" in json.dumps(told)
