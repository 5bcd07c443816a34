"""The commands run, dedup and config; the other commands have files of their own.

Knows arguments, the terminal and exit codes; knows nothing of how anything is done.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from stream_dedup.cli.ask import api_command, article_command, cluster_command, similar_command, status_command
from stream_dedup.cli.evaluate import app as evaluate_app
from stream_dedup.cli.explain import explain_command
from stream_dedup.cli.plan import plan_command
from stream_dedup.cli.state import app as state_app
from stream_dedup.cli.tail import tail_command
from stream_dedup.cli.terminal import (
    EXIT_USAGE,
    ConfigOption,
    SetOption,
    database_path,
    errors,
    fail,
    failing,
    guarded,
    named_path,
    out,
    settings_of,
    told_in_full,
)
from stream_dedup.counted import counted
from stream_dedup.settings import FormatName
from stream_dedup.signals import end_at_once, end_by, heed
from stream_dedup.version import __version__

if TYPE_CHECKING:
    from stream_dedup.files.readers import Progress as FileProgress
    from stream_dedup.files.run import Summary

app = typer.Typer(
    name="stream-dedup",
    help="Near-duplicate detection for streams of articles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # by default, brackets are tags, and lines break where the source does
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(state_app, name="state")
app.command("plan")(plan_command)
for name, command in (
    ("status", status_command),
    ("article", article_command),
    ("cluster", cluster_command),
    ("similar", similar_command),
    ("explain", explain_command),
    ("tail", tail_command),
    ("api", api_command),
):
    app.command(name)(command)


class Shapes(StrEnum):
    """The outputs that have a schema of their own."""

    LINK = "link"
    CLUSTER = "cluster"


def main() -> None:
    """Run the command line."""
    end_at_once()
    with told_in_full():
        app()


def _version(value: bool) -> None:  # noqa: FBT001  # the signature of typer's callbacks
    if value:
        out.print(f"stream-dedup {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def run(config: ConfigOption = None, flags: SetOption = None) -> None:
    """Run the service: read articles from Kafka, write unique articles and links."""
    settings = settings_of(config, flags)
    from stream_dedup.api.process import ApiProcess
    from stream_dedup.observe.strays import catch_strays
    from stream_dedup.stream.service import Service

    catch_strays()
    service = Service(settings)

    def on_signal(*_: object) -> None:
        service.stop()
        if service.starting:
            # There is no batch to finish, and opening, compiling or connecting may take long. An exception that
            # interrupts a finalizer would be lost; the state survives any end, and the API ends when its input does.
            os._exit(0)

    heed(on_signal)
    # Until the watchdog handles it: asking for the stacks must not end the process.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with ApiProcess(settings):
        guarded(service.run, failing(settings))


@app.command()
def dedup(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Articles: JSONL or CSV (plain, .gz, .zst) or Parquet; - for JSONL on standard input.",
            metavar="FILE...",
        ),
    ],
    results: Annotated[
        Path, typer.Option("--out", "-o", help="Directory for the results.", metavar="DIR", parser=named_path)
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            help="Directory of the state, kept for later runs; without it, the state is in memory only.",
            metavar="DIR",
            parser=database_path,
        ),
    ] = None,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Deduplicate the articles in files: writes unique.jsonl, links.jsonl and dead.jsonl.

    With --state, the same command resumes a run that was interrupted.
    """
    settings = settings_of(config, flags)
    from stream_dedup.compiled.kernel import is_compiled
    from stream_dedup.engine.dedup import Deduplicator
    from stream_dedup.files.readers import FileFormatError
    from stream_dedup.files.results import any_judged
    from stream_dedup.files.run import Summary, are_regular, check_files, dedup_files
    from stream_dedup.index.stores.rocks import open_store
    from stream_dedup.index.stores.store import MemoryStore

    summary, heard = Summary(), list[int]()

    def look() -> None:
        if heard:
            end_by(heard[0])

    def work() -> None:
        check_files(files)
        if not is_compiled():
            errors.print("compiling, once per installation: this takes a minute or two")
        store = open_store(state, settings.state) if state else MemoryStore()
        with (
            _summed_up(summary, results, goes_on=state is not None and are_regular(files)),
            Deduplicator(settings=settings, store=store) as engine,
            _progress_bars(files) as report,
        ):
            # From here on there are batches, which must be finished before the run ends.
            heed(lambda number, _: heard.append(number))
            dedup_files(files, results, engine, settings, report, summary, look)
        if summary.reasons and not any_judged(results):
            raise FileFormatError("no record could be judged: see dead.jsonl; for other field names, set input.fields")

    guarded(work)


