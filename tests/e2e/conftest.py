"""What the end-to-end tests share.

PLATEFLOW    the program, default PF_BUILD/plateflow
PF_BUILD     the build folder, default build
PF_TEST_DATA the real image sets, default ../shared/data
PF_PRELOAD   a sanitizer's library that a plain python must load first
Relative paths start at the root of the repository.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("PF_BUILD", "build")
PROGRAM = ROOT / os.environ.get("PLATEFLOW", BUILD / "plateflow")
DATA = ROOT / os.environ.get("PF_TEST_DATA", "../shared/data")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def program() -> Path:
    """The program that is tested."""
    if not PROGRAM.is_file():
        pytest.fail(f"{PROGRAM} is not built; tools/build build")
    return PROGRAM


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the real image sets."""
    if not DATA.is_dir():
        pytest.skip(f"no image sets at {DATA}; PF_TEST_DATA names them")
    return DATA.resolve()


@pytest.fixture(scope="session")
def sample_plate() -> Path:
    """The small plate that comes with the repository."""
    return ROOT / "samples" / "plate"


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    """Run the program: run("inspect", folder, "--json", status=0).

    `status` is the exit status that must come (None: any); `env` is added to
    the environment. Standard input is empty. Runs in tmp_path.
    """

    def call(
        *args: object,
        status: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout: float = 240,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(program), *(str(arg) for arg in args)],
            env={
                "PLATEFLOW_PYTHON": sys.executable,
                **os.environ,
                **(env or {}),
            },
            cwd=cwd or tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=timeout,
            check=False,
        )
        if status is not None:
            assert done.returncode == status, (
                f"{done.args}\n{done.stdout}\n{done.stderr}"
            )
        return done

    return call


@pytest.fixture
def run_python(tmp_path: Path) -> Run:
    """Run `python -c CODE ARGS` with the built package importable."""

    def call(
        code: str,
        *args: object,
        status: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout: float = 240,
    ) -> subprocess.CompletedProcess[str]:
        own = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        if "PF_PRELOAD" in os.environ:
            own["LD_PRELOAD"] = os.environ["PF_PRELOAD"]
        done = subprocess.run(
            [sys.executable, "-c", code, *(str(arg) for arg in args)],
            env={**own, **(env or {})},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=timeout,
            check=False,
        )
        if status is not None:
            assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return done

    return call
