"""Content hashes are equal exactly if two texts say the same, character by character and number by number."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup import Article
from stream_dedup.fingerprint.content_hashes import content_hashes
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.texts import Texts

_LINE, _LINK = "责任编辑：王芳", "https://t.cn/A6xYz01"
_NORMAL = Normaliser()
_TEXTS = st.text(st.sampled_from("甲乙ab12.,:-~。 \n"), max_size=40)


def _said(text: str) -> str:
    """Return the word characters of a normalised text, and what is between two digits."""
    parts = re.findall(r"[^\W_]|(?<=\d)[\W_]+(?=\d)", text.replace(" ", ""))
    return "".join(part if part.isalnum() or part in {".", ",", ":"} else "-" for part in parts)


@given(_TEXTS.filter(_said))
def test_hash_covers_words_and_what_is_between_digits(hash_of: Callable[[str], int], text: str) -> None:
    """Punctuation counts within numbers only."""
    assert content_hashes(Texts.of_strings([text]), [text]).tolist() == [hash_of(_said(text))]


@given(_TEXTS.filter(_said), _TEXTS.filter(_said))
def test_hash_tells_texts_apart(one: str, other: str) -> None:
    """The hashes of two texts are equal exactly if both say the same, whatever texts are beside them."""
    hashes = content_hashes(Texts.of_strings([one, "甲1", other]), [one, "甲1", other])
    assert (hashes[0] == hashes[2]) == (_said(one) == _said(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.14元", "31.4元"),
        ("比分2:13", "比分21:3"),
        ("比分2-13", "比分21-3"),
        ("1,000元", "10,00元"),
        ("3.14", "3:14"),
    ],
)
def test_numbers_of_the_same_digits_differ(fingerprinter: Fingerprinter, one: str, other: str) -> None:
    """A decimal point that moves makes another text."""
    content = fingerprinter.features([Article("1", one), Article("2", other)]).sketches.content
    assert content[0] != content[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [("比分2-13", "比分2—13"), ("31.4元", "３１．４ 元。"), ("周五，5人", "周五5人"), ("3.14", "3 . 14")],
)
def test_numbers_may_be_set_in_another_way(fingerprinter: Fingerprinter, one: str, other: str) -> None:
    """The kind of dash, width, and blanks make no difference."""
    content = fingerprinter.features([Article("1", one), Article("2", other)]).sketches.content
    assert content[0] == content[1]


@pytest.mark.parametrize("end", ["", f"\n{_LINE}", f" {_LINK}", f"\n{_LINE}。{_LINK}"])
def test_hash_is_that_of_the_whole_body(
    fingerprinter: Fingerprinter, bodies: list[str], hash_of: Callable[[str], int], end: str
) -> None:
    """It covers what is not content as well, so that exact copies are recognised."""
    body = bodies[0] + end
    whole = _said(_NORMAL(body))
    assert fingerprinter.features([Article("1", body)]).sketches.content.tolist() == [hash_of(whole)]


@pytest.mark.parametrize(("body", "symbols"), [("😂 😂！", "😂😂!"), ("\u200b\u200d", "\u200b\u200d")])
def test_hash_of_symbols(fingerprinter: Fingerprinter, hash_of: Callable[[str], int], body: str, symbols: str) -> None:
    """Without word characters it is the hash of the symbols, and without these that of the raw text."""
    content = fingerprinter.features([Article("1", body)]).sketches.content
    assert content.tolist() == [hash_of(symbols)]
