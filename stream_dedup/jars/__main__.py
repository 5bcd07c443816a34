"""The command that renews a lock file: `python -m stream_dedup.jars FILE`.

Knows its one argument; does not know how jars are resolved.
"""

from pathlib import Path
from typing import Annotated

import typer

from stream_dedup.jars.fetch import renew


def main(lock_file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, writable=True)]) -> None:
    """Resolve the roots of a lock file again, with all their dependencies, and write the jars' sums into it."""
    typer.echo(f"locked {len(renew(lock_file).jars)} jars")


if __name__ == "__main__":
    typer.run(main)
