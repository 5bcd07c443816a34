"""The input of a run: labels if the file has any, otherwise generated reposts."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from stream_dedup.evaluate.label_lines import LabelError
from stream_dedup.evaluate.reposts import RepostSettings
from stream_dedup.evaluate.source import Source, load_labelled_set
from stream_dedup.files.readers import FileFormatError
from stream_dedup.settings import FieldSettings, InputSettings
from tests.unit.evaluate.pairs import positives


@pytest.fixture
def articles(tmp_path: Path, bodies: list[str]) -> Path:
    """Return twelve articles without labels, an invalid record, and a redelivery."""
    rows = [{"id": str(n), "body": body} for n, body in enumerate(sorted(bodies, key=len)[-12:])]
    path = tmp_path / "news.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"id": "x"}, rows[0]]))
    return path


def _source(path: Path, *pairs: Path, limit: int | None = None, lenient: bool = False) -> Source:
    return Source(path, InputSettings(), pairs, RepostSettings(edits=("retitle", "truncate:0.7")), limit, lenient)


def test_reposts_are_made_where_no_label_is(articles: Path) -> None:
    """The set holds reposts of the file's articles by the requested edits; invalid records are counted."""
    taken = load_labelled_set(_source(articles))
    assert (taken.made, taken.skipped, taken.labelled.name) == (True, 2, "news")
    kinds = {one.kind for one in taken.labelled.articles if one.original is not None}
    assert kinds == {"retitle", "truncate"}


def test_ids_are_those_of_a_scope(articles: Path) -> None:
    """An article of another scope with the same id or text is neither a redelivery nor a copy."""
    rows = [json.loads(line) for line in articles.read_text().splitlines()[:12]]
    scoped = [row | {"scope": scope} for scope in ("甲", "乙") for row in rows]
    articles.write_text("".join(json.dumps(row) + "\n" for row in scoped))
    source = replace(_source(articles), settings=InputSettings(fields=FieldSettings(scope="scope")))
    taken = load_labelled_set(source)
    originals = [one.article.scope for one in taken.labelled.articles if one.original is None]
    assert (taken.skipped, originals.count("甲")) == (0, originals.count("乙"))
    assert len(originals) > 12


def test_limit_counts_articles(articles: Path) -> None:
    """At most this many of the file's articles are used; faulty and repeated records do not count."""
    lines = articles.read_text().splitlines()
    articles.write_text("\n".join(["{", '{"id": "x"}', lines[0], *lines]))
    taken = load_labelled_set(_source(articles, limit=5))
    originals = {one.article.id for one in taken.labelled.articles if one.original is None}
    assert (originals, taken.skipped) == ({"0", "1", "2", "3", "4"}, 3)


def test_labels_are_taken(tmp_path: Path) -> None:
    """With a `cluster` field, the file counts as labelled and gets no reposts; `make` generates some regardless."""
    rows = [{"id": name, "body": f"{name}的一条新闻说的是春天的事情。" * 3, "cluster": "k"} for name in "甲乙丙"]
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    taken = load_labelled_set(_source(path))
    assert (taken.made, len(taken.labelled.articles), len(positives(taken.labelled))) == (False, 3, 3)


def test_labels_behind_many_originals_are_taken(tmp_path: Path) -> None:
    """An article without a cluster is in the one named by its id, so labelling only the copies is enough."""
    rows = [{"id": str(n), "body": f"第{n}条新闻"} for n in range(1_200)]
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"id": "c", "body": "七", "cluster": "7"}]))
    taken = load_labelled_set(_source(path))
    assert (taken.made, positives(taken.labelled)) == (False, [[7, 1_200]])


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_column_of_clusters_without_a_value_is_no_label(tmp_path: Path, bodies: list[str], ending: str) -> None:
    """Reposts are made if no article has a cluster, whether the field is missing, null or empty."""
    rows = [{"id": str(n), "body": body, "cluster": None} for n, body in enumerate(sorted(bodies, key=len)[-4:])]
    path = tmp_path / f"news.{ending}"
    if ending == "jsonl":
        rows[0]["cluster"] = ""
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([rows[0].keys(), *(row.values() for row in rows)])
    else:
        parquet.write_table(pa.Table.from_pylist(rows), path)
    assert load_labelled_set(_source(path)).made


def test_pairs_are_labels(articles: Path, tmp_path: Path) -> None:
    """A file of pairs labels articles that have no clusters."""
    lines = articles.read_text().splitlines()[:12]
    articles.write_text("\n".join(lines))
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"a": "1", "b": "2"}\n')
    taken = load_labelled_set(_source(articles, pairs))
    assert (taken.made, positives(taken.labelled)) == (False, [[1, 2]])


def test_lenient_sets_overlaps_aside(tmp_path: Path, bodies: list[str]) -> None:
    """On request, pairs of equal texts in different clusters are left out of the scores."""
    body = max(bodies, key=len)
    rows = [{"id": str(n), "body": body, "cluster": cluster} for n, cluster in enumerate("kkl")]
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert load_labelled_set(_source(path)).labelled.overlapping.tolist() == []
    assert load_labelled_set(_source(path, lenient=True)).labelled.overlapping.tolist() == [[0, 2], [1, 2]]


def test_file_without_articles_is_told(tmp_path: Path) -> None:
    """The message says what is wrong with the first record, and what to do; see `tests/unit/test_nothing_judged.py`."""
    path = tmp_path / "other.jsonl"
    path.write_text('{"id": "a", "text": "新闻"}\n')
    with pytest.raises(FileFormatError, match=r"no articles in it: record 1: .*body.*; .* set input\.fields$"):
        load_labelled_set(_source(path))


def test_missing_file_is_told(tmp_path: Path, articles: Path) -> None:
    """The same holds for a file of pairs."""
    for source in (_source(tmp_path / "none.jsonl"), _source(articles, tmp_path / "none.jsonl")):
        with pytest.raises(FileFormatError, match="there is no such file"):
            load_labelled_set(source)


def test_faulty_records_are_skipped(tmp_path: Path, bodies: list[str]) -> None:
    """Broken JSON and rows with too many fields are skipped and counted; reposts are made of the others."""
    one, other = sorted(bodies, key=len)[-2:]
    lines, table = tmp_path / "news.jsonl", tmp_path / "news.csv"
    lines.write_text(f'{json.dumps({"body": one})}\n{{"body"\n{json.dumps({"body": other})}\n', "utf-8")
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "body"), ("1", one), ("2", "短", "多余"), ("3", other)])
    for path in (lines, table):
        taken = load_labelled_set(_source(path))
        originals = {each.article.body for each in taken.labelled.articles if each.original is None}
        assert (taken.made, taken.skipped, originals) == (True, 1, {one, other})


def test_faulty_record_among_labels_is_told(tmp_path: Path) -> None:
    """The error names its number: skipping it would silently remove its labels from the scores."""
    path = tmp_path / "broken.jsonl"
    path.write_text('{"id"\n{"id": "a", "body": "新闻", "cluster": "k"}\n')
    with pytest.raises(LabelError, match="line 1"):
        load_labelled_set(_source(path))
