"""Knows which jars make up the broker, and the folder they are kept in.

Does not know how they get there, nor how Java is started.
"""

from pathlib import Path

from stream_dedup.jars import cache_folder, locked_jars
from stream_dedup.jars.lock import JarLock

_LOCK_FILE = Path(__file__).with_name("kafka.lock.toml")


def kafka_jars(cache: Path | None = None) -> list[Path]:
    """Return the verified jars of the broker, in the order of the lock file, fetching those that are missing.

    Args:
        cache: folder of the jars; `$XDG_CACHE_HOME/stream-dedup/kafka-VERSION` if not given.

    Raises:
        JarError: a jar cannot be fetched, or its SHA-256 is not the locked one.
    """
    return locked_jars(_LOCK_FILE, cache or cache_folder(f"kafka-{JarLock.read(_LOCK_FILE).version}"))
