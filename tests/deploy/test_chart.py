"""The Helm chart: Kubernetes accepts it, the service accepts its settings, and its parts fit together."""

import json
import re
import tarfile
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from stream_dedup import Settings, __version__, load_settings
from stream_dedup.observe.health import Health
from stream_dedup.observe.http import MonitoringServer
from stream_dedup.observe.metrics import Metrics
from stream_dedup.settings import HttpSettings
from stream_dedup.settings.kinds import TOPIC
from tests.deploy.charts import CHART, Helm, Manifests
from tests.deploy.files import DEPLOY, closed, faults, load_yaml, schema
from tests.programs import found

_KUBERNETES = ("1.30", "1.37")
_TOKEN = {"name": "stream-dedup-api", "key": "token"}
_KEDA = {"enabled": True, "bootstrapServers": "kafka:9092", "topics": ["articles.in", "weibo.posts"]}
_ALL: dict[str, Any] = {
    "replicas": 3,
    "image": {"repository": "registry.example/news/stream-dedup", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "env": {"STREAM_DEDUP_WINDOW__DAYS": "7"},
    "envSecrets": ["kafka-user"],
    "fileSecrets": ["kafka-tls"],
    "api": {"enabled": True, "tokenSecret": _TOKEN},
    "persistence": {"storageClassName": "fast", "annotations": {"team": "news"}},
    "serviceAccount": {"annotations": {"team": "news"}},
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "apiFrom": [{"podSelector": {"matchLabels": {"app": "desk"}}}],
        "egressTo": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "runbookBase": "https://git.example/stream_dedup/blob/main/"},
    "dashboards": {"enabled": True, "annotations": {"grafana_folder": "News"}},
    "podAnnotations": {"team": "news"},
    "podLabels": {"team": "news"},
    "nodeSelector": {"disk": "local"},
    "tolerations": [{"key": "news", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
    "priorityClassName": "high",
}
_CASES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "all": _ALL,
    "idle": {"keda": {**_KEDA, "authenticationRef": "kafka", "metadata": {"sasl": "scram_sha512"}}},
    "no volume": {"persistence": {"enabled": False}, "serviceAccount": {"create": False}, "replicas": 1},
    "no budget": {"podDisruptionBudget": {"enabled": False}, "fullnameOverride": "stream-dedup-x"},
}
_OURS = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}  # not built into Kubernetes


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm."""
    return Helm(found("helm", how="`go install helm.sh/helm/v3/cmd/helm@latest`"), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module", params=_CASES)
def rendered(request: pytest.FixtureRequest, helm: Helm) -> Manifests:
    """The chart with the values of each case."""
    return helm.manifests(_CASES[request.param])


@pytest.fixture(scope="module")
def full(helm: Helm) -> Manifests:
    """The chart with everything except KEDA."""
    return helm.manifests(_ALL)


@pytest.mark.parametrize("case", _CASES)
def test_lint(helm: Helm, case: str) -> None:
    """Helm's linter has no complaints."""
    done = helm.lint(_CASES[case])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", _KUBERNETES)
def test_kubernetes_accepts_it(rendered: Manifests, version: str) -> None:
    """Each manifest satisfies Kubernetes' own schemas, without fields they do not name."""
    for manifest in rendered.all:
        if manifest["kind"] not in _OURS:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_names_that_look_like_numbers_stay_names(helm: Helm) -> None:
    """In YAML, 2026 is a number and true a truth value; Kubernetes takes neither for a name or a label."""
    values = {
        "fullnameOverride": "stream-dedup",
        "nameOverride": "7",
        "env": {"NO": "1"},
        "envSecrets": ["1"],
        "fileSecrets": ["2"],
        "api": {"enabled": True, "tokenSecret": {"name": "3", "key": "4"}},
        "persistence": {"storageClassName": "5"},
        "serviceAccount": {"name": "6"},
        "priorityClassName": "true",
        "keda": {**_KEDA, "authenticationRef": "8"},
    }
    for manifest in helm.manifests(values, release="2026").all:
        if manifest["kind"] in _OURS:
            assert faults(manifest, closed(schema(manifest["kind"]))) == []
        else:
            kubernetes_validate.validate(manifest, _KUBERNETES[-1], strict=True)


def test_oldest_kubernetes_is_checked() -> None:
    """The oldest version the chart supports is one that it is checked against."""
    assert load_yaml(CHART / "Chart.yaml")["kubeVersion"] == f">={_KUBERNETES[0]}.0-0"


