"""The commands of `stream-dedup state` on the state of a real service, valid or damaged.

Knows commands, exit codes and topics; knows the state's bytes only where it damages them.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.demo.samples import sample_stream
from stream_dedup.arrays import U64
from stream_dedup.engine.dedup import comparability
from stream_dedup.engine.state import State
from stream_dedup.index.records.records import key_of
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.run import RunWriter, bounds_of
from stream_dedup.index.runs.shelf import RUN_KEYS
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Drop, Family, Put, StoreDamagedError, StoreFullError
from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream import rebuild
from stream_dedup.stream.kafka.topics import Topics as AdminTopics
from stream_dedup.stream.rebuild import History
from stream_dedup.stream.state import replay, restore
from stream_dedup.stream.state.changelog import ChangelogLostError
from stream_dedup.stream.state.restore import verify
from stream_dedup.stream.state.states import other_states
from tests.stream.arguments import set_flags, write_settings
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import collect
from tests.stream.service import Service, run_once
from tests.stream.topics import Topics, changelogs, create_topic, delete_group, delete_topic, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")

_SEED = 31
_MANY = 200  # batches, most of them empty: more than needed
_FLAGS = (
    "commit.articles=40",
    "idf.epoch_articles=150",
    "window.days=36500",
)  # no article is too old, whenever the tests run
_OTHER = ("sketch.gram=4", "idf.epoch_articles=100")


@dataclass(frozen=True, slots=True)
class Site:
    """A service that has read a sample stream and is still running.

    Attributes:
        bootstrap: the broker.
        topics: of the run.
        directory: of its settings and its state.
        service: the process.
        messages: how many it has read.
    """

    bootstrap: str
    topics: Topics
    directory: Path
    service: Service
    messages: int

    def state(self, *arguments: str, flags: tuple[str, ...] = _FLAGS) -> "tuple[int, str, str]":
        """Run a command of `state` with the service's settings; return its exit code and what it printed."""
        settings = write_settings(self.directory, self.bootstrap, self.topics)
        ended = run_once("state", *arguments, "--config", str(settings), *set_flags(flags))
        return ended.returncode, ended.stdout, ended.stderr

    @property
    def database(self) -> Path:
        """Directory of its RocksDB."""
        (path,) = [path.parent for path in (self.directory / "state").glob("*/CURRENT")]
        return path


