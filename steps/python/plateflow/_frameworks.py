"""Frameworks as data: what the names and calls of their entries stand for.

The glue in C reads the entries (bridge/frameworks.json and the user's own) and
calls what is found here; it knows no framework by name, and neither does this.
"""

import builtins
import contextlib
import importlib
import importlib.util
import operator
import sys
from collections.abc import Callable
from typing import Any

_ARRAY = "{array}"


def has_module(name: str) -> bool:
    """Tell whether `import name` would find something, without doing it."""
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _step(value: Any, module: str, part: str) -> Any:
    """Return value.part, importing the submodule where it is one."""
    try:
        return getattr(value, part)
    except AttributeError:
        if sys.modules.get(module) is not value:
            raise
        return importlib.import_module(f"{module}.{part}")


def resolve(path: str) -> Any:
    """Return what a dotted path names; "name()" in it is called.

    The first part is a module, which is imported, or a builtin.
    """
    first, *parts = path.split(".")
    if not parts:
        return getattr(builtins, first)
    value = importlib.import_module(first)
    module = first
    for part in parts:
        name = part.removesuffix("()")
        value = _step(value, module, name)
        module += "." + name
        if name != part:
            value = value()
    return value


def is_set(path: str) -> bool:
    """Tell whether a flag is on; one that does not exist is off."""
    try:
        return bool(resolve(path))
    except (ImportError, AttributeError):
        return False


def _fill(value: Any, slots: dict[str, Any]) -> Any:
    """Return an argument with its slots filled and its calls made."""
    if isinstance(value, str):
        if value[:1] == "{" and value[1:-1] in slots:
            return slots[value[1:-1]]
        for name, filled in slots.items():
            value = value.replace("{" + name + "}", str(filled))
        return value
    if isinstance(value, list):
        return [_fill(item, slots) for item in value]
    if not isinstance(value, dict):
        return value
    if "function" in value:
        return call(value, slots)
    if "value" in value:
        return resolve(value["value"])
    if "tuple" in value:
        return tuple(_fill(value["tuple"], slots))
    return {key: _fill(item, slots) for key, item in value.items()}


def call(entry: dict[str, Any], slots: dict[str, Any]) -> Any:
    """Make an entry's call; `slots` says what {device} and so on are."""
    path = entry["function"]
    if path.startswith(_ARRAY + "."):
        name = path[len(_ARRAY) + 1 :]
        function = operator.attrgetter(name)(slots["array"])
    else:
        function = resolve(path)
    return function(
        *_fill(entry.get("args", []), slots),
        **_fill(entry.get("kwargs", {}), slots),
    )


def of_array(entry: dict[str, Any] | None) -> Callable[[Any], Any] | None:
    """Return an entry's call as a function of the array alone."""
    if not entry:
        return None
    path = entry["function"]
    if path.startswith(_ARRAY + "."):
        return operator.methodcaller(
            path[len(_ARRAY) + 1 :],
            *_fill(entry.get("args", []), {}),
            **_fill(entry.get("kwargs", {}), {}),
        )
    if entry.get("args") == [_ARRAY] and not entry.get("kwargs"):
        return resolve(path)  # type: ignore[no-any-return]
    return lambda array: call(entry, {"array": array})


def _mentions(value: Any, slot: str) -> bool:
    if isinstance(value, dict):
        return any(_mentions(item, slot) for item in value.values())
    if isinstance(value, list):
        return any(_mentions(item, slot) for item in value)
    return isinstance(value, str) and slot in value


def first_use(
    calls: list[dict[str, Any]], threads: int, device: int, again: bool
) -> None:
    """Make the calls that come before a framework's first array.

    `again`: another thread has made them; what sets a number of threads is
    each thread's own.
    """
    for entry in calls:
        if not again or _mentions(entry, "{threads}"):
            call(entry, {"threads": threads, "device": device})


def clear(calls: list[dict[str, Any]]) -> None:
    """Make calls that give memory back; one that fails stops no other."""
    for entry in calls:
        with contextlib.suppress(Exception):  # a device that is not there
            call(entry, {"device": 0})


def exchange_of(modules: list[str], types: list[str]) -> Any:
    """Return the capsule of DLPack's C functions, or None.

    It is an attribute of the framework's array type.
    """
    for name in modules:
        module = sys.modules.get(name)
        for word in types:
            found = getattr(module, word, None)
            table = getattr(found, "__dlpack_c_exchange_api__", None)
            if table is not None:
                return table
    return None


def load_adapter(
    name: str,
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return an adapter's take(array) and give(object)."""
    module = importlib.import_module(name)
    return module.take, module.give
