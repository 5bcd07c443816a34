"""What the engine promises: decisions depend on the stream alone, and a change is made whole or not at all.

Knows the Deduplicator and its stores; knows no broker. Which texts are copies is tested in test_model.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import stream_dedup
from stream_dedup import Article, Decision, Deduplicator, EngineSettings, Relation, Source
from stream_dedup.article import Withdrawal
from stream_dedup.compiled.hashing import hash_words
from stream_dedup.engine.judged import Change
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.lookup.candidates import CONTENT, LANDMARK, SIMHASH
from stream_dedup.index.runs.shelf import RUN_KEYS
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Drop, Family, MemoryStore, Put, Store, StoreError, StoreLockedError, Write
from stream_dedup.text.lexicon import read_words, shipped_list
from tests.engine.durable import shown_lists
from tests.engine.samples import LIGHT, WIDE, articles, bodies, settings

_EPOCH = 100
_SETTINGS = settings(idf={"epoch_articles": _EPOCH}, window={"days": 7})
_REPOST = "本报讯（记者 李明）"
_KEPT_OF_A_CLUSTER = 2  # entries: the canonical article's and one copy's


@cache
def _one_by_one() -> tuple[Decision, ...]:
    """Return the decisions on the sample stream, each article judged alone."""
    with Deduplicator(settings=_SETTINGS) as engine:
        return tuple(engine.add(article) for article in articles())


def _decisions(
    stream: Sequence[Article], cuts: Sequence[int], engine_settings: EngineSettings = _SETTINGS
) -> list[Decision]:
    """Return the decisions on a stream that is cut into batches at the given indices."""
    with Deduplicator(settings=engine_settings) as engine:
        return [
            decision
            for start, stop in pairwise([0, *cuts, len(stream)])
            for decision in engine.add_batch(stream[start:stop])
        ]


def _contents(store: Store) -> dict[Family, list[tuple[bytes, bytes]]]:
    """Return what a store holds, except which posting lists are currently in runs."""
    pairs = {family: list(store.items(family)) for family in Family}
    pairs[Family.META] = [pair for pair in pairs[Family.META] if not pair[0].startswith(RUN_KEYS)]
    return pairs


# ------------------------------------------------------------------------------------------ batches and stores


@pytest.mark.parametrize("size", [1, 7, 64, 512])
def test_batch_size_changes_no_decision(size: int) -> None:
    """Fingerprints, epochs, relations and links are the same in batches of any size."""
    found = _decisions(articles(), range(size, len(articles()), size))
    assert found == list(_one_by_one())


@given(st.data())
@hypothesis_settings(
    max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
def test_cuts_change_no_decision(data: st.DataObject) -> None:
    """Wherever the stream is cut into batches, even empty ones, the decisions are the same."""
    cuts = data.draw(st.lists(st.integers(0, len(articles())), max_size=12).map(sorted))
    assert _decisions(articles(), cuts) == list(_one_by_one())


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
    alone = _decisions(stream, range(1, len(stream)))
    assert len({decision.link.duplicate_of.split()[0] for decision in alone[3::4] if decision.link}) > 1
    assert _decisions(stream, range(2, len(stream), 2)) == alone
    assert _decisions(stream, range(4, len(stream), 4)) == alone


def test_stream_of_the_tests_crosses_epochs_and_has_all_relations() -> None:
    """The stream that the tests above compare is varied enough to be worth comparing."""
    assert {decision.epoch for decision in _one_by_one()} == {0, 1, 2, 3, 4}
    relations = {decision.link.relation for decision in _one_by_one() if decision.link}
    assert relations == set(Relation) - {Relation.REVISION}


_TEXTS = st.integers(0, 3).map(lambda place: bodies()[place])
_VARIANTS = st.sampled_from(["", _REPOST, "x"])
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
    whole = _decisions(stream, [], LIGHT)
    assert _decisions(stream, places, LIGHT) == whole


def test_revision_of_a_copy_has_the_same_link_in_any_batch() -> None:
    """The link of a revision of an unindexed copy is the same whether both came in one batch or in two."""
    stream = [
        Article("original", bodies()[0]),
        Article("copy", bodies()[0] + "。"),
        Article("copy", bodies()[1]),
        Article("copy of the revision", bodies()[1] + "！"),
    ]
    in_one, in_three = _decisions(stream, []), _decisions(stream, [1, 2])
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
    decisions = _decisions(stream, [])
    assert [decision.unique for decision in decisions] == [True, False, False, True]
    assert [decision.link and decision.link.relation for decision in decisions[2:]] == ["contained", "revision"]
    assert _decisions(stream, [1, 2, 3]) == decisions


def test_full_vocabulary_forgets_the_same_words_in_any_batch() -> None:
    """Which words are counted once the word table is full does not depend on how the stream is cut."""
    small = settings(idf={"epoch_articles": 50, "max_words": 1000})
    stream = articles()[:200]
    assert _decisions(stream, range(7, 200, 7), small) == _decisions(stream, range(1, 200), small)


def test_full_vocabulary_is_the_same_after_reopening(tmp_path: Path) -> None:
    """Words dropped because the word table is full are dropped again after the state is reopened."""
    small = settings(idf={"epoch_articles": 50, "max_words": 1000})
    stream, found = articles()[:200], []
    for start in range(0, len(stream), 16):
        with Deduplicator(tmp_path, small) as engine:
            found += engine.add_batch(stream[start : start + 16])
    assert found == _decisions(stream, range(16, len(stream), 16), small)


def test_rocks_and_memory_decide_the_same(tmp_path: Path) -> None:
    """A state on disk gives the same decisions as one in memory."""
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        assert engine.add_batch(articles()) == list(_one_by_one())


def test_rocks_and_memory_hold_the_same(tmp_path: Path) -> None:
    """The same articles leave the same keys and values in both stores."""
    with (
        Deduplicator(settings=_SETTINGS, store=MemoryStore()) as memory,
        Deduplicator(settings=_SETTINGS, store=RocksStore(tmp_path)) as rocks,
    ):
        for engine in (memory, rocks):
            engine.add_batch(articles()[:150])
        assert _contents(memory.state.store) == _contents(rocks.state.store)
        assert shown_lists(memory) == shown_lists(rocks)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_reopening_changes_no_decision(tmp_path: Path, seed: int) -> None:
    """A stream interrupted at random places continues as if nothing had happened."""
    places = sorted(Random(seed).sample(range(1, len(articles())), 6))  # places, not secrets
    found: list[Decision] = []
    for start, stop in pairwise([0, *places, len(articles())]):
        with Deduplicator(tmp_path, _SETTINGS) as engine:
            assert engine.progress.judged == start
            found += engine.add_batch(articles()[start:stop])
    assert found == list(_one_by_one())


# ---------------------------------------------------------------------------------------- decisions and changes


class WatchedStore(MemoryStore):
    """A store that counts its writes and fails on demand.

    Attributes:
        writes: so far, except those that only record which posting lists are in runs.
        broken: whether the next one fails.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[Write]] = []
        self.broken = False

    def write(self, writes: Sequence[Write]) -> None:
        """See `Store`."""
        if self.broken:
            raise StoreError("the disk is full")
        if not all(map(_is_of_runs, writes)):
            self.writes.append(list(writes))
        super().write(writes)