@pytest.fixture(scope="module")
def site(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that has read a whole sample stream."""
    directory = tmp_path_factory.mktemp("site")
    topics = fresh_topics(bootstrap)
    messages = [Incoming(sample.value, sample.key) for sample in sample_stream(_SEED)]
    produce(bootstrap, topics.input, messages)
    with Service(directory, bootstrap, topics, *_FLAGS) as service:
        collect(bootstrap, topics, len(messages), service)
        yield Site(bootstrap, topics, directory, service, len(messages))


@pytest.fixture(scope="module")
def snapshot(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a snapshot of the site."""
    directory = tmp_path_factory.mktemp("snapshots") / "one"
    code, _, told = site.state("snapshot", str(directory))
    assert code == 0, told
    (database,) = [path.parent for path in directory.glob("*/CURRENT")]
    return database


def _copied(snapshot: Path, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return a copy of a database, for tests to damage, and the flags to use it: a snapshot shares its files."""
    copy = tmp_path / "copy" / snapshot.name
    shutil.copytree(snapshot, copy)
    return copy, (*_FLAGS, f"state.directory={copy.parent}")


# ------------------------------------------------------------------------------------------------ beside the service


def test_stats_are_those_of_the_stream(site: Site) -> None:
    """Offsets, articles and the changelog match the topics, and the service keeps running."""
    code, printed, _ = site.state("stats", "--json")
    stats = json.loads(printed)
    outputs = collect(site.bootstrap, site.topics, site.messages, site.service)
    assert code == 0
    assert stats["input"] == [{"topic": site.topics.input, "partition": 0, "next_offset": site.messages}]
    assert stats["articles_judged"] == len(outputs.unique) + len(outputs.duplicates)
    assert stats["changelog"] in changelogs(site.bootstrap, site.topics)
    assert Path(stats["directory"]) == site.database
    assert sum(one["next_offset"] for one in stats["input"]) > 0 < stats["entries"] < stats["articles_judged"]
    assert site.service.running


def test_stats_for_people_show_the_same(site: Site) -> None:
    """The table names the changelog and the articles."""
    code, printed, _ = site.state("stats")
    assert code == 0
    assert "changelog position" in printed
    assert "articles judged" in printed


def test_sound_state_is_verified_while_the_service_runs(site: Site) -> None:
    """Indexes, records, counts and the replayed changelog agree."""
    code, printed, told = site.state("verify")
    assert code == 0, told
    assert "agrees with its changelog" in printed


def test_replay_of_verify_lies_beside_the_state(site: Site) -> None:
    """It is on the same disk, because /tmp may be small; nobody takes it for another state, and it is removed."""
    settings = _settings(site, _FLAGS)
    seen: set[Path] = set()

    def look(*_: object) -> None:
        seen.update(settings.state.directory.glob("stream-dedup-verify-*"))
        assert other_states(settings, site.database.name) == []

    assert not list(verify(settings, look, with_changelog=True))
    assert len(seen) == 1
    assert not any(path.exists() for path in seen)


def test_replay_that_might_fill_the_disk_is_refused(
    site: Site, snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could stop the service on that disk: the message names the disk and the option that avoids the replay."""
    _, flags = _copied(snapshot, tmp_path)
    monkeypatch.setattr(restore, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(StoreFullError, match=rf"the disk of {tmp_path / 'copy'} has 0 MB left.*--offline"):
        _faults(site, flags, with_changelog=True)
    assert not _faults(site, flags, with_changelog=False)


def test_snapshot_of_a_running_service_is_a_state_of_its_own(site: Site, tmp_path: Path) -> None:
    """It verifies, and a service starts on it as a standby while the first runs on; nothing comes out twice."""
    code, _, told = site.state("snapshot", str(tmp_path / "snapshot"))
    assert code == 0, told
    flags = (*_FLAGS, f"state.directory={tmp_path / 'snapshot'}")
    assert site.state("verify", flags=flags)[0] == 0
    with Service(tmp_path, site.bootstrap, site.topics, *flags) as second:
        second.wait_ready()
        assert second.metrics().by("role", "role") == {("standby",): 1}
        assert not second.events("restored")  # its position is the end of the changelog
        second.stop()
    assert collect(site.bootstrap, site.topics, site.messages, site.service).total() == site.messages


def test_snapshot_into_a_directory_that_is_there_is_refused(site: Site, tmp_path: Path) -> None:
    """Nothing is overwritten, and the message names the directory."""
    assert site.state("snapshot", str(tmp_path / "one"))[0] == 0
    code, _, told = site.state("snapshot", str(tmp_path / "one"))
    assert code == 1
    assert str(tmp_path / "one") in told


def test_restore_is_refused_while_the_service_runs(site: Site) -> None:
    """The directory is in use: exit code 3, and the service keeps its state."""
    code, _, told = site.state("restore", "--fresh")
    assert code == 3
    assert "in use" in told
    assert site.state("verify", "--offline")[0] == 0


def test_restored_state_is_the_same(site: Site, tmp_path: Path) -> None:
    """A new directory gets the whole changelog, and verifies; restoring again has nothing to do."""
    flags = (*_FLAGS, f"state.directory={tmp_path}")
    code, printed, told = site.state("restore", flags=flags)
    assert code == 0, told
    judged = json.loads(site.state("stats", "--json")[1])["articles_judged"]
    assert printed.startswith(f"{judged} articles replayed")
    assert site.state("verify", flags=flags)[0] == 0
    assert site.state("restore", flags=flags)[1].startswith("0 articles replayed")


# ------------------------------------------------------------------------------------------------ damage is found


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
        state = State(store, settings, comparability(settings))
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


def _settings(site: Site, flags: tuple[str, ...]) -> Settings:
    return load_settings(write_settings(site.directory, site.bootstrap, site.topics), {}, flags)


def _faults(site: Site, flags: tuple[str, ...], *, with_changelog: bool) -> list[str]:
    """Return what `state verify` finds, in this process, which saves the seconds of starting another."""
    return list(verify(_settings(site, flags), lambda *_: None, with_changelog=with_changelog))


@pytest.mark.parametrize("wrong", _WRONGS)
def test_fault_in_a_state_is_found(site: Site, snapshot: Path, tmp_path: Path, wrong: str) -> None:
    """One wrong key in any family is a fault."""
    database, flags = _copied(snapshot, tmp_path)
    with RocksStore(database) as store:
        store.write(_WRONGS[wrong](store))
    assert _faults(site, flags, with_changelog=True)


@pytest.mark.parametrize("wrong", ["entry missing", "cluster changed"])
def test_fault_between_families_is_found_without_the_changelog(
    site: Site, snapshot: Path, tmp_path: Path, wrong: str
) -> None:
    """If two families contradict each other, no broker is needed to see it."""
    database, flags = _copied(snapshot, tmp_path)
    assert not _faults(site, flags, with_changelog=False)
    with RocksStore(database) as store:
        store.write(_WRONGS[wrong](store))
    assert _faults(site, flags, with_changelog=False)


@pytest.mark.parametrize("wrong", _WRONG_POSTINGS)
def test_fault_in_a_run_is_found_without_the_changelog(site: Site, snapshot: Path, tmp_path: Path, wrong: str) -> None:
    """A posting that is missing, extra or under another key is a fault; a complete run has none."""
    database, flags = _copied(snapshot, tmp_path)
    _freeze(database, _settings(site, flags))
    assert not _faults(site, flags, with_changelog=False)
    _freeze(database, _settings(site, flags), _WRONG_POSTINGS[wrong])
    assert any("landmarks" in fault for fault in _faults(site, flags, with_changelog=False))


@pytest.mark.parametrize("place", [10, -10], ids=["block", "end"])
def test_damage_of_a_run_is_told(site: Site, snapshot: Path, tmp_path: Path, place: int) -> None:
    """After a flipped byte in a run, or with a run missing, verify fails and names the file and the remedy."""
    database, flags = _copied(snapshot, tmp_path)
    path = _freeze(database, _settings(site, flags))
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StoreDamagedError, match=r"all\.run .*state restore --fresh"):
        _faults(site, flags, with_changelog=False)
    path.unlink()
    code, _, told = site.state("verify", "--offline", flags=flags)
    assert (code, "all.run" in told, "state restore --fresh" in told) == (1, True, True)
    assert site.state("restore", "--fresh", flags=flags)[0] == 0
    assert not _faults(site, flags, with_changelog=True)


def test_lost_registry_of_runs_is_made_up_for(site: Site, snapshot: Path, tmp_path: Path) -> None:
    """A state that has lost the list of its runs rebuilds the posting lists from the entries."""
    database, flags = _copied(snapshot, tmp_path)
    path = _freeze(database, _settings(site, flags))
    with RocksStore(database) as store:
        store.write([Drop(Family.META, RUN_KEYS[0], RUN_KEYS[0] + b"\xff")])
    assert not _faults(site, flags, with_changelog=True)
    assert path.exists(), "whoever only reads removes nothing"


def test_fresh_restore_mends_a_fault(site: Site, snapshot: Path, tmp_path: Path) -> None:
    """Verify ends with exit code 1 and a line about the fault, and the advice it gives works."""
    database, flags = _copied(snapshot, tmp_path)
    with RocksStore(database) as store:
        store.write(_WRONGS["entry missing"](store))
    code, _, told = site.state("verify", flags=flags)
    assert (code, "fault" in told, "state restore --fresh" in told) == (1, True, True)
    assert site.state("restore", "--fresh", flags=flags)[0] == 0
    assert site.state("verify", flags=flags)[0] == 0


def test_state_that_has_judged_nothing_is_in_order(bootstrap: str, tmp_path: Path) -> None:
    """A service without input has a valid state."""
    topics = fresh_topics(bootstrap)
    with Service(tmp_path, bootstrap, topics) as service:
        service.wait_ready()
        service.stop()
    ended = run_once("state", "verify", "--config", str(tmp_path / "stream-dedup.toml"))
    assert (ended.returncode, "consistent" in ended.stdout) == (0, True), ended.stderr


def test_state_that_is_not_of_its_changelog_is_a_fault(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the topic was recreated, or ends before the state's position, it says so without waiting."""
    monkeypatch.setattr(replay, "_MARKER_SECONDS", 0.5)
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, [article("a", "大桥今天通车。")])
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 1, service)
        service.stop()
    settings = load_settings(tmp_path / "stream-dedup.toml")
    assert not list(verify(settings, lambda *_: None, with_changelog=True))
    (changelog,) = changelogs(bootstrap, topics)
    made_from = AdminTopics(settings).identity(changelog)
    delete_topic(bootstrap, changelog)
    create_topic(bootstrap, changelog)
    (fault,) = verify(settings, lambda *_: None, with_changelog=True)
    assert f"made from the changelog {made_from}" in fault
    monkeypatch.setattr(AdminTopics, "identity", lambda *_: made_from)
    with pytest.raises(ChangelogLostError, match="ends at 0, but the state is at"):
        list(verify(settings, lambda *_: None, with_changelog=True))


def test_no_state_is_said_so(site: Site, tmp_path: Path) -> None:
    """A directory without a state is reported with exit code 1, and nothing is created in it."""
    empty = tmp_path / "none"
    for command in ("stats", "verify"):
        code, _, told = site.state(command, flags=(*_FLAGS, f"state.directory={empty}"))
        assert code == 1
        assert "is not a state of these settings" in told
    assert not empty.exists()


# ------------------------------------------------------------------------------------------------ other settings


def test_rebuilt_state_is_taken_by_the_next_start(bootstrap: str, tmp_path: Path) -> None:
    """The service refuses other settings; after a rebuild beside it, the next start accepts them and repeats nothing.

    What the old service decides after the rebuild is judged again at that start, and not published.
    """
    topics = fresh_topics(bootstrap, partitions=2)
    samples = [sample for sample in sample_stream(_SEED) if sample.dead_reason is None]
    messages = [Incoming(sample.value, sample.key, partition=at % 2) for at, sample in enumerate(samples)]
    half = len(messages) // 2
    with Service(tmp_path, bootstrap, topics, *_FLAGS) as service:
        site = Site(bootstrap, topics, tmp_path, service, len(messages))
        produce(bootstrap, topics.input, messages[:half])
        collect(bootstrap, topics, half, service)
        code, _, refused = _run(site, _OTHER)
        assert (code, "sketch.gram" in refused, "state rebuild" in refused) == (1, True, True)
        code, printed, told = site.state("rebuild", flags=(*_FLAGS, *_OTHER))
        assert code == 0, told
        assert "the next start will use it" in printed
        assert collect(bootstrap, topics, half, service).total() == half  # it published nothing
        produce(bootstrap, topics.input, messages[half:])
        before = collect(bootstrap, topics, len(messages), service)
        service.stop()
    assert len(changelogs(bootstrap, topics)) == 2
    copies = [
        article(f"late-{at}", _body(sample.value)) for at, sample in enumerate(samples[:20] + samples[half:][:20])
    ]
    with Service(tmp_path, bootstrap, topics, *_FLAGS, *_OTHER) as service:
        service.wait_ready()
        produce(bootstrap, topics.input, copies)
        after = collect(bootstrap, topics, len(messages) + len(copies), service)
        wait_until(lambda: bool(service.events("judged_again_in_silence")), "it says what it judges again")
        service.stop()
    assert after.total() == before.total() + len(copies)
    new = {record.json()["id"] for record in after.duplicates} - {record.json()["id"] for record in before.duplicates}
    assert new == {f"late-{at}" for at in range(len(copies))}
    assert replace(site, service=service).state("verify", flags=(*_FLAGS, *_OTHER))[0] == 0


def test_rebuild_knows_what_was_decided_or_says_that_nobody_does(bootstrap: str, tmp_path: Path) -> None:
    """Without the group's offsets a rebuild would judge nothing, so it is refused; a start commits them again."""
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, [article("a", _body(sample_stream(_SEED)[0].value))])
    with Service(tmp_path, bootstrap, topics, *_FLAGS) as service:
        site = Site(bootstrap, topics, tmp_path, service, 1)
        collect(bootstrap, topics, 1, service)
        service.stop()
    delete_group(bootstrap, topics.group)
    for _ in range(2):
        code, _, told = site.state("rebuild", flags=(*_FLAGS, *_OTHER))
        assert (code, f"the group {topics.group} has no offsets" in told) == (1, True)
    assert len(changelogs(bootstrap, topics)) == 1  # a refusal leaves nothing behind
    with Service(tmp_path, bootstrap, topics, *_FLAGS) as service:
        wait_until(lambda: bool(service.events("partitions_assigned")), "it reads the input")
        service.stop()
    code, printed, told = site.state("rebuild", flags=(*_FLAGS, *_OTHER))
    assert (code, "1 article judged" in printed) == (0, True), told


