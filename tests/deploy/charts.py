"""The chart as rendered by Helm.

Knows how to run Helm; knows nothing of what the manifests should say.
"""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.files import DEPLOY

CHART = DEPLOY / "helm" / "stream-dedup"
RELEASE = "news"
_SECONDS = 60.0
_LATEST = "1.37.0"

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm on this chart.

    Attributes:
        path: of the program.
        folder: for values files.
    """

    path: str
    folder: Path

    def lint(self, values: Mapping[str, Any]) -> "subprocess.CompletedProcess[str]":
        """Lint the chart with the given values; warnings are faults too."""
        return self._run("lint", str(CHART), "--strict", "--kube-version", _LATEST, *self._values(values))

    def template(self, values: Mapping[str, Any], release: str = RELEASE) -> "subprocess.CompletedProcess[str]":
        """Render the chart with the given values, as a release of this name."""
        return self._run("template", release, str(CHART), "--kube-version", _LATEST, *self._values(values))

    def manifests(self, values: Mapping[str, Any], release: str = RELEASE) -> "Manifests":
        """Return the manifests that the chart renders with the given values, as a release of this name."""
        done = self.template(values, release)
        assert done.returncode == 0, done.stderr
        return Manifests([document for document in yaml.safe_load_all(done.stdout) if document])

    def package(self) -> Path:
        """Return the chart as the archive to publish."""
        done = self._run("package", str(CHART), "--destination", str(self.folder))
        assert done.returncode == 0, done.stderr
        return next(self.folder.glob("*.tgz"))

    def _values(self, values: Mapping[str, Any]) -> list[str]:
        file = self.folder / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values)), encoding="utf-8")
        return ["--values", str(file)]

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.path, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=self.folder
        )


@dataclass(frozen=True, slots=True)
class Manifests:
    """The rendered chart.

    Attributes:
        all: the manifests.
    """

    all: list[Manifest]

    def of(self, kind: str) -> list[Manifest]:
        """Return the manifests of a kind."""
        return [manifest for manifest in self.all if manifest["kind"] == kind]

    def one(self, kind: str) -> Manifest:
        """Return the only manifest of a kind."""
        found = self.of(kind)
        assert len(found) == 1, f"{len(found)} of {kind}"
        return found[0]

    def pod(self) -> Manifest:
        """Return the pod template."""
        found: Manifest = self.one("StatefulSet")["spec"]["template"]
        return found

    def container(self) -> Manifest:
        """Return the pod's only container."""
        (found,) = self.pod()["spec"]["containers"]
        container: Manifest = found
        return container

    def environment(self) -> Iterator[tuple[str, str]]:
        """Yield the environment variables with literal values."""
        for variable in self.container()["env"]:
            if "value" in variable:
                yield variable["name"], variable["value"]
