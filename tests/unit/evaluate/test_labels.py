"""Labelled files are read correctly, survive a round trip, and errors name the line."""

import gzip
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import orjson
import pytest

from stream_dedup import Article
from stream_dedup.evaluate.label_lines import LabelError
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet
from stream_dedup.evaluate.labels import read_labelled, write_labelled
from stream_dedup.settings import FieldSettings, InputSettings
from tests.unit.evaluate.pairs import positives

_INPUT = InputSettings()


def write_lines(path: Path, *objects: object) -> Path:
    """Write a JSON Lines file."""
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in objects))
    return path


def four_articles(path: Path) -> Path:
    """Write the articles a, b, c and d without labels."""
    return write_lines(path, *({"id": name, "body": f"正文{name}"} for name in "abcd"))


@pytest.fixture
def case() -> LabelledSet:
    """Return a set that uses every kind of label."""
    return LabelledSet(
        "case",
        [
            LabelledArticle(Article("a", "正文一", "标题", "https://a.example/1", "甲报", 1_700_000_000_123), "甲"),
            LabelledArticle(Article("b", "正文二"), "b"),
            LabelledArticle(Article("a~1", "正文一。", published_ms=-5), "甲", "a", "drop", 0.1),
            LabelledArticle(Article("a~2", "正文一！"), "甲", "a~1", "retitle"),
        ],
        np.array([[0, 1], [1, 2]]),
    )


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
@pytest.mark.parametrize("fields", [FieldSettings(), FieldSettings(id="doc.id", body="doc.content", title="t")])
def test_a_set_reads_back_equal(case: LabelledSet, suffix: str, fields: FieldSettings, tmp_path: Path) -> None:
    """Articles, clusters, edits and overlaps survive, compressed or not, under any field names."""
    path = tmp_path / f"case{suffix}"
    write_labelled(case, path, fields)
    again = read_labelled(path, InputSettings(fields=fields))
    assert (again.name, again.articles) == (case.name, case.articles)
    assert again.overlapping.tolist() == case.overlapping.tolist()


def test_scopes_are_written_where_they_are_read(case: LabelledSet, tmp_path: Path) -> None:
    """Scopes, if any, are written under the configured path; fields that no algorithm compares are not written."""
    scoped = [
        replace(each, article=replace(each.article, scope=scope))
        for each, scope in zip(case.articles, ("甲", "", "甲", "甲"), strict=True)
    ]
    fields = FieldSettings(scope="of.tenant")
    write_labelled(replace(case, articles=scoped), tmp_path / "case.jsonl", fields)
    again = read_labelled(tmp_path / "case.jsonl", InputSettings(fields=fields))
    assert (again.articles, again.overlapping.tolist()) == (scoped, [])


_SCOPED = InputSettings(fields=FieldSettings(scope="scope"))


def _in_scopes(path: Path, **labels: str) -> Path:
    """Write the articles a and b in each of two scopes, b with labels, and c in the second."""
    pairs = [{"id": name, "body": f"正文{name}", "scope": scope} for scope in ("甲", "乙") for name in "ab"]
    rows = [row | labels if row["id"] == "b" else row for row in pairs]
    return write_lines(path, *rows, {"id": "c", "body": "正文c", "scope": "乙"})


def test_ids_and_clusters_are_those_of_a_scope(tmp_path: Path) -> None:
    """The same id is a different article in each scope; labels refer to articles of their own scope."""
    path = _in_scopes(tmp_path / "a.jsonl", cluster="a", original="a", kind="drop")
    labelled = read_labelled(path, _SCOPED)
    assert positives(labelled) == [[0, 1], [2, 3]]
    with pytest.raises(
        LabelError, match="line 2: original is 'c', but there is no article with this id in the scope '甲'"
    ):
        read_labelled(_in_scopes(tmp_path / "b.jsonl", cluster="a", original="c"), _SCOPED)


