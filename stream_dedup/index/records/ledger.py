"""Basic facts about a state: its format, settings and progress, and its positions in the input and the changelog.

Knows the keys of the family `META`; knows nothing of the indexes.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from stream_dedup.index.records.records import UNKNOWN_TIME
from stream_dedup.index.stores.store import Family, Put, Store, StoreError

FORMAT_VERSION = 7
_FORMAT_KEY = b"format"
_PROGRESS_KEY = b"progress"
_PLACE_KEY = b"changelog"
_POSITION_PREFIX = b"offset/"
_START_PREFIX = b"start/"
CHANGELOG_KEYS = (_START_PREFIX,)  # may be missing in a state restored from a changelog without its beginning
_PROGRESS = struct.Struct("<QQQQqH")
_GENERATION = struct.Struct("<IqQ")
_OFFSET = struct.Struct("<q")

Positions = Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Generation:
    """A part of the window, which expires as a whole.

    Attributes:
        number: ascending.
        start_ms: the stream's time when it began.
        first_entry: number of its first entry.
    """

    number: int
    start_ms: int
    first_entry: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a state has come.

    Attributes:
        steps: steps made so far.
        judged: articles judged so far.
        epoch_judged: those of them judged in the current epoch.
        entries: entries made so far; also the number of the next one.
        stream_ms: the stream's time: that of the newest article, milliseconds since 1970 in UTC.
        generations: those that have not expired, the newest last.
    """

    steps: int = 0
    judged: int = 0
    epoch_judged: int = 0
    entries: int = 0
    stream_ms: int = UNKNOWN_TIME
    generations: tuple[Generation, ...] = (Generation(0, UNKNOWN_TIME, 0),)

    @property
    def generation(self) -> int:
        """Number of the generation that is written to."""
        return self.generations[-1].number

    @property
    def live(self) -> tuple[int, ...]:
        """Numbers of the generations that have not expired, the newest last."""
        return tuple(generation.number for generation in self.generations)

    @property
    def floor(self) -> int:
        """Number of the first entry of the oldest generation: all before it have expired."""
        return self.generations[0].first_entry

    def pack(self) -> bytes:
        """Return it as bytes."""
        numbers = (self.steps, self.judged, self.epoch_judged, self.entries, self.stream_ms, len(self.generations))
        return _PROGRESS.pack(*numbers) + b"".join(
            _GENERATION.pack(part.number, part.start_ms, part.first_entry) for part in self.generations
        )

    @classmethod
    def unpack(cls, packed: bytes) -> "Progress":
        """Return the progress that bytes hold."""
        steps, judged, epoch_judged, entries, stream_ms, count = _PROGRESS.unpack_from(packed)
        parts = _GENERATION.iter_unpack(packed[_PROGRESS.size : _PROGRESS.size + count * _GENERATION.size])
        return cls(steps, judged, epoch_judged, entries, stream_ms, tuple(Generation(*part) for part in parts))

    def put(self) -> Put:
        """Return the write that stores it."""
        return Put(Family.META, _PROGRESS_KEY, self.pack())


def load_progress(store: Store) -> Progress:
    """Return how far the state has come."""
    (stored,) = store.get_many(Family.META, [_PROGRESS_KEY])
    return Progress.unpack(stored) if stored else Progress()


@dataclass(frozen=True, slots=True)
class ChangelogPosition:
    """A state's position in its changelog.

    Attributes:
        topic: its name and, if the broker reports it, the id that Kafka gave the topic when it was created.
        offset: offset of the next record.
    """

    topic: str
    offset: int

    @property
    def changelog(self) -> str:
        """Name of the topic alone."""
        return self.topic.partition("/")[0]

    def put(self) -> Put:
        """Return the write that stores it."""
        return Put(Family.META, _PLACE_KEY, orjson.dumps([self.topic, self.offset]))


def load_changelog_position(store: Store) -> ChangelogPosition | None:
    """Return the state's position in its changelog, None if it has none."""
    (stored,) = store.get_many(Family.META, [_PLACE_KEY])
    return ChangelogPosition(*orjson.loads(stored)) if stored else None


def start_put(generation: int, offset: int) -> Put:
    """Return the write that stores the changelog offset at which a generation begins."""
    return Put(Family.META, _start_key(generation), _OFFSET.pack(offset))


def load_changelog_start(store: Store, progress: Progress) -> int | None:
    """Return the changelog offset at which the oldest generation of a state begins, None if that is unknown."""
    (stored,) = store.get_many(Family.META, [_start_key(progress.live[0])])
    return int(_OFFSET.unpack(stored)[0]) if stored else None


def forget_start(generation: int) -> Put:
    """Return the write that deletes the changelog offset of a generation."""
    return Put(Family.META, _start_key(generation), None)


def _start_key(generation: int) -> bytes:
    return _START_PREFIX + str(generation).encode()


def check_format(store: Store, settings: Mapping[str, Any], *, claim: bool = True) -> None:
    """Claim a new state for settings, or check that an existing one was made with the same settings.

    Args:
        store: the state.
        settings: those that stored fingerprints, sketches and keys depend on.
        claim: whether a new state is claimed; otherwise it is refused.

    Raises:
        StoreError: the state is of another version of the format, or was made with other settings.
    """
    (stored,) = store.get_many(Family.META, [_FORMAT_KEY])
    if stored is None and not claim:
        raise StoreError(
            "the state is still being created: wait until the service has started, or start it (`stream-dedup run`)"
        )
    if stored is None:
        store.write([Put(Family.META, _FORMAT_KEY, orjson.dumps({"version": FORMAT_VERSION, "settings": settings}))])
        return
    found = orjson.loads(stored)
    if found["version"] != FORMAT_VERSION:
        raise StoreError(
            f"the state has format {found['version']}, but this version of stream_dedup reads format {FORMAT_VERSION}: "
            "build a new one from the input topics with `stream-dedup state rebuild`, use the version that made it, "
            "or use a new directory (state.directory; for files `dedup --state`)"
        )
    differing = differing_settings(found["settings"], settings)
    if differing:
        raise StoreError(
            "the state was made with settings whose fingerprints cannot be compared with those of the current ones: "
            f"{'; '.join(differing)}. Change them back, build a new state from the input topics with "
            "`stream-dedup state rebuild`, or use a new directory (state.directory; for files `dedup --state`)"
        )


def stored_settings(store: Store) -> Mapping[str, Any] | None:
    """Return the settings that a state was made with, None if it is new."""
    (stored,) = store.get_many(Family.META, [_FORMAT_KEY])
    settings: Mapping[str, Any] | None = orjson.loads(stored)["settings"] if stored else None
    return settings


def differing_settings(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return a line for each setting that differs."""
    return [
        f"{name} = {there.get(name)!r} in the state, {value!r} in the settings"
        for name, value in here.items()
        if there.get(name) != value
    ]


def load_positions(store: Store) -> dict[tuple[str, int], int]:
    """Return the next input offset by topic and partition."""
    return {_split_key(key): _OFFSET.unpack(value)[0] for key, value in store.items(Family.META, _POSITION_PREFIX)}


def position_puts(positions: Positions) -> Iterator[Put]:
    """Yield the writes that store the next input offset by topic and partition."""
    for (topic, partition), offset in positions.items():
        yield Put(Family.META, _POSITION_PREFIX + f"{topic}/{partition}".encode(), _OFFSET.pack(offset))


def _split_key(key: bytes) -> tuple[str, int]:
    topic, _, partition = key.removeprefix(_POSITION_PREFIX).decode().rpartition("/")
    return topic, int(partition)
