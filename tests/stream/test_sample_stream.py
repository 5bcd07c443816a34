"""The sample stream through a service: what comes out, what its metrics say of it, and its HTTP port meanwhile.

Knows the labels of the samples and all that outputs carry; how texts are judged is tested in tests/engine.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from deploy.demo.samples import Sample, sample_stream
from tests.stream.messages import Headers, Incoming, article, produce
from tests.stream.numbered import number_of, numbered, numbers_of
from tests.stream.records import Outputs, collect, read_topics
from tests.stream.recount import counted, recount, told
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")

_FIRST_HAND = ("original", "event-pair", "bulletin")
_HEX = re.compile(r"[0-9a-f]{16}")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@dataclass(frozen=True, slots=True)
class Sampled:
    """The sample stream, followed by a message of 10 MB, and what the service made of it.

    Attributes:
        topics: of the run.
        service: still running.
        samples: the stream; a message's number is its index here.
        sent: the messages.
        outputs: everything that came out.
        began: a moment before the first message was sent.
    """

    topics: Topics
    service: Service
    samples: list[Sample]
    sent: list[Incoming]
    outputs: Outputs
    began: datetime


@pytest.fixture(scope="module")
def sampled(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sampled]:
    """The sample stream through a service with default settings."""
    topics, samples, began = fresh_topics(bootstrap), sample_stream(), datetime.now(UTC)
    giant = article("giant", "x" * (10 << 20))
    headers: Headers = [
        ("crawler", b"first"),
        ("stream_dedup.fingerprint", b"of an earlier run"),
        ("crawler", b"second"),
        ("without value", None),
        ("stream_dedup.reason", b"of an earlier run"),
    ]
    sent = numbered([*(Incoming(sample.value, sample.key) for sample in samples), giant], headers)
    with Service(tmp_path_factory.mktemp("sampled"), bootstrap, topics) as service:
        assert produce(bootstrap, topics.input, sent) == list(range(len(sent)))
        outputs = collect(bootstrap, topics, len(sent), service)
        yield Sampled(topics, service, samples, sent, outputs, began)


def test_every_message_comes_out_exactly_once(sampled: Sampled) -> None:
    """Together the outputs hold each message once: none is lost, none comes out twice."""
    assert numbers_of(sampled.outputs) == list(range(len(sampled.sent)))


def test_first_hand_articles_are_unique(sampled: Sampled) -> None:
    """No first-hand article is taken for a copy, not even another report of an event or a bulletin of a template."""
    unique = {number_of(record) for record in sampled.outputs.unique}
    wanted = {number for number, sample in enumerate(sampled.samples) if sample.kind in _FIRST_HAND}
    assert wanted <= unique


def test_reposts_are_linked_to_their_originals(sampled: Sampled) -> None:
    """At least 95% of the labelled reposts are links to the article that they copy."""
    found = {record.json()["offset"]: record.json()["duplicate_of"] for record in sampled.outputs.duplicates}
    reposts = {number: sample.repost_of for number, sample in enumerate(sampled.samples) if sample.repost_of}
    right = sum(found.get(number) == original for number, original in reposts.items())
    assert right / len(reposts) >= 0.95


def test_broken_messages_are_dead_letters_with_their_reason(sampled: Sampled) -> None:
    """Each broken message, and no other, is a dead letter with its labelled reason."""
    reasons = {number_of(record): record.own("reason") for record in sampled.outputs.dead}
    labelled: dict[int, str | None] = {
        number: sample.dead_reason for number, sample in enumerate(sampled.samples) if sample.dead_reason
    }
    assert reasons == labelled | {len(sampled.samples): "too_large"}


def test_unique_articles_carry_the_bytes_that_came(sampled: Sampled) -> None:
    """A unique article has the incoming bytes as its value and its id as its key."""
    for record in sampled.outputs.unique:
        sample = sampled.samples[number_of(record)]
        assert record.value == sample.value
        if sample.id is None:
            assert re.fullmatch(rb"(url|content):[0-9a-f]{32}", record.key or b"")
        else:
            assert record.key == sample.id.encode()


def test_unique_articles_carry_fingerprint_epoch_and_incoming_headers(sampled: Sampled) -> None:
    """The service adds fingerprint and epoch to the incoming headers and removes its own headers from earlier runs."""
    for record in sampled.outputs.unique:
        assert _HEX.fullmatch(record.own("fingerprint") or "")
        assert record.own("idf_epoch") == "0"
        assert record.own("reason") is None
        assert len(record.headers) == len(record.incoming_headers()) + 2
        incoming = sampled.sent[number_of(record)].headers
        assert record.incoming_headers() == [pair for pair in incoming if not pair[0].startswith("stream_")]


_LINK_TYPES: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "duplicate_of": str,
    "matched": str,
    "relation": str,
    "jaccard": float,
    "containment": float,
    "hamming": int,
    "fingerprint": str,
    "idf_epoch": int,
    "candidate_source": str,
    "source": str,
    "url": str,
    "topic": str,
    "partition": int,
    "offset": int,
    "published_at": (str, type(None)),
    "received_at": str,
    "decided_at": str,
}


def test_links_have_all_fields_with_their_types(sampled: Sampled) -> None:
    """A link is a JSON object of 18 fields; its key is the article's id."""
    assert sampled.outputs.duplicates
    for record in sampled.outputs.duplicates:
        link = record.json()
        assert list(link) == list(_LINK_TYPES)
        for name, kind in _LINK_TYPES.items():
            assert isinstance(link[name], kind), name
        assert record.key == link["id"].encode()


