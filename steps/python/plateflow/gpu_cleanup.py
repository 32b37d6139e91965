"""Giving back memory that frameworks keep for later."""

from collections.abc import Callable

from plateflow.oom_recovery import _clear_cache_for_memory_type

__all__ = [
    "MEMORY_TYPE_CLEANUP_REGISTRY",
    "cleanup_all_gpu_frameworks",
    "cleanup_cupy_gpu",
    "cleanup_jax_gpu",
    "cleanup_numpy_gpu",
    "cleanup_pyclesperanto_gpu",
    "cleanup_tensorflow_gpu",
    "cleanup_torch_gpu",
]

_Cleanup = Callable[..., None]


def cleanup_all_gpu_frameworks(device_id: int | None = None) -> None:
    """Give back what all loaded frameworks and plateflow keep.

    device_id: taken for compatibility; the caches of all devices are emptied.
    """
    _clear_cache_for_memory_type(None, device_id)


def cleanup_numpy_gpu(device_id: int | None = None) -> None:
    """Do nothing: NumPy keeps nothing on a GPU."""


def _of(name: str) -> _Cleanup:
    def cleanup(device_id: int | None = None) -> None:
        _clear_cache_for_memory_type(name, device_id)

    cleanup.__name__ = cleanup.__qualname__ = f"cleanup_{name}_gpu"
    cleanup.__doc__ = f"Give back what {name} keeps for later."
    return cleanup


cleanup_cupy_gpu = _of("cupy")
cleanup_torch_gpu = _of("torch")
cleanup_tensorflow_gpu = _of("tensorflow")
cleanup_jax_gpu = _of("jax")
cleanup_pyclesperanto_gpu = _of("pyclesperanto")

MEMORY_TYPE_CLEANUP_REGISTRY: dict[str, _Cleanup] = {
    "numpy": cleanup_numpy_gpu,
    "cupy": cleanup_cupy_gpu,
    "torch": cleanup_torch_gpu,
    "tensorflow": cleanup_tensorflow_gpu,
    "jax": cleanup_jax_gpu,
    "pyclesperanto": cleanup_pyclesperanto_gpu,
}
