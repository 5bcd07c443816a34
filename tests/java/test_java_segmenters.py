"""The Java segmenters, on the real jars, which are fetched if this machine does not have them yet."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest

from deploy.demo.samples.corpus import base_texts
from stream_dedup.evaluate.segmenters import cutting, segmenters
from stream_dedup.text.normal import Normaliser
from tests.segmented import letters, words

Cuts = Callable[[str], list[list[str]]]

_REPOSITORY = Path(__file__).resolve().parents[2]
_JAVA = [name for name in segmenters() if name.startswith(("ik-", "hanlp-", "ansj"))]
_JAVA.remove("hanlp-crf")
_OVERLAPPING = ["ik-fine", "hanlp-index"]
_INEXACT = ["ik-smart", "ansj"]  # the first drops accented letters, the second repeats a measure word beside a name
_WHOLE = [name for name in _JAVA if name not in _OVERLAPPING + _INEXACT]
_ODD = [
    "",
    " \n\t\u3000",
    "，。！…",
    "👍🏽🎉",
    "\ud83d",
    "\x00",
    "\uffff",
    "好👍好🎉好",
    "天气\ud83d很\udc4d好\x00吗\uffff",
    "hello world 3.14 c++ a_b 2026年11月",
    "𠮷野家在东京",
    "café été",
]
_EVERY_ASTRAL = "".join(map(chr, range(0x20000, 0x20000 + 7_000)))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Return every third of the hand-written articles as normalised text."""
    normal = Normaliser()
    return [normal(text.body) for text in base_texts()[::3]]


@pytest.fixture(scope="module")
def cuts(texts: list[str]) -> Cuts:
    """Return the words of those texts by the name of a segmenter; each segmenter cuts them only once."""
    return cache(lambda name: segmenters()[name].cut(texts))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        # From the manual of IK Analyzer 2012.
        ("ik-smart", "张三说的确实在理", "张三/说的/确实/在理"),
        ("ik-fine", "张三说的确实在理", "张三/三/说的/的确/的/确实/实在/在理"),
        # From the README and demonstrations of HanLP 1, with its small dictionary.
        ("hanlp-standard", "商品和服务", "商品/和/服务"),
        ("hanlp-index", "主副食品", "主副食品/主副食/副食品/副食/食品"),
        ("hanlp-nshort", "刘喜杰石国祥会见吴亚琴先进事迹报告团成员", "刘喜杰/石国祥/会见/吴亚琴/先进/事迹/报告团/成员"),
        (
            "hanlp-shortest",
            "刘喜杰石国祥会见吴亚琴先进事迹报告团成员",
            "刘喜杰/石国祥/会见/吴亚琴/先进/事迹/报告团/成员",
        ),
        (
            "hanlp-speed",
            "江西鄱阳湖干枯，中国最大淡水湖变成大草原",
            "江西/鄱阳湖/干枯/中国/最/大/淡水湖/变成/大/草原",
        ),
        # From the README of ansj, without the idiom that is only in its author's dictionary.
        (
            "ansj",
            "欢迎使用ansj_seg,(ansj中文分词)在这里如果你遇到什么问题都可以联系我.",
            "欢迎/使用/ansj/seg/ansj/中文/分词/在/这里/如果/你/遇到/什么/问题/都/可以/联系/我",
        ),
        ("ansj", "帮助大家.ansj_seg更快,更准,更自由!", "帮助/大家/ansj/seg/更快/更/准/更/自由"),
        ("ansj-base", "结婚的和尚未结婚的", "结婚/的/和/尚未/结婚/的"),
    ],
)
def test_examples_of_the_libraries_own_documents(name: str, text: str, expected: str) -> None:
    """Each yields the words shown in its project's documentation, without punctuation."""
    assert words(name, text) == expected.split("/")


@pytest.mark.parametrize("name", ["hanlp-nlp", "ansj-nlp", "ansj"])
def test_names_of_people_are_found(name: str) -> None:
    """The person's name in the README's example for HanLP's NLP mode is one word, though no dictionary has it."""
    text = "中国科学院计算技术研究所的宗成庆教授正在教授自然语言处理课程"
    assert "宗成庆" in words(name, text)
    assert "宗成庆" not in words("hanlp-speed", text)


@pytest.mark.parametrize("name", _WHOLE)
def test_words_put_together_are_the_text_without_punctuation(name: str, texts: list[str], cuts: Cuts) -> None:
    """No letter, digit or Han character is lost, repeated or moved, even beside emoji or beyond the basic plane."""
    for text, cut in zip([*texts, *_ODD], [*cuts(name), *segmenters()[name].cut(_ODD)], strict=True):
        assert letters("".join(cut)) == letters(text)


def test_ik_drops_nothing_but_letters_that_it_does_not_know(texts: list[str], cuts: Cuts) -> None:
    """The words of IK without overlaps are the Han characters, plain letters and digits of the text."""

    def known(text: str) -> str:
        return "".join(c for c in letters(text) if c.isascii() or "\u4e00" <= c <= "\u9fff")

    for text, cut in zip(texts, cuts("ik-smart"), strict=True):
        assert known("".join(cut)) == known(text)


