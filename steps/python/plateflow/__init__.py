"""plateflow: JSON pipelines of image-processing steps over plates.

The decorators tag step functions with the memory type of their arrays, run()
runs a pipeline, and convert_memory() and its like convert arrays between
frameworks. docs/writing-steps.md says what a step gets and returns,
docs/python-package.md names everything here.
"""

from plateflow import _core
from plateflow._core import Info
from plateflow._errors import PlateflowError
from plateflow._lazy import lazy
from plateflow._run import Summary, run
from plateflow.converters import (
    conversion_log,
    convert_memory,
    detect_memory_type,
    plan_conversion,
)
from plateflow.decorators import (
    DtypeConversion,
    cupy,
    jax,
    memory_types,
    numpy,
    pyclesperanto,
    tensorflow,
    torch,
)
from plateflow.devices import HOST, AcceleratorDevice, Device, gpu_context
from plateflow.dtype_scaling import SCALING_FUNCTIONS
from plateflow.exceptions import MemoryConversionError
from plateflow.gpu_cleanup import cleanup_all_gpu_frameworks
from plateflow.oom_recovery import _execute_with_oom_recovery
from plateflow.slice_processing import process_slices
from plateflow.stack_utils import stack_slices, unstack_slices
from plateflow.types import (
    CPU_MEMORY_TYPES,
    GPU_MEMORY_TYPES,
    SUPPORTED_MEMORY_TYPES,
    MemoryType,
)
from plateflow.utils import _ensure_module, _get_device_id, _supports_dlpack

__version__: str = _core.__version__

__all__ = [
    "CPU_MEMORY_TYPES",
    "GPU_MEMORY_TYPES",
    "HOST",
    "SCALING_FUNCTIONS",
    "SUPPORTED_MEMORY_TYPES",
    "AcceleratorDevice",
    "Device",
    "DtypeConversion",
    "Info",
    "MemoryConversionError",
    "MemoryType",
    "PlateflowError",
    "Summary",
    "__version__",
    "_ensure_module",
    "_execute_with_oom_recovery",
    "_get_device_id",
    "_supports_dlpack",
    "cleanup_all_gpu_frameworks",
    "conversion_log",
    "convert_memory",
    "cupy",
    "detect_memory_type",
    "gpu_context",
    "jax",
    "lazy",
    "memory_types",
    "numpy",
    "plan_conversion",
    "process_slices",
    "pyclesperanto",
    "run",
    "stack_slices",
    "tensorflow",
    "torch",
    "unstack_slices",
]
