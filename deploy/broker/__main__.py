"""Knows the command line: run a broker in the foreground, or prepare its jars and its startup cache.

Does not know how either is done.
"""

import argparse
import sys
from pathlib import Path

from deploy.broker import BrokerStartError, JarError, KafkaBroker, kafka_jars, make_startup_cache
from deploy.interruption import interruptible


def main() -> int:
    """Run a Kafka broker until Ctrl-C or SIGTERM, and print its address."""
    options = _options()
    try:
        if options.fetch:
            print(f"{len(kafka_jars())} jars are in place")
            make_startup_cache()
            return 0
        return _serve(options.data_dir)
    except (BrokerStartError, JarError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.broker", description=main.__doc__)
    parser.add_argument(
        "--fetch", action="store_true", help="only fetch and verify the jars, and make the startup cache"
    )
    parser.add_argument("--data-dir", type=Path, help="keep the data here (default: temporary)")
    return parser.parse_args()


def _serve(data_dir: Path | None) -> int:
    """Run a broker until Ctrl-C, SIGTERM, or its own end."""
    # SIGINT too: a shell starts its background jobs with Ctrl-C ignored, and would leave this one behind.
    try:
        with interruptible(), KafkaBroker(data_dir=data_dir) as broker:
            print(broker.bootstrap, flush=True)
            status = broker.wait()
            print(f"error: the broker ended by itself with status {status}", file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
