"""Memory types: whose arrays a function takes and returns.

A member of MemoryType converts arrays of its type by name::

    MemoryType.NUMPY.to_torch(image)        # as convert_memory() does
    MemoryType.TORCH.from_numpy(image, 0)
"""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from plateflow.converters import Converter

T = TypeVar("T")
ConversionFunc = Callable[[Any], Any]


def dtype_name(dtype: Any) -> str:
    """Return NumPy's name of any framework's pixel type: "uint16"."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return str(name or dtype).rpartition(".")[2]


class Conversions:
    """Conversions by name, of a memory type `value`.

    gpu_id: as convert_memory() takes it.
    """

    if TYPE_CHECKING:  # an enum's member has it by itself

        @property
        def value(self) -> str:
            """The memory type's word."""

    def _to(self, target: str, data: Any, gpu_id: Any) -> Any:
        from plateflow.converters import convert_memory

        return convert_memory(data, self.value, target, gpu_id)

    def _from(self, source: str, data: Any, gpu_id: Any) -> Any:
        from plateflow.converters import convert_memory

        return convert_memory(data, source, self.value, gpu_id)

    def to_numpy(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array of this memory type as NumPy's."""
        return self._to("numpy", data, gpu_id)

    def to_cupy(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array of this memory type as CuPy's."""
        return self._to("cupy", data, gpu_id)

    def to_torch(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array of this memory type as torch's."""
        return self._to("torch", data, gpu_id)

    def to_tensorflow(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array of this memory type as TensorFlow's."""
        return self._to("tensorflow", data, gpu_id)

    def to_jax(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array of this memory type as JAX's."""
        return self._to("jax", data, gpu_id)

    def to_pyclesperanto(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array of this memory type as pyclesperanto's."""
        return self._to("pyclesperanto", data, gpu_id)

    def from_numpy(self, data: Any, gpu_id: Any = None) -> Any:
        """Return NumPy's array as one of this memory type."""
        return self._from("numpy", data, gpu_id)

    def from_dlpack(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array that has __dlpack__ as one of this memory type."""
        from plateflow.converters import detect_memory_type

        return self._from(detect_memory_type(data), data, gpu_id)

    def move_to_device(self, data: Any, gpu_id: Any = None) -> Any:
        """Return an array of this memory type on the device."""
        return self._to(self.value, data, gpu_id)


class MemoryType(Conversions, Enum):
    """The six frameworks."""

    NUMPY = "numpy"
    CUPY = "cupy"
    TORCH = "torch"
    TENSORFLOW = "tensorflow"
    JAX = "jax"
    PYCLESPERANTO = "pyclesperanto"

    @property
    def converter(self) -> "Converter":
        """What converts arrays of this memory type."""
        from plateflow.converters import get_converter

        return get_converter(self.value)


CPU_MEMORY_TYPES: set[MemoryType] = {MemoryType.NUMPY}
GPU_MEMORY_TYPES: set[MemoryType] = set(MemoryType) - CPU_MEMORY_TYPES
SUPPORTED_MEMORY_TYPES: set[MemoryType] = CPU_MEMORY_TYPES | GPU_MEMORY_TYPES

VALID_MEMORY_TYPES: set[str] = {member.value for member in MemoryType}
VALID_GPU_MEMORY_TYPES: set[str] = {
    member.value for member in GPU_MEMORY_TYPES
}

MEMORY_TYPE_NUMPY = MemoryType.NUMPY.value
MEMORY_TYPE_CUPY = MemoryType.CUPY.value
MEMORY_TYPE_TORCH = MemoryType.TORCH.value
MEMORY_TYPE_TENSORFLOW = MemoryType.TENSORFLOW.value
MEMORY_TYPE_JAX = MemoryType.JAX.value
MEMORY_TYPE_PYCLESPERANTO = MemoryType.PYCLESPERANTO.value