def _is_of_runs(write: Write) -> bool:
    return (isinstance(write, Put) and write.key.startswith(RUN_KEYS)) or (
        isinstance(write, Drop) and write.begin.startswith(RUN_KEYS)
    )


EngineWith = Callable[[int], tuple[Deduplicator, WatchedStore]]


@pytest.fixture
def engine_with() -> Iterator[EngineWith]:
    """A factory of engines that have judged the first articles of the stream, each with its store."""
    with ExitStack() as made:

        def make(count: int) -> tuple[Deduplicator, WatchedStore]:
            store = WatchedStore()
            engine = made.enter_context(Deduplicator(settings=_SETTINGS, store=store))
            engine.add_batch(articles()[:count])
            return engine, store

        yield make


@pytest.mark.parametrize(("before", "count"), [(0, 30), (130, 70), (150, 50), (310, 60)])
def test_deciding_changes_nothing(before: int, count: int, engine_with: EngineWith) -> None:
    """A batch that is decided but not applied leaves no trace: deciding again gives the same decisions and change."""
    engine, store = engine_with(before)
    contents, progress, words = _contents(store), engine.progress, engine.vocabulary()
    writes, files = len(store.writes), store.file_names()
    batch = articles()[before : before + count]
    engine.decide(articles()[before + 5 : before + 25])  # another one, discarded
    first, second = engine.decide(batch), engine.decide(batch)
    assert first.decisions == second.decisions == list(_one_by_one()[before : before + count])
    assert first.change.writes == second.change.writes
    assert first.change.progress == second.change.progress
    assert (_contents(store), engine.progress, engine.vocabulary()) == (contents, progress, words)
    assert (len(store.writes), store.file_names()) == (writes, files)
    assert engine.epoch.number == before // _EPOCH