def test_state_from_before_a_topic_was_made_anew_goes_on_behind_what_was_decided_since(
    bootstrap: str, tmp_path: Path
) -> None:
    """After other settings, under which the topic was recreated, and the first ones again, nothing comes out twice.

    The first state's offsets are of the old topic. Even a state that was only rebuilt knows which topic its offsets are
    of.
    """
    topics = fresh_topics(bootstrap)
    bodies = iter([_body(sample.value) for sample in sample_stream(_SEED) if sample.dead_reason is None])
    names = iter("abcdefghijk")
    site = None

    def decided(messages: int, total: int, flags: tuple[str, ...]) -> list[str]:
        nonlocal site
        produce(bootstrap, topics.input, [article(next(names), next(bodies)) for _ in range(messages)])
        with Service(tmp_path, bootstrap, topics, *_FLAGS, *flags) as service:
            site = site or Site(bootstrap, topics, tmp_path, service, total)
            outputs = collect(bootstrap, topics, total, service)
            service.stop()
        return sorted((record.key or b"").decode() for record in (*outputs.unique, *outputs.duplicates))

    decided(5, 5, ())
    assert site is not None
    code, _, told = site.state("rebuild", flags=(*_FLAGS, *_OTHER))
    assert code == 0, told
    delete_topic(bootstrap, topics.input)
    create_topic(bootstrap, topics.input)
    assert decided(4, 9, _OTHER) == list("abcdefghi")  # the rebuilt state's offset 5 is of a deleted topic
    assert decided(2, 11, ()) == list("abcdefghijk")