def test_operators_accept_it(rendered: Manifests) -> None:
    """Resources of the Prometheus Operator and KEDA satisfy their definitions, without fields those do not name."""
    for manifest in rendered.all:
        if manifest["kind"] in _OURS:
            assert faults(manifest, closed(schema(manifest["kind"]))) == [], manifest["kind"]


def test_a_mistake_is_found(full: Manifests) -> None:
    """The schemas do catch mistakes: a misspelt field is a fault."""
    budget = full.one("PodDisruptionBudget")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(
            {**budget, "spec": {**budget["spec"], "maxUnavailble": 1}}, _KUBERNETES[0], strict=True
        )
    monitor = full.one("ServiceMonitor")
    misspelt = {**monitor, "spec": {**monitor["spec"], "endpoint": []}}
    assert faults(misspelt, closed(schema("ServiceMonitor"))) != []


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 2}, "replica"),
        ({"replicas": -1}, "replicas"),
        ({"http": {"port": 70_000}}, "port"),
        ({"image": {"digest": "sha256:1"}}, "digest"),
        ({"env": {"STREAM_DEDUP_WINDOW__DAYS": 7}}, "DAYS"),
        ({"env": {"STREAM_DEDUP_HTTP__PORT": "9999"}}, "STREAM_DEDUP_HTTP__PORT"),
        ({"persistence": {"accessModes": ["ReadWriteMany"]}}, "accessModes"),
        ({"terminationGracePeriodSeconds": 5}, "terminationGracePeriodSeconds"),
        ({"fileSecrets": ["stream-dedup.toml"]}, "fileSecrets"),  # would be mounted over the settings
        ({"api": {"enabled": True}}, "api.tokenSecret.name"),
        ({"api": {"enabled": True, "port": 9108, "tokenSecret": {"name": "token"}}}, "http.port"),
        ({"keda": {"enabled": True, "bootstrapServers": "kafka:9092"}}, "keda.topics"),
        ({"keda": {"enabled": True, "topics": ["articles.in"]}}, "keda.bootstrapServers"),
        ({"keda": _KEDA, "replicas": 0}, "replicas"),
        ({"networkPolicy": {"enabled": True, "egressPorts": None}}, "networkPolicy.egressPorts"),  # would be all ports
        ({"nameOverride": "stream-dedup.eu"}, "nameOverride"),
        ({"fullnameOverride": "stream-dedup.eu"}, "fullnameOverride"),
        ({"nameOverride": "repeats"}, '"news-repeats"'),
        ({"fullnameOverride": "repeats"}, '"repeats"'),
        ({"fullnameOverride": f"{'x' * 40}-stream-dedup"}, '-stream"'),
    ],
)
def test_wrong_values_are_refused(helm: Helm, values: dict[str, Any], named: str) -> None:
    """An impossible value is named, and nothing is rendered."""
    done = helm.template(values)
    assert done.returncode != 0
    assert named in done.stderr


@pytest.mark.parametrize("release", ["news-of-" + "all-" * 8 + "x", "news.eu", "1news"])
def test_wrong_releases_are_refused(helm: Helm, release: str) -> None:
    """A release whose name yields one that alerts or Kubernetes would not accept has to set another."""
    done = helm.template({}, release)
    assert done.returncode != 0
    assert "fullnameOverride" in done.stderr
    assert helm.template({"fullnameOverride": "news-stream-dedup"}, release).returncode == 0


def test_topics_are_named_as_in_the_settings() -> None:
    """For KEDA, the chart refuses the same topic names as the service."""
    values = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert values["properties"]["keda"]["properties"]["topics"]["items"]["pattern"] == TOPIC


def test_alerts_know_the_job(rendered: Manifests) -> None:
    """The Service's name, which becomes the job, matches every alert that selects by job."""
    alerts = (DEPLOY / "prometheus" / "rules" / "alerts.yaml").read_text(encoding="utf-8")
    wanted = set(re.findall(r'job=~"([^"]+)"', alerts))
    assert wanted
    job = rendered.one("StatefulSet")["spec"]["serviceName"]
    assert all(re.fullmatch(pattern, job) for pattern in wanted)


def _settings(manifests: Manifests, folder: Path) -> Settings:
    """Return the settings of a pod, with made-up contents for its Secrets."""
    file = folder / "stream-dedup.toml"
    settings = next(one for one in manifests.of("ConfigMap") if file.name in one["data"])
    file.write_text(settings["data"][file.name], encoding="utf-8")
    secret = {
        variable["name"]: "a-token-of-some-length"
        for variable in manifests.container()["env"]
        if "value" not in variable
    }
    return load_settings(file, {**dict(manifests.environment()), **secret})


