"""The planner's sample: copies have the intended overlap, and distances are those of the fingerprints."""

import csv
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from stream_dedup.files.readers import FileFormatError
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.planner.edits import cut_copy, padded_copy
from stream_dedup.planner.sample import Sample, measured_sample
from stream_dedup.settings import EngineSettings, Settings

_SENTENCES = [f"第{number}条消息说的是{number * 7919}号线上的事情。" for number in range(60)]
_TEXT = "".join(_SENTENCES)
_OTHERS = ["".join(f"别处的第{number}句话。" for number in range(start, start + 90)) for start in (1000, 2000, 3000)]


@pytest.mark.parametrize("similarity", [0.5, 0.8, 0.95])
def test_a_cut_copy_keeps_the_share_in_whole_sentences_and_in_order(similarity: float) -> None:
    """The result is whole sentences of the text, in order, within 0.03 of the requested share of its characters."""
    copy = cut_copy(_TEXT, similarity, random.Random(1))
    assert copy is not None
    kept = [sentence for sentence in _SENTENCES if sentence in copy]
    assert "".join(kept) == copy
    assert len(copy) / len(_TEXT) == pytest.approx(similarity, abs=0.03)


def test_closing_quotes_go_with_their_sentence() -> None:
    """A cut copy of a dialogue consists of whole sentences: no quotation mark is without its pair."""
    dialogue = [part for number in range(100, 140) for part in (f"他说：“{number}号线通了！”", f"她记下了{number}。")]
    copy = cut_copy("".join(dialogue), 0.5, random.Random(1))
    assert copy
    assert copy == "".join(sentence for sentence in dialogue if sentence in copy)


@pytest.mark.parametrize("similarity", [0.5, 0.8, 0.95])
def test_a_padded_copy_holds_the_text_and_as_much_else_as_is_left(similarity: float) -> None:
    """All sentences are in the copy, in order, and make up the requested share of it."""
    copy = padded_copy(_TEXT, similarity, _OTHERS, random.Random(1))
    assert copy is not None
    places = [copy.index(sentence) for sentence in _SENTENCES]
    assert places == sorted(places)
    assert len(_TEXT) / len(copy) == pytest.approx(similarity, abs=0.03)


def test_a_text_of_one_sentence_has_no_copy() -> None:
    """Nothing can be left out of such a text, and there is not enough to add."""
    assert cut_copy("只有一句话而已", 0.8, random.Random(1)) is None
    assert padded_copy("只有一句话而已" * 30, 0.5, ["短。"], random.Random(1)) is None


