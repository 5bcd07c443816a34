"""Each edit operator changes what it claims to, as much as its strength says, and nothing else."""

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.evaluate.operators import OPERATORS, STRENGTHLESS, Operator, Text
from stream_dedup.evaluate.operators.frame import lead
from stream_dedup.evaluate.operators.phrases import phrases
from stream_dedup.evaluate.operators.text import HAN, is_chinese, sentences
from stream_dedup.text.normal import Normaliser

Texts = dict[str, Text]
KINDS = ("news", "english", "post", "sentence", "mixed", "long")
ALL = [
    pytest.param(operator, level, id=f"{operator.name}-{level:g}")
    for operator in OPERATORS.values()
    for level in operator.levels or (STRENGTHLESS,)
]
_GRAPHIC = re.compile(r"\s+")


def edit(name: str, text: Text, donor: Text, strength: float = STRENGTHLESS, seed: int = 1) -> Text:
    """Make a copy; fail if the edit is impossible."""
    copy = OPERATORS[name].edit(text, Random(seed), donor, strength)
    assert copy is not None
    return copy


def words_of(text: str) -> str:
    """Return the word characters of a text's normal form, which are what the engine compares."""
    return "".join(character for character in Normaliser()(text) if character.isalnum())


@pytest.mark.parametrize(("operator", "strength"), ALL)
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_another_text_by_the_seed_alone(
    operator: Operator, strength: float, kind: str, sample_texts: Texts, donor: Text, english_donor: Text
) -> None:
    """The same seed gives the same copy; copies are not blank and, except for `verbatim`, differ from the text."""
    text = sample_texts[kind]
    other = donor if is_chinese(text) else english_donor
    copies = [operator.edit(text, Random(7), other, strength) for _ in range(2)]
    assert copies[0] == copies[1]
    if copies[0] is not None:
        assert copies[0].body.strip()
        assert (copies[0] != text) is (operator.name != "verbatim")


@pytest.mark.parametrize(("operator", "strength"), ALL)
def test_every_edit_can_be_made_of_a_common_article(
    operator: Operator, strength: float, sample_texts: Texts, donor: Text
) -> None:
    """Every edit can be made at every default strength of an article of 20,000 characters."""
    assert operator.edit(sample_texts["long"], Random(3), donor, strength) is not None


@pytest.mark.parametrize(
    ("name", "kind", "strength"),
    [
        ("drop", "sentence", 0.3),
        ("shuffle", "sentence", STRENGTHLESS),
        ("blocks", "post", 3),
        ("insert", "sentence", 0.3),
        ("misprint", "sentence", 0.02),
        ("traditional", "english", STRENGTHLESS),
        ("pinyin", "english", 0.1),
        ("places", "sentence", 1),
        ("numerals", "sentence", STRENGTHLESS),
        ("original-title", "post", STRENGTHLESS),
        ("excerpt", "sentence", 0.5),
        ("emoji", "sentence", 0.3),
    ],
)
def test_what_cannot_be_had_is_refused(name: str, kind: str, strength: float, sample_texts: Texts, donor: Text) -> None:
    """Impossible edits, such as a tenth of one sentence or traditional English, are refused, and nothing is made up."""
    assert OPERATORS[name].edit(sample_texts[kind], Random(1), donor, strength) is None


@pytest.mark.parametrize(
    ("name", "body", "share"),
    [
        ("drop", "第一句。第二句。\n", 0.1),
        ("excerpt", "第一句。第二句。\n", 1.0),
        ("truncate", "第一句。第二句。", 1.0),
        ("truncate", "\n\n\n第一句。第二句。", 0.2),
    ],
)
def test_cut_that_leaves_all_or_nothing_is_refused(name: str, body: str, share: float, donor: Text) -> None:
    """A copy that lacks no sentence, or has none, would be counted among those of its strength."""
    assert OPERATORS[name].edit(Text("", body), Random(1), donor, share) is None


