"""`pip install .` into an environment of its own, and what it put there."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not importlib.util.find_spec("scikit_build_core"),
        reason="scikit-build-core is not installed (tools/setup test does)",
    ),
]


def call(*command: object, cwd: Path) -> str:
    # Neither the build folder nor this environment may help out.
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PLATEFLOW", "PYTHON", "LD_"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    call(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
        *("--no-build-isolation", "--wheel-dir", folder, root),
        cwd=folder,
    )
    return next(folder.glob("plateflow-*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment; NumPy comes from this one."""
    folder = tmp_path_factory.mktemp("environment") / "a b"
    call(sys.executable, "-m", "venv", folder, cwd=wheel.parent)
    call(
        *(folder / "bin/python", "-m", "pip", "install", "--quiet"),
        *("--no-deps", "--no-index", wheel),
        cwd=wheel.parent,
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "numpy.pth").write_text(sysconfig.get_path("platlib") + "\n")
    return folder


def test_wheel_holds_each_library_once(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    libraries = [name for name in names if "/libplateflow" in name]
    assert sorted(libraries) == [
        "plateflow/libplateflow-bridge.so.0",
        "plateflow/libplateflow.so.0",
    ]
    assert "plateflow/include/plateflow/bridge.h" in names
    assert "plateflow/__init__.py" in names
    assert any(name.endswith(".data/scripts/plateflow") for name in names)


def test_program_and_package_are_one_version(
    environment: Path, tmp_path: Path, root: Path
):
    listed = (root / "CMakeLists.txt").read_text()
    printed = call(environment / "bin/plateflow", "--version", cwd=tmp_path)
    imported = call(
        environment / "bin/python",
        "-c",
        "import plateflow; print(plateflow.__version__)",
        cwd=tmp_path,
    )
    version = imported.strip()
    assert f"VERSION {version} " in listed
    assert version in printed


def test_run_uses_the_environment(
    environment: Path, tmp_path: Path, root: Path, sample_plate: Path
):
    call(
        *(environment / "bin/plateflow", "run"),
        *(root / "samples/quickstart.json", sample_plate, "-o", "out"),
        cwd=tmp_path,
    )
    assert list((tmp_path / "out/images").rglob("*.tif"))
    assert (tmp_path / "out/tables/nuclei.csv").is_file()
    summary = json.loads((tmp_path / "out/run.json").read_text())
    assert str(environment) in json.dumps(summary)


def test_package_runs_the_same_core(
    environment: Path, tmp_path: Path, root: Path, sample_plate: Path
):
    code = (
        "import sys, plateflow\n"
        "plateflow.run(sys.argv[1], sys.argv[2], 'out')\n"
        "maps = open('/proc/self/maps').read().splitlines()\n"
        "paths = {m.split(maxsplit=5)[-1] for m in maps}\n"
        "print(sorted(p for p in paths if 'libplateflow' in p))\n"
    )
    said = call(
        *(environment / "bin/python", "-c", code),
        *(root / "samples/quickstart.json", sample_plate),
        cwd=tmp_path,
    )
    loaded = said.strip().splitlines()[-1]
    assert loaded.count("libplateflow.so") == 1
    assert str(environment) in loaded