@app.command("config")
def config_command(
    config: ConfigOption = None,
    flags: SetOption = None,
    show: Annotated[bool, typer.Option("--print", help="Show the effective settings, without secrets.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check them: exit code 2 if any is invalid.")] = False,
    reference: Annotated[bool, typer.Option("--reference", help="Print the reference of all settings.")] = False,
    schema: Annotated[
        Shapes | None,
        typer.Option("--schema", help="Print the request body that registers an output's schema in output.format."),
    ] = None,
) -> None:
    """Show or check the effective settings: defaults < file < environment < flags."""
    if reference:
        from stream_dedup.settings.reference import settings_markdown

        sys.stdout.write(settings_markdown())
        return
    settings = settings_of(config, flags)
    if schema is not None:
        out.print_json(orjson.dumps(_registration(schema, settings.output.format)).decode())
        return
    if show or not check:
        out.print_json(orjson.dumps(settings.redacted()).decode())
    if check:
        errors.print("the settings are valid")


def _registration(shape: Shapes, name: FormatName) -> dict[str, str]:
    if name == "json":
        fail("output.format = json: there is no schema to register", EXIT_USAGE)
    from stream_dedup.encode.registered import registration
    from stream_dedup.encode.shapes import CLUSTER, LINK

    return registration({Shapes.LINK: LINK, Shapes.CLUSTER: CLUSTER}[shape], name)


@contextmanager
def _progress_bars(files: list[Path]) -> "Iterator[Callable[[Path, FileProgress], None]]":
    """Show a progress bar per file on standard error, and yield the function that updates them."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors) as progress:
        tasks = {path: progress.add_task(path.name, total=None) for path in files}

        def report(path: Path, read: "FileProgress") -> None:
            progress.update(tasks[path], completed=read.done, total=read.total or None)

        yield report


@contextmanager
def _summed_up(summary: "Summary", results: Path, *, goes_on: bool) -> Iterator[None]:
    """Print what became of the records, however the run ends.

    Args:
        summary: of the run.
        results: directory of the results.
        goes_on: whether an interrupted run can be resumed.
    """
    from stream_dedup.files.readers import shown
    from stream_dedup.files.results import any_judged
    from stream_dedup.index.stores.store import StoreError

    where = f"results in {shown(results)}"
    try:
        yield
    except (KeyboardInterrupt, SystemExit, OSError, StoreError):
        if goes_on and summary.records():
            errors.print("not finished: run the same command again to resume")
        raise
    else:
        if not summary.records():
            # A run that was interrupted after everything was written has nothing left to do.
            out.print(f"{'no more' if any_judged(results) else 'no'} records; {where}", soft_wrap=True)
    finally:
        if summary.records():
            out.print(_summary_table(summary))
            out.print(where, soft_wrap=True)


def _summary_table(summary: "Summary") -> Table:
    table = Table(title=counted(summary.records(), "record"), title_justify="left")
    table.add_column("outcome")
    table.add_column("records", justify="right")
    for outcome, count in summary.outcomes.most_common():
        table.add_row(outcome, str(count))
    for reason, count in summary.reasons.most_common():
        table.add_row(f"  {reason}", str(count), style="dim")
    return table
