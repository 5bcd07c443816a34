"""Terminal output: differences are complete, columns align, and no text from outside can control the terminal."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import RenderableType

from stream_dedup.article import Announcement, Relation, Source, VerdictReason
from stream_dedup.ask.answers import (
    ArticleAnswer,
    ClusterAnswer,
    FileAnswer,
    KeysAnswer,
    LinkAnswer,
    MeasuresAnswer,
    MemberAnswer,
    MessageLocation,
    ReasonAnswer,
    ShadowAnswer,
    SimilarAnswer,
    SimilarAnswers,
    SourceAnswer,
    StatusAnswer,
    TextAnswer,
    TimelineInterval,
    WordAnswer,
)
from stream_dedup.ask.decisions import DecisionAnswer
from stream_dedup.ask.disagreements import DisagreementAnswer, SideAnswer
from stream_dedup.planner import STRANGERS, Expectation, Model, Shape, Traffic, copies_of
from stream_dedup.planner.costs import Space
from stream_dedup.rendering.answers import article_shown, bar, cluster_shown, similar_shown, status_shown
from stream_dedup.rendering.decision import decision_line, disagreement_line
from stream_dedup.rendering.plain import escape_control, fitted
from stream_dedup.rendering.plan import plan_shown
from stream_dedup.rendering.reason import measures_shown, reason_shown
from stream_dedup.settings import Settings
from stream_dedup.text.normal import Normaliser
from tests.unit.printed import printed

_NORMAL = Normaliser()
_HOSTILE = "\x1b]0;owned\x07\x1b[31m[bold]:smile:\u202e\u061c"


def _width(text: str) -> int:
    """Return the cells a text takes by Unicode's own table: two for wide and full-width characters."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text if not unicodedata.combining(one))


def _facts(shown: RenderableType) -> dict[str, list[str]]:
    """Return what is printed as names with the lines of their values."""
    told: dict[str, list[str]] = {}
    for line in filter(str.strip, printed(shown).splitlines()):
        name, _, value = line.partition("  ")
        told.setdefault(name or next(reversed(told)), []).append(" ".join(value.split()))
    return told


@given(text=st.text("旱了五十 abcＡ，", max_size=40), cells=st.integers(2, 30))
def test_fitted_text_has_its_width(text: str, cells: int) -> None:
    """Any mix of Chinese and other text is cut or padded to the exact cell."""
    shown = fitted(text, cells)
    assert _width(shown) == cells
    assert shown.startswith(text) or "…" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("旱了五十天的村子", "旱了五十天的… "), ("北京", "北京          "), ("旱a五十天的村子下", "旱a五十天的村…")],
)
def test_chinese_is_fitted_by_its_two_cells(text: str, shown: str) -> None:
    """Fourteen cells hold six characters and an ellipsis, with one cell left over."""
    assert fitted(text, 14) == shown
    assert _width(fitted(text, 14)) == 14


def test_terminal_obeys_no_text() -> None:
    """Escape sequences, direction marks and rich's markup are shown literally."""
    assert escape_control(_HOSTILE) == "␛]0;owned␇␛[31m[bold]:smile:��"
    decision = DecisionAnswer(
        decision="unique", id=_HOSTILE, title=_HOSTILE, output=MessageLocation(topic="t", partition=0, offset=0)
    )
    for shown in (decision_line(decision), cluster_shown(_cluster(_HOSTILE))):
        told = printed(shown)
        assert "[31m[bold]:smile:" in told
        assert not {"\x1b", "\x07", "\u202e", "\u061c"} & set(told)


def _cluster(source: str) -> ClusterAnswer:
    link = LinkAnswer(
        matched="n-1",
        relation=Relation.NEAR,
        jaccard=0.9,
        containment=1.0,
        hamming=3,
        candidate_source=Source.LANDMARK,
        idf_epoch=2,
        stream_time=None,
    )
    members = [
        MemberAnswer(
            id=name,
            canonical=not copy,
            source=source if copy else "Reuters",
            published_at="2026-10-15T18:53:47.000Z",
            received_at=None,
            characters=100,
            link=link if copy else None,
        )
        for name, copy in (("n-1", False), ("第二篇", True), ("mixed-混合-3", True))
    ]
    return ClusterAnswer(
        number=1,
        scope="",
        canonical="n-1",
        copies=2,
        first_seen=None,
        last_seen=None,
        distinct_sources=1,
        sources=[SourceAnswer(source=source, articles=2)],
        other_sources_articles=0,
        known=3,
        members=members,
        stretch_seconds=60,
        timeline=[TimelineInterval(at="2026-10-15T18:53:00Z", articles=3, sources=2)],
    )


