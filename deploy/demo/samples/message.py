"""What a message of the sample stream is, and how an article becomes the JSON of one.

Knows the fields and the ways to write a time; nothing of where texts come from or of their order.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from deploy.demo.samples.corpus import Site, phrases
from deploy.demo.samples.operators import Text

_SHARE_WITH_EXTRAS = 0.3


@dataclass(frozen=True, slots=True)
class Sample:
    """One message and what is known about it.

    Attributes:
        key: key of the message.
        value: value of the message; None is a tombstone.
        kind: 'original', 'event-pair', 'bulletin', 'redelivery', 'broken' or the name of an operator.
        id: the article's id; None if the message has no usable one.
        repost_of: id of the article that this one copies; its own id for a redelivery.
        dead_reason: why the message cannot be judged; None if it can.
    """

    key: bytes | None
    value: bytes | None
    kind: str
    id: str | None
    repost_of: str | None = None
    dead_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """An article as one site published it.

    Attributes:
        id: the article's id.
        text: title and body.
        site: who published it.
        moment: when; timezone-aware.
        omit: fields that the message lacks.
    """

    id: str
    text: Text
    site: Site
    moment: datetime
    omit: Collection[str] = ()


def encode(publication: Publication, rng: Random) -> bytes:
    """Return the JSON of an article, in UTF-8 on one line."""
    site = publication.site
    fields: dict[str, object] = {
        "id": publication.id,
        "title": publication.text.title,
        "body": publication.text.body,
        "url": _url(publication, rng),
        "source": site.name,
        "published_at": _written(publication.moment, rng),
    }
    if rng.random() < _SHARE_WITH_EXTRAS:
        fields |= rng.choice(phrases()["extras"])
    kept = {name: value for name, value in fields.items() if name not in publication.omit}
    return json.dumps(kept, ensure_ascii=site.escaped).encode()


def _url(publication: Publication, rng: Random) -> str:
    number = rng.randrange(10**6, 10**7)
    return f"https://{publication.site.domain}/{publication.moment:%Y/%m/%d}/{number}.html"


def _written(moment: datetime, rng: Random) -> str | int:
    """Write a time as crawlers do: ISO 8601 with an offset or Z, epoch seconds, or epoch milliseconds."""
    seconds = int(moment.timestamp())
    in_utc = moment.astimezone(UTC).isoformat(timespec="seconds")
    forms = (moment.isoformat(timespec="seconds"), in_utc.replace("+00:00", "Z"), seconds, seconds * 1000)
    return rng.choice(forms)
