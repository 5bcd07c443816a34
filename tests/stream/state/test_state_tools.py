"""The commands of `stream-dedup state` beside a running service: stats, verify, snapshot and restore.

Knows commands, exit codes and topics; damaged states are tested in test_state_damage.
"""

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import DEFAULT, Mock

import pytest
from confluent_kafka import OFFSET_END

from stream_dedup.engine.state import State
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import StoreDamagedError, StoreError, StoreFullError
from stream_dedup.settings import Settings, StateSettings
from stream_dedup.stream.state import restore
from stream_dedup.stream.state.changelog import ChangelogReader, ChangelogTruncatedError
from stream_dedup.stream.state.restore import verify
from stream_dedup.stream.state.states import other_states
from tests.engine.model import DAY, HOUR
from tests.engine.samples import bodies
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import collect
from tests.stream.service import Service, run_once
from tests.stream.state.site import FLAGS, Site, copied, running_site
from tests.stream.topics import changelogs, delete_records, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")


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


def test_state_of_another_index_is_told(site: Site) -> None:
    """With another name in the settings, stats show the state's own changelog, and verify says so before it begins."""
    other = (*FLAGS, "state.name=another")
    _, printed, _ = site.state("stats", "--json", flags=other)
    changelog = json.loads(printed)["changelog"]
    assert changelog in changelogs(site.bootstrap, site.topics)
    told = f"the state was made from the changelog {changelog}, but the settings name another.changelog."
    with pytest.raises(StoreError, match=told):
        site.faults(other, with_changelog=True)
    assert not site.faults(other, with_changelog=False)


def test_sound_state_is_verified_while_the_service_runs(site: Site) -> None:
    """Indexes, records, counts and the replayed changelog agree."""
    code, printed, told = site.state("verify")
    assert code == 0, told
    assert "agrees with its changelog" in printed


