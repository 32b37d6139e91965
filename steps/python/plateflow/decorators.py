"""Decorators that say what a step function takes and returns.

Each works bare and with arguments::

    @plateflow.numpy
    def smooth(stack, sigma=1.0): ...

    @plateflow.torch(output_type="numpy", result="labels")
    class Segment: ...

A tagged function takes and returns 3D stacks ``[Z, Y, X]``. A pipeline uses
the function itself and its tags. Who calls the decorated function gets, as in
arraybridge, its result in the input's pixel type; see docs/python-package.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial, update_wrapper, wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload
from weakref import WeakKeyDictionary

from plateflow.types import VALID_MEMORY_TYPES, MemoryType, dtype_name

if TYPE_CHECKING:
    import inspect

__all__ = [
    "PRESERVE_INPUT_DTYPE_CONFIG",
    "DtypeConversion",
    "DtypeConversionConfig",
    "PreserveInputDtypeConfig",
    "SliceBySliceRuntimeParameter",
    "cupy",
    "jax",
    "memory_types",
    "numpy",
    "pyclesperanto",
    "tensorflow",
    "torch",
]

Step = TypeVar("Step", bound=Callable[..., Any])

MEMORY_TYPES = tuple(member.value for member in MemoryType)
RESULTS = ("image", "labels", "none")
COMPONENTS = ("plate", "well", "site", "timepoint", "channel", "z")
YIELDS = ("same", "one", *COMPONENTS)


# ------------------------------------------------ pixel types of a call


class DtypeConversion(Enum):
    """The pixel type of what a call of a decorated function returns."""

    PRESERVE_INPUT = "preserve"  # the input's
    NATIVE_OUTPUT = "native"  # as the function returned it
    UINT8 = "uint8"
    UINT16 = "uint16"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def numpy_dtype(self) -> Any:
        """NumPy's scalar type, or None for the first two."""
        import numpy as np

        if self.value in ("preserve", "native"):
            return None
        return np.dtype(self.value).type


class _Parameter:
    """A keyword that a decorator adds to a function."""

    @classmethod
    def require_parameter_name(cls) -> str:
        """Return the keyword."""
        raise NotImplementedError

    @classmethod
    def default_value(cls) -> Any:
        """Return its default."""
        raise NotImplementedError

    @classmethod
    def annotation_type(cls) -> type:
        """Return its type."""
        raise NotImplementedError

    @classmethod
    def parameter(cls) -> "inspect.Parameter":
        """Return it as a signature has it."""
        import inspect

        return inspect.Parameter(
            cls.require_parameter_name(),
            inspect.Parameter.KEYWORD_ONLY,
            default=cls.default_value(),
            annotation=cls.annotation_type(),
        )


class DtypeConversionConfig(_Parameter, ABC):
    """What `dtype_config` takes: anything with `default_dtype_conversion`."""

    @property
    @abstractmethod
    def default_dtype_conversion(self) -> DtypeConversion:
        """The pixel type of the result."""

    @classmethod
    def require_parameter_name(cls) -> str:
        """Return the keyword."""
        return "dtype_config"

    @classmethod
    def default_value(cls) -> "DtypeConversionConfig":
        """Return its default: the input's type."""
        return PRESERVE_INPUT_DTYPE_CONFIG

    @classmethod
    def annotation_type(cls) -> type:
        """Return its type."""
        return DtypeConversionConfig


@dataclass(frozen=True, slots=True)
class PreserveInputDtypeConfig(DtypeConversionConfig):
    """A dtype_config by its value."""

    default_dtype_conversion: DtypeConversion = DtypeConversion.PRESERVE_INPUT


PRESERVE_INPUT_DTYPE_CONFIG = PreserveInputDtypeConfig()


class SliceBySliceRuntimeParameter(_Parameter):
    """The keyword `slice_by_slice`: call the function per slice [Y,X]."""

    @classmethod
    def require_parameter_name(cls) -> str:
        """Return the keyword."""
        return "slice_by_slice"

    @classmethod
    def default_value(cls) -> bool:
        """Return its default."""
        return False

    @classmethod
    def annotation_type(cls) -> type:
        """Return its type."""
        return bool


def _conversion_of(config: Any) -> DtypeConversion:
    """Return the conversion that a dtype_config asks for.

    It may be the config, the conversion itself, or its word.
    """
    return DtypeConversion(getattr(config, "default_dtype_conversion", config))


