"""Converting arrays between memory types: see docs/python-package.md."""

from typing import Any, NoReturn

from plateflow import _core, devices
from plateflow.exceptions import MemoryConversionError
from plateflow.types import (
    VALID_MEMORY_TYPES,
    Conversions,
    MemoryType,
    dtype_name,
)

__all__ = [
    "Converter",
    "conversion_log",
    "convert_memory",
    "detect_memory_type",
    "get_converter",
    "plan_conversion",
]

_METHOD = "plateflow"
_convert = _core.convert
_current = devices.current.get

# Memory types as callers name them. Words that are not here are the core's to
# know: plateflow's own memory types and those of a user's own file.
_names: dict[Any, str] = {
    **{name: name for name in VALID_MEMORY_TYPES},
    **{member: member.value for member in MemoryType},
}


# Memory types of arrays that no framework but plateflow has.
_OWN = ("native", "cuda", "opencl")


def memory_type_name(value: Any, role: str = "memory_type") -> str:
    """Return the word of a memory type; ValueError for an unknown one."""
    name = getattr(value, "value", value)  # of an enum, also somebody else's
    try:
        _core.plan_conversion("numpy", name)
    except Exception:
        known = [*sorted(VALID_MEMORY_TYPES), *_OWN]
        raise ValueError(
            f"Invalid {role} '{name}'. Available types: {known}"
        ) from None
    return str(name)


def words_of(data: Any) -> str:
    """Return what an array is, for messages: "numpy 5x64x64 float32"."""
    try:
        name = _core.detect(data)
    except Exception:
        name = f"{type(data).__module__}.{type(data).__qualname__}"
    shape = getattr(data, "shape", None)
    dtype = getattr(data, "dtype", None)
    if shape is None or dtype is None:
        return name
    size = "x".join(str(int(n)) for n in shape) or "0-dimensional"
    return f"{name} {size} {dtype_name(dtype)}"


def refuse(
    data: Any, source: str, target: str, device: str | None, error: Exception
) -> NoReturn:
    """Raise what a failed call of the core stands for.

    Running out of host memory stays a MemoryError: it says nothing about the
    conversion.
    """
    if isinstance(error, (MemoryError, MemoryConversionError)):
        raise error
    text = str(error).strip() or type(error).__name__
    raise MemoryConversionError(
        source,
        target,
        _METHOD,
        text,
        source=words_of(data),
        target=f"{target} on {device}" if device else target,
    ) from error


def place_of(
    target: str, gpu_id: Any, device: Any, source: str = ""
) -> str | None:
    """Return the core's word for where a result of a call goes."""
    if gpu_id is not None and device is not None:
        raise TypeError("give gpu_id or device, not both")
    place = gpu_id if device is None else device
    if place is None:
        place = _current()
    return devices.word(target, place, source)


def convert_memory(
    data: Any,
    source_type: str | MemoryType,
    target_type: str | MemoryType,
    gpu_id: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Return the array as one of another memory type, copied only if needed.

    data: an array of `source_type`, of any shape and strides. The result may
    share its memory. gpu_id, device: where it goes (see plateflow.devices);
    None: where the array lies, the host for NumPy.

    Raises ValueError for an unknown memory type, MemoryConversionError where
    the array or the device cannot be had.
    """
    try:
        source, target = _names[source_type], _names[target_type]
    except (KeyError, TypeError):
        source = memory_type_name(source_type, "source_type")
        target = memory_type_name(target_type, "target_type")
    if gpu_id is None and device is None and _current() is None:
        place = None
    else:
        place = place_of(target, gpu_id, device, source)
    try:
        return _convert(data, target, place, source)
    except Exception as error:
        refuse(data, source, target, place, error)


def detect_memory_type(data: Any) -> str:
    """Return the memory type of an array; ValueError where it has none."""
    try:
        return _core.detect(data)
    except Exception:
        kind = type(data)
        raise ValueError(
            f"Unknown memory type for {kind} (module: {kind.__module__})"
        ) from None


def plan_conversion(
    source_type: Any,
    target_type: str | MemoryType,
    **facts: Any,
) -> dict[str, Any]:
    """Return which way a conversion will take, before there is any data.

    source_type: a memory type, or an array, whose pixel type and dimensions
    are facts then. facts: what is known of the array: dtype="uint16", ndim=3,
    read_only=True, gaps=True (not in C order), negative=True (a stride is),
    aligned=64 (bytes).

    The result has "mechanism", in words, and "reason" of a copy or refusal.
    """
    target = memory_type_name(target_type, "target_type")
    if isinstance(source_type, (str, MemoryType)):
        source = memory_type_name(source_type, "source_type")
    else:
        source = detect_memory_type(source_type)
        facts.setdefault("dtype", dtype_name(source_type.dtype))
        facts.setdefault("ndim", len(source_type.shape))
    return _core.plan_conversion(source, target, **facts)


def conversion_log() -> list[dict[str, Any]]:
    """Return the last conversions of this process, oldest first.

    Each has "source", "target", "mechanism", "reason" (of a copy), "bytes" and
    "seconds".
    """
    return _core.conversion_log()


class Converter(Conversions):
    """Conversions of arrays of one memory type, by name."""

    def __init__(self, memory_type: str) -> None:
        self.memory_type = memory_type

    @property
    def value(self) -> str:
        """The memory type."""
        return self.memory_type

    def __repr__(self) -> str:
        return f"Converter({self.memory_type!r})"


def get_converter(memory_type: str | MemoryType) -> Converter:
    """Return what converts arrays of a memory type; ValueError if unknown."""
    return Converter(memory_type_name(memory_type))