def test_service_accepts_its_settings(rendered: Manifests, tmp_path: Path) -> None:
    """A pod's file and environment are settings that the service accepts, and they match its ports and mounts."""
    settings = _settings(rendered, tmp_path)
    container = rendered.container()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert settings.http.port == ports["http"]
    assert (settings.http.host, settings.log.format) == ("0.0.0.0", "json")  # noqa: S104  # in a pod
    assert settings.api.enabled == ("api" in ports)
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert mounts[str(settings.state.directory)]["name"] == "state"
    assert container["args"] == ["run", "--config", "/etc/stream-dedup/stream-dedup.toml"]
    assert mounts[container["args"][2]]["readOnly"]


def test_the_api_is_up_to_the_chart(helm: Helm, tmp_path: Path) -> None:
    """A file that enables it does not make it run where the chart gives it neither a port nor a token."""
    rendered = helm.manifests({"config": "[api]\nenabled = true\n"})
    assert not _settings(rendered, tmp_path).api.enabled


def test_variables_of_ones_own(full: Manifests, tmp_path: Path) -> None:
    """Settings are passed in `env`, secrets as names of Secrets."""
    assert _settings(full, tmp_path).window.days == 7
    assert full.container()["envFrom"] == [{"secretRef": {"name": "kafka-user"}}]


def test_pods_may_do_little(rendered: Manifests) -> None:
    """No root, no capabilities, nothing writable but state and scratch, no token for the cluster."""
    pod, container = rendered.pod()["spec"], rendered.container()
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    writable = {mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"state", "scratch"}


def test_user_is_that_of_the_image(rendered: Manifests) -> None:
    """The volume belongs to the user that the image runs as."""
    context = rendered.pod()["spec"]["securityContext"]
    user = f"USER {context['runAsUser']}:{context['runAsGroup']}"
    assert user in (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert context["fsGroup"] == context["runAsGroup"]


def test_volumes_are_there(rendered: Manifests) -> None:
    """Everything mounted is a volume of the pod or a claim."""
    claims = rendered.one("StatefulSet")["spec"].get("volumeClaimTemplates", [])
    volumes = {volume["name"] for volume in rendered.pod()["spec"]["volumes"]}
    names = volumes | {claim["metadata"]["name"] for claim in claims}
    assert {mount["name"] for mount in rendered.container()["volumeMounts"]} == names


def test_volumes_have_names_that_kubernetes_accepts(helm: Helm) -> None:
    """The name of a Secret may have dots and 253 characters, that of a volume neither dots nor more than 63."""
    secrets = ["kafka.client.tls", f"{'x' * 200}-tls"]
    rendered = helm.manifests({"fileSecrets": secrets})
    volumes = {volume["name"]: volume for volume in rendered.pod()["spec"]["volumes"]}
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in volumes)
    mounted = {mount["mountPath"]: volumes.get(mount["name"], {}) for mount in rendered.container()["volumeMounts"]}
    for secret in secrets:
        assert mounted[f"/etc/stream-dedup/{secret}"]["secret"]["secretName"] == secret


def test_time_to_end_and_to_start(rendered: Manifests) -> None:
    """It is not killed within the 10 s it may take to stop, nor while it restores a state for an hour."""
    assert rendered.pod()["spec"]["terminationGracePeriodSeconds"] > 10
    startup = rendered.container()["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 3_600


def test_probes_are_answered(full: Manifests) -> None:
    """The service answers every path that Kubernetes probes: none is missing."""
    paths = [full.container()[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")]
    paths.append(full.one("ServiceMonitor")["spec"]["endpoints"][0]["path"])
    with MonitoringServer(HttpSettings(port=0), Metrics(), Health(60)) as monitoring:
        assert [_status(f"{monitoring.url}{path}") for path in paths] == [503, 200, 503, 200]


def _status(url: str) -> int:
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.netloc, timeout=60)) as connection:
        connection.request("GET", parts.path)
        return connection.getresponse().status


def test_probes_are_those_of_the_guide(helm: Helm) -> None:
    """The guide shows the same probes to people who write their own manifests."""
    container, port = helm.manifests({}).container(), HttpSettings().port
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        (line,) = re.findall(f"^{probe}: .*$", text, re.MULTILINE)
        wanted = {**container[probe], "httpGet": {**container[probe]["httpGet"], "port": port}}
        assert yaml.safe_load(line) == {probe: wanted}


def test_selectors_find_the_pods(rendered: Manifests) -> None:
    """Services, budget and network policy select the pods, and name ports that the pods have."""
    labels = rendered.pod()["metadata"]["labels"].items()
    ports = {port["name"] for port in rendered.container()["ports"]}
    numbers = {port["containerPort"] for port in rendered.container()["ports"]}
    for service in rendered.of("Service"):
        assert service["spec"]["selector"].items() <= labels
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for budget in rendered.of("PodDisruptionBudget"):
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels
    for policy in rendered.of("NetworkPolicy"):
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels
        assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} == numbers
    stateful = rendered.one("StatefulSet")
    assert stateful["spec"]["selector"]["matchLabels"].items() <= labels
    assert stateful["spec"]["serviceName"] in {service["metadata"]["name"] for service in rendered.of("Service")}


