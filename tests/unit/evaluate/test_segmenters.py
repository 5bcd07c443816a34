"""The segmenters give their libraries' words, keep the whole text, and say clearly if a library is missing."""

import pickle
import re
import string
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.evaluate.algorithm import NotAvailable
from stream_dedup.evaluate.segmenters import segmenters
from stream_dedup.evaluate.segmenters.cutting import CuttingSegmenter
from stream_dedup.text.normal import Normaliser
from tests.segmented import letters, words

_HERE = "stream_dedup.evaluate.segmenters"
_WHOLE = ("jieba-precise", "rjieba", "grams1")
_OVERLAPPING = ("jieba-full", "jieba-search", "rjieba-full", "rjieba-search", "grams2", "grams7")
_ANY_TEXT = st.text(st.sampled_from("中国人民的石桥ab12 .,%+#&\n，。👍𠮷é\u3000\ud83d\udc4d\x00\uffff_"), max_size=30)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("jieba-precise", "我来到北京清华大学", "我/来到/北京/清华大学"),
        ("jieba-full", "我来到北京清华大学", "我/来到/北京/清华/清华大学/华大/大学"),
        ("jieba-precise", "他来到了网易杭研大厦", "他/来到/了/网易/杭研/大厦"),
        (
            "jieba-search",
            "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
            "小明/硕士/毕业/于/中国/科学/学院/科学院/中国科学院/计算/计算所/后/在/日本/京都/大学/日本京都大学/深造",
        ),
        ("rjieba", "我来到北京清华大学", "我/来到/北京/清华大学"),
        ("rjieba", "他来到了网易杭研大厦", "他/来到/了/网易/杭研/大厦"),
        (
            "rjieba-search",
            "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
            "小明/硕士/毕业/于/中国/科学/学院/科学院/中国科学院/计算/计算所/后/在/日本/京都/大学/日本京都大学/深造",
        ),
    ],
)
def test_examples_of_the_jieba_readme(name: str, text: str, expected: str) -> None:
    """Each mode gives the words shown in jieba's README, without the comma; so does its Rust port."""
    assert words(name, text) == expected.split("/")


def test_versions_are_those_of_the_packages() -> None:
    """Whatever the name of the module; what is not installed has none."""
    segmenter = CuttingSegmenter("two", "two packages", "x:y", modules=("jieba", "sklearn", "nosuch"))
    expected = [f"jieba jieba {version('jieba')}", f"sklearn scikit-learn {version('scikit-learn')}", "nosuch"]
    assert segmenter.versions() == expected


