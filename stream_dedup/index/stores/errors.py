"""What RocksDB's errors mean, and what to do about them.

Knows their texts; knows nothing of what was read or written.
"""

from pathlib import Path

from stream_dedup.index.stores.store import StoreDamagedError, StoreError, StoreFullError, StoreLockedError


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
            f"state directory {directory} is in use by another process: stop that process, or give this one a "
            "directory of its own (state.directory)"
        )
    if "No space left" in text or "Disk quota exceeded" in text:
        return StoreFullError(
            f"cannot {action} the state directory {directory}: its disk is full; free up space on it ({text})"
        )
    if "Permission denied" in text or "Read-only file system" in text:
        return StoreError(
            f"cannot {action} the state directory {directory}: this process may not write there; make the user that "
            f"the service runs as its owner, or name another directory (state.directory) ({text})"
        )
    missing = "No such file" in text and any(directory.glob("CURRENT"))
    if "Corruption" in text or missing:
        return StoreDamagedError(
            f"cannot {action} the state directory {directory}: it is damaged; restore it from its "
            "changelog (`stream-dedup state restore --fresh`), replace it with a snapshot, or remove "
            f"it to start a new one ({text})"
        )
    return StoreError(f"cannot {action} the state directory {directory}: {text}; see state.directory")
