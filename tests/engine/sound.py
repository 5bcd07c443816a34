"""What contradicts itself in the state of an engine, as `state verify` tells it.

Knows how an open state is checked; knows nothing of what a test expects.
"""

from stream_dedup import Deduplicator, EngineSettings
from stream_dedup.engine.integrity import Integrity
from stream_dedup.text.learnt import learn_rule_of


def faults(engine: Deduplicator, settings: EngineSettings) -> list[str]:
    """Return a line for each fault in the state of an engine with these settings."""
    state = engine.state
    checked = Integrity(state.store, state.index, state.progress, lambda _what, _count: None)
    return list(checked.faults(settings.idf.max_words, learn_rule_of(settings.text)))
