"""Preparing articles ahead of their turn changes nothing but the time it takes.

Knows outcomes and changes with and without it; which thread prepares is up to the caller.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from stream_dedup import Article, Deduplicator
from stream_dedup.arrays import I64, U64
from stream_dedup.article import Unjudged, Withdrawal, Withdrawn
from stream_dedup.compiled.hashing import empty_table, place_all
from stream_dedup.engine.judged import Judged
from stream_dedup.engine.prepared import Prepared, joined
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.index.changelog import LogRecord, commit_records
from stream_dedup.text.lines import NOTHING_LEARNT
from tests.engine.model import DAY, Item
from tests.engine.samples import articles, settings

_SITE = "江边日报"
_HEADER = "江边日报网络版每天为您送上最新的本地消息！\n"
_NEWEST = 1_790_000_000_000  # ms

# Epochs end within batches and between them; from the second one on, the site's header is known.
_GROUPS: dict[str, dict[str, Any]] = {"idf": {"epoch_articles": 60}, "window": {"days": 30, "late": "dead"}}

Prepare = Callable[[Deduplicator, Sequence[Item]], Prepared | None]


def _stream() -> list[Item]:
    """Return the samples with one site's header, a withdrawal after every ninth, and every eleventh late."""
    items: list[Item] = []
    for number, one in enumerate(articles()[:400]):
        lag = 40 * DAY if number % 11 == 10 else 0
        moment = _NEWEST + number - lag
        items.append(Article(one.id, _HEADER + one.body, one.title, source=_SITE, published_ms=moment))
        if number % 9 == 8:
            items.append(Withdrawal(articles()[number - 4].id))
    return items


def _at_once(engine: Deduplicator, items: Sequence[Item]) -> Prepared | None:
    return engine.prepare(items)


def _in_parts(engine: Deduplicator, items: Sequence[Item]) -> Prepared | None:
    parts = [engine.prepare(items[at : at + 13]) for at in range(0, len(items), 13)]
    return joined([part for part in parts if part is not None])


def _fields(features: Features) -> dict[str, Any]:
    """Return everything that features hold, as lists."""

    def plain(value: object) -> object:
        if isinstance(value, np.ndarray):
            return value.tolist()
        if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return [plain(one) for one in value] if isinstance(value, tuple) else value

    return {field.name: plain(getattr(features, field.name)) for field in fields(features)}


def _run(prepare: Prepare | None, size: int, groups: dict[str, dict[str, Any]]) -> tuple[list[Judged], list[LogRecord]]:
    """Judge the stream in batches, each prepared before the previous one is applied."""
    stream = _stream()
    batches = [stream[at : at + size] for at in range(0, len(stream), size)]
    judged: list[Judged] = []
    records: list[LogRecord] = []
    with Deduplicator(settings=settings(**groups)) as engine:
        coming = prepare(engine, batches[0]) if prepare else None
        for batch, following in pairwise([*batches, []]):
            prepared, coming = coming, prepare(engine, following) if prepare else None
            one = engine.decide(batch, prepared)
            records += commit_records(engine.commit_of(one.change, {("in", 0): len(records)}))
            engine.apply(one.change)
            judged.append(one)
    return judged, records


@pytest.mark.parametrize("segment", ["all", "unproved"])
@pytest.mark.parametrize("prepare", [_at_once, _in_parts])
@pytest.mark.parametrize("size", [7, 64, 500])
def test_what_is_prepared_changes_nothing(size: int, prepare: Prepare, segment: str) -> None:
    """Outcomes and the changelog are the same on a stream with withdrawals, late articles and new epochs."""
    groups = {**_GROUPS, "text": {"segment": segment}}
    plain, records = _run(None, size, groups)
    ahead, records_ahead = _run(prepare, size, groups)
    assert [one.outcomes for one in ahead] == [one.outcomes for one in plain]
    assert records_ahead == records
    kinds = {type(outcome) for one in plain for outcome in one.outcomes}
    assert {Unjudged, Withdrawn} < kinds
    assert sum(one.tally.without_lines for one in plain) > 200


def test_features_are_computed_in_their_turn_only_where_other_lines_are_known_by_then() -> None:
    """After an epoch ends, only the next batch is recomputed: the known lines have changed once."""
    judged, _ = _run(_at_once, 20, _GROUPS)
    again = [place for place, one in enumerate(judged) if "features" in one.seconds]
    plain, _ = _run(None, 20, _GROUPS)
    first = next(place for place, one in enumerate(plain) if one.tally.without_lines)
    assert again
    assert all(first <= place <= first + 1 for place in again)


def test_only_articles_with_lines_that_are_told_otherwise_are_worked_out_again() -> None:
    """Of two sites, one's header is learnt or forgotten meanwhile: the other's articles stay as they were prepared.

    The result is the same as recomputing all of them.
    """
    stream = [
        Article(one.id, _HEADER + one.body, one.title, source=_SITE) if number % 3 == 1 else one
        for number, one in enumerate(articles()[:60])
    ]
    fingerprinter = Fingerprinter(settings())
    keys = fingerprinter.features(stream).lines
    header = keys.of(1)[1]  # after the site's number
    learnt = empty_table(2)
    place_all(learnt, np.array([header]))
    wanted = np.arange(5, 55)
    of_site = [place for place, number in enumerate(wanted.tolist()) if number % 3 == 1]
    for before, since in ((NOTHING_LEARNT, learnt), (learnt, NOTHING_LEARNT)):
        asked: list[int] = []

        def anew(places: I64, asked: list[int] = asked, since: U64 = since) -> Features:
            asked += places.tolist()
            return fingerprinter.features([stream[wanted[place]] for place in places.tolist()], since)

        prepared = Prepared(stream, fingerprinter.features(stream, before), before)
        assert _fields(prepared.of(wanted, since, anew)) == _fields(fingerprinter.features(stream[5:55], since))
        assert asked == of_site


def test_nothing_is_worked_out_again_where_the_lines_known_are_the_same() -> None:
    """The same lines in a table of another size are still the same lines."""
    stream = articles()[:20]
    fingerprinter = Fingerprinter(settings())
    features = fingerprinter.features(stream)

    def anew(_places: I64) -> Features:
        raise AssertionError("nothing has changed")

    some = Prepared(stream, features, NOTHING_LEARNT).of(np.array([2, 3, 9]), empty_table(50), anew)
    assert _fields(some) == _fields(fingerprinter.features([stream[2], stream[3], stream[9]]))


@pytest.mark.parametrize("of", [slice(1, 3), slice(1), slice(3), slice(1, None, -1)])
def test_what_was_prepared_of_other_articles_is_refused(of: slice) -> None:
    """Others, fewer, more, or in another order: their features would decide on the wrong texts."""
    with Deduplicator(settings=settings(**_GROUPS)) as engine:
        prepared = engine.prepare(articles()[of])
        with pytest.raises(ValueError, match="`prepared` is of other articles"):
            engine.decide(articles()[:2], prepared)
        assert engine.decide(articles()[:2], engine.prepare(articles()[:2])).decisions


def test_nothing_is_prepared_of_withdrawals() -> None:
    """A batch without articles has nothing to prepare, and neither has an empty list of parts."""
    with Deduplicator(settings=settings(**_GROUPS)) as engine:
        assert engine.prepare([Withdrawal("a")]) is None
    assert joined([]) is None
