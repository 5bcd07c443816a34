"""The lock file: which jars make up a library, each with its SHA-256, written as TOML.

Knows coordinates and sums; does not know where jars are fetched from, nor where they are kept.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

_HEADER = """\
# Jars and their SHA-256 sums; a jar that differs is refused.
# To move to another version edit `roots`, then run: python -m stream_dedup.jars FILE
"""


class JarError(RuntimeError):
    """A jar could not be fetched, or is not the one that the lock file names."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked jar: its Maven coordinate `group:artifact:version` and the hex SHA-256 of its bytes."""

    coordinate: str
    sha256: str

    @property
    def filename(self) -> str:
        """The name Maven repositories give it: `artifact-version.jar`."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    def verify(self, path: Path) -> None:
        """Raise `JarError` unless the file at `path` has exactly the locked bytes."""
        found = sha256_of(path)
        if found != self.sha256:
            raise JarError(
                f"{self.coordinate} is refused: its SHA-256 is not the one in the lock file\n"
                f"  file      {path}\n"
                f"  expected  {self.sha256}\n"
                f"  found     {found}\n"
                "Delete the file to have it fetched again; if it differs again, do not trust its source."
            )


@dataclass(frozen=True, slots=True)
class JarLock:
    """The content of a lock file: the coordinates that were asked for, and every jar they need."""

    roots: tuple[str, ...]
    jars: tuple[Jar, ...]

    @property
    def version(self) -> str:
        """Version of the first root."""
        return self.roots[0].split(":")[2]

    @classmethod
    def read(cls, path: Path) -> "JarLock":
        """Read the lock file at `path`."""
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        jars = (Jar(coordinate, sha256) for coordinate, sha256 in data["sha256"].items())
        return cls(tuple(data["roots"]), tuple(jars))

    def write(self, path: Path) -> None:
        """Write the lock file to `path`, the jars sorted so that a renewal gives a readable diff."""
        roots = "".join(f'    "{root}",\n' for root in self.roots)
        jars = sorted(self.jars, key=attrgetter("coordinate"))
        sums = "".join(f'"{jar.coordinate}" = "{jar.sha256}"\n' for jar in jars)
        path.write_text(f"{_HEADER}\nroots = [\n{roots}]\n\n[sha256]\n{sums}", encoding="utf-8")


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of the file at `path`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
