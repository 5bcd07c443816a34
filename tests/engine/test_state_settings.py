"""A state meets settings: those that make other fingerprints are refused by name, the others may change.

Knows directories and settings; what each setting does is tested elsewhere.
"""

from pathlib import Path
from typing import Any

import pytest

from stream_dedup import Article, Deduplicator, Relation
from stream_dedup.index.stores.store import StoreError, StoreLockedError
from stream_dedup.text.lexicon import shipped_list
from tests.engine.samples import bodies, settings


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("sketch", "gram", 6),
        ("sketch", "size", 64),
        ("sketch", "numbers", 8),
        ("simhash", "tables", 8),
        ("simhash", "prefix_bits", 20),
        ("simhash", "enabled", False),
        ("landmarks", "keys", 4),
        ("landmarks", "enabled", False),
        ("weights", "profile", "paper2020"),
        ("weights", "noun", 0.25),
        ("text", "hmm", False),
        ("text", "simplify", False),
        ("idf", "epoch_articles", 77),
    ],
)
def test_state_made_with_other_settings_is_refused(small_state: Path, group: str, name: str, value: object) -> None:
    """A state whose fingerprints are not comparable is refused; the message names the setting and both values."""
    with pytest.raises(StoreError, match=rf"{group}\.{name} = .+ in the state, {value!r} in the settings") as caught:
        Deduplicator(small_state, settings(**{group: {name: value}}))
    assert "state.directory" in str(caught.value)
    with Deduplicator(small_state) as engine:
        assert engine.progress.judged == 1


@pytest.fixture(scope="module")
def small_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with one article, made with the default settings."""
    directory = tmp_path_factory.mktemp("state")
    with Deduplicator(directory) as engine:
        engine.add(Article("first", bodies()[0]))
    return directory


def test_state_made_with_another_word_list_is_refused(small_state: Path, tmp_path: Path) -> None:
    """Word lists are compared by content: other stop words are refused, the same ones elsewhere are not."""
    copy, shorter = tmp_path / "same.txt", tmp_path / "shorter.txt"
    copy.write_bytes(shipped_list("stop_words.txt").read_bytes())
    shorter.write_text("的\n了\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"text\.stop_words"):
        Deduplicator(small_state, settings(text={"stop_words": shorter}))
    with Deduplicator(small_state, settings(text={"stop_words": copy})) as engine:
        assert engine.add(Article("second", bodies()[0])).link


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ("verify", {"near_jaccard": 0.7, "duplicates": ["exact"]}),
        ("simhash", {"probes": 64, "max_distance": 8, "bucket_cap": 16}),
        ("landmarks", {"cap": 8}),
        ("idf", {"max_words": 5000}),
    ],
)
def test_settings_that_leave_fingerprints_alone_may_change(
    small_state: Path, group: str, values: dict[str, Any]
) -> None:
    """Thresholds, probes and caps may change between runs on the same state."""
    with Deduplicator(small_state, settings(**{group: values})) as engine:
        decision = engine.decide([Article("copy", bodies()[0])]).decisions[0]
    assert decision.link is not None
    assert decision.link.relation is Relation.EXACT


def test_state_in_use_is_refused(small_state: Path) -> None:
    """A directory that is open cannot be opened again until it is closed."""
    with Deduplicator(small_state), pytest.raises(StoreLockedError, match="is in use by another process"):
        Deduplicator(small_state)
    Deduplicator(small_state).close()


def test_refused_state_is_released(small_state: Path) -> None:
    """An engine that refuses a state does not keep it locked."""
    with pytest.raises(StoreError):
        Deduplicator(small_state, settings(sketch={"gram": 7}))
    Deduplicator(small_state).close()
