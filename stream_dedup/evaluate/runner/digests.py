"""What a result depends on, as one short text that differs for other articles, other options or other code.

Knows labelled sets, the files of this package and the libraries it computes with; knows nothing of where results are
kept, or of single segmenters.
"""

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import orjson

from stream_dedup.evaluate.labelled import LabelledSet
from stream_dedup.text.lexicon import shipped_list

_PACKAGE = Path(__file__).parents[2]
# Results depend on these and on all that they import. Segmenters are loaded by name, so no import leads to them.
_COMPUTING = ("evaluate/runner/jobs.py", "evaluate/registry.py", "evaluate/segmenters/*.py")
_LISTS = ("boilerplate.txt", "marker_words.txt", "stop_words.txt")
_OTHER_DATA = ("evaluate/segmenters/java.lock.toml", "fingerprint/no_places.txt", "fingerprint/place_names.txt")
# Libraries that every result may depend on; those of one segmenter are its own, see `Segmenter.versions`.
_LIBRARIES = ("jieba", "numba", "numpy", "opencc", "rjieba", "scikit-learn", "scipy")


def digest_of(*parts: object) -> str:
    """Return the digest of anything that JSON can hold, 16 hexadecimal digits."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def digest_of_set(labelled: LabelledSet) -> str:
    """Return the digest of articles and labels, the same for equal sets; the name of the set does not count."""
    digest = hashlib.sha256(labelled.overlapping.tobytes())
    for one in labelled.articles:
        article = one.article
        where = (article.url, article.source, article.scope, article.published_ms)
        strength = None if one.strength is None else float(one.strength)  # 2 and 2.0 are equal, but not as JSON
        labels = (one.cluster, one.original, one.kind, strength)
        digest.update(orjson.dumps([article.id, article.title, article.body, *where, *labels]))
    return digest.hexdigest()[:16]


@cache
def digest_of_code() -> str:
    """Return the digest of the sources and lists that a result depends on, and of the versions of libraries."""
    digest = hashlib.sha256()
    for path in [*sorted(sources()), *data()]:
        digest.update(path.read_bytes())
    return digest_of(digest.hexdigest(), sys.version_info[:2], [version(name) for name in _LIBRARIES])


def data() -> list[Path]:
    """Return the files that these sources read: the lists that come with the package, and which jars there are."""
    return [*map(shipped_list, _LISTS), *(_PACKAGE / name for name in _OTHER_DATA)]


def sources() -> set[Path]:
    """Return the sources of this package that a result depends on.

    The others are left out: after a change to a plot, nobody should have to compute for an hour again.
    """
    found: set[Path] = set()
    waiting = [path for pattern in _COMPUTING for path in _PACKAGE.glob(pattern)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(path)
    return found


def _imported(path: Path) -> Iterator[Path]:
    """Yield the sources of this package that a source imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:  # a module, or something in one
                yield from _on_the_way(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from _on_the_way(alias.name)


def _on_the_way(name: str) -> Iterator[Path]:
    """Yield the sources that Python runs to import a name: those of its packages, and its module."""
    top, *parts = name.split(".")
    if top != _PACKAGE.name:
        return
    for end in range(len(parts) + 1):
        place = _PACKAGE.joinpath(*parts[:end])
        yield from (path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file())
