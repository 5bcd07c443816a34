"""Damage in a state is found by `state verify` and mended by `state restore`.

Knows the state's bytes only where it damages them.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from stream_dedup.arrays import U64
from stream_dedup.engine.state import State
from stream_dedup.index.records.records import key_of
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.run import RunWriter, bounds_of
from stream_dedup.index.runs.shelf import RUN_KEYS
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Drop, Family, Put, StoreDamagedError
from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream.kafka.topics import Topics as AdminTopics
from stream_dedup.stream.state import replay
from stream_dedup.stream.state.changelog import ChangelogLostError
from stream_dedup.stream.state.restore import verify
from tests.engine.samples import bodies
from tests.stream.messages import article, produce
from tests.stream.records import collect
from tests.stream.service import Service
from tests.stream.state.site import Site, copied
from tests.stream.topics import changelogs, create_topic, delete_topic, fresh_topics

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(scope="module")
def snapshot(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a snapshot of the site."""
    return site.snapshot(tmp_path_factory.mktemp("snapshots") / "one")


def _first(store: RocksStore, family: Family) -> tuple[bytes, bytes]:
    return next(store.items(family))


def _changed(value: bytes) -> bytes:
    return value[:-1] + bytes([value[-1] ^ 1])


_WRONGS = {
    "entry missing": lambda store: [Put(Family.ENTRIES, _first(store, Family.ENTRIES)[0], None)],
    "entry changed": lambda store: [Put(Family.ENTRIES, *_with(_first(store, Family.ENTRIES)))],
    "article missing": lambda store: [Put(Family.ARTICLES, _first(store, Family.ARTICLES)[0], None)],
    "cluster changed": lambda store: [Put(Family.CLUSTERS, *_swapped(_first(store, Family.CLUSTERS)))],
    "counts missing": lambda store: [Put(Family.COUNTS, _first(store, Family.COUNTS)[0], None)],
    "offset changed": lambda store: [Put(Family.META, *_with(next(store.items(Family.META, b"offset/"))))],
}

# What happens to the landmark postings; the number of the next entry is passed in too.
_WRONG_POSTINGS: dict[str, Callable[[KeyedPostings, int], KeyedPostings]] = {
    "posting missing": lambda keyed, _: KeyedPostings(*(column[1:] for column in keyed)),
    "posting of nobody": lambda keyed, following: keyed._replace(entries=_with_last(keyed.entries, following)),
    "posting under another key": lambda keyed, _: keyed._replace(keys=_with_last(keyed.keys, int(keyed.keys[-1]) ^ 1)),
}


def _with_last(column: U64, value: int) -> U64:
    return np.append(column[:-1], np.uint64(value))


def _freeze(
    database: Path, settings: Settings, change: Callable[[KeyedPostings, int], KeyedPostings] = lambda keyed, _: keyed
) -> Path:
    """Put all postings of a state into one run, those of the landmarks changed, and return its file."""
    with RocksStore(database) as store:
        state = State(store, settings)
        following, index = state.progress.entries, state.index
        with store.new_file("all.run") as file:
            writer = RunWriter(file, 0, following)
            for place, kind in enumerate(index.kinds):
                keyed = _sorted([one for own, one in index.shelf.keyed_postings() if own == place])
                keyed = change(keyed, following) if kind.name == "landmarks" else keyed
                writer.section([keyed], bounds_of(keyed), kind.detail_bytes)
            writer.finish()
        index.close()
        registry = RUN_KEYS[0]
        store.write(
            [Drop(Family.META, registry, registry + b"\xff"), Put(Family.META, registry + key_of(0), b"all.run")]
        )
    return database / "files" / "all.run"


def _sorted(keyed_postings: Sequence[KeyedPostings]) -> KeyedPostings:
    joined = KeyedPostings(*(np.concatenate(column) for column in zip(*keyed_postings, strict=True)))
    order = np.lexsort((joined.entries, joined.keys))
    return KeyedPostings(*(column[order] for column in joined))


