"""Where an array lies, for the functions that take a gpu_id or a device.

gpu_id counts: GPUs in PCI order for cupy, torch, tensorflow and jax, OpenCL
devices in the loader's order for pyclesperanto. A device is one of HOST and
AcceleratorDevice(n), arraybridge's own such objects, or a word: "cpu", "host",
"gpu:0", "opencl:1".
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from plateflow import _core
from plateflow.exceptions import MemoryConversionError

__all__ = ["HOST", "AcceleratorDevice", "Device", "HostDevice", "gpu_context"]


class Device:
    """A place where arrays lie."""

    __slots__ = ()

    @property
    def label(self) -> str:
        """Its name in messages."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class HostDevice(Device):
    """The host's memory."""

    @property
    def label(self) -> str:
        """Its name in messages."""
        return "host"


@dataclass(frozen=True, slots=True)
class AcceleratorDevice(Device):
    """A GPU, or an OpenCL device, by its number."""

    index: int

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"accelerator:{self.index}"


HOST = HostDevice()

# Memory types whose arrays lie on the host alone: they ignore a gpu_id.
_ON_HOST = ("numpy", "native")
# What a gpu_id counts, where it is not GPUs.
_KINDS = {"pyclesperanto": "opencl", "opencl": "opencl"}
# Frameworks whose device 0 is the CPU on a machine without a GPU.
_FALL_BACK = ("jax", "tensorflow")

# What gpu_context() says, for calls that say nothing.
current: ContextVar[Any] = ContextVar("plateflow device", default=None)


@cache
def _count(kind: str) -> int:
    """Return how many devices of a kind there are; they do not come and go."""
    return _core.device_count(kind)


def _number(value: Any) -> int | None:
    """Return a gpu_id as an int; None for what is no number."""
    index = getattr(value, "__index__", None)
    if index is None or isinstance(value, bool):
        return None
    number: int = index()
    if number < 0:
        text = f"Invalid GPU device ID: {number}. "
        raise ValueError(text + "Must be a non-negative integer.")
    return number


def _numbered(memory_type: str, number: int, source: str) -> str | None:
    """Return the core's word for a device that a gpu_id counts."""
    kind = _KINDS.get(memory_type, "gpu")
    n = _count(kind)
    if n == 0 and number == 0 and memory_type in _FALL_BACK:
        return None
    if number >= n:
        known = f"are {n}, from {kind}:0 on" if n else "is none"
        text = f"there is no device {kind}:{number} here: there {known}"
        place = f"{memory_type} on {kind}:{number}"
        raise MemoryConversionError(
            source, memory_type, "device selection", text, target=place
        )
    # The only one is where its arrays are in any case.
    return None if kind == "opencl" and n == 1 else f"{kind}:{number}"


def word(memory_type: str, place: Any, source: str = "") -> str | None:
    """Return a gpu_id or a device as the core's word for it.

    None is the array's own device, the host for what lies on the host. Raises
    MemoryConversionError for a device that does not exist. source: where the
    array comes from, for its message.
    """
    source = source or memory_type
    if place is None or memory_type in _ON_HOST:
        return None
    number = _number(place)
    if number is not None:
        return _numbered(memory_type, number, source)
    label = getattr(place, "label", place)
    if not isinstance(label, str):
        raise TypeError(f"{place!r} is no device and no gpu_id")
    kind, _, index = label.partition(":")
    if kind in ("accelerator", "gpu", "opencl") and index.isdecimal():
        return _numbered(memory_type, int(index), source)
    return "cpu" if label == "host" else label


@contextmanager
def gpu_context(gpu_id: Any = None, *, device: Any = None) -> Iterator[Any]:
    """Let conversions that name no device go to this one.

    ::

        with plateflow.gpu_context(1):
            tensor = plateflow.convert_memory(image, "numpy", "torch")

    Yields what was given. It holds for the running thread or asyncio task, and
    for what decorated functions do with slices; frameworks' own current
    devices stay as they are.
    """
    place = gpu_id if device is None else device
    _number(place)
    token = current.set(place)
    try:
        yield place
    finally:
        current.reset(token)
