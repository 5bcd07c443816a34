"""The formulas of the literature in plain Python: one text, one pair at a time."""

from collections import Counter
from collections.abc import Sequence

from stream_dedup.arrays import F32
from stream_dedup.article import Article
from stream_dedup.evaluate import registry

Words = Sequence[str]


def jaccard(a: Words, b: Words) -> float:
    """|A and B| / |A or B|."""
    both, either = set(a) & set(b), set(a) | set(b)
    return len(both) / len(either) if either else 0.0


def jaccard_shorter(a: Words, b: Words) -> float:
    """|A and B| / min(|A|, |B|)."""
    shorter = min(len(set(a)), len(set(b)))
    return len(set(a) & set(b)) / shorter if shorter else 0.0


def runs(items: Words, length: int) -> list[str]:
    """All runs of items; a shorter, non-empty text is a single run."""
    count = max(1, len(items) - length + 1) if items else 0
    return ["|".join(items[i : i + length]) for i in range(count)]


def kgram_improved(x: str, y: str, k: int) -> float:
    """The formula of doi 10.15888/j.cnki.csa.006123, one line per symbol."""
    in_x, in_y = Counter(runs(x, k)), Counter(runs(y, k))
    total_x, total_y = in_x.total(), in_y.total()
    agreeing = shared = 0.0
    for gram in in_x.keys() & in_y.keys():
        nx, ny = in_x[gram] / total_x, in_y[gram] / total_y
        e = (in_x[gram] + in_y[gram]) / (total_x + total_y)
        agreeing += min(nx, ny) / max(nx, ny) * e
        shared += e
    return agreeing / shared if shared else 0.0


def similarities(name: str, texts: Sequence[Words]) -> F32:
    """All similarities of texts by a registered algorithm; words are joined to bodies if it takes characters."""
    algorithm = registry.algorithms(["words"])[name]
    articles = [Article(str(i), "".join(words) or "。") for i, words in enumerate(texts)]
    features = algorithm.features(articles, [] if name.startswith("chars/") else texts)
    return algorithm.similarities(features, slice(0, len(texts)))
