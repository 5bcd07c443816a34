"""Java libraries without Maven or a JDK: jars by the coordinates and SHA-256 sums of a lock file.

Knows lock files, Maven repositories and the cache; knows nothing of what the jars are for.
"""

from stream_dedup.jars.fetch import cache_folder, locked_jars
from stream_dedup.jars.lock import JarError

__all__ = ["JarError", "cache_folder", "locked_jars"]
