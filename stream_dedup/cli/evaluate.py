"""The `evaluate` commands: run, make, list, report.

Knows arguments, progress and exit codes; knows nothing of how the work is done. The packages of the extra are imported
only when a command runs, so that all other commands start quickly.
"""

import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from stream_dedup.cli.terminal import (
    EXIT_FAILED,
    EXIT_USAGE,
    ConfigOption,
    SetOption,
    directory_path,
    errors,
    fail,
    file_path,
    named_path,
    out,
    run_reporting_errors,
    settings_of,
    telling_of_compiling,
)
from stream_dedup.counted import counted
from stream_dedup.rendering.plain import plain
from stream_dedup.settings import EngineSettings, redacted_flag
from stream_dedup.signals import cleaning_up_on_signals

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from stream_dedup.evaluate.report.tables import Table
    from stream_dedup.evaluate.reposts import RepostSettings
    from stream_dedup.evaluate.results import Evaluation
    from stream_dedup.evaluate.selection import Selection, WantedPatterns
    from stream_dedup.evaluate.source import LoadedSet

_EXTRA = frozenset({"jinja2", "joblib", "markupsafe", "matplotlib", "pypinyin", "scipy", "sklearn", "threadpoolctl"})
_MAKING = frozenset({"seed", "share", "copies", "chain", "limit", "edits"})  # arguments of how reposts are made
_SLOW_SHOWN = 5
_WIDE = 200

app = typer.Typer(help="Compare algorithms and engine configurations on your own articles.", no_args_is_help=True)