def test_cluster_tells_its_copies_and_sources() -> None:
    """The twelve busiest sources are named; those after them, and those that the cluster does not name, are others."""
    sources = [SourceAnswer(source=f"s{n}" if n else "", articles=20 - n) for n in range(14)]
    counts = {"copies": 1_205, "known": 3, "scope": "tenant", "sources": sources, "other_sources_articles": 5}
    told = _facts(cluster_shown(_cluster("").model_copy(update=counts)))
    named = ", ".join(f"s{n} {20 - n}" for n in range(1, 12))
    assert (told["sources"], told["copies"]) == ([f"unknown 20, {named}, others {8 + 7 + 5}"], ["1,205"])
    assert told["scope"] == ["tenant"]
    assert "others" not in _facts(cluster_shown(_cluster("")))["sources"][0]


def test_rows_of_a_cluster_tell_who_is_canonical_and_what_is_lost() -> None:
    """A copy may be canonical, an original may be known no longer, and undated articles have their time of arrival."""
    cluster = _cluster("晚报")
    first, second, third = cluster.members
    assert second.link is not None
    members = [
        first.model_copy(update={"canonical": False, "received_at": "2026-10-15T19:00:00.000Z"}),
        second.model_copy(update={"canonical": True, "link": second.link.model_copy(update={"matched": None})}),
        third.model_copy(update={"published_at": None, "received_at": "2026-10-15T20:00:00.000Z"}),
    ]
    lines = printed(cluster_shown(cluster.model_copy(update={"members": members}))).splitlines()
    rows = [" ".join(line.split()) for line in lines if " 18:53:47 " in line or " 20:00:00 " in line]
    assert rows == [
        "2026-10-15 18:53:47 n-1 Reuters",
        "2026-10-15 18:53:47 第二篇 晚报 near, canonical 0.90 1.00 3 landmark no longer known",
        "2026-10-15 20:00:00 mixed-混合-3 晚报 near 0.90 1.00 3 landmark n-1",
    ]


def test_timeline_counts_articles_and_sources() -> None:
    """A row has the beginning of the interval, the articles in it and their sources."""
    (row,) = (line for line in printed(cluster_shown(_cluster("晚报"))).splitlines() if "18:53 " in line)
    assert row.split()[:4] == ["2026-10-15", "18:53", "3", "2"]


def test_times_of_a_cluster_are_shown_if_they_are_known() -> None:
    """Articles without dates, from files, have none."""
    cluster = _cluster("雁南都市报")
    seen = cluster.model_copy(update={"first_seen": "2026-10-15T18:53:00Z", "last_seen": "2026-10-16T06:55:00Z"})
    assert "seen" not in printed(cluster_shown(cluster))
    timeless = cluster.model_copy(update={"timeline": [TimelineInterval(at=None, articles=3, sources=2)]})
    assert ["from, UTC" in printed(cluster_shown(one)) for one in (cluster, timeless)] == [True, False]
    assert "2026-10-15 18:53:00 to 2026-10-16 06:55:00" in printed(cluster_shown(seen))


def test_line_breaks_in_names_break_no_line() -> None:
    """Only our own line breaks separate lines, not those within a value."""
    row = next(line for line in printed(cluster_shown(_cluster("雁南\n都市报"))).splitlines() if "sources" in line)
    assert "雁南␊都市报 2" in row


