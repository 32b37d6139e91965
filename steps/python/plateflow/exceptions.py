"""What the package's functions raise."""

from plateflow._errors import PlateflowError

__all__ = ["MemoryConversionError", "PlateflowError"]


class MemoryConversionError(Exception):
    """An array that cannot be converted.

    source_type, target_type: memory types; method: what was tried; reason: why
    it cannot be; source, target: the array and the place in words, or "".
    """

    def __init__(
        self,
        source_type: str,
        target_type: str,
        method: str,
        reason: str,
        *,
        source: str = "",
        target: str = "",
    ) -> None:
        self.source_type = source_type
        self.target_type = target_type
        self.method = method
        self.reason = reason
        self.source = source or source_type
        self.target = target or target_type
        super().__init__(
            f"Cannot convert from {source_type} to {target_type} using"
            f" {method}. Reason: {reason.rstrip('.')}. Source: {self.source}."
            f" Target: {self.target}."
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Let it travel between processes: its arguments are no message."""
        words = (self.source_type, self.target_type, self.method, self.reason)
        return type(self), words, {**self.__dict__, "args": self.args}
