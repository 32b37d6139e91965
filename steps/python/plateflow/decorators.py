"""Decorators that say what a step function takes and returns.

A decorator tags the function and returns it unchanged: it can still be called
and tested as before. Each works bare and with arguments::

    @plateflow.numpy
    def smooth(stack, sigma=1.0): ...

    @plateflow.torch(output_type="numpy", result="labels")
    class Segment: ...

A tagged function takes and returns 3D stacks ``[Z, Y, X]``.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

Step = TypeVar("Step", bound=Callable[..., Any])

MEMORY_TYPES = (
    "numpy",
    "cupy",
    "torch",
    "tensorflow",
    "jax",
    "pyclesperanto",
)
RESULTS = ("image", "labels", "none")
COMPONENTS = ("plate", "well", "site", "timepoint", "channel", "z")
YIELDS = ("same", "one", *COMPONENTS)


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
        result: str | None = None,
        yields: str | None = None,
        resizes: bool | None = None,
    ) -> Callable[[Step], Step]: ...


def _one_of(word: str | None, known: tuple[str, ...], name: str) -> None:
    if word is not None and word not in known:
        message = f"{name}={word!r} is none of {', '.join(known)}"
        raise ValueError(message)


def _make(memory_type: str) -> Decorator:
    def decorator(
        function: Any = None,
        /,
        *,
        input_type: str | None = None,
        output_type: str | None = None,
        result: str | None = None,
        yields: str | None = None,
        resizes: bool | None = None,
    ) -> Any:
        _one_of(input_type, MEMORY_TYPES, "input_type")
        _one_of(output_type, MEMORY_TYPES, "output_type")
        _one_of(result, RESULTS, "result")
        _one_of(yields, YIELDS, "yields")

        def tag(step: Step) -> Step:
            traits = {"result": result, "yields": yields, "resizes": resizes}
            tags = {
                # The names that arraybridge and its users look for.
                "input_memory_type": input_type or memory_type,
                "output_memory_type": output_type or memory_type,
                "__plateflow__": {
                    key: value
                    for key, value in traits.items()
                    if value is not None
                },
            }
            for name, value in tags.items():
                setattr(step, name, value)
            return step

        return tag if function is None else tag(function)

    decorator.__name__ = decorator.__qualname__ = memory_type
    decorator.__doc__ = f"""Tag a step whose arrays are {memory_type}'s.

    input_type, output_type: the memory type on one side, where it is another.
    result: "image", "labels" (an integer label image) or "none" (tables only).
    yields: how deep the result is: "same", "one", or a component.
    resizes: whether Y and X may change.
    """
    return decorator


numpy: Decorator = _make("numpy")
cupy: Decorator = _make("cupy")
torch: Decorator = _make("torch")
tensorflow: Decorator = _make("tensorflow")
jax: Decorator = _make("jax")
pyclesperanto: Decorator = _make("pyclesperanto")
