"""`python -m tests.benchmarks.throughput`: the whole service compared with its references, in one run.

Knows the options; asserts nothing: it prints figures and ratios of one run.
"""

import argparse
import sys
from pathlib import Path

import orjson
from rich.console import Console

from stream_dedup.settings import load_settings
from tests.benchmarks.throughput.articles import add_article_options, chosen_articles, decoded
from tests.benchmarks.throughput.references import REFERENCES
from tests.benchmarks.throughput.report import as_json, tables
from tests.benchmarks.throughput.rounds import Plan, timed_in_rounds
from tests.benchmarks.throughput.service import Variant

SERVICES = ("exactly_once", "at_least_once", "one_core", "unproved")
_FILE_WIDTH = 110  # columns, if the output is not a terminal
console = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)


def main() -> None:
    """Measure, print and write."""
    options = _options().parse_args()
    articles = chosen_articles(options)
    bodies = [article.body for article in decoded(articles, load_settings(flags=options.flags).input)]
    if not bodies:
        raise SystemExit("there are no articles: give one JSON object per line, with the field names of the settings")
    characters = round(sum(map(len, bodies)) / len(bodies))
    plan = Plan(
        articles,
        [_variant(name, options.cores) for name in options.services],
        [one for one in REFERENCES if one.name in options.references and not one.missing],
        options.rounds,
        options.latency_seconds if options.latency else 0.0,
        options.flags,
    )
    results = timed_in_rounds(plan, lambda line: console.print(line, style="dim"))
    for table in tables(plan, results, characters):
        console.print(table)
    if options.links and plan.variants:
        first = results.services[plan.variants[0].name][0]
        options.links.write_bytes(b"".join(value + b"\n" for value in first.links))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        found = as_json(plan, results, characters)
        options.json.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        console.print(f"written to {options.json}", soft_wrap=True)


def _variant(name: str, cores: int) -> Variant:
    if name == "unproved":
        return Variant(name, "exactly_once", segment="unproved")
    return Variant(name, "exactly_once", cores) if name == "one_core" else Variant(name, name)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [one.name for one in REFERENCES]
    add_article_options(parser, 12_000)
    parser.add_argument("--rounds", type=_positive, default=2, help="how often each is timed (%(default)s)")
    parser.add_argument("--services", nargs="+", choices=SERVICES, default=SERVICES, help="ways to run the service")
    parser.add_argument("--references", nargs="*", choices=names, default=names, help="what it is compared with")
    parser.add_argument("--cores", type=_positive, default=1, help="number of cores for one_core (%(default)s)")
    parser.add_argument("--latency", action=argparse.BooleanOptionalAction, default=True, help="measure the latency")
    parser.add_argument("--latency-seconds", type=float, default=20.0, help="duration of its load (%(default)s)")
    parser.add_argument("--links", type=Path, help="write the links of the first run here, to score them")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--set", dest="flags", action="append", default=[], help="a setting of the service")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


if __name__ == "__main__":
    main()
