"""What RocksDB's errors mean, and what to do about them.

Knows their texts; knows nothing of what was read or written.
"""

from pathlib import Path

from stream_dedup.index.stores.store import StoreDamagedError, StoreError, StoreFullError, StoreLockedError


def store_error(action: str, directory: Path, error: Exception) -> StoreError:
    """Return what an error is to whoever uses the store.

    Args:
        action: that failed, as in "cannot ACTION the state directory".
        directory: of the store.
        error: as RocksDB or the system told it.
    """
    text = str(error)
    if "lock file" in text or "lock hold by" in text:
        return StoreLockedError(
            f"state directory {directory} is in use by another process: stop that one, or give this one a "
            "directory of its own (state.directory)"
        )
    if "No space left" in text or "Disk quota exceeded" in text:
        return StoreFullError(
            f"cannot {action} the state directory {directory}: its disk is full; free space on it ({text})"
        )
    if "Permission denied" in text or "Read-only file system" in text:
        return StoreError(
            f"cannot {action} the state directory {directory}: this process may not write there; give it to the user "
            f"that the service runs as, or name another directory (state.directory) ({text})"
        )
    missing = "No such file" in text and any(directory.glob("CURRENT"))
    if "Corruption" in text or missing:
        return StoreDamagedError(
            f"cannot {action} the state directory {directory}: it is damaged; restore it from its "
            "changelog (`stream-dedup state restore --fresh`), put a snapshot in its place, or remove "
            f"it for a new one ({text})"
        )
    return StoreError(f"cannot {action} the state directory {directory}: {text}; see state.directory")
