"""The command line: run, dedup, explain, config; `evaluate`, `plan` and `state` have files of their own.

Knows arguments, the terminal and exit codes; knows nothing of how anything is done.
"""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from stream_dedup.cli_evaluate import app as evaluate_app
from stream_dedup.cli_plan import plan_command
from stream_dedup.cli_state import app as state_app
from stream_dedup.dedup import Deduplicator
from stream_dedup.explain import Explanation, WeightedWord, explain
from stream_dedup.files.readers import FileFormatError
from stream_dedup.files.readers import Progress as FileProgress
from stream_dedup.files.run import Summary, dedup_files
from stream_dedup.index.peek import epoch_of_state, is_state
from stream_dedup.index.rocks import open_store
from stream_dedup.index.store import MemoryStore
from stream_dedup.settings.reference import settings_markdown
from stream_dedup.stream.service import Service
from stream_dedup.stream.states import digest_of, state_directory
from stream_dedup.terminal import ConfigOption, SetOption, errors, escaped, guarded, out, settings_of
from stream_dedup.version import __version__

app = typer.Typer(
    name="stream-dedup",
    help="Near-duplicate detection for streams of articles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(state_app, name="state")
app.command("plan")(plan_command)


def main() -> None:
    """Run the command line."""
    app()


def _version(value: bool) -> None:  # noqa: FBT001  # the shape of typer's callbacks
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
    """Run the service: articles in from Kafka, unique articles and links out."""
    settings = settings_of(config, flags)
    service = Service(settings)

    def on_signal(*_: object) -> None:
        service.stop()
        if service.starting:
            # There is no batch to finish, and opening, compiling or connecting may take long.
            raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    guarded(service.run)


@app.command()
def dedup(
    files: Annotated[list[Path], typer.Argument(help="JSONL or CSV (plain, .gz, .zst) or Parquet.", metavar="FILE...")],
    results: Annotated[Path, typer.Option("--out", "-o", help="Directory of the results.", metavar="DIR")],
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Directory of the state, to go on from; none: in memory.", metavar="DIR"),
    ] = None,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Run the engine over files: writes unique.jsonl, links.jsonl and dead.jsonl."""
    settings = settings_of(config, flags)

    def work() -> None:
        store = open_store(state, settings.state) if state else MemoryStore()
        with Deduplicator(settings=settings, store=store) as engine, _progress_bars(files) as report:
            summary = dedup_files(files, results, engine, settings, report)
        out.print(_summary_table(summary))
        out.print(f"results in {escaped(str(results))}", soft_wrap=True)
        if summary.reasons and summary.outcomes["dead"] == summary.records():
            raise FileFormatError("no record could be judged: see dead.jsonl, and input.fields for other field names")

    guarded(work)


@app.command("explain")
def explain_command(
    first: Annotated[Path, typer.Argument(help="A text, UTF-8.", metavar="A.txt")],
    second: Annotated[Path, typer.Argument(help="Another.", metavar="B.txt")],
    state: Annotated[
        Path | None,
        typer.Option("--state", help="State whose document counts give the weights.", metavar="DIR"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: ConfigOption = None,
    flags: SetOption = None,
) -> None:
    """Tell why two texts are, or are not, duplicates."""
    settings = settings_of(config, flags)

    def work() -> None:
        epoch = None
        if state is not None:
            # A service keeps its database in a directory of its settings.
            named = settings.model_copy(update={"state": settings.state.model_copy(update={"directory": state})})
            inner = state_directory(named, digest_of(settings))
            epoch = epoch_of_state(state if is_state(state) else inner, settings.idf.max_words)
        explanation = explain(_text_of(first), _text_of(second), settings, epoch)
        if as_json:
            out.print_json(orjson.dumps(_explanation_fields(explanation)).decode())
        else:
            _print_explanation(explanation, (first.name, second.name))

    guarded(work)


@app.command("config")
def config_command(
    config: ConfigOption = None,
    flags: SetOption = None,
    show: Annotated[bool, typer.Option("--print", help="Show the effective settings, secrets left out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check them; the exit code tells.")] = False,
    reference: Annotated[bool, typer.Option("--reference", help="Print the reference of all settings.")] = False,
) -> None:
    """Show or check the effective settings: defaults < file < environment < flags."""
    if reference:
        sys.stdout.write(settings_markdown())
        return
    settings = settings_of(config, flags)
    if show or not check:
        out.print_json(orjson.dumps(settings.redacted()).decode())
    if check:
        errors.print("the settings are valid")


class _progress_bars:  # noqa: N801  # used as a context manager, like a function
    """Bars on standard error, one a file."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=errors,
        )

    def __enter__(self) -> Callable[[Path, FileProgress], None]:
        self._progress.start()
        tasks = {path: self._progress.add_task(path.name, total=None) for path in self._files}

        def report(path: Path, progress: FileProgress) -> None:
            self._progress.update(tasks[path], completed=progress.done, total=progress.total or None)

        return report

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _summary_table(summary: Summary) -> Table:
    table = Table(title=f"{summary.records()} records", title_justify="left")
    table.add_column("outcome")
    table.add_column("records", justify="right")
    for outcome, count in summary.outcomes.most_common():
        table.add_row(outcome, str(count))
    for reason, count in summary.reasons.most_common():
        table.add_row(f"  {reason}", str(count), style="dim")
    return table


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is no UTF-8: {error}") from None


