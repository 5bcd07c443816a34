"""Clusters: an article with its copies, how many come from each source, and which of them is canonical.

Knows members, counts, the policy and what is published of them; knows nothing of where clusters are stored.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import orjson

from stream_dedup.counted import most_first
from stream_dedup.index.records.records import NOT_INDEXED, UNKNOWN_TIME, has_expired, time_number
from stream_dedup.output_fields import iso, scope_json
from stream_dedup.scope import id_of, scope_of
from stream_dedup.settings import ClusterSettings

MOST_MEMBERS = 16  # members kept per cluster, for the succession: counting continues beyond that
MOST_SOURCES = 256  # counted by name
_VERSION = b"\x01"


class Member(NamedTuple):
    """One article of a cluster.

    Attributes:
        id: name of the article: its id, preceded by its scope if it has one.
        entry: number of its index entry; `NOT_INDEXED` if no entry is kept.
        active: whether the entry is in the index; otherwise it is kept in reserve.
        published_ms: event time, milliseconds since 1970 in UTC; None if unknown.
        seen_ms: when its message arrived, same unit; None if unknown.
        characters: length of its text.
        source: who published it; empty if unknown.
    """

    id: str
    entry: int
    active: bool
    published_ms: int | None
    seen_ms: int | None
    characters: int
    source: str


SuccessionTest = Callable[[Member], bool]


def _anyone(_member: Member) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Policy:
    """Which of two members is the better canonical article, and how many are worth indexing.

    Attributes:
        rank: returns the rank of a member; smaller is better.
        variants: number of a cluster's entries in the index from which on drifted copies are no longer indexed.
    """

    rank: Callable[[Member], float]
    variants: int

    def prefers(self, new: Member, old: Member) -> bool:
        """Tell whether a member is better than one seen before it; on a tie, the earlier one stays."""
        return self.rank(new) < self.rank(old)


def policy_of(settings: ClusterSettings) -> Policy:
    """Return the policy that the settings select."""
    return Policy(_rank(settings), settings.variants)


def _rank(settings: ClusterSettings) -> Callable[[Member], float]:
    if settings.canonical == "first_published":
        return _time_of_publication
    if settings.canonical == "longest":
        return lambda member: -member.characters
    if settings.canonical == "preferred_source":
        return _place_among(settings.preferred_sources)
    return lambda _: 0


def _time_of_publication(member: Member) -> float:
    return math.inf if member.published_ms is None else member.published_ms


def _place_among(sources: list[str]) -> Callable[[Member], float]:
    places = {source: place for place, source in reversed([*enumerate(sources)])}
    return lambda member: places.get(member.source, len(sources))


class Cluster(NamedTuple):
    """An article and its copies.

    Attributes:
        number: entry number of the founding article; it identifies the cluster in the state and never changes.
        canonical: name of the canonical article, which is always among `members`.
        copies: how many members there are besides the canonical one, kept or not.
        first_ms: when the first of all members so far was seen, milliseconds since 1970 in UTC; None if unknown.
        last_ms: when the last of them was seen, likewise.
        sources: how many members each source has; at most `MOST_SOURCES` sources.
        other_members: how many members come from further sources.
        members: at most `MOST_MEMBERS` of them, in order of arrival.
    """

    number: int
    canonical: str
    copies: int
    first_ms: int | None
    last_ms: int | None
    sources: Mapping[str, int]
    other_members: int
    members: tuple[Member, ...]

    @classmethod
    def founded(cls, number: int, member: Member, first_ms: int | None) -> "Cluster":
        """Return a cluster of one article.

        Args:
            number: number of the cluster.
            member: the article.
            first_ms: when its first text was seen, milliseconds since 1970 in UTC, which may be later than the time of
                a later text; None if unknown.
        """
        first, last = _earlier(first_ms, member.seen_ms), _later(first_ms, member.seen_ms)
        return cls(number, member.id, 0, first, last, {member.source: 1}, 0, (member,))

    def join(
        self,
        member: Member,
        policy: Policy,
        can_succeed: SuccessionTest = _anyone,
        cutoff_ms: int = UNKNOWN_TIME,
    ) -> "Cluster":
        """Return the cluster with one more copy, or with another text of a member that is kept.

        Another text keeps the member's place in the order. An id that was a member but is no longer kept counts as a
        new one: if it may be such a member, call `leave` first.

        The canonical article changes if the policy prefers the new one; on a tie it stays. Beyond `MOST_MEMBERS`, the
        least preferred member is dropped, on a tie the last: among those that arrived before the window, so that some
        are left which can succeed; otherwise among those without an entry; if all have one, among those in reserve, and
        otherwise among all but the canonical one.

        Args:
            member: the copy.
            policy: decides which is canonical.
            can_succeed: tells whether a member may succeed the canonical one.
            cutoff_ms: beginning of the window, milliseconds since 1970 in UTC.
        """
        old = self.member(member.id)
        if old is not None:
            return self._revised(old, member, policy, can_succeed)
        canonical = self._canonical()
        if policy.prefers(member, canonical):
            canonical = member
        sources, others = _counted(self.sources, self.other_members, member.source)
        return Cluster(
            self.number,
            canonical.id,
            self.copies + 1,
            _earlier(self.first_ms, member.seen_ms),
            _later(self.last_ms, member.seen_ms),
            sources,
            others,
            _bounded((*self.members, member), canonical, policy, cutoff_ms),
        )

    def leave(
        self, member_id: str, source: str, policy: Policy, can_succeed: SuccessionTest = _anyone
    ) -> "Cluster | None":
        """Return the cluster without a member, or None if no article is left that could be canonical.

        A canonical article is succeeded by the living member that the policy prefers, on a tie by the first. If there
        is none, the cluster ends, even if it has copies that are no longer kept. An id that was never a member changes
        nothing if that can be detected: if all members are kept, or all of its source. `first_ms` and `last_ms` stay.

        Args:
            member_id: id of the article, which may be one that is no longer kept.
            source: source under which it was counted; needed if it is no longer kept.
            policy: decides the succession.
            can_succeed: tells whether a member may succeed the canonical one.
        """
        member = self.member(member_id)
        if member is None:
            return self._without_one_of(source)
        members = tuple([kept for kept in self.members if kept is not member])
        canonical: str | None = self.canonical
        if member.id == self.canonical:
            canonical = _successor([kept for kept in members if can_succeed(kept)], policy)
        if canonical is None:
            return None
        return self._one_fewer(canonical, members, *_discounted(self.sources, self.other_members, member.source))

    def with_entry(self, member_id: str, entry: int) -> "Cluster":
        """Return the cluster with another entry in the index for a member; unchanged if the member is not kept."""
        old = self.member(member_id)
        if old is None:
            return self
        return self._replace(members=self._with(old, old._replace(entry=entry, active=True)))

    def member(self, member_id: str) -> Member | None:
        """Return a member by its id, None if it is not kept."""
        for member in self.members:
            if member.id == member_id:
                return member
        return None

    def pack(self) -> bytes:
        """Return the cluster as bytes: a version, then a JSON array of its fields and of its members' fields."""
        *fields, members = self
        return _VERSION + orjson.dumps([*fields, *chain.from_iterable(members)])

    @classmethod
    def unpack(cls, record: bytes) -> "Cluster":
        """Return the cluster that was packed into bytes.

        Raises:
            ValueError: they are not a packed cluster, or one of another version.
        """
        if record[:1] != _VERSION:
            raise ValueError(f"a cluster has version {record[:1]!r} instead of {_VERSION!r}")
        number, canonical, copies, first_ms, last_ms, sources, others, *members = orjson.loads(record[1:])
        fields = [iter(members)] * len(Member._fields)
        kept = tuple(map(Member, *fields))
        return cls(number, canonical, copies, first_ms, last_ms, sources, others, kept)

    def _canonical(self) -> Member:
        canonical = self.member(self.canonical)
        if canonical is None:
            raise ValueError(f"the cluster of {self.canonical!r} does not contain it")
        return canonical

    def _with(self, old: Member, new: Member) -> tuple[Member, ...]:
        return tuple([new if member is old else member for member in self.members])

    def _revised(self, old: Member, new: Member, policy: Policy, can_succeed: SuccessionTest) -> "Cluster":
        members = self._with(old, new)
        rivals = [self._canonical(), new]
        if new.id == self.canonical:
            rivals = [new, *(member for member in members if member is not new and can_succeed(member))]
        sources, others = self.sources, self.other_members
        if new.source != old.source:
            sources, others = _counted(*_discounted(sources, others, old.source), new.source)
        return self._replace(
            canonical=min(rivals, key=policy.rank).id,
            first_ms=_earlier(self.first_ms, new.seen_ms),
            last_ms=_later(self.last_ms, new.seen_ms),
            sources=sources,
            other_members=others,
            members=members,
        )

    def _without_one_of(self, source: str) -> "Cluster":
        """Return the cluster without one member of a source that is not kept, if there can be one."""
        if self.copies + 1 == len(self.members):
            return self
        if self.sources.get(source, 0) > sum(member.source == source for member in self.members):
            return self._one_fewer(self.canonical, self.members, *_discounted(self.sources, self.other_members, source))
        if self.other_members > sum(member.source not in self.sources for member in self.members):
            return self._one_fewer(self.canonical, self.members, self.sources, self.other_members - 1)
        return self

    def _one_fewer(
        self, canonical: str, members: tuple[Member, ...], sources: Mapping[str, int], others: int
    ) -> "Cluster":
        return Cluster(self.number, canonical, self.copies - 1, self.first_ms, self.last_ms, sources, others, members)


