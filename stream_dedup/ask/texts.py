"""The texts of articles that were judged, read again from the messages that they came with.

Knows article records and how a message is decoded; keeps some that were asked for lately.
"""

import threading
from collections import OrderedDict

from stream_dedup.article import Article, Origin
from stream_dedup.ask.bounds import quoted
from stream_dedup.decode import Decoder
from stream_dedup.stream.input.decoded import decode_all
from stream_dedup.stream.kafka.messages import Messages

_KEPT_CHARACTERS = 4 << 20


class LostTextError(LookupError):
    """The message of an article is not in its topic any more, or cannot be read."""


class Texts:
    """Reads articles; safe between threads.

    Args:
        messages: of the input topics.
        decoder: of them.
        from_files: whether articles came out of files, whose texts are not looked for.
    """

    def __init__(self, messages: Messages, decoder: Decoder, *, from_files: bool = False) -> None:
        self._messages = messages
        self._from_files = from_files
        self._decoder = decoder
        self._kept: OrderedDict[Origin, Article] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def article(self, article_id: str, origin: Origin | None) -> Article:
        """Return an article as it came.

        Args:
            article_id: only told in errors.
            origin: the message that carried it; None where it came with none.

        Raises:
            LostTextError: the topic has it no more.
            BrokerError: the broker does not answer in time, or refuses.
            RegistryError: the schema registry does not, where the message wants a schema.
        """
        if origin is None:
            raise LostTextError(f"the article {quoted(article_id)} came with no message: its text is in no topic")
        if self._from_files:
            raise LostTextError(
                f"the article {quoted(article_id)} is record {origin.offset} of the file {origin.topic}, not in a "
                "topic: compare texts out of files with `stream-dedup explain A.txt B.txt`"
            )
        with self._lock:
            known = self._kept.get(origin)
        return known or self._read(article_id, origin)

    def _read(self, article_id: str, origin: Origin) -> Article:
        message = self._messages.at(origin)
        place = f"{origin.topic}, partition {origin.partition}, offset {origin.offset}"
        if message is None:
            raise LostTextError(f"the text of {quoted(article_id)} is not in its topic any more ({place})")
        decoded = decode_all([message], self._decoder)
        if decoded.dead:
            why = decoded.dead[0][1]
            raise LostTextError(f"the text of {quoted(article_id)} cannot be read with these settings ({place}): {why}")
        ((_, article),) = decoded.items
        if not isinstance(article, Article):
            raise LostTextError(f"there is no article where the text of {quoted(article_id)} was ({place})")
        self._keep(origin, article)
        return article

    def _keep(self, origin: Origin, article: Article) -> None:
        with self._lock:
            if origin not in self._kept:
                self._kept[origin] = article
                self._characters += len(article.body)
            while self._characters > _KEPT_CHARACTERS:
                _, dropped = self._kept.popitem(last=False)
                self._characters -= len(dropped.body)
