"""A state replayed from the changelog equals the state that wrote it, byte for byte, and stays equal.

Knows commits, their records and what compaction and deletion leave of them; knows no broker.
"""

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stream_dedup import Article, Deduplicator
from stream_dedup.article import Withdrawal
from stream_dedup.index import changelog
from stream_dedup.index.changelog import ChangelogError, Commit, CommitReader, LogRecord, commit_records, ends_commit
from stream_dedup.index.records import counts as stored_counts
from stream_dedup.index.records.ledger import CHANGELOG_KEYS
from stream_dedup.index.stores.store import Family, MemoryStore, StoreError, Write
from tests.engine.durable import TOPIC, Log, append, commits, contents, follow, restored, shown_lists, written
from tests.engine.model import BASES, BEGIN, CUTS, HOUR, VARIANTS, Item, article, engine_settings, parts
from tests.engine.samples import bodies
from tests.engine.scoped import scoped_streams

_SETTINGS = engine_settings(2)
_FAMILIES = (Family.ARTICLES, Family.URLS, Family.CLUSTERS, Family.MEMBERS)  # by their numbers in the changelog
_GROUPS = st.lists(st.integers(1, 4), max_size=5)
_GIVEN = hypothesis_settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
_MORE: list[Item] = [
    *(article(f"more-{n}", n % BASES, n % VARIANTS, at=BEGIN + 99_999 * HOUR + n) for n in range(14)),
    Withdrawal("more-0"),
    article("more-20", 0, 0, at=BEGIN + 99_999 * HOUR + 20),
]


