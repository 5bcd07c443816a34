"""What the service is compared with: a segmenter, two in-memory near-duplicate indexes, its own engine, its file mode.

Knows the loop that users of each would write; knows nothing of Kafka.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import rjieba

from stream_dedup import Article, Deduplicator
from stream_dedup.settings import Settings, load_settings
from tests.benchmarks.throughput.articles import decoded, read_articles, write_articles
from tests.benchmarks.throughput.cores import pinned
from tests.stream.arguments import REPOSITORY, clean_environment, set_flags

PERMUTATIONS = 128
BATCH = 512
_FILE_START = 10  # a tenth of the articles is used to time the start of `stream-dedup dedup`


@dataclass(frozen=True, slots=True)
class Timed:
    """One run of a reference.

    Attributes:
        rate: articles per second.
        copies: number of articles judged to be copies; None if it does not look for copies.
    """

    rate: float
    copies: int | None = None


Loop = Callable[[Sequence[Article], Settings], int | None]


def grams_of(text: str, size: int) -> set[str]:
    """Return the character n-grams of a text; a shorter text is a single one."""
    return {text[i : i + size] for i in range(max(1, len(text) - size + 1))}


def _segment(articles: Sequence[Article], _settings: Settings) -> None:
    for article in articles:
        rjieba.cut(article.body)


def _datasketch(articles: Sequence[Article], settings: Settings) -> int:
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415  # an optional extra

    index = MinHashLSH(threshold=settings.verify.near_jaccard, num_perm=PERMUTATIONS)
    grams = ([gram.encode() for gram in grams_of(article.body, settings.sketch.gram)] for article in articles)
    copies = 0
    for number, signature in enumerate(MinHash.generator(grams, num_perm=PERMUTATIONS)):
        if index.query(signature):
            copies += 1
        else:
            index.insert(number, signature)
    return copies


def _gaoya(articles: Sequence[Article], settings: Settings) -> int:
    from gaoya.minhash import MinHashStringIndex  # noqa: PLC0415  # an optional extra

    index = MinHashStringIndex(
        jaccard_threshold=settings.verify.near_jaccard,
        num_bands=None,
        band_size=None,
        num_hashes=PERMUTATIONS,
        analyzer="char",
        ngram_range=(settings.sketch.gram, settings.sketch.gram),
    )
    copies = 0
    for number, article in enumerate(articles):
        if index.query(article.body):
            copies += 1
        else:
            index.insert_document(number, article.body)
    return copies


def _engine(articles: Sequence[Article], settings: Settings) -> int:
    copies = 0
    with Deduplicator(settings=settings) as engine:
        for start in range(0, len(articles), BATCH):
            copies += sum(not decision.unique for decision in engine.add_batch(articles[start : start + BATCH]))
    return copies


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference.

    Attributes:
        name: its name in the tables.
        does: what it does with each article.
        loop: runs over all articles, on one core; None for `stream-dedup dedup`, a process on all cores.
        package: the package of the extra `peers` that it needs; empty for none.
    """

    name: str
    does: str
    loop: Loop | None
    package: str = ""

    @property
    def missing(self) -> bool:
        """Whether its package is not installed."""
        return bool(self.package) and find_spec(self.package) is None

    def timed(self, path: Path, flags: Sequence[str]) -> Timed:
        """Time it in a separate process.

        Args:
            path: file of articles, JSONL.
            flags: settings, as `group.name=value`.
        """
        if self.loop is None:
            return _dedup(path, flags)
        # Spawned: a fork would inherit the threads' locks of this process.
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return process.submit(_timed, self.loop, path, flags).result()


REFERENCES = (
    Reference("rjieba.cut", "segments, one core", _segment),
    Reference("datasketch", f"MinHashLSH, {PERMUTATIONS} permutations, one core", _datasketch, "datasketch"),
    Reference("gaoya", f"MinHashStringIndex, {PERMUTATIONS} permutations, one core", _gaoya, "gaoya"),
    Reference("engine", f"Deduplicator in memory, batches of {BATCH}, one core", _engine),
    Reference("dedup", "stream-dedup dedup over a file, all cores", None),
)


def _timed(loop: Loop, path: Path, flags: Sequence[str]) -> Timed:
    """Time a loop on one core, after a warm-up with some articles that reads dictionaries and loads kernels."""
    settings = load_settings(flags=flags)
    with pinned(1):
        articles = decoded(read_articles(path), settings.input)
        loop(articles[:BATCH], settings)
        began = time.perf_counter()
        copies = loop(articles, settings)
        return Timed(len(articles) / (time.perf_counter() - began), copies)


def _dedup(path: Path, flags: Sequence[str]) -> Timed:
    """Time the command; the time for its start and the first tenth of the articles is subtracted."""
    articles = read_articles(path)
    start = len(articles) // _FILE_START
    with tempfile.TemporaryDirectory() as folder:
        first = write_articles(Path(folder) / "first.jsonl", articles[:start])
        start_seconds, _ = _command_seconds(first, Path(folder) / "start", flags)
        seconds, copies = _command_seconds(path, Path(folder) / "all", flags)
    return Timed((len(articles) - start) / (seconds - start_seconds), copies)


def _command_seconds(path: Path, out: Path, flags: Sequence[str]) -> tuple[float, int]:
    command = [sys.executable, "-m", "stream_dedup", "dedup", str(path), "--out", str(out), *set_flags(flags)]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=REPOSITORY, env=clean_environment())
    seconds = time.perf_counter() - began
    return seconds, len(read_articles(out / "links.jsonl"))
