"""What a warm-up promises: a stream that follows compiles nothing.

Knows numba's dispatchers, in a process of their own: in this one other tests have compiled before.
"""

import subprocess
import sys

_SCRIPT = """
import sys
from numba.core.dispatcher import Dispatcher
from stream_dedup import Deduplicator
from tests.engine.samples import articles, settings

def compiled():
    return {
        (name, str(signature))
        for module, loaded in list(sys.modules.items()) if module.startswith("stream_dedup")
        for name, kernel in vars(loaded).items() if isinstance(kernel, Dispatcher)
        for signature in kernel.overloads
    }

with Deduplicator(settings=settings(idf={"epoch_articles": 200}, window={"days": 30})) as engine:
    engine.warm_up()
    before = compiled()
    assert len(before) > 50, before
    engine.state.index.shelf.young_entries = 64
    stream = articles()
    for at in range(0, len(stream), 100):
        engine.process(stream[at : at + 100])
    engine.state.index.shelf.finish_merges(engine.progress)
    assert len(engine.state.index.shelf.runs) > 0
    assert engine.epoch.number > 1
    print(sorted(compiled() - before))
"""


def test_after_a_warm_up_a_stream_compiles_nothing() -> None:
    """Epochs end, lists are frozen and merged, copies are found: all loops were compiled before."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
