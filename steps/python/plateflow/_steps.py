"""Finding step functions, and what is known of them before they are called.

Used by the glue inside the program and by the child process that looks at
user code (_describe.py), so it needs nothing of the core.
"""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import zlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from plateflow._errors import StepError
from plateflow.decorators import (
    COMPONENTS,
    MEMORY_TYPES,
    RESULTS,
    undecorated,
)

# Modules of user files by their real path: each file runs once per process.
_loaded: dict[str, ModuleType] = {}
# Folders of user files, in which no __pycache__ is written.
_folders: set[str] = set()


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """A loader that leaves no __pycache__ beside the user's files."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Write nothing."""


def _find_in_folder(path: str) -> importlib.machinery.FileFinder:
    """Path hook for the folders of user files and what is in them."""
    inside = any(
        path == folder or path.startswith(folder + "/") for folder in _folders
    )
    if not inside or "-packages" in path or not os.path.isdir(path):
        raise ImportError(path)
    return importlib.machinery.FileFinder(
        path,
        (
            importlib.machinery.ExtensionFileLoader,
            importlib.machinery.EXTENSION_SUFFIXES,
        ),
        (_SourceLoader, importlib.machinery.SOURCE_SUFFIXES),
    )


def _add_folder(folder: str) -> None:
    """Let the user's file import what lies beside it."""
    if folder in _folders:
        return
    if not _folders:
        sys.path_hooks.insert(0, _find_in_folder)
    _folders.add(folder)
    for known in list(sys.path_importer_cache):
        if known == folder or known.startswith(folder + "/"):
            del sys.path_importer_cache[known]
    if folder not in sys.path:
        sys.path.append(folder)


def _load_file(path: str) -> ModuleType:
    real = os.path.realpath(path)
    if real in _loaded:
        return _loaded[real]
    if not os.path.isfile(real):
        raise StepError("EINVAL", f"there is no file {path!a}")
    stem = os.path.splitext(os.path.basename(real))[0]
    name = f"_plateflow_{stem}_{zlib.crc32(os.fsencode(real)):08x}"
    _add_folder(os.path.dirname(real))
    spec = importlib.util.spec_from_file_location(
        name, real, loader=_SourceLoader(name, real)
    )
    if spec is None or spec.loader is None:
        raise StepError("EINVAL", f"{path!a} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pickle finds classes by it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    _loaded[real] = module
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name + ".").startswith(error.name + "."):
            text = f"there is no Python module {name!r} in {sys.prefix}"
            raise StepError("EMISSING", text) from None
        raise


def nearest(word: str, known: list[str]) -> str:
    """Return '; did you mean "x"?' for the word nearest to it, or ''."""
    import difflib

    found = difflib.get_close_matches(word, known, 1, 0.6)
    return f'; did you mean "{found[0]}"?' if found else ""


def _attribute(module: ModuleType, name: str, where: str) -> Any:
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            known = [n for n in dir(value) if callable(getattr(value, n, 0))]
            text = f'{where} has no function "{name}"' + nearest(part, known)
            raise StepError("EINVAL", text) from None
    return value


def _is_file(place: str) -> bool:
    return place.endswith(".py") or place.startswith(("./", "../", "/"))


def load(function: str, base_dir: str) -> Callable[..., Any]:
    """Return the function or class that "module:name" names.

    A file ("./file.py:name") is relative to `base_dir` and run once per
    process; what lies beside it can be imported by it. Of a decorated function
    it is the function itself, with the decorator's tags.
    """
    place, _, name = function.rpartition(":")
    if not place or not name:
        text = (
            f"{function!a} is neither package.module:name nor ./file.py:name"
        )
        raise StepError("EINVAL", text)
    if _is_file(place):
        module = _load_file(os.path.join(base_dir, place))
    else:
        module = _load_module(place)
    step = _attribute(module, name, place)
    if not callable(step):
        text = f"{function} is of type {type(step).__name__}, no function"
        raise StepError("EINVAL", text)
    return undecorated(step)  # type: ignore[no-any-return]


def _signature(step: Callable[..., Any]) -> Any:
    """Return the signature, or None where C code does not tell it."""
    import inspect

    try:
        return inspect.signature(step)
    except (ValueError, TypeError):
        return None


