"""A service that has read a sample stream, and the commands of `stream-dedup state` on its state.

Knows directories, settings and snapshots; knows nothing of what a command should say.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.demo.samples import sample_stream
from stream_dedup.settings import Settings, load_settings
from stream_dedup.stream.state.restore import verify
from tests.stream.arguments import set_flags, write_settings
from tests.stream.messages import Incoming, produce
from tests.stream.records import collect
from tests.stream.service import Service, run_once
from tests.stream.topics import Topics, fresh_topics

SEED = 31
FLAGS = (
    "commit.articles=40",
    "idf.epoch_articles=150",
    "window.days=36500",
)  # no article is too old, whenever the tests run


@dataclass(frozen=True, slots=True)
class Site:
    """A service that has read a sample stream and is still running.

    Attributes:
        bootstrap: the broker.
        topics: of the run.
        directory: of its settings and its state.
        service: the process.
        messages: how many it has read.
    """

    bootstrap: str
    topics: Topics
    directory: Path
    service: Service
    messages: int

    def state(self, *arguments: str, flags: tuple[str, ...] = FLAGS) -> "tuple[int, str, str]":
        """Run a command of `state` with the service's settings; return its exit code and what it printed."""
        settings = write_settings(self.directory, self.bootstrap, self.topics)
        ended = run_once("state", *arguments, "--config", str(settings), *set_flags(flags))
        return ended.returncode, ended.stdout, ended.stderr

    def refusal(self, *arguments: str, flags: tuple[str, ...] = FLAGS) -> str:
        """Run a command of `state` that must fail with exit code 1; return what it says, on one line."""
        code, _, told = self.state(*arguments, flags=flags)
        assert code == 1, told
        return " ".join(told.split())

    def settings(self, flags: tuple[str, ...] = FLAGS) -> Settings:
        """Return the settings that a command of `state` would have."""
        return load_settings(write_settings(self.directory, self.bootstrap, self.topics), {}, flags)

    def faults(self, flags: tuple[str, ...], *, with_changelog: bool) -> list[str]:
        """Return what `state verify` finds, in this process, which saves the seconds of starting another."""
        return list(verify(self.settings(flags), lambda *_: None, with_changelog=with_changelog))

    def snapshot(self, directory: Path) -> Path:
        """Make a snapshot in a new directory, and return its database."""
        code, _, told = self.state("snapshot", str(directory))
        assert code == 0, told
        (database,) = [path.parent for path in directory.glob("*/CURRENT")]
        return database

    @property
    def database(self) -> Path:
        """Directory of its RocksDB."""
        (path,) = [path.parent for path in (self.directory / "state").glob("*/CURRENT")]
        return path


@contextmanager
def running_site(bootstrap: str, directory: Path) -> Iterator[Site]:
    """Run a service that has read a whole sample stream."""
    topics = fresh_topics(bootstrap)
    messages = [Incoming(sample.value, sample.key) for sample in sample_stream(SEED)]
    produce(bootstrap, topics.input, messages)
    with Service(directory, bootstrap, topics, *FLAGS) as service:
        collect(bootstrap, topics, len(messages), service)
        yield Site(bootstrap, topics, directory, service, len(messages))


def copied(snapshot: Path, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return a copy of a database, for tests to damage, and the flags to use it: a snapshot shares its files."""
    copy = tmp_path / "copy" / snapshot.name
    shutil.copytree(snapshot, copy)
    return copy, (*FLAGS, f"state.directory={copy.parent}")