def _long_stream() -> list[Item]:
    """Return a stream over about twelve generations and as many epochs, with corrections and new words in it."""
    items: list[Item] = []
    for n in range(150):
        one = article(str(n % 40), n % BASES, n % VARIANTS, at=BEGIN + n * 2 * HOUR, url=f"https://u/{n % 7}")
        items.append(replace(one, id=f"new-{n}", body=bodies()[n // 3]) if n % 3 == 0 else one)
        if n % 11 == 10:
            items.append(Withdrawal(str((n - 3) % 40)))
    return items


def _live(stream: Sequence[Item], cuts: set[int]) -> tuple[Deduplicator, Log]:
    engine, log = Deduplicator(settings=_SETTINGS), Log()
    written(engine, log, parts(stream, cuts))
    return engine, log


def _goes_on_alike(one: Deduplicator, other: Deduplicator) -> None:
    assert other.progress == one.progress
    assert other.vocabulary() == one.vocabulary()
    assert other.process(_MORE).outcomes == one.process(_MORE).outcomes


@given(stream=scoped_streams(), cuts=CUTS, groups=_GROUPS)
@example(stream=_long_stream(), cuts=set(range(3, 160, 7)), groups=[2, 3, 1, 4])
@_GIVEN
def test_replayed_state_is_the_state(stream: list[Item], cuts: set[int], groups: list[int]) -> None:
    """However the commits are grouped, every family holds the same keys and values, and the next decisions agree."""
    live, log = _live(stream, cuts)
    copy = restored(log, _SETTINGS, groups)
    with live, copy:
        assert contents(copy) == contents(live)
        assert shown_lists(copy) == shown_lists(live)
        assert copy.positions() == live.positions()
        assert copy.state.place == live.state.place
        _goes_on_alike(live, copy)
        assert contents(copy) == contents(live)


@given(stream=scoped_streams(), cuts=CUTS, groups=_GROUPS, tombstones=st.booleans())
@example(stream=_long_stream(), cuts=set(range(3, 160, 7)), groups=[1, 2], tombstones=False)
@_GIVEN
def test_changelog_needs_nothing_from_before_the_window(
    stream: list[Item],
    cuts: set[int],
    groups: list[int],
    tombstones: bool,  # noqa: FBT001  # drawn
) -> None:
    """What precedes the oldest generation, or was compacted away, is not needed, not even for offsets or counts."""
    live, log = _live(stream, cuts)
    log.cut(live.state.changelog_start() or 0)
    log.compact(tombstones=tombstones)
    copy = restored(log, _SETTINGS, groups)
    with live, copy:
        assert copy.state.changelog_start() is not None or not log.records
        assert contents(copy, starts=False) == contents(live, starts=False)
        _goes_on_alike(live, copy)
        assert contents(copy, starts=False) == contents(live, starts=False)


@given(stream=scoped_streams(), cuts=CUTS, until=st.integers(1, 20))
@example(stream=_long_stream(), cuts=set(range(3, 160, 7)), until=4)
@_GIVEN
def test_replica_that_was_away_for_long_catches_up_with_a_compacted_changelog(
    stream: list[Item], cuts: set[int], until: int
) -> None:
    """Even if Kafka has dropped the deletions meanwhile, nothing is left of what was deleted."""
    (live, log), batches = (Deduplicator(settings=_SETTINGS), Log()), parts(stream, cuts)
    written(live, log, batches[:until])
    replica = restored(log, _SETTINGS)
    written(live, log, batches[until:])
    log.compact(tombstones=False)
    with live, replica:
        follow(replica, log, replica.state.place.offset if replica.state.place else 0)
        replica.state.refresh()
        assert contents(replica) == contents(live)
        _goes_on_alike(live, replica)


def test_changelog_is_bounded_by_the_window() -> None:
    """On a long stream, most of the changelog can be cut off by the end, even if the state was restored on the way."""
    live, log = Deduplicator(settings=_SETTINGS), Log()
    batches = parts(_long_stream(), set(range(3, 160, 3)))
    written(live, log, batches[:20])
    log.cut(live.state.changelog_start() or 0)
    cut = log.begin
    copy = restored(log, _SETTINGS)
    with live, copy:
        assert copy.state.changelog_start() == cut > 0
        written(copy, log, batches[20:])
        begin = copy.state.changelog_start()
        assert begin is not None
        assert begin > log.end * 2 // 3
        assert log.begin < begin
        # Nor does the state remember where generations began that have expired.
        starts = [key for key, _ in copy.state.store.items(Family.META, CHANGELOG_KEYS[0])]
        assert len(starts) <= len(copy.progress.live)


@pytest.mark.parametrize(("size", "written_before"), [(3, 20), (2, 50), (1, 90)])
def test_state_without_the_beginning_of_its_window_is_known_by_it(size: int, written_before: int) -> None:
    """It is not known where the window begins, until all that is missing has left it.

    With small commits, no entries come between the beginning of the window and the first commit that is left.
    """
    live, log = Deduplicator(settings=_SETTINGS), Log()
    batches = parts(_long_stream(), set(range(size, 160, size)))
    written(live, log, batches[:written_before])
    begin = live.state.changelog_start()
    assert begin is not None
    _, after_the_first = next(commits(log, CommitReader(live.state.index.format), begin))
    log.cut(after_the_first)
    copy = restored(log, _SETTINGS)
    with live, copy:
        lost = copy.progress.live[0]
        assert copy.state.changelog_start() is None
        known = []
        for batch in batches[written_before:]:
            written(copy, log, [batch])
            known.append(copy.state.changelog_start() is not None)
            assert known[-1] == (copy.progress.live[0] > lost)
        assert any(known)


@pytest.mark.parametrize(
    "after_it",
    [
        [Withdrawal("0")],
        [Withdrawal("unknown")],
        [Withdrawal("0"), article("31", 0, 3, at=BEGIN + 31 * HOUR)],
    ],
    ids=["withdrawal", "nothing", "withdrawal and article"],
)
def test_commit_that_leaves_the_window_as_it_was_is_not_its_beginning(after_it: list[Item]) -> None:
    """After a withdrawal all stands where it stood at the beginning, whose commit is missing."""
    live, log = Deduplicator(settings=_SETTINGS), Log()
    one, begins, two, three = ([article(f"{at}", 0, 0, at=BEGIN + at * HOUR)] for at in (0, 30, 62, 96))
    written(live, log, [one, begins])
    end_of_first = log.end
    written(live, log, [after_it, two, three])
    begin = live.state.changelog_start()
    assert begin is not None
    assert begin < end_of_first
    log.cut(end_of_first)
    copy = restored(log, _SETTINGS)
    with live, copy:
        assert copy.progress == live.progress
        assert copy.state.changelog_start() is None


def test_tables_that_were_replayed_are_probed() -> None:
    """In a replayed state, copies that only the SimHash tables find are found at once."""
    tables_alone = _SETTINGS.model_validate({**_SETTINGS.model_dump(), "landmarks": {"enabled": False}})
    live, log = Deduplicator(settings=tables_alone), Log()
    originals = [Article(f"o{n}", body) for n, body in enumerate(bodies()[:20])]
    written(live, log, [originals[:7], originals[7:]])
    copy = restored(log, tables_alone)
    with live, copy:
        found = [copy.decide([Article("c", f"本报讯{body}")]).decisions[0].link for body in bodies()[:20]]
    assert [link and link.duplicate_of for link in found] == [article.id for article in originals]


def test_state_that_stopped_anywhere_goes_on_from_there() -> None:
    """A state that has followed part of the changelog takes the rest, and becomes the state that wrote it."""
    live, log = _live(_long_stream(), set(range(5, 160, 9)))
    with live:
        for stop in range(1, 17, 3):
            with Deduplicator(settings=_SETTINGS) as copy:
                first = list(commits(log, CommitReader(copy.state.index.format)))[:stop]
                copy.state.replay(first, TOPIC)
                assert copy.state.place is not None
                follow(copy, log, copy.state.place.offset)
                assert contents(copy) == contents(live)


def test_names_of_any_length_are_in_the_changelog() -> None:
    """Ids and sources may be as long as an article allows; longer ones are refused when the article is created."""
    longest, source = "长" * 21_839 + "ab", "👍" * 16_383
    stream = [Article("a", bodies()[0], source=source), Article(longest, bodies()[0], source=source)]
    stream.append(replace(stream[1], body=bodies()[1]))
    log = Log()
    with Deduplicator(settings=_SETTINGS) as live:
        written(live, log, [[one] for one in stream])
        with restored(log, _SETTINGS) as copy:
            assert contents(copy) == contents(live)
    with pytest.raises(ValueError, match="65520 bytes"):
        replace(stream[0], id=longest + "c")
    with pytest.raises(ValueError, match="16384 characters"):
        replace(stream[0], source=source + "a")


def test_words_of_an_epoch_that_is_gone_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even for a state that fell behind until Kafka dropped their tombstones, with a full word table since."""
    monkeypatch.setattr(stored_counts, "_PART_WORDS", 100)
    small = _SETTINGS.model_validate({**_SETTINGS.model_dump(), "idf": {"epoch_articles": 20, "max_words": 1000}})
    live, away, log = Deduplicator(settings=small), Deduplicator(settings=small), Log()
    parts_of_epoch: list[int] = []
    with live, away:
        for number in range(5):
            many = [
                Article(f"{number}-{text}", body) for text, body in enumerate(bodies()[number * 5 : number * 5 + 5])
            ]
            written(live, log, [[*many, *(Article(f"{number}+{n}", bodies()[0]) for n in range(15))]])
            parts_of_epoch.append(sum(1 for _ in live.state.store.items(Family.COUNTS, b"epoch")))
            if parts_of_epoch[-1] == max(parts_of_epoch):
                follow(away, log, away.state.place.offset if away.state.place else 0)
        assert parts_of_epoch[-1] < max(parts_of_epoch), "the last epoch has fewer parts than the away state holds"
        log.compact(tombstones=False)
        assert away.state.place is not None
        follow(away, log, away.state.place.offset)
        away.state.refresh()
        assert away.epoch.number == live.epoch.number
        found, expected = (np.sort(engine.epoch.packed(), order="word") for engine in (away, live))
        assert np.array_equal(found, expected)
        assert away.vocabulary() == live.vocabulary()


class _Breaking(MemoryStore):
    """A store that dies once, in the middle of a load.

    Args:
        share: of the writes that are made before it dies.
        families: whose writes are all made: a store may load one family after the other.
    """

    def __init__(self, share: float, families: Collection[Family]) -> None:
        super().__init__()
        self._share = share
        self._whole = families
        self._broken = False

    def load(self, writes: Sequence[Write]) -> None:
        """See `FileStore`."""
        if self._broken:
            super().load(writes)
            return
        self._broken = True
        stop = round(self._share * len(writes))
        super().load([*writes[:stop], *(write for write in writes[stop:] if write.family in self._whole)])
        raise StoreError("killed")


@pytest.fixture(scope="module")
def long_run() -> Iterator[tuple[Deduplicator, Log]]:
    """The long stream, judged in commits of one article, of ten and of more, with its changelog: only to be read."""
    live, log = _live(_long_stream(), {*range(1, 12), *range(30, 160, 10)})
    with live:
        yield live, log


@given(share=st.floats(0, 1), families=st.sets(st.sampled_from(list(Family))), groups=_GROUPS)
@hypothesis_settings(_GIVEN, max_examples=20)
def test_replay_that_dies_in_a_load_is_made_again(
    long_run: tuple[Deduplicator, Log], share: float, families: set[Family], groups: list[int]
) -> None:
    """A bulk of very many commits is not one write: what a crash leaves of it does not harm the next attempt."""
    live, log = long_run
    store = _Breaking(share, families)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stream_dedup.engine.state._MANY_ARTICLES", 1)
        with pytest.raises(StoreError, match="killed"):
            restored(log, _SETTINGS, [], store)
        copy = restored(log, _SETTINGS, groups, store)
    copy.state.index.close()
    with restored(log, _SETTINGS) as whole, Deduplicator(settings=_SETTINGS, store=store) as reopened:
        assert contents(reopened) == contents(live)
        # A reopened state, too, knows where removed entries were listed.
        assert shown_lists(reopened) == shown_lists(live)
        _goes_on_alike(whole, reopened)


@pytest.mark.parametrize("missing", [1, 5, 15])
def test_gap_is_refused(missing: int) -> None:
    """A commit that does not follow the state is refused whole, and the message says what to do."""
    live, log = _live(_long_stream(), set(range(5, 160, 9)))
    copy = Deduplicator(settings=_SETTINGS)
    with live, copy:
        all_commits = list(commits(log, CommitReader(live.state.index.format)))
        copy.state.replay(all_commits[:missing], TOPIC)
        before = contents(copy)
        for wrong in (all_commits[missing + 1 :], all_commits[missing - 1 :]):
            with pytest.raises(ChangelogError, match="Remove the state directory"):
                copy.state.replay(wrong, TOPIC)
        with pytest.raises(ChangelogError):
            copy.state.replay([all_commits[missing], *all_commits[missing + 2 :]], TOPIC)
        assert contents(copy) == before
        copy.state.replay(all_commits[missing:], TOPIC)
        assert contents(copy) == contents(live)


# ----------------------------------------------------------------------------------------------------- records


def _records() -> tuple[CommitReader, list[LogRecord]]:
    """Return a reader, and the records of a commit with articles, a withdrawal and the end of an epoch."""
    engine = Deduplicator(settings=_SETTINGS)
    judged = engine.decide(_long_stream()[:30])
    return CommitReader(engine.state.index.format), list(commit_records(engine.commit_of(judged.change, {("a", 1): 7})))


def _plain(commit: Commit) -> list[object]:
    """Return what a commit holds, in a form that can be compared."""
    steps = [
        (
            step.progress,
            step.entries.tobytes(),
            step.packed,
            [int(number) for number in step.removed],
            step.records,
        )
        for step in commit.steps
    ]
    return [steps, [put for step in commit.steps for put in step.counts], dict(commit.positions)]


@pytest.mark.parametrize("part_bytes", [512 << 10, 1000, 97])
def test_commit_is_read_as_it_was_written(monkeypatch: pytest.MonkeyPatch, part_bytes: int) -> None:
    """Steps, entries, records, counts and offsets are the same, however the commit was cut into parts."""
    monkeypatch.setattr(changelog, "_PART_BYTES", part_bytes)
    engine = Deduplicator(settings=_SETTINGS)
    commit = engine.commit_of(engine.decide(_long_stream()[:30]).change, {("主题", 1): 7, ("a/b", 0): 2**40})
    assert len(commit.steps) > 2
    reader = CommitReader(engine.state.index.format)
    for _ in range(2):
        records = list(commit_records(commit))
        assert all(value is None or len(value) <= max(part_bytes + 5, 20_000) for _, value in records)
        found = [reader.feed(key, value) for key, value in records]
        assert found[:-1] == [None] * (len(records) - 1)
        assert found[-1] is not None
        assert _plain(found[-1]) == _plain(commit)


@pytest.mark.parametrize("part_bytes", [512 << 10, 1000])
def test_end_of_a_commit_is_its_last_record_alone(monkeypatch: pytest.MonkeyPatch, part_bytes: int) -> None:
    """It bears the number of the commit's last step; other records, even foreign ones, are told from it."""
    monkeypatch.setattr(changelog, "_PART_BYTES", part_bytes)
    engine = Deduplicator(settings=_SETTINGS)
    commit = engine.commit_of(engine.decide(_long_stream()[:30]).change, {("a", 1): 7})
    first, last = commit.steps[0].progress.steps, commit.steps[-1].progress.steps
    assert first < last
    records = list(commit_records(commit))
    assert [ends_commit(key, value, last) for key, value in records] == [False] * (len(records) - 1) + [True]
    assert not any(ends_commit(key, value, number) for key, value in records for number in (first, last - 1, last + 1))
    key, value = records[-1]
    foreign = [(b"", b"x"), (b"x", value), (b"k" + key[1:], value), (key, None), (key, b""), (key, b"\x02")]
    assert not any(ends_commit(*record, last) for record in foreign)


def test_part_without_those_before_it_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction may leave the later parts of what a killed writer has left, even the last one."""
    monkeypatch.setattr(changelog, "_PART_BYTES", 1000)
    reader, records = _records()
    parts_of_commit = [record for record in records if record[0][:1] == b"c"]
    assert [reader.feed(*record) for record in parts_of_commit[1:]] == [None] * (len(parts_of_commit) - 1)
    found = [reader.feed(*record) for record in records]
    assert [one is not None for one in found] == [False] * (len(records) - 1) + [True]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"x"),
        (b"", b"x"),
        (b"x", b"y"),
        (b"offset", b"\x01"),
        (b"c" + bytes(10), None),
        (b"cat", b"x"),
        (b"key", b""),
        (None, None),
    ],
)
def test_foreign_record_is_refused(key: bytes | None, value: bytes | None) -> None:
    """A record that stream_dedup did not write is not taken for one of its own."""
    reader, _ = _records()
    with pytest.raises(ChangelogError, match=r"does not belong in a changelog .* begin a new index"):
        reader.feed(key, value)


@pytest.mark.parametrize("version", [1, 3])
def test_record_of_another_version_is_refused(version: int) -> None:
    """Records of an earlier or later version are refused, both counts and steps; the message names both versions."""
    reader, records = _records()
    kinds = {key[:1] for key, value in records if value is not None}
    assert kinds == {b"k", b"c"}
    for kind in kinds:
        key, value = next(pair for pair in records if pair[0][:1] == kind and pair[1] is not None)
        assert value is not None
        with pytest.raises(ChangelogError, match=f"version {version}, but this stream_dedup reads version 2"):
            reader.feed(key, bytes([version]) + value[1:])


def test_damaged_entry_is_refused() -> None:
    """A commit with an entry that lacks its last byte is refused; the message says what to do."""
    engine = Deduplicator(settings=_SETTINGS)
    commit = engine.commit_of(engine.decide(_long_stream()[:3]).change, {})
    step = commit.steps[0]
    cut = replace(commit, steps=[replace(step, packed=[*step.packed[:-1], step.packed[-1][:-1]]), *commit.steps[1:]])
    reader = CommitReader(engine.state.index.format)
    *counts, (key, value) = commit_records(cut)
    for count in counts:
        assert reader.feed(*count) is None
    with pytest.raises(ChangelogError, match=r"damaged \(an entry is cut short.*delete the topic and the state"):
        reader.feed(key, value)


@pytest.mark.parametrize(
    ("at", "byte"),
    [
        (0, len(_FAMILIES)),  # a family that there is not
        (1, 0xFF),  # a key of 255 bytes or more
        (2, 0xFF),  # of 65,280 or more
        (3, 0xFF),  # a value that goes on into the next record
        (5, 0x7F),  # of eight million bytes
        (6, 0x7F),  # of two thousand million
    ],
)
def test_damaged_record_is_refused(at: int, byte: int) -> None:
    """Nothing is read beyond a commit's records, whatever stands in one; the message says what to do."""
    engine = Deduplicator(settings=_SETTINGS)
    commit = engine.commit_of(engine.decide(_long_stream()[:2]).change, {})
    (step,) = commit.steps
    last = step.records[-1]
    key, stored = last.keys[-1], last.values[-1]
    assert stored is not None
    record = struct.pack("<BHi", _FAMILIES.index(last.family), len(key), len(stored)) + key + stored
    *counts, (name, value) = commit_records(commit)
    assert value is not None
    begin = value.rindex(record)
    reader = CommitReader(engine.state.index.format)
    for count in counts:
        reader.feed(*count)
    damaged = value[: begin + at] + bytes([byte]) + value[begin + at + 1 :]
    with pytest.raises(ChangelogError, match=r"damaged \(records.*delete the topic and the state"):
        reader.feed(name, damaged)


@pytest.mark.parametrize("left", [1, 2])
def test_what_a_killed_writer_left_is_passed_over(monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    """Without transactions a writer may die within a commit: only the next writer's commits and counts apply."""
    monkeypatch.setattr(changelog, "_PART_BYTES", 1000)
    stream = [Article(str(n), bodies()[n]) for n in range(6)]
    live, log = Deduplicator(settings=_SETTINGS), Log()
    written(live, log, [stream[:2]])
    records = list(commit_records(live.commit_of(live.decide(stream[2:4]).change, {})))
    assert [key[:1] for key, _ in records] == [b"k", *[b"c"] * (len(records) - 1)]
    assert len(records) > left
    log.append(records[:left])
    # The next writer starts with another batch: an article it has already seen, which adds no word counts.
    written(live, log, [stream[:1], stream[2:3], stream[3:]])
    copy = restored(log, _SETTINGS, [1, 2])
    with live, copy:
        assert contents(copy, starts=False) == contents(live, starts=False)
        assert copy.vocabulary() == live.vocabulary()


def test_keys_of_a_commit_are_its_own() -> None:
    """No two records of a changelog share a key, except counts: compaction leaves all steps alone."""
    live, log = _live(_long_stream(), set(range(5, 160, 9)))
    live.close()
    keys = [key for _, (key, _) in log.records if key[:1] == b"c"]
    assert len(set(keys)) == len(keys)
    numbers = [struct.unpack_from(">Q", key, 1)[0] for key in keys]
    assert numbers == sorted(numbers)


def test_offsets_of_all_partitions_stand_where_a_generation_begins() -> None:
    """A partition that has long been silent keeps its offset even if its own commit has been cut off."""
    live, log = Deduplicator(settings=_SETTINGS), Log()
    with live:
        judged = live.decide([article("first")])
        live.apply(judged.change, {("silent", 4): 77}, append(live, judged.change, {("silent", 4): 77}, log))
        written(live, log, parts(_long_stream()[40:], set(range(3, 160, 7))))
        begin = live.state.changelog_start()
        assert begin
        log.cut(begin)
        with restored(log, _SETTINGS) as copy:
            assert copy.positions()[("silent", 4)] == 77


def test_replay_of_counts_on_the_last_step_alone_is_equal() -> None:
    """It does not matter where in a commit its counts are: a reader puts them all on its last step."""
    live, log = _live(_long_stream(), {80})
    moved = []
    with live, Deduplicator(settings=_SETTINGS) as copy:
        for commit, offset in commits(log, CommitReader(copy.state.index.format)):
            counts = [put for step in commit.steps for put in step.counts]
            steps = [replace(step, counts=[]) for step in commit.steps]
            moved.append((Commit([replace(steps[0], counts=counts), *steps[1:]], commit.positions), offset))
        copy.state.replay(moved, TOPIC)
        assert dict(contents(copy)[Family.COUNTS]) == dict(contents(live)[Family.COUNTS])
