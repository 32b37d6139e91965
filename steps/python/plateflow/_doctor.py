"""What `plateflow doctor` asks of the interpreter.

Each framework is imported in a process of its own, since some end the process
when they are imported, or when another one was; so are the conversions tried.
What a framework is comes from its entry (bridge/frameworks.json).
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, Any

from plateflow import _frameworks

Entry = dict[str, Any]

_PROBE_SECONDS = 60
_SHAPE = (5, 64, 64)  # of the arrays that are converted
_DTYPE = "float32"  # which all frameworks take
_REPEATS = 20

_PROGRAM = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from plateflow import _doctor
sys.path.pop(0)
_doctor.{}()
"""
# Wheels that bring CUDA: "nvidia-cudnn-cu13", "cupy-cuda13x".
_CUDA_SUFFIX = re.compile(r"-cu(?:da)?(\d\d)x?$")
# Of NVIDIA's wheels without a suffix, those whose version is CUDA's.
_CUDA_VERSIONED = re.compile(r"^nvidia-cuda-(runtime|nvrtc|cupti)$")


def _as_text(output: str | bytes | None) -> str:
    """Return what a process wrote before it was stopped."""
    if isinstance(output, bytes):
        return output.decode(errors="replace")
    return output or ""


def _run(main: str, request: Any, env: dict[str, str]) -> tuple[str, str]:
    """Return what a process of `main` wrote, and how it failed or ''."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    command = [sys.executable, "-P", "-c", _PROGRAM.format(main), package]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(request),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            env={**env, **os.environ},
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        text = _as_text(late.stdout)
        return text, f"no answer within {_PROBE_SECONDS} s"
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return done.stdout, f"the process ended with {name}"
    lines = done.stderr.strip().splitlines()
    failed = f"exit status {done.returncode}" if done.returncode else ""
    return done.stdout, lines[-1] if failed and lines else failed


def _answer_stream() -> IO[str]:
    """Return standard output; what libraries print goes to standard error."""
    out = os.dup(1)
    os.dup2(2, 1)
    return open(out, "w", encoding="utf-8")


def _reason(error: BaseException) -> str:
    """Return an error's first line; of a refused conversion, why it was."""
    text = str(getattr(error, "reason", None) or error).strip().splitlines()
    return text[0] if text else type(error).__name__