@pytest.mark.parametrize("name", _JAVA)
def test_every_word_occurs_in_the_text(name: str, texts: list[str], cuts: Cuts) -> None:
    """Nothing is invented, even if words overlap."""
    for text, cut in zip(texts, cuts(name), strict=True):
        assert all(word in text and letters(word) for word in cut)


@pytest.mark.parametrize("name", _JAVA)
def test_texts_of_no_words_have_none(name: str) -> None:
    """Empty texts, blanks, punctuation, emoji, half emoji and control characters yield no words."""
    assert segmenters()[name].cut(_ODD[:7]) == [[]] * 7


@pytest.mark.parametrize("name", _JAVA)
def test_emoji_leave_the_words_around_them_alone(name: str) -> None:
    """An emoji separates words as a full stop does."""
    assert words(name, "天气👍天气🎉天气") == words(name, "天气。天气。天气")


def test_more_characters_of_other_planes_than_there_is_room_for() -> None:
    """Of 7,000 different Han characters of the second plane, 6,400 come back and the rest are replaced; none fails."""
    assert words("hanlp-speed", _EVERY_ASTRAL + "天气") == [*_EVERY_ASTRAL[:6_400], "天气"]


@pytest.mark.parametrize("name", _JAVA)
def test_long_text_is_cut(name: str) -> None:
    """100,000 characters are no special case; for N-shortest paths, whose time grows faster than linearly, 10,000."""
    sentences = 1_250 if name == "hanlp-nshort" else 12_500
    assert len(words(name, "今天天气很好。我" * sentences)) >= 3 * sentences


def test_threads_share_the_one_java(texts: list[str]) -> None:
    """Four threads at once get the same words as one."""
    for name in ("ik-smart", "hanlp-standard", "ansj"):
        expected = segmenters()[name].cut(texts[:20])
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(segmenters()[name].cut, [texts[:20]] * 4)) == [expected] * 4


def test_workers_start_a_java_of_their_own(texts: list[str]) -> None:
    """A segmenter that was used here can be sent to a new process, and cuts the same there."""
    segmenter = segmenters()["ik-smart"]
    expected = segmenter.cut(texts[:5])
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(segmenter.cut, texts[:5]).result() == expected


def test_neither_path_nor_working_folder_matters(tmp_path: Path) -> None:
    """No `java` on PATH is needed, nothing is printed or left behind, and no stray dictionary is read."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "default.dic").write_text("和尚未\tn\t1000000\n", encoding="utf-8")
    program = (
        "from stream_dedup.evaluate.segmenters import segmenters; "
        "print(segmenters()['ansj-base'].cut(['结婚的和尚未结婚的'])[0])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env={"HOME": os.environ["HOME"], "PATH": str(tmp_path), "PYTHONPATH": str(_REPOSITORY), "PYTHONUTF8": "1"}
        | {name: value for name, value in os.environ.items() if name.startswith("XDG_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "['结婚', '的', '和', '尚未', '结婚', '的']\n"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["default.dic", "library"]


_CRF_TAGS = "BEMS"
_CRF_STATES = {"我": "S", "来": "B", "到": "E", "北": "B", "京": "E"}


def crf_model() -> str:
    """Return a hand-made model in CRF++ text format: one feature per character, and which tags may follow which."""
    header = ["version: 100", "cost-factor: 1", "maxid: 36", "xsize: 1", "", *_CRF_TAGS, "", "U00:%x[0,0]", "B", ""]
    features = ["0 B", *(f"{16 + 4 * i} U00:{character}" for i, character in enumerate(_CRF_STATES)), ""]
    allowed = {"BE", "BM", "ME", "MM", "EB", "ES", "SB", "SS"}
    transitions = ["0.0" if first + second in allowed else "-10.0" for first in _CRF_TAGS for second in _CRF_TAGS]
    states = ["5.0" if tag == state else "0.0" for state in _CRF_STATES.values() for tag in _CRF_TAGS]
    return "\n".join([*header, *features, *transitions, *states, ""])


def test_crf_takes_the_model_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a model, the variable that names it is reported; with one, the words follow from its weights."""
    # Loaded models belong to the process: other tests must not find this one.
    monkeypatch.setattr(cutting, "_loaded", cache(cutting._loaded.__wrapped__))  # noqa: SLF001  # as if none were loaded
    monkeypatch.delenv("HANLP_CRF_MODEL", raising=False)
    segmenter = segmenters()["hanlp-crf"]
    assert "HANLP_CRF_MODEL" in str(segmenter.missing())
    model = tmp_path / "model.txt"
    model.write_text(crf_model(), encoding="utf-8")
    monkeypatch.setenv("HANLP_CRF_MODEL", str(model))
    assert segmenter.missing() is None
    assert segmenter.cut(["我来到北京", ""]) == [["我", "来到", "北京"], []]
