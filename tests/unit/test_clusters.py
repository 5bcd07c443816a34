"""Clusters: which article is canonical, how copies beyond the limits are counted, and what is published."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.article import (
    Announcement,
    Article,
    Decision,
    Link,
    Origin,
    Relation,
    Source,
    Succession,
    SuccessionReason,
    Withdrawal,
    Withdrawn,
)
from stream_dedup.engine.clusters import MOST_MEMBERS, MOST_SOURCES, Cluster, Member, Policy, cluster_fields, policy_of
from stream_dedup.index.records.records import NOT_INDEXED
from stream_dedup.output_fields import link_fields, succession_fields, withdrawal_fields
from stream_dedup.settings import ClusterSettings

_NOON = 1_792_324_800_000  # 2026-10-18T12:00:00Z
_POLICIES = ("first_seen", "first_published", "preferred_source", "longest")
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(["新闻-001", "\0", "中" * 400])
_TIMES = st.none() | st.integers(-2_208_988_800_000, 253_402_300_799_999)
_MEMBERS = st.builds(
    Member, _TEXT, st.integers(NOT_INDEXED, 2**63 - 1), st.booleans(), _TIMES, _TIMES, st.integers(0, 10**8), _TEXT
)


def _policy(canonical: str = "first_seen") -> Policy:
    return policy_of(ClusterSettings.model_validate({"canonical": canonical, "preferred_sources": "新华社, 石桥网"}))


def _member(
    name: str,
    *,
    entry: int = NOT_INDEXED,
    active: bool = False,
    published_ms: int | None = None,
    seen_ms: int | None = None,
    characters: int = 100,
    source: str = "",
) -> Member:
    return Member(name, entry, active, published_ms, seen_ms, characters, source)


def _cluster(members: Sequence[Member], policy: Policy | None = None) -> Cluster:
    """Return the cluster of members that joined in this order, named after the first."""
    cluster = Cluster.founded(7, members[0], members[0].seen_ms)
    for member in members[1:]:
        cluster = cluster.join(member, policy or _policy())
    return cluster


def _names(cluster: Cluster) -> list[str]:
    return [member.id for member in cluster.members]


def _without(cluster: Cluster, name: str, source: str = "", policy: Policy | None = None) -> Cluster:
    left = cluster.leave(name, source, policy or _policy())
    assert left is not None
    return left


def test_cluster_of_one_is_its_founder() -> None:
    """A founder is canonical, has no copies, and is both the first and the last article seen."""
    founder = _member("a", seen_ms=7, source="石桥网")
    assert Cluster.founded(7, founder, 7) == Cluster(7, "a", 0, 7, 7, {"石桥网": 1}, 0, (founder,))


@pytest.mark.parametrize("copied", [4, 10])
@pytest.mark.parametrize("later", [5, 12])
def test_when_a_cluster_was_seen_is_the_same_whether_a_revision_or_a_copy_came_first(later: int, copied: int) -> None:
    """A text of 9 is revised by one of an earlier or later time, before or after it has a copy of either."""
    text, revised, copy = _member("a", seen_ms=9), _member("a", seen_ms=later), _member("b", seen_ms=copied)
    revised_first = Cluster.founded(7, revised, 9).join(copy, _policy())
    copied_first = Cluster.founded(7, text, 9).join(copy, _policy()).join(revised, _policy())
    assert revised_first == copied_first
    assert (revised_first.first_ms, revised_first.last_ms) == (min(later, 9, copied), max(later, 9, copied))


def test_copy_that_joins_is_counted() -> None:
    """A copy becomes a member, counts for its source, and is the last article seen."""
    first, second = _member("a", seen_ms=7, source="石桥网"), _member("b", seen_ms=9, source="晚报")
    assert _cluster([first, second]) == Cluster(7, "a", 1, 7, 9, {"石桥网": 1, "晚报": 1}, 0, (first, second))


@pytest.mark.parametrize(
    ("canonical", "better", "worse"),
    [
        ("first_published", _member("better", published_ms=5), _member("worse", published_ms=6)),
        ("first_published", _member("better", published_ms=5), _member("worse")),
        ("first_published", _member("better", published_ms=-5), _member("worse", published_ms=5)),
        ("preferred_source", _member("better", source="新华社"), _member("worse", source="石桥网")),
        ("preferred_source", _member("better", source="石桥网"), _member("worse", source="晚报")),
        ("preferred_source", _member("better", source="石桥网"), _member("worse")),
        ("longest", _member("better", characters=101), _member("worse", characters=100)),
    ],
)
def test_policy_prefers_the_better_of_two(canonical: str, better: Member, worse: Member) -> None:
    """The better article becomes canonical, whether it comes first or second."""
    policy = _policy(canonical)
    assert policy.prefers(better, worse)
    assert not policy.prefers(worse, better)
    assert _cluster([better, worse], policy).canonical == "better"
    assert _cluster([worse, better], policy).canonical == "better"


@pytest.mark.parametrize(
    ("canonical", "first", "second"),
    [
        (
            "first_seen",
            _member("a", seen_ms=9, published_ms=9),
            _member("b", seen_ms=1, published_ms=1, characters=999),
        ),
        ("first_published", _member("a"), _member("b")),
        ("first_published", _member("a", published_ms=5), _member("b", published_ms=5)),
        ("preferred_source", _member("a", source="晚报"), _member("b", source="日报")),
        ("preferred_source", _member("a", source="石桥网"), _member("b", source="石桥网")),
        ("longest", _member("a"), _member("b")),
    ],
)
def test_of_equals_the_first_seen_stays(canonical: str, first: Member, second: Member) -> None:
    """No policy prefers an article to its equal; by `first_seen` all are equal, so the first to come stays."""
    policy = _policy(canonical)
    assert not policy.prefers(second, first)
    assert not policy.prefers(first, second)
    assert _cluster([first, second], policy).canonical == "a"


def test_source_that_is_preferred_twice_has_its_first_place() -> None:
    """A name listed twice in the settings counts at its first position."""
    settings = ClusterSettings(canonical="preferred_source", preferred_sources=["甲", "乙", "甲"])
    assert policy_of(settings).prefers(_member("a", source="甲"), _member("b", source="乙"))


def test_name_of_a_cluster_never_changes() -> None:
    """The founder's id names the cluster even if another article is canonical or the founder has left."""
    policy = _policy("longest")
    cluster = _cluster([_member("a"), _member("b", characters=200)], policy)
    assert (cluster.number, cluster.canonical) == (7, "b")
    assert (_without(cluster, "a", policy=policy).number, _without(cluster, "b", policy=policy).number) == (7, 7)


