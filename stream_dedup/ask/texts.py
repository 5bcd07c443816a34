"""The texts of judged articles, read again from the messages that carried them.

Knows articles and how a message is decoded; keeps a bounded number of articles in memory. Knows nothing of the state.
"""

import threading
from collections import OrderedDict

from stream_dedup.article import Article, Origin
from stream_dedup.ask.bounds import quoted
from stream_dedup.ask.lookup import message_location
from stream_dedup.decode import Decoder
from stream_dedup.scope import id_of
from stream_dedup.stream.input.decoded import decode_all
from stream_dedup.stream.kafka.messages import Messages

_KEPT_CHARACTERS = 4 << 20
_LEAST_KEPT = 4  # articles for which there is room: a longer one is not kept, as it would displace all others


class LostTextError(LookupError):
    """The message that carried an article is no longer in its topic, or cannot be read."""


class Texts:
    """Reads articles; thread-safe.

    Args:
        messages: reads messages of the input topics.
        decoder: decodes them.
        from_files: whether the articles came from files; their texts are not looked up.
    """

    def __init__(self, messages: Messages, decoder: Decoder, *, from_files: bool = False) -> None:
        self._messages = messages
        self._from_files = from_files
        self._decoder = decoder
        self._kept: OrderedDict[Origin, Article] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def article(self, name: str, origin: Origin | None) -> Article:
        """Return an article as it was received.

        Args:
            name: its id, preceded by its scope if it has one.
            origin: the message that carried it; None if there was none.

        Raises:
            LostTextError: the message is no longer in the topic, which may have been made anew, or cannot be read.
            BrokerError: the broker does not answer in time, or refuses.
            RegistryError: the message needs a schema and the schema registry does not answer in time, or refuses.
        """
        if origin is None:
            raise LostTextError(f"the article {quoted(id_of(name))} did not come from a topic: its text is not stored")
        if self._from_files:
            raise LostTextError(
                f"the article {quoted(id_of(name))} is record {origin.offset} of the file {origin.topic}, not in a "
                "topic: compare texts from files with `stream-dedup explain A.txt B.txt`"
            )
        with self._lock:
            known = self._kept.get(origin)
            if known is not None:
                self._kept.move_to_end(origin)
        found = known or self._read(name, origin)
        if found.name != name:
            raise LostTextError(
                f"the text of {quoted(id_of(name))} is no longer in its topic: in its place "
                f"({message_location(origin)}) is that of {quoted(found.id)}"
            )
        return found

    def _read(self, name: str, origin: Origin) -> Article:
        message = self._messages.at(origin)
        place = message_location(origin)
        if message is None:
            raise LostTextError(f"the text of {quoted(id_of(name))} is no longer in its topic ({place})")
        decoded = decode_all([message], self._decoder, 0)
        if decoded.dead:
            why = decoded.dead[0][1]
            raise LostTextError(
                f"the text of {quoted(id_of(name))} cannot be read with these settings ({place}): {why}"
            )
        ((_, article),) = decoded.items
        if not isinstance(article, Article):
            raise LostTextError(
                f"the message that should hold the text of {quoted(id_of(name))} is no article ({place})"
            )
        self._keep(origin, article)
        return article

    def _keep(self, origin: Origin, article: Article) -> None:
        """Keep an article, in place of those that were not asked for the longest."""
        if len(article.body) > _KEPT_CHARACTERS // _LEAST_KEPT:
            return
        with self._lock:
            if origin not in self._kept:
                self._kept[origin] = article
                self._characters += len(article.body)
            while self._characters > _KEPT_CHARACTERS:
                _, dropped = self._kept.popitem(last=False)
                self._characters -= len(dropped.body)
