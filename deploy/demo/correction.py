"""A withdrawal after the stream: the most copied article is withdrawn, and then copied once more.

Knows what is sent and which outputs show the result; knows nothing of how another canonical article is chosen.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from deploy.demo.clusters import Cluster, largest
from deploy.demo.outcome import Link, Outcome
from deploy.demo.samples import Sample
from deploy.demo.stream import StreamFailedError, Watch, stream_more
from deploy.demo.topics import Topics


@dataclass(frozen=True, slots=True)
class Correction:
    """The result of the withdrawal.

    Attributes:
        withdrawn: the article, as a link to what its cluster is called since then.
        late: the link of the copy that came after it.
    """

    withdrawn: Link
    late: Link


def withdraw_most_copied(
    bootstrap: str, topics: Topics, outcome: Outcome, clusters: Mapping[str, Cluster], watch: Watch
) -> Correction:
    """Withdraw the most copied article, send a copy of it, and return the result of both.

    Args:
        bootstrap: address of the broker.
        topics: those of the demonstration.
        outcome: of the stream before.
        clusters: of the stream before.
        watch: called with the number of messages sent.

    Raises:
        StreamFailedError: the broker refuses, or there is no link for one of them.
    """
    first = len(outcome.samples)
    article = largest(clusters)[0].canonical
    after = stream_more(bootstrap, topics, outcome, [_tombstone(article), _late_copy(article, outcome)], watch)
    withdrawn, late = after.links.get(first), after.links.get(first + 1)
    if withdrawn is None or withdrawn.relation != "withdrawn" or late is None:
        raise StreamFailedError(f"there is no link for the withdrawal of {article}, or for the copy that came after it")
    return Correction(withdrawn, late)


def _tombstone(article: str) -> Sample:
    return Sample(key=article.encode(), value=None, kind="withdrawal", id=article)


def _late_copy(article: str, outcome: Outcome) -> Sample:
    """Return the same text from another site, at an address of its own."""
    number = next(number for number, name in outcome.unique.items() if name == article)
    name = f"{article}.late"
    fields = {
        **json.loads(outcome.samples[number].value or b""),
        "id": name,
        "url": f"https://late.example/{name}.html",
    }
    return Sample(name.encode(), json.dumps(fields).encode(), kind="verbatim", id=name, repost_of=article)