FileArgument = Annotated[
    Path,
    typer.Argument(
        help="Articles: JSONL or CSV (plain, .gz, .zst) or Parquet, with or without labels.",
        metavar="FILE",
        parser=file_path,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed for making reposts.")]
ShareOption = Annotated[float, typer.Option("--share", help="Share of the articles that get reposts.")]
CopiesOption = Annotated[float, typer.Option("--copies", help="Average number of reposts of such an article.")]
ChainOption = Annotated[float, typer.Option("--chain", help="Chance that a repost is made from another repost.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=2, help="Make reposts from at most this many articles.", show_default="all")
]
EditOption = Annotated[
    list[str] | None,
    typer.Option(
        "--edit",
        "-e",
        help="Edit operator, optionally with strengths other than its defaults. May be repeated; see `evaluate list`.",
        metavar="NAME[:STRENGTH,...]",
        show_default="all",
    ),
]


def _patterns(name: str, short: str, what: str) -> Any:  # noqa: ANN401  # typer reads it from an annotation
    return typer.Option(
        name, short, help=f"{what}, as a pattern with *, ? and [...]. May be repeated.", metavar="PATTERN"
    )


AlgorithmsOption = Annotated[list[str] | None, _patterns("--algorithms", "-a", "Algorithms by full name")]
SegmentersOption = Annotated[list[str] | None, _patterns("--segmenters", "-w", "Segmenters")]
FeaturesOption = Annotated[
    list[str] | None, _patterns("--features", "-f", "Features (word weights, shingles, K-grams)")
]
SimilaritiesOption = Annotated[list[str] | None, _patterns("--similarities", "-m", "Similarity measures")]
MarkdownOption = Annotated[
    Path | None,
    typer.Option(
        "--markdown",
        help="Also write the report, with its plots, to this directory as Markdown.",
        metavar="DIR",
        parser=directory_path,
    ),
]


class Subject(StrEnum):
    """What can be listed."""

    SEGMENTERS = "segmenters"
    FEATURES = "features"
    SIMILARITIES = "similarities"
    ENGINE = "engine"
    OPERATORS = "operators"
    ALGORITHMS = "algorithms"


@app.command("run")
def run_command(
    context: typer.Context,
    file: FileArgument,
    results: Annotated[
        Path, typer.Option("--out", "-o", help="Directory for the results.", metavar="DIR", parser=directory_path)
    ],
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            "--pairs",
            help="Labels: id pairs, one {id, repost_of} or {a, b} per line. May be repeated.",
            metavar="FILE",
            parser=file_path,
        ),
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Do not count pairs of labelled articles that overlap across clusters.")
    ] = False,
    algorithms: AlgorithmsOption = None,
    segmenters: SegmentersOption = None,
    features: FeaturesOption = None,
    similarities: SimilaritiesOption = None,
    findings: Annotated[
        bool, typer.Option("--findings", help="Check the studies' findings: also run what this needs, and show it.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            "-t",
            min=0,
            max=1,
            help="Similarity at or above which a pair counts as copies; the engine keeps its own.",
            show_default="each algorithm's own",
        ),
    ] = None,
    replaced: Annotated[
        int, typer.Option("--replaced", min=0, help="Texts in the experiment on replaced characters; 0 skips it.")
    ] = 30,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Processes; 0 means one per core.")] = 0,
    seed: SeedOption = 0,
    share: ShareOption = 0.5,
    copies: CopiesOption = 1.5,
    chain: ChainOption = 0.15,
    limit: LimitOption = None,
    edits: EditOption = None,
    markdown: MarkdownOption = None,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Run algorithms on labelled articles, or on labelled reposts that it makes from any articles.

    The engine's configurations start from your settings. Writes tables (CSV), evaluation.json and report.html.
    Finished results are kept: the same command resumes the run.
    """
    settings = settings_of(config, flags)

    def work() -> None:
        with _extra():
            from stream_dedup.evaluate.engine import changes
            from stream_dedup.evaluate.replaced import ReplacedOptions
            from stream_dedup.evaluate.runner.folder import OtherRunError
            from stream_dedup.evaluate.runner.plan import Plan
            from stream_dedup.evaluate.runner.run import evaluate
            from stream_dedup.evaluate.selection import WantedPatterns
            from stream_dedup.evaluate.source import Source, load_labelled_set
        selection = _selected(
            WantedPatterns(algorithms or (), segmenters or (), features or (), similarities or (), findings=findings),
            settings,
        )
        reposts = _reposts(seed, share, copies, chain, edits)
        taken = _taken(lambda: load_labelled_set(Source(file, settings.input, pairs or (), reposts, limit, lenient)))
        _announce(taken, selection)
        unused = [] if taken.made else _given(context, _MAKING)
        if unused:
            errors.print(f"{', '.join(unused)} ignored: the articles are labelled, so no reposts are made")
        plan = Plan(
            selection.algorithms,
            selection.configurations,
            selection.segmenters,
            selection.measures,
            ReplacedOptions(replaced),
            threshold,
            jobs,
            _command(flags or ()),
        )
        used = plan.engine_settings
        idle = [change.partition("=")[0] for change in changes(settings) if change not in used]
        if idle:
            errors.print(f"{', '.join(idle)} ignored: no configuration of the engine that is run takes the value")
        try:
            with _usage(OtherRunError), cleaning_up_on_signals(), _bars() as listener:
                evaluation = evaluate(plan, taken.labelled, results, listener)
        except (KeyboardInterrupt, SystemExit):
            errors.print("finished results are kept, and `report` shows them; the same command resumes the run")
            raise
        _report(evaluation, results, markdown, findings=findings)

    with telling_of_compiling():
        run_reporting_errors(work)


@app.command("make")
def make_command(
    file: FileArgument,
    result: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="File to write: .jsonl, .jsonl.gz or .jsonl.zst.", metavar="FILE", parser=named_path
        ),
    ],
    seed: SeedOption = 0,
    share: ShareOption = 0.5,
    copies: CopiesOption = 1.5,
    chain: ChainOption = 0.15,
    limit: LimitOption = None,
    edits: EditOption = None,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Make labelled reposts from any articles and write them to a file, without running algorithms."""
    settings = settings_of(config, flags)

    def work() -> None:
        with _extra():
            from stream_dedup.evaluate.labels import check_labelled_path, write_labelled
            from stream_dedup.evaluate.source import Source, make
        with _usage():
            check_labelled_path(result)  # before the work
        reposts = _reposts(seed, share, copies, chain, edits)
        taken = _taken(lambda: make(Source(file, settings.input, (), reposts, limit)))
        with _usage():
            write_labelled(taken.labelled, result, settings.input.fields)
        _announce(taken)
        out.print(f"labelled articles written to {result}", soft_wrap=True)

    with telling_of_compiling():
        run_reporting_errors(work)


@app.command("report")
def report_command(
    results: Annotated[Path, typer.Argument(help="Directory of a run.", metavar="DIR", parser=directory_path)],
    markdown: MarkdownOption = None,
    findings: Annotated[bool, typer.Option("--findings", help="Show the studies' findings.")] = False,
) -> None:
    """Show a finished or interrupted run again, and rewrite its tables and its page."""

    def work() -> None:
        with _extra():
            from stream_dedup.evaluate.runner.folder import OtherRunError, kept_evaluation
        with _usage(OtherRunError):
            evaluation = kept_evaluation(results)
        _report(evaluation, results, markdown, findings=findings)

    run_reporting_errors(work)


@app.command("list")
def list_command(
    subject: Annotated[
        Subject | None, typer.Argument(help="What to list; by default everything except the algorithms.")
    ] = None,
    algorithms: AlgorithmsOption = None,
    segmenters: SegmentersOption = None,
    features: FeaturesOption = None,
    similarities: SimilaritiesOption = None,
) -> None:
    """List what there is to choose from, with sources and what is missing on this machine."""

    def work() -> None:
        with _extra():
            from stream_dedup.evaluate.report.terminal import rich_table
            from stream_dedup.evaluate.selection import WantedPatterns
        wanted = WantedPatterns(algorithms or (), segmenters or (), features or (), similarities or ())
        chosen = any((wanted.algorithms, *wanted.parts))
        if chosen and subject not in {None, Subject.ALGORITHMS}:
            fail(f"patterns choose algorithms, so `list {subject}` takes none: use `list algorithms`", EXIT_USAGE)
        for table in _listed(Subject.ALGORITHMS if chosen else subject, wanted):
            _show(rich_table(table))

    run_reporting_errors(work)


def _listed(subject: Subject | None, wanted: "WantedPatterns") -> Iterator["Table"]:
    from stream_dedup.evaluate.report import catalogue

    tables: dict[Subject, Callable[[], Table]] = {
        Subject.SEGMENTERS: catalogue.available_segmenters_table,
        Subject.FEATURES: catalogue.features_table,
        Subject.SIMILARITIES: catalogue.similarities_table,
        Subject.ENGINE: catalogue.engine_table,
        Subject.OPERATORS: catalogue.operators_table,
    }
    if subject is Subject.ALGORITHMS:
        yield catalogue.algorithms_table(_selected(wanted, EngineSettings()))
        return
    for name, table in tables.items():
        if subject in {name, None}:
            yield table()


def _selected(wanted: "WantedPatterns", settings: EngineSettings) -> "Selection":
    from stream_dedup.evaluate.selection import selected

    with _usage():
        return selected(wanted, settings)


def _reposts(seed: int, share: float, copies: float, chain: float, edits: list[str] | None) -> "RepostSettings":
    from pydantic import ValidationError

    from stream_dedup.evaluate.reposts import RepostSettings

    given = {"seed": seed, "share": share, "copies": copies, "chain": chain, **({"edits": edits} if edits else {})}
    try:
        return RepostSettings.model_validate(given)
    except ValidationError as error:
        fail("\n".join(map(_told, error.errors())), EXIT_USAGE)


def _told(fault: "ErrorDetails") -> str:
    """Return an error about the settings of reposts, with the option that is wrong and its value."""
    from stream_dedup.evaluate.reposts import RepostSettings
    from stream_dedup.settings.faults import in_our_words
    from stream_dedup.settings.kinds import number_wanted

    if not fault["loc"]:
        return in_our_words(fault["msg"])
    name = str(fault["loc"][0])
    return f"--{name} {fault['input']}: it must be {number_wanted(RepostSettings.model_fields[name])}"


def _taken(take: Callable[[], "LoadedSet"]) -> "LoadedSet":
    from stream_dedup.evaluate.label_lines import LabelError
    from stream_dedup.files.readers import FileFormatError

    try:
        with _usage(), errors.status("reading articles and labels"):
            return take()
    except LabelError as error:
        raise FileFormatError(str(error)) from None


def _announce(taken: "LoadedSet", selection: "Selection | None" = None) -> None:
    labelled = taken.labelled
    edited = sum(one.original is not None for one in labelled.articles)
    how = f"{edited:,} of them reposts made here" if taken.made else "labelled"
    skipped = f"; {counted(taken.skipped, 'record')} skipped: not articles, or repeated ids" if taken.skipped else ""
    errors.print(f"{labelled.name}: {counted(len(labelled.articles), 'article')}, {how}{skipped}")
    slow = selection.slow() if selection else []
    if slow:
        more = f" and {len(slow) - _SLOW_SHOWN} more" if len(slow) > _SLOW_SHOWN else ""
        errors.print(f"slow (minutes on a few thousand articles): {', '.join(slow[:_SLOW_SHOWN])}{more}")


def _given(context: typer.Context, names: Collection[str]) -> list[str]:
    """Return the options that the user has set among those with these argument names."""
    sources = {name: context.get_parameter_source(name) for name in names}
    set_here = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    return [parameter.opts[0] for parameter in context.command.params if parameter.name in set_here]


def _report(evaluation: "Evaluation", results: Path, markdown: Path | None, *, findings: bool) -> None:
    with _extra():
        from stream_dedup.evaluate.findings import findings_of
        from stream_dedup.evaluate.report.files import PAGE, write_files
        from stream_dedup.evaluate.report.markdown import write_markdown
        from stream_dedup.evaluate.report.terminal import findings_on_terminal, tables_on_terminal
    # Before the tables are shown: the reader of standard output may leave early (`| head`).
    write_files(evaluation, results)
    report = write_markdown(evaluation, markdown) if markdown is not None else None
    if evaluation.engine_settings:
        changed = ", ".join(evaluation.engine_settings)
        out.print(plain(f"settings of the engine that are not as shipped: {changed}"), soft_wrap=True)
    for table in tables_on_terminal(evaluation):
        _show(table)
    if findings:
        _show(findings_on_terminal(findings_of(evaluation)))
    out.print(f"results are in {results}; to view them, open {results / PAGE}", soft_wrap=True)
    if report is not None:
        out.print(f"Markdown report: {report}", soft_wrap=True)
    failed = [one for one in evaluation.unmeasured if one.failed]
    if failed:
        fail("\n".join(f"{one.named.name}: {one.reason}" for one in failed), EXIT_FAILED)


def _show(table: RenderableType) -> None:
    """Print a table, at full width unless standard output is a terminal."""
    (out if out.is_terminal else Console(width=_WIDE)).print(table)


class _Bars:
    """Progress bars on standard error, one for each stage of a run."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage: TaskID | None = None

    def lacks(self, reasons: Mapping[str, str]) -> None:
        for reason in dict.fromkeys(reasons.values()):
            names = [name for name, each in reasons.items() if each == reason]
            self._progress.console.print(plain(f"{', '.join(names)} not available: {reason}"))

    def begin(self, stage: str, jobs: int) -> None:
        self._stage = self._progress.add_task(stage, total=jobs, note="") if jobs else None

    def done(self, name: str, note: str) -> None:
        if self._stage is not None:
            self._progress.update(self._stage, advance=1, note=f"{name}  {note}")


@contextmanager
def _bars() -> Iterator[_Bars]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}", markup=False), console=errors) as progress:
        yield _Bars(progress)


@contextmanager
def _usage(rejection: type[ValueError] = ValueError) -> Iterator[None]:
    """Exit with the code for wrong usage if arguments are rejected."""
    try:
        yield
    except rejection as error:
        fail(str(error), EXIT_USAGE)


@contextmanager
def _extra() -> Iterator[None]:
    """If packages of the extra are missing, exit with a message that says how to install them."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        fail(f"evaluate needs more packages ({error.name}): pip install 'stream-dedup[evaluate]'", EXIT_USAGE)


def _command(flags: Collection[str]) -> str:
    """Return what the user typed, without secrets.

    Args:
        flags: the settings in it; each may share an argument with its option (`--set=NAME=VALUE`).
    """
    typed = sys.argv[1:]
    for flag in sorted(flags, key=len, reverse=True):  # the longest first: one may end with another
        typed = [each.removesuffix(flag) + redacted_flag(flag) if each.endswith(flag) else each for each in typed]
    return shlex.join(["stream-dedup", *typed])