def _with_dtype(
    array: Any, conversion: DtypeConversion, source: Any, output_type: str
) -> Any:
    """Return the function's array in the pixel type that was asked for."""
    from plateflow.dtype_scaling import SCALING_FUNCTIONS

    if not hasattr(array, "dtype"):
        return array
    wanted: Any = conversion.value
    if conversion is DtypeConversion.NATIVE_OUTPUT:
        return array
    if conversion is DtypeConversion.PRESERVE_INPUT:
        wanted = source
    if wanted is None or dtype_name(array.dtype) == dtype_name(wanted):
        return array
    return SCALING_FUNCTIONS[output_type](array, wanted)


# ------------------------------------------------------- what is called

# Decorated functions and what they decorate. The engine calls the latter.
_decorated: "WeakKeyDictionary[Any, Callable[..., Any]]" = WeakKeyDictionary()
_TAGS = (
    "input_memory_type",
    "output_memory_type",
    "execution_memory_type",
    "__processing_contract__",
    "__plateflow__",
)


def undecorated(step: Any) -> Any:
    """Return the function that a decorator of this module was given.

    It has the tags of the outermost decorator: of the function that is
    called, not of what others made of the same function.
    """
    function = step
    while isinstance(function, type(undecorated)) and function in _decorated:
        function = _decorated[function]
    if function is step:
        return step
    bare = update_wrapper(partial(function), function)
    for name in _TAGS:
        if hasattr(step, name):
            setattr(bare, name, getattr(step, name))
    return bare


def _checked(
    function: Callable[..., Any], contract: Any
) -> Callable[..., Any]:
    """Return the function, its result shown to the contract if callable."""
    if not callable(contract):
        return function

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if not contract(result):
            name = getattr(function, "__name__", repr(function))
            raise ValueError(f"Function {name} violated its output contract")
        return result

    return checked


class _Call:
    """What a decorator adds around a call of a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        memory_type: str,
        output_type: str,
        oom_recovery: bool,
        gpu_id: Any,
    ) -> None:
        self.function = function
        self.memory_type = memory_type
        self.output_type = output_type
        # NumPy keeps no memory that could be given back.
        self.oom_recovery = oom_recovery and memory_type != "numpy"
        self.gpu_id = gpu_id

    def once(self, args: Any, kwargs: Any, by_slice: bool, config: Any) -> Any:
        """Call the function with the arguments of one call."""
        from plateflow.slice_processing import process_slices

        image = args[0] if args else next(iter(kwargs.values()), None)
        source = getattr(image, "dtype", None)
        if by_slice and args and len(getattr(image, "shape", ())) == 3:
            result = process_slices(
                image, self.function, args[1:], kwargs, self.gpu_id
            )
        else:
            result = self.function(*args, **kwargs)
        conversion = _conversion_of(config)
        convert = partial(
            _with_dtype,
            conversion=conversion,
            source=source,
            output_type=self.output_type,
        )
        if isinstance(result, tuple):
            return (*map(convert, result[:1]), *result[1:])
        return convert(result)

    def __call__(self, args: Any, kwargs: Any) -> Any:
        """Call it, again where memory ran out, on the device if one is set."""
        from plateflow.devices import gpu_context
        from plateflow.oom_recovery import _execute_with_oom_recovery

        by_slice = kwargs.pop("slice_by_slice", False)
        config = kwargs.pop("dtype_config", PRESERVE_INPUT_DTYPE_CONFIG)
        call = partial(self.once, args, kwargs, by_slice, config)
        if self.gpu_id is not None:
            with gpu_context(self.gpu_id):
                return self._try(call, _execute_with_oom_recovery)
        return self._try(call, _execute_with_oom_recovery)

    def _try(
        self, call: Callable[[], Any], recover: Callable[..., Any]
    ) -> Any:
        if not self.oom_recovery:
            return call()
        return recover(call, self.memory_type)


def _signature(function: Callable[..., Any]) -> Any:
    """Return the signature with the two keywords; None if it has none."""
    import inspect

    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    parameters = list(signature.parameters.values())
    n = len(parameters)
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        n -= 1
    added = [
        keyword.parameter()
        for keyword in (SliceBySliceRuntimeParameter, DtypeConversionConfig)
        if keyword.require_parameter_name() not in signature.parameters
    ]
    parameters[n:n] = added
    return signature.replace(parameters=parameters)


def _wrap(function: Callable[..., Any], call: _Call) -> Callable[..., Any]:
    """Return the decorated function."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return call(args, kwargs)

    signature = _signature(function)
    if signature is not None:
        wrapper.__signature__ = signature  # type: ignore[attr-defined]
    return wrapper