def test_links_say_what_was_compared(sampled: Sampled) -> None:
    """Measures are within their bounds; relation and candidate source are documented values."""
    fingerprints = {(r.key or b"").decode(): int(r.own("fingerprint") or "", 16) for r in sampled.outputs.unique}
    for record in sampled.outputs.duplicates:
        link = record.json()
        assert link["relation"] in {"exact", "near", "contained", "contains", "redelivery"}
        assert link["candidate_source"] in {"content", "landmark", "simhash", "id"}
        assert 0 <= link["jaccard"] <= 1
        assert 0 <= link["containment"] <= 1
        assert _HEX.fullmatch(link["fingerprint"])
        if link["matched"] in fingerprints:
            other = fingerprints[link["matched"]]
            assert link["hamming"] == (int(link["fingerprint"], 16) ^ other).bit_count()
        if link["relation"] in {"exact", "redelivery"}:
            assert (link["jaccard"], link["containment"]) == (1.0, 1.0)


def test_links_name_the_message_that_they_are_about(sampled: Sampled) -> None:
    """Topic, partition, offset, source and URL of a link are those of the incoming message."""
    for record in sampled.outputs.duplicates:
        link = record.json()
        fields = json.loads(sampled.samples[link["offset"]].value or b"")
        assert (link["topic"], link["partition"]) == (sampled.topics.input, 0)
        assert link["id"] == fields["id"]
        assert (link["source"], link["url"]) == (fields["source"], fields["url"])


def test_links_have_times_in_iso_8601(sampled: Sampled) -> None:
    """Published, received and decided are UTC times with milliseconds, received before decided."""
    for record in sampled.outputs.duplicates:
        link = record.json()
        times = [link["published_at"], link["received_at"], link["decided_at"]]
        assert all(_ISO.fullmatch(moment) for moment in times)
        published, received, decided = map(datetime.fromisoformat, times)
        assert published == _moment(json.loads(sampled.samples[link["offset"]].value or b"")["published_at"])
        # Kafka keeps whole milliseconds.
        assert sampled.began.timestamp() - 0.001 <= received.timestamp() <= decided.timestamp()
        assert decided <= datetime.now(UTC)


def _moment(written: str | int) -> datetime:
    if isinstance(written, str):
        return datetime.fromisoformat(written)
    return datetime.fromtimestamp(written / 1000 if written > 10**11 else written, UTC)


def test_dead_letters_carry_the_original_and_where_it_came_from(sampled: Sampled) -> None:
    """A dead letter has the original key, value and headers, and names reason, exception and origin."""
    for record in sampled.outputs.dead:
        number = number_of(record)
        sent = sampled.sent[number]
        assert (record.key, record.value) == (sent.key, sent.value)
        assert record.incoming_headers() == [pair for pair in sent.headers if not pair[0].startswith("stream_")]
        assert (record.own("exception") or "").startswith("UndecodableError: ")
        origin = (record.own("topic"), record.own("partition"), record.own("offset"))
        assert origin == (sampled.topics.input, "0", str(number))
        assert record.own("fingerprint") is None
        assert record.own("value_left_out") is None


def test_message_over_the_limit_is_a_whole_dead_letter(sampled: Sampled) -> None:
    """A message of 10 MB, over input.max_message_bytes, goes whole to a topic of dead letters that accepts it."""
    (record,) = [record for record in sampled.outputs.dead if number_of(record) == len(sampled.samples)]
    assert record.own("reason") == "too_large"
    assert record.value == sampled.sent[-1].value
    assert "input.max_message_bytes = 8388608 is the limit" in (record.own("exception") or "")


