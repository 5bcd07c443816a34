"""Particulars: places by the dictionary, unaffected by spaces, and sketches of numbers and places."""

from collections.abc import Iterator
from pathlib import Path

import jieba
import numpy as np
import pytest

from stream_dedup import Article, Deduplicator
from stream_dedup.arrays import U32
from stream_dedup.compiled.hashing import code_points, hash_words
from stream_dedup.fingerprint import places
from stream_dedup.fingerprint.particulars import particulars, small_sketches
from stream_dedup.fingerprint.places import gazetteer, place_hashes, place_names
from stream_dedup.fingerprint.sketch import PAD
from stream_dedup.text.texts import Texts


def _points(text: str) -> U32:
    return code_points(text).copy()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("没有地名", []),
        ("北京和上海", ["北京", "上海"]),
        ("黑龙江省气象台", ["黑龙江省"]),
        ("从武汉市到武汉", ["武汉市", "武汉"]),
        ("在澳大利亚", ["澳大利亚"]),
        ("京", []),
    ],
)
def test_places_are_the_longest_names_of_the_dictionary(text: str, names: list[str]) -> None:
    """At each position the longest name of two to four characters counts, and reading resumes after it."""
    known = gazetteer()
    assert (
        place_hashes(_points(text), known.names, known.begins).tolist() == (hash_words(names) >> np.uint64(32)).tolist()
    )


def test_sketch_of_a_set_keeps_the_smallest() -> None:
    """The sketch holds the k smallest distinct hashes in ascending order; lengths and sizes give their numbers."""
    made = small_sketches(np.array([7, 3, 3, 9, 1], np.uint32), np.array([5, 5]), 3)
    assert made.values.tolist() == [[1, 3, 7], [int(PAD)] * 3]
    assert made.lengths.tolist() == [3, 0]
    assert made.sizes.tolist() == [4, 0]
    part = made.part(1, 2)
    assert (part.values.tolist(), part.lengths.tolist(), part.sizes.tolist()) == ([[int(PAD)] * 3], [0], [0])


def test_blanks_part_nothing() -> None:
    """Spaces between any characters change neither numbers nor places."""
    text = "2026年11月9日，北京市气象台第3次发布，十二日到上海"
    plain, spaced = particulars(Texts.of_strings([text, " ".join(text)]), 16, 8)
    for sketches, count in ((plain, 5), (spaced, 2)):
        assert sketches.sizes.tolist() == [count, count]
        assert sketches.values[0].tolist() == sketches.values[1].tolist()


def test_particulars_end_with_their_text() -> None:
    """In a batch, neither a name nor a number goes on in the next text."""
    texts = ["在北", "京，从武汉", "市中心，第十", "二", "3", "月，5.", "2", "1/", "9", "万", "年"]
    together = particulars(Texts.of_strings(texts), 4, 4)
    for place, text in enumerate(texts):
        for sketches, alone in zip(together, particulars(Texts.of_strings([text]), 4, 4), strict=True):
            assert sketches.values[place].tolist() == alone.values[0].tolist()


def test_exceptions_are_what_the_dictionary_calls_places() -> None:
    """Each is known as a place, once, and is none of the additional names: otherwise it would do nothing, or harm."""
    folder = Path(places.__file__).parent
    exceptions, others = ((folder / name).read_text().splitlines() for name in ("no_places.txt", "place_names.txt"))
    listed = [line for line in exceptions if not line.startswith("#")]
    tagged = {word for word, flag in _tags() if flag == "ns"}
    assert listed == sorted(set(listed))
    assert tagged.issuperset(listed)
    assert not set(listed) & ({*others} | {*place_names()})


def _tags() -> Iterator[tuple[str, str]]:
    """Yield the words of jieba's dictionary and their tags, as jieba's own file has them."""
    for line in (Path(jieba.__file__).parent / "dict.txt").read_text(encoding="utf-8").splitlines():
        word, _, tag = line.split(" ")
        yield word, tag


@pytest.mark.parametrize(
    "template",
    [
        "{}市气象台发布预警，受台风外围影响今夜有大到暴雨，请渔船回港避风，在建工地停工，中小学停课一天，务必确保安全。",
        "{}市召开民生工作会议，提出加大力度改造老旧小区，让政策惠及更多家庭，并要求各街道建立台账，逐户走访，按月通报。",
        "{}警方通报：一名男子在高架桥上抛撒传单，造成交通中断，所幸无人受伤，民警立马赶到处置，该男子已被带走调查。",
        "{}一家社区食堂开业，老人凭证用餐享受补贴，每天供应新鲜蔬菜和热汤，作为老年福利的一部分，首日来了两百多人。",
    ],
)
def test_bulletins_of_two_cities_are_told_apart_whatever_words_they_share(template: str) -> None:
    """Words like 惠及 and 新鲜, which the dictionary calls places, do not make up for another city."""
    with Deduplicator() as engine:
        first, second, again = engine.add_batch(
            [Article(str(place), template.format(city)) for place, city in enumerate(("成都", "南昌", "成都"))]
        )
    assert (first.unique, second.unique) == (True, True)
    assert again.link is not None
    assert again.link.duplicate_of == "0"