def test_columns_align_whatever_is_in_them() -> None:
    """In a table of Chinese and Latin text, each column starts at the same cell in every row."""
    lines = printed(cluster_shown(_cluster("雁南都市报"))).splitlines()
    rows = [line for line in lines if line.startswith("2026-10-15 18:53:47")]
    assert len(rows) == 3
    assert {_width(row[: row.index("Reuters")]) for row in rows[:1]} == {
        _width(row[: row.index("雁南")]) for row in rows[1:]
    }
    assert len({_width(row[: row.index("landmark")]) for row in rows[1:]}) == 1


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_cluster_suits_the_terminal(width: int) -> None:
    """No line exceeds the width, no time, relation or number is wrapped or cut, and omitted columns are named."""
    shown = printed(cluster_shown(_cluster("雁南都市报")), width)
    lines = shown.splitlines()
    assert max(map(_width, lines)) <= width
    rows = [line for line in lines if line.startswith("2026-10-15 18:53:47")]
    assert [name in row for name, row in zip(("n-1", "第二篇", "mixed-混合-3"), rows, strict=True)] == [True] * 3
    heading, said = shown[: shown.index("2026-10-15 18:53:47")], " ".join(shown.split())
    for name, values in (("relation", "near"), ("J", "0.90"), ("C", "1.00"), ("found by", "landmark")):
        kept = re.search(rf" {name}\s", heading) is not None
        assert all((values in row) is kept for row in rows[1:])
        assert kept or f"{name};" in said or f"{name}. --json has all" in said
    assert ("left out" in said) is (width < 100)


@pytest.mark.parametrize("width", [1 << 20, 80])
def test_id_is_cut_in_its_middle_where_there_is_no_room(width: int) -> None:
    """Two ids with different ends stay distinguishable on a terminal, and a pipe has them whole."""
    ids = [f"https://news.example/2026/10/15/一篇文章的很长的标识/{number}.html" for number in (1, 2)]
    cluster = _cluster("晚报")
    members = [member.model_copy(update={"id": name}) for member, name in zip(cluster.members, ids, strict=False)]
    shown = printed(cluster_shown(cluster.model_copy(update={"members": members})), width)
    rows = [line for line in shown.splitlines() if "https" in line]
    assert [(name in row, f"{number}.html" in row) for name, number, row in zip(ids, (1, 2), rows, strict=True)] == [
        (width > 80, True)
    ] * 2
    assert len({_width(row[: row.index(".html")]) for row in rows}) == 1


@pytest.mark.parametrize("width", [1 << 20, 84, 80, 64, 50, 20])
def test_fingerprints_and_names_are_never_cut(width: int) -> None:
    """Digits and names are whole at any width, and the marks are below the differing bits."""
    names, fingerprints = ("news-001.replaced_characters", "第二篇"), ("cf0f5dfc09fd47f9", "cb8d5dfc09ff4ff9")
    lines = printed(measures_shown(_measures(fingerprints), names), width).splitlines()
    assert max(map(_width, lines)) <= max(width, 20)
    whole = "".join("".join(lines).split())
    assert all(f"{one}{name}" in whole for one, name in zip(fingerprints, names, strict=True))
    at = [number for number, line in enumerate(lines) if re.match("[01]{8}", line)]
    pairs = list(zip(at[::2], at[1::2], strict=True))
    assert all(second == first + 1 for first, second in pairs)
    bits = ["".join(lines[number].split()[0] for number in side) for side in zip(*pairs, strict=True)]
    assert [f"{int(one, 2):016x}" for one in bits] == list(fingerprints)
    stretch = len(bits[0]) // len(pairs)
    marked = "".join(lines[second + 1].ljust(stretch)[:stretch] for _, second in pairs)
    differing = int(fingerprints[0], 16) ^ int(fingerprints[1], 16)
    assert {63 - place for place, mark in enumerate(marked) if mark == "^"} == {
        bit for bit in range(64) if differing >> bit & 1
    }


def test_words_are_told_under_names_that_fit() -> None:
    """If two long names leave no room for words, the columns are named the first and the second."""
    names = "第一篇文章的名称很长很长很长很长", "another-article-with-a-long-name"
    wide, narrow = (printed(measures_shown(_measures(("0" * 16, "0" * 16)), names), width) for width in (160, 70))
    assert re.search(rf"word +{names[0]} +{names[1]}", wide)
    assert re.search(r"word +first +second\n─+\n国家统计局 +2\.1000", narrow)


def test_distance_names_the_epoch_of_its_weights() -> None:
    """A link decided in an earlier epoch has another Hamming distance, so the one shown names its epoch."""
    measures = _measures(("0" * 16, "0" * 15 + "7")).model_copy(update={"hamming": 3, "idf_epoch": 41})
    lines = printed(measures_shown(measures, ("a", "b"))).splitlines()
    assert [line for line in lines if re.search(r"Hamming +3\b.*epoch 41\b", line)]