@pytest.fixture
def sample(
    tmp_path: Path,
    bodies: list[str],
    cached_fingerprinter: Callable[[EngineSettings], Fingerprinter],
    monkeypatch: pytest.MonkeyPatch,
) -> Sample:
    """Return a sample of the hand-written texts, each at four times its length."""
    for module in ("engine.parts", "planner.sample"):
        monkeypatch.setattr(f"stream_dedup.{module}.Fingerprinter", cached_fingerprinter)
    path = tmp_path / "articles.jsonl"
    rows = [{"id": str(number), "body": body} for number, body in enumerate(bodies)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return measured_sample(path, Settings(), 0.8, 1_000)


def test_a_sample_counts_every_pair_once(sample: Sample) -> None:
    """The fitted distances have the mean of those of all pairs, computed in plain Python."""
    values = sample.fingerprints.tolist()
    distances = [(a ^ b).bit_count() for i, a in enumerate(values) for b in values[:i]]
    fitted = sample.stranger_mixture().distances() @ np.arange(65)
    assert float(fitted) == pytest.approx(sum(distances) / len(distances), rel=0.01)


def test_copies_are_nearer_than_strangers(sample: Sample) -> None:
    """Texts that share four fifths differ in few bits; every copy belongs to an indexed article."""
    assert 0 < sample.indexed_share <= 1
    assert set(sample.copies.originals.tolist()) <= set(sample.fingerprints.tolist())
    assert sample.copies.distances().sum() == len(sample.copies.fingerprints)
    assert (
        sample.copy_mixture().distances() @ np.arange(65) < 16 < sample.stranger_mixture().distances() @ np.arange(65)
    )


@pytest.mark.parametrize("suffix", [" again", ""])
def test_whole_copies_and_redeliveries_are_not_indexed(
    suffix: str, sample: Sample, tmp_path: Path, bodies: list[str]
) -> None:
    """If every text occurs twice, half the share is indexed; with different ids, one copy of each is in reserve."""
    path = tmp_path / "twice.jsonl"
    rows = [
        {"id": f"{number}{suffix * again}", "body": body} for again in range(2) for number, body in enumerate(bodies)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    twice = measured_sample(path, Settings(), 0.8, 1_000)
    assert twice.indexed_share == pytest.approx(sample.indexed_share / 2)
    assert (twice.reserve_share > twice.indexed_share / 2) == bool(suffix)  # a redelivery adds nothing


def test_copies_are_known_however_much_later_they_came(sample: Sample, tmp_path: Path, bodies: list[str]) -> None:
    """The service forgets after its window; a sample of a year, in any order, does not make its copies unrelated."""
    path = tmp_path / "year.jsonl"
    rows = [
        {"id": f"{number}-{day}", "body": body, "published_at": day}
        for day in ("2026-01-01", "2026-11-01")
        for number, body in enumerate(bodies)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    year = measured_sample(path, Settings(), 0.8, 1_000)
    assert year.indexed_share == pytest.approx(sample.indexed_share / 2)


def test_table_that_says_of_none_that_it_is_deleted_is_read(sample: Sample, tmp_path: Path, bodies: list[str]) -> None:
    """`dedup` reads such CSV columns the same way: with nothing but true or false, they are flags."""
    path = tmp_path / "articles.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "body", "deleted"])
        rows.writerows([number, body, "false"] for number, body in enumerate(bodies))
    assert measured_sample(path, Settings(), 0.8, 1_000).articles == sample.articles


def test_articles_come_by_a_pipe_too(sample: Sample, tmp_path: Path, bodies: list[str]) -> None:
    """As with `dedup`, a pipe works, since articles are read once."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    lines = "".join(json.dumps({"id": str(number), "body": body}) + "\n" for number, body in enumerate(bodies))
    writer = Thread(target=pipe.write_text, args=(lines, "utf-8"), daemon=True)
    writer.start()
    assert measured_sample(pipe, Settings(), 0.8, 1_000).articles == sample.articles
    writer.join()


def test_articles_without_copies_are_refused(tmp_path: Path) -> None:
    """If no article can be cut or padded, the message says so, and what to try."""
    path = tmp_path / "short.jsonl"
    bodies = ["".join(chr(0x4E00 + 90 * number + place) for place in range(90)) for number in range(100)]
    rows = [{"id": str(number), "body": body} for number, body in enumerate(bodies)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(
        FileFormatError, match=r"short\.jsonl: .*cut or padded .* 0\.8: give a sample with longer articles"
    ):
        measured_sample(path, Settings(), 0.8, 1_000)


def test_sample_without_articles_is_told(tmp_path: Path) -> None:
    """More records would not help: the message names the setting for other field names."""
    path = tmp_path / "other.jsonl"
    path.write_text('{"text": "一篇文章。"}\n' * 200, encoding="utf-8")
    with pytest.raises(
        FileFormatError, match=r"other\.jsonl: no articles in it: record 1: .*body.*; .* set input\.fields$"
    ):
        measured_sample(path, Settings(), 0.8, 1_000)


def test_too_few_articles_are_refused(tmp_path: Path) -> None:
    """Three articles are not enough; the message gives the file and the minimum."""
    path = tmp_path / "few.jsonl"
    path.write_text('{"body": "一篇文章。"}\n' * 3, encoding="utf-8")
    with pytest.raises(
        FileFormatError, match=r"few\.jsonl: a sample of 3 articles is too small: it needs at least 100"
    ):
        measured_sample(path, Settings(), 0.8, 1_000)
