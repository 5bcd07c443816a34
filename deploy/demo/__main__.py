"""`python -m deploy.demo`: the real service on a real Kafka, shown on the terminal.

Knows the order of the steps, signals and exit codes; knows nothing of how a step is done.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import KafkaException
from rich.console import Console
from rich.text import Text

from deploy.broker import BrokerStartError, BrokerUnreachableError, JarError, kafka_for_session, kafka_jars
from deploy.broker.session import BOOTSTRAP_VARIABLE
from deploy.demo.clusters import Cluster, ClusterTopic
from deploy.demo.correction import Correction, withdraw_most_copied
from deploy.demo.detection import Detection
from deploy.demo.measures import Measures
from deploy.demo.outcome import Outcome
from deploy.demo.report import print_places, print_report
from deploy.demo.samples import sample_stream
from deploy.demo.screen import StreamBars, make_console, step
from deploy.demo.service import Service, ServiceFailedError
from deploy.demo.stream import StreamFailedError, stream_samples
from deploy.demo.topics import Topics, demo_topics
from deploy.interruption import ignore_signals, interruptible

EXIT_FAILED, EXIT_INTERRUPTED = 1, 128 + signal.SIGINT
_LOOK_SECONDS = 0.5
_CLUSTERS_SECONDS = 10.0

_FAILURES = (
    BrokerStartError,
    BrokerUnreachableError,
    JarError,
    KafkaException,
    ServiceFailedError,
    StreamFailedError,
)


def main() -> int:
    """Stream sample articles through the real service on a real Kafka, and show the results."""
    options = _options()
    console = make_console()
    try:
        with interruptible(once=True):  # the cleanup is bounded, and takes two seconds
            return _demonstrate(console, seed=options.seed, stay=options.stay)
    except KeyboardInterrupt:
        console.print("interrupted; nothing is left running")
        return EXIT_INTERRUPTED
    except _FAILURES as error:
        console.print(Text.assemble(("✘ ", "bold red"), str(error)))
        return EXIT_FAILED


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.demo", description=main.__doc__)
    parser.add_argument("--stay", action="store_true", help="keep everything running until Ctrl-C")
    parser.add_argument("--seed", type=int, default=20, help="seed of the samples (default: %(default)s)")
    return parser.parse_args()


@contextmanager
def _undisturbed_end() -> Iterator[None]:
    """Ignore signals from the end of this context on, so that the contexts around it end in order."""
    try:
        yield
    finally:
        ignore_signals()


def _demonstrate(console: Console, *, seed: int, stay: bool) -> int:
    started = time.monotonic()
    outcome = Outcome(sample_stream(seed))
    console.print(Text("stream_dedup: news and their reposts, judged by the real service on a real Kafka", "bold"))
    with _broker(console) as bootstrap, demo_topics(bootstrap) as topics:
        _run_service(console, bootstrap, topics, outcome, stay=stay)
    return _verdict(console, outcome, time.monotonic() - started)


@contextmanager
def _broker(console: Console) -> Iterator[str]:
    if BOOTSTRAP_VARIABLE not in os.environ:
        kafka_jars()  # before the spinner: a first fetch shows its own bar
    with ExitStack() as stack:
        with step(console, "starting Kafka") as current:
            bootstrap = stack.enter_context(kafka_for_session())
            current.result = f"Kafka answers at {bootstrap}"
        yield bootstrap


def _run_service(console: Console, bootstrap: str, topics: Topics, outcome: Outcome, *, stay: bool) -> None:
    """Run the service from its start to its end, with the stream and the report between."""
    with (
        TemporaryDirectory(prefix="stream-dedup-demo-") as folder,
        Service(bootstrap, topics, Path(folder), page=stay) as service,
        _undisturbed_end(),
    ):
        with step(console, "starting the service") as current:
            service.wait_until_ready(current.tell)
            current.result = f"service is ready, see {service.url}/readyz"
        _stream(console, bootstrap, topics, outcome, service)
        measures = Measures(service.metrics())
        clusters = ClusterTopic(bootstrap, topics.clusters).read_all(outcome.copies, _CLUSTERS_SECONDS)
        correction = _correct(console, bootstrap, topics, outcome, clusters, service)
        if stay:
            service.wait_for_page()
        print_report(console, outcome, Detection(outcome), clusters, correction, measures)
        print_places(console, bootstrap, topics, service, stay=stay)
        console.print()
        if stay:
            _stay(console, service)
        with step(console, "stopping the service") as current:
            service.end()
            current.result = "service ended on SIGTERM with exit code 0"


def _stream(console: Console, bootstrap: str, topics: Topics, outcome: Outcome, service: Service) -> None:
    with StreamBars(console, outcome) as bars:

        def watch(sent: int) -> None:
            service.check()
            bars.update(sent)

        stream_samples(bootstrap, topics, outcome, watch)


def _correct(
    console: Console,
    bootstrap: str,
    topics: Topics,
    outcome: Outcome,
    clusters: Mapping[str, Cluster],
    service: Service,
) -> Correction:
    with step(console, "withdrawing the most copied article") as current:
        correction = withdraw_most_copied(bootstrap, topics, outcome, clusters, lambda _: service.check())
        current.result = f"{correction.withdrawn.id} is withdrawn, and copied once more"
    return correction


def _verdict(console: Console, outcome: Outcome, seconds: float) -> int:
    """Say how it ended, and return the exit code."""
    if not outcome.complete:
        fault = "the counts do not agree"
    elif not outcome.as_labelled:
        fault = "the dead letters are not the broken messages, or do not have the reasons of their labels"
    else:
        console.print(
            Text.assemble(("✔ ", "bold green"), f"the counts agree; nothing is left behind; {seconds:.0f} s in all")
        )
        return 0
    console.print(Text.assemble(("✘ ", "bold red"), fault))
    return EXIT_FAILED


def _stay(console: Console, service: Service) -> None:
    """Wait for Ctrl-C or SIGTERM, or the end of the service."""
    try:
        console.print(Text("Everything keeps running. Press Ctrl-C to end it.", "bold"))
        while True:
            service.check()
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        console.print()


if __name__ == "__main__":
    sys.exit(main())
