"""The image: small, unprivileged, only its state writable, nothing compiled at start, and a clean stop."""

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from deploy.ports import free_port
from stream_dedup import __version__
from tests.image.conftest import Built
from tests.image.containers import Container
from tests.stream.messages import article, produce
from tests.stream.records import collect
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = [pytest.mark.image, pytest.mark.timeout(1_800)]
_UID = 10001
_MOST_MEGABYTES = 420  # on top of the base
_MOST_START_SECONDS = 60.0  # compiling would take minutes; without it, alone on two cores, it is a few seconds
_STOP_SECONDS = 10.0  # the service's promise
_TOKEN = "a-token-of-some-length"  # noqa: S105  # used only in this test
_STORY = (
    "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场。镇里今年把摊位费由按月收改成按天收，"
    "雨天不来不收钱。卖藕片的郑巧云说，算下来比去年同期少交了四千多元，她用这笔钱换了一台静音排烟机。"
)
_OTHER = (
    "气象台预计，明天白天晴间多云，最高气温二十六度，夜里转阴，北风三到四级，出门请带一件外套，傍晚收好晾晒的衣物。"
)


def test_it_is_this_version(built: Built) -> None:
    """The entry point is the command line, with the package's version."""
    assert built.containers.run(built.name, "--version").out.strip() == f"stream-dedup {__version__}"


def test_settings_of_the_container(built: Built) -> None:
    """State, port and log are set for a container in its environment, so a file need not set them."""
    settings = json.loads(built.containers.run(built.name, "config", "--print").out)
    assert settings["state"]["directory"] == "/var/lib/stream-dedup"
    assert settings["http"]["host"] == "0.0.0.0"  # noqa: S104  # in a container
    assert settings["log"]["format"] == "json"


def test_extras_are_there(built: Built) -> None:
    """Formats of a schema registry and OpenTelemetry are installed by default."""
    flags = ("--set", "output.format=avro", "--set", "registry.url=http://registry:8081")
    shown = built.containers.run(built.name, "config", *flags, "--schema", "link")
    assert json.loads(shown.out)["schemaType"] == "AVRO", shown.err
    tracing = "import opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.http.trace_exporter"
    assert built.containers.run(built.name, "-c", tracing, entrypoint="python3").code == 0


def test_nobody_and_nothing_to_write(built: Built) -> None:
    """It runs under a fixed unprivileged uid, on a read-only root, and can write none of the files it runs."""
    script = "id -u; id -g; grep CapEff /proc/self/status; find /opt/stream-dedup -writable -not -type l; touch /opt/x"
    ended = built.containers.run(built.name, "-c", script, entrypoint="sh")
    assert ended.out.split() == [str(_UID), str(_UID), "CapEff:", "0000000000000000"]
    assert "Read-only file system" in ended.err


def test_without_what_is_not_run(built: Built) -> None:
    """No installer, no tests, no build sources."""
    script = (
        "cd /opt/stream-dedup && find . -name tests -o -name pip -o -name '*.whl' -o -name '*.pyi'; ls /src /wheels"
    )
    ended = built.containers.run(built.name, "-c", script, entrypoint="sh")
    assert ended.out == ""
    assert ended.err.count("No such file or directory") == 2


def test_what_it_tells_of_itself(built: Built) -> None:
    """Open Container Initiative labels, user, ports, volume, signal and health check."""
    told = built.containers.inspect(built.name)
    config = told["Config"]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}
    assert labels["version"] == __version__
    assert labels["licenses"] == "Apache-2.0"
    assert labels["base.name"] == built.base
    assert labels["revision"]
    assert config["User"] == f"{_UID}:{_UID}"
    assert set(config["ExposedPorts"]) == {"9108/tcp", "9109/tcp"}
    assert list(config["Volumes"]) == ["/var/lib/stream-dedup"]
    assert config["StopSignal"] == "SIGTERM"
    assert config["Entrypoint"] == ["python3", "-I", "/opt/stream-dedup/start.py"]
    assert told["Healthcheck"]["Test"][0] == "CMD"


def test_small(built: Built, record_property: Callable[[str, object], None]) -> None:
    """It adds only what is needed to its base."""
    size = built.containers.inspect(built.name)["Size"] / 1e6
    base = built.containers.inspect(built.base)["Size"] / 1e6
    record_property(
        "image, MB", f"{size:.0f}, {size - base:.0f} of them on top of its base; built in {built.seconds:.0f} s"
    )
    assert size - base < _MOST_MEGABYTES


def test_health_check_fails_without_a_service(built: Built) -> None:
    """If nobody answers, the health check fails with its exit code."""
    ended = built.containers.run(built.name, "-I", "/opt/stream-dedup/healthcheck.py", "/healthz", entrypoint="python3")
    assert ended.code == 1
    assert "refused" in ended.out