# ------------------------------------------------------------ decorators


class Decorator(Protocol):
    """A decorator of one memory type, bare or with arguments."""

    @overload
    def __call__(self, function: Step, /) -> Step: ...

    @overload
    def __call__(
        self,
        *,
        input_type: str | None = None,
        output_type: str | None = None,
        oom_recovery: bool = True,
        contract: Any = None,
        gpu_id: Any = None,
        result: str | None = None,
        yields: str | None = None,
        resizes: bool | None = None,
    ) -> Callable[[Step], Step]: ...


def _one_of(word: str | None, known: tuple[str, ...], name: str) -> None:
    if word is not None and word not in known:
        message = f"{name}={word!r} is none of {', '.join(known)}"
        raise ValueError(message)


def _memory_type(value: Any, name: str, otherwise: str) -> str:
    """Return the word of a memory type, which may be a MemoryType too."""
    word = getattr(value, "value", value)
    if word is not None and word not in VALID_MEMORY_TYPES:
        from plateflow.converters import memory_type_name

        try:
            return memory_type_name(word)  # one of a user's own file
        except ValueError:
            _one_of(str(word), MEMORY_TYPES, name)
    return str(word or otherwise)


def _tag(step: Any, input_type: str, output_type: str, contract: Any) -> None:
    # The names that arraybridge and its users look for.
    step.input_memory_type = input_type
    step.output_memory_type = output_type
    if contract is not None and not callable(contract):
        step.__processing_contract__ = contract


def memory_types(
    input_type: str | MemoryType,
    output_type: str | MemoryType,
    contract: Any = None,
) -> Callable[[Step], Step]:
    """Tag a function with its memory types, and check its result.

    contract: called with each result, which raises ValueError where it says
    no; what is not callable becomes the tag __processing_contract__.
    """
    source = _memory_type(input_type, "input_type", "")
    target = _memory_type(output_type, "output_type", "")

    def decorate(function: Any) -> Any:
        checked = _checked(function, contract)
        step = function
        if not isinstance(function, type):

            @wraps(function)
            def step(*args: Any, **kwargs: Any) -> Any:
                return checked(*args, **kwargs)

            _decorated[step] = function
        _tag(step, source, target, contract)
        return step

    return decorate


def _make(memory_type: str) -> Decorator:
    def decorator(
        function: Any = None,
        /,
        *,
        input_type: str | None = None,
        output_type: str | None = None,
        oom_recovery: bool = True,
        contract: Any = None,
        gpu_id: Any = None,
        result: str | None = None,
        yields: str | None = None,
        resizes: bool | None = None,
    ) -> Any:
        source = _memory_type(input_type, "input_type", memory_type)
        target = _memory_type(output_type, "output_type", memory_type)
        _one_of(result, RESULTS, "result")
        _one_of(yields, YIELDS, "yields")
        traits = {"result": result, "yields": yields, "resizes": resizes}

        def decorate(function: Any) -> Any:
            step = function
            if not isinstance(function, type):
                checked = _checked(function, contract)
                call = _Call(
                    checked, memory_type, target, oom_recovery, gpu_id
                )
                step = _wrap(function, call)
                _decorated[step] = function
            _tag(step, source, target, contract)
            step.execution_memory_type = memory_type
            step.__plateflow__ = {
                key: value
                for key, value in traits.items()
                if value is not None
            }
            return step

        return decorate if function is None else decorate(function)

    decorator.__name__ = decorator.__qualname__ = memory_type
    decorator.__doc__ = f"""Tag a step whose arrays are {memory_type}'s.

    input_type, output_type: the memory type on one side, where it is another.
    result: "image", "labels" (an integer label image) or "none" (tables only).
    yields: how deep the result is: "same", "one", or a component.
    resizes: whether Y and X may change.

    Who calls the function can give slice_by_slice=True and dtype_config=...;
    for such calls alone are
    oom_recovery: clear caches and call again where memory ran out.
    contract: called with the result; ValueError where it says no.
    gpu_id: where what is converted inside goes.
    """
    return decorator


numpy: Decorator = _make("numpy")
cupy: Decorator = _make("cupy")
torch: Decorator = _make("torch")
tensorflow: Decorator = _make("tensorflow")
jax: Decorator = _make("jax")
pyclesperanto: Decorator = _make("pyclesperanto")
