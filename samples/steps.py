"""Python steps to copy from.

A step is a function of one stack, an array [Z, Y, X]; its other arguments are
the step's "parameters" in the pipeline. It owns the stack: it may write into
it and return it. What it returns is again [Z, Y, X], of the same Y and X, or
a tuple of a stack and tables, or tables alone.

The decorator says which arrays the function takes and returns, so that the
pipeline need not. quickstart.json uses `subtract_background`.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import plateflow

Stack = npt.NDArray[Any]


@plateflow.numpy
def subtract_background(stack: Stack, size: int = 64) -> Stack:
    """Subtract the smooth background of each plane; never below 0.

    `size` is the side, in pixels, of the tiles that the background is
    estimated in: several times the diameter of what is to be kept. The
    element type stays as it is.
    """
    for plane in stack:
        background = _background(plane, size).astype(stack.dtype)
        plane -= np.minimum(plane, background)
    return stack


def _background(plane: Stack, size: int) -> npt.NDArray[np.float64]:
    """Tenth percentile of each tile, interpolated to every pixel."""
    rows, columns = (_tiles(length, size) for length in plane.shape)
    levels = np.array(
        [[np.percentile(plane[y, x], 10) for x in columns] for y in rows]
    )
    y, x = (np.arange(length) for length in plane.shape)
    along_x = np.array([np.interp(x, _centres(columns), r) for r in levels])
    return np.array(
        [np.interp(y, _centres(rows), c) for c in along_x.T]
    ).T.round()


def _tiles(length: int, size: int) -> list[slice]:
    """Cut a length into tiles of about `size`."""
    edges = np.linspace(0, length, max(1, round(length / size)) + 1).astype(
        int
    )
    return [slice(a, b) for a, b in pairwise(edges)]


def _centres(tiles: list[slice]) -> list[float]:
    return [(tile.start + tile.stop - 1) / 2 for tile in tiles]


@plateflow.numpy
class Gamma:
    """Brighten what is dim: (pixel / full scale) ** gamma * full scale.

    A class is made once, with the parameters, and then called for each stack:
    the place for what is expensive to make, here a table of all values.
    """

    def __init__(self, gamma: float = 0.5, full_scale: int = 65535) -> None:
        values = np.minimum(np.arange(65536) / full_scale, 1)
        self._table = (values**gamma * full_scale).round().astype(np.uint16)

    def __call__(self, stack: npt.NDArray[np.uint16]) -> Stack:
        """Look every pixel of the stack up in the table."""
        return self._table[stack]


@plateflow.numpy
def sharpest(
    stack: Stack, info: plateflow.Info
) -> tuple[Stack, list[dict[str, float]]]:
    """Keep the sharpest plane of each stack, and tell which one it is.

    In the pipeline: `"yields": "one", "tables": ["focus"]`. `info` is the
    group: its components, and for each plane what is known of it.
    """
    scores = list(_sharpness(stack))
    best = int(np.argmax(scores))
    info.log(f"plane {best + 1} of {len(stack)} is the sharpest")
    row = {"plane": best, "sharpness": scores[best], "planes": len(stack)}
    return stack[best : best + 1], [row]


def _sharpness(stack: Stack) -> Iterator[float]:
    """Variance of each plane's gradient, in squared grey levels."""
    for plane in stack:
        dy, dx = np.gradient(plane.astype(np.float32))
        yield float(np.var(dy) + np.var(dx))


@plateflow.numpy
def levels(stack: Stack, bins: int = 64) -> dict[str, npt.NDArray[Any]]:
    """Histogram of each stack, as a table of one row per bin.

    In the pipeline: `"result": "none", "tables": ["levels"]`. A table is a
    list of rows, a dict of columns, a structured array or a DataFrame.
    """
    counts, edges = np.histogram(stack, bins)
    return {"from": edges[:-1], "to": edges[1:], "pixels": counts}
