"""Stacks [Z,Y,X] from slices [Y,X], and back."""

from collections.abc import Sequence
from typing import Any

from plateflow import _core
from plateflow.converters import (
    convert_memory,
    detect_memory_type,
    memory_type_name,
    place_of,
    refuse,
)
from plateflow.types import MemoryType, dtype_name

__all__ = ["stack_slices", "unstack_slices"]


def _has_ndim(data: Any, ndim: int) -> bool:
    shape = getattr(data, "shape", None)
    return shape is not None and len(shape) == ndim


def _is_2d(data: Any) -> bool:
    return _has_ndim(data, 2)


def _is_3d(data: Any) -> bool:
    return _has_ndim(data, 3)


def _check_slices(slices: Sequence[Any]) -> None:
    """Raise ValueError for slices that are no stack, and say which."""
    for i, plane in enumerate(slices):
        if not _is_2d(plane):
            raise ValueError(
                f"Slice at index {i} is not a 2D array. All slices must be 2D."
            )
    first = tuple(int(n) for n in slices[0].shape)
    for i, plane in enumerate(slices):
        shape = tuple(int(n) for n in plane.shape)
        if shape != first:
            raise ValueError(
                f"Slice at index {i} has the shape {shape}, "
                f"the slice at index 0 has {first}."
            )


def _cast_alike(planes: list[Any]) -> list[Any]:
    """Return slices of the first one's pixel type, if that holds them all."""
    import numpy as np

    wanted = dtype_name(planes[0].dtype)
    cast = []
    for i, plane in enumerate(planes):
        name = dtype_name(plane.dtype)
        if name == wanted:
            cast.append(plane)
            continue
        if not np.can_cast(name, wanted, "safe"):
            raise ValueError(
                f"Slice at index {i} is {name}, which {wanted}, the type of "
                "the slice at index 0, cannot hold: cast it first."
            )
        host = convert_memory(plane, detect_memory_type(plane), "numpy")
        cast.append(host.astype(wanted))
    return cast


def stack_slices(
    slices: Sequence[Any],
    memory_type: str | MemoryType,
    gpu_id: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Return slices [Y,X] of any memory types as one stack [Z,Y,X].

    The stack has one pixel type: the first slice's, into which the others are
    cast if that keeps every value. gpu_id, device: where it goes; None: where
    the first slice lies.

    Raises ValueError where there is no slice, one is not 2D or differs in
    shape, or the memory type is unknown; MemoryConversionError where a slice
    cannot be converted.
    """
    if len(slices) == 0:
        raise ValueError("Cannot stack empty list of slices")
    target = memory_type_name(memory_type)
    place = place_of(target, gpu_id, device)
    planes = slices if isinstance(slices, list) else list(slices)
    try:
        return _core.stack(planes, target, place)
    except Exception as error:
        _check_slices(planes)
        source = detect_memory_type(planes[0])
        if len({dtype_name(plane.dtype) for plane in planes}) == 1:
            refuse(planes[0], source, target, place, error)
    alike = _cast_alike(planes)
    return stack_slices(alike, target, gpu_id, device=device)


def unstack_slices(
    array: Any,
    memory_type: str | MemoryType,
    gpu_id: Any = None,
    validate_slices: bool = True,
    *,
    device: Any = None,
) -> list[Any]:
    """Return the slices [Y,X] of a stack [Z,Y,X] in a memory type.

    They are views of the (converted) stack where the framework has views.
    validate_slices: check that each is 2D. gpu_id, device: as
    convert_memory(). Raises ValueError for an array that is not 3D, and what
    convert_memory() raises.
    """
    source = detect_memory_type(array)
    if not _is_3d(array):
        shape = getattr(array, "shape", "unknown")
        raise ValueError(f"Array must be 3D, got shape {shape}")
    stack = convert_memory(array, source, memory_type, gpu_id, device=device)
    target = memory_type_name(memory_type)
    try:
        slices = _core.unstack(stack)
    except Exception as error:
        refuse(stack, target, target, None, error)
    for i, plane in enumerate(slices if validate_slices else ()):
        if not _is_2d(plane):
            raise ValueError(
                f"Extracted slice at index {i} is not 2D. "
                "This indicates a malformed 3D array."
            )
    return slices