def _measures(fingerprints: tuple[str, str]) -> MeasuresAnswer:
    return MeasuresAnswer(
        relation=Relation.NEAR,
        ground="near",
        verdict="most n-grams are in both",
        jaccard=0.5,
        containment=0.7,
        hamming=5,
        fingerprints=fingerprints,
        differing_bits=[],
        cosine=0.9,
        grams=(40, 41),
        idf_epoch=0,
        keys=KeysAnswer(content=False, landmarks=3, table_keys=1),
        shared_words=[WordAnswer(word="国家统计局", weights=(2.1, 2.2))],
        differing_words=[],
    )


def test_measures_are_told_with_their_names() -> None:
    """Each number stands beside what it is; a word that a text lacks has no weight in it."""
    measures = _measures(("0" * 16, "f" * 16)).model_copy(
        update={
            "keys": KeysAnswer(content=True, landmarks=3, table_keys=1),
            "differing_words": [WordAnswer(word="夜市", weights=(1.5, 0.0))],
        }
    )
    lines = [" ".join(line.split()) for line in printed(measures_shown(measures, ("a", "b"))).splitlines()]
    assert lines[0] == "near most n-grams are in both"
    assert {
        "Jaccard 0.5000 of 40 and 41 n-grams",
        "containment 0.7000",
        "cosine 0.9000 of the bit sums",
        "Hamming 5 bits [] with the weights of IDF epoch 0",
        "shared keys 3 landmarks, 1 table keys, content",
    } < set(lines)
    assert {"heaviest shared words", "heaviest differing words"} < set(lines), (
        "no heading is broken, however narrow the table"
    )
    shared, _, differing = " ".join(lines).partition("heaviest differing words")
    assert ("国家统计局 2.1000 2.2000" in shared, differing.split()[-2:]) == (True, ["夜市", "1.5000"])
    other = measures.model_copy(update={"relation": None, "keys": KeysAnswer(content=False, landmarks=0, table_keys=0)})
    shown = printed(measures_shown(other, ("a", "b")))
    assert shown.startswith("not a copy  most n-grams")
    assert "content" not in next(line for line in shown.splitlines() if "shared keys" in line)


@pytest.mark.parametrize("revised", [False, True])
def test_reason_tells_both_texts_and_what_was_decided(revised: bool) -> None:  # noqa: FBT001  # parametrized
    """Each text has its own lines, and it is said whether the second has changed since the decision."""
    first, second = (
        TextAnswer(
            id=name,
            title=f"{name}的标题",
            body=f"{name}的正文。",
            source=f"{name}报",
            url=f"https://{name}.example/",
            published_at=f"2026-10-1{number}T08:00:00.000Z",
            message=MessageLocation(topic="in", partition=number, offset=7),
        )
        for number, name in enumerate(("甲", "乙"), 1)
    )
    link = _cluster("").members[1].link
    assert link is not None
    link = link.model_copy(update={"stream_time": "2026-10-16T09:00:00.000Z"})
    measures = _measures(("0" * 16, "0" * 16)).model_dump()
    reason = ReasonAnswer(first=first, second=second, decided=link, revised=revised, **measures)
    told = _facts(reason_shown(reason, _NORMAL, marks=True))
    assert [told[name] for name in ("first", "second", "title")] == [["甲"], ["乙"], ["甲的标题", "乙的标题"]]
    assert told["message"] == ["in, partition 1, offset 7", "in, partition 2, offset 7"]
    assert told["published"] == ["2026-10-11 08:00:00 UTC", "2026-10-12 08:00:00 UTC"]
    assert (told["source"], told["URL"]) == (["甲报", "乙报"], ["https://甲.example/", "https://乙.example/"])
    assert told["decided"] == [
        "near, Jaccard 0.90, containment 1.00, Hamming 3, found by landmark, IDF epoch 2",
    ]
    assert told["stream's time"] == ["2026-10-16 09:00:00 UTC"]
    assert ("since then" in told) is revised
    alone = _facts(reason_shown(reason.model_copy(update={"decided": None}), _NORMAL, marks=True))
    assert alone["decided"] == ["no link from the first to the second"]
    assert "stream's time" not in alone


