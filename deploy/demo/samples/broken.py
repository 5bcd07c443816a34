"""Messages that cannot become an article, one for each way in which crawlers fail.

Knows what is wrong with each and the reason to expect; nothing of the articles around them.
"""

import json

from deploy.demo.samples.corpus import phrases
from deploy.demo.samples.message import Sample

_GIANT_CHARS = 1_200_001  # the service judges bodies of up to a million characters by default
_IMAGE = "data:image/png;base64,"


def broken_messages(published_at: str) -> list[Sample]:
    """Return the broken messages; all but the two with broken times were published at `published_at`."""
    whole = _fields(published_at)
    without_body = {name: value for name, value in whole.items() if name != "body"}
    text = _json(whole)
    return [
        _broken("invalid_json", text[: len(text) * 2 // 3].encode(), name="cut-off"),
        _broken("invalid_utf8", text.encode("gbk"), name="gbk"),
        _altered("empty_body", whole, "empty", body=""),
        _altered("empty_body", whole, "blank", body=" \u3000\n\t\u00a0"),
        _altered("missing_field", without_body, "no-body"),
        _altered("wrong_type", whole, "number", body=20261018),
        _broken("wrong_type", _json({**whole, "id": {"site": 3, "doc": 91}}).encode(), name="id-object"),
        _broken("not_an_object", _json([whole, whole]).encode(), name="array"),
        _broken("unknown_article", None, name="tombstone"),
        _altered("invalid_time", whole, "nonsense-time", published_at=phrases()["broken"]["time"]),
        _altered("future_time", whole, "far-future", published_at="2099-01-01T00:00:00+08:00"),
        _altered("too_large", whole, "giant", body=_IMAGE.ljust(_GIANT_CHARS, "A")),
    ]


def _fields(published_at: str) -> dict[str, object]:
    book = phrases()["broken"]
    return {
        "id": "broken",
        "title": book["title"],
        "body": book["body"],
        "url": "https://shiqiao.example/broken.html",
        "source": phrases()["sites"][4]["name"],
        "published_at": published_at,
    }


def _altered(reason: str, fields: dict[str, object], name: str, **changes: object) -> Sample:
    """Break one field of a message that keeps a usable id."""
    article_id = f"broken-{name}"
    named = {**fields, **changes, "id": article_id, "url": f"https://shiqiao.example/{article_id}.html"}
    return _broken(reason, _json(named).encode(), name=name, article_id=article_id)


def _broken(reason: str, value: bytes | None, *, name: str, article_id: str | None = None) -> Sample:
    return Sample(key=f"broken-{name}".encode(), value=value, kind="broken", id=article_id, dead_reason=reason)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