def _with(pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return pair[0], _changed(pair[1])


def _swapped(pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return a cluster with one copy more than its sources add up to."""
    fields = json.loads(pair[1][1:])
    fields[2] += 1
    return pair[0], pair[1][:1] + json.dumps(fields).encode()


@pytest.mark.parametrize("wrong", _WRONGS)
def test_fault_in_a_state_is_found(site: Site, snapshot: Path, tmp_path: Path, wrong: str) -> None:
    """One wrong key in any family is a fault."""
    database, flags = copied(snapshot, tmp_path)
    with RocksStore(database) as store:
        store.write(_WRONGS[wrong](store))
    assert site.faults(flags, with_changelog=True)


@pytest.mark.parametrize("wrong", ["entry missing", "cluster changed"])
def test_fault_between_families_is_found_without_the_changelog(
    site: Site, snapshot: Path, tmp_path: Path, wrong: str
) -> None:
    """If two families contradict each other, no broker is needed to see it."""
    database, flags = copied(snapshot, tmp_path)
    assert not site.faults(flags, with_changelog=False)
    with RocksStore(database) as store:
        store.write(_WRONGS[wrong](store))
    assert site.faults(flags, with_changelog=False)


@pytest.mark.parametrize("wrong", _WRONG_POSTINGS)
def test_fault_in_a_run_is_found_without_the_changelog(site: Site, snapshot: Path, tmp_path: Path, wrong: str) -> None:
    """A posting that is missing, extra or under another key is a fault; a complete run has none."""
    database, flags = copied(snapshot, tmp_path)
    _freeze(database, site.settings(flags))
    assert not site.faults(flags, with_changelog=False)
    _freeze(database, site.settings(flags), _WRONG_POSTINGS[wrong])
    assert any("landmarks" in fault for fault in site.faults(flags, with_changelog=False))


@pytest.mark.parametrize("place", [10, -10], ids=["block", "end"])
def test_damage_of_a_run_is_told(site: Site, snapshot: Path, tmp_path: Path, place: int) -> None:
    """After a flipped byte in a run, or with a run missing, verify fails and names the file and the remedy."""
    database, flags = copied(snapshot, tmp_path)
    path = _freeze(database, site.settings(flags))
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StoreDamagedError, match=r"all\.run .*state restore --fresh"):
        site.faults(flags, with_changelog=False)
    path.unlink()
    code, _, told = site.state("verify", "--offline", flags=flags)
    assert (code, "all.run" in told, "state restore --fresh" in told) == (1, True, True)
    assert site.state("restore", "--fresh", flags=flags)[0] == 0
    assert not site.faults(flags, with_changelog=True)


def test_lost_registry_of_runs_is_made_up_for(site: Site, snapshot: Path, tmp_path: Path) -> None:
    """A state that has lost the list of its runs rebuilds the posting lists from the entries."""
    database, flags = copied(snapshot, tmp_path)
    path = _freeze(database, site.settings(flags))
    with RocksStore(database) as store:
        store.write([Drop(Family.META, RUN_KEYS[0], RUN_KEYS[0] + b"\xff")])
    assert not site.faults(flags, with_changelog=True)
    assert path.exists(), "whoever only reads removes nothing"


def test_fresh_restore_mends_a_fault(site: Site, snapshot: Path, tmp_path: Path) -> None:
    """Verify ends with exit code 1 and a line about the fault, and the advice it gives works."""
    database, flags = copied(snapshot, tmp_path)
    with RocksStore(database) as store:
        store.write(_WRONGS["entry missing"](store))
    code, _, told = site.state("verify", flags=flags)
    assert (code, "fault" in told, "state restore --fresh" in told) == (1, True, True)
    assert site.state("restore", "--fresh", flags=flags)[0] == 0
    assert site.state("verify", flags=flags)[0] == 0


@pytest.mark.parametrize("damaged", ["MANIFEST-*", "*.sst"], ids=["list of files", "table"])
def test_service_restores_a_damaged_state(bootstrap: str, tmp_path: Path, damaged: str) -> None:
    """By itself, from the changelog: nothing is decided again, and copies of what was decided before are found."""
    topics, texts = fresh_topics(bootstrap), bodies()[:20]
    produce(bootstrap, topics.input, [article(f"old-{n}", text) for n, text in enumerate(texts)])
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, len(texts), service)
        service.stop()
    (database,) = (path.parent for path in (tmp_path / "state").glob("*/CURRENT"))
    file = max(database.glob(damaged), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    produce(bootstrap, topics.input, [article(f"new-{n}", text) for n, text in enumerate(texts)])
    with Service(tmp_path, bootstrap, topics) as service:
        outputs = collect(bootstrap, topics, 2 * len(texts), service)
        (discarded,) = service.events("state_discarded")
        service.stop()
    assert file.name in discarded["error"] or str(database) in discarded["error"]
    assert [(record.key or b"").decode() for record in outputs.unique] == [f"old-{n}" for n in range(len(texts))]
    links = {name: link["duplicate_of"] for name, link in outputs.links().items()}
    assert links == {f"new-{n}": f"old-{n}" for n in range(len(texts))}
    assert not list(verify(load_settings(tmp_path / "stream-dedup.toml"), lambda *_: None, with_changelog=True))


def test_state_that_is_not_of_its_changelog_is_a_fault(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the topic was recreated, or ends before the state's position, it says so without waiting."""
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, [article("a", "大桥今天通车。")])
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 1, service)
        service.stop()
    settings = load_settings(tmp_path / "stream-dedup.toml")
    assert not list(verify(settings, lambda *_: None, with_changelog=True))
    monkeypatch.setattr(replay, "_MARKER_SECONDS", 0.5)  # nothing is left to wait for
    (changelog,) = changelogs(bootstrap, topics)
    made_from = AdminTopics(settings).identity(changelog)
    delete_topic(bootstrap, changelog)
    create_topic(bootstrap, changelog)
    (fault,) = verify(settings, lambda *_: None, with_changelog=True)
    assert f"made from the changelog {made_from}" in fault
    monkeypatch.setattr(AdminTopics, "identity", lambda *_: made_from)
    with pytest.raises(
        ChangelogLostError, match=f"{changelog} ends at 0, but the state is at .* Remove the state directory"
    ):
        list(verify(settings, lambda *_: None, with_changelog=True))