def _called(step: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return what is called with a stack; for a class, its method."""
    if not isinstance(step, type):
        return step
    for name in ("add", "__call__"):
        method = getattr(step, name, None)
        # Every class can be called: only one of its own makes it a step.
        if method is not None and (
            name == "add" or "__call__" in _names(step)
        ):
            return method  # type: ignore[no-any-return]
    return None


def _names(step: type) -> set[str]:
    """Names that the class and its bases (but object) define."""
    return {name for base in step.__mro__[:-1] for name in vars(base)}


def _is_reduction(step: Callable[..., Any]) -> bool:
    return isinstance(step, type) and {"add", "finish"} <= _names(step)


def _first_line(step: Any) -> str:
    import inspect

    doc = inspect.getdoc(step)
    if not doc or doc == inspect.getdoc(type(step)):
        return ""
    return doc.strip().splitlines()[0].strip()


def _source_file(step: Any) -> str:
    """Return the file that defines the step, or ''."""
    import inspect

    with contextlib.suppress(TypeError, OSError):
        return inspect.getsourcefile(inspect.unwrap(step)) or ""
    return ""


def _word(value: Any, known: tuple[str, ...], name: str) -> str | None:
    """Return the word of a tag, which user code may have set by hand."""
    if value is None:
        return None
    if value not in known:
        text = f"the step's {name} is {value!r}, none of {', '.join(known)}"
        raise StepError("EINVAL", text)
    return str(value)


def describe(step: Callable[..., Any]) -> dict[str, Any]:
    """Return what is known of a step: its tags, kind, help and source."""
    ours = getattr(step, "__plateflow__", {})
    tags = {
        side: _word(
            getattr(step, f"{side}_memory_type", None),
            MEMORY_TYPES,
            f"{side}_memory_type",
        )
        for side in ("input", "output")
    }
    called = _called(step)
    if called is None:
        text = f"the class {step.__name__} has no __call__(stack)"
        raise StepError("EINVAL", text)
    signature = _signature(called)
    return {
        "input_memory_type": tags["input"] or tags["output"],
        "output_memory_type": tags["output"] or tags["input"],
        "result": _word(ours.get("result"), RESULTS, "result"),
        "yields": _word(
            ours.get("yields"), ("same", "one", *COMPONENTS), "yields"
        ),
        "resizes": bool(ours.get("resizes", False)),
        "is_class": isinstance(step, type),
        "is_reduction": _is_reduction(step),
        "is_decorated": any(tags.values()) or hasattr(step, "__plateflow__"),
        "takes_info": bool(signature and "info" in signature.parameters),
        "help": _first_line(step),
        "source_file": _source_file(step),
    }


class _Taken:
    """What a function can be given by name, its first parameters left out."""

    def __init__(self, function: Callable[..., Any], n_skip: int) -> None:
        signature = _signature(function)
        self.any_name = signature is None
        self.names: list[str] = []
        self.required: list[str] = []
        self.skipped: list[str] = []
        n_positional = 0
        for p in signature.parameters.values() if signature else ():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                n_positional += 1
                if n_positional <= n_skip:
                    self.skipped.append(p.name)
                    continue
            if p.kind is p.VAR_KEYWORD:
                self.any_name = True
            elif p.kind is p.VAR_POSITIONAL:
                n_positional += n_skip  # it takes the stack
            else:
                if p.kind is not p.POSITIONAL_ONLY:
                    self.names.append(p.name)
                if p.default is p.empty:
                    self.required.append(p.name)
        self.takes_stack = signature is None or n_positional >= n_skip


Reports = list[tuple[str | None, str]]


def _check_names(taken: _Taken, params: list[str], found: Reports) -> None:
    known = [name for name in taken.names if name != "info"]
    for name in params:
        if name == "info":
            found.append((name, '"info" is reserved for the group'))
        elif name in taken.skipped:
            found.append((name, f'"{name}" is the stack itself'))
        elif name not in taken.names and not taken.any_name:
            hint = nearest(name, known) or (
                f"; it has {', '.join(known)}" if known else "; it has none"
            )
            found.append(
                (name, f'the function has no parameter "{name}"{hint}')
            )


def _check_arrays(
    taken: _Taken, params: list[str], arrays: list[str], found: Reports
) -> None:
    for name in arrays:
        if name in params:
            text = f'"{name}" is given by "with" and by "parameters"'
            found.append((name, text))
        elif name == "info" or (
            name not in taken.names and not taken.any_name
        ):
            text = f'the function has no parameter "{name}" for "with"'
            found.append((None, text + nearest(name, taken.names)))


def check(
    step: Callable[..., Any], params: list[str], arrays: list[str]
) -> Reports:
    """Return what is wrong with the parameters' and arrays' names.

    `params` are the keys of "parameters", `arrays` those of "with". Each
    report is (key or None, message).
    """
    found: Reports = []
    called = _called(step)
    if called is None:
        return found
    # A class takes its parameters when it is made, a function when called.
    n_skip = 2 if isinstance(step, type) else 1  # self, stack
    taken = _Taken(called, n_skip)
    if not taken.takes_stack:
        found.append((None, "the function has no parameter for the stack"))
    made = _Taken(step, 0) if isinstance(step, type) else taken
    _check_names(made, params, found)
    given = [*params, *arrays, "info"]
    if isinstance(step, type):
        _check_arrays(taken, [], arrays, found)
        missing = [n for n in made.required if n not in params]
        missing += [n for n in taken.required if n not in (*arrays, "info")]
    else:
        _check_arrays(taken, params, arrays, found)
        missing = [n for n in taken.required if n not in given]
    found += [(None, f'parameter "{name}" is missing') for name in missing]
    return found


def versions() -> str:
    """Return JSON: the interpreter, and each imported package's version."""
    packages = {
        name: module.__dict__["__version__"]
        for name, module in sorted(sys.modules.items())
        if "." not in name
        and isinstance(module, ModuleType)
        and name not in sys.stdlib_module_names
        and isinstance(module.__dict__.get("__version__"), str)
    }
    return json.dumps(
        {
            "python": ".".join(str(n) for n in sys.version_info[:3]),
            "executable": sys.executable,
            "packages": packages,
        }
    )
