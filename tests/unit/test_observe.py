"""What the service exposes of its process, its state and its loop."""

import mmap
import os
import resource
import shutil
import socket
import threading
import time
from contextlib import ExitStack, suppress
from email import message_from_bytes
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, call
from urllib.parse import urlsplit

import psutil
import pytest
from structlog.testing import capture_logs

from stream_dedup.ask.figures import Figures, FiguresReader, ShadowFigures, figures_of
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, Puts
from stream_dedup.observe import http, watchdog
from stream_dedup.observe.health import Awaited, Health
from stream_dedup.observe.http import MonitoringServer
from stream_dedup.observe.memory import show_memory
from stream_dedup.observe.metrics import Metrics
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.observe.watchdog import Watchdog
from stream_dedup.settings import HttpSettings
from stream_dedup.stream.watching.state_meter import StateMeter
from tests.stream.waiting import wait_until

_KEYS = [number.to_bytes(4, "big") for number in range(1_000)]
_MEGABYTE = 1 << 20


def _value(metrics: Metrics, name: str, **labels: str) -> float:
    value = metrics.registry.get_sample_value(f"stream_dedup_{name}", labels)
    assert value is not None, (name, labels)
    return value


# ------------------------------------------------------------------------------------------------ state


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a state with entries in a file of their own."""
    store = RocksStore(tmp_path)
    store.write([Puts(Family.ENTRIES, _KEYS, [key * 100 for key in _KEYS])])
    store.close()
    return tmp_path


def test_state_meter_shows_what_is_on_the_disk(written: Path) -> None:
    """Live bytes are those of the files, for families that have some; free space and size are the file system's."""
    metrics, store = Metrics(), RocksStore(written)
    StateMeter(metrics, store, written).refresh()
    sizes = {family: _value(metrics, "rocksdb_live_bytes", family=family) for family in Family}
    assert sizes.pop(Family.ENTRIES) == sum(file.stat().st_size for file in written.glob("*.sst")) > 0
    assert {*sizes.values()} == {0}
    disk = os.statvfs(written)
    assert _value(metrics, "state_disk_size_bytes") == disk.f_blocks * disk.f_frsize
    assert abs(_value(metrics, "state_disk_free_bytes") - disk.f_bavail * disk.f_frsize) < 1 << 30
    store.close()


def test_state_meter_counts_what_the_cache_does(written: Path) -> None:
    """The first look-up of a block is a miss, the next a hit; a second refresh adds only what is new."""
    metrics, store = Metrics(), RocksStore(written)
    meter, counts = StateMeter(metrics, store, written), []
    for _ in range(3):
        meter.refresh()
        counts.append([_value(metrics, f"rocksdb_block_cache_{which}_total") for which in ("hits", "misses")])
        store.get_many(Family.ENTRIES, _KEYS[:1])
    meter.refresh()
    meter.refresh()
    (_, first), (_, missed), (hits, again) = counts
    assert first < missed == again
    hit = _value(metrics, "rocksdb_block_cache_hits_total")
    assert hits < hit == store.figures().cache_hits
    assert _value(metrics, "rocksdb_memory_bytes", part="block_cache") > 0
    store.close()


def test_state_meter_shows_write_buffers_and_that_nothing_waits(written: Path) -> None:
    """Written data not yet in a file counts as memory; an idle store neither flushes nor compacts nor stalls."""
    metrics, store = Metrics(), RocksStore(written)
    meter = StateMeter(metrics, store, written)
    meter.refresh()
    before = _value(metrics, "rocksdb_memory_bytes", part="memtables")
    store.write([Puts(Family.URLS, [b"key"], [bytes(_MEGABYTE)])])
    meter.refresh()
    assert _value(metrics, "rocksdb_memory_bytes", part="memtables") >= before + _MEGABYTE
    for name in ("running_compactions", "running_flushes", "pending_compaction_bytes", "write_stopped"):
        assert _value(metrics, f"rocksdb_{name}") == 0
    store.close()


