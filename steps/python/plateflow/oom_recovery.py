"""Trying again when a framework ran out of memory."""

import gc
from collections.abc import Callable
from typing import Any, TypeVar

from plateflow import _core

Result = TypeVar("Result")


def _is_oom_error(e: BaseException, memory_type: str) -> bool:
    """Tell whether the exception, or what caused it, is out of memory."""
    error: BaseException | None = e
    for _ in range(8):  # a chain of causes can be a circle
        if error is None:
            break
        if isinstance(error, MemoryError) or _core.is_oom(error, memory_type):
            return True
        error = error.__cause__
    return False


def _clear_cache_for_memory_type(
    memory_type: str | None = None, device_id: int | None = None
) -> None:
    """Give back what loaded frameworks and plateflow keep for later.

    Caches of all frameworks, on all devices: memory that one of them keeps is
    what another one lacks.
    """
    gc.collect()
    _core.clear_caches()


def _execute_with_oom_recovery(
    func_callable: Callable[[], Result],
    memory_type: Any,
    max_retries: int = 2,
) -> Result:
    """Call the function, again after out of memory with cleared caches.

    Raises its exception where that is another one, or the last.
    """
    name = str(getattr(memory_type, "value", memory_type))
    for _ in range(max_retries):
        try:
            return func_callable()
        except Exception as error:
            if not _is_oom_error(error, name):
                raise
        # Outside of `except`: the traceback's frames hold the arrays.
        _clear_cache_for_memory_type(name)
    return func_callable()