def test_metrics_agree_with_what_came_out(sampled: Sampled) -> None:
    """Articles by decision and relation, and dead letters by reason, are counted exactly as the topics hold them."""
    outputs, service = sampled.outputs, sampled.service
    relations = Counter(("duplicate", str(record.json()["relation"])) for record in outputs.duplicates)
    articles = relations + Counter({("unique", "none"): len(outputs.unique)})
    reasons = Counter((record.own("reason") or "",) for record in outputs.dead)
    sources = Counter((str(record.json()["candidate_source"]),) for record in outputs.duplicates)
    # The counters are updated after the commit, a moment after the outputs are visible.
    wait_until(
        lambda: service.metrics().by("decision_seconds_count") == {(): len(sampled.sent)}, "all messages counted"
    )
    metrics = service.metrics()
    assert metrics.by("articles_total", "decision", "relation") == articles
    assert metrics.by("dead_letters_total", "reason") == reasons
    assert metrics.by("matches_total", "source") == sources
    assert metrics.by("commit_messages_sum") == {(): len(sampled.sent)}
    (commits,) = metrics.series("commit_messages_count")
    assert metrics.by("transactions_total", "outcome") == {("committed",): commits}
    assert {"decode", "features", "produce", "transaction", "apply"} <= {
        stage for (stage,) in metrics.by("stage_seconds_total", "stage")
    }


def test_topic_of_clusters_agrees_with_the_links(bootstrap: str, sampled: Sampled) -> None:
    """Copies and sources of each cluster equal what a reader counts from unique articles and links."""
    counted_here = counted(recount(sampled.outputs, number_of))
    assert sum(copies for copies, _ in counted_here.values()) > 200
    # The topics of one transaction need not show it at the same moment.
    wait_until(lambda: _told(bootstrap, sampled.topics) == counted_here, "the clusters agree")


def _told(bootstrap: str, topics: Topics) -> dict[str, tuple[int, Counter[str]]]:
    return told(read_topics(bootstrap, [topics.clusters])[topics.clusters])


def test_gauges_say_that_all_is_read(sampled: Sampled) -> None:
    """Once everything is judged the lag is 0, and ready, role, partitions, epoch and progress are right."""
    service, articles = sampled.service, len(sampled.outputs.unique) + len(sampled.outputs.duplicates)
    wait_until(lambda: service.metrics().series("consumer_lag_messages") == [0.0], "lag of 0")
    metrics = service.metrics()
    assert metrics.series("ready") == [1.0]
    assert metrics.series("assigned_partitions") == [1.0]
    assert metrics.series("idf_epoch") == [0.0]
    assert metrics.series("state_articles_judged") == [articles]
    assert metrics.series("index_entries")[0] >= len(sampled.outputs.unique)
    assert metrics.series("idf_vocabulary_words")[0] > 1000
    assert metrics.by("role", "role") == {("active",): 1.0}
    assert metrics.series("changelog_records_remaining") == [0.0]
    assert metrics.series("changelog_position")[0] > 0
    assert metrics.series("window_generations") == [1.0]


def test_health_and_readiness_answer(sampled: Sampled) -> None:
    """/startupz, /healthz and /readyz are 200 while the service reads, as plain text; /metrics is Prometheus text."""
    for path in ("/startupz", "/healthz", "/readyz"):
        answer = sampled.service.ask(path)
        assert (answer.status, answer.text) == (200, "ok\n")
        assert answer.kind.startswith("text/plain")
    assert sampled.service.ask("/metrics").kind.startswith("text/plain; version=")


def test_other_paths_and_methods_are_refused(sampled: Sampled) -> None:
    """Unknown paths get 404, methods other than GET and HEAD 405; nothing can be changed through the port."""
    assert sampled.service.ask("/").status == 404
    assert sampled.service.ask("/metrics/x").status == 404
    for method in ("POST", "PUT", "DELETE"):
        assert sampled.service.ask("/readyz", method).status == 405
    assert sampled.service.ask("/readyz", "HEAD").status == 200


def test_http_port_is_on_loopback_only(sampled: Sampled) -> None:
    """By default nothing listens on an address that other machines can reach."""
    connections = psutil.Process(sampled.service.pid).net_connections("inet")
    listening = {connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_second_instance_on_the_same_state_is_refused(bootstrap: str, sampled: Sampled) -> None:
    """A second instance ends with exit code 3 and names the directory; the first carries on."""
    first = sampled.service
    with Service(first.directory, bootstrap, sampled.topics) as second:
        assert second.wait_end() == 3
    assert f"state directory {first.state} is in use" in second.log()
    assert first.running
    assert first.ask("/readyz").status == 200


def test_taken_http_port_is_named(bootstrap: str, sampled: Sampled, tmp_path: Path) -> None:
    """If the port is taken, the service ends with exit code 1 and a message that names the port."""
    _, port = sampled.service.address
    with Service(tmp_path, bootstrap, sampled.topics, f"http.port={port}") as second:
        assert second.wait_end() == 1
    assert str(port) in second.log()
