"""Corrections through the service: withdrawals, new texts of old articles, canonical articles that change, late ones.

Knows messages, links, announcements and clusters as readers of the topics see them.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.samples.corpus import Form, base_texts
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import Outputs, Record, collect, read_topics
from tests.stream.recount import counted, recount, told
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics

pytestmark = pytest.mark.usefixtures("compiled")

_LINK_FIELDS = [
    *("id", "duplicate_of", "matched", "relation", "jaccard", "containment", "hamming", "fingerprint", "idf_epoch"),
    *("candidate_source", "source", "url", "topic", "partition", "offset", "published_at", "received_at", "decided_at"),
]
_WITHOUT = ("matched", "jaccard", "containment", "hamming", "fingerprint", "idf_epoch", "candidate_source", "source")


@cache
def _text(number: int) -> str:
    """Return one of the texts, none a copy of another."""
    return [text.body for text in base_texts() if text.form is Form.NEWS][number]


def _changed(number: int) -> str:
    """Return a text without its first third, followed by the beginning of another one."""
    body = _text(number)
    return f"{body[len(body) // 3 :]}\n更正：{_text(number + 30)[:120]}"


def _withdrawal(**fields: object) -> Incoming:
    return Incoming(json.dumps({**fields, "deleted": True}).encode())


@dataclass(frozen=True, slots=True)
class Run:
    """A script of messages and what the service made of it.

    Attributes:
        topics: of the run.
        script: the messages in order, each under a name.
        outputs: everything that came out.
        clusters: all records of the topic of clusters.
    """

    topics: Topics
    script: dict[str, Incoming]
    outputs: Outputs
    clusters: list[Record]

    def link(self, name: str) -> dict[str, Any]:
        """Return the only link of a message."""
        (record,) = [one for one in self.outputs.duplicates if one.json()["offset"] == self._number(name)]
        fields = record.json()
        assert record.key == fields["id"].encode()
        return fields

    def unique(self, name: str) -> Record:
        """Return the only unique article of a message."""
        (record,) = [one for one in self.outputs.unique if offset_of(one) == self._number(name)]
        return record

    def dead_reason(self, name: str) -> str | None:
        """Return the reason of the only dead letter of a message."""
        (record,) = [one for one in self.outputs.dead if offset_of(one) == self._number(name)]
        return record.own("reason")

    def announcements(self) -> list[tuple[str, str, str]]:
        """Return the successions: old, new and reason."""
        links = [record.json() for record in self.outputs.duplicates]
        return [(one["id"], one["duplicate_of"], one["reason"]) for one in links if one["relation"] == "succession"]

    def cluster(self, canonical: str) -> dict[str, Any] | None:
        """Return the last record of a cluster, None for a tombstone; it must have one."""
        records = [record for record in self.clusters if record.key == canonical.encode()]
        return records[-1].json() if records[-1].value is not None else None

    def _number(self, name: str) -> int:
        return list(self.script).index(name)


def offset_of(record: Record) -> int:
    """Return the input offset of a message that came out whole."""
    return int(dict(record.headers)["number"] or b"")


def _run(bootstrap: str, directory: Path, script: dict[str, Incoming], announced: int, *flags: str) -> Run:
    """Send a script, wait for its outputs and that many announcements, and stop the service."""
    topics = fresh_topics(bootstrap)
    sent = [replace(one, headers=[("number", b"%d" % number)]) for number, one in enumerate(script.values())]
    assert produce(bootstrap, topics.input, sent) == list(range(len(sent)))
    with Service(directory, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, len(sent) + announced, service)
        service.stop()
    outputs = collect(bootstrap, topics, 0)
    assert outputs.total() == len(sent) + announced
    return Run(topics, script, outputs, read_topics(bootstrap, [topics.clusters])[topics.clusters])


# ------------------------------------------------------------------------------------ withdrawals and revisions


def _corrections() -> dict[str, Incoming]:
    """Return messages, each related to the earlier ones as its name says."""
    page = "https://wire.example/page.html"
    return {
        "story": article("story", _text(0), source="甲报", url="https://wire.example/story.html"),
        "first copy": article("story-1", f"本报讯 {_text(0)}", source="乙网"),
        "second copy": article("story-2", f"{_text(0)}（责任编辑：小李）", source="丙报"),
        "withdrawal of the story": Incoming(None, b"story"),
        "copy after the withdrawal": article("story-3", f"转载：{_text(0)}", source="乙网"),
        "withdrawal once more": Incoming(None, b"story"),
        "the story again": article("story", _text(0), source="甲报", url="https://wire.example/story.html"),
        "single": article("single", _text(1), source="甲报"),
        "withdrawal by flag": _withdrawal(id="single"),
        "copy of what was withdrawn": article("single-1", _text(1), source="乙网"),
        "original": article("original", _text(2), source="甲报"),
        "its first copy": article("original-1", f"本报讯 {_text(2)}", source="乙网"),
        "its second copy": article("original-2", f"转载：{_text(2)}", source="丙报"),
        "withdrawal of a copy": Incoming(None, b"original-1"),
        "by its page": article("by-its-page", _text(3), url=page),
        "withdrawal by URL": _withdrawal(id="a name that nobody knows", url=page),
        "unnamed": Incoming(json.dumps({"body": _text(4), "url": "https://wire.example/unnamed.html"}).encode()),
        "withdrawal of the unnamed": _withdrawal(url="https://wire.example/unnamed.html"),
        "first text": article("first-text", _text(5), url="https://wire.example/live.html"),
        "changed text": article("changed-text", _changed(5), url="https://wire.example/live.html"),
        "copy of the changed text": article("changed-text-1", f"本报讯 {_changed(5)}"),
        "draft": article("draft", _text(6)),
        "final": article("draft", _changed(6)),
        "copy of the final": article("draft-1", f"本报讯 {_changed(6)}"),
        "copy of the draft": article("draft-2", f"本报讯 {_text(6)}"),
        "final again": article("draft", _changed(6)),
        "draft again": article("draft", _text(6)),
    }


@pytest.fixture(scope="module", params=["commit.articles=512", "commit.articles=1"])
def corrected(request: pytest.FixtureRequest, bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The corrections through a service that commits them all at once, and through one that commits each alone."""
    return _run(bootstrap, tmp_path_factory.mktemp("corrected"), _corrections(), 0, request.param)


