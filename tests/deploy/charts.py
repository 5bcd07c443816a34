"""The chart as Helm renders it.

Knows how Helm is run; knows nothing of what the manifests should say.
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
        folder: for files of values.
    """

    path: str
    folder: Path

    def lint(self, values: Mapping[str, Any]) -> "subprocess.CompletedProcess[str]":
        """Look for faults in the chart, with some values; warnings are faults too."""
        return self._run("lint", str(CHART), "--strict", "--kube-version", _LATEST, *self._values(values))

    def template(self, values: Mapping[str, Any], release: str = RELEASE) -> "subprocess.CompletedProcess[str]":
        """Render the chart with some values, as a release of some name."""
        return self._run("template", release, str(CHART), "--kube-version", _LATEST, *self._values(values))

    def manifests(self, values: Mapping[str, Any]) -> "Manifests":
        """Return what the chart becomes with some values."""
        done = self.template(values)
        assert done.returncode == 0, done.stderr
        return Manifests([document for document in yaml.safe_load_all(done.stdout) if document])

    def package(self) -> Path:
        """Return the chart as the archive that is published."""
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
    """What a chart has become.

    Attributes:
        all: the manifests.
    """

    all: list[Manifest]

    def of(self, kind: str) -> list[Manifest]:
        """Return those of a kind."""
        return [manifest for manifest in self.all if manifest["kind"] == kind]

    def one(self, kind: str) -> Manifest:
        """Return the only one of a kind."""
        found = self.of(kind)
        assert len(found) == 1, f"{len(found)} of {kind}"
        return found[0]

    def pod(self) -> Manifest:
        """Return the template of the pods."""
        found: Manifest = self.one("StatefulSet")["spec"]["template"]
        return found

    def container(self) -> Manifest:
        """Return the only container of a pod."""
        (found,) = self.pod()["spec"]["containers"]
        container: Manifest = found
        return container

    def environment(self) -> Iterator[tuple[str, str]]:
        """Yield the variables whose values stand in the manifests."""
        for variable in self.container()["env"]:
            if "value" in variable:
                yield variable["name"], variable["value"]