@pytest.mark.parametrize(("name", "variable"), [("hanlp-crf", "HANLP_CRF_MODEL"), ("ltp", "LTP_MODEL")])
def test_another_model_is_another_version(
    name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another path, or other content at the same path, of a file or a folder; no other segmenter changes."""
    monkeypatch.delenv(variable, raising=False)
    file = tmp_path / "model" / "weights.txt"
    file.parent.mkdir()
    others = {other: one.versions() for other, one in segmenters().items() if other != name}
    found = [segmenters()[name].versions()]
    for path in (file, file.parent):
        monkeypatch.setenv(variable, str(path))
        for content in ("one", "three"):
            file.write_text(content)
            found.append(segmenters()[name].versions())
    assert len({tuple(each) for each in found}) == len(found)
    assert segmenters()[name].versions() == found[-1]
    assert others == {other: one.versions() for other, one in segmenters().items() if other != name}


def test_full_mode_of_rjieba_has_the_words_of_jiebas_and_single_characters() -> None:
    """The two full modes differ only in single characters: jieba omits those covered by a longer word."""
    text = "我来到北京清华大学"
    full = words("rjieba-full", text)
    assert set(words("jieba-full", text)) <= set(full)
    assert {word for word in full if len(word) > 1} == {word for word in words("jieba-full", text) if len(word) > 1}


def test_rjieba_cuts_nearly_as_jieba_does(bodies: list[str]) -> None:
    """With the hidden Markov model, 99% of the words of the hand-written articles are the same as jieba's."""
    normal = Normaliser()
    same = both = 0
    for body in bodies:
        ours, theirs = (spans(words(name, normal(body))) for name in ("rjieba", "jieba-precise"))
        same += 2 * len(ours & theirs)
        both += len(ours) + len(theirs)
    assert same / both >= 0.99


def spans(cut: list[str]) -> set[tuple[int, int]]:
    """Return where each word starts and ends, counted in letters."""
    ends = [0, *accumulate(len(letters(word)) for word in cut)]
    return set(pairwise(ends))


@pytest.mark.parametrize("name", _WHOLE)
@given(text=_ANY_TEXT)
def test_words_put_together_are_the_text_without_punctuation(name: str, text: str) -> None:
    """No letter, digit or Han character is lost, repeated or moved; lone surrogates do not count as letters."""
    assert letters("".join(words(name, text))) == letters(text)


@pytest.mark.parametrize("name", _OVERLAPPING)
@given(text=_ANY_TEXT)
def test_words_that_overlap_all_occur_in_the_text(name: str, text: str) -> None:
    """Each word is a substring of the text (with surrogates replaced) and has a letter, a digit or a Han character."""
    there = letters(text) if name.startswith("grams") else re.sub("[\ud800-\udfff\uffff]", "\ufffd", text)
    for word in words(name, text):
        assert word in there
        assert letters(word)


@pytest.mark.parametrize("name", [*_WHOLE, *_OVERLAPPING])
def test_long_text_is_cut(name: str) -> None:
    """A text of 100,000 characters needs no special treatment."""
    assert len(words(name, "中国人民的石桥，" * 12_500)) >= 12_500


@pytest.mark.parametrize("name", [*_WHOLE, *_OVERLAPPING])
def test_texts_of_no_words_have_none(name: str) -> None:
    """Empty texts, whitespace, punctuation, emoji and lone surrogates give no words."""
    texts = ["", " \n\t\u3000", "，。！…", string.punctuation, "👍🏽🎉", "\ud83d"]
    assert segmenters()[name].cut(texts) == [[]] * len(texts)


@pytest.mark.parametrize(
    ("n", "text", "expected"),
    [
        # The worked example of doi 10.15888/j.cnki.csa.006123: abc twice among seven, 123 once.
        (3, "abcabc123", ["abc", "bca", "cab", "abc", "bc1", "c12", "123"]),
        (2, "天气，很 好。", ["天气", "气很", "很好"]),
        (1, "天气，好", ["天", "气", "好"]),
        (5, "好的", ["好的"]),
        (2, "好的", ["好的"]),
    ],
)
def test_grams_run_over_punctuation(n: int, text: str, expected: list[str]) -> None:
    """N-grams are taken after punctuation and whitespace are removed; a shorter text is a single n-gram."""
    assert words(f"grams{n}", text) == expected


def test_names_are_stable() -> None:
    """Names occur in results and on command lines, so they must not change."""
    assert list(segmenters()) == [
        *("jieba-precise", "jieba-full", "jieba-search", "rjieba", "rjieba-full", "rjieba-search"),
        *(f"grams{n}" for n in range(1, 8)),
        *("ik-fine", "ik-smart"),
        *("hanlp-standard", "hanlp-nlp", "hanlp-index", "hanlp-nshort", "hanlp-shortest", "hanlp-speed"),
        *("ansj", "ansj-base", "ansj-nlp"),
        *("hanlp-crf", "ictclas", "thulac", "ltp", "lac", "pkuseg", "jieba-fast"),
    ]


def test_each_names_its_source() -> None:
    """Each segmenter has a unique name and cites its source."""
    for name, segmenter in segmenters().items():
        assert segmenter.name == name
        assert segmenter.source


@pytest.mark.parametrize("name", list(segmenters()))
def test_segmenters_can_be_pickled(name: str) -> None:
    """A segmenter can be sent to a worker process, both before and after being used here."""
    segmenter = segmenters()[name]
    assert pickle.loads(pickle.dumps(segmenter)) == segmenter  # noqa: S301  # our own bytes


def test_used_segmenter_can_be_pickled() -> None:
    """What a segmenter has loaded is not pickled with it."""
    used = segmenters()["jieba-precise"]
    used.cut(["天气"])
    assert pickle.loads(pickle.dumps(used)).cut(["今天天气"]) == [["今天天气"]]  # noqa: S301  # our own bytes


def test_what_is_not_installed_is_said_with_what_to_do() -> None:
    """Without its package, a segmenter names it and the command that installs it, and refuses to cut."""
    absent = CuttingSegmenter("far", "nowhere", f"{_HERE}.far:cut", ("farseg", "re"), "pip install farseg")
    assert absent.missing() == "farseg not installed: pip install farseg"
    with pytest.raises(NotAvailable, match="far: farseg not installed: pip install farseg"):
        absent.cut(["天气"])


def test_what_is_installed_but_does_not_work_says_why() -> None:
    """If a library needs a model or fails otherwise, the reason is passed on, both by the check and in use."""
    broken = CuttingSegmenter("broken", "nowhere", "builtins:nothing_of_that_name", (), "mend it", tried=True)
    reason = broken.missing()
    assert reason is not None
    assert "nothing_of_that_name" in reason
    assert "mend it" in reason
    untried = CuttingSegmenter("untried", "nowhere", "builtins:nothing_of_that_name")
    assert untried.missing() is None
    with pytest.raises(NotAvailable, match=r"untried: .*nothing_of_that_name"):
        untried.cut(["天气"])