def test_withdrawal_of_a_canonical_article_names_the_one_that_follows(corrected: Run) -> None:
    """A message with the id as key and no value is answered by a link that names the new canonical article."""
    link = corrected.link("withdrawal of the story")
    assert list(link) == _LINK_FIELDS
    assert (link["id"], link["relation"], link["duplicate_of"]) == ("story", "withdrawn", "story-1")
    assert {link[name] for name in _WITHOUT} == {None}
    assert (link["topic"], link["partition"]) == (corrected.topics.input, 0)
    assert link["received_at"] <= link["decided_at"]


def test_copies_link_to_the_new_canonical_article_after_a_withdrawal(corrected: Run) -> None:
    """Earlier copies link to the old one; later ones link to the new one, as does the withdrawn article itself."""
    assert corrected.link("first copy")["duplicate_of"] == "story"
    assert corrected.link("second copy")["duplicate_of"] == "story"
    assert corrected.link("copy after the withdrawal")["duplicate_of"] == "story-1"
    again = corrected.link("the story again")
    assert (again["duplicate_of"], again["relation"]) == ("story-1", "near")


def test_clusters_are_renamed_with_a_tombstone(corrected: Run) -> None:
    """The topic of clusters has a tombstone for the old canonical article, and a record with counts for the new one."""
    assert corrected.cluster("story") is None
    cluster = corrected.cluster("story-1")
    assert cluster is not None
    assert cluster["canonical"] == "story-1"
    assert (cluster["copies"], cluster["distinct_sources"]) == (3, 3)
    assert cluster["sources"] == [
        {"source": "乙网", "articles": 2},
        {"source": "丙报", "articles": 1},
        {"source": "甲报", "articles": 1},
    ]
    assert cluster["last_seen"] == corrected.link("the story again")["received_at"]
    assert cluster["first_seen"] <= corrected.link("first copy")["received_at"]


def test_unknown_article_cannot_be_withdrawn(corrected: Run) -> None:
    """A second withdrawal finds no article and is a dead letter."""
    assert corrected.dead_reason("withdrawal once more") == "unknown_article"


def test_withdrawal_by_flag_of_an_article_without_copies_leaves_nothing(corrected: Run) -> None:
    """The link names no successor, and a later copy of the text is new."""
    link = corrected.link("withdrawal by flag")
    assert (link["id"], link["relation"], link["duplicate_of"]) == ("single", "withdrawn", None)
    assert corrected.unique("copy of what was withdrawn").own("relation") is None


def test_withdrawal_of_a_copy_leaves_its_cluster_with_one_fewer(corrected: Run) -> None:
    """The cluster keeps its canonical article; neither the copy nor its source is counted any more."""
    link = corrected.link("withdrawal of a copy")
    assert (link["id"], link["relation"], link["duplicate_of"]) == ("original-1", "withdrawn", "original")
    cluster = corrected.cluster("original")
    assert cluster is not None
    assert cluster["copies"] == 1
    assert {one["source"] for one in cluster["sources"]} == {"甲报", "丙报"}


def test_article_is_withdrawn_by_its_url(corrected: Run) -> None:
    """If the id is unknown, the URL finds the article; an article without an id is found by its URL alone."""
    link = corrected.link("withdrawal by URL")
    assert (link["id"], link["url"]) == ("by-its-page", "https://wire.example/page.html")
    unnamed = corrected.link("withdrawal of the unnamed")
    assert unnamed["id"].encode() == corrected.unique("unnamed").key
    assert {link["relation"], unnamed["relation"]} == {"withdrawn"}


