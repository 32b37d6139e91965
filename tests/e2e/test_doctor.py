"""plateflow doctor, and frameworks of a user's own file."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Run

PADDLE = ROOT / "tests" / "matrix" / "paddle.json"


def doctor(run: Run, *args: object) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run("doctor", "--json", *args).stdout)
    return answer


def test_what_is_here_and_what_is_missing(run: Run) -> None:
    answer = doctor(run)
    assert answer["error"] is None
    assert answer["python"]["version"]
    by_name = {f["name"]: f for f in answer["frameworks"]}
    assert next(iter(by_name)) == "numpy", "in the order of import"
    assert by_name["numpy"]["version"]
    assert by_name["numpy"]["devices"] == ["cpu"]
    for framework in answer["frameworks"]:
        if not framework["installed"]:
            assert framework["install"].startswith("pip install ")
    assert {"gpu", "opencl"} == set(answer["devices"])
    for kind in answer["devices"].values():
        assert kind["devices"] or kind["why_none"]
        assert kind["install"]


def test_conversions_have_a_mechanism_or_a_reason(run: Run) -> None:
    pairs = doctor(run)["conversions"]["pairs"]
    assert {("numpy", "numpy"), ("numpy", "native"), ("native", "numpy")} <= {
        (pair["source"], pair["target"]) for pair in pairs
    }
    for pair in pairs:
        if pair["source"] in ("numpy", "native") and "error" not in pair:
            assert pair["microseconds"] > 0
        assert pair.get("mechanism") or pair.get("error"), pair


def test_text_names_the_same(run: Run) -> None:
    text = run("doctor").stdout
    for word in ("python", "frameworks", "numpy", "conversions", "devices"):
        assert word in text


def test_without_python_the_devices_are_told(run: Run, tmp_path: Path) -> None:
    done = run("doctor", "--python", tmp_path / "none", status=3)
    assert "devices" in done.stdout
    assert str(tmp_path / "none") in done.stderr


def test_a_framework_of_the_users_own(run: Run, tmp_path: Path) -> None:
    shown = doctor(run, "--frameworks", PADDLE)["frameworks"]
    assert "paddle" in [f["name"] for f in shown]
    by_variable = run(
        "doctor", "--json", env={"PLATEFLOW_FRAMEWORKS": str(PADDLE)}
    )
    assert "paddle" in by_variable.stdout


def test_a_framework_that_ends_the_process(run: Run, tmp_path: Path) -> None:
    """It costs its own line, nothing else."""
    package = tmp_path / "endsit"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    entry = json.loads(PADDLE.read_text())
    entry["frameworks"][0].update(name="endsit", **{"import": "endsit"})
    path = tmp_path / "frameworks.json"
    path.write_text(json.dumps(entry))
    done = run(
        "doctor",
        "--json",
        "--frameworks",
        path,
        env={"PYTHONPATH": str(tmp_path)},
    )
    by_name = {f["name"]: f for f in json.loads(done.stdout)["frameworks"]}
    assert "SIGSEGV" in by_name["endsit"]["error"]
    assert by_name["numpy"]["version"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"plateflow_frameworks": 1,\n "framework": []}',
            ":2:2: framework: unknown key",
        ),
        ("nothing", ":1:1: "),
    ],
)
def test_a_bad_file_is_a_message(
    run: Run, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    for command in (["doctor"], ["steps"], ["check", "none.json"]):
        done = run(*command, "--frameworks", path, status=2)
        assert f"mine.json{said}" in done.stderr


CONFLICTS: list[tuple[list[tuple[str, str]], list[str]]] = [
    ([], []),
    ([("numpy", "2.4.6"), ("nvidia-cuda-runtime", "13.2.86")], []),
    ([("nvidia-cudnn-cu13", "9"), ("nvidia-cuda-nvrtc", "13.2.86")], []),
    ([("nvidia-cudnn-cu13", "9"), ("cupy-cuda12x", "14.2")], ["12", "13"]),
    ([("nvidia_cublas_cu12", "12"), ("nvidia-cuda-runtime", "13.1")],
     ["12", "13"]),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(CONFLICTS)))
def test_wheels_of_two_cudas(run_python: Run, row: int) -> None:
    wheels, majors = CONFLICTS[row]
    code = (
        "import json, sys\n"
        "from plateflow._doctor import cuda_conflicts\n"
        "print(json.dumps(cuda_conflicts(json.loads(sys.argv[1]))))"
    )
    texts = json.loads(run_python(code, json.dumps(wheels)).stdout)
    assert len(texts) == (1 if majors else 0)
    for major in majors:
        assert f"CUDA {major}: " in texts[0]
        assert all(name in texts[0] for name, _ in wheels if "_" not in name)
