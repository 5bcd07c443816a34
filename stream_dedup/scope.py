"""Scopes: articles are compared, and ids and URLs mean something, within a scope alone.

Knows how a scope and an id become one name, and a scope a number; knows nothing of where a scope comes from.
"""

from functools import lru_cache
from hashlib import blake2b

SEPARATOR = "\x1f"  # Unicode's unit separator: in no scope and no id, so that two names never meet
MAX_SCOPE_BYTES = 256
_CACHED = 1 << 14  # hashes kept, of scopes that came lately


def name_of(scope: str, article_id: str) -> str:
    """Return the name under which an article is known: its id, behind its scope if it has one."""
    return f"{scope}{SEPARATOR}{article_id}" if scope else article_id


def id_of(name: str) -> str:
    """Return the id in a name."""
    return name.rpartition(SEPARATOR)[2]


def scope_of(name: str) -> str:
    """Return the scope in a name, empty where there is none."""
    return name.rpartition(SEPARATOR)[0]


@lru_cache(_CACHED)
def scope_hash(scope: str) -> int:
    """Return the number of a scope: 64 bits of BLAKE2b; 0 for none."""
    return int.from_bytes(blake2b(scope.encode(), digest_size=8).digest()) or 1 if scope else 0


def check_name(scope: str, article_id: str, most_bytes: int) -> None:
    """Check a scope and an id.

    Args:
        scope: may be empty.
        article_id: may not.
        most_bytes: that the two of them may have, with the separator, in UTF-8.

    Raises:
        ValueError: one of them is too long, holds the separator or cannot be UTF-8, or the id is empty.
    """
    try:
        size, before = len(article_id.encode()), len(name_of(scope, "").encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"the id {article_id[:40]!r}{_of_scope(scope)} cannot be UTF-8: {error.reason}") from None
    if scope:
        _check_scope(scope)
    if not 1 <= size <= most_bytes - before:
        raise ValueError(f"the id {article_id[:40]!r} has {size} bytes, not 1 to {most_bytes - before}")
    if SEPARATOR in article_id:
        raise ValueError(f"the id {article_id[:40]!r} has a U+001F, which stands between scope and id")


def _of_scope(scope: str) -> str:
    return f" of the scope {scope[:40]!r}" if scope else ""


def _check_scope(scope: str) -> None:
    size = len(scope.encode())
    if size > MAX_SCOPE_BYTES:
        raise ValueError(f"the scope {scope[:40]!r} has {size} bytes, at most {MAX_SCOPE_BYTES} are allowed")
    if SEPARATOR in scope:
        raise ValueError(f"the scope {scope[:40]!r} has a U+001F, which stands between scope and id")