_OUTPUT = MessageLocation(topic="out", partition=0, offset=0)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"decision": "unique", "title": "夜市开张"}, "unique n-7 石桥网 夜市开张"),
        (
            {"decision": "unique", "scope": "tenant", "title": "夜市", "relation": "near", "matched": "n-1"},
            "unique tenant/n-7 石桥网 near of n-1: 夜市",
        ),
        ({"decision": "unique", "relation": "revision", "matched": "n-7"}, "unique n-7 石桥网 revision of n-7"),
        (
            {"decision": "duplicate", "relation": "near", "duplicate_of": "n-1", "matched": "n-1", "hamming": 0},
            "near n-7 石桥网 of n-1: Hamming 0, landmark",
        ),
        (
            {
                "decision": "duplicate",
                "relation": "contained",
                "duplicate_of": "n-1",
                "matched": "n-3",
                "jaccard": 0.504,
                "containment": 0.996,
                "hamming": 12,
            },
            "contained n-7 石桥网 of n-1, matched n-3: Jaccard 0.50, containment 1.00, Hamming 12, landmark",
        ),
        (
            {"decision": "announcement", "relation": Announcement.SUCCESSION, "duplicate_of": "n-9"},
            "succession n-7 石桥网 canonical article now n-9",
        ),
        (
            {"decision": "announcement", "relation": Announcement.WITHDRAWN},
            "withdrawn n-7 石桥网 nothing is left of its cluster",
        ),
        (
            {"decision": "dead", "id": None, "reason": "wrong_type", "detail": "UndecodableError: id: not a string"},
            "dead no key 石桥网 wrong_type: id: not a string",
        ),
        ({"decision": "unique", "id": "x" * 40, "title": "夜市"}, f"unique {'x' * 40} 石桥网 夜市"),
    ],
)
def test_decision_is_told_on_one_line(fields: dict[str, object], line: str) -> None:
    """It has the time, what was decided, on which article, of which source, and why; an id is never cut."""
    known = {"id": "n-7", "source": "石桥网", "decided_at": "2026-11-23T01:18:40.625Z", "candidate_source": "landmark"}
    decision = DecisionAnswer.model_validate({**known, "output": _OUTPUT, **fields})
    assert " ".join(decision_line(decision).plain.split()) == f"01:18:40 {line}"


def test_disagreement_is_told_with_both_decisions() -> None:
    """It shows the kind, the article, the decision in force and the shadow's, with the numbers of a link."""
    unique = dict.fromkeys(SideAnswer.model_fields) | {"decision": "unique"}
    near = {"decision": "duplicate", "relation": "near", "duplicate_of": "n-3", "jaccard": 0.512, "hamming": 3}
    told = {"id": "n-17", "disagreement": "duplicate", "source": "石桥网", "decided_at": "2026-11-23T01:18:40.625Z"}
    place = {"topic": "articles.shadow", "partition": 0, "offset": 7}
    sides = {"live": unique, "shadow": unique | near}
    one = DisagreementAnswer.model_validate({**told, **sides, "message": None, "output": place})
    shown = " ".join(disagreement_line(one).plain.split())
    assert shown == "01:18:40 duplicate n-17 石桥网 in force unique; shadow near of n-3 (Jaccard 0.51, Hamming 3)"
    beside = one.model_copy(update={"live": one.shadow.model_copy(update={"decision": "unique"})})
    assert "in force unique, near of n-3 (Jaccard" in disagreement_line(beside).plain


_STATUS = StatusAnswer(
    version="1.2.3",
    directory="/state",
    of_files=False,
    running=True,
    ready=True,
    not_ready="",
    steps=1_234,
    articles_judged=56_789,
    entries=4_321,
    unseen_entries=5,
    idf_epoch=3,
    stream_time="2026-10-15T18:53:47Z",
    window_since="2026-10-01T18:53:47Z",
    input=[
        MessageLocation(topic="in", partition=0, offset=7),
        MessageLocation(topic="in", partition=1, offset=1_500),
    ],
    files=[],
    decisions={"near": 30, "exact": 20, "new": 50},
    duplicates=50,
    shadow=ShadowAnswer(judging=True, articles=200, disagreements={"duplicate": 3, "original": 7}),
    consumer_lag=0,
    rate=1_234.56,
)


