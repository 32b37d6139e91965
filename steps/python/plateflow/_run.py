"""Running a pipeline from Python."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from plateflow import _core
from plateflow._errors import PlateflowError

Path = str | os.PathLike[str]

_CANNOT_RUN = (2, 3)
_BUG = 1


class Summary(dict[str, Any]):
    """What OUT/run.json says, and how the run ended.

    status: the exit status: 0 all done, 4 some groups failed, 5 all failed.
    message: the closing lines, as the program prints them.
    """

    def __init__(
        self, values: Mapping[str, Any], status: int, message: str
    ) -> None:
        super().__init__(values)
        self.status = status
        self.message = message


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return str(value)


def _flag(name: str, value: Any) -> list[str]:
    """Return the words of one option on the command line."""
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, Mapping):  # only={"well": ["A01"]}
        words = [f"{key}={_words(item)}" for key, item in value.items()]
        return [word for pair in words for word in (flag, pair)]
    if name in ("only", "set") and isinstance(value, (list, tuple)):
        return [word for item in value for word in (flag, str(item))]
    return [flag, _words(value)]


def _summary(out: Path) -> dict[str, Any]:
    path = os.path.join(os.fspath(out), "run.json")
    try:
        with open(path, encoding="utf-8") as file:
            loaded = json.load(file)
    except FileNotFoundError:  # it stopped before there was anything to say
        return {}
    return dict(loaded)


def run(pipeline: Path, plate: Path, out: Path, **options: Any) -> Summary:
    """Run the pipeline file over the plate's folder, into the folder `out`.

    Options are those of ``plateflow run``: ``workers=4``, ``fresh=True``,
    ``only={"well": ["A01", "B02"]}``, ``set={"denoise.sigma": 2}``,
    ``until="denoise"``, ``on_error="stop"``, ``tolerate=5``.

    Returns the summary, also when groups failed (see its `status`). Raises
    PlateflowError where the run could not start: the pipeline, the plate or an
    argument is wrong (status 2), or something is missing (3). Nothing is
    printed by plateflow; Ctrl-C finishes what is running, then raises
    KeyboardInterrupt. Call it from the main thread.
    """
    argv = ["plateflow", "run", "-o", os.fspath(out)]
    for name, value in options.items():
        argv += _flag(name, value)
    argv += ["--", os.fspath(pipeline), os.fspath(plate)]
    sys.stdout.flush()
    status, message = _core.main(argv, True)
    if status in _CANNOT_RUN or status == _BUG:
        raise PlateflowError(message or f"exit status {status}", status)
    return Summary(_summary(out), status, message or "")
