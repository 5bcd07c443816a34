"""What came out for each message that went in, and whether the two sides agree.

Knows the shapes of the three outputs; knows nothing of Kafka's clients or of what the samples' labels say of copies.
"""

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deploy.demo.samples import Sample


@dataclass(frozen=True, slots=True)
class Link:
    """A message of the duplicates topic, as far as the demonstration shows it.

    Attributes:
        id: id of the copy.
        duplicate_of: id of the cluster's canonical article.
        relation: what the copy is to the article that matched.
        jaccard: estimated, 0 to 1; None if nothing was compared, as in the next two.
        containment: estimated, 0 to 1.
        hamming: bits in which the fingerprints differ.
        found_by: which index found the article that matched.
    """

    id: str
    duplicate_of: str
    relation: str
    jaccard: float | None
    containment: float | None
    hamming: int | None
    found_by: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message of the dead-letter topic.

    Attributes:
        reason: the rule that it breaks.
        detail: how, in words.
    """

    reason: str
    detail: str


class Outcome:
    """The accounts of the demonstration: each output is recorded under the message that it answers.

    Messages are known by their number in the stream, which is their offset: the input has one partition, written in
    order by one idempotent producer.

    Args:
        samples: the messages that go in.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.unique: dict[int, str] = {}
        """Ids of the articles that came out as new."""
        self.links: dict[int, Link] = {}
        self.dead: dict[int, DeadLetter] = {}
        self.surplus = 0
        """Outputs that answer no message, or one that was already answered."""
        # The topic of unique articles carries messages as they arrived, without their offsets.
        self._numbers: dict[bytes | None, deque[int]] = defaultdict(deque)
        for number, sample in enumerate(samples):
            self._numbers[sample.value].append(number)

    def __len__(self) -> int:
        """Return how many messages have come out."""
        return len(self.unique) + len(self.links) + len(self.dead)

    @property
    def copies(self) -> int:
        """How many articles are copies of another; a redelivered message is not one."""
        return sum(link.relation != "redelivery" for link in self.links.values())

    @property
    def complete(self) -> bool:
        """Whether each message has come out once, and nothing else has."""
        return len(self) == len(self.samples) and not self.surplus

    @property
    def as_labelled(self) -> bool:
        """Whether exactly the broken messages are dead letters, each for the reason of its label."""
        expected = {n: sample.dead_reason for n, sample in enumerate(self.samples) if sample.dead_reason}
        return expected == {number: letter.reason for number, letter in self.dead.items()}

    def add_unique(self, key: bytes, value: bytes | None) -> None:
        """Record a message of the topic of unique articles."""
        numbers = self._numbers.get(value)
        number = numbers.popleft() if numbers else -1
        if self._is_open(number):
            self.unique[number] = key.decode()

    def add_link(self, value: bytes) -> None:
        """Record a message of the duplicates topic."""
        fields = json.loads(value)
        if self._is_open(fields["offset"]):
            self.links[fields["offset"]] = Link(
                id=fields["id"],
                duplicate_of=fields["duplicate_of"],
                relation=fields["relation"],
                jaccard=fields["jaccard"],
                containment=fields["containment"],
                hamming=fields["hamming"],
                found_by=fields["candidate_source"],
            )

    def add_dead_letter(self, headers: Mapping[str, bytes]) -> None:
        """Record a message of the dead-letter topic."""
        number = int(headers["stream_dedup.offset"])
        if self._is_open(number):
            _, _, detail = headers["stream_dedup.exception"].decode().partition(": ")
            self.dead[number] = DeadLetter(headers["stream_dedup.reason"].decode(), detail)

    def _is_open(self, number: int) -> bool:
        """Tell whether a message exists and has not come out yet; if not, count the surplus."""
        done = number in self.unique or number in self.links or number in self.dead
        if done or not 0 <= number < len(self.samples):
            self.surplus += 1
            return False
        return True
