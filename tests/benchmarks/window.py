"""An endless stream in compressed time: disk, memory and index until they stop growing.

Knows the engine and its store; asserts nothing. Texts are random, and a share of them are copies.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from stream_dedup import Article, Deduplicator, EngineSettings
from stream_dedup.index.stores.rocks import RocksStore

_DAY_MS = 86_400_000
_BATCH = 512
_START_MS = 1_790_000_000_000
_SENTENCES = 12
_COPIES = 0.45

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Sample:
    """The size of the state at one moment.

    Attributes:
        windows: length of the stream so far, in windows.
        articles: number judged so far.
        entries: number of entries stored.
        disk_bytes: size of the database, without its log, which RocksDB limits to 256 MB.
        resident_bytes: resident memory of the process.
        rate: articles per second since the previous sample.
    """

    windows: float
    articles: int
    entries: int
    disk_bytes: int
    resident_bytes: int
    rate: float


def stream(seed: int, days: float, per_window: int) -> Iterator[Article]:
    """Yield articles endlessly, evenly over time: random texts, 45% of them copies of one of the last 200."""
    chance = random.Random(seed)
    words = [chr(0x4E00 + chance.randrange(6_000)) + chr(0x4E00 + chance.randrange(6_000)) for _ in range(40_000)]
    recent: list[str] = []
    number = 0
    while True:
        number += 1
        if recent and chance.random() < _COPIES:
            body = chance.choice(recent) + f"（编辑：{chance.choice(words)}）"
        else:
            body = "。".join("".join(chance.choices(words, k=14)) for _ in range(_SENTENCES))
            recent = [*recent[-199:], body]
        yield Article(str(number), body, published_ms=_START_MS + round(number * days * _DAY_MS / per_window))


def run(windows: int, per_window: int, directory: Path) -> Iterator[Sample]:
    """Judge a stream of some windows, and yield a sample every quarter of a window."""
    settings = EngineSettings.model_validate({"window": {"days": 1.0}, "idf": {"epoch_articles": per_window}})
    # Buffers as small as the windows: with the service's buffers, everything would stay in memory and the log.
    store = RocksStore(directory, write_buffer_bytes=1 << 20)
    articles = stream(1, 1.0, per_window)
    with Deduplicator(settings=settings, store=store) as engine:
        engine.warm_up()
        done, began, every = 0, time.perf_counter(), per_window // 4
        sampled = 0
        while done < windows * per_window:
            engine.add_batch([next(articles) for _ in range(_BATCH)])
            done += _BATCH
            first = engine.progress.generations[0]
            if done - sampled >= every:
                seconds = time.perf_counter() - began
                yield Sample(
                    done / per_window,
                    done,
                    engine.progress.entries - first.first_entry,
                    sum(path.stat().st_size for path in directory.rglob("*.sst")),
                    psutil.Process().memory_info().rss,
                    (done - sampled) / seconds,
                )
                sampled, began = done, time.perf_counter()


def plot(samples: list[Sample], file: Path) -> None:
    """Draw disk, memory and entries against windows."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import, and needed only for the picture

    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    across = [sample.windows for sample in samples]
    for axis, name, values in (
        (axes[0], "entries kept", [sample.entries for sample in samples]),
        (axes[1], "state on disk, MB", [sample.disk_bytes / 1e6 for sample in samples]),
        (axes[2], "resident, MB", [sample.resident_bytes / 1e6 for sample in samples]),
    ):
        axis.plot(across, values)
        axis.set_ylabel(name)
        axis.set_ylim(bottom=0)
        axis.grid(visible=True, alpha=0.3)
    axes[2].set_xlabel("windows of the stream")
    figure.savefig(file, dpi=120)


def main() -> None:
    """Run it and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--windows", type=int, default=8, help="length of the stream in windows (default %(default)s)")
    parser.add_argument("--articles", type=int, default=20_480, help="articles per window (default %(default)s)")
    parser.add_argument("--out", type=Path, help="PNG file to draw")
    arguments = parser.parse_args()
    samples: list[Sample] = []
    console.print(f"{'windows':>8} {'articles':>9} {'entries':>8} {'disk MB':>8} {'RSS MB':>7} {'articles/s':>10}")
    with tempfile.TemporaryDirectory(prefix="window-") as directory:
        for sample in run(arguments.windows, arguments.articles, Path(directory) / "state"):
            samples.append(sample)
            console.print(
                f"{sample.windows:8.2f} {sample.articles:9d} {sample.entries:8d} {sample.disk_bytes / 1e6:8.1f} "
                f"{sample.resident_bytes / 1e6:7.0f} {sample.rate:10.0f}"
            )
    if arguments.out:
        plot(samples, arguments.out)
        console.print(f"drawn: {arguments.out}")


if __name__ == "__main__":
    main()
