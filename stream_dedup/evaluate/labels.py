"""Reads labelled sets from files and writes them.

Knows how articles and labels are laid out in lines of JSON; knows nothing of how labels are made or used.

A labelled file holds articles, one JSON object per line, with the field names of the settings and these labels:

- `cluster`: name of its story, a string or an integer; an article without one is in the cluster named by its id;
- `original`, `kind`, `strength`: the id of the article it was made from, the edit and its strength; all optional;
- `overlaps`: ids of articles of other clusters so similar to it that neither answer is wrong; optional.

A file of pairs holds one JSON object per line: `id`, `repost_of` and, if known, `kind` and `strength`, or `a` and `b`.

Ids and clusters are those of the article's scope. A pair needs a `scope` if its ids occur in several scopes.
"""

import errno
import gzip
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import orjson

from stream_dedup.arrays import I64
from stream_dedup.article import LATEST_MS, Article, Withdrawal
from stream_dedup.decode import Decoder, UndecodableError
from stream_dedup.decode.fields import encodable
from stream_dedup.evaluate.components import components
from stream_dedup.evaluate.label_lines import LabelError, Line, read_lines
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet
from stream_dedup.files.columns import nested
from stream_dedup.output_fields import iso
from stream_dedup.scope import name_of
from stream_dedup.settings import FieldSettings, InputSettings
from stream_dedup.zstandard import zstd

_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": partial(gzip.compress, mtime=0),  # so that the same set gives the same bytes
    ".zst": zstd.compress,
}
_LABELS = ("cluster", "original", "kind", "strength", "overlaps")


def read_labelled(path: Path, settings: InputSettings, pairs: Sequence[Path] = ()) -> LabelledSet:
    """Read articles and their labels.

    Articles with the same `cluster` and those of a pair are linked, and clusters are the connected components. Each
    takes the cluster name of its first article.

    Args:
        path: a file of articles, in any format of `read_lines`.
        settings: names of the articles' fields, and bounds.
        pairs: files of pairs of ids.

    Raises:
        FileFormatError: a file cannot be read.
        LabelError: a line has no valid article or label, two articles of a scope have the same id, a label names an
            article that does not exist, or the article itself, an original in another cluster or an overlapping
            article in the same one, or no two articles are in the same cluster.
    """
    lines = list(read_lines(path, {settings.fields.deleted}))
    articles = _articles(lines, settings)
    places = _places(lines, articles)
    labelled = [_labelled(line, article, places) for line, article in zip(lines, articles, strict=True)]
    in_pairs = _alone(articles) | places
    links = _apply_pairs(labelled, [line for each in pairs for line in read_lines(each)], in_pairs)
    labelled = _named_by_first(labelled, links)
    overlapping = _overlapping(lines, articles, places)
    _check_stories(lines, labelled, overlapping, places)
    if len({each.story for each in labelled}) == len(labelled):
        raise LabelError(
            f"{path}: no two of {len(labelled)} articles are in the same cluster; "
            "give copies the same `cluster`, or label them with --pairs FILE"
        )
    return LabelledSet(set_name(path), labelled, overlapping)


def set_name(path: Path) -> str:
    """Return the name of the set in a file: the file's, without its endings."""
    return path.name.partition(".")[0]


