"""Scopes as users of topics see them: by header or field, in keys, links, clusters and headers.

Knows messages and outputs; the rules themselves are tested on the engine.
"""

import json
from pathlib import Path

import pytest

from deploy.demo.samples.corpus import Form, base_texts
from tests.stream.messages import Headers, Incoming, article, produce
from tests.stream.records import Record, collect, read_topics
from tests.stream.service import Service, run_once
from tests.stream.topics import fresh_topics

pytestmark = pytest.mark.usefixtures("compiled")

_TEXT = next(text.body for text in base_texts() if text.form is Form.NEWS)
_COPY = f"本报讯 {_TEXT}"
_FLAGS = ("input.scope_header=tenant", "input.fields.scope=meta.channel")
_A: Headers = [("tenant", b"a")]
_B: Headers = [("tenant", "乙".encode())]


def _script() -> list[Incoming]:
    """Return the same story in three scopes: none, one named by a header, one named by a field or a header."""
    in_field = {"meta": {"channel": "乙"}}
    return [
        article("story", _TEXT),
        Incoming(article("story", _TEXT).value, headers=_A),
        article("story", _TEXT, **in_field),
        article("copy", _COPY),
        Incoming(article("copy", _COPY, **in_field).value, headers=_A),
        Incoming(article("copy", _COPY).value, headers=_B),
        Incoming(None, b"story", headers=_A),
        Incoming(json.dumps({"id": "story", "deleted": True, **in_field}).encode()),
        Incoming(article("again", _TEXT).value, headers=_A),
        Incoming(article("broken", _TEXT).value, headers=[("tenant", b"\xff")]),
        article("of another type", _TEXT, meta={"channel": []}),
    ]


def _keys(records: list[Record]) -> list[str]:
    return [(record.key or b"").decode() for record in records]


def _last(records: list[Record]) -> dict[str, object]:
    """Return the last record under each key: a scope, a canonical article and its copies, or nothing."""
    words = [(record, record.json()) if record.value is not None else (record, None) for record in records]
    shown = [one and (one.get("scope"), one["canonical"], one["copies"]) for _, one in words]
    return dict(zip(_keys(records), shown, strict=True))


def test_scopes_never_mix_on_the_topics(bootstrap: str, tmp_path: Path) -> None:
    """Each scope has its own unique article, links, clusters and withdrawals, under its own keys.

    The state is consistent afterwards, and agrees with its changelog.
    """
    topics, script = fresh_topics(bootstrap), _script()
    produce(bootstrap, topics.input, script)
    with Service(tmp_path, bootstrap, topics, *_FLAGS) as service:
        outputs = collect(bootstrap, topics, len(script), service)
        service.stop()
    settings = str(tmp_path / "stream-dedup.toml")
    verified = run_once("state", "verify", "--config", settings, *(one for flag in _FLAGS for one in ("--set", flag)))
    assert (verified.returncode, verified.stdout) == (0, "the state is consistent, and agrees with its changelog\n")
    assert _keys(outputs.unique) == ["story", "a\x1fstory", "乙\x1fstory"]
    assert [record.own("scope") for record in outputs.unique] == [None, "a", "乙"]
    assert [record.incoming_headers() for record in outputs.unique] == [[], _A, []]
    assert _keys(outputs.duplicates) == [
        *("copy", "a\x1fcopy", "乙\x1fcopy"),
        *("a\x1fstory", "乙\x1fstory", "a\x1fagain"),
    ]
    told = [record.json() for record in outputs.duplicates]
    assert [(one.get("scope"), one["id"], one["relation"], one["duplicate_of"]) for one in told] == [
        (None, "copy", "near", "story"),
        ("a", "copy", "near", "story"),
        ("乙", "copy", "near", "story"),
        ("a", "story", "withdrawn", "copy"),
        ("乙", "story", "withdrawn", "copy"),
        ("a", "again", "near", "copy"),
    ]
    assert [record.own("reason") for record in outputs.dead] == ["invalid_scope", "wrong_type"]
    assert _last(read_topics(bootstrap, [topics.clusters])[topics.clusters]) == {
        "story": (None, "story", 1),
        "a\x1fstory": None,
        "乙\x1fstory": None,
        "a\x1fcopy": ("a", "copy", 1),
        "乙\x1fcopy": ("乙", "copy", 0),
    }


def test_new_canonical_article_is_told_in_its_scope(bootstrap: str, tmp_path: Path) -> None:
    """A succession names the scope, under the old article's key in it; the same id elsewhere is unaffected."""
    topics = fresh_topics(bootstrap)
    script = [
        article("story", _TEXT),
        Incoming(article("story", _TEXT).value, headers=_A),
        Incoming(article("copy", _COPY).value, headers=_A),
    ]
    produce(bootstrap, topics.input, script)
    with Service(tmp_path, bootstrap, topics, *_FLAGS, "cluster.canonical=longest") as service:
        outputs = collect(bootstrap, topics, len(script) + 1, service)
        service.stop()
    succession = outputs.duplicates[-1]
    fields = succession.json()
    assert succession.key == b"a\x1fstory"
    assert [fields[name] for name in ("scope", "id", "duplicate_of", "reason")] == ["a", "story", "copy", "policy"]


def test_message_without_a_scope_can_be_a_dead_letter(bootstrap: str, tmp_path: Path) -> None:
    """With `input.scope_missing = "dead"`, only messages with a scope are judged; tombstones need the header."""
    topics = fresh_topics(bootstrap)
    script = [
        article("1", _TEXT),
        Incoming(article("1", _TEXT).value, headers=_A),
        article("1", _TEXT, meta={"channel": 7}),
        Incoming(None, b"1"),
    ]
    produce(bootstrap, topics.input, script)
    with Service(tmp_path, bootstrap, topics, *_FLAGS, "input.scope_missing=dead") as service:
        outputs = collect(bootstrap, topics, len(script), service)
    assert _keys(outputs.unique) == ["a\x1f1", "7\x1f1"]
    assert [(record.own("reason"), record.own("offset")) for record in outputs.dead] == [
        ("missing_scope", "0"),
        ("missing_scope", "3"),
    ]
