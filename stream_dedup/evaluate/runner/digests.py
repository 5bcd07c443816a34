"""What a result depends on, as one short text that differs for other articles, other options or other code.

Knows labelled sets and the sources of this package; knows nothing of where results are kept.
"""

import hashlib
from functools import cache
from pathlib import Path

import orjson

from stream_dedup.evaluate.labelled import LabelledSet

_PACKAGE = Path(__file__).parents[2]
# Code that results do not depend on: after a change to a plot, nobody should have to compute for an hour again.
_APART = ("evaluate/report", "evaluate/runner", "evaluate/findings.py", "stream", "observe", "planner", "cli")


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
    """Return the digest of the sources that a result depends on."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        if not path.relative_to(_PACKAGE).as_posix().startswith(_APART):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