def test_pairs_have_a_scope_where_their_ids_are_of_several(tmp_path: Path) -> None:
    """An id that occurs in one scope needs no scope in a pair; a pair across scopes is refused."""
    articles = _in_scopes(tmp_path / "a.jsonl")
    pairs = write_lines(tmp_path / "pairs.jsonl", {"scope": "乙", "id": "b", "repost_of": "a"})
    labelled = read_labelled(articles, _SCOPED, [pairs])
    assert (positives(labelled), labelled.articles[3].original) == ([[2, 3]], "a")
    unknown = write_lines(tmp_path / "unknown.jsonl", {"a": "b", "b": "a"})
    with pytest.raises(LabelError, match="a is 'b', but there is no article with this id"):
        read_labelled(articles, _SCOPED, [unknown])
    alone = write_lines(tmp_path / "alone.jsonl", *({"id": name, "body": "正文", "scope": name} for name in "ab"))
    across = write_lines(tmp_path / "across.jsonl", {"a": "a", "b": "b"})
    with pytest.raises(LabelError, match="articles of two scopes"):
        read_labelled(alone, _SCOPED, [across])


def test_a_packed_file_is_packed(case: LabelledSet, tmp_path: Path) -> None:
    """Other tools can decompress a .gz file, and the same set gives the same bytes."""
    paths = [tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl.gz", tmp_path / "plain.jsonl"]
    for path in paths:
        write_labelled(case, path, FieldSettings())
    packed, again, plain = (path.read_bytes() for path in paths)
    assert gzip.decompress(packed) == plain
    assert packed == again
    assert packed[4:8] == bytes(4)  # RFC 1952: no time, or tomorrow's would differ


def test_clusters_of_a_file_are_taken_as_they_are(tmp_path: Path) -> None:
    """Equal cluster names, strings or integers, form a cluster; an article without one is in the cluster of its id."""
    path = write_lines(
        tmp_path / "f.jsonl",
        {"id": "a", "body": "一"},
        {"id": "b", "body": "二", "cluster": "a"},
        {"id": "c", "body": "三", "cluster": 7},
        {"id": "d", "body": "四", "cluster": "7"},
    )
    assert positives(read_labelled(path, _INPUT)) == [[0, 1], [2, 3]]


def test_pairs_of_a_set_are_those_of_its_clusters() -> None:
    """As listed by itertools, in clusters of several sizes whose articles alternate; each has a first article."""
    stories = [f"{number % 7}" if number % 5 else "one" for number in range(60)]
    articles = [LabelledArticle(Article(f"{number}", "正文"), story) for number, story in enumerate(stories)]
    labelled = LabelledSet("set", articles, np.empty((0, 2), np.int64))
    expected = [[a, b] for a, b in combinations(range(60), 2) if stories[a] == stories[b]]
    assert positives(labelled) == expected
    assert labelled.positive_count() == len(expected)
    assert [one.article.id for one in labelled.firsts()] == [f"{stories.index(one)}" for one in dict.fromkeys(stories)]


def test_names_that_differ_only_at_the_end_are_two() -> None:
    """Even if only by a NUL, which NumPy's strings do not keep."""
    names = ["a", "a\0", "a"]
    articles = [LabelledArticle(Article(id=str(n), body="x", scope=name), name) for n, name in enumerate(names)]
    labelled = LabelledSet("set", articles, np.zeros((0, 2), np.int64))
    assert labelled.clusters().tolist() == labelled.scopes().tolist() == [0, 1, 0]


def test_pairs_make_connected_components(tmp_path: Path) -> None:
    """If d is a copy of c and c of a, only b is apart. Each copy has the kind of its own pair."""
    truth = write_lines(
        tmp_path / "truth.jsonl",
        {"id": "c", "repost_of": "a", "kind": "boiler"},
        {"id": "d", "repost_of": "c", "kind": "drop", "strength": 0.1},
    )
    labelled = read_labelled(four_articles(tmp_path / "f.jsonl"), _INPUT, [truth])
    assert positives(labelled) == [[0, 2], [0, 3], [2, 3]]
    assert [(each.original, each.kind, each.strength) for each in labelled.articles] == [
        (None, "", None),
        (None, "", None),
        ("a", "boiler", None),
        ("c", "drop", 0.1),
    ]


def test_ids_of_pairs_are_trimmed_as_those_of_articles_are(tmp_path: Path) -> None:
    """Whitespace around the ids is ignored."""
    truth = write_lines(tmp_path / "truth.jsonl", {"id": " b ", "repost_of": "a\n"})
    read = read_labelled(four_articles(tmp_path / "f.jsonl"), _INPUT, [truth])
    assert [each.cluster for each in read.articles] == ["a", "a", "c", "d"]


def test_several_files_of_pairs_are_joined(tmp_path: Path) -> None:
    """Undirected pairs join clusters that directed pairs left separate."""
    truth = write_lines(tmp_path / "truth.jsonl", {"id": "b", "repost_of": "a", "kind": "boiler"})
    natural = write_lines(tmp_path / "natural.jsonl", {"a": "d", "b": "b", "jaccard": 0.9})
    labelled = read_labelled(four_articles(tmp_path / "f.jsonl"), _INPUT, [truth, natural])
    assert positives(labelled) == [[0, 1], [0, 3], [1, 3]]


def test_articles_that_name_each_other_overlap_once(tmp_path: Path) -> None:
    """Otherwise the pair would be subtracted twice from the false positives."""
    path = write_lines(
        tmp_path / "f.jsonl",
        {"id": "a", "body": "一", "overlaps": ["c", "c"]},
        {"id": "b", "body": "一", "cluster": "a"},
        {"id": "c", "body": "一", "overlaps": ["a", "b"]},
    )
    assert read_labelled(path, _INPUT).overlapping.tolist() == [[0, 2], [1, 2]]


_GOOD = {"id": "a", "body": "正文", "cluster": "x"}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            {"id": "a", "body": "另一篇", "cluster": "x"},
            r"line 2: the id 'a' is already in line 1; ids must be unique",
        ),
        ({"id": "b", "body": "二", "cluster": ["x"]}, r"line 2: cluster is \['x'\], not a string or an integer"),
        ({"id": "b", "body": "二", "cluster": True}, r"line 2: cluster is True, not a string or an integer"),
        (
            {"id": "b", "body": "二", "cluster": "x", "original": "z"},
            r"line 2: original is 'z', but there is no article",
        ),
        (
            {"id": "b", "body": "二", "cluster": "x", "original": "b"},
            r"line 2: original is 'b', but there is no other",
        ),
        ({"id": "b", "body": "二", "strength": "much"}, r"line 2: strength is 'much', not a number"),
        ({"id": "b", "body": "二", "strength": "nan"}, r"line 2: strength is 'nan', not a number"),
        ({"id": "b", "body": "二", "overlaps": [["a"]]}, r"line 2: overlaps is \['a'\], not a string or an integer"),
        ({"id": "b", "body": "二", "overlaps": "a"}, r"line 2: overlaps is 'a', not a list of ids"),
        ({"id": "b", "body": "二", "cluster": "x", "overlaps": ["b"]}, r"line 2: overlaps contains 'b', but there is"),
        (
            {"id": "b", "body": "二", "cluster": "x", "overlaps": ["a"]},
            r"line 2: it overlaps 'a', but both are in one cluster",
        ),
        (
            {"id": "b", "body": "二", "cluster": "y", "original": "a"},
            r"line 2: its original 'a' is in another cluster: give both the same `cluster`",
        ),
        ({"id": "b", "cluster": "x"}, r"line 2: not an article: no body"),
        ({"id": "b", "deleted": True}, r"line 2: a withdrawal, but only articles are allowed"),
        (["b"], "line 2: not a JSON object: the message is an array"),
        (
            {"id": "b", "body": "二", "cluster": "y"},
            r"no two of 2 articles are in the same cluster; give copies the same",
        ),
    ],
)
def test_a_wrong_line_of_articles_is_named(second: object, message: str, tmp_path: Path) -> None:
    """The error names the line, the value and what is allowed."""
    path = write_lines(tmp_path / "f.jsonl", _GOOD, second)
    with pytest.raises(LabelError, match=message):
        read_labelled(path, _INPUT)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([{"id": "a", "repost_of": "z"}], r"line 1: repost_of is 'z', but there is no article"),
        ([{"a": "z", "b": "a"}], r"line 1: a is 'z', but there is no article"),
        ([{"id": "a", "repost_of": "a"}], r"line 1: repost_of is 'a', but there is no other article"),
        ([{"a": "a", "b": "a"}], r"line 1: b is 'a', but there is no other article"),
        ([{"id": "a"}], r"line 1: not a pair; it needs `id` and `repost_of`, or `a` and `b`"),
        (
            [{"id": "b", "repost_of": "a"}, {"id": "b", "repost_of": "c"}],
            r"line 2: the id 'b' is already labelled in .*truth.jsonl, line 1; an article can have only one original",
        ),
    ],
)
def test_a_wrong_pair_is_named(pairs: list[object], message: str, tmp_path: Path) -> None:
    """The same holds for errors in files of pairs."""
    truth = write_lines(tmp_path / "truth.jsonl", *pairs)
    with pytest.raises(LabelError, match=message):
        read_labelled(four_articles(tmp_path / "f.jsonl"), _INPUT, [truth])


