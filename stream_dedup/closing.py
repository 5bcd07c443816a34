"""Objects that are closed when their context is left.

Knows contexts; knows nothing of what is released.
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from types import TracebackType
from typing import Self


class SelfClosing(ABC):
    """A context manager that calls its own `close` at the end, whatever happened."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. An error from closing does not hide one raised within the context."""
        with suppress(*() if error is None else (Exception,)):
            self.close()

    @abstractmethod
    def close(self) -> None:
        """Release what was opened."""
