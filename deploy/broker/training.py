"""Knows how Java's startup cache is made: a broker runs once, and Java writes down what it has loaded.

Does not know where the cache is kept.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.broker.jars import kafka_jars
from deploy.broker.kafka import KafkaBroker
from deploy.broker.startup import startup_cache

_WRITING_SECONDS = 120.0  # on a busy machine; alone it takes 4


def make_startup_cache() -> None:
    """Make the startup cache unless it exists, and remove those of other versions.

    Raises:
        JarError: the jars cannot be fetched, or are not the locked ones.
        BrokerStartError: the broker does not start.
        OSError: Java has not written it, or there is no room for it.
    """
    cache = startup_cache(kafka_jars())
    if cache.exists():
        return
    with TemporaryDirectory(prefix=".startup-", dir=cache.parent) as folder:
        written = Path(folder, cache.name)
        with KafkaBroker(java_options=(f"-XX:AOTCacheOutput={written}",), stop_timeout=_WRITING_SECONDS):
            pass  # Java writes when it ends
        for old in cache.parent.glob("startup-*.aot"):
            old.unlink(missing_ok=True)
        written.replace(cache)
