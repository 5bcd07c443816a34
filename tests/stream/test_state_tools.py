"""The commands of `stream-dedup state` on the state of a real service, and what they say of one that is not in order.

Knows commands, exit codes and topics; knows the state's bytes only where it damages them.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deploy.demo.samples import sample_stream
from stream_dedup.index.rocks import RocksStore
from stream_dedup.index.store import Family, Put
from stream_dedup.settings import load_settings
from stream_dedup.stream.restore import verify
from tests.stream.harness import (
    Incoming,
    Service,
    Topics,
    article,
    changelogs,
    collect,
    fresh_topics,
    produce,
    run_once,
    set_flags,
    wait_until,
    write_settings,
)

pytestmark = pytest.mark.usefixtures("compiled")

_SEED = 31
_FLAGS = ("commit.articles=40", "idf.epoch_articles=150", "window.days=400")
_OTHER = ("sketch.gram=4", "idf.epoch_articles=100")


@dataclass(frozen=True, slots=True)
class Site:
    """A service that has read a sample stream and runs on.

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
    """A service that has read all of a sample stream."""
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
    """Return a copy of a database that may be damaged, and the flags to use it: a snapshot shares its files."""
    copy = tmp_path / "copy" / snapshot.name
    shutil.copytree(snapshot, copy)
    return copy, (*_FLAGS, f"state.directory={copy.parent}")


# ------------------------------------------------------------------------------------------------ beside the service


def test_stats_are_those_of_the_stream(site: Site) -> None:
    """Offsets, articles and the changelog's place are what the topics hold; the service runs on."""
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
    assert "as its changelog says" in printed


def test_snapshot_of_a_running_service_is_a_state_of_its_own(site: Site, tmp_path: Path) -> None:
    """It verifies, and a service starts on it as a standby while the first goes on; nothing comes out twice."""
    code, _, told = site.state("snapshot", str(tmp_path / "snapshot"))
    assert code == 0, told
    flags = (*_FLAGS, f"state.directory={tmp_path / 'snapshot'}")
    assert site.state("verify", flags=flags)[0] == 0
    with Service(tmp_path, site.bootstrap, site.topics, *flags) as second:
        second.wait_ready()
        assert second.metrics().by("role", "role") == {("standby",): 1}
        assert not second.events("restored")  # its place is the end of the changelog
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
    """A new directory gets all of the changelog, and verifies; restoring again has nothing to do."""
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


_POSTING_OF_NOBODY = bytes([255, 255, 255, 255, 0, 80])  # entry 2^32 - 1, and the class of its size
_WRONGS = {
    "entry missing": lambda store: [Put(Family.ENTRIES, _first(store, Family.ENTRIES)[0], None)],
    "entry changed": lambda store: [Put(Family.ENTRIES, *_with(_first(store, Family.ENTRIES)))],
    "posting missing": lambda store: [Put(Family.LANDMARKS, _first(store, Family.LANDMARKS)[0], None)],
    "posting of nobody": lambda store: [Put(Family.LANDMARKS, _first(store, Family.LANDMARKS)[0], _POSTING_OF_NOBODY)],
    "article missing": lambda store: [Put(Family.ARTICLES, _first(store, Family.ARTICLES)[0], None)],
    "cluster changed": lambda store: [Put(Family.CLUSTERS, *_swapped(_first(store, Family.CLUSTERS)))],
    "counts missing": lambda store: [Put(Family.COUNTS, _first(store, Family.COUNTS)[0], None)],
    "offset changed": lambda store: [Put(Family.META, *_with(next(store.items(Family.META, b"offset/"))))],
}


def _with(pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return pair[0], _changed(pair[1])


def _swapped(pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return a cluster with one copy more than its sources say."""
    fields = json.loads(pair[1][1:])
    fields[2] += 1
    return pair[0], pair[1][:1] + json.dumps(fields).encode()


def _faults(site: Site, flags: tuple[str, ...], *, with_changelog: bool) -> list[str]:
    """Return what `state verify` finds, without the seconds that a process takes to start."""
    settings = load_settings(write_settings(site.directory, site.bootstrap, site.topics), {}, flags)
    return list(verify(settings, lambda *_: None, with_changelog=with_changelog))


@pytest.mark.parametrize("wrong", _WRONGS)
def test_fault_in_a_state_is_found(site: Site, snapshot: Path, tmp_path: Path, wrong: str) -> None:
    """One wrong key in any family is a fault."""
    database, flags = _copied(snapshot, tmp_path)
    with closing(RocksStore(database)) as store:
        store.write(_WRONGS[wrong](store))
    assert _faults(site, flags, with_changelog=True)


@pytest.mark.parametrize("wrong", ["entry missing", "posting of nobody", "cluster changed"])
def test_fault_between_families_is_found_without_the_changelog(
    site: Site, snapshot: Path, tmp_path: Path, wrong: str
) -> None:
    """Where two families contradict each other no broker is needed to see it."""
    database, flags = _copied(snapshot, tmp_path)
    assert not _faults(site, flags, with_changelog=False)
    with closing(RocksStore(database)) as store:
        store.write(_WRONGS[wrong](store))
    assert _faults(site, flags, with_changelog=False)


def test_fresh_restore_mends_a_fault(site: Site, snapshot: Path, tmp_path: Path) -> None:
    """Verify ends with exit code 1 and a line about it, and what it advises works."""
    database, flags = _copied(snapshot, tmp_path)
    with closing(RocksStore(database)) as store:
        store.write(_WRONGS["entry missing"](store))
    code, _, told = site.state("verify", flags=flags)
    assert (code, "fault" in told, "state restore --fresh" in told) == (1, True, True)
    assert site.state("restore", "--fresh", flags=flags)[0] == 0
    assert site.state("verify", flags=flags)[0] == 0


def test_state_that_has_judged_nothing_is_in_order(bootstrap: str, tmp_path: Path) -> None:
    """A service without input has a state, which nothing is wrong with."""
    topics = fresh_topics(bootstrap)
    with Service(tmp_path, bootstrap, topics) as service:
        service.wait_ready()
        service.stop()
    ended = run_once("state", "verify", "--config", str(tmp_path / "stream-dedup.toml"))
    assert (ended.returncode, "in order" in ended.stdout) == (0, True), ended.stderr


def test_no_state_is_said_so(site: Site, tmp_path: Path) -> None:
    """A directory without a state is none: exit code 1, and nothing is made in it."""
    empty = tmp_path / "none"
    for command in ("stats", "verify"):
        code, _, told = site.state(command, flags=(*_FLAGS, f"state.directory={empty}"))
        assert code == 1
        assert "no state" in told
    assert not empty.exists()


# ------------------------------------------------------------------------------------------------ other settings


def test_rebuilt_state_is_taken_by_the_next_start(bootstrap: str, tmp_path: Path) -> None:
    """Other settings are refused; rebuilt beside the running service, their state is taken: nothing twice, all known.

    What the old service decides after the rebuild is judged again in silence at the start.
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
        assert "the next start takes it" in printed
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


def _run(site: Site, flags: tuple[str, ...]) -> tuple[int, str, str]:
    settings = write_settings(site.directory, site.bootstrap, site.topics)
    ended = run_once("run", "--config", str(settings), *set_flags((*_FLAGS, *flags)))
    return ended.returncode, ended.stdout, ended.stderr


def _body(value: bytes | None) -> str:
    body = json.loads(value or b"{}")["body"]
    assert isinstance(body, str)
    return body
