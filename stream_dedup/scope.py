"""Scopes: articles are compared only within a scope, and ids and URLs are only meaningful within one.

Knows how a scope and an id become one name, and a scope a number; knows nothing of where a scope comes from.
"""

from functools import lru_cache
from hashlib import blake2b

SEPARATOR = "\x1f"  # Unicode's unit separator: allowed in no scope and no id, so names never collide
MAX_SCOPE_BYTES = 256
_MAX_NAME_BYTES = 65_519  # of scope and id; with the rest of a changelog key they make 65,535
_CACHED = 1 << 14  # hashes of recent scopes


def name_of(scope: str, article_id: str) -> str:
    """Return the name an article is stored under: its id, preceded by its scope if it has one."""
    return f"{scope}{SEPARATOR}{article_id}" if scope else article_id


def id_of(name: str) -> str:
    """Return the id in a name."""
    return name.rpartition(SEPARATOR)[2]


def scope_of(name: str) -> str:
    """Return the scope in a name, empty if there is none."""
    return name.rpartition(SEPARATOR)[0]


@lru_cache(_CACHED)
def scope_hash(scope: str) -> int:
    """Return the number of a scope: 64 bits of BLAKE2b; 0 for none."""
    return int.from_bytes(blake2b(scope.encode(), digest_size=8).digest()) or 1 if scope else 0


def name_fault(name: str, most_bytes: int | None = None, setting: str = "") -> str:
    """Return what is wrong with a scope or an id, as words that follow what it is called; empty if nothing is.

    Args:
        name: the scope or id; may be empty.
        most_bytes: maximum length in UTF-8; None for no limit.
        setting: name of the setting that sets the limit; empty if it is fixed.
    """
    if most_bytes is not None and (size := len(name.encode())) > most_bytes:
        limit = f": {setting} = {most_bytes} is the limit" if setting else f", at most {most_bytes} are allowed"
        return f"has {size} bytes{limit}"
    return "contains U+001F, which separates scope and id" if SEPARATOR in name else ""


def check_name(scope: str, article_id: str) -> None:
    """Check a scope and an id.

    Args:
        scope: may be empty.
        article_id: may not.

    Raises:
        ValueError: one of them is too long, contains the separator or cannot be encoded as UTF-8, or the id is empty.
    """
    try:
        size, before = len(article_id.encode()), len(name_of(scope, "").encode())
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the id {article_id[:40]!r}{_of_scope(scope)} cannot be encoded as UTF-8: {error.reason}"
        ) from None
    if scope and (fault := name_fault(scope, MAX_SCOPE_BYTES)):
        raise ValueError(f"the scope {scope[:40]!r} {fault}")
    most = _MAX_NAME_BYTES - before
    if not 1 <= size <= most:
        raise ValueError(f"the id {article_id[:40]!r} has {size} bytes, not 1 to {most}")
    if fault := name_fault(article_id):
        raise ValueError(f"the id {article_id[:40]!r} {fault}")


def _of_scope(scope: str) -> str:
    return f" of the scope {scope[:40]!r}" if scope else ""
