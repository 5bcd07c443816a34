"""Images and containers without a daemon, in a separate store: built by buildah, run by podman.

Knows the two tools and what they need on a machine without systemd; knows nothing of what an image contains.
"""

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.programs import missing

_TOOLS = ("buildah", "podman", "runc", "mmdebstrap")
_KEYS = ("debian-archive-keyring", "gpg")  # without them mmdebstrap trusts Debian only when run on Debian
_MISSING = (
    f"the tests of the image want {', '.join(_TOOLS)} and root: `apt-get install --no-install-recommends "
    f"{' '.join((*_TOOLS, *_KEYS))}` on Debian or Ubuntu"
)
_REQUIRED = "IMAGE_REQUIRED"  # set where all tests have to run
_BASE = "IMAGE_BASE"  # names a base in a registry, if one can be reached
_SCRATCH = "/tmp:size=64m,mode=1777"  # noqa: S108  # in the container, as in compose.yaml
_BUILD_SECONDS = 900.0
_RUN_SECONDS = 120.0
# Now and then the kernel does not let buildah seal the copy of itself that it runs a step with: one more build does.
_SEALING = "sealing memfd copy: Device or resource busy"
_BUILDS = 3


def check_tools() -> None:
    """If a tool is missing, skip the tests and say how to get it; fail where it is required (CI)."""
    if os.getuid() != 0 or not all(map(shutil.which, _TOOLS)):
        missing(_MISSING, _REQUIRED)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended.

    Attributes:
        code: its exit code.
        out: what it wrote to standard output.
        err: what it wrote to standard error.
    """

    code: int
    out: str
    err: str


class Containers:
    """A store of images and containers.

    Args:
        folder: of the store; takes some gigabytes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        store = ["--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self._buildah = ["buildah", *store]
        self._podman = [
            "podman",
            *store,
            "--runtime",
            "runc",
            "--cgroup-manager",
            "cgroupfs",
            "--events-backend",
            "file",
        ]

    def base(self) -> str:
        """Return an image like python:3.13-slim-trixie: the one named by `$IMAGE_BASE`, or one made from packages."""
        if named := os.environ.get(_BASE):
            return named
        tar, name = self._folder / "base.tar", "localhost/base:trixie"
        include = "--include=python3,python3-venv,ca-certificates"
        # Leave out what the official image leaves out too.
        without = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale", "info")]
        _checked(["mmdebstrap", "--quiet", "--variant=minbase", include, *without, "trixie", str(tar)], _BUILD_SECONDS)
        _checked([*self._podman, "import", "--quiet", str(tar), name], _BUILD_SECONDS)
        tar.unlink()
        return name

    def build(self, context: Path, dockerfile: Path, name: str, arguments: Mapping[str, str]) -> str:
        """Build an image and return its name."""
        command = [*self._buildah, "bud", "--isolation", "chroot", "--format", "docker", "--file", str(dockerfile)]
        command += [part for key, value in arguments.items() for part in ("--build-arg", f"{key}={value}")]
        command += [part for path in _packages_paths() for part in ("--volume", f"{path}:{path}:ro")]
        command += ["--tag", name, str(context)]
        for _ in range(_BUILDS):
            ended = _ended(command, _BUILD_SECONDS)
            if ended.code == 0 or _SEALING not in ended.err:
                break
        _output(command, ended)
        return name

    def close(self) -> None:
        """Remove the store."""
        _ended(["umount", "--recursive", str(self._folder / "store" / "overlay")], _RUN_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def inspect(self, image: str) -> dict[str, Any]:
        """Return the image's own description."""
        found: list[dict[str, Any]] = json.loads(_checked([*self._podman, "image", "inspect", image], _RUN_SECONDS))
        return found[0]

    def run(self, image: str, *arguments: str, entrypoint: str | None = None) -> Ended:
        """Run a command to its end, in a container with the restrictions of `compose.yaml`."""
        override = [] if entrypoint is None else ["--entrypoint", entrypoint]
        return _ended([*self._podman, "run", "--rm", *_careful(), *override, image, *arguments], _RUN_SECONDS)

    @contextmanager
    def started(self, image: str, environment: Mapping[str, str], volume: Path) -> Iterator["Container"]:
        """Run a container alongside the test, and remove it at the end.

        Args:
            image: its name.
            environment: of its process.
            volume: a directory of the host for the state.
        """
        variables = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
        mount = ["--volume", f"{volume}:/var/lib/stream-dedup"]
        command = [*self._podman, "run", "--detach", *_careful(), *variables, *mount, image]
        container = Container(self._podman, _checked(command, _RUN_SECONDS).strip())
        try:
            yield container
        finally:
            _ended([*self._podman, "rm", "--force", "--time", "0", container.name], _RUN_SECONDS)


@dataclass(frozen=True, slots=True)
class Container:
    """A container that is running or has ended.

    Attributes:
        podman: the command, with the location of its store.
        name: of the container.
    """

    podman: Sequence[str]
    name: str

    def execute(self, *command: str) -> Ended:
        """Run a command in it."""
        return _ended([*self.podman, "exec", self.name, *command], _RUN_SECONDS)

    def healthcheck(self) -> Ended:
        """Run the image's own health check once."""
        return _ended([*self.podman, "healthcheck", "run", self.name], _RUN_SECONDS)

    def running(self) -> bool:
        """Return whether it is still running."""
        return bool(self._state()["Running"])

    def stop(self, patience: float) -> tuple[int, float]:
        """Send the image's stop signal; return the exit code and the seconds until it ended."""
        began = time.monotonic()
        _checked([*self.podman, "stop", "--time", f"{patience:.0f}", self.name], _RUN_SECONDS)
        return int(self._state()["ExitCode"]), time.monotonic() - began

    def log(self) -> str:
        """Return everything it wrote."""
        ended = _ended([*self.podman, "logs", self.name], _RUN_SECONDS)
        return ended.out + ended.err

    def events(self) -> list[str]:
        """Return the names of the events in its log, which has one JSON object per line."""
        return [json.loads(line)["event"] for line in self.log().splitlines() if line]

    def _state(self) -> dict[str, Any]:
        told = _checked([*self.podman, "inspect", "--format", "{{json .State}}", self.name], _RUN_SECONDS)
        state: dict[str, Any] = json.loads(told)
        return state


def _careful() -> list[str]:
    # If this machine's limits cannot be raised, the runtime's default of a million fails.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return [
        *("--read-only", "--read-only-tmpfs=false", "--tmpfs", _SCRATCH),
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--network", "host", "--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=4096:4096"),
        # Health checks are run by hand: systemd timers, which would run them, are not available everywhere.
        *("--health-interval", "disable", "--log-driver", "k8s-file"),
    ]


def _packages_paths() -> list[str]:
    """Return paths that this machine's pip uses besides the index: the build must use the same sources."""
    named = (os.environ.get(name, "") for name in ("PIP_CERT", "PIP_FIND_LINKS"))
    return [path for path in named if path.startswith("/") and Path(path).exists()]


def _ended(command: Sequence[str], seconds: float) -> Ended:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def _checked(command: Sequence[str], seconds: float) -> str:
    return _output(command, _ended(command, seconds))


def _output(command: Sequence[str], ended: Ended) -> str:
    assert ended.code == 0, f"{' '.join(command)} ended with {ended.code}:\n{ended.out[-5_000:]}\n{ended.err[-5_000:]}"
    return ended.out
