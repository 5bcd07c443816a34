"""What `deploy.broker` promises: a real Kafka that keeps its data and leaves nothing behind.

Tests only the broker and its process; nothing of the service that uses it.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.broker import (
    BrokerStartError,
    BrokerUnreachableError,
    JarError,
    KafkaBroker,
    kafka,
    kafka_for_session,
    kafka_jars,
    make_startup_cache,
)
from deploy.broker.process import GuardedProcess
from deploy.broker.startup import startup_cache
from deploy.ports import HOST
from stream_dedup.jars.fetch import _STAGING

REPOSITORY = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 20


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One broker for the tests that neither stop nor break it."""
    with KafkaBroker() as running:
        yield running


@pytest.fixture
def topic(broker: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """A new topic of one partition, named after the test."""
    name: str = request.node.name
    create_topic(broker.bootstrap, name)
    return name


def create_topic(bootstrap: str, name: str) -> None:
    """Create a topic of one partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(TIMEOUT_SECONDS)


def producer(bootstrap: str, **settings: str | int) -> Producer:
    """Make a producer; settings are spelled with underscores instead of dots."""
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer({"bootstrap.servers": bootstrap, **dotted})


def produce(bootstrap: str, topic: str, *values: bytes) -> None:
    """Write the values and wait until the broker has them."""
    writer = producer(bootstrap)
    for value in values:
        writer.produce(topic, value)
    assert writer.flush(TIMEOUT_SECONDS) == 0


def read(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    """Read the first `count` values that a read_committed consumer gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-of-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return [message.value() for message in consumer.consume(count, TIMEOUT_SECONDS)]
    finally:
        consumer.close()


def java_processes(marker: str) -> list[psutil.Process]:
    """Return the running processes whose command line mentions `marker`."""
    return [process for process in psutil.process_iter() if marker in _command_line(process)]


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def wait_until_gone(process: psutil.Process) -> bool:
    """Return whether the process ends within a minute; a zombie waiting to be reaped counts as ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not process.is_running() or _status(process) == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return str(psutil.STATUS_ZOMBIE)


def test_messages_come_back_as_they_were_produced(broker: KafkaBroker, topic: str) -> None:
    """What is produced is consumed, in order."""
    values = [b"first", b"second", "第三".encode()]
    produce(broker.bootstrap, topic, *values)
    assert read(broker.bootstrap, topic, 3) == values


def test_message_of_twelve_megabytes_fits(broker: KafkaBroker, topic: str) -> None:
    """A message of 12 MB is accepted and read back."""
    value = os.urandom(12_000_000)
    writer = producer(broker.bootstrap, message_max_bytes=16_777_216)
    writer.produce(topic, value)
    assert writer.flush(TIMEOUT_SECONDS) == 0
    assert read(broker.bootstrap, topic, 1) == [value]


def test_only_committed_transactions_are_read(broker: KafkaBroker, topic: str) -> None:
    """A read_committed reader gets the committed transaction, and nothing of the aborted one."""
    writer = producer(broker.bootstrap, transactional_id=topic)
    writer.init_transactions(TIMEOUT_SECONDS)
    writer.begin_transaction()
    writer.produce(topic, b"aborted")
    writer.flush(TIMEOUT_SECONDS)
    writer.abort_transaction(TIMEOUT_SECONDS)
    writer.begin_transaction()
    writer.produce(topic, b"committed")
    writer.commit_transaction(TIMEOUT_SECONDS)
    assert read(broker.bootstrap, topic, 1) == [b"committed"]


def test_topics_are_not_created_by_accident(broker: KafkaBroker) -> None:
    """Requesting a topic that does not exist does not create it."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.list_topics("misspelt", timeout=TIMEOUT_SECONDS)
    assert "misspelt" not in admin.list_topics(timeout=TIMEOUT_SECONDS).topics


def test_every_port_is_bound_to_loopback(broker: KafkaBroker) -> None:
    """No other machine can reach the broker."""
    listening = [c for c in psutil.Process(broker.pid).net_connections() if c.status == "LISTEN"]
    assert len(listening) == 2
    assert all(connection.laddr.ip.endswith("127.0.0.1") for connection in listening)


def test_killed_and_restarted_broker_keeps_its_address_and_data() -> None:
    """After SIGKILL and restart, the same address serves the earlier messages; stop removes the folder."""
    with KafkaBroker() as broker:
        address, folder = broker.bootstrap, broker.folder
        create_topic(address, "kept")
        produce(address, "kept", b"before")
        broker.kill()
        assert not broker.running
        broker.restart()
        assert broker.bootstrap == address
        produce(address, "kept", b"after")
        assert read(address, "kept", 2) == [b"before", b"after"]
    assert not folder.exists()


def test_given_data_folder_is_kept_and_opened_again_by_another_broker(tmp_path: Path) -> None:
    """The caller's data folder survives `stop()`, and a new broker on other ports finds its messages."""
    with KafkaBroker(data_dir=tmp_path) as first:
        create_topic(first.bootstrap, "kept")
        produce(first.bootstrap, "kept", b"before")
    with KafkaBroker(data_dir=tmp_path) as second:
        assert second.bootstrap != first.bootstrap
        assert read(second.bootstrap, "kept", 1) == [b"before"]


OWNER = """
    import threading, time
    from deploy.broker import KafkaBroker

    broker = KafkaBroker()
    starter = threading.Thread(target=broker.start)
    starter.start()
    starter.join()
    # The thread that started the broker is gone by now: the broker must not follow it.
    time.sleep(1)
    print(broker.pid, broker.folder, flush=True)
    time.sleep(600)
"""


def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    """SIGKILL of the owner ends Java and its guard within seconds; neither java nor mvn has to be on PATH."""
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
    )
    assert owner.stdout is not None
    try:
        with owner.stdout:
            pid, folder = owner.stdout.readline().split()
        java = psutil.Process(int(pid))
        guard = java.parent()
        assert java.is_running()
        assert guard is not None
    finally:
        owner.kill()
        owner.wait()
    assert wait_until_gone(java)
    assert wait_until_gone(guard)
    assert not Path(folder).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux")
