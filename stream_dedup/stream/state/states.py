"""Which state belongs to which settings: a directory and a changelog for each set of comparable settings.

Knows digests, directories and what is refused; knows nothing of what a state holds.
"""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from stream_dedup.engine.comparability import comparability
from stream_dedup.index.peek import is_state, settings_of_state
from stream_dedup.index.records.ledger import FORMAT_VERSION, ChangelogPosition, differing_settings
from stream_dedup.index.stores.store import StoreError
from stream_dedup.settings import Settings

_DIGEST_BYTES = 4
_ANY_DIGEST = 2 * _DIGEST_BYTES * "[0-9a-f]"


def digest_of(settings: Settings) -> str:
    """Return the digest of the settings that make fingerprints comparable: 8 hexadecimal digits."""
    known = {"format": FORMAT_VERSION, **comparability(settings)}
    return hashlib.blake2b(orjson.dumps(known, option=orjson.OPT_SORT_KEYS), digest_size=_DIGEST_BYTES).hexdigest()


def state_directory(settings: Settings, digest: str) -> Path:
    """Return the directory of the state that belongs to settings."""
    return settings.state.directory / digest


def is_of_files(settings: Settings) -> bool:
    """Tell whether the state was made by `stream-dedup dedup --state`: then it is the directory itself.

    A service's state is a subdirectory of it, and has a changelog.
    """
    return is_state(settings.state.directory)


def state_to_read(settings: Settings) -> Path:
    """Return the directory of the state of the settings, a service's or one of files.

    Raises:
        StoreError: there is none, or there are only states of other settings.
    """
    if is_of_files(settings):
        return settings.state.directory
    digest = digest_of(settings)
    directory = state_directory(settings, digest)
    if is_state(directory):
        return directory
    if others := other_states(settings, digest):
        raise StoreError(
            f"{directory} holds no state, but there are states of other settings ({', '.join(map(str, others))}): use "
            "the settings of the service (--config, --set and the environment)"
        )
    raise StoreError(
        f"{directory} holds no state of these settings: start the service, check state.directory (for files, what "
        "`stream-dedup dedup --state` names), or make one from the changelog of a service with `stream-dedup state "
        "restore`"
    )


def other_states(settings: Settings, digest: str) -> list[Path]:
    """Return the directories of states that belong to other settings."""
    return [path for path in _states_in(settings.state.directory) if path.name != digest]


def _states_in(directory: Path) -> list[Path]:
    # The service may not be allowed to look into other entries, such as a file system's lost+found.
    return sorted(path for path in directory.glob(_ANY_DIGEST) if is_state(path))


def check_not_of_files(settings: Settings) -> None:
    """Refuse a directory for the states of a service if it is the state of a run over files.

    Raises:
        StoreError: it is.
    """
    if is_of_files(settings):
        raise StoreError(
            f"{settings.state.directory} is a state that `stream-dedup dedup --state` made, without a changelog. "
            "Choose a new directory (state.directory): the index is rebuilt from what the input topics hold, and what "
            "the consumer group has decided is not published again"
        )


def check_own(place: ChangelogPosition | None, changelog: str) -> None:
    """Refuse a state of another index.

    Args:
        place: of the state in its changelog, None where it has none.
        changelog: the one that the settings name.

    Raises:
        StoreError: it was made from a changelog of another name.
    """
    known = place.changelog if place is not None else changelog
    if known != changelog:
        raise StoreError(
            f"the state was made from the changelog {known}, but the settings name {changelog}: state.name has "
            f"changed, or input.group if that is unset. Set state.name = {known.rpartition('.changelog.')[0]} to "
            "continue with this index, or give the other one a directory of its own (state.directory)"
        )


def refusal(settings: Settings, changelogs: Sequence[str], others: Sequence[Path]) -> StoreError:
    """Return why a state of other settings is refused, and what to do.

    Args:
        settings: the current ones.
        changelogs: of other settings, on the broker.
        others: states of other settings, in the directory.
    """
    there = [str(path) for path in others] or list(changelogs)
    differing = _differing(others, comparability(settings))
    told = f": {'; '.join(differing)}" if differing else ""
    return StoreError(
        f"the index has a state of other settings ({', '.join(there)}), whose fingerprints cannot be compared with "
        f"those of the current ones{told}. Change them back, build a new state from the input topics with "
        "`stream-dedup state rebuild`, or begin a new index (input.group, state.name and state.directory)"
    )


def discard(directory: Path) -> None:
    """Delete a state: the changelog still has it."""
    shutil.rmtree(directory, ignore_errors=True)


def _differing(others: Sequence[Path], here: Mapping[str, Any]) -> list[str]:
    for path in others:
        there = settings_of_state(path)
        if there is not None:
            return differing_settings(there, here)
    return []
