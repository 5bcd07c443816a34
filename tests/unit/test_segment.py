"""Segmenters share one dictionary, keep the user's words whole, and lose no character."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import jieba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings
from stream_dedup.settings.engine import SegmenterName
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.segment import Segmenter, segmenter
from stream_dedup.text.texts import Texts
from stream_dedup.text.user_words import UserWord, read_user_dictionary

_SEGMENTERS: tuple[SegmenterName, ...] = ("compiled", "rjieba", "jieba")
_COINED = "石桥帆影云栈"
_NORMAL = Normaliser()


def _cut(cut: Segmenter, text: str) -> list[str]:
    return cut(Texts.of_strings([text])).of(0)


@pytest.fixture(scope="module")
def cuts() -> dict[SegmenterName, Segmenter]:
    """Return all segmenters without the hidden Markov model, with one user word."""
    words = (UserWord(_COINED, None, "n"),)
    return {name: segmenter(name, words, hmm=False) for name in _SEGMENTERS}


@pytest.fixture
def fingerprinter_with(tmp_path: Path) -> Callable[[bytes], Fingerprinter]:
    """Return a function that makes a fingerprinter from the bytes of a user dictionary."""

    def make(dictionary: bytes) -> Fingerprinter:
        path = tmp_path / "words.txt"
        path.write_bytes(dictionary)
        return Fingerprinter(EngineSettings.model_validate({"text": {"user_dictionary": path}}))

    return make


@pytest.mark.parametrize("name", ["compiled", "rjieba"])
def test_others_cut_as_jieba_does_without_the_hidden_markov_model(
    name: SegmenterName, cuts: dict[SegmenterName, Segmenter], bodies: list[str]
) -> None:
    """On every hand-written article, the Rust segmenter and the compiled one give the words of jieba itself."""
    for body in bodies:
        text = _NORMAL(body)
        assert _cut(cuts[name], text) == _cut(cuts["jieba"], text)


@pytest.mark.parametrize("name", _SEGMENTERS)
def test_a_batch_has_the_words_of_each_text(name: SegmenterName, cuts: dict[SegmenterName, Segmenter]) -> None:
    """Texts segmented together have the same words as each by itself, and empty texts have none."""
    texts = ["", "网球拍卖会", "", "天气，预报", "\r\n", ""]
    words = cuts[name](Texts.of_strings(texts))
    assert [words.of(i) for i in range(len(texts))] == [_cut(cuts[name], text) for text in texts]
    assert [words.of(i) for i in (0, 1, 3)] == [[], ["网球", "拍卖会"], ["天气", "，", "预报"]]
    assert cuts[name](Texts.of_strings([])).offsets.tolist() == [0]


@pytest.mark.parametrize("name", _SEGMENTERS)
def test_words_put_together_are_the_text(
    name: SegmenterName, cuts: dict[SegmenterName, Segmenter], bodies: list[str]
) -> None:
    """Segmenting loses and adds no character of an article."""
    for body in bodies:
        text = _NORMAL(body)
        assert "".join(_cut(cuts[name], text)) == text


@pytest.mark.parametrize("name", _SEGMENTERS)
@given(text=st.text(st.sampled_from("中国人民的石桥ab12 .,%+#&\n，。👍é\u3000"), max_size=30))
def test_words_put_together_are_any_text(name: SegmenterName, cuts: dict[SegmenterName, Segmenter], text: str) -> None:
    """The same holds for random Han, Latin, digits, punctuation and whitespace."""
    assert "".join(_cut(cuts[name], text)) == text


@pytest.mark.parametrize("name", _SEGMENTERS)
def test_user_words_are_kept_whole(name: SegmenterName, cuts: dict[SegmenterName, Segmenter]) -> None:
    """A word of the user dictionary is never split, even if its parts are words."""
    assert _COINED in _cut(cuts[name], f"记者从{_COINED}获悉")
    assert _COINED not in _cut(segmenter(name, (), hmm=False), f"记者从{_COINED}获悉")


@pytest.fixture(scope="module")
def rare_words(bodies: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """A user dictionary of words without frequency, and normal texts with the words that jieba itself cuts with it."""
    chance = Random(1)
    rare = ["".join(chr(chance.randrange(0x9000, 0x9FA0)) for _ in range(4)) for _ in range(300)]
    listed = [_COINED, "获悉公司", *rare, "在线教育平台"]
    path = tmp_path_factory.mktemp("rare") / "words.txt"
    path.write_text("".join(f"{word}\n" for word in listed), encoding="utf-8")
    reference = jieba.Tokenizer()
    with path.open(encoding="utf-8") as lines:
        reference.load_userdict(lines)
    texts = [f"记者从{_COINED}获悉公司的在线教育平台上线", "".join(rare[:9]), *bodies]
    return path, {text: reference.lcut(text, HMM=False) for text in map(_NORMAL, texts)}


@pytest.mark.parametrize("name", _SEGMENTERS)
def test_words_without_frequency_are_as_likely_as_jieba_has_them(
    name: SegmenterName, rare_words: tuple[Path, dict[str, list[str]]]
) -> None:
    """They are just likely enough not to be split, so texts without them are cut as before."""
    path, expected = rare_words
    cut = segmenter(name, tuple(read_user_dictionary(path)), hmm=False)
    assert {text: _cut(cut, text) for text in expected} == expected


@pytest.mark.parametrize("name", _SEGMENTERS)
def test_engine_settings_choose_the_segmenter(name: SegmenterName, tmp_path: Path) -> None:
    """The setting text.segmenter selects the segmenter, and both accept the user dictionary."""
    path = tmp_path / "words.txt"
    path.write_text(f"{_COINED} 5000 nt\n", encoding="utf-8")
    settings = EngineSettings.model_validate({"text": {"segmenter": name, "user_dictionary": path}})
    fingerprinter = Fingerprinter(settings)
    assert _COINED in fingerprinter.words(f"昨天，{_COINED}发布公告")


def test_user_dictionary_is_read_as_jieba_reads_it(tmp_path: Path) -> None:
    """A line is a word, then optionally a frequency and a tag; blank lines and comments are skipped."""
    path = tmp_path / "words.txt"
    path.write_text("# 机构\n云栈 300 nt\n\n帆影 12\n石桥 v\n长汀\n", encoding="utf-8")
    words = read_user_dictionary(path)
    assert [(word.word, word.tag) for word in words] == [
        ("云栈", "nt"),
        ("帆影", "n"),
        ("石桥", "v"),
        ("长汀", "n"),
    ]
    assert [word.frequency for word in words[:2]] == [300, 12]
    assert words[2].frequency is words[3].frequency is None


@pytest.mark.parametrize(
    "line", ["云栈 1e6 n", "云栈 n 300", "云栈 3 n 我的词", "云栈 ² n", "New York", "Tesla Model 3"]
)
def test_malformed_line_of_the_user_dictionary_is_named(line: str, tmp_path: Path) -> None:
    """A line that is not `word [frequency] [tag]` is refused with its file and number."""
    path = tmp_path / "words.txt"
    path.write_text(f"石桥 5 n\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"words\.txt:2"):
        read_user_dictionary(path)


def test_frequency_that_is_no_number_is_not_taken_for_a_tag(tmp_path: Path) -> None:
    """A line such as `word 1,000` is refused, not read as a word with the part of speech `1,000`."""
    path = tmp_path / "words.txt"
    path.write_text("云栈 1,000\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"words\.txt:1"):
        read_user_dictionary(path)


def test_user_dictionary_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    """A dictionary in GBK is refused, and the error names it."""
    path = tmp_path / "words.txt"
    path.write_bytes("云栈 300 n\n".encode("gbk"))
    with pytest.raises(ValueError, match=r"words\.txt"):
        read_user_dictionary(path)


@pytest.mark.parametrize(
    ("entry", "text", "word"),
    [
        ("QianFan大模型", "他用QianFan大模型写稿", "qianfan大模型"),
        ("雲棧研究院", "雲棧研究院發布公告", "云栈研究院"),
        ("ＡＩ石桥", "ＡＩ石桥今日上线", "ai石桥"),
    ],
    ids=["capitals", "traditional", "full-width"],
)
def test_user_words_are_matched_in_their_normal_form(
    entry: str, text: str, word: str, fingerprinter_with: Callable[[bytes], Fingerprinter]
) -> None:
    """User words in capitals, traditional or full-width characters are kept whole in articles, which are normalised."""
    fingerprinter = fingerprinter_with(f"{entry} 5000 n\n".encode())
    assert word in fingerprinter.words(text)


def test_byte_order_mark_does_not_spoil_the_first_user_word(
    fingerprinter_with: Callable[[bytes], Fingerprinter],
) -> None:
    """The first word of a dictionary saved with a byte order mark, as by Windows, is kept whole."""
    fingerprinter = fingerprinter_with(f"{_COINED} 5000 n\n".encode("utf-8-sig"))
    assert _COINED in fingerprinter.words(f"昨天{_COINED}发布公告")