@pytest.mark.parametrize(
    ("name", "donor", "share"),
    [
        ("insert", "只有一句。", 1.0),
        ("merge", "短句一。短句二。", 1.0),
        ("merge", "这一句话比能加的还长。再来一句，长度就够了。", 0.5),
    ],
    ids=["too few sentences", "too short", "first sentence too long"],
)
def test_nothing_is_borrowed_where_there_is_too_little(name: str, donor: str, share: float) -> None:
    """A copy with less from the other article would be counted among those of its strength."""
    text = Text("", "第一句在这里。第二句在这里。")
    assert OPERATORS[name].edit(text, Random(1), Text("", donor), share) is None


def test_sentence_that_just_fits_is_borrowed() -> None:
    """Half of eight characters are a sentence of four; the next one does not fit."""
    merged = edit("merge", Text("", "第一句。第二句。"), Text("", "甲乙丙。丁戊己。"), 0.5).body
    assert "甲乙丙。" in merged
    assert "丁" not in merged


@given(st.text(alphabet="天地玄黄ab1。！？.!?…”\"' \n", max_size=60))
def test_sentences_joined_are_the_text(body: str) -> None:
    """Splitting loses nothing and yields no empty sentence."""
    pieces = sentences(body)
    assert "".join(pieces) == body
    assert all(pieces)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("他说：“好！”她走了。完", ["他说：“好！”", "她走了。", "完"]),
        ("Mr. Reed paid $4.50. He left.", ["Mr. Reed paid $4.50. ", "He left."]),
        ('He said "no." Then he left the U.S. Navy.', ['He said "no." ', "Then he left the U.S. Navy."]),
        ("标题没有句号\n正文。", ["标题没有句号\n", "正文。"]),
        ("一句话", ["一句话"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(body: str, expected: list[str]) -> None:
    """Closing quotes belong to the sentence; a newline ends it, but not an abbreviation or a decimal point."""
    assert sentences(body) == expected


@pytest.mark.parametrize("kind", ["news", "english", "long"])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_drop_keeps_the_order_and_drops_that_share(kind: str, share: float, sample_texts: Texts, donor: Text) -> None:
    """The remaining sentences are a subsequence, and the share that is dropped is exact to half a sentence."""
    text = sample_texts[kind]
    own, kept = sentences(text.body), sentences(edit("drop", text, donor, share).body)
    assert abs((len(own) - len(kept)) - share * len(own)) <= 0.5
    rest = iter(sentence.strip() for sentence in own)
    assert all(sentence.strip() in rest for sentence in kept)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_cut_copies_are_parts_of_the_text(share: float, sample_texts: Texts, donor: Text) -> None:
    """A truncated text is a prefix of the right length, a teaser that plus a mark, an excerpt a run from the middle."""
    text = sample_texts["long"]
    beginning = edit("truncate", text, donor, share).body
    assert text.body.startswith(beginning)
    assert abs(len(beginning) - share * len(text.body)) <= 0.5
    assert edit("teaser", text, donor, share).body.removeprefix(beginning) in phrases().chinese.teasers
    assert edit("excerpt", text, donor, share).body in text.body


@pytest.mark.parametrize(("name", "strength"), [("shuffle", STRENGTHLESS), ("blocks", 3), ("blocks", 6)])
@pytest.mark.parametrize("kind", ["news", "english"])
def test_another_order_is_a_permutation(
    name: str, strength: float, kind: str, sample_texts: Texts, donor: Text
) -> None:
    """The same sentences occur equally often, in another order."""
    text = sample_texts[kind]
    before = [sentence.strip() for sentence in sentences(text.body)]
    after = [sentence.strip() for sentence in sentences(edit(name, text, donor, strength).body)]
    assert Counter(after) == Counter(before)
    assert after != before


def test_blocks_stay_whole(sample_texts: Texts, donor: Text) -> None:
    """Reordering three blocks separates at most two pairs of adjacent sentences."""
    before = [sentence.strip() for sentence in sentences(sample_texts["news"].body)]
    after = [sentence.strip() for sentence in sentences(edit("blocks", sample_texts["news"], donor, 3).body)]
    neighbours = set(pairwise(before))
    assert sum(pair not in neighbours for pair in pairwise(after)) <= 2


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_insertion_adds_that_share_of_foreign_sentences(share: float, sample_texts: Texts, donor: Text) -> None:
    """The text's own sentences stay in order, and the strength determines the number of foreign ones."""
    text = sample_texts["news"]
    own, foreign = (Counter(sentence.strip() for sentence in sentences(each.body)) for each in (text, donor))
    after = [sentence.strip() for sentence in sentences(edit("insert", text, donor, share).body)]
    assert [sentence for sentence in after if sentence in own] == [each.strip() for each in sentences(text.body)]
    added = sum(sentence in foreign for sentence in after)
    assert added == len(after) - own.total()
    assert abs(added - share * own.total()) <= 0.5


@pytest.mark.parametrize("name", ["insert", "merge"])
def test_nothing_is_borrowed_in_another_language(
    name: str, sample_texts: Texts, donor: Text, english_donor: Text
) -> None:
    """No site puts English sentences into a Chinese article, or the reverse."""
    for kind, other in (("news", english_donor), ("english", donor)):
        assert OPERATORS[name].edit(sample_texts[kind], Random(1), other, 0.3) is None


def test_excerpts_are_from_anywhere_in_the_body(donor: Text) -> None:
    """Of three sentences, the first two or the last two."""
    text = Text("", "第一句在这里。第二句在这里。第三句在这里。")
    found = {edit("excerpt", text, donor, 0.7, seed).body for seed in range(20)}
    assert found == {"第一句在这里。第二句在这里。", "第二句在这里。第三句在这里。"}


@pytest.mark.parametrize("seed", range(4))
def test_a_merged_article_holds_both(seed: int, sample_texts: Texts, donor: Text) -> None:
    """The whole text is in the copy, with as many whole sentences from the start of the other article as fit."""
    text = sample_texts["news"]
    merged = edit("merge", text, donor, 0.6, seed).body
    assert text.body in merged
    taken = SequenceMatcher(None, donor.body, merged, autojunk=False).find_longest_match()
    assert taken.a == 0
    assert 0.6 * len(text.body) - len(sentences(donor.body)[0]) - 1 <= taken.size <= 0.6 * len(text.body) + 1


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 1.0])
@pytest.mark.parametrize("kind", ["news", "english", "long"])
def test_misprints_change_that_share_of_the_characters(
    share: float, kind: str, sample_texts: Texts, donor: Text
) -> None:
    """Length and punctuation are kept; the strength sets the number of letters and Han characters that differ."""
    text = sample_texts[kind]
    copy = edit("misprint", text, donor, share)
    assert len(copy.body) == len(text.body)
    changed = [old for old, new in zip(text.body, copy.body, strict=True) if old != new]
    assert all(HAN.match(old) or (old.isascii() and old.isalpha()) for old in changed)
    letters = sum(bool(HAN.match(old)) or (old.isascii() and old.isalpha()) for old in text.body)
    assert abs(len(changed) - share * letters) <= 1


