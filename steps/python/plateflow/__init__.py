"""plateflow: JSON pipelines of image-processing steps over plates.

The decorators tag step functions with the memory type of their arrays, and
run() runs a pipeline; docs/writing-steps.md says what a step gets and returns.
"""

from plateflow import _core
from plateflow._core import Info
from plateflow._errors import PlateflowError
from plateflow._run import Summary, run
from plateflow.decorators import (
    cupy,
    jax,
    numpy,
    pyclesperanto,
    tensorflow,
    torch,
)

__version__: str = _core.__version__

__all__ = [
    "Info",
    "PlateflowError",
    "Summary",
    "__version__",
    "cupy",
    "jax",
    "numpy",
    "pyclesperanto",
    "run",
    "tensorflow",
    "torch",
]
