"""jieba's own tokenizer, in Python, without the cache that it keeps where anyone could write.

Knows jieba; knows nothing of user dictionaries or of who asks for words.
"""

import logging

import jieba

jieba.setLogLevel(logging.WARNING)


class UncachedTokenizer(jieba.Tokenizer):  # type: ignore[misc]  # jieba has no types
    """jieba without its marshalled cache in the shared temporary directory, which anyone could have written."""

    loaded = False

    def initialize(self, dictionary: str | None = None) -> None:  # noqa: ARG002  # jieba's own signature
        """Read the dictionary itself."""
        with self.lock:
            if not self.loaded:
                self.FREQ, self.total = self.gen_pfdict(self.get_dict_file())
                self.initialized = self.loaded = True
