"""Settings at a start: faults, states of other settings and missing topics are refused by name; secrets stay secret.

Knows exit codes and messages; each single setting is tested in tests/unit.
"""

import json
from pathlib import Path

import pytest

from stream_dedup import Deduplicator
from tests.engine.samples import bodies
from tests.stream.arguments import set_flags, write_settings
from tests.stream.messages import article, produce
from tests.stream.records import collect
from tests.stream.service import Service, run_once
from tests.stream.topics import changelogs, create_topic, existing_topics, fresh_topics, named_topics

pytestmark = pytest.mark.usefixtures("compiled")

_SECRET = "correct-horse-battery-staple"  # noqa: S105  # invented, and looked for in logs


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    """`config --print` shows that a secret is set, but not what it is."""
    settings = write_settings(tmp_path, "127.0.0.1:9092", named_topics())
    flags = set_flags((f"kafka.sasl.password={_SECRET}", f"kafka.producer.ssl.key.password={_SECRET}"))
    shown = run_once("config", "--print", "--config", str(settings), *flags)
    assert shown.returncode == 0
    printed = json.loads(shown.stdout)["kafka"]
    assert printed["sasl.password"] == printed["producer.ssl.key.password"] == "[redacted]"
    assert _SECRET not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (
            ("commit.articles=0", "input.topcs=x", "verify.near_jaccard=2", "http.port=many"),
            ("commit.articles", "input.topics", "verify.near_jaccard", "http.port"),
        ),
        (("kafka.consumer.enable.auto.commit=true",), ("enable.auto.commit",)),
        (("kafka.no.such.property=1",), ("no.such.property",)),
        (("text.stop_words=nowhere.txt",), ("text.stop_words", "nowhere.txt")),
    ],
)
def test_settings_faults_are_named_before_anything_starts(
    tmp_path: Path, flags: tuple[str, ...], named: tuple[str, ...]
) -> None:
    """Unusable settings end the service with exit code 2; all faults are named, and nothing is touched."""
    settings = write_settings(tmp_path, "127.0.0.1:1", named_topics())
    ended = run_once("run", "--config", str(settings), *set_flags(flags))
    assert ended.returncode == 2
    for name in named:
        assert name in ended.stderr
    assert not (tmp_path / "state").exists()


def test_state_of_other_settings_is_refused_by_name(bootstrap: str, tmp_path: Path) -> None:
    """A state made with other settings ends the service with exit code 1; the setting and the way out are named.

    If only the changelog of those settings exists, as on a new machine, it is named instead. Neither is touched.
    """
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, [article("a", bodies()[0])])
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 1, service)
        service.stop()
    (changelog,) = changelogs(bootstrap, topics)
    for flags, named in (
        (("sketch.gram=6",), "sketch.gram = 5 in the state, 6 in the settings"),
        (("sketch.gram=6", "state.directory=elsewhere"), changelog),
    ):
        with Service(
            tmp_path, bootstrap, topics, *(flag.replace("elsewhere", f"{tmp_path}/e") for flag in flags)
        ) as other:
            assert other.wait_end() == 1
        assert named in other.log()
        assert "state rebuild" in other.log()
        assert "Traceback" not in other.log()
    assert changelogs(bootstrap, topics) == [changelog]
    assert [path.name for path in (tmp_path / "state").iterdir()] == [service.state.name]


def test_state_of_files_is_refused(bootstrap: str, tmp_path: Path) -> None:
    """A database directly in the directory, as a run over files keeps it, is left alone, and the way out is named."""
    Deduplicator(tmp_path / "state").close()
    before = sorted(path.name for path in (tmp_path / "state").iterdir())
    with Service(tmp_path, bootstrap, named_topics()) as service:
        assert service.wait_end() == 1
    assert "Choose a new directory (state.directory)" in service.log()
    assert "Traceback" not in service.log()
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == before


def test_missing_output_topics_are_not_created_against_the_settings(bootstrap: str, tmp_path: Path) -> None:
    """With output.create=false, a missing output topic ends the service with a message that names it."""
    topics = named_topics()
    create_topic(bootstrap, topics.duplicates)
    with Service(tmp_path, bootstrap, topics, "output.create=false") as service:
        assert service.wait_end() == 1
    own = (f"{topics.group}.changelog.{service.events('starting')[0]['state'][-8:]}", f"{topics.group}.owner")
    missing = sorted({topics.clusters, topics.dead, topics.unique, *own})
    assert f"no topic {', '.join(missing)}: create it, or set output.create" in service.log()
    assert not {*missing} & existing_topics(bootstrap)
