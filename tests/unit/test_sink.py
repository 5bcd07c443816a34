"""Outputs as they are sent: to which topic, under which key, with which headers.

Knows outcomes and messages; knows nothing of brokers. Dead letters are in test_dead_letters.
"""

from dataclasses import replace
from typing import Any

import orjson

from stream_dedup.article import (
    Article,
    Decision,
    Link,
    Origin,
    Relation,
    Source,
    Succession,
    SuccessionReason,
    Withdrawal,
    Withdrawn,
)
from stream_dedup.encode import JsonEncoder
from stream_dedup.settings import OutputSettings
from stream_dedup.stream.kafka.headers import Headers
from stream_dedup.stream.output.sink import Sink
from stream_dedup.trace import Trace
from tests.unit.arrived import ArrivedMessage

_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_TRACED = [("traceparent", _PARENT.encode())]
_ORIGIN = Origin("in", 1, 7, 2, Trace(_PARENT))
_ARTICLE = Article("b", "正文", origin=_ORIGIN, scope="cn")
_LINK = Link("canonical", "matched", Relation.NEAR, 0.9, 1.0, 3, Source.LANDMARK)
_DECISION = Decision(_ARTICLE, unique=False, fingerprint=255, epoch=4, link=_LINK, indexed=False)


class _Sent:
    """What a sink has sent, in place of a writer."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes, Any, Headers]] = []

    def send(self, topic: str, key: bytes, value: bytes | None, headers: Headers) -> None:
        self.messages.append((topic, key, value, headers))


def _sink() -> tuple[Sink, list[tuple[str, bytes, Any, Headers]]]:
    sent: Any = _Sent()
    return Sink(OutputSettings(), sent, JsonEncoder(), 10_000), sent.messages


def test_unique_article_is_sent_as_it_arrived() -> None:
    """With its own headers before those of the service; what an earlier run has added is left out."""
    message: Any = ArrivedMessage(b"{}", headers=[("own", b"1"), ("stream_dedup.scope", b"us")])
    sink, sent = _sink()
    sink.decision(message, replace(_DECISION, unique=True, link=None), 5)
    sink.decision(message, replace(_DECISION, unique=True, link=replace(_LINK, relation=Relation.REVISION)), 5)
    told = [("own", b"1"), ("stream_dedup.fingerprint", b"00000000000000ff"), ("stream_dedup.idf_epoch", b"4")]
    told.append(("stream_dedup.scope", b"cn"))
    revised = [("stream_dedup.relation", b"revision"), ("stream_dedup.matched", b"matched")]
    assert sent == [("articles.unique", b"cn\x1fb", b"{}", headers) for headers in (told, [*told, *revised])]


def test_link_is_sent_under_the_name_of_the_copy() -> None:
    """It goes on in the trace of the copy's message."""
    message: Any = ArrivedMessage(b"{}")
    sink, sent = _sink()
    sink.decision(message, _DECISION, 5)
    ((topic, key, value, headers),) = sent
    assert (topic, key, headers) == ("articles.duplicates", b"cn\x1fb", _TRACED)
    assert orjson.loads(value)["duplicate_of"] == "canonical"


def test_withdrawal_is_announced_under_the_name_of_the_article() -> None:
    """By a URL it may have taken another one than it names."""
    sink, sent = _sink()
    sink.withdrawn(Withdrawn(Withdrawal("a", "https://u/1", _ORIGIN, "cn"), "b", None), 5)
    ((topic, key, value, headers),) = sent
    assert (topic, key, headers) == ("articles.duplicates", b"cn\x1fb", _TRACED)
    assert orjson.loads(value)["id"] == "b"


def test_succession_is_announced_under_the_name_of_the_former_canonical_article() -> None:
    """It goes on in the trace of the message that led to it."""
    sink, sent = _sink()
    sink.successions([Succession("old", "new", SuccessionReason.POLICY, "cn")], _ARTICLE, 5)
    ((topic, key, value, headers),) = sent
    assert (topic, key, headers) == ("articles.duplicates", b"cn\x1fold", _TRACED)
    assert orjson.loads(value)["duplicate_of"] == "new"


def test_cluster_that_has_ended_has_a_tombstone() -> None:
    """Compaction removes nothing else."""
    sink, sent = _sink()
    sink.clusters({"a": None}, 5)
    assert sent == [("articles.clusters", b"a", None, [])]