@pytest.mark.parametrize("count", [1, 40, 50])
def test_applying_is_one_write(count: int, engine_with: EngineWith) -> None:
    """A change is one write that includes the positions, even if it ends an epoch."""
    engine, store = engine_with(150)
    judged = engine.decide(articles()[150 : 150 + count])
    store.writes.clear()
    engine.apply(judged.change, {("articles.in", 0): 7, ("articles.in", 1): 9})
    assert len(store.writes) == 1
    assert engine.positions() == {("articles.in", 0): 7, ("articles.in", 1): 9}


def test_failed_write_changes_nothing(engine_with: EngineWith) -> None:
    """A write that fails leaves the engine unchanged: the batch can be retried with the same decisions."""
    engine, store = engine_with(150)
    judged = engine.decide(articles()[150:200])
    progress, words, epoch = engine.progress, engine.vocabulary(), engine.epoch.number
    store.broken = True
    with pytest.raises(StoreError, match="disk is full"):
        engine.apply(judged.change, {("articles.in", 0): 7})
    assert (engine.progress, engine.vocabulary(), engine.epoch.number) == (progress, words, epoch)
    store.broken = False
    assert engine.positions() == {}
    assert engine.add_batch(articles()[150:]) == list(_one_by_one()[150:])


_WITHDRAWAL = Withdrawal("a")
_NO_ITEMS: list[tuple[object, str]] = [
    ("abc", "'abc', of type str: expected a sequence"),
    ({"id": "1", "body": "正文"}, "of type dict: expected a sequence"),
    (articles()[0], "of type Article: expected a sequence .*; wrap a single item in a list"),
    (iter(articles()), "expected a sequence .*; turn an iterable into a list"),
    (None, "None, of type NoneType: expected a sequence"),
    ([articles()[0], "abc"], "item 1 is 'abc', of type str: an Article"),
    ([{"id": "1", "body": "正文"}], "item 0 is {'id': '1', 'body': '正文'}, of type dict: an Article"),
]


@pytest.mark.parametrize(("items", "said"), _NO_ITEMS, ids=range(len(_NO_ITEMS)))
@pytest.mark.parametrize("method", ["add_batch", "decide", "process", "prepare"])
def test_what_is_no_sequence_of_items_is_refused(
    method: str, items: object, said: str, engine_with: EngineWith
) -> None:
    """Every method's error says what came and what is needed, and nothing has changed."""
    engine, _ = engine_with(0)
    with pytest.raises(TypeError, match=said):
        getattr(engine, method)(items)
    assert engine.progress.judged == 0


@pytest.mark.parametrize("item", ["abc", {"id": "1", "body": "正文"}, [articles()[0]], _WITHDRAWAL, None])
def test_what_is_no_article_is_not_added(item: object, engine_with: EngineWith) -> None:
    """The error names what came and the class that is needed."""
    engine, _ = engine_with(0)
    with pytest.raises(TypeError, match=rf"of type {type(item).__name__}: `add` needs an Article"):
        engine.add(item)  # type: ignore[arg-type]


