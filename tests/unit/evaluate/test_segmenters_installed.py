"""Each adapter calls its library as documented. The libraries here are stand-ins."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from stream_dedup.evaluate.segmenters import installed
from stream_dedup.evaluate.segmenters.cutting import Cut

Install = Callable[..., None]
_TEXT = "今天天气好"
_WORDS = ["今天", "天气", "好"]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Register a module with these attributes as if it had been imported."""

    def put(name: str, **names: object) -> None:
        module = ModuleType(name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)

    return put


def cut_of(expected: str) -> Callable[[str], list[str]]:
    """Return a stand-in for a library's function, which knows one text."""
    return {expected: list(_WORDS)}.__getitem__


def test_jieba_fast_is_called_as_jieba(install: Install) -> None:
    """`lcut` returns the words; logging is silenced and the dictionary loaded at once."""
    called: list[object] = []
    install("jieba_fast", lcut=cut_of(_TEXT), setLogLevel=called.append, initialize=lambda: called.append("loaded"))
    assert installed.jieba_fast()(_TEXT) == _WORDS
    assert called[1] == "loaded"


def test_thulac_gives_pairs_and_prints_nothing(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    """`cut` returns pairs of a word and an empty tag; what the library prints while loading is suppressed."""

    def thulac(*, seg_only: bool) -> object:
        print("Model loaded succeed")  # noqa: T201  # as the library does
        assert seg_only
        return SimpleNamespace(cut=lambda text: [[word, ""] for word in cut_of(_TEXT)(text)])

    install("thulac", thulac=thulac)
    assert installed.thulac()(_TEXT) == _WORDS
    assert not capsys.readouterr().out


def test_nlpir_is_opened_and_asked_without_tags(install: Install) -> None:
    """NLPIR is opened once, and `segment` is called without parts of speech."""
    opened: list[bool] = []

    def segment(text: str, *, pos_tagging: bool) -> list[str]:
        assert not pos_tagging
        return cut_of(_TEXT)(text)

    install("pynlpir", open=lambda: opened.append(True), segment=segment)
    cut = installed.ictclas()
    assert cut(_TEXT) == cut(_TEXT) == _WORDS
    assert opened == [True]


def test_lac_runs_in_its_segmenting_mode(install: Install) -> None:
    """`LAC(mode="seg").run` returns a list of words; an empty text is not passed to it."""
    install("LAC", LAC=lambda *, mode: SimpleNamespace(run=cut_of(_TEXT)) if mode == "seg" else None)
    cut = installed.lac()
    assert cut(_TEXT) == _WORDS
    assert cut("") == []


def test_pkuseg_is_the_fork_that_is_kept(install: Install) -> None:
    """`pkuseg().cut` returns a list of words."""
    install("spacy_pkuseg", pkuseg=lambda: SimpleNamespace(cut=cut_of(_TEXT)))
    assert installed.pkuseg()(_TEXT) == _WORDS


@pytest.fixture
def ltp_by_character(install: Install, monkeypatch: pytest.MonkeyPatch) -> Cut:
    """Return LTP's adapter over a model that splits into characters and refuses pieces that are too long."""

    def pipeline(pieces: list[str], *, tasks: list[str]) -> object:
        assert tasks == ["cws"]
        assert all(0 < len(piece) <= 510 for piece in pieces)
        return SimpleNamespace(cws=[list(piece) for piece in pieces])

    install("ltp", LTP=lambda model: SimpleNamespace(pipeline=pipeline) if model == "folder" else None)
    monkeypatch.setenv(installed.LTP_MODEL, "folder")
    return installed.ltp()


@pytest.mark.parametrize(
    "text",
    ["", "好", "今天天气好。明天呢？\n也好！", "好" * 499 + "。", "好" * 500 + "。。", "好" * 501, "好，" * 50_000],
    ids=len,
)
def test_ltp_sees_every_character_in_pieces_that_it_can_take(ltp_by_character: Cut, text: str) -> None:
    """A text is split at ends of sentences, or after 500 characters, and nothing is lost."""
    assert "".join(ltp_by_character(text)) == text
