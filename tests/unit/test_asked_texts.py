"""Promises of the texts of judged articles: read from the broker once, as long as there is room."""

from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from stream_dedup.article import Origin
from stream_dedup.ask import texts
from stream_dedup.ask.texts import LostTextError, Texts
from stream_dedup.decode import Decoder
from stream_dedup.settings import InputSettings
from tests.unit.arrived import ArrivedMessage

_ROOM = 400  # characters


@dataclass
class _Messages:
    """A topic with bodies of some lengths; it notes what is read."""

    lengths: list[int]
    read: list[int] = field(default_factory=list)

    def at(self, origin: Origin) -> Any:  # noqa: ANN401  # what stands for a message
        self.read.append(origin.offset)
        if not self.lengths[origin.offset]:
            return None
        content = orjson.dumps({"id": "n", "body": "字" * self.lengths[origin.offset]})
        return ArrivedMessage(content, 1_760_000_000_000, origin.offset)


def _reads(monkeypatch: pytest.MonkeyPatch, lengths: list[int], asked: list[int]) -> list[int]:
    """Return which messages are read when the articles at some offsets are asked for, one after the other."""
    monkeypatch.setattr(texts, "_KEPT_CHARACTERS", _ROOM)
    messages = _Messages(lengths)
    reader = Texts(messages, Decoder(InputSettings()))  # type: ignore[arg-type]
    for offset in asked:
        assert len(reader.article("n", Origin("in", 0, offset)).body) == lengths[offset]
    return messages.read


def test_article_in_use_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was not asked for longest gives way, not the one that was read first."""
    assert _reads(monkeypatch, [100] * 5, [0, 1, 2, 3, 0, 4, 0, 1]) == [0, 1, 2, 3, 4, 1]


def test_huge_article_displaces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read each time, and the others are not."""
    assert _reads(monkeypatch, [100, 100, 401, 101], [0, 1, 2, 3, 0, 1, 2, 3]) == [0, 1, 2, 3, 2, 3]


def test_lost_message_is_told_with_its_location(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was, to look for it."""
    with pytest.raises(LostTextError, match=r"no longer in its topic \(in, partition 0, offset 0\)$"):
        _reads(monkeypatch, [0], [0])


def test_text_of_another_article_in_its_place_is_not_shown() -> None:
    """After a topic was made anew, an offset holds another message: it is not taken for the article's, kept or not."""
    reader = Texts(_Messages([100]), Decoder(InputSettings()))  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(LostTextError, match=r"in its place \(.*\) is that of 'n'"):
            reader.article("m", Origin("in", 0, 0))
        assert reader.article("n", Origin("in", 0, 0)).id == "n"
