"""What came out for each incoming message, and whether the promise was kept: each exactly once, no contradictions.

Knows the shapes of the outputs; knows nothing of what was done to the service, nor of how texts are judged.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tests.faults.workload import number_of
from tests.stream.records import Record, read_topics
from tests.stream.topics import Topics

_READ_SECONDS = 120.0
_SHOWN = 8  # messages listed per fault; the rest are counted
_VOLATILE = frozenset({"decided_at", "updated_at"})  # the time of the decision, in both cases
_WITHDRAWN, _SUCCESSION = "withdrawn", "succession"


class Place(NamedTuple):
    """The position of a message in the input."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True)
class Fate:
    """One record that answers a message of the input.

    Attributes:
        place: of the message; None if it cannot be determined.
        output: 'unique', 'duplicates' or 'dead'.
        id: of the article; empty for a dead letter.
        names: ids of earlier articles that the record refers to.
        withdrawn: whether the record withdraws the article.
        content: everything in the record that should not differ between two runs.
        altered: parts of the message that did not come through unchanged; empty if all did.
    """

    place: Place | None
    output: str
    id: str
    names: tuple[str, ...]
    withdrawn: bool
    content: str
    altered: str = ""

    def __str__(self) -> str:
        return f"{self.place or 'nowhere'} {self.id or '(no id)'} in {self.output}"


@dataclass(frozen=True)
class Outcome:
    """A run as a reader of committed messages sees it.

    Attributes:
        places: of all incoming messages, in order.
        fates: one for each record of unique articles, duplicates and dead letters, except announcements.
        announcements: records that answer no message: a cluster has another canonical article now.
        clusters: the last record of each key.
    """

    places: tuple[Place, ...]
    fates: tuple[Fate, ...]
    announcements: tuple[str, ...]
    clusters: Mapping[bytes | None, str]

    @cached_property
    def answers(self) -> dict[Place, list[Fate]]:
        """What came out for each message, in input order; messages without an answer are left out."""
        answers: dict[Place, list[Fate]] = {place: [] for place in self.places}
        for fate in self.fates:
            if fate.place in answers:
                answers[fate.place].append(fate)
        return {place: fates for place, fates in answers.items() if fates}

    @property
    def count(self) -> int:
        """Number of messages that have an answer."""
        return len(self.answers)

    @property
    def ordered(self) -> bool:
        """Whether the input has a single partition, so that its order is the order of the decisions."""
        return len({place[:2] for place in self.places}) <= 1


def read_outcome(bootstrap: str, topics: Topics) -> Outcome:
    """Read the input and all outputs, read_committed, from beginning to current end."""
    names = (topics.input, *topics.outputs, topics.clusters)
    return outcome_of(read_topics(bootstrap, names, seconds=_READ_SECONDS), topics)


def outcome_of(records: Mapping[str, Sequence[Record]], topics: Topics) -> Outcome:
    """Combine the records of all topics.

    Args:
        records: by topic.
        topics: the topic names.
    """
    inputs = records.get(topics.input, ())
    numbered = {number: record for record in inputs if (number := number_of(record)) is not None}
    assert len(numbered) == len(inputs), "the input holds messages that are not of the workload, or holds them twice"
    links = [record for record in records.get(topics.duplicates, ()) if not _announces(record)]
    return Outcome(
        places=tuple(sorted(map(_place, inputs))),
        fates=(
            *(_unique(record, numbered) for record in records.get(topics.unique, ())),
            *(_link(record, topics.input) for record in links),
            *(_dead(record, numbered) for record in records.get(topics.dead, ())),
        ),
        announcements=tuple(_content(record) for record in records.get(topics.duplicates, ()) if _announces(record)),
        clusters={record.key: _content(record) for record in records.get(topics.clusters, ())},
    )


def _place(record: Record) -> Place:
    return Place(record.topic, record.partition, record.offset)


def _announces(record: Record) -> bool:
    return bool(record.json()["relation"] == _SUCCESSION)


def _unique(record: Record, numbered: Mapping[int, Record]) -> Fate:
    sent, matched = _sent(record, numbered), record.own("matched")
    return Fate(
        place=_place(sent) if sent else None,
        output="unique",
        id=(record.key or b"").decode(),
        names=(matched,) if matched else (),
        withdrawn=False,
        content=_labels(record),
        altered=_altered(record, sent, ("value", "headers")),
    )


def _link(record: Record, topic: str) -> Fate:
    fields = record.json()
    withdrawn = fields["relation"] == _WITHDRAWN
    return Fate(
        place=Place(topic, fields["partition"], fields["offset"]) if fields["topic"] == topic else None,
        output="duplicates",
        id=fields["id"],
        names=() if withdrawn else (fields["matched"], fields["duplicate_of"]),
        withdrawn=withdrawn,
        content=_content(record),
        altered="" if record.key == fields["id"].encode() else "key",
    )


def _dead(record: Record, numbered: Mapping[int, Record]) -> Fate:
    sent = _sent(record, numbered)
    origin = Place(record.own("topic") or "", int(record.own("partition") or 0), int(record.own("offset") or 0))
    parts = ("key", "headers") if record.own("value_left_out") else ("key", "value", "headers")
    return Fate(
        place=origin if sent and _place(sent) == origin else None,
        output="dead",
        id="",
        names=(),
        withdrawn=False,
        content=_labels(record),
        altered=_altered(record, sent, parts),
    )


