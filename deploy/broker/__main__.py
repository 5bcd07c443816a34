"""Knows the command line: run a broker in the foreground, fetch its jars, or renew their lock.

Does not know how any of the three is done.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from deploy.broker import BrokerStartError, BrokerUnreachableError, JarError, KafkaBroker, kafka_jars
from deploy.broker.jars import renew_lock

if TYPE_CHECKING:
    from types import FrameType


def main() -> int:
    """Run the command line and return the exit status."""
    options = _options()
    try:
        if options.renew_lock:
            print(f"locked {len(renew_lock().jars)} jars")
        elif options.fetch:
            print(f"{len(kafka_jars())} jars are in place")
        else:
            return _serve(options.data_dir)
    except (BrokerStartError, BrokerUnreachableError, JarError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.broker", description=main.__doc__)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--fetch", action="store_true", help="only fetch and verify the jars")
    action.add_argument("--renew-lock", action="store_true", help="resolve the jars anew and lock them")
    parser.add_argument("--data-dir", type=Path, help="keep the data here (default: temporary)")
    return parser.parse_args()


def _serve(data_dir: Path | None) -> int:
    """Run a broker until Ctrl-C, SIGTERM, or its own end."""
    # SIGINT too: a shell starts its background jobs with Ctrl-C ignored, and would leave this one behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with KafkaBroker(data_dir=data_dir) as broker:
            print(broker.bootstrap, flush=True)
            status = broker.wait()
            print(f"error: the broker ended by itself with status {status}", file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0


def _interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