def test_status_tells_each_figure_with_its_name() -> None:
    """Shares are of the decisions since the service started; those of a shadow are of what it has judged itself."""
    assert _facts(status_shown(_STATUS)) == {
        "service": ["running, version 1.2.3"],
        "state": ["/state"],
        "articles judged": ["56,789"],
        "rate": ["1,234.6 articles/s"],
        "decisions": ["new 50 50.0%", "near 30 30.0%", "exact 20 20.0%"],
        "shadow": ["running", "10 of 200 articles decided differently", "original 7 3.5%", "duplicate 3 1.5%"],
        "waiting messages": ["0"],
        "stream's time": ["2026-10-15 18:53:47 UTC"],
        "remembered since": ["2026-10-01 18:53:47 UTC"],
        "entries": ["4,321"],
        "steps": ["1,234"],
        "IDF epoch": ["3"],
        "next to read": ["in, partition 0, offset 7", "in, partition 1, offset 1,500"],
    }


def test_status_leaves_out_what_is_unknown() -> None:
    """A service that does not answer tells neither decisions nor waiting messages; files have the lines they read."""
    unknown: dict[str, object] = {
        "rate": None,
        "consumer_lag": None,
        "shadow": None,
        "decisions": {},
        "running": False,
        "input": [],
    }
    files = [
        FileAnswer(results="out", finished=finished, file=f"{name}.jsonl", lines=lines)
        for name, lines, finished in (("a", 1, True), ("b", 2_000, False))
    ]
    told = _facts(status_shown(_STATUS.model_copy(update={**unknown, "files": files})))
    assert not {"rate", "waiting messages", "shadow", "decisions", "next to read"} & told.keys()
    assert told["files"] == [
        "a.jsonl, 1 line, the run is finished",
        "b.jsonl, 2,000 lines, the run is not finished",
    ]
    assert told["results"] == ["out, of 2 files"]


@pytest.mark.parametrize(
    ("known", "service"),
    [
        ({"running": False}, "does not answer, version 1.2.3"),
        ({"not_ready": "waiting for partitions"}, "not ready, waiting for partitions, version 1.2.3"),
    ],
)
def test_status_tells_of_a_service_that_does_not_run_or_is_not_ready(known: dict[str, object], service: str) -> None:
    """A service that is not ready says why, and a shadow that is not judging may have failed."""
    assert _facts(status_shown(_STATUS.model_copy(update=known)))["service"] == [service]
    shadow = ShadowAnswer(judging=False, articles=0, disagreements={})
    told = _facts(status_shown(_STATUS.model_copy(update={"shadow": shadow})))["shadow"]
    assert told[0].startswith("not running: ")
    assert told[1:] == ["0 of 0 articles decided differently"]


def test_article_tells_each_fact_with_its_name() -> None:
    """Times, texts and positions are the article's own, and a copy names its original as long as that is known."""
    link = _cluster("").members[1].link
    article = ArticleAnswer(
        id="n-2",
        scope="tenant",
        decision="duplicate",
        relation=Relation.NEAR,
        cluster=1_000,
        canonical="n-9",
        link=link,
        source="晚报",
        published_at="2026-10-15T18:53:47.000Z",
        received_at="2026-10-16T01:02:03.000Z",
        stream_time="2026-10-16T04:05:06.000Z",
        characters=1_234,
        texts=2,
        message=MessageLocation(topic="in", partition=4, offset=18),
    )
    told = _facts(article_shown(article))
    assert told == {
        "article": ["n-2"],
        "scope": ["tenant"],
        "decision": ["duplicate: near"],
        "canonical": ["n-9"],
        "cluster": ["1000"],
        "copy of": ["n-1"],
        "because": ["near, Jaccard 0.90, containment 1.00, Hamming 3, found by landmark, IDF epoch 2"],
        "source": ["晚报"],
        "published": ["2026-10-15 18:53:47 UTC"],
        "received": ["2026-10-16 01:02:03 UTC"],
        "stream's time": ["2026-10-16 04:05:06 UTC"],
        "characters": ["1,234"],
        "texts seen": ["2"],
        "message": ["in, partition 4, offset 18"],
    }
    assert link is not None
    lost = article.model_copy(update={"link": link.model_copy(update={"matched": None})})
    assert _facts(article_shown(lost))["copy of"] == ["an article that is no longer known"]
    first = {"decision": "unique", "relation": None, "canonical": "n-2", "link": None, "message": None, "scope": ""}
    alone = _facts(article_shown(article.model_copy(update=first)))
    assert (alone["decision"], alone["canonical"]) == (["unique"], ["itself"])
    assert told.keys() - alone.keys() == {"scope", "copy of", "because", "message"}


