"""Chains of conversions that are done at once, at their end."""

from typing import Any

from plateflow.converters import (
    convert_memory,
    detect_memory_type,
    memory_type_name,
    plan_conversion,
)
from plateflow.types import MemoryType


class Lazy:
    """An array on its way: see lazy()."""

    __slots__ = ("_array", "_place", "_result", "_source", "_target")

    def __init__(
        self, array: Any, source: str, target: str, place: dict[str, Any]
    ) -> None:
        self._array = array
        self._source = source
        self._target = target
        self._place = place
        self._result: Any = None

    @property
    def memory_type(self) -> str:
        """The memory type that get() returns."""
        return self._target

    def to(
        self,
        memory_type: str | MemoryType,
        gpu_id: Any = None,
        *,
        device: Any = None,
    ) -> "Lazy":
        """Return the chain with another end; nothing is converted."""
        target = memory_type_name(memory_type)
        place = {"gpu_id": gpu_id, "device": device}
        return Lazy(self._array, self._source, target, place)

    def plan(self) -> dict[str, Any]:
        """Return which way get() will take, as plan_conversion() does."""
        return plan_conversion(self._array, self._target)

    def get(self) -> Any:
        """Return the array at the end of the chain, converted once."""
        if self._result is None:
            self._result = convert_memory(
                self._array, self._source, self._target, **self._place
            )
        return self._result

    def __repr__(self) -> str:
        return f"<lazy {self._source} to {self._target}>"


def lazy(array: Any) -> Lazy:
    """Begin a chain of conversions that converts once, at its end.

    ::

        plateflow.lazy(image).to("torch").to("jax").get()   # never in torch

    What comes between is passed over: a pixel type that torch cannot hold is
    no reason to refuse here.
    """
    name = detect_memory_type(array)
    return Lazy(array, name, name, {})
