"""What an edit operator is.

Knows the contract that all operators keep; knows no operator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from stream_dedup.evaluate.operators.text import Text

Edit = Callable[[Text, Random, Text, float], Text | None]
"""Makes a copy of a text, given a generator, a text to borrow from and a strength; returns None if it cannot.

The same arguments give the same copy. An edit cannot copy a text that it would not change, or that does not allow the
strength, such as a tenth of the sentences of a text that has two.
"""

STRENGTHLESS = 0.0  # passed to an edit that has no strength


@dataclass(frozen=True, slots=True)
class Operator:
    """An edit, and what a user needs to know to choose it.

    Attributes:
        name: unique; the kind of its copies.
        edit: makes a copy.
        unit: what the strength measures, such as `share of the sentences dropped`; empty if it has no strength.
        levels: default strengths, from the smallest change to the largest.
        least, most: bounds of the strength, which is above `least` and at most `most`.
        whole: whether the strength is a count, so that it must be a whole number.
        posts: whether it is applied to short posts too.
        borrows: whether it takes sentences from the other text.
    """

    name: str
    edit: Edit
    unit: str = ""
    levels: tuple[float, ...] = ()
    least: float = 0.0
    most: float = 1.0
    whole: bool = False
    posts: bool = True
    borrows: bool = False

    @property
    def description(self) -> str:
        """What it does, in one line."""
        return (self.edit.__doc__ or "").partition("\n")[0]

    def check(self, strength: float | None) -> None:
        """Check that a strength is allowed.

        Raises:
            ValueError: it is not; the message says which strengths are.
        """
        if strength is None and self.unit:
            raise ValueError(f"{self.name} needs a strength: {self.allowed()}")
        if strength is not None and not self._allows(strength):
            raise ValueError(f"{self.name} cannot have the strength {strength:g}: {self.allowed()}")

    def allowed(self) -> str:
        """Return a description of the strengths that are allowed."""
        number = "a whole number " if self.whole else ""
        return f"{self.unit}, {number}above {self.least:g}, up to {self.most:g}" if self.unit else "it takes none"

    def _allows(self, strength: float) -> bool:
        if not self.unit or not self.least < strength <= self.most:
            return False
        return not self.whole or strength == round(strength)
