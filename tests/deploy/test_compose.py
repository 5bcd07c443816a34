"""compose.yaml: a valid file whose parts fit together, with restricted containers."""

import re
from typing import Any

import pytest
import yaml

from stream_dedup.settings import load_settings
from tests.deploy.files import DEPLOY, REPOSITORY, faults, load_yaml, schema

_FILE = DEPLOY / "compose.yaml"
_DEFAULT = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}")
_ONE_SHOT = "topics"
_OURS = ("stream-dedup", "standby")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file with no variables set."""
    text = _DEFAULT.sub(r"\1", _FILE.read_text(encoding="utf-8"))
    assert "$" not in text, "each variable has a default"
    found: dict[str, Any] = yaml.safe_load(text)
    return found


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    """Its services."""
    found: dict[str, Any] = compose["services"]
    return found


def _mounts(service: dict[str, Any]) -> list[tuple[str, str]]:
    """Return source and target of each mount."""
    return [(str(mount).split(":")[0], str(mount).split(":")[1]) for mount in service.get("volumes", [])]


def test_file_is_valid(compose: dict[str, Any]) -> None:
    """It satisfies the Compose Specification."""
    assert faults(compose, schema("compose-spec")) == []


def test_a_mistake_is_found(compose: dict[str, Any]) -> None:
    """The schema does catch mistakes: a misspelt field is a fault."""
    assert faults({**compose, "service": {}}, schema("compose-spec")) != []


def test_what_is_mounted_is_there(compose: dict[str, Any], services: dict[str, Any]) -> None:
    """A missing path would be created as an empty directory; a volume must be declared."""
    for name, service in services.items():
        for source, _ in _mounts(service):
            if source.startswith("."):
                assert (DEPLOY / source).exists(), f"{name}: {source}"
            else:
                assert source in compose["volumes"], f"{name}: {source}"


def test_states_are_not_shared(services: dict[str, Any]) -> None:
    """No two services share a volume."""
    volumes = [source for service in services.values() for source, _ in _mounts(service) if not source.startswith(".")]
    assert len(volumes) == len(set(volumes))


@pytest.mark.parametrize("name", _OURS)
def test_settings_are_accepted(services: dict[str, Any], name: str) -> None:
    """File and environment are valid settings, with the stack's broker, a topic it creates and ports it publishes."""
    service = services[name]
    mounted = {target: source for source, target in _mounts(service)}
    file = DEPLOY / mounted[service["command"][service["command"].index("--config") + 1]]
    settings = load_settings(file, {**_image_environment(), **service["environment"]})
    listeners = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"INSIDE://{settings.kafka['bootstrap.servers']}," in listeners
    made = services[_ONE_SHOT]["command"]
    assert settings.input.topics == [made[made.index("--topic") + 1]]
    assert str(settings.state.directory) in mounted
    ports = [port.split(":")[-1] for port in services["stream-dedup"]["ports"]]
    assert ports == [str(settings.http.port), str(settings.api.port)]


def test_variables_of_the_file_are_no_settings() -> None:
    """Commands of the service that are run in the same shell would refuse them as unknown."""
    variables = re.findall(r"\$\{([A-Z_]+):-", _FILE.read_text(encoding="utf-8"))
    assert variables
    load_settings(environment=dict.fromkeys(variables, "0.1.0"))


def test_containers_may_do_little(services: dict[str, Any]) -> None:
    """No capabilities, no new privileges, limits, ports on loopback only; our own containers have a read-only root."""
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        if name != _ONE_SHOT:
            assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
            assert service["healthcheck"]["test"], name
    assert all(services[name]["read_only"] for name in _OURS)


def test_images_have_versions(services: dict[str, Any]) -> None:
    """Each has a fixed version, which a variable can replace."""
    for line in re.findall(r"^ *image: (.*)$", _FILE.read_text(encoding="utf-8"), re.MULTILINE):
        assert re.fullmatch(r"[\w/-]+:\$\{[A-Z_]+_TAG:-[\w.]+\}", line), line
    assert not any(service["image"].endswith(":latest") for service in services.values())


def test_build_is_that_of_the_image(services: dict[str, Any]) -> None:
    """Context and Dockerfile exist, relative to the file."""
    build = services["stream-dedup"]["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert context == REPOSITORY
    assert (context / build["dockerfile"]).is_file()


def test_there_is_time_to_end(services: dict[str, Any]) -> None:
    """The service promises to stop within 10 s; it is not killed before that."""
    assert all(int(services[name]["stop_grace_period"].removesuffix("s")) > 10 for name in _OURS)


def test_prometheus_scrapes_the_service(services: dict[str, Any]) -> None:
    """Its configuration names the service and its port, and the rules at their mount point."""
    mounted = {target: source for source, target in _mounts(services["prometheus"])}
    config = load_yaml(DEPLOY / mounted["/etc/prometheus/prometheus.yaml"])
    (job,) = config["scrape_configs"]
    targets = {target for group in job["static_configs"] for target in group["targets"]}
    looked_up = {f"{name}:{group['port']}" for group in job["dns_sd_configs"] for name in group["names"]}
    assert targets | looked_up == {f"{name}:9108" for name in _OURS}
    assert config["rule_files"] == ["rules/*.yaml"]
    assert "/etc/prometheus/rules" in mounted


@pytest.mark.parametrize("page", ["Makefile", "README.md", "deploy/README.md"])
def test_the_token_of_the_page_is_told(services: dict[str, Any], page: str) -> None:
    """Whoever opens the page is asked for a token: where its address is, there is the default."""
    token = services["stream-dedup"]["environment"]["STREAM_DEDUP_API__TOKEN"]
    assert token in (REPOSITORY / page).read_text(encoding="utf-8")


def test_grafana_finds_dashboards_and_data(services: dict[str, Any]) -> None:
    """Provisioned files are where they are mounted, and refer to this stack's Prometheus."""
    mounted = {target: source for source, target in _mounts(services["grafana"])}
    provisioning = DEPLOY / mounted["/etc/grafana/provisioning"]
    providers = [one for file in (provisioning / "dashboards").glob("*.yaml") for one in load_yaml(file)["providers"]]
    folders = [provider["options"]["path"] for provider in providers]
    assert folders
    assert all(list((DEPLOY / mounted[folder]).glob("*.json")) for folder in folders)
    sources = [one for file in (provisioning / "datasources").glob("*.yaml") for one in load_yaml(file)["datasources"]]
    assert [source["url"] for source in sources] == ["http://prometheus:9090"]


def _image_environment() -> dict[str, str]:
    """Return the service's settings that the Dockerfile sets."""
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    return dict(re.findall(r"(STREAM_DEDUP_\w+)=(\S+)", text))