def test_times_are_those_of_the_earliest_and_the_latest_message() -> None:
    """Messages may be out of order or without a time; those of members that have left still count."""
    cluster = _cluster([_member("a"), _member("b", seen_ms=5), _member("c", seen_ms=3), _member("d")])
    assert (cluster.first_ms, cluster.last_ms) == (3, 5)
    left = _without(_without(cluster, "b"), "c")
    assert (left.first_ms, left.last_ms) == (3, 5)
    revised = left.join(_member("a", seen_ms=2), _policy()).join(_member("d", seen_ms=6), _policy())
    assert (revised.first_ms, revised.last_ms) == (2, 6)


def test_another_text_of_a_member_is_not_counted_twice() -> None:
    """A known id keeps its place; its source is counted again."""
    cluster = _cluster([_member("a", source="甲"), _member("b", source="乙"), _member("c", source="乙")])
    revised = _member("b", source="丙", characters=7, seen_ms=8)
    joined = cluster.join(revised, _policy())
    assert (joined.copies, joined.sources, joined.other_members) == (2, {"甲": 1, "乙": 1, "丙": 1}, 0)
    assert (_names(joined), joined.member("b"), joined.last_ms) == (["a", "b", "c"], revised, 8)


def test_another_text_may_change_the_canonical_article() -> None:
    """By `longest`, a copy that has grown takes over, and a canonical article that has shrunk yields to the best."""
    policy = _policy("longest")
    cluster = _cluster([_member("a", characters=9), _member("b", characters=7), _member("c", characters=8)], policy)
    assert cluster.join(_member("b", characters=10), policy).canonical == "b"
    assert cluster.join(_member("b", characters=9), policy).canonical == "a"
    assert cluster.join(_member("a", characters=1), policy).canonical == "c"
    assert cluster.join(_member("a", characters=8), policy).canonical == "a"