def check_labelled_path(path: Path) -> None:
    """Check that `write_labelled` can write to a path.

    Raises:
        ValueError: the file name has another ending.
        OSError: the file exists, or its directory does not.
    """
    if ".jsonl" not in (path.suffix, *path.suffixes[-2:-1]) or path.suffix not in {".jsonl", *_PACKERS}:
        raise ValueError(f"{path}: labelled sets are written to .jsonl, .jsonl.gz or .jsonl.zst")
    if path.exists():
        raise FileExistsError(errno.EEXIST, "already exists", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory", str(path.parent))


def write_labelled(labelled: LabelledSet, path: Path, fields: FieldSettings) -> None:
    """Write a set so that `read_labelled` reads it back, equal except for its name and overlaps across scopes.

    Args:
        labelled: the set.
        path: ends in .jsonl, .jsonl.gz or .jsonl.zst.
        fields: names of the articles' fields.

    Raises:
        ValueError: the file name has another ending, or an article's field has the name of a label.
        OSError: the file cannot be written.
    """
    check_labelled_path(path)
    taken = [field for field in fields.model_dump().values() if field.partition(".")[0] in _LABELS]
    if taken:
        raise ValueError(f"the field {taken[0]!r} has the name of a label: {', '.join(_LABELS)} are reserved")
    overlaps: dict[int, list[str]] = {}
    for first, second in labelled.overlapping.tolist():
        one, other = (labelled.articles[place].article for place in (first, second))
        if one.scope == other.scope:
            overlaps.setdefault(second, []).append(one.id)
    content = b"".join(
        orjson.dumps(_as_fields(each, overlaps.get(place), fields), option=orjson.OPT_APPEND_NEWLINE)
        for place, each in enumerate(labelled.articles)
    )
    pack = _PACKERS.get(path.suffix)
    path.write_bytes(pack(content) if pack else content)


def _articles(lines: Sequence[Line], settings: InputSettings) -> list[Article]:
    decoder = Decoder(settings)
    return [_article(line, decoder) for line in lines]


def decoded(line: Line, decoder: Decoder) -> Article | Withdrawal:
    """Return the article or withdrawal in a line, with lone surrogates replaced so that it can be written.

    Raises:
        UndecodableError: it is neither an article nor a withdrawal.
    """
    item = decoder.article(line.fields, LATEST_MS)  # no clock: articles may be dated in the future
    if isinstance(item, Withdrawal):
        return item
    return replace(item, title=encodable(item.title), body=encodable(item.body))


def _article(line: Line, decoder: Decoder) -> Article:
    try:
        article = decoded(line, decoder)
    except UndecodableError as error:
        raise line.fault(f"not an article: {error}") from None
    if not isinstance(article, Article):
        raise line.fault("a withdrawal, but only articles are allowed")
    return article


def _places(lines: Sequence[Line], articles: Sequence[Article]) -> dict[str, int]:
    """Return the index of each article by its name."""
    places: dict[str, int] = {}
    for place, (line, article) in enumerate(zip(lines, articles, strict=True)):
        if article.name in places:
            before = lines[places[article.name]].number
            raise line.fault(f"the id {article.id!r} is already in line {before}; ids must be unique")
        places[article.name] = place
    return places


def _alone(articles: Sequence[Article]) -> dict[str, int]:
    """Return the index of each id that only one article has, whatever its scope."""
    count = Counter(article.id for article in articles)
    return {article.id: place for place, article in enumerate(articles) if count[article.id] == 1}


def _labelled(line: Line, article: Article, places: Mapping[str, int]) -> LabelledArticle:
    cluster = line.name("cluster") or article.id
    _other("original", places[article.name], line, places, article.scope)
    return LabelledArticle(article, cluster, line.name("original"), line.name("kind") or "", line.strength())


def _other(field: str, own: int | None, line: Line, places: Mapping[str, int], scope: str) -> int | None:
    """Return the index of another article whose id is in a field; None if the field is missing or empty.

    Raises:
        LabelError: there is no such article, or it is the one that the line is about.
    """
    place = line.index_of_article(field, places, scope)
    if place is not None and place == own:
        raise line.fault(f"{field} is {line.name(field)!r}, but there is no other article with this id")
    return place


def _overlapping(lines: Sequence[Line], articles: Sequence[Article], places: Mapping[str, int]) -> I64:
    pairs: set[tuple[int, int]] = set()  # two articles may name each other
    for place, (line, article) in enumerate(zip(lines, articles, strict=True)):
        for name in line.names("overlaps"):
            other = places.get(name_of(article.scope, name), place)
            if other == place:
                raise line.fault(f"overlaps contains {name!r}, but there is no other article with this id")
            first, second = sorted((other, place))
            pairs.add((first, second))
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _check_stories(
    lines: Sequence[Line], labelled: Sequence[LabelledArticle], overlapping: I64, places: Mapping[str, int]
) -> None:
    """Check that originals are in the cluster of their copies, and overlapping articles are not.

    Raises:
        LabelError: one is not, or is.
    """
    for line, copy in zip(lines, labelled, strict=True):
        if copy.original is None:
            continue
        if labelled[places[name_of(copy.article.scope, copy.original)]].story != copy.story:
            raise line.fault(f"its original {copy.original!r} is in another cluster: give both the same `cluster`")
    for first, second in overlapping.tolist():
        if labelled[first].story == labelled[second].story:
            name = labelled[first].article.id
            raise lines[second].fault(f"it overlaps {name!r}, but both are in one cluster: leave one of the labels out")


def _apply_pairs(
    labelled: list[LabelledArticle], lines: Sequence[Line], places: Mapping[str, int]
) -> list[tuple[int, int]]:
    """Add the labels of the pairs to the articles, in place, and return the pairs as indices."""
    links: list[tuple[int, int]] = []
    told: dict[int, str] = {}
    for line in lines:
        first, second = ("id", "repost_of") if "repost_of" in line.fields else ("a", "b")
        scope = line.name("scope") or ""
        copy = line.index_of_article(first, places, scope)
        other = _other(second, copy, line, places, scope)
        if copy is None or other is None:
            raise line.fault("not a pair; it needs `id` and `repost_of`, or `a` and `b`")
        if labelled[copy].article.scope != labelled[other].article.scope:
            raise line.fault("a pair of articles of two scopes, which are never compared")
        links.append((copy, other))
        if first == "id":
            own, original = (labelled[place].article.id for place in (copy, other))
            if copy in told:
                raise line.fault(
                    f"the id {own!r} is already labelled in {told[copy]}; an article can have only one original"
                )
            told[copy] = line.place
            labelled[copy] = replace(
                labelled[copy], original=original, kind=line.name("kind") or "", strength=line.strength()
            )
    return links


def _named_by_first(labelled: Sequence[LabelledArticle], links: Sequence[tuple[int, int]]) -> list[LabelledArticle]:
    """Join the clusters that pairs connect, and give each the cluster name of its first article."""
    first_of: dict[str, int] = {}
    by_name = [(place, first_of.setdefault(each.story, place)) for place, each in enumerate(labelled)]
    numbers = components(len(labelled), np.array([*links, *by_name], np.int64).reshape(-1, 2))
    names: dict[int, str] = {}
    return [
        LabelledArticle(each.article, names.setdefault(number, each.cluster), each.original, each.kind, each.strength)
        for each, number in zip(labelled, numbers.tolist(), strict=True)
    ]


def _as_fields(labelled: LabelledArticle, overlaps: Sequence[str] | None, fields: FieldSettings) -> dict[str, object]:
    """Return an article and its labels as a JSON object, without empty fields and those that the settings leave out."""
    article, paths = labelled.article, fields.model_dump()
    values = [
        *((paths[name], getattr(article, name)) for name in ("id", "title", "body", "url", "source", "scope")),
        (paths["published_at"], iso(article.published_ms)),
        *((label, getattr(labelled, label)) for label in ("cluster", "original", "kind", "strength")),
        ("overlaps", overlaps),
    ]
    return nested((path, value) for path, value in values if path and value not in (None, ""))
