"""The command `dedup`: the engine over files, with a progress bar and a summary.

Knows arguments and what is printed; knows nothing of file formats or of how articles are judged.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from stream_dedup.cli.terminal import (
    EXIT_USAGE,
    ConfigOption,
    SetOption,
    database_path,
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
from stream_dedup.rendering.plain import escape_control
from stream_dedup.signals import handle_signals, raise_by_signal

if TYPE_CHECKING:
    from stream_dedup.files.readers import Progress as FileProgress
    from stream_dedup.files.run import Summary


def dedup_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Articles: JSONL or CSV (plain, .gz, .zst) or Parquet; - for JSONL on standard input.",
            metavar="FILE",
            parser=file_path,
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
    if any(flag.partition("=")[0].strip() == "state.directory" for flag in flags or ()):
        # Other commands on its state take it. In a file or the environment it is that of a service.
        fail("state.directory is not where `dedup` keeps its state: name the directory with --state", EXIT_USAGE)
    from stream_dedup.engine.dedup import Deduplicator
    from stream_dedup.files.nothing_judged import advice
    from stream_dedup.files.readers import FileFormatError
    from stream_dedup.files.results import has_decisions
    from stream_dedup.files.run import Summary, are_regular, check_files, dedup_files
    from stream_dedup.index.peek import check_not_of_service
    from stream_dedup.index.stores.rocks import open_store
    from stream_dedup.index.stores.store import MemoryStore

    summary, heard = Summary(), list[int]()

    def look() -> None:
        if heard:
            raise_by_signal(heard[0])

    def work() -> None:
        check_files(files)
        if state:
            check_not_of_service(state)
        store = open_store(state, settings.state) if state else MemoryStore()
        with (
            telling_of_compiling(),
            _summed_up(summary, results, goes_on=state is not None and are_regular(files)),
            Deduplicator(settings=settings, store=store) as engine,
            _progress_bar(files) as report,
        ):
            # What is loaded so far lives as long as the process: the collector need not scan it again and again.
            gc.freeze()
            # From here on there are batches, which must be finished before the run ends.
            handle_signals(lambda number, _: heard.append(number))
            dedup_files(files, results, engine, settings, report, summary, look)
        if summary.reasons and not has_decisions(results):
            raise FileFormatError(f"no record could be judged: see dead.jsonl{advice(summary.reasons)}")

    run_reporting_errors(work)


@contextmanager
def _progress_bar(files: list[Path]) -> "Iterator[Callable[[int, FileProgress], None]]":
    """Show a progress bar for all files on standard error, and yield the function that updates it.

    One for each would outgrow the terminal, and drawing hundreds takes longer than judging what is in them.
    """
    from stream_dedup.files.run import are_regular

    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    sizes = [path.stat().st_size if path.is_file() else 0 for path in files]
    before = [*accumulate(sizes, initial=0)]
    with Progress(*columns, console=errors) as progress:
        # Not before there is something to show: a refused run only has its error.
        bar = progress.add_task("", total=before[-1] if are_regular(files) else None, visible=False)

        def report(file: int, read: "FileProgress") -> None:
            done = before[file] + sizes[file] * read.done / max(read.total, 1)
            place = f"{file + 1}/{len(files)} {escape_control(files[file].name)}"
            progress.update(bar, completed=done, description=place, visible=True)

        yield report
        progress.update(bar, completed=before[-1])


@contextmanager
def _summed_up(summary: "Summary", results: Path, *, goes_on: bool) -> Iterator[None]:
    """Print what became of the records, however the run ends.

    Args:
        summary: of the run.
        results: directory of the results.
        goes_on: whether an interrupted run can be resumed.
    """
    from stream_dedup.files.readers import FileFormatError, shown
    from stream_dedup.files.results import has_decisions
    from stream_dedup.index.stores.store import StoreError

    where = f"results in {escape_control(shown(results))}"
    try:
        yield
    except (KeyboardInterrupt, SystemExit, OSError, StoreError):
        if summary.finished:
            errors.print("finished: all records are judged, only closing the state has failed")
        elif goes_on and summary.records():
            errors.print("not finished: run the same command again to resume")
        raise
    except FileFormatError:
        if goes_on and summary.records():
            errors.print(
                "not finished: once all files can be read, run the same command again to resume, unless records from "
                "the damaged file were judged"
            )
        raise
    else:
        if not summary.records():
            # A run that was interrupted after everything was written has nothing left to do.
            out.print(f"{'no more' if has_decisions(results) else 'no'} records; {where}", soft_wrap=True)
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
        if outcome == "dead":
            for reason, letters in summary.reasons.most_common():
                table.add_row(f"  {reason}", str(letters), style="dim")
    return table