def test_state_meter_bears_a_directory_that_is_gone(written: Path) -> None:
    """RocksDB's figures are still shown; the next write will report the fault."""
    metrics, store = Metrics(), RocksStore(written)
    shutil.move(written, written.with_name("elsewhere"))
    StateMeter(metrics, store, written).refresh()
    assert _value(metrics, "rocksdb_live_bytes", family=Family.ENTRIES) > 0
    shutil.move(written.with_name("elsewhere"), written)
    store.close()


# ------------------------------------------------------------------------------------------------ process


def test_memory_is_told_by_kind(tmp_path: Path) -> None:
    """Allocated memory counts as anonymous, mapped files as file; together they are the resident memory."""
    metrics = Metrics()

    def shown() -> tuple[float, float]:
        show_memory(metrics)
        return _value(metrics, "memory_bytes", kind="anonymous"), _value(metrics, "memory_bytes", kind="file")

    content = os.urandom(64 * _MEGABYTE)
    (tmp_path / "file").write_bytes(content)
    before = shown()
    assert sum(before) == pytest.approx(psutil.Process().memory_info().rss, rel=0.1)
    # A mapping of its own, because an allocation might reuse memory that the process has freed and kept.
    with mmap.mmap(-1, len(content), flags=mmap.MAP_PRIVATE) as own:
        own.write(content)
        taken = shown()
        assert taken[0] - before[0] > 48 * _MEGABYTE
    with (tmp_path / "file").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:] == content
        assert shown()[1] - taken[1] > 48 * _MEGABYTE


def test_memory_under_the_limit_is_what_the_system_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of all processes under the limit, or where nobody tells it this process's own; 0 without a limit."""
    metrics, told = Metrics(), tmp_path / "cgroup"
    told.write_text("0::/\n", encoding="utf-8")
    monkeypatch.setattr("stream_dedup.observe.memory.MEMBERSHIP", told)
    monkeypatch.setattr("stream_dedup.observe.memory.GROUPS", tmp_path)
    show_memory(metrics)
    assert _value(metrics, "memory_limited_bytes") == 0
    (tmp_path / "memory.max").write_text("3000\n", encoding="ascii")
    show_memory(metrics)
    assert _value(metrics, "memory_limited_bytes") == _value(metrics, "memory_bytes", kind="anonymous") > 0
    (tmp_path / "memory.stat").write_text("anon 2000\nfile 900\n", encoding="ascii")
    show_memory(metrics)
    assert (_value(metrics, "memory_limited_bytes"), _value(metrics, "memory_limit_bytes")) == (2000, 3000)


def test_memory_stays_as_it_was_while_no_file_can_be_opened() -> None:
    """Without a file descriptor, neither the use nor the limit is known: a limit of 0 would mean that there is none."""
    metrics = Metrics()
    show_memory(metrics)
    metrics.memory_limit_bytes.set(1)
    before = _value(metrics, "memory_bytes", kind="anonymous")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        show_memory(metrics)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (_value(metrics, "memory_bytes", kind="anonymous"), _value(metrics, "memory_limit_bytes")) == (before, 1)


def test_heartbeat_is_as_old_as_the_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its age grows with the clock until the loop's next heartbeat."""
    now = 100.0
    monkeypatch.setattr("stream_dedup.observe.health.time.monotonic", lambda: now)
    health = Health(stuck_seconds=60)
    now = 142.0
    assert health.silence() == 42.0
    health.beat()
    assert health.silence() == 0.0


@pytest.mark.parametrize(("stuck_seconds", "at_first"), [(60, 600), (900, 900)])
def test_start_may_take_longer_than_the_loop_may_be_silent(stuck_seconds: float, at_first: float) -> None:
    """Compiling and opening a large state take minutes; never less is allowed than the settings say."""
    health = Health(stuck_seconds)
    assert health.allowed_silence() == at_first
    health.start()
    assert health.allowed_silence() == stuck_seconds


