"""jieba's own Python tokenizer, without the cache that it keeps where anyone could write.

Knows jieba; knows nothing of user dictionaries or of callers.
"""

import logging

import jieba

jieba.setLogLevel(logging.WARNING)


class UncachedTokenizer(jieba.Tokenizer):  # type: ignore[misc]  # jieba has no types
    """jieba without its marshalled cache file: in the shared temporary directory, anyone could have written it."""

    loaded = False

    def initialize(self, dictionary: str | None = None) -> None:  # noqa: ARG002  # jieba's own signature
        """Read the dictionary itself, never a cache."""
        with self.lock:
            if not self.loaded:
                self.FREQ, self.total = self.gen_pfdict(self.get_dict_file())
                self.initialized = self.loaded = True