def test_changed_text_under_a_known_url_is_a_revision(corrected: Run) -> None:
    """It is published as unique, marked with what it revises, whatever its id; later copies of it link to it."""
    record = corrected.unique("changed text")
    assert record.key == b"changed-text"
    assert (record.own("relation"), record.own("matched")) == ("revision", "first-text")
    assert corrected.link("copy of the changed text")["duplicate_of"] == "changed-text"


def test_changed_text_under_a_known_id_is_a_revision(corrected: Run) -> None:
    """It is published as unique under its id, and copies of either text link to that article."""
    record = corrected.unique("final")
    assert record.key == b"draft"
    assert (record.own("relation"), record.own("matched")) == ("revision", "draft")
    assert corrected.link("copy of the final")["duplicate_of"] == "draft"
    assert corrected.link("copy of the draft")["duplicate_of"] == "draft"


def test_text_that_was_seen_under_its_id_is_a_redelivery(corrected: Run) -> None:
    """Neither the current text nor an earlier one is published again."""
    for name in ("final again", "draft again"):
        link = corrected.link(name)
        assert (link["relation"], link["duplicate_of"], link["matched"]) == ("redelivery", "draft", "draft")


def test_topic_of_clusters_agrees_with_the_links(corrected: Run) -> None:
    """Counting unique articles, links and withdrawals independently yields the same clusters."""
    clusters = counted(recount(corrected.outputs, offset_of))
    assert set(clusters) == {"story-1", "original", "changed-text", "draft"}
    assert told(corrected.clusters) == clusters


# ------------------------------------------------------------------------- another canonical article, late ones


def _out_of_order() -> dict[str, Incoming]:
    """Return articles that arrive before the first published one, and one that is older than the window."""
    return {
        "reprint": article("reprint", f"本报讯 {_text(10)}", source="乙网", published_at="2026-10-10T12:00:00Z"),
        "source": article("source", _text(10), source="甲报", published_at="2026-10-10T11:00:00Z"),
        "another reprint": article("another", f"转载：{_text(10)}", source="丙报", published_at="2026-10-10T13:00:00Z"),
        "just in time": article("in-time", _text(11), published_at="2026-10-03T14:00:00Z"),
        "too late": article("too-late", _text(12), published_at="2026-10-03T12:00:00Z"),
        "its copy": article("of-late", _text(12), published_at="2026-10-10T13:00:00Z"),
    }


@pytest.fixture(scope="module")
def reordered(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """They, each committed alone, with the first published as canonical and late ones unjudged."""
    flags = ("cluster.canonical=first_published", "window.days=7", "window.late=dead", "commit.articles=1")
    return _run(bootstrap, tmp_path_factory.mktemp("reordered"), _out_of_order(), 1, *flags)


def test_better_canonical_article_is_announced(reordered: Run) -> None:
    """The article published first takes over the cluster, which the topic of duplicates announces once."""
    assert reordered.link("source")["duplicate_of"] == "reprint"
    assert reordered.announcements() == [("reprint", "source", "policy")]
    assert reordered.link("another reprint")["duplicate_of"] == "source"
    (record,) = [one for one in reordered.outputs.duplicates if one.json()["relation"] == "succession"]
    assert record.key == b"reprint"
    assert list(record.json()) == [*_LINK_FIELDS, "reason"]


def test_cluster_goes_by_its_new_canonical_article(reordered: Run) -> None:
    """There is a tombstone for the old one if readers ever saw its record, and a record of the new one."""
    cluster = reordered.cluster("source")
    assert cluster is not None
    assert cluster["copies"] == 2
    assert [record.value for record in reordered.clusters if record.key == b"reprint"] in ([], [None])
    assert told(reordered.clusters) == counted(recount(reordered.outputs, offset_of))


def test_article_older_than_the_window_is_a_dead_letter_where_that_is_set(reordered: Run) -> None:
    """With window.late=dead it is too late, and later decisions are made without it."""
    assert reordered.dead_reason("too late") == "too_late"
    assert reordered.unique("just in time").key == b"in-time"
    assert reordered.unique("its copy").own("relation") is None


@pytest.mark.parametrize("flag", ["commit.articles=1", "commit.articles=512"])
def test_announcements_stand_where_they_happened(bootstrap: str, tmp_path: Path, flag: str) -> None:
    """A succession comes right after the link that caused it, wherever commits are cut."""
    script = {
        "short": article("short", _text(20)),
        "long": article("long", f"{_text(20)}（责任编辑：小李　来源：石桥网）"),
        "withdrawal of the long": Incoming(None, b"long"),
        "copy": article("copy", f"本报讯 {_text(20)}"),
    }
    run = _run(bootstrap, tmp_path, script, 2, flag, "cluster.canonical=longest")
    links = [record.json() for record in run.outputs.duplicates]
    assert [(one["id"], one["relation"], one["duplicate_of"]) for one in links[:3]] == [
        ("long", "near", "short"),
        ("short", "succession", "long"),
        ("long", "withdrawn", "short"),
    ]
