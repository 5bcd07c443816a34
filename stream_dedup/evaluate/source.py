"""The labelled set of a run, from whatever file the user has.

Knows labelled files and files of articles; knows nothing of algorithms.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stream_dedup.article import Article
from stream_dedup.decode import Decoder, UndecodableError
from stream_dedup.evaluate.label_lines import LabelError, Line, line_of
from stream_dedup.evaluate.labelled import LabelledSet
from stream_dedup.evaluate.labels import decoded, read_labelled, set_name
from stream_dedup.evaluate.overlap import with_overlaps
from stream_dedup.evaluate.reposts import RepostSettings, with_reposts
from stream_dedup.files.nothing_judged import no_articles
from stream_dedup.files.readers import check_regular, reader_for
from stream_dedup.settings import InputSettings


@dataclass(frozen=True, slots=True)
class Source:
    """A file that articles are taken from, and how.

    Attributes:
        path: the file.
        settings: names of the articles' fields, and bounds.
        pairs: files of pairs of ids, which label the articles.
        reposts: how reposts are made if there are no labels.
        limit: number of articles that reposts are made from, the first ones of the file; None for all.
        lenient: whether labelled articles of different clusters that overlap count neither for nor against.
    """

    path: Path
    settings: InputSettings
    pairs: Sequence[Path] = ()
    reposts: RepostSettings = field(default_factory=RepostSettings)
    limit: int | None = None
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class LoadedSet:
    """A labelled set, and where it came from.

    Attributes:
        labelled: the set.
        made: whether its reposts were made here.
        skipped: number of records that are faulty, not articles, or repeat an id.
    """

    labelled: LabelledSet
    made: bool
    skipped: int = 0


def load_labelled_set(source: Source) -> LoadedSet:
    """Return the labelled set of a file: with its own labels, or with reposts made from its articles if it has none.

    Raises:
        FileFormatError: a file cannot be read, or holds no article.
        LabelError: a label is wrong; the message names the line.
        ValueError: no reposts can be made from these articles.
    """
    _check(source)
    if source.pairs or _is_labelled(source.path):
        labelled = read_labelled(source.path, source.settings, source.pairs)
        return LoadedSet(with_overlaps(labelled) if source.lenient else labelled, made=False)
    return make(source)


def make(source: Source) -> LoadedSet:
    """Return reposts made from the articles of a file, with or without labels; raises as `load_labelled_set` does."""
    _check(source)
    articles: dict[str, Article] = {}
    read = 0
    for article in _articles(source):
        if len(articles) == source.limit:
            break
        read += 1
        if article is not None:
            articles.setdefault(article.name, article)
    if not articles:
        raise no_articles(source.path, source.settings)
    labelled = with_reposts(list(articles.values()), source.reposts, set_name(source.path))
    return LoadedSet(labelled, made=True, skipped=read - len(articles))


def _check(source: Source) -> None:
    for path in (source.path, *source.pairs):
        check_regular(path)


def _is_labelled(path: Path) -> bool:
    """Return whether any record has a label: often only copies have one, and they may follow many originals."""
    return any(line is not None and line.fields.get("cluster") not in (None, "") for line in _lines(path))


def _lines(path: Path, flags: Collection[str] = ()) -> Iterator[Line | None]:
    """Yield the line of each record; None for a faulty one."""
    for record, _ in reader_for(path, flags)(path):
        try:
            yield line_of(record, path)
        except LabelError:
            yield None


def _articles(source: Source) -> Iterator[Article | None]:
    """Yield the article of each record; None for one that holds none."""
    decoder = Decoder(source.settings)
    for line in _lines(source.path, {source.settings.fields.deleted}):
        yield None if line is None else _article(line, decoder)


def _article(line: Line, decoder: Decoder) -> Article | None:
    try:
        item = decoded(line, decoder)
    except UndecodableError:
        return None
    return item if isinstance(item, Article) else None