def test_plan_tells_each_figure_beside_that_of_now() -> None:
    """Bytes have the unit that suits them, times are in milliseconds, and tables that are off have no settings."""
    space = Space(filters=1.5e9, lists=2.5e9, memory=3.5e9, cached=4e9, tables=4.5e12, disk=5.5e12)
    planned = Expectation(
        Shape(6, 22, 96, 14),
        recall=0.91234,
        keys=1_234.4,
        blocks=567.4,
        postings=8_901.4,
        candidates=23.45,
        space=space,
        disk_per_entry=678.4,
        time_us=9_870,
        cost=0,
    )
    off = Space(filters=0, lists=2.5e6, memory=3.5e6, cached=4e6, tables=0, disk=5.5e8)
    now = Expectation(Shape(0, 0, 0, 0), 0.0, 0.0, 0.0, 0.0, 0.0, off, 0.0, 0.0, 0.0)
    model = Model(copies_of(0.8), STRANGERS, Traffic(1e6, 0.4), Settings())
    lines = printed(plan_shown(planned, now, model)).splitlines()
    assert [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line] == [
        ["tables x prefix bits", "6 x 22", "off"],
        ["probes per table", "96", ""],
        ["maximum distance", "14", ""],
        ["distance that exact keys always find", "1", ""],
        ["recall of the tables", "0.9123", "0.0000"],
        ["keys looked up per article", "1,234", "0"],
        ["blocks read per article", "567", "0"],
        ["postings read per article", "8,901", "0"],
        ["candidates per article", "23.4", "0.0"],
        ["time in the tables per article", "9.87 ms", "0.00 ms"],
        ["filters of the tables in memory", "1.5 GB", "0.0 kB"],
        ["posting lists in memory", "2.5 GB", "2.5 MB"],
        ["memory of the process", "3.5 GB", "3.5 MB"],
        ["page cache for the posting lists", "4.0 GB", "4.0 MB"],
        ["tables on disk per indexed article", "678 B", "0 B"],
        ["tables on disk", "4.5 TB", "0.0 kB"],
        ["state on disk", "5.5 TB", "550.0 MB"],
    ]
    assert lines[-1] == "600,000 entries at most, with 1,000,000 articles per window"


def test_similar_articles_are_in_columns_too() -> None:
    """A text similar to two articles gives a row for each; one that is not a copy is labelled so, with the reason."""
    articles = [
        SimilarAnswer(
            id=name,
            relation=relation,
            ground=ground,
            jaccard=0.5,
            containment=0.75,
            hamming=None,
            canonical="一",
            cluster=1,
            source="晚报",
            published_at=None,
            message=None,
        )
        for name, relation, ground in (
            ("一", Relation.NEAR, VerdictReason.NEAR),
            ("two", None, VerdictReason.TOO_LITTLE),
        )
    ]
    told = printed(similar_shown(SimilarAnswers(decision="duplicate", articles=articles, unseen_entries=7)))
    rows = [line for line in told.splitlines() if "0.75" in line]
    assert len({_width(row[: row.index("0.75")]) for row in rows}) == 1
    assert "not a copy: too little" in rows[1]
    assert rows[0].split()[2:4] == ["0.50", "0.75"]
    assert [row.split()[-1] for row in rows] == ["itself", "一"]
    assert "7 new entries cannot be searched yet" in told


def test_bars_are_as_long_as_their_shares() -> None:
    """Half of eight cells is four, an eighth of a cell is visible, and any non-zero share has a bar."""
    assert [bar(share, 8).plain for share in (1.0, 0.5, 9 / 64, 0.0001)] == ["█" * 8, "████", "█▏", "▏"]