@pytest.mark.parametrize(
    ("body", "share", "expected"),
    [("中国人民", 1.0, "zhongguorenmin"), ("图书馆，开放", 1.0, "tushuguan，kaifang")],
)
def test_pinyin_is_that_of_a_dictionary(body: str, share: float, expected: str, donor: Text) -> None:
    """Han characters become their toneless syllables; punctuation is kept."""
    assert edit("pinyin", Text("", body), donor, share).body == expected


def test_pinyin_changes_that_share(sample_texts: Texts, donor: Text) -> None:
    """A tenth of the Han characters is replaced, to one."""
    text = sample_texts["long"]
    before, after = (len(HAN.findall(body)) for body in (text.body, edit("pinyin", text, donor, 0.1).body))
    assert abs((before - after) - 0.1 * before) <= 1


def test_numerals_are_read_digit_by_digit(donor: Text) -> None:
    """ASCII and full-width digits become 〇 to 九."""
    assert edit("numerals", Text("", "2026年，１２人，第05号"), donor).body == "二〇二六年，一二人，第〇五号"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_other_places_stand_where_places_stood(count: int, sample_texts: Texts, donor: Text) -> None:
    """The right number of place names is replaced by as many new ones, and the rest of the text is unchanged."""
    text = sample_texts["news"]
    copy = edit("places", text, donor, count)
    names = phrases().chinese.places
    before, after = ({name for name in names if name in body} for body in (text.body, copy.body))
    assert len(before - after) == len(after - before) == count
    pattern = re.compile("|".join(sorted(names, key=len, reverse=True)))
    assert pattern.sub("X", copy.body) == pattern.sub("X", text.body)


