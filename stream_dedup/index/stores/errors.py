"""What RocksDB's errors mean, and what to do about them.

Knows their texts; knows nothing of what was read or written.
"""

from pathlib import Path

from stream_dedup.index.stores.store import StoreDamagedError, StoreError, StoreFullError, StoreLockedError

DATABASE_FILE = "CURRENT"  # in the directory of every database
# Where users name the directory of a state.
_NAMED = "state.directory, for files `dedup --state`"
# What to do about a damaged state.
REPAIR = (
    "restore the state from its changelog (`stream-dedup state restore --fresh`), replace it with a snapshot, or "
    "remove it to start a new one"
)


def store_error(action: str, directory: Path, error: Exception) -> StoreError:
    """Return the error that the users of a store get for an error of RocksDB or the system.

    Args:
        action: what failed, as in "cannot ACTION the state directory".
        directory: directory of the store.
        error: as RocksDB or the system reported it.
    """
    text = str(error)
    if "lock file" in text or "lock hold by" in text:
        return StoreLockedError(
            f"state directory {directory} is in use by another process, or already open in this one: close it there, "
            f"or choose another directory ({_NAMED})"
        )
    if "No space left" in text or "Disk quota exceeded" in text:
        return StoreFullError(
            f"cannot {action} the state directory {directory}: its disk is full; free up space on it ({text})"
        )
    if "Permission denied" in text:
        return StoreError(
            f"cannot {action} the state directory {directory}: permission denied; grant it to the user that this "
            f"process runs as, or name another directory ({_NAMED}) ({text})"
        )
    if "Read-only file system" in text:
        return StoreError(
            f"cannot {action} the state directory {directory}: its file system is read-only; mount it writable, or "
            f"name another directory ({_NAMED}) ({text})"
        )
    missing = "No such file" in text and any(directory.glob(DATABASE_FILE))
    if "Corruption" in text or missing:
        return StoreDamagedError(f"cannot {action} the state directory {directory}: it is damaged; {REPAIR} ({text})")
    if isinstance(error, FileExistsError | NotADirectoryError):
        text = "it, or what should hold it, is a file; name a directory"
    return StoreError(f"cannot {action} the state directory {directory}: {text}; see {_NAMED}")