@dataclass(frozen=True, slots=True)
class Running:
    """The service in a container, and the ports it answers on."""

    container: Container
    port: int
    api_port: int

    def ask(self, path: str, port: int | None = None) -> tuple[int, str]:
        """Return the status and text of an answer; status 0 if there is none."""
        with closing(HTTPConnection("127.0.0.1", port or self.port, timeout=30)) as connection:
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {_TOKEN}"})
                response = connection.getresponse()
                return response.status, response.read().decode()
            except (OSError, HTTPException):
                return 0, ""

    def wait(self, path: str, port: int | None = None) -> None:
        """Wait until a path answers with 200."""

        def well() -> bool:
            assert self.container.running(), self.container.log()
            return self.ask(path, port)[0] == 200

        wait_until(well, path, _MOST_START_SECONDS)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A directory for the state, owned by the image's user."""
    directory = tmp_path / "state"
    directory.mkdir()
    shutil.chown(directory, _UID, _UID)
    return directory


def _settings(bootstrap: str, topics: Topics, http: int, api: int) -> dict[str, str]:
    return {
        "STREAM_DEDUP_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
        "STREAM_DEDUP_INPUT__TOPICS": topics.input,
        "STREAM_DEDUP_INPUT__GROUP": topics.group,
        "STREAM_DEDUP_OUTPUT__UNIQUE": topics.unique,
        "STREAM_DEDUP_OUTPUT__DUPLICATES": topics.duplicates,
        "STREAM_DEDUP_OUTPUT__DEAD": topics.dead,
        "STREAM_DEDUP_OUTPUT__CLUSTERS": topics.clusters,
        "STREAM_DEDUP_HTTP__PORT": str(http),
        "STREAM_DEDUP_API__ENABLED": "true",
        "STREAM_DEDUP_API__PORT": str(api),
        "STREAM_DEDUP_API__TOKEN": _TOKEN,
    }


@contextmanager
def _running(built: Built, settings: Mapping[str, str], volume: Path) -> Iterator[Running]:
    ports = (int(settings[f"STREAM_DEDUP_{group}__PORT"]) for group in ("HTTP", "API"))
    with built.containers.started(built.name, settings, volume) as container:
        yield Running(container, *ports)


def test_service_in_the_container(
    built: Built, bootstrap: str, volume: Path, record_property: Callable[[str, object], None]
) -> None:
    """It starts without compiling, decides, answers, stops cleanly, and resumes on the same volume."""
    topics = fresh_topics(bootstrap)
    settings = _settings(bootstrap, topics, free_port(), free_port())
    copy = _STORY.replace("静音排烟机", "二手冰柜")

    began = time.monotonic()
    with _running(built, settings, volume) as service:
        service.wait("/readyz")
        record_property("image, seconds from the engine's start to ready", f"{time.monotonic() - began:.1f}")
        produce(bootstrap, topics.input, [article("n-1", _STORY), article("n-2", _OTHER), article("n-3", copy)])
        links = collect(bootstrap, topics, 3).duplicates
        assert [link.key for link in links] == [b"n-3"]

        assert service.container.healthcheck().code == 0
        assert "stream_dedup_articles_total" in service.ask("/metrics")[1]
        service.wait("/v1/status", service.api_port)
        wait_until(lambda: service.ask("/v1/article?id=n-3", service.api_port)[0] == 200, "the follower's answer")
        assert _compiled_meanwhile(service.container) == ""

        code, seconds = service.container.stop(2 * _STOP_SECONDS)
        record_property("image, seconds to the end", f"{seconds:.1f}")
        assert (code, service.container.events()[-1]) == (0, "stopped")
        assert seconds < _STOP_SECONDS

    with _running(built, settings, volume) as service:
        service.wait("/readyz")
        produce(bootstrap, topics.input, [article("n-4", copy)])
        links = collect(bootstrap, topics, 4).duplicates
        assert [link.key for link in links] == [b"n-3", b"n-4"]


def test_end_in_its_first_moments(built: Built, volume: Path) -> None:
    """It handles a stop before anything is loaded, even as process 1."""
    with built.containers.started(built.name, {}, volume) as container:
        code, seconds = container.stop(2 * _STOP_SECONDS)
    assert code == 128 + signal.SIGTERM
    assert seconds < _STOP_SECONDS


def _compiled_meanwhile(container: Container) -> str:
    """Return compiled files that were not precompiled: these are not links to the shipped ones."""
    return container.execute("find", "/tmp", "-name", "*.nb?", "-type", "f").out  # noqa: S108  # in the container