def test_canonical_article_that_has_shrunk_to_the_size_of_an_older_one_stays() -> None:
    """On a tie nothing changes, though the other one came first: it had yielded to this one before."""
    policy = _policy("longest")
    cluster = _cluster([_member("a", characters=7), _member("b", characters=9)], policy)
    assert cluster.canonical == "b"
    assert cluster.join(_member("b", characters=7), policy).canonical == "b"


def test_only_the_living_take_over_from_a_canonical_article_that_has_changed() -> None:
    """A member whose id is not known any more, or now belongs to another cluster, cannot name this one."""
    policy = _policy("longest")
    cluster = _cluster([_member("a", characters=9), _member("b", characters=8), _member("c", characters=7)], policy)
    assert cluster.join(_member("a", characters=1), policy, lambda member: member.id != "b").canonical == "c"
    assert cluster.join(_member("a", characters=1), policy, lambda _: False).canonical == "a"


def test_only_the_first_256_sources_are_named() -> None:
    """Of 300 sources, 44 count as others; sources already named keep counting by name."""
    cluster = _cluster([_member(f"m{i}", source=f"s{i}") for i in range(300)])
    assert (len(cluster.sources), cluster.other_members, cluster.copies) == (MOST_SOURCES, 44, 299)
    again = cluster.join(_member("n", source="s7"), _policy()).join(_member("o", source="s299"), _policy())
    assert (again.sources["s7"], again.other_members) == (2, 45)


def test_members_of_further_sources_leave_their_count() -> None:
    """Withdrawing an article of an unnamed source lowers the others; a source without articles is removed."""
    cluster = _cluster([_member(f"m{i}", source=f"s{i}") for i in range(300)])
    left = _without(_without(cluster, "m299", "s299"), "m100", "s100")
    assert (len(left.sources), left.other_members, left.copies) == (MOST_SOURCES - 1, 43, 297)
    assert "s100" not in left.sources


def test_only_16_of_1000_members_are_kept() -> None:
    """All are counted; by `first_seen` the first ones are kept."""
    cluster = _cluster([_member(f"m{i}", source=f"s{i % 10}") for i in range(1000)])
    assert (cluster.copies, cluster.sources) == (999, {f"s{i}": 100 for i in range(10)})
    assert _names(cluster) == [f"m{i}" for i in range(MOST_MEMBERS)]
    assert len(cluster.pack()) < 2000


def test_least_preferred_member_is_dropped() -> None:
    """By `longest` the 16 longest are kept in order of arrival; of equals the latest is dropped."""
    policy = _policy("longest")
    lengths = [50, 10, *range(100, 114), 60, 50]
    cluster = _cluster([_member(f"m{i}", characters=length) for i, length in enumerate(lengths)], policy)
    assert _names(cluster) == ["m0", *(f"m{i}" for i in range(2, 17))]
    assert cluster.copies == 17


def test_canonical_article_is_never_dropped() -> None:
    """It is kept even if it has no entry and all others have one."""
    others = [_member(f"m{i}", entry=i, active=True) for i in range(40)]
    cluster = _cluster([_member("a"), *others])
    assert _names(cluster) == ["a", *(f"m{i}" for i in range(15))]


def test_member_with_an_entry_is_not_dropped_while_there_are_others() -> None:
    """A member in the index or in reserve is kept, however late it came and whatever the policy prefers."""
    policy = _policy("longest")
    kept = [_member("e", entry=1, active=True, characters=1), _member("r", entry=2, characters=1)]
    cluster = _cluster([_member(f"m{i}") for i in range(16)] + kept + [_member("n", characters=99)], policy)
    assert _names(cluster) == [*(f"m{i}" for i in range(14)), "e", "r"]


def test_reserve_goes_before_the_index_where_all_have_an_entry() -> None:
    """Of 17 members with entries, the latest in reserve is dropped; without one in reserve, the latest of all."""
    members = [_member(f"m{i}", entry=i, active=i not in {3, 5}) for i in range(16)]
    cluster = _cluster(members).join(_member("n", entry=16, active=True), _policy())
    assert _names(cluster) == [f"m{i}" for i in range(16) if i != 5] + ["n"]
    cluster = cluster.join(_member("o", entry=17, active=True), _policy()).join(_member("p", entry=18), _policy())
    assert _names(cluster) == [f"m{i}" for i in range(16) if i not in {3, 5}] + ["n", "o"]


