"""After a warm-up, a stream compiles nothing more.

Knows numba's dispatchers, in a separate process: in this one, other tests have already compiled.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from stream_dedup import Deduplicator
from stream_dedup.engine import dedup
from tests.engine.samples import settings

_COMPILED = """
import sys
from numba.core.dispatcher import Dispatcher

def compiled():
    return {
        (name, str(signature))
        for module, loaded in list(sys.modules.items()) if module.startswith("stream_dedup")
        for name, kernel in vars(loaded).items() if isinstance(kernel, Dispatcher)
        for signature in kernel.overloads
    }
"""
_STREAM = """
from stream_dedup import Deduplicator
from tests.engine.durable import Log, restored, written
from tests.engine.samples import articles, settings

chosen, log = settings(idf={"epoch_articles": 200}, window={"days": 30}), Log()
with Deduplicator(settings=chosen) as engine:
    engine.warm_up()
    before = compiled()
    assert len(before) > 50, before
    engine.state.index.shelf.young_entries = 64
    stream = articles()
    written(engine, log, [stream[at : at + 100] for at in range(0, len(stream), 100)])
    with restored(log, chosen) as copy:
        assert copy.progress == engine.progress
    engine.state.index.shelf.finish(engine.progress)
    assert len(engine.state.index.shelf.runs) > 0
    assert engine.epoch.number > 1
    print("compiled", sorted(compiled() - before))
"""


# The state is filled by another process, and is empty when the query service warms up.
_FILL = """
import sys
from stream_dedup import Deduplicator
from tests.engine.samples import articles, settings

with Deduplicator(sys.argv[1], settings(idf={"epoch_articles": 200})) as engine:
    engine.state.index.shelf.young_entries = 64
    stream = articles()
    for at in range(0, len(stream), 100):
        engine.process(stream[at : at + 100])
    engine.state.index.shelf.finish(engine.progress)
"""
_DESK = """
import subprocess
from dataclasses import replace
from stream_dedup.ask.query_service import QueryService
from stream_dedup.settings import Settings
from tests.engine.samples import articles

settings = Settings.model_validate({"state": {"directory": sys.argv[1]}, "idf": {"epoch_articles": 200}})
with QueryService(settings) as queries:
    queries.warm_up()
    before = compiled()
    assert len(before) > 50, before
    subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]], check=True)
    queries.refresh()
    queries.catch_up()
    assert queries.status().idf_epoch > 1
    relations = set()
    for article in articles()[:1_000:7]:
        found = queries.similar(replace(article, id=f"again-{article.id}"))
        relations |= {like.relation for like in found.articles}
    assert len(relations) > 3, relations
    print("compiled", sorted(compiled() - before))
"""


def test_after_a_warm_up_a_stream_compiles_nothing() -> None:
    """Epochs end, lists are frozen and merged, copies are found: all loops were compiled before."""
    assert _told(_COMPILED + _STREAM) == "compiled []"


def test_after_a_warm_up_a_desk_compiles_nothing(tmp_path: Path) -> None:
    """Whatever the state comes to hold later, no query waits for a loop to compile."""
    Deduplicator(tmp_path / "state", settings(idf={"epoch_articles": 200})).close()
    assert _told(_COMPILED + _DESK, str(tmp_path / "state"), _FILL) == "compiled []"


def _told(script: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # The query service also reports that it finds no broker here.
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("compiled")]
    return line


def test_warm_up_is_made_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other settings can lead through other loops, and need one of their own."""
    warmed: list[float] = []
    monkeypatch.setattr(dedup, "run_warm_up", lambda _process, days: warmed.append(days))
    for days in (17, 17, 18):  # which no other test has
        with Deduplicator(settings=settings(window={"days": days})) as engine:
            engine.warm_up()
    assert warmed == [17, 18]
