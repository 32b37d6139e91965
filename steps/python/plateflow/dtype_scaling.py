"""Changing pixel types as decorated functions do when they are called.

Floats into integers are stretched, from the array's own minimum and maximum to
the type's whole range: the result is not quantitative. Everything else is a
plain cast. Pipelines do neither; their "dtype" says what happens there.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from plateflow.converters import convert_memory
from plateflow.types import MemoryType, dtype_name

__all__ = ["SCALING_FUNCTIONS"]


class _Range(NamedTuple):
    """A stretched value is value * scale - offset, at most top."""

    scale: float
    offset: float
    top: float


# arraybridge stops 128 below the top of int16 and int32; so does this.
_RANGES = {
    "uint8": _Range(255.0, 0.0, 255.0),
    "uint16": _Range(65535.0, 0.0, 65535.0),
    "uint32": _Range(4294967295.0, 0.0, 4294967295.0),
    "uint64": _Range(2.0**64, 0.0, 2.0**64),
    "int8": _Range(255.0, 128.0, 127.0),
    "int16": _Range(65535.0, 32768.0, 32639.0),
    "int32": _Range(4294967295.0, 2147483648.0, 2147483519.0),
    "int64": _Range(2.0**64, 2.0**63, 2.0**63),
}
_HALVES = ("float16", "bfloat16")


def _top(name: str, float_name: str) -> float:
    """Return the range's top as the float that the integer type can hold."""
    import numpy as np

    kind = np.dtype(float_name).type
    top = kind(_RANGES[name].top)
    if int(top) > np.iinfo(name).max:
        top = np.nextafter(top, kind(0))
    return float(top)


class _Ops(NamedTuple):
    """What differs between frameworks, of a module and an array."""

    low: Callable[[Any, Any], Any]
    high: Callable[[Any, Any], Any]
    clip: Callable[[Any, Any, float, float], Any]
    cast: Callable[[Any, Any, str], Any]


_METHODS = _Ops(
    low=lambda _, a: a.min(),
    high=lambda _, a: a.max(),
    clip=lambda _, a, low, high: a.clip(low, high),
    cast=lambda _, a, name: a.astype(name),
)
_OPS = {
    "numpy": _METHODS,
    "cupy": _METHODS,
    "jax": _METHODS,
    "torch": _METHODS._replace(
        cast=lambda torch, a, name: a.to(getattr(torch, name))
    ),
    "tensorflow": _Ops(
        low=lambda tf, a: tf.reduce_min(a),
        high=lambda tf, a: tf.reduce_max(a),
        clip=lambda tf, a, low, high: tf.clip_by_value(a, low, high),
        cast=lambda tf, a, name: tf.cast(a, name),
    ),
}


def _stretch(ops: _Ops, module: Any, array: Any, name: str) -> Any:
    """Return floats stretched over an integer type's range, not yet cast."""
    if dtype_name(array.dtype) in _HALVES:  # 65535 is no float16
        array = ops.cast(module, array, "float32")
    low, high = ops.low(module, array), ops.high(module, array)
    if high <= low:
        return array
    target = _RANGES[name]
    top = _top(name, dtype_name(array.dtype))
    values = (array - low) / (high - low) * target.scale - target.offset
    return ops.clip(module, values, -target.offset, top)


def _check_jax(name: str) -> None:
    """Refuse what JAX would narrow without a word."""
    if not name.endswith("64"):
        return
    jax = importlib.import_module("jax")
    if not jax.config.jax_enable_x64:
        raise ValueError(
            f"JAX {name} output requires x64 mode; set JAX_ENABLE_X64=true "
            "before import"
        )


def _scale(result: Any, target_dtype: Any, mem_type: MemoryType) -> Any:
    """Return the array as `target_dtype`; floats into integers stretched.

    target_dtype: a pixel type of NumPy or of the framework, or its name.
    """
    if not hasattr(result, "dtype"):
        return result
    name = dtype_name(target_dtype)
    if mem_type is MemoryType.PYCLESPERANTO:  # it has no casts of its own
        host = convert_memory(result, mem_type, "numpy")
        scaled = _scale(host, name, MemoryType.NUMPY)
        return convert_memory(scaled, "numpy", mem_type)
    if mem_type is MemoryType.JAX:
        _check_jax(name)
    module = importlib.import_module(mem_type.value)
    ops = _OPS[mem_type.value]
    if "float" in dtype_name(result.dtype) and name in _RANGES:
        result = _stretch(ops, module, result, name)
    return ops.cast(module, result, name)


SCALING_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    member.value: partial(_scale, mem_type=member) for member in MemoryType
}
