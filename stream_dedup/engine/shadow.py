"""Where two engines that judge the same stream disagree.

Knows decisions; knows nothing of where the engines come from or where disagreements are sent.
"""

from collections.abc import Mapping
from enum import StrEnum
from hashlib import blake2b

import orjson

from stream_dedup.article import Decision
from stream_dedup.output_fields import fingerprint_hex, iso, origin_json, rounded, scope_json

_HASHES = 1 << 64


class Disagreement(StrEnum):
    """How the decision of the shadow differs from the one in force."""

    DUPLICATE = "duplicate"  # a duplicate in the shadow, unique in force
    UNIQUE = "unique"  # unique in the shadow, a duplicate in force
    RELATION = "relation"  # linked in both by different relations, or linked in only one
    ORIGINAL = "original"  # linked to the cluster of another article


def disagreement_of(live: Decision, shadow: Decision) -> Disagreement | None:
    """Return how two decisions on an article differ; None if they do not."""
    if live.unique != shadow.unique:
        return Disagreement.UNIQUE if shadow.unique else Disagreement.DUPLICATE
    links = live.link, shadow.link
    if links[0] is None or links[1] is None:
        return None if links[0] is links[1] else Disagreement.RELATION
    if links[0].relation is not links[1].relation:
        return Disagreement.RELATION
    return None if links[0].duplicate_of == links[1].duplicate_of else Disagreement.ORIGINAL


def is_sampled(name: str, share: float) -> bool:
    """Tell whether an article belongs to a sample of a given share: the same articles wherever this is asked.

    Args:
        name: name of the article.
        share: share of the articles that are sampled, 0 to 1.
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) < share * _HASHES


def disagreement_json(found: Disagreement, live: Decision, shadow: Decision, decided_ms: int) -> bytes:
    """Return a disagreement as JSON: the value of a message on the shadow's topic.

    Args:
        found: the kind of disagreement.
        live: the decision in force.
        shadow: the decision of the shadow.
        decided_ms: when it was decided, milliseconds since 1970 in UTC.
    """
    article = live.article
    return orjson.dumps(
        {
            "id": article.id,
            "disagreement": found,
            "live": _told(live),
            "shadow": _told(shadow),
            "source": article.source,
            **origin_json(article.origin),
            "decided_at": iso(decided_ms),
            **scope_json(article.scope),
        }
    )


def _told(decision: Decision) -> Mapping[str, object]:
    link = decision.link
    return {
        "decision": decision.verdict,
        "relation": link.relation if link else None,
        "duplicate_of": link.duplicate_of if link else None,
        "matched": link.matched if link else None,
        "jaccard": rounded(link.jaccard) if link else None,
        "containment": rounded(link.containment) if link else None,
        "hamming": link.hamming if link else None,
        "fingerprint": fingerprint_hex(decision.fingerprint),
    }
