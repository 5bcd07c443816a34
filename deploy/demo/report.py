"""What the demonstration shows at its end: counts, links, dead letters, metrics, and where things are.

Knows how results are laid out on the terminal; knows nothing of how they were reached.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from deploy.demo.clusters import Cluster, largest
from deploy.demo.correction import Correction
from deploy.demo.detection import Detection, Tally
from deploy.demo.measures import Measures
from deploy.demo.outcome import Link, Outcome
from deploy.demo.samples import Sample
from deploy.demo.service import Service
from deploy.demo.topics import Topics

_WRONG_SHOWN = 5
_STAGES_SHOWN = 4
_CLUSTERS_SHOWN = 5
_ASKED = "news-001"
_METRIC = "stream_dedup_"
_RELATION_STYLES = {"exact": "green", "near": "cyan", "contained": "magenta", "contains": "blue"}


class Shortened:
    """A text cut to the width of its column, in cells: a Chinese character takes two.

    rich's own ellipsis leaves a blank before it if a wide character does not fit.

    Args:
        text: one line.
        style: of rich.
    """

    def __init__(self, text: str, style: str = "") -> None:
        self._text = text
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(shortened(self._text, options.max_width), self._style, no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, cell_len(self._text)))


def shortened(text: str, cells: int) -> str:
    """Return the text, or as much of it as fits into that many cells with an ellipsis at the end."""
    if cell_len(text) <= cells:
        return text
    while cell_len(text) >= cells:
        text = text[:-1]
    return text.rstrip() + "…"


def print_report(
    console: Console,
    outcome: Outcome,
    detection: Detection,
    clusters: Mapping[str, Cluster],
    correction: Correction,
    measures: Measures,
) -> None:
    """Print all sections about the stream."""
    sections: list[tuple[str, ConsoleRenderable]] = [
        ("What came out", _counts(outcome)),
        ("Reposts: how many of each kind were found, and one link of each", _reposts(outcome, detection)),
        ("Compared with the samples' labels", _labels(outcome, detection)),
        ("The most copied articles, from the clusters topic", _clusters(outcome, clusters)),
        ("A withdrawal: a message without a value, with the id of the first of them", _correction(outcome, correction)),
        ("Dead letters", _dead_letters(outcome)),
        ("What the service reports about itself on /metrics", _metrics(measures)),
    ]
    for title, body in sections:
        _print_section(console, title, body)


def print_places(console: Console, bootstrap: str, topics: Topics, service: Service, *, stay: bool) -> None:
    """Print where things are, or were, and what to read next."""
    table = _grid()
    if service.page is not None:
        table.add_row("page", service.page)
    table.add_row("metrics", f"{service.url}/metrics")
    table.add_row("health", f"{service.url}/healthz and {service.url}/readyz")
    table.add_row("broker", bootstrap)
    table.add_row("topics", f"{topics.articles} -> {', '.join(topics.outputs)}")
    if stay:
        table.add_row("ask it", Text(f"{service.ask} article {_ASKED}", "bold"))
    else:
        table.add_row("keep it up", Text("make demo STAY=1", "bold"))
    table.add_row("read next", "README.md; config/README.md (settings); deploy/README.md (operation)")
    _print_section(console, "Where things are" if stay else "Where things were", table)


def _print_section(console: Console, title: str, body: ConsoleRenderable) -> None:
    console.print()
    console.print(Text(title, "bold"))
    console.print(body)


def _counts(outcome: Outcome) -> ConsoleRenderable:
    table = _grid()
    table.add_column(justify="right")
    relations = Counter(link.relation for link in outcome.links.values())
    reasons = Counter(letter.reason for letter in outcome.dead.values())
    table.add_row(Text("unique", "green"), str(len(outcome.unique)), "articles that are new")
    table.add_row(Text("links", "yellow"), str(len(outcome.links)), _listed(relations))
    table.add_row(Text("dead letters", "red"), str(len(outcome.dead)), _listed(reasons))
    return Group(table, _balance(outcome))


def _balance(outcome: Outcome) -> Text:
    sums = (
        f"{len(outcome.samples)} messages in = {len(outcome.unique)} unique + {len(outcome.links)} links"
        f" + {len(outcome.dead)} dead letters"
    )
    if outcome.complete:
        return Text.assemble(("✔ ", "bold green"), sums, ": each came out, none twice")
    lost = len(outcome.samples) - len(outcome)
    fault = f"does not hold: {lost} did not come out, {outcome.surplus} came out twice or from nowhere"
    return Text.assemble(("✘ ", "bold red"), sums, f" {fault}")


def _reposts(outcome: Outcome, detection: Detection) -> ConsoleRenderable:
    table = _table()
    for heading in ("kind of repost", "found", "relation", "J", "C", "H", "found by"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in ("found", "J", "C", "H") else "left")
    for heading in ("the copy", "its original"):
        table.add_column(heading, ratio=1)
    titles = _titles(outcome)
    examples = _examples(outcome, detection)
    for kind, number in sorted(examples.items(), key=lambda item: _closeness(outcome.links.get(item[1]))):
        tally, link = detection.reposts[kind], outcome.links.get(number)
        table.add_row(
            kind.replace("_", " "),
            _share(tally),
            *_link_cells(link),
            Shortened(_title(outcome.samples[number])),
            Shortened(titles.get(link.duplicate_of, "") if link else ""),
        )
    legend = "J Jaccard, C containment of the sets of 5-grams (estimated); H bits in which the SimHashes differ"
    return Group(table, Text(legend, "dim"))


def _examples(outcome: Outcome, detection: Detection) -> dict[str, int]:
    """Choose a message of each kind of repost, a found one if any, from stories not shown yet."""
    shown: Counter[str | None] = Counter()
    examples = {}
    for kind in detection.reposts:
        numbers = [n for n, sample in enumerate(outcome.samples) if sample.repost_of and sample.kind == kind]
        chosen = min(numbers, key=lambda n: (n not in outcome.links, shown[outcome.samples[n].repost_of]))
        shown[outcome.samples[chosen].repost_of] += 1
        examples[kind] = chosen
    return examples


def _closeness(link: Link | None) -> tuple[float, int, str]:
    """Return a key that sorts from redeliveries to the loosest copies, with what was not found at the end."""
    if link is None:
        return 1.0, 0, ""
    jaccard = 1.0 if link.jaccard is None else link.jaccard
    return -jaccard, link.hamming or 0, link.id


def _link_cells(link: Link | None) -> Iterable[Text]:
    if link is None:
        return (Text("not found", "red"), *(Text("") for _ in range(4)))
    return (
        Text(link.relation, _RELATION_STYLES.get(link.relation, "")),
        Text("-" if link.jaccard is None else f"{link.jaccard:.2f}"),
        Text("-" if link.containment is None else f"{link.containment:.2f}"),
        Text("-" if link.hamming is None else str(link.hamming)),
        Text(link.found_by),
    )


def _labels(outcome: Outcome, detection: Detection) -> ConsoleRenderable:
    table = _grid()
    table.add_column(justify="right")
    first_hand = detection.first_hand
    table.add_row("reposts found", _share(detection.found), "of all kinds")
    table.add_row("stayed unique", _share(first_hand["original"]), "first-hand articles and posts")
    table.add_row("", _share(first_hand["event-pair"]), "stories of one event by two reporters")
    table.add_row("", _share(first_hand["bulletin"]), "bulletins alike but for their numbers")
    wrong = Text(str(len(detection.wrong)), "green" if not detection.wrong else "red")
    table.add_row("wrong links", wrong, "to a story that the label does not name")
    titles = _titles(outcome)
    for number in detection.wrong[:_WRONG_SHOWN]:
        link = outcome.links[number]
        pair = f"{_title(outcome.samples[number])} -> {titles.get(link.duplicate_of, link.duplicate_of)}"
        table.add_row("", "", Shortened(pair, "red"))
    return table


def _clusters(outcome: Outcome, clusters: Mapping[str, Cluster]) -> ConsoleRenderable:
    table = _table()
    for heading in ("copies", "sources"):
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("article", ratio=2)
    table.add_column("published by", ratio=3)
    titles = _titles(outcome)
    for cluster in largest(clusters)[:_CLUSTERS_SHOWN]:
        sources = ", ".join(f"{source} {articles}" for source, articles in cluster.sources)
        table.add_row(
            str(cluster.copies),
            str(len(cluster.sources)),
            Shortened(titles.get(cluster.canonical, cluster.canonical)),
            Shortened(sources),
        )
    copies = sum(cluster.copies for cluster in clusters.values())
    return Group(table, Text(f"{len(clusters)} clusters with {copies} copies in all", "dim"))


def _correction(outcome: Outcome, correction: Correction) -> ConsoleRenderable:
    table = _grid()
    table.add_column(no_wrap=True)
    withdrawn, late = correction.withdrawn, correction.late
    rows = (
        ("withdrawn", withdrawn.id, _titles(outcome).get(withdrawn.id, "")),
        ("its cluster is now called", withdrawn.duplicate_of, "from now on; the link 'withdrawn' says so"),
        ("a later copy", late.id, f"{late.relation}, a duplicate of {late.duplicate_of}"),
    )
    for what, article, detail in rows:
        table.add_row(what, Text(article, "cyan"), Shortened(detail))
    return table


def _dead_letters(outcome: Outcome) -> ConsoleRenderable:
    table = _table()
    table.add_column("message", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    table.add_column("detail", overflow="fold", ratio=1)
    for number, letter in sorted(outcome.dead.items(), key=lambda item: (item[1].reason, item[0])):
        sample = outcome.samples[number]
        expected = letter.reason == sample.dead_reason
        reason = Text(letter.reason) if expected else Text(f"{letter.reason}, not {sample.dead_reason}", "red")
        table.add_row(_plain((sample.key or b"-").decode()), reason, _plain(letter.detail))
    return table


def _metrics(measures: Measures) -> ConsoleRenderable:
    table = _grid()
    rows = {
        "articles_total": _listed(measures.by(f"{_METRIC}articles_total", "decision")),
        "candidates_total": _listed(measures.by(f"{_METRIC}candidates_total", "source")),
        "candidates_confirmed_total": _listed(measures.by(f"{_METRIC}candidates_confirmed_total", "source")),
        "transactions_total": _listed(measures.by(f"{_METRIC}transactions_total", "outcome")),
        "commit_messages": f"p50 {measures.quantile(f'{_METRIC}commit_messages', 0.5):.0f} per transaction",
        "stage_seconds_total": _per_article(measures),
        "decision_seconds": f"p50 {_ms(measures, 0.5)}, p99 {_ms(measures, 0.99)}, from message to committed decision",
    }
    for name, text in rows.items():
        table.add_row(Text(_METRIC + name, "cyan"), text)
    return table


def _per_article(measures: Measures) -> str:
    """Return the mean milliseconds per article, in total and in the heaviest stages."""
    articles = measures.total(f"{_METRIC}articles_total")
    stages = measures.by(f"{_METRIC}stage_seconds_total", "stage")
    mean = {stage: 1000 * seconds / articles for stage, seconds in stages.items()}
    heaviest = dict(list(mean.items())[:_STAGES_SHOWN])
    return f"{sum(mean.values()):.1f} ms per article: {_listed(heaviest, '.2f')}, ..."


def _ms(measures: Measures, share: float) -> str:
    return f"{1000 * measures.quantile(f'{_METRIC}decision_seconds', share):.0f} ms"


def _titles(outcome: Outcome) -> dict[str, str]:
    """Return the titles of the articles that came out as new, by id."""
    return {article: _title(outcome.samples[number]) for number, article in outcome.unique.items()}


def _title(sample: Sample) -> str:
    """Return an article's title; a post has none, and is shown by its beginning."""
    fields = json.loads(sample.value or b"{}")
    return _plain(fields["title"] or fields["body"])


def _plain(text: str) -> str:
    """Return a text on one line, without characters that have no width."""
    visible = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return " ".join(visible.split())


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, expand=True, header_style="dim")


def _share(tally: Tally) -> Text:
    return Text(f"{tally.right}/{tally.total}", "green" if tally.right == tally.total else "yellow")


def _listed(counts: Mapping[str, float], form: str = ".0f") -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count:{form}}" for name, count in ordered)
