"""Tables of answers: status, an article, a cluster, what a text resembles.

Knows columns and their order; knows nothing of how an answer is found.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stream_dedup.ask.answers import (
    ArticleAnswer,
    ClusterAnswer,
    FileAnswer,
    LinkAnswer,
    MemberAnswer,
    ShadowAnswer,
    SimilarAnswers,
    StatusAnswer,
    TimelineInterval,
)
from stream_dedup.counted import counted, most_first
from stream_dedup.rendering.fitting import ByWidth, Column, FittingTable
from stream_dedup.rendering.plain import plain

_BAR_CELLS, _LEAST_BAR_CELLS = 40, 8
_BESIDE_BAR_CELLS = 40  # width of the timeline's other columns
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SOURCES_SHOWN = 12
_LEAST_CELLS, _TAIL_CELLS = 36, 10  # of an id; a UUID stays whole
_ARTICLE = Column("article", least=_LEAST_CELLS, tail=_TAIL_CELLS)
_MEASURES = (Column("J", number=True, rank=2), Column("C", number=True, rank=4), Column("H", number=True, rank=5))
_MEMBERS = (
    Column("published, UTC", rank=0),
    _ARTICLE,
    Column("source", least=8, rank=3),
    Column("relation", rank=1),
    *_MEASURES,
    Column("found by", rank=7),
    Column("matched", least=16, rank=6, tail=_TAIL_CELLS),
)
_SIMILAR = (
    _ARTICLE,
    Column("relation", rank=0),
    *_MEASURES,
    Column("source", least=8, rank=3),
    Column("published, UTC", rank=6),
    Column("canonical", least=16, rank=1, tail=_TAIL_CELLS),
)
_TIMELINE = (
    Column("from, UTC"),
    Column("articles", number=True, rank=0),
    Column("sources", number=True, rank=2),
    Column("", rank=1),
)


def status_shown(status: StatusAnswer) -> RenderableType:
    """Return the table of a service's progress."""
    judged = status.decisions
    return facts(
        {
            "service": f"{_service(status)}, version {status.version}",
            "state": status.directory,
            "articles judged": f"{status.articles_judged:,}",
            "rate": "" if status.rate is None else f"{status.rate:,.1f} articles/s",
            "decisions": [_share(name, count, sum(judged.values())) for name, count in most_first(judged)],
            "shadow": _shadow(status.shadow) if status.shadow is not None else "",
            "waiting messages": "" if status.consumer_lag is None else f"{status.consumer_lag:,}",
            "stream's time": instant(status.stream_time),
            "remembered since": instant(status.window_since),
            "entries": f"{status.entries:,}",
            "steps": f"{status.steps:,}",
            "IDF epoch": str(status.idf_epoch),
            "next to read": list(map(str, status.input)),
            "files": [_file(file) for file in status.files],
            "results": [
                f"{results}, of {counted(files, 'file')}"
                for results, files in Counter(file.results for file in status.files).items()
            ],
        }
    )


def _service(status: StatusAnswer) -> str:
    if not status.running:
        return "none, the state was made from files" if status.of_files else "does not answer"
    return f"not ready, {status.not_ready}" if status.not_ready else "running"


def _file(file: FileAnswer) -> str:
    return f"{file.file}, {counted(file.lines, 'line')}, the run is {'finished' if file.finished else 'not finished'}"


def article_shown(article: ArticleAnswer) -> RenderableType:
    """Return the table of an article and the decision on it."""
    relation = f": {article.relation}" if article.relation else ""
    return facts(
        {
            "article": article.id,
            "scope": article.scope,
            "decision": f"{article.decision}{relation}",
            "canonical": "itself" if article.canonical == article.id else article.canonical,
            "cluster": str(article.cluster),
            "copy of": (article.link.matched or "an article that is no longer known") if article.link else "",
            "because": link_shown(article.link) if article.link else "",
            "source": article.source,
            "published": instant(article.published_at),
            "received": instant(article.received_at),
            "stream's time": instant(article.stream_time),
            "characters": f"{article.characters:,}",
            "texts seen": str(article.texts),
            "message": str(article.message) if article.message else "",
        }
    )


def cluster_shown(cluster: ClusterAnswer) -> RenderableType:
    """Return the tables of a cluster: facts, sources, members and, if its articles have times, the timeline."""
    seen = f"{time_shown(cluster.first_seen)} to {instant(cluster.last_seen)}" if cluster.first_seen else ""
    parts: list[RenderableType] = [
        facts(
            {
                "canonical": cluster.canonical,
                "scope": cluster.scope,
                "cluster": str(cluster.number),
                "copies": f"{cluster.copies:,}",
                "seen": seen,
                "sources": _sources(cluster),
            }
        ),
        Text(),
        _members(cluster),
    ]
    if any(moment.at for moment in cluster.timeline):
        parts += [Text(), ByWidth(lambda width: _timeline(cluster.timeline, width))]
    return Group(*parts)


