"""How well the outcome agrees with the labels of the samples.

Knows labels and clusters; knows nothing of how either came about, or of the terminal.
"""

from collections import defaultdict
from dataclasses import dataclass

from deploy.demo.outcome import Outcome

FIRST_HAND = ("original", "event-pair", "bulletin")


@dataclass(slots=True)
class Tally:
    """How many of a kind came out as labelled.

    Attributes:
        right: of reposts, those that were found; of first-hand texts, those that stayed unique.
        total: messages of the kind.
    """

    right: int = 0
    total: int = 0

    def count(self, right: bool) -> None:  # noqa: FBT001  # what is counted
        """Count one more."""
        self.right += right
        self.total += 1


class Detection:
    """The outcome compared with the labels.

    A repost is found if its link leads to the cluster of the article that its label names. A link is wrong if it
    leads to another story than the label does, or if the label says that there was none before.

    Args:
        outcome: the whole outcome.
    """

    def __init__(self, outcome: Outcome) -> None:
        self._canonical = {
            link.id: link.duplicate_of for link in outcome.links.values() if link.id != link.duplicate_of
        }
        self._story = {sample.id: sample.repost_of or sample.id for sample in outcome.samples if sample.id}
        self.reposts: dict[str, Tally] = defaultdict(Tally)
        """Recall by kind of repost."""
        self.first_hand: dict[str, Tally] = {kind: Tally() for kind in FIRST_HAND}
        """What stayed unique, by kind of text."""
        self.wrong: list[int] = []
        """Numbers of the messages whose links are wrong."""
        for number in range(len(outcome.samples)):
            self._count(number, outcome)

    @property
    def found(self) -> Tally:
        """All kinds of reposts together."""
        return Tally(
            sum(tally.right for tally in self.reposts.values()),
            sum(tally.total for tally in self.reposts.values()),
        )

    def _count(self, number: int, outcome: Outcome) -> None:
        sample, link = outcome.samples[number], outcome.links.get(number)
        if link is not None and not self._is_of(link.duplicate_of, sample.repost_of):
            self.wrong.append(number)
        if sample.repost_of is not None:
            found = link is not None and self._root(link.duplicate_of) == self._root(sample.repost_of)
            self.reposts[sample.kind].count(found)
        elif sample.dead_reason is None:
            self.first_hand[sample.kind].count(number in outcome.unique)

    def _is_of(self, article: str, story: str | None) -> bool:
        return story is not None and self._story.get(article) == story

    def _root(self, article: str) -> str:
        """Follow links to the canonical article; that is one step, unless the service is at fault."""
        seen = {article}
        while (following := self._canonical.get(article)) is not None and following not in seen:
            seen.add(following)
            article = following
        return article
