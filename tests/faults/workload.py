"""A stream of labelled messages with everything that must not confuse an index, the same at each call.

Knows the demo's samples and what is mixed in between them; knows nothing of what the service makes of any.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from random import Random
from typing import Any
from zlib import crc32

from deploy.demo.samples import Sample, sample_stream
from tests.stream.messages import Headers, Incoming
from tests.stream.records import Record

NUMBER_HEADER = "n"
KINDS = ("story", "broken", "redelivery", "revision", "tombstone", "deleted")
_SHARE_MIXED_IN = 0.12
_REMEMBERED = 400  # how far back a mixed-in message may refer, in messages
_MANY_BYTES = 100_000  # the one giant of a sample stream comes once, not with every seed


@dataclass(frozen=True, slots=True)
class Labelled:
    """One message of the workload.

    Attributes:
        kind: one of `KINDS`.
        incoming: the message; the header `n` holds its number.
    """

    kind: str
    incoming: Incoming


@dataclass(frozen=True, slots=True)
class _Known:
    """An earlier article.

    Attributes:
        id: its id.
        sample: the message.
    """

    id: str
    sample: Sample

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self.sample.value or b"")
        return fields


def workload(size: int, partitions: int = 1, seed: int = 20) -> list[Labelled]:
    """Return the first messages of the endless stream.

    With one partition, two runs over them must reach the same decisions. With several, the broker determines the order
    between partitions, and links may differ from run to run; messages of one id are always in the same partition.

    Args:
        size: how many.
        partitions: of the input topic.
        seed: determines the bulletins, reposts, times and ids; the hand-written texts are always the same.
    """
    return list(islice(endless(partitions, seed), size))


def sample_stories(seed: int) -> Iterator[Sample]:
    """Yield the demo's streams one after another, endlessly, each with its own ids."""
    for later in count(seed):
        for sample in sample_stream(later):
            if later == seed or len(sample.value or b"") < _MANY_BYTES:
                yield sample if sample.dead_reason else _named(sample, later)


def endless(
    partitions: int = 1, seed: int = 20, stories: Callable[[int], Iterator[Sample]] = sample_stories
) -> Iterator[Labelled]:
    """Yield messages endlessly; see `workload`.

    Args:
        partitions: of the input topic.
        seed: of the stories, and of what is mixed in.
        stories: makes the stories from a seed; other messages are mixed in between them.
    """
    for number, (kind, incoming) in enumerate(_mixed(seed, stories(seed))):
        name = incoming.key or str(number).encode()
        headers: Headers = [(NUMBER_HEADER, str(number).encode())]
        yield Labelled(kind, replace(incoming, headers=headers, partition=crc32(name) % partitions))


def number_of(record: Record) -> int | None:
    """Return the number of a message that still has its headers, None if it is not one of the workload."""
    number = dict(record.headers).get(NUMBER_HEADER)
    return int(number) if number else None


def _mixed(seed: int, stories: Iterator[Sample]) -> Iterator[tuple[str, Incoming]]:
    """Yield stories and broken messages, and now and then a message about an earlier article."""
    rng = Random(f"mixed/{seed}")
    known: deque[_Known] = deque(maxlen=_REMEMBERED)
    for sample in stories:
        yield "broken" if sample.dead_reason else "story", Incoming(sample.value, sample.key)
        if sample.id and not sample.dead_reason:
            known.append(_Known(sample.id, sample))
        if known and rng.random() < _SHARE_MIXED_IN:
            kind = rng.choice(list(_AFTERMATHS))
            yield kind, _AFTERMATHS[kind](rng.choice(known), rng.choice(known))


def _named(sample: Sample, seed: int) -> Sample:
    """Put the seed before the id, in the message and in its key; the key is always set, to select the partition."""
    if sample.id is None or sample.value is None:
        return sample
    name = f"{seed}-{sample.id}"
    value = _json({**json.loads(sample.value), "id": name}, escaped=sample.value.isascii())
    return replace(sample, id=name, key=name.encode(), value=value)


def _redelivery(known: _Known, _other: _Known) -> Incoming:
    return Incoming(known.sample.value, known.sample.key)


def _revision(known: _Known, other: _Known) -> Incoming:
    """Drop the first third of the text, and append the beginning of another one."""
    fields, body = known.fields(), str(known.fields()["body"])
    fields["body"] = f"{body[len(body) // 3 :]}\n更正：{str(other.fields()['body'])[:120]}"
    return Incoming(_json(fields), known.sample.key)


def _tombstone(known: _Known, _other: _Known) -> Incoming:
    return Incoming(None, known.id.encode())


def _deletion(known: _Known, _other: _Known) -> Incoming:
    return Incoming(_json({"id": known.id, "deleted": True}), known.id.encode())


_AFTERMATHS: dict[str, Callable[[_Known, _Known], Incoming]] = {
    "redelivery": _redelivery,
    "revision": _revision,
    "tombstone": _tombstone,
    "deleted": _deletion,
}


def _json(fields: dict[str, Any], *, escaped: bool = False) -> bytes:
    return json.dumps(fields, ensure_ascii=escaped).encode()
