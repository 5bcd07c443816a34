"""The clusters that a run touches: read from the state, changed in order, written back, and published.

Knows how clusters, their articles and entries in reserve fit together; knows nothing of verdicts.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from stream_dedup.article import Succession, SuccessionReason
from stream_dedup.engine.clusters import Cluster, Member, Policy, SuccessionTest
from stream_dedup.engine.record_changes import RecordChanges
from stream_dedup.engine.versions import since
from stream_dedup.engine.window import Moment
from stream_dedup.index.entries.entries import RESERVE, SEALED, Entries, EntryFormat
from stream_dedup.index.entries.new_entries import NewEntries
from stream_dedup.index.records.generations import newest
from stream_dedup.index.records.joins import renumbered_key
from stream_dedup.index.records.records import NOT_INDEXED, UNKNOWN_TIME, ArticleRecord, has_expired, key_of
from stream_dedup.index.stores.store import Family, Puts, Store
from stream_dedup.scope import id_of, scope_of

_MOST_IN_RESERVE = 1  # entries of copies kept per cluster, so that one can replace an article that is withdrawn


class ClusterChanges:
    """The clusters of a run.

    Args:
        store: the state.
        live: generations that have not expired, the newest last.
        layout: format of the entries.
        policy: which member is canonical, and how many are indexed.
        entries: entries that the run adds.

    Attributes:
        records: the records of their articles.
        removed: numbers of the entries that are to be deleted.
        published: by name of the canonical article, the clusters that changed; None for one that has ended.
        place: index in the run of the article that is changing clusters.
        successions: canonical articles that were replaced, each with the index of the article that led to it.
        reindexed: whether the index has changed for later articles of the run.
    """

    def __init__(
        self, store: Store, live: Sequence[int], layout: EntryFormat, policy: Policy, entries: NewEntries
    ) -> None:
        self._store = store
        self._live = live
        self._format = layout
        self._policy = policy
        self._entries = entries
        self.records = RecordChanges(store, live)
        self._clusters: dict[int, Cluster | None] = {}
        self._changed: set[int] = set()
        self._joins: dict[bytes, bytes] = {}
        self._entry_times: dict[int, int | None] = {}  # by number of the entry
        self.removed: list[int] = []
        self.published: dict[str, Cluster | None] = {}
        self.place = 0
        self.successions: list[tuple[int, Succession]] = []
        self.reindexed = False

    def prefetch(self, singles: Mapping[int, str]) -> None:
        """Read clusters, the times of their entries, and the records and URLs of their canonical articles at once.

        Args:
            singles: for each cluster number, the name of its only article in case it is not stored as a cluster yet.
        """
        self._load_clusters(singles)
        kept = [_kept(self._clusters[number]) for number in singles]
        self._load_times({one.entry for members in kept if len(members) > _MOST_IN_RESERVE for one in members})
        self.records.prefetch(self.canonical(number, single) for number, single in singles.items())

    def cluster(self, number: int) -> Cluster | None:
        """Return a cluster, None while it has only one article."""
        if number not in self._clusters:
            if number >= self._entries.first:
                return None  # founded in this run
            self._load_clusters([number])
        return self._clusters[number]

    def canonical(self, number: int, single: str) -> str:
        """Return the canonical article of a cluster; a single article is its own."""
        cluster = self.cluster(number)
        return cluster.canonical if cluster is not None else single

    def entry(self, number: int) -> Entries | None:
        """Return the fixed part of an entry, shape (1,), which the run may have added; None if it does not exist."""
        fixed = self._entries.get(number)
        if fixed is not None:
            return fixed
        (stored,) = self._store.get_many(Family.ENTRIES, [key_of(number)])
        return self._format.fixed([stored]) if stored is not None else None

    def note_join(self, key: bytes, packed: bytes) -> None:
        """Record why an article joined a cluster; see `index.records.joins`."""
        self._joins[key] = packed

    def wants_reserve(self, number: int, own_ms: int, moment: Moment) -> bool:
        """Tell whether the entry of another copy is worth keeping.

        It would be needed if the newest entry in the index were withdrawn, unless another is remembered about as long,
        or about as long as it would be itself.

        Args:
            number: number of the cluster.
            own_ms: time from which the copy would be remembered, see `Times.window`.
            moment: the current moment.
        """
        kept = _kept(self.cluster(number))
        if len(kept) <= _MOST_IN_RESERVE:
            return True
        # Of the entries: a member may have got another text since, which is later and not kept.
        times = self._times([member.entry for member in kept])
        left = [
            (time, member.active)
            for time, member in zip(times, kept, strict=True)
            if time is not None and not has_expired(time, moment.cutoff_ms)
        ]
        newest = max([time for time, active in left if active], default=UNKNOWN_TIME)
        return sum([time >= min(newest, own_ms) - moment.renewal_ms for time, _ in left]) <= _MOST_IN_RESERVE

    def _times(self, numbers: Sequence[int]) -> list[int | None]:
        """Return the times from which entries are remembered, None for those that are gone."""
        self._load_times([number for number in numbers if number < self._entries.first])
        for number in numbers:
            if number not in self._entry_times:
                self._entry_times[number] = self._entries.time(number)
        return [self._entry_times[number] for number in numbers]

    def _load_times(self, numbers: Iterable[int]) -> None:
        missing = [number for number in numbers if number not in self._entry_times]
        if not missing:
            return
        self._entry_times |= dict.fromkeys(missing)
        values = self._store.get_many(Family.ENTRIES, list(map(key_of, missing)))
        there = [number for number, value in zip(missing, values, strict=True) if value is not None]
        fixed = self._format.fixed([value for value in values if value is not None])
        self._entry_times |= zip(there, fixed["window_ms"].tolist(), strict=True)

    def join(
        self, number: int, founder: str, founding: int, member: Member, old: ArticleRecord | None, moment: Moment
    ) -> None:
        """Add a copy to a cluster, or another text of a member.

        Args:
            number: number of the cluster.
            founder: name of its only article, if it is not stored as a cluster yet.
            founding: number of that article's entry.
            member: the copy.
            old: its record so far, if it is already in the cluster.
            moment: the current moment.
        """
        stored = self.cluster(number)
        before = stored or self._founded(number, founder, founding)
        after = self._joined(before, member, old, moment)
        self._change(number, stored, after, SuccessionReason.POLICY, before, moment)

    def revise(self, number: int, member: Member, old: ArticleRecord | None, moment: Moment) -> None:
        """Record another text of an article in its own cluster, if the cluster has copies."""
        before = self.cluster(number)
        if before is not None:
            after = self._joined(before, member, old, moment)
            self._change(number, before, after, SuccessionReason.POLICY, before, moment)

    def _joined(self, cluster: Cluster, member: Member, old: ArticleRecord | None, moment: Moment) -> Cluster:
        if old is not None and cluster.member(member.id) is None:
            # The old text of a member that is no longer kept must not be counted in addition to the new one.
            cluster = cluster.leave(member.id, old.source, self._policy) or cluster
        return cluster.join(member, self._policy, self._living(cluster.number, moment), moment.cutoff_ms)

    def _living(self, number: int, moment: Moment) -> SuccessionTest:
        """Return a function that tells whether a member's id is still known, as belonging to this cluster."""
        return partial(self._lives, number, moment.cutoff_ms)

    def _lives(self, number: int, cutoff: int, member: Member) -> bool:
        record = since(self.records.record(member.id), cutoff)
        return record is not None and record.cluster == number

    def leave(self, name: str, record: ArticleRecord, reason: SuccessionReason, moment: Moment) -> str | None:
        """Remove an article from its cluster and the index; return the canonical article, None if there is none left.

        Args:
            name: name of the article.
            record: its record.
            reason: why it leaves.
            moment: the current moment.
        """
        self.removed += record.entries
        self.reindexed = self.reindexed or bool(record.entries)
        before = self.cluster(record.cluster)
        if before is None:
            return None
        after = before.leave(name, record.source, self._policy, self._living(record.cluster, moment))
        if after is not None:
            after = self._activated(after, moment)
        self._change(record.cluster, before, after, reason, before, moment)
        return after.canonical if after is not None else None

    def seal(self, number: int) -> None:
        """Keep further drifted copies of a cluster out of the index, if it already has as many as allowed."""
        cluster = self.cluster(number)
        active = [member for member in cluster.members if member.active] if cluster is not None else []
        if cluster is None or len(active) < self._policy.variants:
            return
        for member in active:
            fixed = self.entry(member.entry)
            if fixed is not None and int(fixed["flags"][0]) & SEALED == 0:
                cluster = self._flagged(cluster, member, fixed, int(fixed["flags"][0]) | SEALED)
        self._clusters[number] = cluster

    def writes(self) -> list[Puts]:
        """Return the records to write, with keys that do not include the generation."""
        numbers = sorted(self._changed)
        clusters = [self._clusters[number] for number in numbers]
        writes = [
            *self.records.writes(),
            Puts(Family.CLUSTERS, list(map(key_of, numbers)), [cluster and cluster.pack() for cluster in clusters]),
            Puts(Family.MEMBERS, list(self._joins), list(self._joins.values())),
        ]
        return [puts for puts in writes if puts.keys]

    def _load_clusters(self, numbers: Iterable[int]) -> None:
        missing = sorted({number for number in numbers if number not in self._clusters})
        values = newest(self._store, Family.CLUSTERS, list(map(key_of, missing)), self._live)
        self._clusters |= zip(missing, [Cluster.unpack(value) if value else None for value in values], strict=True)

    def _founded(self, number: int, name: str, entry: int) -> Cluster:
        record = self.records.record(name)
        if record is not None and record.entries:
            entry = record.entries[0]  # what matched may be an earlier text
        first_ms = record.first_ms if record is not None else None
        member = member_of(name, record, entry, active=entry != NOT_INDEXED)
        return Cluster.founded(number, member, first_ms)

    def _change(
        self,
        number: int,
        stored: Cluster | None,
        after: Cluster | None,
        reason: SuccessionReason,
        before: Cluster,
        moment: Moment,
    ) -> None:
        self._clusters[number] = after
        self._changed.add(number)
        if after is not None:
            self.published[after.canonical] = after
            self.records.renew(after.canonical, moment.stream_ms)
        if after is None or after.canonical != before.canonical:
            if stored is not None:
                self.published[before.canonical] = None
            if after is not None and reason is not SuccessionReason.WITHDRAWN:
                self.successions.append((self.place, _succession(before.canonical, after.canonical, reason)))

    def _activated(self, cluster: Cluster, moment: Moment) -> Cluster:
        """Return a cluster that can be found: if need be, entries move from reserve to the index, with new numbers.

        These are the entry of the canonical article or, if that is not kept and nothing of the cluster is in the index,
        the first one that is kept; and the newest one, if all in the index expire much earlier.
        """
        kept = [
            (member, fixed)
            for member in cluster.members
            if (fixed := self._visible(member, moment.cutoff_ms)) is not None
        ]
        times = {member.id: int(fixed["window_ms"][0]) for member, fixed in kept}
        indexed = [member.id for member, _ in kept if member.active]
        wanted = [cluster.canonical] if cluster.canonical in times else [] if indexed else list(times)[:1]
        newest = max(times, key=times.__getitem__, default=None)
        if newest is not None and all(times[newest] > times[one] + moment.renewal_ms for one in (*indexed, *wanted)):
            wanted.append(newest)
        reserved = {member.id: (member, fixed) for member, fixed in kept if not member.active}
        for member, fixed in (reserved[one] for one in wanted if one in reserved):
            cluster = self._flagged(cluster, member, fixed, int(fixed["flags"][0]) & ~RESERVE)
        return cluster

    def _flagged(self, cluster: Cluster, member: Member, fixed: Entries, flags: int) -> Cluster:
        """Return a cluster with other flags on a member's entry, which is then in the index, with a new number."""
        changed = fixed.copy()
        changed["flags"] = flags
        number = self._entries.add_again(changed, member.id.encode())
        self.removed.append(member.entry)
        self.reindexed = True
        self._renumber(member.id, member.entry, number)
        if member.active:
            self._joins[renumbered_key(member.entry)] = key_of(number)
        return cluster.with_entry(member.id, number)

    def _visible(self, member: Member, cutoff: int) -> Entries | None:
        """Return the fixed part of a member's entry as long as later articles can match it, else None."""
        fixed = self.entry(member.entry) if member.entry != NOT_INDEXED else None
        return None if fixed is None or has_expired(int(fixed["window_ms"][0]), cutoff) else fixed

    def _renumber(self, name: str, old: int, new: int) -> None:
        record = self.records.record(name)
        if record is not None:
            entries = tuple([new if one == old else one for one in record.entries])
            self.records.replace(name, record._replace(entries=entries))


def _kept(cluster: Cluster | None) -> list[Member]:
    """Return the members of a cluster whose entries are kept, in the index or in reserve."""
    return [member for member in cluster.members if member.entry != NOT_INDEXED] if cluster is not None else []


def _succession(old: str, new: str, reason: SuccessionReason) -> Succession:
    return Succession(id_of(old), id_of(new), reason, scope_of(new))


def member_of(name: str, record: ArticleRecord | None, entry: int, *, active: bool) -> Member:
    """Return an article as a member of a cluster; if its record has expired, only its name is known."""
    if record is None:
        return Member(name, entry, active, None, None, 0, "")
    return Member(name, entry, active, record.published_ms, record.seen_ms, record.characters, record.source)
