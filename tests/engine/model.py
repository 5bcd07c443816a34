"""The engine's promises in plain Python: keep everything, compare all pairs by exact sets, take one item at a time.

Knows the documented rules of window, revisions, withdrawals and clusters; knows nothing of batches, generations,
sketches or stores.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import strategies as st

from stream_dedup import Article, EngineSettings, Origin, Relation
from stream_dedup.article import Unjudged, Withdrawal, Withdrawn
from stream_dedup.engine.clusters import Cluster
from stream_dedup.engine.judged import Judged, Outcome
from tests.engine.samples import LIGHT, bodies

HOUR, DAY = 3_600_000, 86_400_000
BEGIN = 1_760_000_000_000
BASES, VARIANTS = 3, 6
_KEPT = 8  # newest texts and entries kept of an id
_IN_RESERVE = 1  # entries kept of a cluster's copies
_LENGTH, _CHANGED, _CUT = 120, 32, 60  # characters of a text, of a changed stretch, of a truncated copy
_GRAM = 5
SEPARATOR = "\x1f"  # between scope and id, as documented

Item = Article | Withdrawal
Seen = tuple[Any, ...]


def engine_settings(days: float, late: str = "judge", *, revisions: bool = False, **cluster: object) -> EngineSettings:
    """Return settings with a window and a policy, for an engine that is cheap to create.

    Args:
        days: length of the window.
        late: `window.late`.
        revisions: whether they count as duplicates.
        cluster: settings of its group.
    """
    light = LIGHT.model_dump()
    counted = [*LIGHT.verify.duplicates, *[Relation.REVISION] * revisions]
    verify = {**light["verify"], "duplicates": counted}
    return LIGHT.model_validate(
        {**light, "window": {"days": days, "late": late}, "verify": verify, "cluster": {**cluster}}
    )


# ------------------------------------------------------------------------------------------------------- texts


@cache
def text(base: int, variant: int) -> str:
    """Return one of the texts that streams are made of; texts of different bases have nothing in common.

    The variants of a base: 0 the text, 1 the same with commas, 2 one character changed, 3 the end changed so that it
    has drifted from 0, 4 the beginning of 3 changed so that it has drifted from 3 and is no copy of 0, 5 the first
    half.
    """
    han, other = (_han(place)[:_LENGTH] for place in (base, BASES + base))
    if variant == 1:
        return "，".join(han[at : at + 10] for at in range(0, _LENGTH, 10))
    if variant == 2:
        return han[:90] + other[0] + han[91:]
    if variant >= 3:
        han = han if variant == VARIANTS - 1 else han[:-_CHANGED] + other[-_CHANGED:]
    if variant == 4:
        han = other[:_CHANGED] + han[_CHANGED:]
    return han[:_CUT] if variant == VARIANTS - 1 else han


def _han(place: int) -> str:
    return "".join(character for character in bodies()[place] if "\u4e00" <= character <= "\u9fff")


@cache
def _content(body: str) -> str:
    return "".join(filter(str.isalnum, body))


@cache
def _grams(body: str) -> frozenset[str]:
    content = _content(body)
    return frozenset(content[at : at + _GRAM] for at in range(len(content) - _GRAM + 1))


@cache
def measures(one: str, other: str) -> tuple[Relation | None, float, float]:
    """Return the relation of one text to another, their Jaccard and their containment."""
    if _content(one) == _content(other):
        return Relation.EXACT, 1.0, 1.0
    a, b = _grams(one), _grams(other)
    shared = len(a & b)
    jaccard, containment = shared / len(a | b), shared / min(len(a), len(b))
    verify = LIGHT.verify
    if jaccard < verify.near_jaccard and containment < verify.min_containment:
        return None, jaccard, containment
    cut = containment >= verify.cut_containment and jaccard < verify.cut_jaccard
    if jaccard >= verify.near_jaccard and not cut:
        return Relation.NEAR, jaccard, containment
    return (Relation.CONTAINED if len(a) <= len(b) else Relation.CONTAINS), jaccard, containment


# ------------------------------------------------------------------------------------------------------- model


@dataclass
class _Entry:
    article: str
    body: str
    window: float
    cluster: int
    active: bool
    variant: bool = False
    sealed: bool = False


@dataclass
class _Record:
    contents: list[str]
    entries: list[_Entry]
    decided: float
    relation: Relation | None
    cluster: int
    url: str
    member: "_Member"


@dataclass
class _Member:
    id: str
    entry: _Entry | None
    published: int | None
    seen: int | None
    characters: int
    source: str


@dataclass
class _Cluster:
    members: list[_Member]
    canonical: _Member
    first: int | None
    last: int | None
    told: bool = False

    def seen(self, member: _Member) -> None:
        known = [moment for moment in (self.first, self.last, member.seen) if moment is not None]
        self.first, self.last = min(known, default=None), max(known, default=None)

    def shown(self) -> Seen:
        sources = Counter(member.source for member in self.members)
        return (self.canonical.id, len(self.members) - 1, self.first, self.last, dict(sources))


@dataclass
class Model:
    """What the engine must report on a stream.

    Attributes:
        settings: window and policy; the others are those of `LIGHT`.
        clusters: the latest report on each cluster, by canonical article.
        successions: all so far: old and new canonical article, and the reason.
        now: the stream's time.
    """

    settings: EngineSettings
    clusters: dict[str, Seen | None] = field(default_factory=dict)
    successions: list[tuple[str, str, str]] = field(default_factory=list)
    now: float = -math.inf
    _entries: list[_Entry] = field(default_factory=list)
    _records: dict[str, _Record] = field(default_factory=dict)
    _urls: dict[str, list[str]] = field(default_factory=dict)
    _groups: dict[int, _Cluster] = field(default_factory=dict)
    _made: int = 0

    @property
    def _floor(self) -> float:
        return self.now - self.settings.window.days * DAY

    @property
    def _revisions_count(self) -> bool:
        return Relation.REVISION in self.settings.verify.duplicates

    def feed(self, item: Item) -> Seen:
        """Take the next item; return what `seen` must return for the engine's outcome."""
        return self._withdraw(item) if isinstance(item, Withdrawal) else self._judge(item)

    # -------------------------------------------------------------------------------------------- articles

    def _judge(self, article: Article) -> Seen:
        message = article.origin.timestamp_ms if article.origin else None
        own = message if article.published_ms is None else article.published_ms
        known = [moment for moment in (own, message) if moment is not None]
        self.now = max(self.now, min(known, default=-math.inf))
        late = own is not None and own < self._floor
        if late and self.settings.window.late == "dead":
            return ("unjudged", article.id, "too_late")
        window = self.now if late or own is None else min(own, self.now)
        record = self._record(article.id)
        content = _content(article.body)
        if record is not None and content in record.contents:
            return (
                "decision",
                article.id,
                False,
                Relation.REDELIVERY,
                self._canonical(record),
                article.id,
                1,
                1,
                False,
            )
        siblings = self._siblings(article)
        before = record or next(iter(siblings), None)
        best, newest_match_ms = self._best(article, {article.id, *(sibling.member.id for sibling in siblings)})
        home = None
        if best is not None and self._groups[best.cluster].canonical.id == article.id:
            # A copy of an earlier text of this same article, which stays known as long as it has copies.
            assert record is not None
            home, best = best.cluster, None
        if best is None and before is not None and self._revisions_count:
            # As a duplicate it belongs to what it revises, whatever its text.
            home = before.cluster
        return self._remember(article, window, record, before, best, newest_match_ms, home)

    def _record(self, name: str) -> _Record | None:
        record = self._records.get(name)
        return record if record is not None and record.decided >= self._floor else None

    def _siblings(self, article: Article) -> list[_Record]:
        """Return the other articles of the same URL, newest first; none if one of them has this text."""
        names = [name for name in self._urls.get(article.url, []) if name != article.id]
        records = [record for record in map(self._record, names) if record and record.url == article.url]
        return [] if any(_content(article.body) in record.contents for record in records) else records

    def _best(self, article: Article, left_out: set[str]) -> tuple[_Entry | None, float]:
        """Return the entry most like an article, and the window time of the newest entry that is like it."""
        best, most, newest_match_ms = None, 0.0, -math.inf
        for entry in self._entries:
            if not entry.active or entry.window < self._floor or entry.article in left_out:
                continue
            relation, jaccard, containment = measures(article.body, entry.body)
            verify = self.settings.verify
            if entry.variant and jaccard < verify.chain_jaccard and containment < verify.cut_containment:
                continue
            score = _cosine(article.body, entry.body) + 2 * (relation is Relation.EXACT)
            if relation is not None:
                newest_match_ms = max(newest_match_ms, entry.window)
            if relation is not None and score > most:
                best, most = entry, score
        return best, newest_match_ms

    def _remember(
        self,
        article: Article,
        window: float,
        record: _Record | None,
        before: _Record | None,
        best: _Entry | None,
        newest_match_ms: float,
        home: int | None,
    ) -> Seen:
        shown, content = self._shown(article, before, best), _content(article.body)
        contents = [content, *(record.contents if record else [])]
        relation, drifted = shown[3], best is not None and self._drifted(article.body, best.body)
        ageing = newest_match_ms < window - self.settings.window.days * DAY / 8
        sealed = best is not None and best.sealed
        indexed = best is None or (drifted and not sealed) or (ageing and relation in {Relation.EXACT, Relation.NEAR})
        if record is not None and not self._stays(record, best, home):
            self._leave(article.id, record, "moved")
            record = None
        number = best.cluster if best else record.cluster if record else self._made
        if relation is Relation.REVISION and self._revisions_count:
            assert home is not None
            number = home
        self._made += 1
        member = _Member(
            article.id,
            None,
            article.published_ms,
            article.origin.timestamp_ms if article.origin else article.published_ms,
            len(article.body),
            article.source,
        )
        group = self._groups.get(number)
        old = next((one for one in group.members if one.id == article.id), None) if group and record else None
        entries = record.entries if record else []
        stale = old.entry if old is not None and old.entry is not None and not old.entry.active else None
        if stale is not None:
            self._entries.remove(stale)
            entries = [entry for entry in entries if entry is not stale]
        if indexed or stale is not None or (self._wants_reserve(group, window) and (old is None or old.entry is None)):
            member.entry = _Entry(article.id, article.body, window, number, indexed)
            if best is not None and indexed:
                member.entry.variant, member.entry.sealed = drifted or best.variant, sealed
            self._entries.append(member.entry)
            entries = [member.entry, *entries]
        elif old is not None:
            member.entry = old.entry
        for entry in entries[_KEPT:]:
            self._entries.remove(entry)
        self._records[article.id] = _Record(
            contents[:_KEPT], entries[:_KEPT], self.now, relation, number, article.url, member
        )
        if article.url:
            others = [name for name in self._urls.get(article.url, []) if name != article.id]
            self._urls[article.url] = [article.id, *others][:_KEPT]
        self._join(number, member)
        if indexed:
            self._seal(number)
        return (*shown[:-1], indexed)

    def _drifted(self, body: str, other: str) -> bool:
        _, jaccard, containment = measures(body, other)
        verify = self.settings.verify
        return jaccard < verify.variant_jaccard and containment < verify.cut_containment

    def _seal(self, number: int) -> None:
        """Index no further drifted copies of a cluster that has as many indexed as allowed."""
        active = [one.entry for one in self._groups[number].members if one.entry is not None and one.entry.active]
        if len(active) < self.settings.cluster.variants:
            return
        for entry in active:
            if not entry.sealed:
                # It is rewritten, so among equals it comes last.
                entry.sealed = True
                self._entries.remove(entry)
                self._entries.append(entry)

    def _shown(self, article: Article, before: _Record | None, best: _Entry | None) -> Seen:
        if best is not None:
            measured = measures(article.body, best.body)
            canonical = self._groups[best.cluster].canonical.id
            return ("decision", article.id, False, measured[0], canonical, best.article, *_rounded(measured[1:]), None)
        if before is None:
            return ("decision", article.id, True, None, None, None, None, None, None)
        name, kept = before.member.id, before.entries[0] if before.entries else None
        counts = self._revisions_count
        named = (not counts, Relation.REVISION, self._canonical(before) if counts else name, name)
        forgotten = kept is None or kept not in self._entries or kept.window < self._floor
        if kept is None or forgotten or _content(kept.body) != before.contents[0]:
            return ("decision", article.id, *named, None, None, None)
        numbers = _rounded(measures(article.body, kept.body)[1:])
        return ("decision", article.id, *named, *numbers, None)

    def _wants_reserve(self, group: _Cluster | None, own: float) -> bool:
        """Tell whether one more text is to be kept: besides the newest in the index there is none of about its age.

        One that is older itself is kept only if there is none of about its own.
        """
        kept = [one.entry for one in group.members if one.entry and one.entry.window >= self._floor] if group else []
        newest = max((entry.window for entry in kept if entry.active), default=-math.inf)
        least = min(newest, own) - self.settings.window.days * DAY / 8
        return sum(entry.window >= least for entry in kept) <= _IN_RESERVE

    def _stays(self, record: _Record, best: _Entry | None, home: int | None) -> bool:
        """A copy stays among the copies of the same article; a text of its own, with the cluster that has its name."""
        if best is not None:
            return best.cluster == record.cluster
        if self._revisions_count:
            return True
        own = record.relation in {None, Relation.REVISION} or home == record.cluster
        return own and self._canonical(record) == record.member.id

    # ------------------------------------------------------------------------------------------ withdrawals

    def _withdraw(self, withdrawal: Withdrawal) -> Seen:
        name = withdrawal.id
        if self._record(name) is None and withdrawal.url:
            names = self._urls.get(withdrawal.url, [])
            still = [one for one in names if (record := self._record(one)) and record.url == withdrawal.url]
            name = next(iter(still), name)
        record = self._record(name)
        if record is None:
            return ("unjudged", withdrawal.id, "unknown_article")
        canonical = self._leave(name, record, "withdrawn")
        del self._records[name]
        self._urls = {url: [one for one in names if one != name] for url, names in self._urls.items()}
        return ("withdrawn", withdrawal.id, name, canonical)

    # --------------------------------------------------------------------------------------------- clusters

    def _canonical(self, record: _Record) -> str:
        return self._groups[record.cluster].canonical.id

    def _rank(self, member: _Member) -> float:
        cluster = self.settings.cluster
        if cluster.canonical == "first_published":
            return math.inf if member.published is None else member.published
        if cluster.canonical == "longest":
            return -member.characters
        if cluster.canonical == "preferred_source":
            names = cluster.preferred_sources
            return names.index(member.source) if member.source in names else len(names)
        return 0

    def _join(self, number: int, member: _Member) -> None:
        group = self._groups.get(number)
        if group is None:
            self._groups[number] = _Cluster([member], member, member.seen, member.seen)
            return
        before = group.canonical
        places = [place for place, one in enumerate(group.members) if one.id == member.id]
        if places:
            group.members[places[0]] = member
            rivals = [member, *self._living(group)] if before.id == member.id else [before, member]
        else:
            group.members.append(member)
            rivals = [before, member]
        group.canonical = min(rivals, key=self._rank)
        if group.members == [member] and not group.told:
            # A cluster of one has not been reported yet, so only the time of its newest text counts.
            group.last = None
        group.seen(member)
        if group.canonical is not member:
            self._records[group.canonical.id].decided = self.now
        if len(group.members) > 1 or group.told:
            self._tell(group, before.id, "policy")

    def _leave(self, name: str, record: _Record, reason: str) -> str | None:
        for entry in record.entries:
            self._entries.remove(entry)
        group = self._groups[record.cluster]
        group.members = [member for member in group.members if member.id != name]
        before, living = group.canonical, self._living(group)
        if before.id == name and not living:
            del self._groups[record.cluster]
            if group.told:
                self.clusters[before.id] = None
            return None
        if before.id == name:
            group.canonical = min(living, key=self._rank)
        self._records[group.canonical.id].decided = self.now
        self._activate(group)
        self._tell(group, before.id, reason)
        return group.canonical.id

    def _living(self, group: _Cluster) -> list[_Member]:
        """Return the members whose ids are still known as members of this cluster."""
        records = [(member, self._record(member.id)) for member in group.members]
        return [member for member, record in records if record and self._groups.get(record.cluster) is group]

    def _activate(self, group: _Cluster) -> None:
        """Index the canonical article's own text if it is kept; if not, and no member is indexed, any member's text.

        Then the newest kept text, if it is remembered for an eighth of a window longer than all that are indexed.
        """
        kept = [one.entry for one in group.members if one.entry is not None and one.entry.window >= self._floor]
        own = [entry for entry in kept if entry is group.canonical.entry]
        if own or not any(entry.active for entry in kept):
            self._index((own or kept)[:1])
        newest = max(kept, key=lambda entry: entry.window, default=None)
        last = max((entry.window for entry in kept if entry.active), default=-math.inf)
        if newest is not None and newest.window > last + self.settings.window.days * DAY / 8:
            self._index([newest])

    def _index(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            if not entry.active:
                entry.active = True
                self._entries.remove(entry)
                self._entries.append(entry)

    def _tell(self, group: _Cluster, before: str, reason: str) -> None:
        canonical = group.canonical.id
        self.clusters[canonical] = group.shown()
        if canonical != before:
            if group.told:
                self.clusters[before] = None
            if reason != "withdrawn":
                self.successions.append((before, canonical, reason))
        group.told = True


def _cosine(one: str, other: str) -> float:
    a, b = _grams(one), _grams(other)
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


def _rounded(shares: Sequence[float]) -> list[float]:
    return [round(share, 6) for share in shares]


def seen(outcome: Outcome) -> Seen:
    """Return what a reader sees of an outcome, except what depends on weights."""
    if isinstance(outcome, Withdrawn):
        return ("withdrawn", outcome.withdrawal.id, outcome.id, outcome.canonical)
    if isinstance(outcome, Unjudged):
        return ("unjudged", outcome.item.id, outcome.reason)
    link, name = outcome.link, outcome.article.id
    if link is None:
        return ("decision", name, outcome.unique, None, None, None, None, None, outcome.indexed)
    shares = [None if share is None else round(share, 6) for share in (link.jaccard, link.containment)]
    named = (link.relation, link.duplicate_of, link.matched)
    return ("decision", name, outcome.unique, *named, *shares, outcome.indexed)


def told(judged: Judged) -> tuple[dict[str, Seen | None], list[tuple[str, ...]]]:
    """Return the clusters and successions of a batch in the model's form, each succession with its scope in front."""
    clusters = {name: None if cluster is None else cluster_seen(cluster) for name, cluster in judged.clusters.items()}
    return clusters, [
        (one.scope, one.old, one.new, str(one.reason)) for made in judged.successions.values() for one in made
    ]


def cluster_seen(cluster: Cluster) -> Seen:
    """Return a cluster in the model's form."""
    sources: Mapping[str, int] = cluster.sources
    return (cluster.canonical.split(SEPARATOR)[-1], cluster.copies, cluster.first_ms, cluster.last_ms, dict(sources))


# ----------------------------------------------------------------------------------------------------- streams

_STEPS = [0, 0, HOUR, 5 * HOUR, 11 * HOUR, 20 * HOUR, 26 * HOUR, 5 * DAY]
_LAGS = [0, 0, 0, 2 * HOUR, 30 * HOUR, 3 * DAY, -DAY, None]


def article(
    name: str,
    base: int = 0,
    variant: int = 0,
    *,
    at: int | None = BEGIN,
    lag: int | None = 0,
    url: str = "",
    source: str = "",
    scope: str = "",
) -> Article:
    """Return an article whose message arrives at a moment and was published a lag earlier; None means time unknown."""
    published = None if lag is None or at is None else at - lag
    return Article(
        name,
        text(base, variant),
        url=url,
        source=source,
        published_ms=published,
        origin=None if at is None else Origin("articles.in", 0, 0, at),
        scope=scope,
    )


def streams(
    longest: int = 24, steps: Sequence[int] = tuple(_STEPS), scopes: Sequence[str] = ("",)
) -> st.SearchStrategy[list[Item]]:
    """Return streams of articles, revisions, redeliveries and withdrawals of a few ids, in ascending message time.

    With several scopes, each uses the same ids, URLs and texts.
    """
    ids, urls = st.sampled_from("abcdef"), st.sampled_from(["", "", "https://u.example/1", "https://u.example/2"])
    articles = st.builds(
        lambda name, base, variant, lag, url, source, scope: (
            lambda at: article(name, base, variant, at=at, lag=lag, url=url, source=source, scope=scope)
        ),
        ids,
        st.integers(0, BASES - 1),
        st.integers(0, VARIANTS - 1),
        st.sampled_from(_LAGS),
        urls,
        st.sampled_from(["", "甲报", "乙报"]),
        st.sampled_from(scopes),
    )
    withdrawals = st.builds(
        lambda name, url, scope: lambda _: Withdrawal(name, url, scope=scope),
        st.sampled_from("abcdefx"),
        urls,
        st.sampled_from(scopes),
    )
    makers: st.SearchStrategy[Callable[[int], Item]] = st.one_of(articles, articles, articles, articles, withdrawals)
    pairs = st.lists(st.tuples(makers, st.sampled_from(steps)), min_size=2, max_size=longest)
    return pairs.map(
        lambda drawn: [
            make(at)
            for (make, _), at in zip(drawn, accumulate([step for _, step in drawn], initial=BEGIN), strict=False)
        ]
    )


CUTS = st.sets(st.integers(1, 23), max_size=6)


def parts(stream: Sequence[Item], cuts: Sequence[int] | set[int]) -> list[Sequence[Item]]:
    """Return a stream split at the given indices."""
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    return [stream[start:stop] for start, stop in pairwise(places)]
