"""Calling a function of [Y,X] on each slice of a stack [Z,Y,X]."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plateflow.converters import detect_memory_type
from plateflow.stack_utils import stack_slices, unstack_slices

__all__ = ["process_slices"]


def _check_alike(results: list[Any]) -> None:
    """Raise where some slices gave a tuple and others none, or longer ones."""
    kinds = [len(r) if isinstance(r, tuple) else None for r in results]
    for i, kind in enumerate(kinds):
        if kind == 0:
            raise ValueError("Slice processing result tuples cannot be empty")
        if (kind is None) != (kinds[0] is None):
            raise TypeError(
                "Slice processing cannot mix tuple and non-tuple results; "
                f"slice {i} returned {type(results[i]).__name__}."
            )
        if kind != kinds[0]:
            raise ValueError(
                "Slice processing requires every result tuple to have the "
                f"same arity; slice {i} returned {kind}, expected {kinds[0]}."
            )


def process_slices(
    image: Any,
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    gpu_id: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Call func(slice, *args, **kwargs) for each slice and stack the results.

    image: a stack [Z,Y,X], whose memory type the result has too. Where the
    function returns tuples, the result is a tuple: the stack, then a list per
    further item. gpu_id, device: where the slices go; None: where the image
    lies.
    """
    memory_type = detect_memory_type(image)
    where: dict[str, Any] = {"gpu_id": gpu_id, "device": device}
    slices = unstack_slices(image, memory_type, **where)
    results = [func(plane, *args, **kwargs) for plane in slices]
    _check_alike(results)
    if not results or not isinstance(results[0], tuple):
        return stack_slices(results, memory_type, **where)
    main, *others = (list(column) for column in zip(*results, strict=True))
    return (stack_slices(main, memory_type, **where), *others)
