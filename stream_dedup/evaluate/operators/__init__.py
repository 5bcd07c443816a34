"""What reposts do to a text: edit operators, pure functions of a text, a generator, another text and a strength.

Knows titles and bodies; knows nothing of articles, times or labels.
"""

from stream_dedup.evaluate.operators import cut, foreign, frame, mixture, order, page, social, words, writing
from stream_dedup.evaluate.operators.operator import STRENGTHLESS, Edit, Operator
from stream_dedup.evaluate.operators.text import Text

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for family in (frame, cut, foreign, order, words, writing, page, social, mixture)
    for operator in family.OPERATORS
}
"""All edit operators by name."""

__all__ = ["OPERATORS", "STRENGTHLESS", "Edit", "Operator", "Text"]