def test_file_that_is_merged_away_at_the_opening_is_no_damage(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A running service may remove a file after its name was read: the state is opened again."""
    opened = Mock(side_effect=[StoreDamagedError("a file is missing"), DEFAULT], wraps=State)
    monkeypatch.setattr(restore, "State", opened)
    assert not site.faults(FLAGS, with_changelog=False)
    assert opened.call_count == 2


def test_replay_of_verify_lies_beside_the_state(site: Site) -> None:
    """It is on the same disk, because /tmp may be small; nobody takes it for another state, and it is removed."""
    settings = site.settings()
    seen: set[Path] = set()

    def look(*_: object) -> None:
        seen.update(settings.state.directory.glob("stream-dedup-verify-*"))
        assert other_states(settings, site.database.name) == []

    assert not list(verify(settings, look, with_changelog=True))
    assert len(seen) == 1
    assert not any(path.exists() for path in seen)


def test_replay_that_might_fill_the_disk_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could stop the service on that disk: the message names the disk and the option that avoids the replay."""
    _, flags = copied(site.snapshot(tmp_path / "one"), tmp_path)
    monkeypatch.setattr(restore, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(StoreFullError, match=rf"the disk of {tmp_path / 'copy'} has 0 MB left.*--offline"):
        site.faults(flags, with_changelog=True)
    assert not site.faults(flags, with_changelog=False)


def test_replay_needs_room_for_what_the_state_has_in_its_log_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest of a state is in no other file, of a young one all of it: its replay could fill the disk too."""
    written = sum(path.stat().st_size for path in site.database.glob("*.sst"))
    monkeypatch.setattr(restore, "disk_usage", lambda _: SimpleNamespace(free=2 * written))
    with pytest.raises(StoreFullError, match="--offline"):
        site.faults(FLAGS, with_changelog=True)


def test_state_that_is_not_begun_is_told(site: Site, tmp_path: Path) -> None:
    """A start that a full disk has ended may leave an empty database: reading commands do not try to write to it."""
    RocksStore(tmp_path / "begun" / site.database.name).close()
    flags = (*FLAGS, f"state.directory={tmp_path / 'begun'}")
    for command in ("stats", "verify"):
        assert "the state is still being created" in site.refusal(command, flags=flags)


def test_state_that_was_half_copied_is_restored(site: Site, tmp_path: Path) -> None:
    """Without the file that begins it there is no state, but files that a new one would not go with."""
    copy, flags = copied(site.snapshot(tmp_path / "one"), tmp_path)
    (copy / "CURRENT").unlink()
    assert "state restore --fresh" in site.refusal("restore", flags=flags)
    code, _, told = site.state("restore", "--fresh", flags=flags)
    assert code == 0, told
    assert not site.faults(flags, with_changelog=True)


def test_changelog_that_was_trimmed_since_is_told(bootstrap: str, tmp_path: Path) -> None:
    """What a replay needs may be gone meanwhile. That is no fault of the state, and the message says what to do."""
    with running_site(bootstrap, tmp_path) as site:
        _, flags = copied(site.snapshot(tmp_path / "snapshot"), tmp_path)
        (changelog,) = changelogs(bootstrap, site.topics)
        delete_records(bootstrap, changelog, 1)
        with pytest.raises(
            ChangelogTruncatedError, match=rf"{changelog} begins at 1, .* needs it from 0 on: check again"
        ):
            site.faults(flags, with_changelog=True)
        assert not site.faults(flags, with_changelog=False)
        delete_records(bootstrap, changelog, OFFSET_END)
        assert "state restore --fresh" in site.refusal("restore", flags=flags)
        assert f"the changelog {changelog} is empty" in site.refusal("restore", "--fresh", flags=flags)
        # The state is not discarded for nothing.
        assert json.loads(site.state("stats", "--json", flags=flags)[1])["articles_judged"]


def test_state_judged_again_behind_a_changelog_that_was_emptied_needs_nothing_from_before_it(
    bootstrap: str, tmp_path: Path
) -> None:
    """The changelog then begins behind its first offset, and has the whole window all the same."""
    with running_site(bootstrap, tmp_path) as site:
        site.service.stop()
        (changelog,) = changelogs(bootstrap, site.topics)
        delete_records(bootstrap, changelog, OFFSET_END)
        new = (*FLAGS, f"state.directory={tmp_path / 'new'}")
        with Service(tmp_path, bootstrap, site.topics, *new) as service:
            wait_until(lambda: bool(service.events("active")), "the input is judged again")
            assert service.events("judged_again_in_silence")
            assert not site.faults(new, with_changelog=True)
            service.stop()
        code, _, told = site.state("restore", "--fresh", flags=new)
        assert code == 0, told
        assert not site.faults(new, with_changelog=True)


def test_changelog_that_has_lost_its_beginning_is_no_source(bootstrap: str, tmp_path: Path) -> None:
    """Neither the command nor a service takes what is left for the state, and both say how to get a whole one."""
    with running_site(bootstrap, tmp_path) as site:
        site.service.stop()
        (changelog,) = changelogs(bootstrap, site.topics)
        with closing(ChangelogReader(site.settings(), changelog)) as reader:
            delete_records(bootstrap, changelog, reader.bounds()[1] // 2)
        new = (*FLAGS, f"state.directory={tmp_path / 'new'}")
        lost = f"{changelog} begins at"
        assert lost in site.refusal("restore", flags=new)
        with Service(tmp_path, bootstrap, site.topics, *new) as service:
            assert service.wait_end() == 1
            assert lost in " ".join(service.log_tail().split())
        # What that start has left is no more than the changelog has: nobody needs it.
        assert lost in site.refusal("restore", "--fresh", flags=new)
        assert "only this state still has them" in site.refusal("restore", "--fresh")
        assert site.state("verify", "--offline")[0] == 0
        with Service(tmp_path, bootstrap, site.topics, *FLAGS) as service:
            service.wait_ready()


def test_changelog_that_has_lost_only_the_commit_with_which_its_window_begins_is_no_source(
    bootstrap: str, tmp_path: Path
) -> None:
    """What is left begins with a withdrawal, after which the state stands where it stood before."""
    topics, flags = fresh_topics(bootstrap), ("commit.articles=1", "window.days=1")
    begin_ms = int(time.time() * 1_000) - 3 * DAY
    first, second, third, fourth = (article(f"{number}", body) for number, body in enumerate(bodies()[:4]))
    sent = [(0, first), (15, second), (15, Incoming(None, b"0")), (31, third), (48, fourth)]
    produce(bootstrap, topics.input, [replace(one, timestamp_ms=begin_ms + hour * HOUR) for hour, one in sent])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        site = Site(bootstrap, topics, tmp_path, service, len(sent))
        collect(bootstrap, topics, 4, service)
        wait_until(lambda: bool(service.events("changelog_trimmed")), "the first generation has expired")
        service.stop()
    (changelog,) = changelogs(bootstrap, topics)
    with closing(ChangelogReader(site.settings(flags), changelog)) as reader:
        reader.seek(reader.bounds()[0])
        commit = next(record.offset for record in reader.read(30, 1 << 20) if record.key[:1] == b"c")
    delete_records(bootstrap, changelog, commit + 1)
    assert f"{changelog} begins at" in site.refusal("restore", flags=(*flags, f"state.directory={tmp_path / 'new'}"))


def test_snapshot_of_a_running_service_is_a_state_of_its_own(site: Site, tmp_path: Path) -> None:
    """It verifies, and a service starts on it as a standby while the first runs on; nothing comes out twice."""
    code, _, told = site.state("snapshot", str(tmp_path / "snapshot"))
    assert code == 0, told
    flags = (*FLAGS, f"state.directory={tmp_path / 'snapshot'}")
    assert site.state("verify", flags=flags)[0] == 0
    with Service(tmp_path, site.bootstrap, site.topics, *flags) as second:
        second.wait_ready()
        assert second.metrics().by("role", "role") == {("standby",): 1}
        assert not second.events("restored")  # its position is the end of the changelog
        second.stop()
    assert collect(site.bootstrap, site.topics, site.messages, site.service).total() == site.messages


def test_runs_over_files_refuse_the_state_and_its_snapshot(site: Site, tmp_path: Path) -> None:
    """Nothing is judged or created, so the state agrees with its changelog as before, and the snapshot can be used."""
    assert site.state("snapshot", str(tmp_path / "snapshot"))[0] == 0
    file = tmp_path / "one.jsonl"
    file.write_text(json.dumps({"id": "new", "body": bodies()[0]}) + "\n", encoding="utf-8")
    for directory in (site.settings().state.directory, tmp_path / "snapshot"):
        (state,) = other_states(Settings(state=StateSettings(directory=directory)), "none")
        before = sorted(directory.iterdir())
        for named in (directory, state):
            ended = run_once("dedup", str(file), "--out", str(tmp_path / "out"), "--state", str(named))
            assert (ended.returncode, f"{named} holds the state of a service" in ended.stderr) == (1, True), (
                ended.stderr
            )
        assert sorted(directory.iterdir()) == before
        assert site.state("verify", flags=(*FLAGS, f"state.directory={directory}"))[0] == 0


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
    flags = (*FLAGS, f"state.directory={tmp_path}")
    code, printed, told = site.state("restore", flags=flags)
    assert code == 0, told
    judged = json.loads(site.state("stats", "--json")[1])["articles_judged"]
    assert printed.startswith(f"{judged} articles replayed")
    assert site.state("verify", flags=flags)[0] == 0
    assert site.state("restore", flags=flags)[1].startswith("0 articles replayed")


def test_damaged_state_is_restored_afresh(site: Site, tmp_path: Path) -> None:
    """It cannot even be opened, and is not needed for that."""
    damaged, flags = copied(site.snapshot(tmp_path / "snapshot"), tmp_path)
    (damaged / "CURRENT").write_text("no manifest\n")
    assert site.state("restore", flags=flags)[0] == 1
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


def test_no_state_is_said_so(site: Site, tmp_path: Path) -> None:
    """A directory without a state is reported with exit code 1, and nothing is created in it."""
    empty = tmp_path / "none"
    for command in ("stats", "verify"):
        code, _, told = site.state(command, flags=(*FLAGS, f"state.directory={empty}"))
        assert code == 1
        assert told.startswith(f"error: {empty}")
        assert "holds no state of these settings: start the service" in told
    assert not empty.exists()
