"""The command line: its commands, in the order of `--help`.

Knows the names and groups of the commands; knows nothing of what they do.
"""

import gc
from collections.abc import Callable
from typing import Annotated

import typer

from stream_dedup.cli.ask import api_command, article_command, cluster_command, similar_command, status_command
from stream_dedup.cli.config import config_command
from stream_dedup.cli.dedup import dedup_command
from stream_dedup.cli.evaluate import app as evaluate_app
from stream_dedup.cli.explain import explain_command
from stream_dedup.cli.plan import plan_command
from stream_dedup.cli.run import run_command
from stream_dedup.cli.state import app as state_app
from stream_dedup.cli.tail import tail_command
from stream_dedup.cli.terminal import name_standard_output, open_closed_streams, out, reporting_output_errors
from stream_dedup.version import __version__

# Between two garbage collections, instead of 700. Loading modules makes several times as many, none of them garbage;
# so does a batch, and all of its own become garbage at once.
_YOUNG_OBJECTS = 50_000

_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Deduplicate": {"run": run_command, "dedup": dedup_command},
    "Query": {
        "status": status_command,
        "tail": tail_command,
        "article": article_command,
        "cluster": cluster_command,
        "similar": similar_command,
        "explain": explain_command,
        "api": api_command,
    },
    "Set up and operate": {"config": config_command, "plan": plan_command},
}

app = typer.Typer(
    name="stream-dedup",
    help="Near-duplicate detection for streams of articles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # by default, brackets are tags, and lines break where the source does
    context_settings={"help_option_names": ["-h", "--help"]},
)
for panel, commands in _COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
app.add_typer(state_app, name="state", rich_help_panel="Set up and operate")
app.add_typer(evaluate_app, name="evaluate", rich_help_panel="Research")


def main() -> None:
    """Run the command line; `stream_dedup.__main__` calls it, with signals handled."""
    gc.set_threshold(_YOUNG_OBJECTS)
    open_closed_streams()
    name_standard_output()
    with reporting_output_errors():
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
