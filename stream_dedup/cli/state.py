"""The commands under `state`: stats, verify, restore, rebuild, snapshot.

Knows arguments, progress bars, tables and which figures `stats` shows; knows nothing of how anything else is done.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from stream_dedup.cli.terminal import (
    ConfigOption,
    SetOption,
    database_path,
    errors,
    fail,
    out,
    run_reporting_errors,
    settings_of,
    tell,
)
from stream_dedup.counted import counted
from stream_dedup.output_fields import iso
from stream_dedup.settings import Settings
from stream_dedup.signals import cleaning_up_on_signals, handle_signals

if TYPE_CHECKING:
    from stream_dedup.index.records.ledger import Positions
    from stream_dedup.stream.state.restore import Report

_SNAPSHOT_SECONDS = 60.0
_MOST_FAULTS = 100

app = typer.Typer(help="Inspect, check, restore, rebuild or copy the state of an index.", no_args_is_help=True)


@app.command("stats")
def stats_command(
    config: ConfigOption = None,
    flags: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what the state contains. A running service is not disturbed."""
    settings = settings_of(config, flags)
    from stream_dedup.rendering.answers import facts

    def work() -> None:
        stats = _stats(settings)
        if as_json:
            out.print_json(orjson.dumps(stats).decode())
        else:
            out.print(facts({name.replace("_", " "): _lines(value) for name, value in stats.items()}))

    run_reporting_errors(work)


@app.command("verify")
def verify_command(
    config: ConfigOption = None,
    flags: SetOption = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Skip the comparison with a replay of the changelog.")
    ] = False,
) -> None:
    """Check that indexes, records, counts and changelog agree; exit code 1 if they do not."""
    settings = settings_of(config, flags)
    from stream_dedup.index.stores.store import StoreError
    from stream_dedup.stream.state.restore import verify
    from stream_dedup.stream.state.states import is_of_files

    def work() -> None:
        faults, of_files = [], is_of_files(settings)
        with _progress() as report:
            for fault in verify(settings, report, with_changelog=not offline):
                faults.append(fault)
                if len(faults) <= _MOST_FAULTS:
                    tell("fault", fault)
        if faults:
            hidden = f", {len(faults) - _MOST_FAULTS} of them not shown" if len(faults) > _MOST_FAULTS else ""
            remedy = (
                "recreate the state from its files with `stream-dedup dedup --state`"
                if of_files
                else "stop the service and restore the state with `stream-dedup state restore --fresh`"
            )
            raise StoreError(f"{counted(len(faults), 'fault')}{hidden}: {remedy}")
        alone = offline or of_files
        out.print("the state is consistent" if alone else "the state is consistent, and agrees with its changelog")

    run_reporting_errors(work)


@app.command("restore")
def restore_command(
    config: ConfigOption = None,
    flags: SetOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="First discard what the directory contains.")] = False,
) -> None:
    """Bring the state directory up to the end of its changelog, as the service does when it starts."""
    settings = settings_of(config, flags)
    from stream_dedup.stream.state.restore import restore
    from stream_dedup.stream.state.states import digest_of, state_directory

    def work() -> None:
        with _progress() as report:
            articles = restore(settings, report, fresh=fresh)
        out.print(f"{counted(articles, 'article')} replayed into {state_directory(settings, digest_of(settings))}")

    run_reporting_errors(work)


@app.command("rebuild")
def rebuild_command(config: ConfigOption = None, flags: SetOption = None) -> None:
    """Build a new state with the current settings from the messages in the input topics, without publishing anything.

    The service can continue to run with its old settings. Once it is started with the new ones, it uses the new state.
    If the rebuild is interrupted, the same command resumes it.
    """
    settings = settings_of(config, flags)
    from stream_dedup.stream.rebuild import Rebuild
    from stream_dedup.stream.state.states import check_not_of_files, digest_of

    stopping, heard = threading.Event(), list[int]()

    def stop(number: int, _frame: object) -> None:
        heard.append(number)
        stopping.set()

    def work() -> None:
        check_not_of_files(settings)
        handle_signals(stop)
        with _progress() as report:
            articles = Rebuild(settings, report, stopping).run()
        ended = "interrupted: run the same command again" if stopping.is_set() else "the next start will use it"
        out.print(f"{counted(articles, 'article')} judged into the state {digest_of(settings)}; {ended}")
        if heard:
            raise typer.Exit(128 + heard[0])

    # Once a signal has come, it is why the command ends, whatever comes of it.
    run_reporting_errors(work, lambda told, code: fail(told, 128 + heard[0] if heard else code))


