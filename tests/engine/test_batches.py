"""Decisions depend on the stream alone: not on how it is cut into batches, on the kind of store, or on restarts.

Knows the Deduplicator and its stores; knows no broker. Which texts are copies is tested in test_model.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stream_dedup import Article, Decision, Deduplicator, EngineSettings, Relation
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import MemoryStore
from tests.engine.durable import contents, shown_lists
from tests.engine.model import Item, article, parts
from tests.engine.one_by_one import REPOST, SETTINGS, decisions_on, one_by_one
from tests.engine.samples import LIGHT, articles, bodies, settings


@pytest.mark.parametrize("size", [1, 7, 64, 512])
def test_batch_size_changes_no_decision(size: int) -> None:
    """Fingerprints, epochs, relations and links are the same in batches of any size."""
    found = decisions_on(articles(), range(size, len(articles()), size))
    assert found == list(one_by_one())


def test_adding_many_is_adding_one_by_one() -> None:
    """`add_batch` continues across the ends of epochs and gives the decisions of `add`."""
    with Deduplicator(settings=SETTINGS) as engine:
        assert engine.add_batch(articles()) == list(one_by_one())


@given(st.data())
@hypothesis_settings(
    max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
def test_cuts_change_no_decision(data: st.DataObject) -> None:
    """Wherever the stream is cut into batches, even empty ones, the decisions are the same."""
    cuts = data.draw(st.lists(st.integers(0, len(articles())), max_size=12).map(sorted))
    assert decisions_on(articles(), cuts) == list(one_by_one())


def _entangled(number: int) -> list[Article]:
    """Return a round-up and two texts, each of which shares a part of the last text.

    Most of the last text is in the round-up, which is too long to resemble it much.
    """
    chance = Random(number)
    length = chance.randint(300, 900)
    last, end, front = _hanzi(chance, length), length * 57 // 100, length * 52 // 100
    margins = [_hanzi(chance, length // 4) for _ in range(4)]
    texts = {
        "round-up": _hanzi(chance, length) + last[: length * 85 // 100] + _hanzi(chance, 2 * length),
        "end": margins[0] + last[-end:] + margins[1],
        "front": margins[2] + last[:front] + margins[3],
        "last": last,
    }
    return [Article(f"{name} {number}", text) for name, text in texts.items()]


def _hanzi(chance: Random, count: int) -> str:
    return "".join(chr(chance.randrange(0x4E00, 0x9000)) for _ in range(count))


def test_text_that_is_like_several_others_has_one_decision_in_any_batch() -> None:
    """The first proof that a text is a copy ends the search, even if one that came just before is more like it."""
    stream = [article for number in range(60) for article in _entangled(number)]
    alone = decisions_on(stream, range(1, len(stream)))
    assert len({decision.link.duplicate_of.split()[0] for decision in alone[3::4] if decision.link}) > 1
    assert decisions_on(stream, range(2, len(stream), 2)) == alone
    assert decisions_on(stream, range(4, len(stream), 4)) == alone


def test_stream_of_the_tests_crosses_epochs_and_has_all_relations() -> None:
    """The stream that the tests above compare is varied enough to be worth comparing."""
    assert {decision.epoch for decision in one_by_one()} == {0, 1, 2, 3, 4}
    relations = {decision.link.relation for decision in one_by_one() if decision.link}
    assert relations == set(Relation) - {Relation.REVISION}


_TEXTS = st.integers(0, 3).map(lambda place: bodies()[place])
_VARIANTS = st.sampled_from(["", REPOST, "x"])
_STREAMS = st.lists(
    st.builds(
        lambda name, front, body: Article(name, front + body),
        st.sampled_from("abc"),
        _VARIANTS,
        _TEXTS,
    ),
    min_size=2,
    max_size=8,
)


@given(stream=_STREAMS, cuts=st.sets(st.integers(1, 7), max_size=7))
@hypothesis_settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_versions_of_few_ids_do_not_depend_on_cuts(stream: list[Article], cuts: set[int]) -> None:
    """Redeliveries, revisions and copies of revisions have the same decisions and links in batches of any size."""
    places = sorted(cut for cut in cuts if cut < len(stream))
    whole = decisions_on(stream, [], LIGHT)
    assert decisions_on(stream, places, LIGHT) == whole


def test_revision_of_a_copy_has_the_same_link_in_any_batch() -> None:
    """The link of a revision of an unindexed copy is the same whether both came in one batch or in two."""
    stream = [
        Article("original", bodies()[0]),
        Article("copy", bodies()[0] + "。"),
        Article("copy", bodies()[1]),
        Article("copy of the revision", bodies()[1] + "！"),
    ]
    in_one, in_three = decisions_on(stream, []), decisions_on(stream, [1, 2])
    assert [decision.link and decision.link.relation for decision in in_one] == [None, "exact", "revision", "exact"]
    assert in_one[-1].link is not None
    assert in_one[-1].link.duplicate_of == "copy", "the revision has left the cluster of the original"
    assert in_three == in_one


def test_revision_that_is_still_a_copy_stays_a_copy() -> None:
    """A copy with a few words changed under its own id is not a new article, nor a copy of itself."""
    stream = [
        Article("original", bodies()[0]),
        Article("copy", bodies()[0] + "。"),
        Article("copy", bodies()[0][: len(bodies()[0]) * 3 // 4]),
        Article("original", bodies()[0] + "（已更正）"),
    ]
    decisions = decisions_on(stream, [])
    assert [decision.unique for decision in decisions] == [True, False, False, True]
    assert [decision.link and decision.link.relation for decision in decisions[2:]] == ["contained", "revision"]
    assert decisions_on(stream, [1, 2, 3]) == decisions


def test_articles_with_many_texts_are_judged_together() -> None:
    """Ids that each drop their oldest text for a new one are one run; a copy of what is dropped ends it."""
    texts, ids = bodies(), range(4)

    def text(name: int, version: int) -> Article:
        return Article(str(name), texts[10 * name + version])

    newest = [text(name, 8) for name in ids]
    stream = [*(text(name, version) for version in range(8) for name in ids), *newest]
    copy = Article("copy of the oldest text", texts[0] + "。")
    with Deduplicator(settings=settings()) as engine:
        engine.add_batch(stream[: -len(ids)])
        assert len(engine.decide(newest).change.steps) == 1, "no later article finds what is dropped"
        assert len(engine.decide([*newest, copy]).change.steps) == 2, "the copy must not be linked to it"
    whole = decisions_on([*stream, copy], [], settings())
    assert whole == decisions_on([*stream, copy], range(1, len(stream) + 1), settings())
    assert whole[-1].link is None


@pytest.mark.parametrize("landmarks", [True, False])
def test_articles_that_are_looked_at_again_are_counted_once(*, landmarks: bool) -> None:
    """One that changes the index ends what is judged together: what was found for those behind it is not kept."""
    stream: list[Item] = [
        article("x", 1),
        article("a"),
        article("b", variant=1),
        article("a", 1, 2),  # it leaves its cluster to its copy
        article("c", variant=1),
        article("d", 1),
        article("new", 2),
        article("new", 0, 1),  # and so does this one
        Article("like none", bodies()[30]),
    ]
    chosen = LIGHT.model_copy(update={"landmarks": LIGHT.landmarks.model_copy(update={"enabled": landmarks})})
    assert _counted(stream, set(), chosen) == _counted(stream, {3, 4, 7, 8}, chosen)
    # Landmarks leave nothing open that the tables could show.
    assert all(_counted(stream, set(), chosen)[-2:]) == (not landmarks)


def _counted(stream: Sequence[Item], cuts: set[int], chosen: EngineSettings) -> list[int]:
    """Return the longest lists, and what batches add up: candidates, those confirmed and hot keys; probes and hits.

    All but the last two by kind.
    """
    longest, total = np.zeros(3, np.int64), np.zeros(11, np.int64)
    with Deduplicator(settings=chosen) as engine:
        for part in parts(stream, cuts):
            tally = engine.process(part).tally
            longest = np.maximum(longest, tally.longest_lists)
            total += [*tally.candidates, *tally.confirmed, *tally.hot_keys, tally.probes, tally.hits]
    return [*longest.tolist(), *total.tolist()]


def test_full_vocabulary_forgets_the_same_words_in_any_batch() -> None:
    """Which words are counted once the word table is full does not depend on how the stream is cut."""
    small = settings(idf={"epoch_articles": 50, "max_words": 1000})
    stream = articles()[:200]
    assert decisions_on(stream, range(7, 200, 7), small) == decisions_on(stream, range(1, 200), small)


def test_full_vocabulary_is_the_same_after_reopening(tmp_path: Path) -> None:
    """Words dropped because the word table is full are dropped again after the state is reopened."""
    small = settings(idf={"epoch_articles": 50, "max_words": 1000})
    stream, found = articles()[:200], []
    for start in range(0, len(stream), 16):
        with Deduplicator(tmp_path, small) as engine:
            found += engine.add_batch(stream[start : start + 16])
    assert found == decisions_on(stream, range(16, len(stream), 16), small)


def test_rocks_and_memory_decide_the_same(tmp_path: Path) -> None:
    """A state on disk gives the same decisions as one in memory."""
    with Deduplicator(tmp_path, SETTINGS) as engine:
        assert engine.add_batch(articles()) == list(one_by_one())


def test_rocks_and_memory_hold_the_same(tmp_path: Path) -> None:
    """The same articles leave the same keys and values in both stores."""
    with (
        Deduplicator(settings=SETTINGS, store=MemoryStore()) as memory,
        Deduplicator(settings=SETTINGS, store=RocksStore(tmp_path)) as rocks,
    ):
        for engine in (memory, rocks):
            engine.add_batch(articles()[:150])
        assert contents(memory) == contents(rocks)
        assert shown_lists(memory) == shown_lists(rocks)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_reopening_changes_no_decision(tmp_path: Path, seed: int) -> None:
    """A stream interrupted at random places continues as if nothing had happened."""
    places = sorted(Random(seed).sample(range(1, len(articles())), 6))  # places, not secrets
    found: list[Decision] = []
    for start, stop in pairwise([0, *places, len(articles())]):
        with Deduplicator(tmp_path, SETTINGS) as engine:
            assert engine.progress.judged == start
            found += engine.add_batch(articles()[start:stop])
    assert found == list(one_by_one())
