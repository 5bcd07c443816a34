"""The package as others embed it: what it takes, what it refuses in words, and any text at all.

Knows what users call; what is decided is tested elsewhere.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread

import pytest

import stream_dedup
from stream_dedup import Article, Deduplicator, Relation
from stream_dedup.article import Withdrawal
from stream_dedup.engine.judged import Change
from stream_dedup.index.records.ledger import ChangelogPosition
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, StoreError
from stream_dedup.settings import EngineSettings, StateSettings, load_settings
from tests.engine.one_by_one import REPOST, SETTINGS
from tests.engine.samples import articles, bodies


@pytest.fixture
def engine() -> Iterator[Deduplicator]:
    """An engine in memory that has judged nothing."""
    with Deduplicator() as one:
        yield one


def test_state_is_kept_as_the_settings_of_a_service_say(tmp_path: Path) -> None:
    """RocksDB notes the sizes it was opened with beside the database: those of the group `state`, or its defaults."""

    def buffer_bytes(name: str, settings: EngineSettings | None) -> set[str]:
        with Deduplicator(tmp_path / name, settings) as engine:
            engine.add(articles()[0])
        noted = max((tmp_path / name).glob("OPTIONS-*"))
        return set(re.findall(r"^\s*write_buffer_size=(\d+)$", noted.read_text(), re.MULTILINE))

    assert buffer_bytes("own", load_settings(flags=["state.write_buffer_bytes=3000000"])) == {"3000000"}
    assert buffer_bytes("other", None) == {str(StateSettings().write_buffer_bytes)}


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
def test_what_is_no_sequence_of_items_is_refused(method: str, items: object, said: str, engine: Deduplicator) -> None:
    """Every method's error says what came and what is needed, and nothing has changed."""
    with pytest.raises(TypeError, match=said):
        getattr(engine, method)(items)
    assert engine.progress.judged == 0


@pytest.mark.parametrize("item", ["abc", {"id": "1", "body": "正文"}, [articles()[0]], _WITHDRAWAL, None])
def test_what_is_no_article_is_not_added(item: object, engine: Deduplicator) -> None:
    """The error names what came and the class that is needed."""
    with pytest.raises(TypeError, match=rf"of type {type(item).__name__}: `add` needs an Article"):
        engine.add(item)  # type: ignore[arg-type]


def test_what_is_no_change_is_not_applied(engine: Deduplicator) -> None:
    """The likeliest slip is to pass the whole result of `decide`."""
    judged = engine.decide([articles()[0]])
    for wrong in (judged, None):
        with pytest.raises(TypeError, match="`apply` needs the `change` of what `decide` returned"):
            engine.apply(wrong)  # type: ignore[arg-type]
    engine.apply(judged.change)


def test_withdrawals_are_no_articles_to_add(engine: Deduplicator) -> None:
    """They have no decision; `process` accepts them."""
    with pytest.raises(TypeError, match="item 1 is Withdrawal"):
        engine.add_batch([articles()[0], _WITHDRAWAL])  # type: ignore[list-item]
    assert len(engine.process([articles()[0], _WITHDRAWAL]).outcomes) == 2


@pytest.mark.parametrize("given", [{"window": {"days": 1}}, {}, "stream-dedup.toml"])
def test_settings_of_another_type_are_refused(given: object) -> None:
    """The error says how to make settings."""
    with pytest.raises(TypeError, match=r"EngineSettings are needed; .*EngineSettings\.model_validate.*load_settings"):
        Deduplicator(None, given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [SETTINGS, b"state", 5], ids=["settings", "bytes", "number"])