def test_the_other_file_that_labels_an_article_is_named(tmp_path: Path) -> None:
    """Which of several files has that line, its number alone does not tell."""
    files = [write_lines(tmp_path / name, {"id": "b", "repost_of": "a"}) for name in ("one.jsonl", "two.jsonl")]
    with pytest.raises(LabelError, match=r"two.jsonl, line 1: .* already labelled in .*one.jsonl, line 1;"):
        read_labelled(four_articles(tmp_path / "f.jsonl"), _INPUT, files)


def test_what_is_no_json_is_named(tmp_path: Path) -> None:
    """Broken JSON is reported with its line as well."""
    path = tmp_path / "f.jsonl"
    path.write_text('{"id": "a", "body": "一"}\n{"id": \n', "utf-8")
    with pytest.raises(LabelError, match=r"f.jsonl, line 2: not a JSON"):
        read_labelled(path, _INPUT)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (f'"strength": 1{"0" * 400}', "strength is 10+, not a number"),
        ('"cluster": "x\\ud83d"', r"cluster is 'x\\ud83d', which cannot be encoded as UTF-8"),
    ],
)
def test_labels_that_cannot_be_kept_are_named(label: str, message: str, tmp_path: Path) -> None:
    """JSON allows infinite numbers and lone surrogates, results do not."""
    path = tmp_path / "f.jsonl"
    path.write_text(f'{{"id": "a", "body": "一", {label}}}\n', "utf-8")
    with pytest.raises(LabelError, match=f"f.jsonl, line 1: {message}"):
        read_labelled(path, _INPUT)