def test_nothing_watches_once_the_watchdog_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer that needs no interpreter would print the stacks of whatever goes on after it."""
    timer = Mock()
    monkeypatch.setattr(watchdog, "faulthandler", timer)
    with Watchdog(Health(60)):
        wait_until(lambda: timer.dump_traceback_later.called, "the timer is set")
    assert timer.mock_calls[-1] == call.cancel_dump_traceback_later()


def test_what_is_out_of_reach_is_waited_for_whatever_the_loop_is_at() -> None:
    """Meanwhile the loop keeps running and reports that it is waiting for nothing itself."""
    health = Health(stuck_seconds=60)
    health.set_waiting_for(Awaited.PARTITIONS)
    health.set_unreachable(Awaited.REGISTRY)
    assert health.started() == health.ready() == (False, "waiting for the schema registry")
    health.start()
    health.set_waiting_for(None)
    assert health.ready() == (False, "waiting for the schema registry")
    assert health.started() == health.alive() == (True, "ok")
    health.set_unreachable(None)
    assert health.ready() == (True, "ok")


# ------------------------------------------------------------------------------------------------ the port


@pytest.fixture(autouse=True)
def _answers_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the figures of a busy machine: for users a service that does not answer within a second is not there."""
    monkeypatch.setattr("stream_dedup.ask.figures._SECONDS", 60.0)


def test_port_refreshes_before_it_shows() -> None:
    """Each scrape refreshes what is not updated as it happens; probes do not."""
    metrics, calls = Metrics(), []
    with (
        metrics.refreshed_by(lambda: calls.append(1)),
        MonitoringServer(HttpSettings(port=0), metrics, Health(60)) as monitoring,
    ):
        port = int(monitoring.url.rpartition(":")[2])
        for _ in range(2):
            assert figures_of(HttpSettings(port=port)) is not None
    assert calls == [1, 1]


def test_figures_for_the_api_are_sums_over_the_topics() -> None:
    """Decisions are summed by relation over all topics, without those that never occurred; the lag is summed too."""
    metrics = Metrics()
    metrics.show_topic("quiet")
    for topic, count in (("a", 3), ("b", 4)):
        metrics.articles.labels(topic, "unique", "none").inc(count)
        metrics.articles.labels(topic, "unique", "revision").inc(2 * count)
        metrics.articles.labels(topic, "duplicate", "near").inc(10 * count)
        metrics.consumer_lag_messages.labels(topic, "0").set(100 * count)
    with MonitoringServer(HttpSettings(port=0), metrics, Health(60)) as monitoring:
        figures = figures_of(HttpSettings(port=int(monitoring.url.rpartition(":")[2])))
    assert figures is not None
    assert (figures.decisions, figures.lag, figures.shadow) == ({"new": 7, "revision": 14, "near": 70}, 700, None)
    assert figures.duplicates == 70


def test_figures_are_asked_for_once_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """In between, the last figures are returned, even if the service has gone."""
    clock = [1_000.0]
    monkeypatch.setattr("stream_dedup.ask.figures.time", SimpleNamespace(monotonic=lambda: clock[0]))
    metrics, asked = Metrics(), []
    with (
        metrics.refreshed_by(lambda: asked.append(clock[0])),
        MonitoringServer(HttpSettings(port=0), metrics, Health(60)) as monitoring,
    ):
        reader = FiguresReader(HttpSettings(port=int(monitoring.url.rpartition(":")[2])))
        for moment in (1_000.0, 1_000.5, 1_000.99, 1_001.0, 1_001.9, 1_010.0):
            clock[0] = moment
            assert reader.read() is not None
    clock[0] = 1_010.9
    assert reader.read() is not None
    clock[0] = 1_011.0
    assert reader.read() is None
    assert asked == [1_000.0, 1_001.0, 1_010.0]


@pytest.mark.parametrize("judging", [True, False])
def test_figures_of_a_shadow_are_told_where_one_is_asked_for(judging: bool) -> None:  # noqa: FBT001  # parametrized
    """The total it judged, the differing decisions by the kinds that occurred, and whether it is still judging."""
    metrics = Metrics()
    metrics.shadow_enabled.set(1)
    metrics.shadow_running.set(judging)
    for kind, count in (("none", 90), ("duplicate", 7), ("original", 3)):
        metrics.shadow_articles.labels(kind).inc(count)
    with MonitoringServer(HttpSettings(port=0), metrics, Health(60)) as monitoring:
        figures = figures_of(HttpSettings(port=int(monitoring.url.rpartition(":")[2])))
    assert figures is not None
    assert figures.shadow == ShadowFigures(judging, 100, {"duplicate": 7, "original": 3})