def test_withdrawals_are_no_articles_to_add(engine_with: EngineWith) -> None:
    """They have no decision; `process` accepts them."""
    engine, _ = engine_with(0)
    with pytest.raises(TypeError, match="item 1 is Withdrawal"):
        engine.add_batch([articles()[0], _WITHDRAWAL])  # type: ignore[list-item]
    assert len(engine.process([articles()[0], _WITHDRAWAL]).outcomes) == 2


@pytest.mark.parametrize("given", [{"window": {"days": 1}}, {}, "stream-dedup.toml"])
def test_settings_of_another_type_are_refused(given: object) -> None:
    """The error says how to make settings."""
    with pytest.raises(TypeError, match=r"EngineSettings are needed; .*EngineSettings\.model_validate.*load_settings"):
        Deduplicator(None, given)  # type: ignore[arg-type]


_CALLS: list[Callable[[Deduplicator, Change], object]] = [
    lambda engine, _: engine.add(articles()[0]),
    lambda engine, _: engine.add_batch(articles()[:3]),
    lambda engine, _: engine.decide([]),
    lambda engine, _: engine.process(articles()[:3]),
    lambda engine, change: engine.apply(change),
    lambda engine, _: engine.positions(),
]


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_closed_engine_says_so(place: str, tmp_path: Path) -> None:
    """Every method says so, wherever the state was; closing again is harmless, and progress can still be read."""
    engine = Deduplicator(tmp_path if place == "disk" else None, _SETTINGS)
    engine.add_batch(articles()[:2])
    change = engine.decide(articles()[2:4]).change
    engine.close()
    for call in _CALLS:
        with pytest.raises(StoreError, match=r"^the engine is closed: "):
            call(engine, change)
    engine.close()
    assert engine.progress.judged == 2


def test_positions_stay_with_the_change(tmp_path: Path) -> None:
    """After reopening, the last position of each partition is there, even from a batch without articles."""
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        assert engine.positions() == {}
        engine.apply(engine.decide(articles()[:3]).change, {("a/b.c", 0): 3, ("d", 11): 0})
        engine.apply(engine.decide([]).change, {("a/b.c", 0): 5})
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        assert engine.positions() == {("a/b.c", 0): 5, ("d", 11): 0}
        assert engine.progress.judged == 3


def test_batch_may_cross_epochs(engine_with: EngineWith) -> None:
    """A batch that spans the ends of epochs is one change, with the same decisions and epochs as single articles."""
    engine, store = engine_with(130)
    judged = engine.decide(articles()[130:330])
    assert judged.decisions == list(_one_by_one()[130:330])
    store.writes.clear()
    engine.apply(judged.change)
    assert len(store.writes) == 1
    assert (engine.epoch.number, engine.progress.judged) == (3, 330)


def test_change_is_made_once_and_in_order(engine_with: EngineWith) -> None:
    """A change that was already made, or was decided before another was made, is refused and changes nothing."""
    engine, store = engine_with(150)
    first, other = engine.decide(articles()[150:160]), engine.decide(articles()[150:170])
    engine.apply(first.change)
    contents = _contents(store)
    for change in (first.change, other.change):
        with pytest.raises(ValueError, match="decided on another state"):
            engine.apply(change)
    assert _contents(store) == contents
    assert engine.add_batch(articles()[160:]) == list(_one_by_one()[160:])


# ----------------------------------------------------------------------------------------------------- epochs


def _expected_counts(stream: Sequence[Article]) -> Counter[int]:
    """Count in plain Python how many unique articles contain each word."""
    fingerprinter = Fingerprinter(_SETTINGS)
    stop_words = set(read_words(shipped_list("stop_words.txt")))
    decided = dict(zip(range(len(stream)), _one_by_one(), strict=False))
    counts: Counter[int] = Counter()
    for place, article in enumerate(stream):
        if decided[place].unique:
            words = set(fingerprinter.words(article.body)) - stop_words
            spoken = [word for word in words if any(character.isalnum() for character in word)]
            counts.update(hash_words(spoken).tolist())
    return counts