def test_overlaps_hold_ids_as_they_are_read(tmp_path: Path) -> None:
    """Integer ids and surrounding whitespace are handled as in the other labels."""
    path = write_lines(
        tmp_path / "f.jsonl",
        {"id": 1, "body": "一"},
        {"id": 2, "body": "一", "cluster": 1},
        {"id": "c", "body": "一", "overlaps": [1, " 2 "]},
    )
    assert read_labelled(path, _INPUT).overlapping.tolist() == [[0, 2], [1, 2]]


def test_records_are_read_as_the_engine_reads_them(tmp_path: Path) -> None:
    """Lone surrogates, integers of any length and the word "false" in a CSV column are read alike."""
    lines = tmp_path / "f.jsonl"
    lines.write_text(
        '{"id": 123456789012345678901234567890, "body": "一\\ud83d", "cluster": "x"}\n'
        '{"id": "b", "body": "二", "cluster": "x"}\n',
        "utf-8",
    )
    table = tmp_path / "f.csv"
    table.write_text("id,body,cluster,deleted\n123456789012345678901234567890,一,x,false\nb,二,x,0\n", "utf-8")
    for path in (lines, table):
        read = read_labelled(path, _INPUT)
        assert [each.article.id for each in read.articles] == ["123456789012345678901234567890", "b"]
        write_labelled(read, tmp_path / f"again{path.suffix}.jsonl", _INPUT.fields)


def test_a_faulty_row_is_named(tmp_path: Path) -> None:
    """The error describes the row's own fault and does not call it invalid JSON."""
    path = tmp_path / "f.csv"
    path.write_text("id,body,cluster\na,一,x\nb,二,x,too many\n", "utf-8")
    with pytest.raises(LabelError, match=r"f.csv, line 2: (?!not a JSON)"):
        read_labelled(path, _INPUT)


def test_files_that_cannot_be_written_are_refused(case: LabelledSet, tmp_path: Path) -> None:
    """Unknown suffixes are refused, and so are field names reserved for labels."""
    with pytest.raises(ValueError, match=r"labelled sets are written to .jsonl, .jsonl.gz or .jsonl.zst"):
        write_labelled(case, tmp_path / "case.csv", FieldSettings())
    with pytest.raises(ValueError, match="the field 'kind' has the name of a label"):
        write_labelled(case, tmp_path / "case.jsonl", FieldSettings(source="kind"))
