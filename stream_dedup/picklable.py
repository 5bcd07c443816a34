"""Errors that pass from one process to another as they are, whatever they are made with.

Knows how Python pickles; knows nothing of what any error says.
"""

import copyreg
from typing import Any


class PicklableError(Exception):
    """An error whose text and attributes are pickled, not what it is made with.

    Python would call the class with the text alone when it unpickles one.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again: without its `__init__`."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]  # typeshed lacks it
