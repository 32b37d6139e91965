"""Exceptions: what plateflow raises, and what it makes of a user's."""

import sys
from types import TracebackType

# A traceback longer than this is cut in its middle.
_MAX_DETAIL = 32 << 10
_MAX_MESSAGE = 500


class PlateflowError(RuntimeError):
    """A run that could not start, or an output that could not be written.

    status: the exit status that the program would have ended with (2: the
    pipeline, the plate or the arguments are wrong; 3: something is missing).
    """

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class StepError(Exception):
    """A step that cannot be used; `code` is the word of its error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConversionError(StepError):
    """An array that a framework cannot take or give as it is."""


def _is_ours(filename: str) -> bool:
    """Tell frames of the loader from the user's."""
    return (
        filename.startswith(("<frozen importlib", "<frozen runpy"))
        or __file__.rpartition("/")[0] == filename.rpartition("/")[0]
    )


def _skip_ours(trace: TracebackType | None) -> TracebackType | None:
    """Drop the leading frames that are ours."""
    while trace and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[0] if lines else ""
    if len(line) > _MAX_MESSAGE:
        line = line[:_MAX_MESSAGE] + "..."
    return line


def message_of(exc: BaseException) -> str:
    """Say one line: "ValueError: text"."""
    try:
        text = _first_line(str(exc))
    except Exception:  # a user's __str__ can fail too
        text = "(its text cannot be shown)"
    if isinstance(exc, StepError):
        return text
    if isinstance(exc, SystemExit):
        return f"the function asked the process to exit ({exc.code})"
    name = type(exc).__name__
    if isinstance(exc, ModuleNotFoundError):
        text += f" in {sys.prefix}"
    return f"{name}: {text}" if text else name


def _code_of(exc: BaseException) -> str:
    if isinstance(exc, StepError):
        return exc.code
    if isinstance(exc, MemoryError):
        return "ENOMEM"
    if isinstance(exc, ModuleNotFoundError):
        return "EMISSING"
    return ""


def _safe(text: str) -> str:
    """Text that C can hold: no NUL, nothing that is not UTF-8."""
    text = text.replace("\0", "\\0")
    return text.encode("utf-8", "backslashreplace").decode()


def explain(exc: BaseException) -> tuple[str, str, str]:
    """Return the error code's word ("" for the caller's), message, traceback.

    The traceback starts with the user's frames. Afterwards its frames are
    cleared: their locals hold stacks.
    """
    import traceback

    message = message_of(exc)
    code = _code_of(exc)
    detail = ""
    trace = _skip_ours(exc.__traceback__)
    if trace is not None or not isinstance(exc, StepError):
        lines = traceback.format_exception(type(exc), exc, trace)
        detail = "".join(lines).rstrip()
    if len(detail) > _MAX_DETAIL:
        half = _MAX_DETAIL // 2
        detail = detail[:half] + "\n[...]\n" + detail[-half:]
    if exc.__traceback__ is not None:
        traceback.clear_frames(exc.__traceback__)
        exc.__traceback__ = None
    return code, _safe(message), _safe(detail)