def _version(module: Any, name: str) -> str | None:
    from importlib import metadata

    version = getattr(module, "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _device(device: Any) -> str:
    name = getattr(device, "name", None)
    return name if isinstance(name, str) else str(device)


def _devices(entry: Entry) -> dict[str, Any]:
    """Return the devices that the framework sees, or why it sees none."""
    listing = entry.get("list_devices")
    host = ["cpu"] if "host" in entry["devices"] else []
    found: Any = []
    try:
        found = _frameworks.call(listing, {}) if listing else []
    except Exception as error:
        if not host:
            return {"devices": [], "no_devices": _reason(error)}
    if isinstance(found, int):
        found = [f"gpu:{i}" for i in range(found)]
    elif isinstance(found, str):
        found = [found]
    return {"devices": [_device(device) for device in found] or host}


def probe() -> None:
    """Import the framework of standard input's entry, and describe it."""
    entry = json.load(sys.stdin)
    with _answer_stream() as out:
        start = time.perf_counter()
        try:
            module = _frameworks.resolve(entry["import"] + ".__name__")
            module = sys.modules[module]
        except BaseException as error:
            json.dump({"error": _reason(error)}, out)
            return
        about: dict[str, Any] = {
            "version": _version(module, entry["import"]),
            "import_seconds": round(time.perf_counter() - start, 3),
        }
        json.dump({**about, **_devices(entry)}, out)


def _look_at(entry: Entry) -> dict[str, Any]:
    about = {"name": entry["name"], "install": entry.get("install")}
    if not _frameworks.has_module(entry["import"]):
        return {**about, "installed": False}
    text, failed = _run("probe", entry, entry.get("environment", {}))
    try:
        found = json.loads(text)
    except ValueError:
        found = {"error": failed or "no answer"}
    return {**about, "installed": True, **found}


# ------------------------------------------------------------- conversions


def _microseconds(call: Callable[[], Any]) -> float:
    """Return the least time of a call."""
    best = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return round(best * 1e6, 1)


def _is_known(name: str) -> bool:
    from plateflow import converters

    try:
        return bool(converters.memory_type_name(name))
    except ValueError:
        return False


def _pairs(names: list[str]) -> Iterator[dict[str, Any]]:
    """Convert from each to each."""
    import numpy as np

    from plateflow import _core, converters

    # Aligned, as plateflow's own arrays are and those that steps make.
    count = math.prod(_SHAPE)
    memory = np.zeros(count + 16, _DTYPE)
    start = -memory.ctypes.data % 64 // memory.itemsize
    host = memory[start : start + count].reshape(_SHAPE)
    names = [name for name in names if _is_known(name)]
    for source in names:
        try:
            array = converters.convert_memory(host, "numpy", source)
        except Exception as error:
            yield {"source": source, "target": source, "error": _reason(error)}
            continue
        for target in names:
            row: dict[str, Any] = {"source": source, "target": target}
            _core.clear_conversion_log()
            try:
                row["microseconds"] = _microseconds(
                    partial(converters.convert_memory, array, source, target)
                )
                log = converters.conversion_log()
                row["mechanism"] = log[-1]["mechanism"] if log else "in place"
            except Exception as error:
                row["error"] = _reason(error)
            yield row


def convert() -> None:
    """Try the conversions among standard input's names, one line each.

    Lines are written as they come: a process that ends early loses the rest
    alone.
    """
    names = json.load(sys.stdin)
    with _answer_stream() as out:
        for row in _pairs(names):
            print(json.dumps(row), file=out, flush=True)


def _conversions(names: list[str], entries: list[Entry]) -> dict[str, Any]:
    env: dict[str, str] = {}
    for entry in entries:
        env = {**entry.get("environment", {}), **env}
    text, failed = _run("convert", names, env)
    rows = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
    about: dict[str, Any] = {
        "shape": list(_SHAPE),
        "dtype": _DTYPE,
        "pairs": rows,
    }
    if failed:
        about["error"] = failed
    return about


# --------------------------------------------------------------- conflicts


def cuda_conflicts(wheels: Iterable[tuple[str, str]]) -> list[str]:
    """Return a sentence where wheels of several CUDAs are side by side.

    wheels: names and versions of what is installed.
    """
    found: dict[str, list[str]] = {}
    for name, version in wheels:
        name = name.lower().replace("_", "-")
        suffix = _CUDA_SUFFIX.search(name)
        if suffix:
            found.setdefault(suffix[1], []).append(name)
        elif _CUDA_VERSIONED.match(name):
            found.setdefault(version.split(".")[0], []).append(name)
    if len(found) < 2:
        return []
    parts = [
        f"CUDA {major}: {', '.join(sorted(set(found[major])))}"
        for major in sorted(found)
    ]
    return [
        "wheels of several CUDAs overwrite each other's libraries in one "
        f"environment ({'; '.join(parts)}): keep those of one, and give a "
        'step that needs the other "isolate": {"python": PATH}'
    ]


def _installed() -> Iterator[tuple[str, str]]:
    from importlib import metadata

    for wheel in metadata.distributions():
        name = wheel.metadata["Name"]
        if name:
            yield str(name), wheel.version


def _conflicts(entries: list[Entry], found: set[str]) -> list[str]:
    """Return what is known not to go together, of what is installed."""
    texts = cuda_conflicts(_installed())
    for entry in entries:
        for conflict in entry.get("conflicts", ()):
            if entry["name"] in found and conflict["with"] in found:
                texts.append(conflict["text"])
    return texts


def examine(request: dict[str, Any]) -> dict[str, Any]:
    """Return what doctor shows; "frameworks" of the request are entries.

    "native": memory types of C steps that can be used here. Both lists are in
    the order in which they are imported.
    """
    entries: list[Entry] = request["frameworks"]
    with ThreadPoolExecutor(2) as pool:
        frameworks = list(pool.map(_look_at, entries))
    works = [f["name"] for f in frameworks if f.get("devices")]
    installed = {f["name"] for f in frameworks if f["installed"]}
    return {
        "python": {
            "executable": sys.executable,
            "version": sys.version.split()[0],
            "prefix": sys.prefix,
        },
        "frameworks": frameworks,
        "conflicts": _conflicts(entries, installed),
        "conversions": _conversions([*works, *request["native"]], entries),
    }
