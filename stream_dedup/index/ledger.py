"""The small facts about a state: its format, its settings, how far it has come, and the input offsets.

Knows the keys of the family `META`; knows nothing of the indexes.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from stream_dedup.index.store import Family, Put, Store, StoreError

FORMAT_VERSION = 1
_FORMAT_KEY = b"format"
_PROGRESS_KEY = b"progress"
_OFFSET_PREFIX = b"offset/"
_PROGRESS = struct.Struct("<QQ")
_OFFSET = struct.Struct("<q")

Positions = Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a state has come.

    Attributes:
        judged: articles judged so far.
        entries: entries made so far; the number of the next.
    """

    judged: int = 0
    entries: int = 0

    def put(self) -> Put:
        """Return the write that keeps it."""
        return Put(Family.META, _PROGRESS_KEY, _PROGRESS.pack(self.judged, self.entries))


def load_progress(store: Store) -> Progress:
    """Return how far the state has come."""
    (stored,) = store.get_many(Family.META, [_PROGRESS_KEY])
    return Progress(*_PROGRESS.unpack(stored)) if stored else Progress()


def check_format(store: Store, settings: Mapping[str, Any]) -> None:
    """Claim a new state for settings, or check that an old one was made with the same.

    Args:
        store: the state.
        settings: those that stored fingerprints, sketches and keys depend on.

    Raises:
        StoreError: the state is of another version of the format, or was made with other settings.
    """
    (stored,) = store.get_many(Family.META, [_FORMAT_KEY])
    if stored is None:
        store.write([Put(Family.META, _FORMAT_KEY, orjson.dumps({"version": FORMAT_VERSION, "settings": settings}))])
        return
    found = orjson.loads(stored)
    if found["version"] != FORMAT_VERSION:
        raise StoreError(
            f"the state directory has format {found['version']}, this version of stream_dedup reads format "
            f"{FORMAT_VERSION}: use the version that made it, or a new directory (state.directory)"
        )
    differing = [
        f"{name} = {found['settings'].get(name)!r} there, {value!r} here"
        for name, value in settings.items()
        if found["settings"].get(name) != value
    ]
    if differing:
        raise StoreError(
            "the state directory was made with settings whose fingerprints cannot be compared with those of now: "
            f"{'; '.join(differing)}. Set them back, or use a new directory (state.directory)"
        )


def load_positions(store: Store) -> dict[tuple[str, int], int]:
    """Return the next input offset by topic and partition."""
    return {_split_key(key): _OFFSET.unpack(value)[0] for key, value in store.items(Family.META, _OFFSET_PREFIX)}


def position_puts(positions: Positions) -> Iterator[Put]:
    """Yield the writes that keep the next input offset by topic and partition."""
    for (topic, partition), offset in positions.items():
        yield Put(Family.META, _OFFSET_PREFIX + f"{topic}/{partition}".encode(), _OFFSET.pack(offset))


def _split_key(key: bytes) -> tuple[str, int]:
    topic, _, partition = key.removeprefix(_OFFSET_PREFIX).decode().rpartition("/")
    return topic, int(partition)