def test_command_does_not_outlive_a_killed_guard(tmp_path: Path) -> None:
    """Even if the guard itself is killed, the command it guards ends."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    guarded = GuardedProcess(sleeper, tmp_path / "log", env=os.environ)
    command = psutil.Process(guarded.pid)
    guard = command.parent()
    assert guard is not None
    guard.kill()
    assert wait_until_gone(command)
    assert not guarded.running()


def test_cluster_id_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One random id in 64 begins with a dash; formatting the storage still works."""
    monkeypatch.setattr("deploy.broker.kafka._cluster_id", lambda: "-" + "A" * 21)
    with KafkaBroker(data_dir=tmp_path) as broker:
        assert AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics().cluster_id == "-" + "A" * 21


def test_port_that_is_taken_before_kafka_uses_it_is_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only at the first start: at a restart the address must stay, so that a taken port is an error."""
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        chosen = kafka._free_ports()  # noqa: SLF001  # what the broker itself chooses with
        choices = [chosen._replace(controller=other.getsockname()[1]), chosen]
        monkeypatch.setattr(kafka, "_free_ports", lambda: choices.pop(0))
        with KafkaBroker() as broker:
            assert AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics().brokers
            assert not choices
            broker.kill()
            with (
                socket.create_server((HOST, chosen.broker)),
                pytest.raises(BrokerStartError, match="another process listens"),
            ):
                broker.restart()


def test_startup_cache_is_used() -> None:
    """With AOTMode=on, Java refuses to start if it cannot use the cache."""
    make_startup_cache()
    with KafkaBroker(java_options=("-XX:AOTMode=on",)) as broker:
        assert f"-XX:AOTCache={startup_cache(kafka_jars())}" in psutil.Process(broker.pid).cmdline()


def test_failed_start_shows_the_log_and_leaves_nothing(tmp_path: Path) -> None:
    """The exception names the setting that Kafka refuses, and no process is left."""
    broker = KafkaBroker({"log.cleaner.threads": "many"}, data_dir=tmp_path)
    with pytest.raises(BrokerStartError, match=re.escape("log.cleaner.threads")):
        broker.start()
    assert not java_processes(str(tmp_path))


def test_corrupted_jar_is_refused(tmp_path: Path) -> None:
    """A jar that differs from its locked hash is named and refused."""
    jars = linked_cache(tmp_path)
    jars[0].unlink()
    jars[0].write_bytes(b"something else")
    with pytest.raises(JarError, match=f"refused(.|\n)*{re.escape(jars[0].name)}"):
        kafka_jars(tmp_path)


def test_torn_download_does_not_poison_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed download left is removed, and its jar is fetched as if for the first time."""
    torn, *_ = linked_cache(tmp_path)
    whole = torn.resolve()
    torn.unlink()
    leftover = tmp_path / f"{_STAGING}of-a-killed-process"
    leftover.mkdir()
    (leftover / torn.name).write_bytes(whole.read_bytes()[:100])
    monkeypatch.setattr("stream_dedup.jars.fetch._download", lambda _, staging: Path(shutil.copy(whole, staging)))
    assert torn in kafka_jars(tmp_path)
    assert not leftover.exists()


def linked_cache(folder: Path) -> list[Path]:
    """Fill a cache folder with links to the real jars."""
    for jar in kafka_jars():
        (folder / jar.name).symlink_to(jar)
    return kafka_jars(folder)


def test_dead_bootstrap_variable_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing answers at the address in KAFKA_BOOTSTRAP, the error names it within seconds."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "127.0.0.1:1")
    started = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=r"KAFKA_BOOTSTRAP=127\.0\.0\.1:1"), kafka_for_session():
        pass
    assert time.monotonic() - started < 30


def test_bootstrap_variable_is_used_when_it_answers(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """No second broker is started when KAFKA_BOOTSTRAP names one that answers."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP", broker.bootstrap)
    with kafka_for_session() as bootstrap:
        assert bootstrap == broker.bootstrap