def test_best_member_succeeds_the_canonical_article() -> None:
    """The policy's preferred member succeeds, of equals the first; there is one copy less."""
    members = [_member("a", characters=9), _member("b", characters=5), _member("c", characters=7)]
    longest = _without(_cluster(members, _policy("longest")), "a", policy=_policy("longest"))
    assert (longest.canonical, longest.copies, _names(longest)) == ("c", 1, ["b", "c"])
    assert _without(_cluster(members), "a").canonical == "b"


def test_policy_alone_says_who_succeeds() -> None:
    """Whether a member's text is kept does not matter; of equals the first succeeds."""
    members = [
        _member("a", characters=9),
        _member("b", characters=8),
        _member("c", characters=5, entry=3, active=True),
        _member("d", characters=8, entry=4),
    ]
    policy = _policy("longest")
    assert _without(_cluster(members, policy), "a", policy=policy).canonical == "b"
    assert _without(_cluster(members), "a").canonical == "b"


def test_only_the_living_succeed() -> None:
    """Members that may not succeed are passed over; if none may, the cluster ends."""
    members = [_member("a"), _member("b"), _member("c")]
    after = _cluster(members).leave("a", "", _policy(), lambda member: member.id != "b")
    assert after is not None
    assert after.canonical == "c"
    assert _cluster(members).leave("a", "", _policy(), lambda _: False) is None


def test_successor_stays_against_its_equals() -> None:
    """A successor yields only to a strictly better article."""
    policy = _policy("longest")
    cluster = _without(_cluster([_member("a"), _member("b"), _member("c", entry=3)], policy), "a", policy=policy)
    assert cluster.canonical == "b"
    assert cluster.join(_member("d"), policy).canonical == "b"
    assert cluster.join(_member("d", characters=101), policy).canonical == "d"


def test_cluster_of_one_ends_with_it() -> None:
    """Nothing is left when the only article is withdrawn."""
    assert Cluster.founded(7, _member("a"), None).leave("a", "", _policy()) is None


def test_copies_that_are_not_kept_leave_too() -> None:
    """Each is subtracted, also from its source, until only the kept members remain; further ids change nothing."""
    cluster = _cluster([_member(f"m{i}", source="甲" if i % 2 else "乙") for i in range(20)])
    for i in range(16, 20):
        cluster = _without(cluster, f"m{i}", "甲" if i % 2 else "乙")
    assert (cluster.copies, cluster.sources) == (15, {"甲": 8, "乙": 8})
    assert cluster.leave("m16", "乙", _policy()) is cluster


def test_cluster_of_which_no_kept_member_is_left_ends() -> None:
    """The remaining copies are only counted: none of their ids is known that could name the cluster."""
    cluster = _cluster([_member(f"m{i}") for i in range(20)])
    for i in range(15):
        cluster = _without(cluster, f"m{i}")
    assert (cluster.canonical, cluster.copies) == ("m15", 4)
    assert cluster.leave("m15", "", _policy()) is None


def test_id_that_was_never_a_member_changes_nothing() -> None:
    """If all members are kept, or all of the source, an unknown id is not a member."""
    small = _cluster([_member("a", source="甲"), _member("b", source="甲")])
    assert small.leave("z", "甲", _policy()) is small
    large = _cluster([_member("a", source="甲"), *(_member(f"m{i}", source="乙") for i in range(30))])
    assert large.leave("z", "甲", _policy()) is large
    assert large.leave("z", "丙", _policy()) is large


def test_source_that_became_a_named_one_late_is_counted_off_in_full() -> None:
    """If a source's members were counted partly among the others and partly by name, both counts are reduced."""
    cluster = _cluster([_member(f"m{i}", source=f"s{i}") for i in range(257)])
    cluster = _without(cluster, "m100", "s100").join(_member("late", source="s256"), _policy())
    assert (cluster.sources["s256"], cluster.other_members) == (1, 1)
    cluster = _without(_without(cluster, "late", "s256"), "m256", "s256")
    assert ("s256" in cluster.sources, cluster.other_members, cluster.copies) == (False, 0, 254)