def _explanation_fields(explanation: Explanation) -> dict[str, object]:
    return {
        "relation": explanation.relation,
        "verdict": explanation.verdict,
        "jaccard": round(explanation.jaccard, 4),
        "containment": round(explanation.containment, 4),
        "hamming": explanation.hamming,
        "fingerprints": [f"{fingerprint:016x}" for fingerprint in explanation.fingerprints],
        "differing_bits": explanation.differing_bits,
        "cosine": round(explanation.cosine, 4),
        "grams": list(explanation.grams),
        "idf_epoch": explanation.epoch,
        "shared_words": [_word_fields(word) for word in explanation.shared_words],
        "differing_words": [_word_fields(word) for word in explanation.differing_words],
    }


def _word_fields(word: WeightedWord) -> dict[str, object]:
    return {"word": word.word, "weights": [round(weight, 5) for weight in word.weights]}


def _print_explanation(explanation: Explanation, names: tuple[str, str]) -> None:
    first, second = (f"{fingerprint:064b}" for fingerprint in explanation.fingerprints)
    marks = "".join("^" if a != b else " " for a, b in zip(first, second, strict=True))
    verdict = f"[bold green]{explanation.relation}[/]" if explanation.relation else "[bold]not a duplicate[/]"
    out.print(f"{verdict}  {escaped(explanation.verdict)}")
    out.print(
        f"\nJaccard      {explanation.jaccard:.4f}   of {explanation.grams[0]} and {explanation.grams[1]} n-grams"
    )
    out.print(f"containment  {explanation.containment:.4f}")
    out.print(f"cosine       {explanation.cosine:.4f}   of the bit sums")
    out.print(f"Hamming      {explanation.hamming:6d}   bits {explanation.differing_bits}")
    out.print(f"\n{first}  {explanation.fingerprints[0]:016x}  {escaped(names[0])}", soft_wrap=True)
    out.print(f"{second}  {explanation.fingerprints[1]:016x}  {escaped(names[1])}", soft_wrap=True)
    out.print(f"{marks}\n")
    out.print(_words_table("heaviest shared words", explanation.shared_words, names))
    out.print(_words_table("heaviest differing words", explanation.differing_words, names))


def _words_table(title: str, words: list[WeightedWord], names: tuple[str, str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("word")
    for name in names:
        table.add_column(escaped(name), justify="right")
    for word in words:
        table.add_row(escaped(word.word), *(f"{weight:.4f}" if weight else "" for weight in word.weights))
    return table
