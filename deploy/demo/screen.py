"""The terminal: steps with a spinner and a tick, and the bars of the stream.

Knows rich and the width; knows nothing of what the steps do.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.status import Status
from rich.text import Text

from deploy.demo.outcome import Outcome

WIDTH = 100
_BAR_WIDTH = 24


def make_console() -> Console:
    """Return a console of at most 100 columns; of exactly 100 if the output is not a terminal."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Chinese shows question marks
    console = Console(highlight=False)
    return Console(highlight=False, width=min(console.width, WIDTH) if console.is_terminal else WIDTH)


class Step:
    """One step: what is being done, and its result.

    Args:
        status: the spinner.
        doing: what is being done.
    """

    def __init__(self, status: Status, doing: str) -> None:
        self._status = status
        self._doing = doing
        self.result = doing

    def tell(self, detail: str) -> None:
        """Show how far it is."""
        self._status.update(Text(f"{self._doing}: {detail}" if detail else self._doing))


@contextmanager
def step(console: Console, doing: str) -> Iterator[Step]:
    """Show a spinner during a step, and after it its result with a tick and the seconds it took."""
    started = time.monotonic()
    with console.status(Text(doing)) as status:
        current = Step(status, doing)
        yield current
    seconds = Text(f"{time.monotonic() - started:5.1f} s", "dim")
    console.print(Text.assemble(("✔ ", "bold green"), f"{current.result:<52}", seconds))


class StreamBars:
    """Two bars: messages in, and messages out.

    Args:
        console: where they are shown.
        outcome: what has come out.
    """

    def __init__(self, console: Console, outcome: Outcome) -> None:
        self._outcome = outcome
        self._progress = Progress(
            TextColumn("  {task.description}"),
            BarColumn(_BAR_WIDTH),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
        )
        count = len(outcome.samples)
        self._sent = self._progress.add_task("messages in ", total=count, note="")
        self._out = self._progress.add_task("messages out", total=count, note="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, sent: int) -> None:
        """Show how many have gone in, and what has come out."""
        outcome = self._outcome
        counts = (
            f"[green]{len(outcome.unique)} unique[/], [yellow]{len(outcome.links)} links[/], "
            f"[red]{len(outcome.dead)} dead letters[/]"
        )
        self._progress.update(self._sent, completed=sent)
        self._progress.update(self._out, completed=len(outcome), note=counts)