def test_places_are_refused_where_too_few_others_are_left(donor: Text) -> None:
    """A text that names all places but one can have one of them changed, but not two."""
    *named, other = phrases().english.places
    text = Text("", f"The ferry calls at {', '.join(named)}.")
    assert other in edit("places", text, donor, 1).body
    assert OPERATORS["places"].edit(text, Random(1), donor, 2) is None


@pytest.mark.parametrize("name", ["width", "punct", "zero-width", "spaces", "wrap", "markup", "references"])
@pytest.mark.parametrize("kind", ["news", "english", "mixed", "long"])
def test_other_ways_to_write_leave_the_words(name: str, kind: str, sample_texts: Texts, donor: Text) -> None:
    """The normal form has the same word characters as the original's, so for the engine these edits change nothing."""
    operator, text = OPERATORS[name], sample_texts[kind]
    for strength in operator.levels or (STRENGTHLESS,):
        copy = operator.edit(text, Random(2), donor, strength)
        if copy is not None:
            assert words_of(copy.body) == words_of(text.body)
            assert copy.body != text.body


def test_traditional_characters_come_back(sample_texts: Texts, donor: Text) -> None:
    """The normal form is the original's but for one character in a thousand: OpenCC converts phrases (瞭解, 了解)."""
    for kind in ("news", "post", "mixed", "long"):
        before = words_of(sample_texts[kind].body)
        after = words_of(edit("traditional", sample_texts[kind], donor).body)
        assert len(after) == len(before)
        assert sum(old != new for old, new in zip(before, after, strict=True)) <= len(before) / 1000
        assert edit("traditional", sample_texts[kind], donor).body != sample_texts[kind].body


@pytest.mark.parametrize(("name", "kept"), [("emoji", "words"), ("zero-width", "characters"), ("spaces", "characters")])
def test_what_is_scattered_is_all_that_is_added(name: str, kept: str, sample_texts: Texts, donor: Text) -> None:
    """Removing the inserted characters restores the text, and their share is exact."""
    text = sample_texts["news"]
    copy = edit(name, text, donor, 1.0)
    if kept == "words":
        assert words_of(copy.body) == words_of(text.body)
        return
    assert len(copy.body) == 2 * len(text.body)
    assert copy.body[::2] == text.body


def test_taiwan_has_words_of_its_own(donor: Text) -> None:
    """A word is replaced by the one used in Taiwan, not just written in traditional characters."""
    assert edit("taiwan", Text("", "这个软件用鼠标"), donor).body == "這個軟體用滑鼠"


@pytest.mark.parametrize("name", ["boiler", "editor", "dateline", "original-title", "hashtags", "chain"])
@pytest.mark.parametrize("kind", ["news", "english"])
def test_a_frame_leaves_the_text_whole(name: str, kind: str, sample_texts: Texts, donor: Text) -> None:
    """What a site or a user puts around a text leaves the text itself whole and unchanged."""
    operator, text = OPERATORS[name], sample_texts[kind]
    strength = operator.levels[-1] if operator.levels else STRENGTHLESS
    copy = edit(name, text, donor, strength)
    assert text.body in copy.body
    assert copy.body != text.body


@pytest.mark.parametrize("lines", [2, 4, 8])
def test_boilerplate_has_so_many_lines(lines: int, sample_texts: Texts, donor: Text) -> None:
    """The strength is the number of lines around the body."""
    text = sample_texts["news"]
    copy = edit("boiler", text, donor, lines).body
    assert copy.count("\n") - text.body.count("\n") == lines
    assert copy.partition(text.body)[0].count("\n") == lines // 3  # a third before it, rounded down


def test_another_headline_leaves_the_body(sample_texts: Texts, donor: Text) -> None:
    """Only the headline changes; the 原标题 line quotes the old one in the body."""
    text = sample_texts["news"]
    copy = edit("retitle", text, donor)
    assert copy.body == text.body
    assert copy.title != text.title
    assert text.title in edit("original-title", text, donor).body


