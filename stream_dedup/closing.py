"""What is closed when its context is left.

Knows contexts; knows nothing of what is released.
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from types import TracebackType
from typing import Self


class SelfClosing(ABC):
    """A context manager of itself: `close` comes at the end, whatever happened."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. An error of the closing does not hide the one that led to it."""
        with suppress(*() if error is None else (Exception,)):
            self.close()

    @abstractmethod
    def close(self) -> None:
        """Release what was opened."""
