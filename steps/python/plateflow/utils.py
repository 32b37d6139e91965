"""Optional modules, and what an array tells of itself."""

import importlib
from typing import Any

from plateflow import devices
from plateflow.converters import convert_memory, memory_type_name

# DLPack's numbers of the devices that have an index of their own.
_ACCELERATORS = (2, 4, 10, 13)


class _ModulePlaceholder:
    """What stands for a module that is not there: false, and not callable.

    Its attributes are placeholders too, so that annotations can name them.
    """

    def __init__(self, module_name: str) -> None:
        self._module_name = module_name

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> "_ModulePlaceholder":
        return _ModulePlaceholder(f"{self._module_name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ImportError(
            f"Module '{self._module_name}' is not available. "
            "Please install the required dependency."
        )

    def __repr__(self) -> str:
        return f"<ModulePlaceholder for '{self._module_name}'>"


def optional_import(module_name: str) -> Any:
    """Return the module, or a placeholder that is false."""
    try:
        return importlib.import_module(module_name)
    except (ImportError, AttributeError):
        return _ModulePlaceholder(module_name)


def _ensure_module(module_name: str) -> Any:
    """Return the module; ImportError where it is not there."""
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        raise ImportError(
            f"Module {module_name} is required for this operation "
            "but is not installed"
        ) from error


def _supports_cuda_array_interface(obj: Any) -> bool:
    return hasattr(obj, "__cuda_array_interface__")


def _supports_dlpack(obj: Any) -> bool:
    return any(
        hasattr(obj, name) for name in ("__dlpack__", "toDlpack", "to_dlpack")
    )


def _get_device_id(data: Any, memory_type: str) -> int | None:
    """Return the number of the device that the array is on; None: the host."""
    if memory_type_name(memory_type) == "numpy":
        return None
    kind, index = data.__dlpack_device__()
    return int(index) if int(kind) in _ACCELERATORS else None


def _set_device(memory_type: str, device_id: int) -> None:
    """Let conversions that name no device go to this one, from here on."""
    devices.current.set(None if memory_type == "numpy" else device_id)


def _move_to_device(data: Any, memory_type: str, device_id: int) -> Any:
    """Return the array on the device, as convert_memory() does."""
    return convert_memory(data, memory_type, memory_type, device_id)