def test_headline_is_never_replaced_by_itself(donor: Text) -> None:
    """Some headlines are made of the beginning of the body alone: an article that has such a one has no copy then."""
    text = Text("图书馆今天开放", "图书馆今天开放。首日接待读者一万人次。")
    copies = [OPERATORS["retitle"].edit(text, Random(seed), donor, STRENGTHLESS) for seed in range(40)]
    assert None in copies
    assert text.title not in {copy.title for copy in copies if copy}


def test_line_with_the_old_headline_is_on_either_side_of_the_body(sample_texts: Texts, donor: Text) -> None:
    """The copy has another headline, and the line comes first or last."""
    text = sample_texts["news"]
    copies = [edit("original-title", text, donor, seed=seed) for seed in range(20)]
    assert all(copy.title != text.title for copy in copies)
    assert {copy.body.startswith(text.body) for copy in copies} == {True, False}


def test_a_chain_is_written_as_weibo_writes_it(sample_texts: Texts, donor: Text) -> None:
    """Three reposts give three comments, each before the `//@user:` it replies to, with the post at the end."""
    post = sample_texts["post"]
    links = re.findall(r"([^/@]*)//@([^:]+):", edit("chain", post, donor, 3).body.removesuffix(post.body))
    assert len(links) == 3
    assert all(comment in phrases().chinese.comments and user in phrases().chinese.users for comment, user in links)


@pytest.mark.parametrize(("name", "pattern"), [("mentions", r"@[^\s@]+ ?"), ("hashtags", r"\s?#[^#\s]+#\s?")])
def test_names_and_tags_are_as_many_as_asked(name: str, pattern: str, sample_texts: Texts, donor: Text) -> None:
    """Three are found, and removing them restores the post."""
    post = sample_texts["post"]
    copy = edit(name, post, donor, 3)
    assert len(re.findall(pattern, copy.body)) == 3
    assert _GRAPHIC.sub("", re.sub(pattern, "", copy.body)) == _GRAPHIC.sub("", post.body)


def test_a_headline_is_made_of_whole_clauses() -> None:
    """A long first sentence is cut at a clause; a short one is used without its full stop."""
    assert lead("图书馆今天开放。明天闭馆。") == "图书馆今天开放"
    assert lead("图" * 30 + "，" + "书" * 30 + "。") == "图" * 30
    assert lead("图" * 60 + "。") == "图" * 40
    assert lead("图" * 20 + "，" + "书" * 19) == "图" * 20 + "，" + "书" * 19
    assert lead("：" + "图" * 60) == "图" * 39


def test_the_pools_are_wide_enough() -> None:
    """Each purpose has at least ten phrases per language: the engine would learn a pool of three as site frames."""
    for pool in (*dict(phrases().chinese).values(), *dict(phrases().english).values(), phrases().emoji):
        assert len(set(pool)) == len(pool) >= 10


def test_strengths_out_of_bounds_are_refused() -> None:
    """The message says what is allowed, even for an operator without a strength."""
    with pytest.raises(
        ValueError, match=r"drop cannot have the strength 1.5: share of the sentences dropped, above 0, up to 0.9"
    ):
        OPERATORS["drop"].check(1.5)
    with pytest.raises(ValueError, match="verbatim cannot have the strength 1: it takes none"):
        OPERATORS["verbatim"].check(1)
    with pytest.raises(ValueError, match="drop needs a strength"):
        OPERATORS["drop"].check(None)


@pytest.mark.parametrize(
    ("name", "between"),
    [
        ("boiler", 2.5),
        ("blocks", 2.5),
        ("places", 0.5),
        ("wrap", 30.5),
        ("mentions", 0.4),
        ("chain", 0.4),
        ("hashtags", 0.4),
        ("mixture", 0.4),
    ],
)
def test_strengths_that_count_things_are_whole(name: str, between: float) -> None:
    """Half a name cannot be changed: the message says that the number must be whole."""
    with pytest.raises(ValueError, match=rf"{name} cannot have the strength {between}: .*, a whole number above \d"):
        OPERATORS[name].check(between)
    OPERATORS[name].check(OPERATORS[name].most)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_every_operator_explains_itself(operator: Operator) -> None:
    """Each operator has a one-line description, and accepts its own default strengths."""
    assert operator.description.endswith(".")
    for level in operator.levels or (None,):
        operator.check(level)