def test_readiness_for_the_api_is_that_of_the_probe() -> None:
    """It says in the probe's words what the service is waiting for, and nothing once it is ready."""
    health = Health(60)
    health.set_waiting_for(Awaited.PARTITIONS)
    with MonitoringServer(HttpSettings(port=0), Metrics(), health) as monitoring:
        settings = HttpSettings(port=int(monitoring.url.rpartition(":")[2]))
        waiting = figures_of(settings)
        health.set_waiting_for(None)
        ready = figures_of(settings)
    assert waiting is not None
    assert ready is not None
    assert (waiting.ready, waiting.not_ready) == (False, "waiting for partitions")
    assert (ready.ready, ready.not_ready) == (True, "")
    assert figures_of(settings) is None


_PAGE = b"HTTP/1.1 200 OK\r\n\r\n"
_NO_PAGE = b"HTTP/1.1 404 Not Found\r\n\r\n"


@pytest.mark.parametrize(
    ("answers", "figures"),
    [
        ((_NO_PAGE, _PAGE), None),
        ((b"SSH-2.0-OpenSSH_9.2\r\n", _PAGE), None),
        ((_PAGE + b"\xff\xfe", _PAGE), None),
        ((_PAGE, _NO_PAGE), Figures(decisions={}, duplicates=0)),
    ],
    ids=["another server", "no HTTP", "no text", "no probe"],
)
def test_what_is_no_service_has_no_figures(answers: tuple[bytes, ...], figures: Figures | None) -> None:
    """Anything may listen on the port; without a probe, it is unknown whether it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for said in answers:
                client, _ = server.accept()
                with client, suppress(OSError):  # who only wakes this thread does not wait for what it says
                    client.recv(65_536)
                    client.sendall(said)

        answering = threading.Thread(target=answer)
        answering.start()
        try:
            assert figures_of(HttpSettings(port=server.getsockname()[1])) == figures
        finally:  # it may still wait for a question, and accepts as long as the port is open
            for _ in answers:
                socket.create_connection(server.getsockname()).close()
            answering.join()


def test_service_that_hangs_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process still accepts connections; nobody waits for its answer for long."""
    monkeypatch.setattr("stream_dedup.ask.figures._SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        begun = time.monotonic()
        assert figures_of(HttpSettings(port=server.getsockname()[1])) is None
        assert time.monotonic() - begun < 20


def test_port_may_be_on_an_address_of_ipv6() -> None:
    """Its URL has the address in brackets."""
    with ExitStack() as opened:
        try:
            opened.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
        except OSError as error:
            pytest.skip(f"this machine has no ::1 ({error})")
        monitoring = opened.enter_context(MonitoringServer(HttpSettings(host="::1", port=0), Metrics(), Health(60)))
        assert monitoring.url.startswith("http://[::1]:")
        assert _told(monitoring.url, "GET", "/healthz")[0] == b"HTTP/1.0 200 OK"


def _told(url: str, method: str, path: str) -> tuple[bytes, dict[str, str], bytes]:
    """Return status, headers and all bytes after them: a client would drop a body that must not be there."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=60) as connection:
        connection.sendall(f"{method} {path} HTTP/1.0\r\n\r\n".encode())
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    status, _, headers = head.partition(b"\r\n")
    return status, dict(message_from_bytes(headers).items()), body


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/nothing"])
def test_head_is_told_what_get_would_be_without_the_body(path: str) -> None:
    """HEAD has the status and headers of GET, including the length of the body."""
    health = Health(60)
    health.set_waiting_for(Awaited.PARTITIONS)
    with MonitoringServer(HttpSettings(port=0), Metrics(), health) as monitoring:
        gotten, gotten_headers, body = _told(monitoring.url, "GET", path)
        asked, asked_headers, nothing = _told(monitoring.url, "HEAD", path)
    assert (asked, nothing) == (gotten, b"")
    assert asked_headers["Content-Type"] == gotten_headers["Content-Type"]
    assert int(gotten_headers["Content-Length"]) == len(body)
    # A figure that changed in between may have one more digit.
    assert int(asked_headers["Content-Length"]) == pytest.approx(len(body), rel=0.05)


def test_other_methods_are_refused() -> None:
    """The response lists the allowed methods."""
    with MonitoringServer(HttpSettings(port=0), Metrics(), Health(60)) as monitoring:
        status, headers, _ = _told(monitoring.url, "POST", "/metrics")
    assert (status, headers["Allow"]) == (b"HTTP/1.0 405 Method Not Allowed", "GET, HEAD")


def _fail() -> None:
    raise RuntimeError("of this request")


def test_fault_in_an_answer_is_an_event_and_a_500(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library would print a traceback for each request: no event, and as many as a client likes."""
    monkeypatch.setattr(http, "_recurring_faults", RecurringFaults())
    metrics = Metrics()
    with (
        capture_logs() as told,
        metrics.refreshed_by(_fail),
        MonitoringServer(HttpSettings(port=0), metrics, Health(60)) as monitoring,
    ):
        statuses = [_told(monitoring.url, method, "/metrics")[0] for method in ("GET", "HEAD")]
    assert statuses == [b"HTTP/1.0 500 Internal Server Error"] * 2
    assert [(event["event"], event["error"]) for event in told] == [("request_not_answered", "RuntimeError")]
    assert "in _fail" in told[0]["exception"]
    assert capfd.readouterr() == ("", "")


def test_request_for_which_there_is_no_thread_is_an_event(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The client is disconnected, and the next one is answered."""
    monkeypatch.setattr(http, "_recurring_faults", RecurringFaults())
    with capture_logs() as told, MonitoringServer(HttpSettings(port=0), Metrics(), Health(60)) as monitoring:
        with monkeypatch.context() as no_threads:
            no_threads.setattr(http._Server, "process_request", lambda *_: _fail())  # noqa: SLF001
            assert _told(monitoring.url, "GET", "/healthz")[0] == b""
        assert _told(monitoring.url, "GET", "/healthz")[0] == b"HTTP/1.0 200 OK"
    assert [(event["event"], event["error"]) for event in told] == [("request_not_answered", "RuntimeError")]
    assert capfd.readouterr() == ("", "")


def _connection(monitoring: MonitoringServer) -> socket.socket:
    place = urlsplit(monitoring.url)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=60)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost:"])
def test_client_that_sends_no_whole_request_leaves_nothing_in_the_log(
    sent: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is disconnected after a while; the library's own traceback would be no event of the catalogue."""
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.05)  # so that a test need not wait as long
    with (
        MonitoringServer(HttpSettings(port=0), Metrics(), Health(60)) as monitoring,
        _connection(monitoring) as connection,
    ):
        connection.sendall(sent)
        assert connection.recv(1) == b""
    assert capfd.readouterr() == ("", "")


def test_client_that_drips_its_request_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it goes on, it has no thread and no descriptor of the service for longer."""
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.2)
    with (
        MonitoringServer(HttpSettings(port=0), Metrics(), Health(60)) as monitoring,
        _connection(monitoring) as connection,
    ):
        connection.settimeout(0.05)

        def is_over() -> bool:
            try:
                connection.sendall(b"G")
                return connection.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_until(is_over, "the end of the connection")


def test_idle_clients_do_not_use_up_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many connections the oldest end, and a probe is still answered."""
    monkeypatch.setattr(http, "_MOST_CONNECTIONS", 3)
    with MonitoringServer(HttpSettings(port=0), Metrics(), Health(60)) as monitoring, ExitStack() as opened:
        idle = [opened.enter_context(_connection(monitoring)) for _ in range(5)]
        assert _told(monitoring.url, "GET", "/healthz")[0] == b"HTTP/1.0 200 OK"
        assert [connection.recv(1) for connection in idle[:3]] == [b""] * 3
        idle[-1].settimeout(0.1)
        with pytest.raises(TimeoutError):
            idle[-1].recv(1)
