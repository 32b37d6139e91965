"""Standard output while steps run: what they print goes to their group's log.

Only in the interpreter that the program started; in one that was adopted,
sys.stdout is the user's.
"""

import contextlib
import io
import sys
from typing import Any

from plateflow import _core


class StepStream(io.TextIOBase):
    """A text stream that asks first whether a step is running.

    The group's log takes what a step prints; all else goes to `stream`, the
    one that Python made, whose file descriptor the program has redirected.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; returns the number of characters."""
        if not _core.print_text(text):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream beneath; the log needs none."""
        self._stream.flush()

    def writable(self) -> bool:
        """Return True: it is for writing."""
        return True

    def isatty(self) -> bool:
        """Return False, so that nothing draws progress bars into a log."""
        return False

    def fileno(self) -> int:
        """Return the descriptor of the stream beneath."""
        return int(self._stream.fileno())

    @property
    def buffer(self) -> Any:
        """The binary stream beneath; it goes past the group's log."""
        return self._stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream beneath."""
        return str(self._stream.encoding)

    @property
    def errors(self) -> str:  # type: ignore[override]
        """How the stream beneath writes what it cannot encode."""
        return str(self._stream.errors)


def install() -> None:
    """Put the streams in place; lines leave when they end."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the program was started with it closed
            continue
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(line_buffering=True)
        setattr(sys, name, StepStream(stream))