@pytest.mark.parametrize("size", [1, 30, 512])
def test_epochs_hold_the_counts_of_unique_articles(size: int) -> None:
    """Each epoch's counts equal a plain Counter over the words of the unique articles before it."""
    with Deduplicator(settings=_SETTINGS) as engine:
        assert (engine.epoch.number, engine.epoch.documents) == (0, 0)
        for start in range(0, 300, size):
            engine.add_batch(articles()[start : min(start + size, 300)])
            assert engine.epoch.number == engine.progress.judged // _EPOCH
        expected = _expected_counts(articles()[:300])
        packed = engine.epoch.packed()
        assert dict(zip(packed["word"].tolist(), packed["documents"].tolist(), strict=True)) == expected
        assert engine.epoch.documents == sum(decision.unique for decision in _one_by_one()[:300])


def test_fingerprints_carry_the_epoch_they_were_made_in() -> None:
    """The epoch of a decision is the number of complete epochs before it."""
    assert [decision.epoch for decision in _one_by_one()] == [n // _EPOCH for n in range(len(articles()))]


def test_copies_are_not_counted() -> None:
    """A story on forty sites counts once: its words keep their weight."""
    with Deduplicator(settings=settings(idf={"epoch_articles": 41})) as engine:
        engine.add_batch([Article(str(n), bodies()[0]) for n in range(40)])
        engine.add(Article("near", _REPOST + bodies()[0]))
        assert engine.epoch.number == 1
        assert engine.epoch.documents == 1
        assert set(engine.epoch.packed()["documents"].tolist()) == {1}


@pytest.mark.parametrize("segment", ["all", "unproved"])
def test_copies_that_go_on_as_unique_are_counted(segment: str) -> None:
    """If near copies count as articles, they are in the corpus; a later text of an article adds no article."""
    groups: dict[str, Any] = {"verify": {"duplicates": ["exact"]}, "text": {"segment": segment}}
    with Deduplicator(settings=settings(idf={"epoch_articles": 10}, **groups)) as engine:
        story, repost = Article("story", bodies()[0]), Article("near", _REPOST + bodies()[0])
        first, near = engine.add_batch([story, repost])
        revision = engine.add(Article("story", bodies()[1]))
        redelivery = engine.add(Article("story", bodies()[1]))
        copies = [engine.add(Article(str(n), bodies()[0])) for n in range(6)]
        assert [one.link and one.link.relation for one in (first, near, revision, redelivery)] == [
            None,
            Relation.NEAR,
            Relation.REVISION,
            Relation.REDELIVERY,
        ]
        assert [one.unique for one in (first, near, revision, redelivery, *copies)] == [True] * 4 + [False] * 6
        assert (engine.epoch.number, engine.epoch.documents) == (1, 2)
        assert set(engine.epoch.packed()["documents"].tolist()) <= {1, 2}


def test_words_are_counted_across_reopening(tmp_path: Path) -> None:
    """Counts since the last epoch survive closing: the next epoch equals that of an uninterrupted run."""
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.add_batch(articles()[:200])
        expected = np.sort(engine.epoch.packed())
    for start in range(0, 200, 23):
        with Deduplicator(tmp_path, _SETTINGS) as engine:
            words = engine.vocabulary()
            engine.add_batch(articles()[start : min(start + 23, 200)])
            assert engine.vocabulary() >= words
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        assert (engine.epoch.number, engine.epoch.documents) == (2, engine.epoch.documents)
        assert np.array_equal(np.sort(engine.epoch.packed()), expected)


# ------------------------------------------------------------------------------------------------------ index


def test_canonical_articles_are_indexed_and_exact_copies_are_not() -> None:
    """The index grows with the stories: it has unique articles, but no exact copies or redeliveries.

    Except copies that come late in the window: without them the text would be forgotten with the original.
    """
    published = {article.id: article.published_ms or 0 for article in articles()}
    eighth, stream, late = round(_SETTINGS.window.days * 86_400_000 / 8), 0, 0
    for decision in _one_by_one():
        stream = max(stream, published[decision.article.id])
        if decision.unique:
            assert decision.indexed
            assert decision.link is None
        elif decision.link and decision.link.relation in {Relation.EXACT, Relation.REDELIVERY}:
            old = stream - published[decision.link.duplicate_of] > eighth
            assert old or not decision.indexed
            late += decision.indexed
    assert 0 < late < 20


def test_progress_counts_entries(engine_with: EngineWith) -> None:
    """Progress counts the articles judged, and the entries of those that are indexed and of one copy per cluster."""
    engine, store = engine_with(300)
    assert engine.progress.judged == 300
    decided = _one_by_one()[:300]
    kept: Counter[str] = Counter()
    for decision in decided:
        cluster = decision.link.duplicate_of if decision.link else decision.article.id
        redelivered = decision.link is not None and decision.link.relation is Relation.REDELIVERY
        kept[cluster] += decision.indexed or (not redelivered and kept[cluster] < _KEPT_OF_A_CLUSTER)
    assert engine.progress.entries == kept.total()
    assert len(list(store.items(Family.ENTRIES))) == kept.total()
    found = {postings[0] for (place, _), postings in shown_lists(engine).items() if place == CONTENT}
    # The entry under each text is that of the newest article that has it.
    renewed = [one for one in decided if one.indexed and one.link and one.link.relation is Relation.EXACT]
    assert len(found) == sum(decision.indexed for decision in decided) - len(renewed)


@pytest.mark.parametrize("edit", [str, _REPOST.__add__, lambda body: body[: len(body) * 7 // 10]])
def test_copies_within_a_batch_are_found_like_others(edit: Callable[[str], str]) -> None:
    """A copy in the same batch has the same decision, measures and source as one in the next batch."""
    stream = [Article("original", bodies()[0]), Article("other", bodies()[1]), Article("copy", edit(bodies()[0]))]
    within, across = _decisions(stream, []), _decisions(stream, [2])
    assert within == across
    link = within[2].link
    assert link is not None
    assert (link.duplicate_of, link.matched) == ("original", "original")


def test_links_lead_to_the_canonical_article() -> None:
    """A copy that matches a drifted copy names both: the cluster's canonical article and the article that matched."""
    first_versions = [
        decision
        for decision in _one_by_one()
        if decision.link is None or decision.link.relation is not Relation.REDELIVERY
    ]
    decided = {decision.article.id: decision for decision in first_versions}
    for decision in first_versions:
        if decision.link:
            matched = decided[decision.link.matched]
            assert decided[decision.link.duplicate_of].unique
            assert matched.indexed
            assert (matched.link.duplicate_of if matched.link else matched.article.id) == decision.link.duplicate_of


@pytest.mark.parametrize(
    ("group", "source"),
    [("landmarks", Source.SIMHASH), ("simhash", Source.LANDMARK)],
)
def test_each_index_alone_finds_mild_reposts(group: str, source: Source) -> None:
    """With either index switched off, the other finds an article with a new beginning and end."""
    one_index = settings(simhash={**WIDE, "enabled": group != "simhash"}, landmarks={"enabled": group != "landmarks"})
    originals = [Article(f"o{n}", body) for n, body in enumerate(bodies()[:20])]
    reposts = [Article(f"r{n}", _REPOST + body + "（完）") for n, body in enumerate(bodies()[:20])]
    found = [decision.link for decision in _decisions(originals + reposts, [20], one_index)[20:]]
    assert [link and link.duplicate_of for link in found] == [article.id for article in originals]
    assert {link.source for link in found if link} == {source}


def test_without_any_index_equal_texts_are_still_found() -> None:
    """With both indexes off, the hash of the whole text finds exact copies and nothing else."""
    neither = settings(landmarks={"enabled": False}, simhash={"enabled": False})
    stream = [Article("a", bodies()[0]), Article("b", bodies()[0] + "！"), Article("c", _REPOST + bodies()[0])]
    _, exact, near = _decisions(stream, [], neither)
    assert exact.link is not None
    assert (exact.link.relation, exact.link.source) == (Relation.EXACT, Source.CONTENT)
    assert near.unique


@cache
def _variants() -> tuple[Article, ...]:
    """Return 40 articles that share nearly all of their text and all of their landmarks."""
    variants = [Article(str(n), f"{bodies()[0]}续{chr(0x4E00 + n)}") for n in range(80)]
    marks = Fingerprinter(EngineSettings()).features(variants).sketches.landmarks
    alike = [variant for variant, own in zip(variants, marks, strict=True) if np.array_equal(own, marks[0])]
    return tuple(Article(str(n), variant.body) for n, variant in enumerate(alike[:40]))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_capped_landmarks_show_the_newest(size: int) -> None:
    """With more articles under a landmark than `cap`, the newest are found, in any batches, and no more are shown."""
    capped = settings(landmarks={"cap": 3}, simhash={"enabled": False}, verify={"duplicates": []})
    found: list[Decision] = []
    with Deduplicator(settings=capped) as engine:
        for start in range(0, 40, size):
            found += engine.add_batch(_variants()[start : start + size])
        shown = shown_lists(engine)
    assert all(decision.indexed and decision.unique for decision in found)
    for place, decision in enumerate(found[1:], 1):
        assert decision.link is not None
        assert place - 3 <= int(decision.link.matched) < place
    assert max(len(postings) for (place, _), postings in shown.items() if place == LANDMARK) == 3


@pytest.mark.parametrize("size", [1, 7, 64])
def test_capped_tables_keep_working(size: int) -> None:
    """With more articles under a table's key than `bucket_cap`, the same copies are found in batches of any size."""
    capped = settings(
        landmarks={"enabled": False}, simhash={**WIDE, "bucket_cap": 2, "probes": 4}, verify={"duplicates": []}
    )
    found: list[Decision] = []
    with Deduplicator(settings=capped) as engine:
        for start in range(0, 40, size):
            found += engine.add_batch(_variants()[start : start + size])
        shown = shown_lists(engine)
    assert found == _decisions(_variants(), [], capped)
    assert all(decision.link for decision in found[1:])
    assert max(len(postings) for (place, _), postings in shown.items() if place == SIMHASH) == 2


# --------------------------------------------------------------------------------------- states and settings


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("sketch", "gram", 6),
        ("sketch", "size", 64),
        ("sketch", "numbers", 8),
        ("simhash", "tables", 8),
        ("simhash", "prefix_bits", 20),
        ("simhash", "enabled", False),
        ("landmarks", "keys", 4),
        ("landmarks", "enabled", False),
        ("weights", "profile", "paper2020"),
        ("weights", "noun", 0.25),
        ("text", "hmm", False),
        ("text", "simplify", False),
        ("idf", "epoch_articles", 77),
    ],
)
def test_state_made_with_other_settings_is_refused(small_state: Path, group: str, name: str, value: object) -> None:
    """A state whose fingerprints are not comparable is refused; the message names the setting and both values."""
    with pytest.raises(StoreError, match=rf"{group}\.{name} = .+ in the state, {value!r} in the settings") as caught:
        Deduplicator(small_state, settings(**{group: {name: value}}))
    assert "state.directory" in str(caught.value)
    with Deduplicator(small_state) as engine:
        assert engine.progress.judged == 1


@pytest.fixture(scope="module")
def small_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with one article, made with the default settings."""
    directory = tmp_path_factory.mktemp("state")
    with Deduplicator(directory) as engine:
        engine.add(Article("first", bodies()[0]))
    return directory


def test_state_made_with_another_word_list_is_refused(small_state: Path, tmp_path: Path) -> None:
    """Word lists are compared by content: other stop words are refused, the same ones elsewhere are not."""
    copy, shorter = tmp_path / "same.txt", tmp_path / "shorter.txt"
    copy.write_bytes(shipped_list("stop_words.txt").read_bytes())
    shorter.write_text("的\n了\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"text\.stop_words"):
        Deduplicator(small_state, settings(text={"stop_words": shorter}))
    with Deduplicator(small_state, settings(text={"stop_words": copy})) as engine:
        assert engine.add(Article("second", bodies()[0])).link


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ("verify", {"near_jaccard": 0.7, "duplicates": ["exact"]}),
        ("simhash", {"probes": 64, "max_distance": 8, "bucket_cap": 16}),
        ("landmarks", {"cap": 8}),
        ("idf", {"max_words": 5000}),
    ],
)
def test_settings_that_leave_fingerprints_alone_may_change(
    small_state: Path, group: str, values: dict[str, Any]
) -> None:
    """Thresholds, probes and caps may change between runs on the same state."""
    with Deduplicator(small_state, settings(**{group: values})) as engine:
        decision = engine.decide([Article("copy", bodies()[0])]).decisions[0]
    assert decision.link is not None
    assert decision.link.relation is Relation.EXACT


def test_state_in_use_is_refused(small_state: Path) -> None:
    """A directory that is open cannot be opened again until it is closed."""
    with Deduplicator(small_state), pytest.raises(StoreLockedError, match="is in use by another process"):
        Deduplicator(small_state)
    Deduplicator(small_state).close()


def test_refused_state_is_released(small_state: Path) -> None:
    """An engine that refuses a state does not keep it locked."""
    with pytest.raises(StoreError):
        Deduplicator(small_state, settings(sketch={"gram": 7}))
    Deduplicator(small_state).close()


# ------------------------------------------------------------------------------------------------- embedded API


def test_embedded_in_memory() -> None:
    """`from stream_dedup import Deduplicator` is enough: articles one by one, no directory, no broker."""
    with stream_dedup.Deduplicator() as engine:
        first = engine.add(stream_dedup.Article("1", bodies()[0]))
        other = engine.add(stream_dedup.Article("2", bodies()[1]))
        copy = engine.add(stream_dedup.Article("3", _REPOST + bodies()[0]))
        again = engine.add(stream_dedup.Article("1", bodies()[0]))
    assert first.unique
    assert other.unique
    assert not copy.unique
    assert copy.link is not None
    assert copy.link.duplicate_of == "1"
    assert copy.link.relation in {Relation.NEAR, Relation.CONTAINS}
    assert again.link is not None
    assert again.link.relation is Relation.REDELIVERY


@pytest.mark.parametrize("kind", [str, Path])
def test_embedded_on_a_directory(tmp_path: Path, kind: type[str] | type[Path]) -> None:
    """A directory, given as text or as a path, is created, kept, and reopened."""
    directory = kind(tmp_path / "deep" / "state")
    with Deduplicator(directory) as engine:
        assert engine.add_batch([]) == []
        assert engine.add(Article("1", bodies()[0])).unique
    with Deduplicator(directory) as engine:
        link = engine.add(Article("2", bodies()[0])).link
    assert link is not None
    assert (link.duplicate_of, link.relation) == ("1", Relation.EXACT)


def test_adding_many_is_adding_one_by_one() -> None:
    """`add_batch` continues across the ends of epochs and gives the decisions of `add`."""
    with Deduplicator(settings=_SETTINGS) as engine:
        assert engine.add_batch(articles()) == list(_one_by_one())


@pytest.mark.parametrize("body", ["\ud83d", "\u200b\u200b", "<br/>", "！！", "😀", "的了在", "一", "a" * 100_000])
def test_texts_without_words_are_judged(body: str) -> None:
    """Bodies of symbols, stop words, invisible characters or a single letter are judged like others."""
    with Deduplicator(settings=_SETTINGS) as engine:
        first, normal, copy = engine.add_batch([Article("1", body), Article("2", bodies()[0]), Article("3", body)])
    assert first.unique
    assert normal.unique
    assert copy.link is not None
    assert copy.link.relation is Relation.EXACT


def test_texts_of_nothing_but_markup_are_not_copies_of_one_another() -> None:
    """Two different bodies that normalise to nothing do not count as the same text."""
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.add(Article("1", "\u200b\u200b"))
        assert engine.add(Article("2", '<img src="https://a.example/photo.jpg">')).unique