def test_directory_of_another_type_is_refused(given: object) -> None:
    """The likeliest slip is to pass the settings in its place."""
    with pytest.raises(TypeError, match=r"a directory is needed, as a Path or a text; settings come after it$"):
        Deduplicator(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("below", ["", "state"])
def test_directory_that_is_a_file_is_told_so(below: str, tmp_path: Path) -> None:
    """Also if a file is in the place of a directory above it."""
    file = tmp_path / "file"
    file.touch()
    told = rf"^cannot open the state directory {file / below}: it, or what should hold it, is a file; name a directory"
    with pytest.raises(StoreError, match=told):
        Deduplicator(file / below)


def test_empty_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unset variable does not make a state of whatever the current directory is."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="the path is empty"):
        Deduplicator("")
    assert [*tmp_path.iterdir()] == []


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
    engine = Deduplicator(tmp_path if place == "disk" else None, SETTINGS)
    engine.add_batch(articles()[:2])
    change = engine.decide(articles()[2:4]).change
    engine.close()
    for call in _CALLS:
        with pytest.raises(StoreError, match=r"^the engine is closed: "):
            call(engine, change)
    engine.close()
    assert engine.progress.judged == 2


def test_closing_waits_for_a_call_in_another_thread(tmp_path: Path) -> None:
    """What the call reads is not released under it; the next call is told that the engine is closed."""
    store = RocksStore(tmp_path / "state")
    engine = Deduplicator(settings=SETTINGS, store=store)
    engine.add_batch(articles()[:2])
    closing = Thread(target=engine.close)

    def get_many(family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        if closing.ident is None:
            closing.start()
            closing.join(0.2)
        return read(family, keys)

    read, store.get_many = store.get_many, get_many  # type: ignore[method-assign]
    assert len(engine.decide(articles()[2:4]).outcomes) == 2
    closing.join()
    with pytest.raises(StoreError, match=r"^the engine is closed: "):
        engine.decide(articles()[2:4])


_FORKING = """
import os, sys
from stream_dedup import Article, Deduplicator
with Deduplicator(sys.argv[1]) as on_disk, Deduplicator() as in_memory:
    engines = on_disk, in_memory
    for engine in engines:
        engine.add(Article("1", "the text of the first article"))
    if os.fork() == 0:
        for engine in engines:
            try:
                engine.add(Article("2", "the text of another one"))
            except Exception as error:
                print(error, flush=True)
        sys.exit()
    os.wait()
    for engine in engines:
        engine.add(Article("3", "the text of a third one"))
        print(engine.progress.judged)
"""


def test_a_forked_process_is_refused_and_ends(tmp_path: Path) -> None:
    """It has none of an engine's threads, and would write what the other process overwrites; that one carries on."""
    program = [sys.executable, "-c", _FORKING, str(tmp_path / "state")]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=200)
    refused, again, *judged = done.stdout.splitlines()
    assert refused == again
    assert refused.startswith("the engine belongs to the process that opened it, and this one was forked since: ")
    assert judged == ["2", "2"]
    with Deduplicator(tmp_path / "state") as engine:
        assert engine.progress.judged == 2


@pytest.mark.parametrize("add", [Deduplicator.add_batch, Deduplicator.process])
def test_threads_that_add_wait_for_one_another(
    add: Callable[[Deduplicator, Sequence[Article]], object], engine: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is decided between another thread's decision and its change, which could not be applied after that."""
    other = Thread(target=engine.add, args=(articles()[2],))

    def apply(change: Change) -> None:
        if other.ident is None:
            other.start()
            other.join(0.2)
        Deduplicator.apply(engine, change)

    monkeypatch.setattr(engine, "apply", apply)
    add(engine, articles()[:2])
    other.join()
    assert engine.progress.judged == 3


def test_embedded_in_memory() -> None:
    """`from stream_dedup import Deduplicator` is enough: articles one by one, no directory, no broker."""
    with stream_dedup.Deduplicator() as engine:
        first = engine.add(stream_dedup.Article("1", bodies()[0]))
        other = engine.add(stream_dedup.Article("2", bodies()[1]))
        copy = engine.add(stream_dedup.Article("3", REPOST + bodies()[0]))
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


@pytest.mark.parametrize("body", ["\ud83d", "\u200b\u200b", "<br/>", "！！", "😀", "的了在", "一", "a" * 100_000])
def test_texts_without_words_are_judged(body: str) -> None:
    """Bodies of symbols, stop words, invisible characters or a single letter are judged like others."""
    with Deduplicator(settings=SETTINGS) as engine:
        first, normal, copy = engine.add_batch([Article("1", body), Article("2", bodies()[0]), Article("3", body)])
    assert first.unique
    assert normal.unique
    assert copy.link is not None
    assert copy.link.relation is Relation.EXACT


def test_texts_of_nothing_but_markup_are_not_copies_of_one_another() -> None:
    """Two different bodies that normalise to nothing do not count as the same text."""
    with Deduplicator(settings=SETTINGS) as engine:
        engine.add(Article("1", "\u200b\u200b"))
        assert engine.add(Article("2", '<img src="https://a.example/photo.jpg">')).unique


def test_state_of_a_service_is_refused(tmp_path: Path) -> None:
    """Its changelog would lack what is judged, and the service refuse the state; the directories stay as they are."""
    state = tmp_path / "0123abcd"
    for _ in range(2):
        with Deduplicator(store=RocksStore(state)) as service:
            place = ChangelogPosition("stream-dedup.changelog.0123abcd/id", 1)
            service.apply(service.decide(articles()[:1]).change, {("in", 0): 1}, place)
        for refused in (state, tmp_path):
            with pytest.raises(
                StoreError, match=f"^{refused} holds the state of a service, .*: name another directory"
            ):
                Deduplicator(refused)
        assert list(tmp_path.iterdir()) == [state]