def cluster_fields(cluster: Cluster, changed_ms: int) -> dict[str, Any]:
    """Return the fields of a message about a cluster on the clusters topic.

    Sources are in descending order of their articles. `distinct_sources` is how many are counted by name, those without
    a name as one; if `other_sources_articles` is not 0, there are more.

    Args:
        cluster: the cluster as it is now.
        changed_ms: when it changed, milliseconds since 1970 in UTC.
    """
    by_articles = most_first(cluster.sources)
    return {
        "canonical": id_of(cluster.canonical),
        "copies": cluster.copies,
        "first_seen": iso(cluster.first_ms),
        "last_seen": iso(cluster.last_ms),
        "distinct_sources": len(by_articles),
        "sources": [{"source": source, "articles": articles} for source, articles in by_articles],
        "other_sources_articles": cluster.other_members,
        "updated_at": iso(changed_ms),
        **scope_json(scope_of(cluster.canonical)),
    }


def _successor(members: Sequence[Member], policy: Policy) -> str | None:
    best = min(members, key=policy.rank, default=None)
    return best.id if best is not None else None


def _bounded(members: tuple[Member, ...], canonical: Member, policy: Policy, cutoff_ms: int) -> tuple[Member, ...]:
    """Return at most `MOST_MEMBERS` members: if there is one too many, all but the one that is needed least."""
    if len(members) <= MOST_MEMBERS:
        return members

    rest = [member for member in members if member is not canonical]
    rest = (
        [member for member in rest if has_expired(time_number(member.seen_ms), cutoff_ms)]
        or [member for member in rest if member.entry == NOT_INDEXED]
        or [member for member in rest if not member.active]
        or rest
    )
    # On a tie, the last: `max` returns the first one it meets.
    needless = max(reversed(rest), key=policy.rank)
    return tuple([member for member in members if member is not needless])


def _counted(sources: Mapping[str, int], others: int, source: str) -> tuple[Mapping[str, int], int]:
    """Count one more member: under its source while there is room for the name, otherwise under the others."""
    if source in sources or len(sources) < MOST_SOURCES:
        return {**sources, source: sources.get(source, 0) + 1}, others
    return sources, others + 1


def _discounted(sources: Mapping[str, int], others: int, source: str) -> tuple[Mapping[str, int], int]:
    """Count one member fewer."""
    if source not in sources:
        return sources, others - 1
    if sources[source] > 1:
        return {**sources, source: sources[source] - 1}, others
    return {name: count for name, count in sources.items() if name != source}, others


def _earlier(known: int | None, new: int | None) -> int | None:
    return new if known is None else known if new is None else min(known, new)


def _later(known: int | None, new: int | None) -> int | None:
    return new if known is None else known if new is None else max(known, new)