def test_each_process_is_scraped_once(full: Manifests) -> None:
    """The monitor selects only the Service of the processes, by a port that it has."""
    monitor = full.one("ServiceMonitor")["spec"]
    wanted = monitor["selector"]["matchLabels"].items()
    (service,) = [one for one in full.of("Service") if wanted <= one["metadata"]["labels"].items()]
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    # A standby, or a process that is restoring, must be visible too.
    assert service["spec"]["publishNotReadyAddresses"] is True


def test_rules_are_those_of_prometheus(full: Manifests) -> None:
    """The rules are the files of deploy/prometheus, except for the runbook's address."""
    files = {path.stem: load_yaml(path)["groups"] for path in (DEPLOY / "prometheus" / "rules").glob("*.yaml")}
    shipped = {rule["metadata"]["name"].rsplit("-", 1)[1]: rule["spec"]["groups"] for rule in full.of("PrometheusRule")}
    base = _ALL["prometheusRule"]["runbookBase"]
    assert yaml.safe_load(yaml.safe_dump(shipped).replace(f"{base}deploy/", "deploy/")) == files
    books = [rule["annotations"]["runbook_url"] for group in shipped["alerts"] for rule in group["rules"]]
    assert books
    assert all(book.startswith(f"{base}deploy/") for book in books)


def test_dashboards_are_those_of_grafana(full: Manifests) -> None:
    """Each file of deploy/grafana/dashboards is in a ConfigMap that Grafana's sidecar selects."""
    files = {
        path.name: path.read_text(encoding="utf-8").strip() for path in (DEPLOY / "grafana/dashboards").glob("*.json")
    }
    maps = [one for one in full.of("ConfigMap") if one["metadata"]["labels"].get("grafana_dashboard") == "1"]
    assert files
    assert {name: text for one in maps for name, text in one["data"].items()} == files


def test_idle_means_nobody_and_busy_all(helm: Helm) -> None:
    """With KEDA all processes run or none: lag never adds more, because only one decides."""
    rendered = helm.manifests({"replicas": 3, "keda": _KEDA})
    assert "replicas" not in rendered.one("StatefulSet")["spec"]
    scaled = rendered.one("ScaledObject")["spec"]
    assert scaled["scaleTargetRef"]["name"] == rendered.one("StatefulSet")["metadata"]["name"]
    assert [scaled[f"{name}ReplicaCount"] for name in ("idle", "min", "max")] == [0, 3, 3]
    assert [trigger["metadata"]["topic"] for trigger in scaled["triggers"]] == _KEDA["topics"]


def test_image(helm: Helm, full: Manifests) -> None:
    """It has the chart's version, which is the service's, unless a digest is given."""
    chart = load_yaml(CHART / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert helm.manifests({}).container()["image"] == f"stream-dedup:{__version__}"
    assert full.container()["image"] == f"registry.example/news/stream-dedup@sha256:{'0' * 64}"


def test_archive_is_whole(helm: Helm) -> None:
    """The published archive contains the rules and dashboards themselves, not dangling links."""
    with tarfile.open(helm.package()) as archive:
        members = {member.name: member for member in archive.getmembers()}
    for folder, source in (("rules", "prometheus/rules"), ("dashboards", "grafana/dashboards")):
        for file in (DEPLOY / source).iterdir():
            assert members[f"stream-dedup/files/{folder}/{file.name}"].size == file.stat().st_size