def test_history_ends_where_the_rest_of_it_is_deleted_meanwhile(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention may delete what is still to be judged again, and nothing new may ever arrive in that partition."""
    monkeypatch.setattr(rebuild, "_READ_MESSAGES", 1)  # at a time: otherwise all might be read in a tenth of a second
    topics, size = fresh_topics(bootstrap), 40
    for at in range(size):
        produce(bootstrap, topics.input, [article(f"{at}", "很" * 1_000)])  # each fetched separately
    kafka = {
        "bootstrap.servers": bootstrap,
        "consumer.queued.max.messages.kbytes": "1",
        "consumer.fetch.message.max.bytes": "1024",
    }
    settings = Settings.model_validate({"input": {"topics": [topics.input], "group": topics.group}, "kafka": kafka})
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": topics.group})) as group:
        group.commit(offsets=[TopicPartition(topics.input, 0, size)], asynchronous=False)
    with closing(History(settings, {})) as history:
        batches = history.batches(1)
        assert any(next(batches) for _ in range(_MANY))
        rest = TopicPartition(topics.input, 0, size)
        admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: a client that is freed drops its requests
        admin.delete_records([rest])[rest].result(20)
        assert None in (next(batches, None) for _ in range(_MANY))
        assert history.done < size


def _run(site: Site, flags: tuple[str, ...]) -> tuple[int, str, str]:
    settings = write_settings(site.directory, site.bootstrap, site.topics)
    ended = run_once("run", "--config", str(settings), *set_flags((*_FLAGS, *flags)))
    return ended.returncode, ended.stdout, ended.stderr


def _body(value: bytes | None) -> str:
    body = json.loads(value or b"{}")["body"]
    assert isinstance(body, str)
    return body
