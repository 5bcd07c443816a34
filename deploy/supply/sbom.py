"""`python -m deploy.supply.sbom FILE`: writes the run-time packages, with licences and dependencies, as CycloneDX.

Knows how an environment of just these packages is made and read; knows nothing of the format.
"""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from deploy.supply.lock import RUN_TIME
from stream_dedup.version import __version__

_REPOSITORY = RUN_TIME.parent
_SECONDS = 600.0


def write(file: Path) -> None:
    """Write the list; it is the same for the same lock file, package and platform."""
    with tempfile.TemporaryDirectory() as scratch:
        environment, wheels = Path(scratch) / "environment", Path(scratch) / "wheels"
        _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels))
        _run(_tool("uv"), "venv", "--quiet", "--python", sys.executable, str(environment))
        install = [_tool("uv"), "pip", "install", "--quiet", "--python", str(environment)]
        _run(*install, "--require-hashes", "--requirement", str(RUN_TIME))
        _run(*install, "--no-deps", *map(str, wheels.glob("*.whl")))
        file.parent.mkdir(parents=True, exist_ok=True)
        described = ["--pyproject", str(_project(Path(scratch))), "--mc-type", "application", "--output-reproducible"]
        _run(_tool("cyclonedx-py"), "environment", *described, "--output-file", str(file), str(environment))


def _project(folder: Path) -> Path:
    """Return a copy of pyproject.toml that states the version: the list would omit a dynamic one."""
    text = (_REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    file = folder / "pyproject.toml"
    file.write_text(text.replace('dynamic = ["version"]', f'version = "{__version__}"'), encoding="utf-8")
    return file


def _tool(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, cwd=_REPOSITORY, timeout=_SECONDS)


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