def test_stranger_does_not_lower_the_others_where_all_members_are_kept() -> None:
    """The same holds if a source counts both by name and among the others, and both its members are kept."""
    members = [_member(f"m{i}", source=f"s{i}") for i in range(256)]
    cluster = _cluster([*members, _member("m256", source="s256", entry=1)])
    cluster = _without(cluster, "m100", "s100").join(_member("late", source="s256", entry=2), _policy())
    for name in {member.id for member in members} - {"m100", *_names(cluster)}:
        cluster = _without(cluster, name, "s" + name[1:])
    assert (cluster.copies, cluster.sources["s256"], cluster.other_members) == (15, 1, 1)
    assert cluster.leave("z", "s1000", _policy()) is cluster


def test_entry_of_a_member_can_change() -> None:
    """Only the entry changes; an id that is not kept has none."""
    first, second = _member("a", entry=1, active=True, source="甲"), _member("b", published_ms=5, seen_ms=6)
    cluster = _cluster([first, second])
    changed = cluster.with_entry("b", 7)
    assert changed.members == (first, _member("b", entry=7, active=True, published_ms=5, seen_ms=6))
    assert changed._replace(members=cluster.members) == cluster
    assert cluster.with_entry("z", 7) is cluster


@given(st.lists(_MEMBERS, min_size=1, max_size=20), st.integers(0, 2**62), st.sampled_from(_POLICIES))
def test_clusters_come_back_as_they_were(members: list[Member], number: int, canonical: str) -> None:
    """Any cluster survives packing and unpacking."""
    cluster = Cluster.founded(number, members[0], members[0].seen_ms)
    for member in members[1:]:
        cluster = cluster.join(member, _policy(canonical))
    assert Cluster.unpack(cluster.pack()) == cluster


def test_cluster_at_its_bounds_comes_back() -> None:
    """A cluster with 256 long-named sources, 16 members and others beyond also survives."""
    cluster = _cluster([_member(f"{'长' * 100}{i}", source=f"{'源' * 100}{i}", seen_ms=i) for i in range(400)])
    assert Cluster.unpack(cluster.pack()) == cluster


@pytest.mark.parametrize("record", [b"", b"\x02[]", b"[]"])
def test_cluster_of_another_version_is_refused(record: bytes) -> None:
    """The first byte is the version; bytes with another one are refused."""
    with pytest.raises(ValueError, match="version"):
        Cluster.unpack(record)


_STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 15), st.integers(0, 3)), max_size=60)


@given(_STEPS, st.sampled_from(["first_seen", "first_published", "longest"]))
def test_cluster_is_that_of_all_its_members(steps: list[tuple[bool, int, int]], canonical: str) -> None:
    """While all members are kept, any order of joins, revisions and departures gives the same result as the full list.

    No two texts rank equally, so the best is unique. The model is a dictionary, where an updated key keeps its place.
    """
    policy = _policy(canonical)
    start = _member("0", source="s0", characters=10**6, published_ms=10**6)
    cluster, model = Cluster.founded(7, start, start.seen_ms), {"0": start}
    for step, (joins, number, source) in enumerate(steps):
        name, rank = str(number), step * 7919 % 99_991
        if joins:
            model[name] = _member(name, source=f"s{source}", characters=rank, published_ms=rank)
            cluster = cluster.join(model[name], policy)
        elif set(model) != {name}:
            model.pop(name, None)
            cluster = _without(cluster, name, "", policy)
        assert list(cluster.members) == list(model.values())
        assert cluster.copies == len(model) - 1
        assert cluster.canonical == min(model.values(), key=policy.rank).id
        assert cluster.sources == Counter(member.source for member in model.values())


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 400), st.booleans()), max_size=400), st.sampled_from(_POLICIES))
def test_counts_are_those_of_all_members_beyond_the_bounds(steps: list[tuple[bool, int, bool]], canonical: str) -> None:
    """However many join and leave, all are counted, no source counts more than its members, and the limits hold."""
    policy = _policy(canonical)
    first = [_member(f"m{i}", source=f"s{i}", characters=i * 37 % 91, published_ms=i % 7) for i in range(300)]
    cluster, model = _cluster(first, policy), {member.id: member for member in first}
    for joins, number, indexed in steps:
        name, source = f"m{number}", f"s{number % 280}"
        if joins and name not in model:
            entry = number if indexed else NOT_INDEXED
            model[name] = _member(name, entry=entry, source=source, characters=number)
            cluster = cluster.join(model[name], policy)
        elif not joins and name in model:
            left = cluster.leave(name, model.pop(name).source, policy)
            if left is None:
                assert _names(cluster) == [name]
                return
            cluster = left
        _check(cluster, model)