def _sent(record: Record, numbered: Mapping[int, Record]) -> Record | None:
    """Return the message that a record passes on, None if it names none."""
    number = number_of(record)
    return None if number is None else numbered.get(number)


def _altered(record: Record, sent: Record | None, parts: Iterable[str]) -> str:
    """Name the parts of a message that differ from what was sent."""
    if sent is None:
        return ""
    now = {"key": record.key, "value": record.value, "headers": record.incoming_headers()}
    then = {"key": sent.key, "value": sent.value, "headers": sent.headers}
    return ", ".join(part for part in parts if now[part] != then[part])


def _labels(record: Record) -> str:
    """Return everything in a passed-on message except its value, which is compared with what was sent."""
    return repr((record.key, record.headers))


def _content(record: Record) -> str:
    """Return everything in a JSON record except the time of the decision."""
    if record.value is None:
        return "null"
    return repr({name: field for name, field in record.json().items() if name not in _VOLATILE})


# ----------------------------------------------------------------------------------------------- faults


def faults(outcome: Outcome, reference: Outcome | None = None, *, repeats: bool = False) -> list[str]:
    """Return how a finished run breaks the promise; empty if it keeps it.

    Args:
        outcome: of the run, after everything was processed.
        reference: of an undisturbed run over the same single-partition input, whose decisions must be the same.
        repeats: whether a record may recur, unchanged and under the same key: at-least-once delivery.
    """
    missing = [place for place in outcome.places if place not in outcome.answers]
    return [
        *_listed("lost: messages that came out nowhere", missing),
        *_always(outcome, reference, repeats=repeats),
        *(_different_ends(outcome, reference, repeats=repeats) if reference else []),
    ]


def faults_so_far(outcome: Outcome, reference: Outcome) -> list[str]:
    """Return how an unfinished run over a single-partition input breaks the promise.

    What came out must be an undisturbed run up to some message: nothing after it, and no gap before it.
    """
    holes = [place for place in outcome.places[: outcome.count] if place not in outcome.answers]
    return [
        *_listed("skipped: messages that came out nowhere, while later ones did", holes),
        *_always(outcome, reference, repeats=False),
    ]


def _always(outcome: Outcome, reference: Outcome | None, *, repeats: bool) -> list[str]:
    known = set(outcome.places)
    return [
        *_listed("doubled: messages that came out more than once", _doubled(outcome, repeats=repeats)),
        *_listed("invented: records that answer no message", (f for f in outcome.fates if f.place not in known)),
        *_listed("altered", (f"{fate}: {fate.altered}" for fate in outcome.fates if fate.altered)),
        *_listed("contradicted", _contradictions(outcome)),
        *_listed("decided otherwise than without faults", _differences(outcome, reference) if reference else ()),
    ]


def _doubled(outcome: Outcome, *, repeats: bool) -> list[str]:
    def is_fault(fates: Sequence[Fate]) -> bool:
        return len({(f.output, f.content) for f in fates}) > 1 if repeats else len(fates) > 1

    return [" and ".join(map(str, fates)) for fates in outcome.answers.values() if is_fault(fates)]


def _contradictions(outcome: Outcome) -> list[str]:
    """Find records that name an article that does not exist at that moment.

    With one partition this is exact to the message; with several, only an article that never existed is found.
    """
    there: set[str] = set() if outcome.ordered else {fate.id for fate in outcome.fates if fate.output != "dead"}
    found = []
    for fate in (fates[0] for fates in outcome.answers.values()):
        found += [f"{fate}: names {name}, not there at that moment" for name in fate.names if name not in there]
        if fate.withdrawn and outcome.ordered:
            there.discard(fate.id)
        elif fate.output != "dead":
            there.add(fate.id)
    return found


def _differences(outcome: Outcome, reference: Outcome) -> list[str]:
    wanted = {place: fates[0] for place, fates in reference.answers.items()}
    return [
        f"{fate}: {fate.content}, wanted {wanted[place].content if place in wanted else 'nothing'}"
        for place, fates in outcome.answers.items()
        for fate in fates[:1]
        if place not in wanted or (fate.output, fate.content) != (wanted[place].output, wanted[place].content)
    ]


def _different_ends(outcome: Outcome, reference: Outcome, *, repeats: bool) -> list[str]:
    """Compare what does not belong to a single message: announcements, and the final clusters."""
    said, wanted = Counter(outcome.announcements), Counter(reference.announcements)
    if repeats:
        said, wanted = Counter(set(said)), Counter(set(wanted))
    keys = sorted(outcome.clusters.keys() | reference.clusters.keys(), key=repr)
    clusters = [key for key in keys if outcome.clusters.get(key) != reference.clusters.get(key)]
    return [
        *_listed("announcements that are missing", (wanted - said).elements()),
        *_listed("announcements that are too many", (said - wanted).elements()),
        *_listed(
            "clusters that ended otherwise",
            (f"{key!r}: {outcome.clusters.get(key)}, wanted {reference.clusters.get(key)}" for key in clusters),
        ),
    ]


def _listed(what: str, of: Iterable[object]) -> list[str]:
    """Return one line that counts the items and lists the first ones; no line if there are none."""
    items = list(map(str, of))
    if not items:
        return []
    more = f"\n  and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return [f"{what}: {len(items)}" + "".join(f"\n  {item}" for item in items[:_SHOWN]) + more]
