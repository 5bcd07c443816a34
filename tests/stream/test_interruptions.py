"""A stream that is interrupted by stops and kills gives what an uninterrupted run gives.

Knows signals and whole runs; kills at each step of the protocol are tested in tests/faults.
"""

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.demo.samples import sample_stream
from tests.stream.messages import Incoming, produce
from tests.stream.numbered import number_of, numbered, numbers_of
from tests.stream.records import Arrivals, Outputs, Record, collect
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")

_EPOCHS = "idf.epoch_articles=100"
_REVISIONS = "verify.duplicates=exact,near,contained,contains,revision,redelivery"
_SMALL_BATCHES = (_EPOCHS, _REVISIONS, "commit.articles=8")
# A static member replaces the killed one at once, instead of after the session timeout of 45 s.
_STATIC = "kafka.consumer.group.instance.id=the-one"


@dataclass(frozen=True, slots=True)
class Reference:
    """An uninterrupted run.

    Attributes:
        topics: of the run; others may read its input.
        count: messages of the input.
        outputs: everything that came out.
    """

    topics: Topics
    count: int
    outputs: Outputs


@pytest.fixture(scope="module")
def reference(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Two sample streams in a row, so that ids recur with other texts; the epoch changes often."""
    topics = fresh_topics(bootstrap)
    samples = [sample for seed in (20, 21) for sample in sample_stream(seed)]
    sent = numbered(Incoming(sample.value, sample.key) for sample in samples)
    assert produce(bootstrap, topics.input, sent) == list(range(len(sent)))
    with Service(tmp_path_factory.mktemp("reference"), bootstrap, topics, _EPOCHS, _REVISIONS) as service:
        outputs = collect(bootstrap, topics, len(sent), service)
        service.stop()
    return Reference(topics, len(sent), outputs)


def test_reference_has_what_interruptions_could_break(reference: Reference) -> None:
    """The uninterrupted run spans several epochs and has revisions and redeliveries."""
    relations = {record.json()["relation"] for record in reference.outputs.duplicates}
    assert {"revision", "redelivery", "exact", "near", "contained", "contains"} <= relations
    assert {record.own("idf_epoch") for record in reference.outputs.unique} >= {"0", "1", "2", "3"}
    assert numbers_of(reference.outputs) == list(range(reference.count))


def test_stream_interrupted_by_sigterm_gives_the_same_outputs(
    bootstrap: str, reference: Reference, tmp_path: Path
) -> None:
    """Stops at random moments change nothing: the same decisions in the same order, each once.

    Each stop under load ends within 10 s with exit code 0.
    """
    topics = reference.topics.with_other_outputs(bootstrap)
    rng = random.Random(7)  # when to stop
    for stop in sorted(rng.randrange(reference.count * 9 // 10) for _ in range(2)):
        with (
            Arrivals(bootstrap, topics) as arrivals,
            Service(tmp_path, bootstrap, topics, *_SMALL_BATCHES) as service,
        ):
            wait_until(lambda: arrivals.count() >= stop, f"{stop} outputs")  # noqa: B023  # called at once
            service.stop()
    with Service(tmp_path, bootstrap, topics, *_SMALL_BATCHES) as service:
        outputs = collect(bootstrap, topics, reference.count, service)
        service.stop()
    _assert_same(outputs, reference.outputs)


def test_sigkill_loses_nothing_and_doubles_nothing(bootstrap: str, reference: Reference, tmp_path: Path) -> None:
    """After kills, read_committed readers find what an uninterrupted run gives: everything once, in order."""
    topics = reference.topics.with_other_outputs(bootstrap)
    outputs = _killed_at((150, 500), bootstrap, topics, tmp_path, *_SMALL_BATCHES)
    _assert_same(outputs, reference.outputs)


def test_sigkill_without_transactions_repeats_the_same_decisions_under_the_same_keys(
    bootstrap: str, reference: Reference, tmp_path: Path
) -> None:
    """With commit.guarantee=at_least_once nothing is missing, and repeated outputs differ only in decided_at."""
    topics = reference.topics.with_other_outputs(bootstrap)
    flags = (*_SMALL_BATCHES, "commit.guarantee=at_least_once")
    outputs = _killed_at((400,), bootstrap, topics, tmp_path, *flags)
    for found, wanted in zip(_parts(outputs), _parts(reference.outputs), strict=True):
        judgements: defaultdict[int, set[str]] = defaultdict(set)
        for record in found:
            judgements[_place(record)].add(_judgement(record))
        assert judgements == {_place(record): {_judgement(record)} for record in wanted}


def _killed_at(stops: Iterable[int], bootstrap: str, topics: Topics, directory: Path, *flags: str) -> Outputs:
    """Kill services at given numbers of outputs, let a last one run to the end, and return what came out."""
    for stop in stops:
        with (
            Arrivals(bootstrap, topics) as arrivals,
            Service(directory, bootstrap, topics, *flags, _STATIC) as service,
        ):
            wait_until(lambda: arrivals.count() >= stop, f"{stop} outputs")  # noqa: B023  # called at once
            service.kill()
    with Service(directory, bootstrap, topics, *flags, _STATIC) as service:
        service.wait_ready()
        wait_until(lambda: _reached_end(service), "everything judged")
        service.stop()
    return collect(bootstrap, topics, 0)


def _reached_end(service: Service) -> bool:
    metrics = service.metrics()
    return metrics.series("ready") == [1.0] and metrics.series("consumer_lag_messages") == [0.0]


def _parts(outputs: Outputs) -> tuple[list[Record], list[Record], list[Record]]:
    return outputs.unique, outputs.duplicates, outputs.dead


def _place(record: Record) -> int:
    """Return the input offset of an output."""
    return int(record.json()["offset"]) if not record.headers else number_of(record)


def _judgement(record: Record) -> str:
    """Return all of an output except the time of the decision."""
    if record.headers:
        return repr((record.key, record.value, record.headers))
    return repr((record.key, {**record.json(), "decided_at": ""}))


def _assert_same(found: Outputs, wanted: Outputs) -> None:
    for some, others in zip(_parts(found), _parts(wanted), strict=True):
        assert [_judgement(record) for record in some] == [_judgement(record) for record in others]