def _check(cluster: Cluster, model: dict[str, Member]) -> None:
    assert cluster.copies + 1 == len(model) == sum(cluster.sources.values()) + cluster.other_members
    assert cluster.canonical in _names(cluster)
    assert all(model[member.id] == member for member in cluster.members)
    assert len(cluster.members) <= MOST_MEMBERS
    assert len(cluster.sources) <= MOST_SOURCES
    counts = Counter(member.source for member in model.values())
    assert all(0 < count <= counts[source] for source, count in cluster.sources.items())


def test_cluster_is_told_with_its_sources() -> None:
    """Sources are listed by descending count, then by name; times are ISO 8601 in UTC."""
    sources = ["乙", "甲", "丙", "甲", "", "乙"]
    members = [_member(f"m{i}", source=name, seen_ms=_NOON + 1000 * i) for i, name in enumerate(sources)]
    assert cluster_fields(_cluster(members), _NOON + 60_001) == {
        "canonical": "m0",
        "copies": 5,
        "first_seen": "2026-10-18T12:00:00.000Z",
        "last_seen": "2026-10-18T12:00:05.000Z",
        "distinct_sources": 4,
        "sources": [
            {"source": "乙", "articles": 2},
            {"source": "甲", "articles": 2},
            {"source": "", "articles": 1},
            {"source": "丙", "articles": 1},
        ],
        "other_sources_articles": 0,
        "updated_at": "2026-10-18T12:01:00.001Z",
    }


def test_cluster_of_300_sources_tells_256_and_the_rest() -> None:
    """Unknown times are null."""
    told = cluster_fields(_cluster([_member(f"m{i}", source=f"s{i}") for i in range(300)]), _NOON)
    assert (len(told["sources"]), told["distinct_sources"], told["other_sources_articles"]) == (256, 256, 44)
    assert (told["first_seen"], told["last_seen"]) == (None, None)


def test_announcements_have_the_fields_of_a_link() -> None:
    """All messages of the topic of duplicates have one schema; only a succession also has a reason."""
    link = Link("a", "a", Relation.NEAR, 0.9, 0.9, 3, Source.LANDMARK)
    fields = list(link_fields(Decision(Article("b", "正文"), False, 1, 0, link, False), link, _NOON))
    assert list(withdrawal_fields(Withdrawn(Withdrawal("b"), "b", "a"), _NOON)) == fields
    assert list(succession_fields(Succession("a", "b", SuccessionReason.POLICY), _NOON)) == [
        *fields,
        "reason",
    ]


def test_withdrawal_is_told_with_its_message() -> None:
    """The id is the one under which the article was known; fields that do not apply are null."""
    withdrawal = Withdrawal("url:1", "https://shiqiao.example/1.html", Origin("articles.in", 3, 91, _NOON))
    assert _told(withdrawal_fields(Withdrawn(withdrawal, "n-1", "n-2"), _NOON + 5)) == {
        "id": "n-1",
        "duplicate_of": "n-2",
        "relation": Announcement.WITHDRAWN,
        "url": "https://shiqiao.example/1.html",
        "topic": "articles.in",
        "partition": 3,
        "offset": 91,
        "received_at": "2026-10-18T12:00:00.000Z",
        "decided_at": "2026-10-18T12:00:00.005Z",
    }


def test_withdrawal_of_the_last_article_names_no_other() -> None:
    """Nothing is left of its cluster, and no message is known, so these fields are null."""
    assert _told(withdrawal_fields(Withdrawn(Withdrawal("n-1"), "n-1", None), _NOON)) == {
        "id": "n-1",
        "relation": "withdrawn",
        "decided_at": "2026-10-18T12:00:00.000Z",
    }


@pytest.mark.parametrize("reason", ["withdrawn", "policy", "moved"])
def test_succession_is_told_with_its_reason(reason: str) -> None:
    """It has the old canonical article, the new one and the reason, and nothing else."""
    assert _told(succession_fields(Succession("n-1", "n-2", SuccessionReason(reason)), _NOON)) == {
        "id": "n-1",
        "duplicate_of": "n-2",
        "relation": "succession",
        "reason": reason,
        "decided_at": "2026-10-18T12:00:00.000Z",
    }


def _told(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: field for name, field in fields.items() if field is not None}
