"""What an edit operator is.

Knows the contract that all of them keep; knows none of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from stream_dedup.evaluate.operators.text import Text

Edit = Callable[[Text, Random, Text, float], Text | None]
"""Makes a copy of a text, out of a generator, a text to borrow from and a strength; None where it cannot.

The same arguments give the same copy. A text is beyond an edit where nothing would change, or where the strength cannot
be had: a tenth of the sentences of a text of two.
"""

STRENGTHLESS = 0.0  # what an edit without strength is given


@dataclass(frozen=True, slots=True)
class Operator:
    """An edit with what must be known to choose it.

    Attributes:
        name: unique; the kind of its copies.
        edit: makes a copy.
        unit: what the strength counts, as `share of the sentences that go`; empty where there is none.
        levels: strengths that a copy gets unless the user says otherwise, ascending in what they change.
        least, most: bounds of the strength.
        posts: whether it is done to short posts too.
        borrows: whether it takes sentences from the other text.
    """

    name: str
    edit: Edit
    unit: str = ""
    levels: tuple[float, ...] = ()
    least: float = 0.0
    most: float = 1.0
    posts: bool = True
    borrows: bool = False

    @property
    def description(self) -> str:
        """What it does, in one line."""
        return (self.edit.__doc__ or "").partition("\n")[0]

    def check(self, strength: float | None) -> None:
        """See whether a strength can be asked for.

        Raises:
            ValueError: it cannot; the message says what can.
        """
        if strength is None and self.unit:
            raise ValueError(f"{self.name} wants a strength: {self.allowed()}")
        if strength is not None and not (self.unit and self.least < strength <= self.most):
            raise ValueError(f"{self.name} of strength {strength:g}: {self.allowed()}")

    def allowed(self) -> str:
        """Return in words which strengths can be asked for."""
        return f"{self.unit}, over {self.least:g}, up to {self.most:g}" if self.unit else "it has no strength"
