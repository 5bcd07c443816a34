"""What can be read from a state on disk without opening it for writing: whether it is one, and what it was made with.

Knows the directory of a database; knows nothing of the current settings.
"""

import fcntl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stream_dedup.index.records.counts import load_epoch
from stream_dedup.index.records.ledger import load_changelog_position, stored_settings
from stream_dedup.index.stores.errors import DATABASE_FILE
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import StoreError
from stream_dedup.paths import is_there
from stream_dedup.text.idf import Epoch

_LOCK_FILE = "LOCK"  # RocksDB's, in every database


def is_state(directory: Path) -> bool:
    """Tell whether a directory holds a database."""
    return is_there(directory / DATABASE_FILE)


def is_held(directory: Path) -> bool:
    """Tell whether another process has a database open for writing; if that cannot be found out, one has."""
    try:
        with (directory / _LOCK_FILE).open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released with the file
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def settings_of_state(directory: Path) -> Mapping[str, Any] | None:
    """Return the settings that a state was made with, None if they cannot be read."""
    try:
        with RocksStore(directory, read_only=True) as store:
            return stored_settings(store)
    except StoreError:
        return None


def has_changelog(directory: Path) -> bool:
    """Tell whether a directory holds a state that has a position in a changelog; no, if that cannot be read."""
    if not is_state(directory):
        return False
    try:
        with RocksStore(directory, read_only=True) as store:
            return load_changelog_position(store) is not None
    except StoreError:
        return False


def check_not_of_service(directory: Path) -> None:
    """Refuse a directory for a state without a changelog if it is, or contains, a state that has one, as a service's.

    Raises:
        StoreError: it does.
    """
    if any(map(has_changelog, [directory, *(file.parent for file in directory.glob(f"*/{DATABASE_FILE}"))])):
        raise StoreError(
            f"{directory} holds the state of a service, whose changelog would not know of what is judged here: name "
            "another directory"
        )


def epoch_of_state(directory: Path) -> Epoch:
    """Return the epoch of the document counts that a state holds.

    Args:
        directory: directory of the database.

    Raises:
        StoreError: there is no state, or it cannot be read.
    """
    if not is_state(directory):
        raise StoreError(
            f"{directory} is not a state directory: name one that `stream-dedup dedup --state` made, or the "
            "state.directory of a service with these settings"
        )
    with RocksStore(directory, read_only=True) as store:
        return load_epoch(store)
