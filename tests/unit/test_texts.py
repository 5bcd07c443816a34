"""Texts in one shared array are the same as each by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import Bool
from stream_dedup.compiled.hashing import code_points
from stream_dedup.text.texts import Texts

_TEXTS = st.lists(st.text(st.sampled_from("甲乙ab👍 "), max_size=6), max_size=8)


def _strings(texts: Texts) -> list[str]:
    return [texts.text(place) for place in range(len(texts))]


def _marked(characters: str) -> Bool:
    marked = np.zeros(0x110000, np.bool_)
    marked[code_points(characters)] = True
    return marked


@given(_TEXTS)
def test_texts_are_the_strings_that_they_were_made_of(strings: list[str]) -> None:
    """Strings are returned unchanged, one by one and all together."""
    texts = Texts.of_strings(strings)
    assert _strings(texts) == list(texts.strings()) == strings
    assert texts.lengths().tolist() == [len(string) for string in strings]


def test_lone_surrogates_pass() -> None:
    """A lone surrogate is a code point like any other, and its neighbours do not change."""
    assert Texts.of_strings(["\ud83d", "\ude00好"]).points.tolist() == [0xD83D, 0xDE00, ord("好")]


@given(_TEXTS, st.data())
def test_part_is_that_of_the_list(strings: list[str], data: st.DataObject) -> None:
    """A range of texts equals the slice of a list."""
    start = data.draw(st.integers(0, len(strings)))
    stop = data.draw(st.integers(start, len(strings)))
    assert _strings(Texts.of_strings(strings).part(start, stop)) == strings[start:stop]


@given(_TEXTS, st.data())
def test_what_is_not_wanted_is_empty(strings: list[str], data: st.DataObject) -> None:
    """Unwanted texts become empty but keep their places."""
    wanted = data.draw(st.lists(st.booleans(), min_size=len(strings), max_size=len(strings)))
    left = [string if want else "" for string, want in zip(strings, wanted, strict=True)]
    assert _strings(Texts.of_strings(strings).only(np.array(wanted, np.bool_))) == left


@given(_TEXTS, st.data())
def test_others_come_in_the_places_of_those_that_go(strings: list[str], data: st.DataObject) -> None:
    """The selected texts are replaced in order, and the others stay."""
    which = data.draw(st.lists(st.booleans(), min_size=len(strings), max_size=len(strings)))
    others = [f"换{place}" for place in range(sum(which))]
    expected = iter(others)
    replaced = [next(expected) if goes else string for string, goes in zip(strings, which, strict=True)]
    texts = Texts.of_strings(strings).replaced(np.array(which, np.bool_), Texts.of_strings(others))
    assert _strings(texts) == replaced


@given(_TEXTS, st.text(st.sampled_from("甲b👍"), max_size=3))
def test_marked_characters_are_kept_and_found(strings: list[str], characters: str) -> None:
    """The marked characters of each text are kept in order; a text has any if some are kept."""
    texts, marked = Texts.of_strings(strings), _marked(characters)
    kept = ["".join(character for character in string if character in characters) for string in strings]
    assert _strings(texts.kept(marked)) == kept
    assert texts.with_any(marked).tolist() == [bool(string) for string in kept]