@app.command("snapshot")
def snapshot_command(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Directory for the copy, which a service can start on.", metavar="DIR", parser=database_path
        ),
    ],
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Copy the state with its position in the changelog, even while a service is using it."""
    settings = settings_of(config, flags)
    from stream_dedup.index.peek import is_held
    from stream_dedup.index.stores.rocks import open_store
    from stream_dedup.index.stores.store import StoreLockedError
    from stream_dedup.stream.state.snapshots import ask
    from stream_dedup.stream.state.states import is_of_files, state_to_read

    def work() -> None:
        source, copy = state_to_read(settings), directory.absolute()
        from_files = is_of_files(settings)

        def is_made() -> bool:
            try:
                with open_store(source, settings.state) as store:
                    store.checkpoint(copy if from_files else copy / source.name)
            except StoreLockedError:
                if from_files:
                    raise
                return False
            return True

        held = partial(is_held, source)
        with cleaning_up_on_signals():
            # A service that ends before it answers leaves the state to whoever wants it.
            while not is_made() and not ask(settings.state.directory, copy, _SNAPSHOT_SECONDS, held):
                pass
        start = "continue from it with --state" if from_files else "start a service on it with state.directory"
        out.print(f"snapshot in {directory}: {start}", soft_wrap=True)

    run_reporting_errors(work)


def _stats(settings: Settings) -> dict[str, Any]:
    from stream_dedup.index.records.ledger import FORMAT_VERSION
    from stream_dedup.stream.kafka.topics import state_topics
    from stream_dedup.stream.state.restore import opened_to_read
    from stream_dedup.stream.state.states import digest_of, is_of_files, other_states, state_to_read

    digest, of_files = digest_of(settings), is_of_files(settings)
    with opened_to_read(settings) as (store, state):
        progress, place, epoch_state = state.progress, state.place, state.epoch_state
        return {
            "directory": str(state_to_read(settings)),
            "format": FORMAT_VERSION,
            # The settings may name another index than the state is of.
            "changelog": place.changelog if place else None if of_files else state_topics(settings, digest).changelog,
            "changelog_position": place.offset if place else None,
            "steps": progress.steps,
            "articles_judged": progress.judged,
            "entries": progress.entries - progress.floor,
            "stream_time": iso(progress.stream_ms, "seconds"),
            "window_generations": [
                {"number": one.number, "since": iso(one.start_ms, "seconds"), "first_entry": one.first_entry}
                for one in progress.generations
            ],
            "idf_epoch": epoch_state.epoch.number,
            "idf_words": epoch_state.counts.words,
            "idf_documents": epoch_state.counts.documents,
            "learnt_lines": epoch_state.lines.lines,
            **_places(state.positions(), from_files=of_files),
            "bytes": {str(family): size for family, size in store.sizes().items()},
            "other_states": [str(path) for path in other_states(settings, digest)],
        }


def _places(positions: "Positions", *, from_files: bool) -> dict[str, Any]:
    """Return how far the inputs have been read: those of a service, or those of runs over files."""
    from stream_dedup.files.run_positions import runs_of
    from stream_dedup.stream.kafka.places import in_input

    if from_files:
        return {"runs": runs_of(positions)}
    return {
        "input": [
            {"topic": topic, "partition": partition, "next_offset": offset}
            for (topic, partition), offset in sorted(in_input(positions).items())
        ]
    }


def _lines(value: object) -> list[str]:
    """Return the lines of a figure; none if the state does not have it."""
    if isinstance(value, dict):
        return [f"{key} {item:,}" for key, item in value.items()]
    if isinstance(value, list):
        return [_line(item) for item in value]
    return [] if value is None else [f"{value:,}" if isinstance(value, int) else str(value)]


def _line(item: object) -> str:
    if isinstance(item, dict):
        return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in item.items() if value is not None)
    return str(item)


@contextmanager
def _progress() -> "Iterator[Report]":
    """A progress bar on standard error for each task."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=errors)
    tasks: dict[str, Any] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in tasks:
            progress.start()
            tasks[what] = progress.add_task(what, total=None)
        progress.update(tasks[what], completed=done, total=total or None)

    try:
        yield report
    finally:
        if tasks:  # without any it prints a blank line in a file or a pipe
            progress.stop()