def similar_shown(similar: SimilarAnswers) -> RenderableType:
    """Return the table of the articles that a text resembles."""
    parts: list[RenderableType] = [plain(f"would be: {similar.decision}", "bold")]
    if similar.unseen_entries:
        parts.append(plain(f"{similar.unseen_entries:,} new entries cannot be searched yet", "dim"))
    if not similar.articles:
        return Group(*parts, plain("resembles no known article"))
    table = FittingTable(_SIMILAR)
    for one in similar.articles:
        table.add(
            plain(one.id),
            plain(one.relation or f"not a copy: {one.ground.replace('_', ' ')}", "" if one.relation else "dim"),
            share_shown(one.jaccard),
            share_shown(one.containment),
            _number(one.hamming),
            plain(one.source),
            time_shown(one.published_at),
            plain("itself" if one.canonical == one.id else one.canonical),
        )
    return Group(*parts, table)


def facts(values: Mapping[str, str | list[str]]) -> Table:
    """Return a table of names and values, which may have several lines; names without a value are left out."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        if value:
            table.add_row(name, plain(value) if isinstance(value, str) else Text("\n").join(map(plain, value)))
    return table


def link_shown(link: LinkAnswer) -> str:
    """Return a link's relation, measures and index on one line."""
    found = f"found by {link.candidate_source}, IDF epoch {link.idf_epoch}"
    return ", ".join(filter(None, [link.relation, measures_line(link.jaccard, link.containment, link.hamming), found]))


def measures_line(jaccard: float | None, containment: float | None, hamming: int | None) -> str:
    """Return the measures that are known on one line."""
    known = (
        ("Jaccard", share_shown(jaccard)),
        ("containment", share_shown(containment)),
        ("Hamming", _number(hamming)),
    )
    return ", ".join(f"{name} {value}" for name, value in known if value)


def share_shown(share: float | None) -> str:
    """Return a share with two decimal places; empty if it is unknown."""
    return "" if share is None else f"{share:.2f}"


def time_shown(iso: str | None) -> str:
    """Return a time in UTC to the second; empty if it is unknown."""
    return "" if iso is None else iso[:19].replace("T", " ")


def instant(iso: str | None) -> str:
    """Return a time to the second that says that it is in UTC; empty if it is unknown."""
    return "" if iso is None else f"{time_shown(iso)} UTC"


def _members(cluster: ClusterAnswer) -> RenderableType:
    table = FittingTable(_MEMBERS)
    for member in cluster.members:
        table.add(*_member(member), style="bold" if member.canonical else "")
    told = f"{len(cluster.members)} of {cluster.known} members that are still known"
    return Group(table, plain(told, "dim")) if len(cluster.members) < cluster.known else table


def _member(member: MemberAnswer) -> list[Text | str]:
    link = member.link
    first: list[Text | str] = [
        time_shown(member.published_at or member.received_at),
        plain(member.id),
        plain(member.source),
    ]
    if link is None:
        return [*first, "canonical" if member.canonical else "", "", "", "", "", ""]
    relation = str(link.relation or "") + (", canonical" if member.canonical else "")
    measures = [share_shown(link.jaccard), share_shown(link.containment), _number(link.hamming)]
    return [*first, relation, *measures, str(link.candidate_source), plain(link.matched or "no longer known")]


def _timeline(moments: Sequence[TimelineInterval], width: int) -> FittingTable:
    cells = max(_LEAST_BAR_CELLS, min(_BAR_CELLS, width - _BESIDE_BAR_CELLS))
    most = max((moment.articles for moment in moments), default=1)
    table = FittingTable(_TIMELINE)
    for moment in moments:
        table.add(
            time_shown(moment.at)[:16], str(moment.articles), str(moment.sources), bar(moment.articles / most, cells)
        )
    return table


def bar(share: float, cells: int) -> Text:
    """Return a bar.

    Args:
        share: of the longest bar, 0 to 1.
        cells: width of the longest bar.
    """
    whole, eighths = divmod(max(1, round(8 * cells * share)), 8)
    return Text(f"{'█' * whole}{_EIGHTHS[eighths] if eighths else ''}", "cyan")


def _sources(cluster: ClusterAnswer) -> str:
    shown = [f"{one.source or 'unknown'} {one.articles}" for one in cluster.sources[:_SOURCES_SHOWN]]
    others = sum(one.articles for one in cluster.sources[_SOURCES_SHOWN:]) + cluster.other_sources_articles
    return ", ".join([*shown, *([f"others {others}"] if others else [])])


def _shadow(shadow: ShadowAnswer) -> list[str]:
    """Return the state and the disagreements of a shadow, in lines."""
    silent = "not running: the service is starting or a standby, or the shadow failed (shadow_ended in the log)"
    judges = "running" if shadow.judging else silent
    found = shadow.disagreements
    otherwise = f"{sum(found.values()):,} of {counted(shadow.articles, 'article')} decided differently"
    return [judges, otherwise, *(_share(name, count, shadow.articles) for name, count in most_first(found))]


def _share(name: str, count: int, total: int) -> str:
    return f"{name:<11} {count:>11,}  {count / max(1, total):>6.1%}"


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
