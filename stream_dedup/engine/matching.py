"""Finds the best match of an article: what is listed under its keys, what becomes a candidate, and which is chosen.

Knows candidates, which articles see each other, and which match is the best; knows nothing of what follows from it.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import F64, I64, Bool
from stream_dedup.article import Source
from stream_dedup.compiled.kernel import kernel
from stream_dedup.engine.compare import EXACT, NONE, Limits, Match, compare
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.index.entries.entries import VARIANT, Rows
from stream_dedup.index.lookup.candidates import CONTENT, LANDMARK, NO_ROW, SIMHASH, KeyedRows
from stream_dedup.index.lookup.sharing import FIRST_LANDMARKS, FIRST_SHARED, least_shared, least_shared_nearby
from stream_dedup.index.records.records import UNKNOWN_TIME, has_expired

JUDGE, SKIP = 0, 1  # what to do with an article
SOURCES = (Source.CONTENT, Source.LANDMARK, Source.SIMHASH)

_COVERED = 0.7  # share of an article that a match by first landmarks must contain to end the search


class Verdicts(NamedTuple):
    """The verdicts on n articles.

    Attributes:
        rows: row of the best match, `NO_ROW` if there is none, shape (n,).
        relations: `NONE` to `CONTAINS`, shape (n,).
        jaccard: estimate for the best match, shape (n,); `containment` and `hamming` likewise.
        containment: see `jaccard`.
        hamming: see `jaccard`.
        sources: kind of the key that found the best match, shape (n,).
        newest_match_ms: window time of the newest match, `UNKNOWN_TIME` for none, shape (n,).
        covered: whether an article that it is a copy of contains most of it, which ends the search, shape (n,).
        indexed: whether later articles should find this one, shape (n,).
        candidates: number of candidates by the kind of key that found them first, shape (n, 3).
        confirmed: number of those that matched, shape (n, 3).
        hot: number of keys looked up whose posting lists are full, by kind, shape (n, 3).
        longest: number of articles under the fullest key looked up, by kind, shape (n, 3).
    """

    rows: I64
    relations: I64
    jaccard: F64
    containment: F64
    hamming: I64
    sources: I64
    newest_match_ms: I64
    covered: Bool
    indexed: Bool
    candidates: I64
    confirmed: I64
    hot: I64
    longest: I64

    @classmethod
    def empty(cls, n: int) -> "Verdicts":
        """Return verdicts before any article is judged."""
        return cls(
            np.full(n, NO_ROW, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.full(n, UNKNOWN_TIME, np.int64),
            *np.zeros((2, n), np.bool_),
            *np.zeros((4, n, len(SOURCES)), np.int64),
        )


class Siblings(NamedTuple):
    """Which rows belong to other ids of the URL of an article that revises them: it is no copy of those either.

    Attributes:
        urls: a number for each URL under which an article of the batch revises another id, otherwise -1, shape (rows,).
        orders: place of each row's id in the order in which the ids came under its URL, shape (rows,).
        reach: how many ids before its own each article revises at most, shape (n,).
    """

    urls: I64
    orders: I64
    reach: I64

    @classmethod
    def none(cls, rows: int, articles: int) -> "Siblings":
        """Return that no article revises another id."""
        return cls(np.full(rows, -1, np.int64), np.zeros(rows, np.int64), np.zeros(articles, np.int64))


class JudgingInput(NamedTuple):
    """What each of n articles is judged by.

    Attributes:
        modes: `JUDGE` or `SKIP`, shape (n,).
        owners: a number for each id, -1 for rows whose id no article of the batch revises, shape (rows,). Rows with the
            same number are never compared: a text is not a copy of another text of the same id.
        siblings: what is not compared because of its URL.
        cutoffs: rows with an earlier window time are not compared, milliseconds since 1970 in UTC, shape (n,).
        reindex_before: a copy of a text with an earlier window time is indexed too, same unit, shape (n,).
    """

    modes: I64
    owners: I64
    siblings: Siblings
    cutoffs: I64
    reindex_before: I64


class JudgingContext(NamedTuple):
    """What a batch is judged by.

    Attributes:
        cases: what is known of its articles.
        keyed: which rows are listed under which keys.
        caps: postings visible under a key, by kind, shape (3,).
        batch_ahead: how many articles of the batch may come before the stored list of each key, shape (keys,).
        duplicates: which of the relations `NONE` to `CONTAINS` make an article a duplicate, shape (5,).
    """

    cases: JudgingInput
    keyed: KeyedRows
    caps: I64
    batch_ahead: I64
    duplicates: Bool


class Workspace(NamedTuple):
    """Scratch arrays for judging the articles of a batch one after another.

    Attributes:
        newest: node of the newest article of the batch under each key, -1 for none.
        older: the next older node of each node.
        node_rows: row of each node.
        visible: rows under the current key.
        counted: for each row, the last article that shares a landmark with it.
        shared: how many landmarks the two share, shape (rows,).
        sharers: rows that share any with the current article.
        seen: for each row, the last article that it is a candidate of.
        found_by: kind of the key that found it.
        found: candidates of the current article.
    """

    newest: I64
    older: I64
    node_rows: I64
    visible: I64
    counted: I64
    shared: I64
    sharers: I64
    seen: I64
    found_by: I64
    found: I64


@kernel
def look_up(
    i: int, rows: Rows, batch: JudgingContext, limits: Limits, workspace: Workspace, verdicts: Verdicts
) -> None:
    """Record the best match of article i. The search ends once the article is proved to be a copy."""
    place, count, sharers, best = look_up_first(i, rows, batch, limits, workspace, verdicts)
    if verdicts.covered[i]:
        return
    row, last = row_of(i, rows, batch), batch.keyed.look_up_offsets[i + 1]
    place, sharers = _count_under(place, last, i, sharers, batch, workspace, verdicts)
    first = count
    for sharer in workspace.sharers[:sharers]:
        if workspace.shared[sharer] >= least_shared(rows.sizes[row], rows.sizes[sharer], limits.sharing):
            count = _note(sharer, i, LANDMARK, count, rows, batch, workspace)
    best = _choose(i, first, count, best, rows, batch, limits, workspace, verdicts)
    if is_copy(i, batch, verdicts):
        return
    first, missing = count, _missing_marks(i, place, rows.sizes[row], batch, limits, verdicts)
    while place < last:
        visible = _look_under(place, i, batch, workspace, verdicts)
        for candidate in workspace.visible[:visible]:
            if _is_near(candidate, row, rows, limits) and _shared(candidate, i, workspace) >= missing:
                count = _note(candidate, i, SIMHASH, count, rows, batch, workspace)
        place += 1
    _choose(i, first, count, best, rows, batch, limits, workspace, verdicts)


@kernel
def look_up_first(
    i: int, rows: Rows, batch: JudgingContext, limits: Limits, workspace: Workspace, verdicts: Verdicts
) -> tuple[int, int, int, float]:
    """Record the best match of article i by its content and its first landmarks.

    Returns:
        Index of the next key, how many candidates and sharers there are, and the score of the best match.
    """
    place, last = batch.keyed.look_up_offsets[i], batch.keyed.look_up_offsets[i + 1]
    count = 0
    while place < last and batch.keyed.key_kinds[batch.keyed.look_up_keys[place]] == CONTENT:
        visible = _look_under(place, i, batch, workspace, verdicts)
        for candidate in workspace.visible[:visible]:
            count = _note(candidate, i, CONTENT, count, rows, batch, workspace)
        place += 1
    place, sharers = _count_under(place, min(last, place + FIRST_LANDMARKS), i, 0, batch, workspace, verdicts)
    for sharer in workspace.sharers[:sharers]:
        if workspace.shared[sharer] >= FIRST_SHARED:
            count = _note(sharer, i, LANDMARK, count, rows, batch, workspace)
    return place, count, sharers, _choose(i, 0, count, -1.0, rows, batch, limits, workspace, verdicts)


@kernel
def _count_under(
    place: int, stop: int, i: int, sharers: int, batch: JudgingContext, workspace: Workspace, verdicts: Verdicts
) -> tuple[int, int]:
    """Count which rows share the next landmarks with article i; return the index after them, and how many share any."""
    while place < stop and batch.keyed.key_kinds[batch.keyed.look_up_keys[place]] == LANDMARK:
        visible = _look_under(place, i, batch, workspace, verdicts)
        sharers = _count_all(workspace.visible[:visible], i, sharers, workspace)
        place += 1
    return place, sharers


@kernel
def row_of(i: int, rows: Rows, batch: JudgingContext) -> int:
    """Return the row of article i: those of the batch are the last."""
    return len(rows.fingerprints) - len(batch.cases.modes) + i


@kernel
def is_copy(i: int, batch: JudgingContext, verdicts: Verdicts) -> bool:
    """Tell whether the best match of article i makes it a copy."""
    return bool(batch.duplicates[verdicts.relations[i]])


@kernel
def _look_under(place: int, i: int, batch: JudgingContext, workspace: Workspace, verdicts: Verdicts) -> int:
    """Put the rows under a key that article i looks up into `workspace.visible` and return how many there are."""
    key = batch.keyed.look_up_keys[place]
    kind = batch.keyed.key_kinds[key]
    most = batch.caps[kind] - batch.batch_ahead[key]
    room, visible = most, 0
    node = workspace.newest[key]
    while node >= 0 and room > 0:
        workspace.visible[visible] = workspace.node_rows[node]
        visible += 1
        node = workspace.older[node]
        room -= 1
    posting = batch.keyed.list_stops[key] - 1
    while posting >= batch.keyed.list_begins[key] and room > 0:
        if batch.keyed.list_rows[posting] != NO_ROW:
            workspace.visible[visible] = batch.keyed.list_rows[posting]
            visible += 1
        posting -= 1
        room -= 1
    verdicts.hot[i, kind] += room <= 0
    verdicts.longest[i, kind] = max(verdicts.longest[i, kind], most - room)
    return visible


@kernel
def _count_all(some: I64, i: int, sharers: int, workspace: Workspace) -> int:
    """Count rows that share one more landmark with article i, and return how many share any."""
    for row in some:
        if workspace.counted[row] != i:
            workspace.counted[row], workspace.shared[row] = i, 0
            workspace.sharers[sharers] = row
            sharers += 1
        workspace.shared[row] += 1
    return sharers


@kernel
def _shared(row: int, i: int, workspace: Workspace) -> int:
    """Return how many landmarks a row visibly shares with article i."""
    return workspace.shared[row] if workspace.counted[row] == i else 0


@kernel
def _missing_marks(i: int, stop: int, size: int, batch: JudgingContext, limits: Limits, verdicts: Verdicts) -> int:
    """Return how many landmarks article i must visibly share with a row, all keys before `stop` having been looked up.

    As in `entries_to_read`, which must not ask for more: what is not read depends on the batch.
    """
    looked_up = batch.keyed.look_up_keys[batch.keyed.look_up_offsets[i] : stop]
    if len(looked_up) == 0 or batch.keyed.key_kinds[looked_up[-1]] != LANDMARK:
        return 0
    return least_shared_nearby(size, limits.sharing) - int(verdicts.hot[i, LANDMARK])


@kernel
def _is_near(candidate: int, row: int, rows: Rows, limits: Limits) -> bool:
    return bool(popcount(rows.fingerprints[row] ^ rows.fingerprints[candidate]) <= limits.max_distance)


@kernel
def _note(
    candidate: int,
    i: int,
    kind: int,
    count: int,
    rows: Rows,
    batch: JudgingContext,
    workspace: Workspace,
) -> int:
    """Add a candidate of article i if it is new and eligible, and return how many there are."""
    if workspace.seen[candidate] == i or has_expired(rows.times[candidate], batch.cases.cutoffs[i]):
        return count
    row = row_of(i, rows, batch)
    if rows.scopes[candidate] != rows.scopes[row]:
        # Two scopes may share a list if their keys happen to be the same.
        return count
    if _same(batch.cases.owners, candidate, row) or _revises(i, row, candidate, batch.cases.siblings):
        return count
    workspace.seen[candidate], workspace.found_by[candidate] = i, kind
    workspace.found[count] = candidate
    return count + 1


@kernel
def _same(numbers: I64, one: int, other: int) -> bool:
    return bool(numbers[one] >= 0 and numbers[one] == numbers[other])


@kernel
def _revises(i: int, row: int, candidate: int, siblings: Siblings) -> bool:
    """Tell whether article i, which has a row, revises the id of a candidate since both are of one URL."""
    ahead = siblings.orders[row] - siblings.orders[candidate]
    return _same(siblings.urls, candidate, row) and 0 < ahead <= siblings.reach[i]


@kernel
def _choose(
    i: int,
    first: int,
    stop: int,
    best: float,
    rows: Rows,
    batch: JudgingContext,
    limits: Limits,
    workspace: Workspace,
    verdicts: Verdicts,
) -> float:
    """Compare article i with some of its candidates, record a better match, and return the score of the best."""
    row = row_of(i, rows, batch)
    for place in range(first, stop):
        candidate = workspace.found[place]
        source = workspace.found_by[candidate]
        match = compare(rows, row, candidate, limits)
        verdicts.candidates[i, source] += 1
        if match.relation == NONE or _too_far(match, rows.flags[candidate], limits):
            continue
        verdicts.confirmed[i, source] += 1
        if batch.duplicates[match.relation]:
            verdicts.newest_match_ms[i] = max(verdicts.newest_match_ms[i], rows.times[candidate])
            # Of any match, not only the best: what ends the search must end it whatever else is found.
            verdicts.covered[i] |= _covers(match, rows.sizes[row], rows.sizes[candidate])
        score = _likeness(match, rows.sizes[row], rows.sizes[candidate])
        score += 2.0 * (match.relation == EXACT) + 4.0 * batch.duplicates[match.relation]
        # On a tie, the earliest: rows are in order of arrival.
        if score > best or (score == best and candidate < verdicts.rows[i]):
            best = score
            verdicts.rows[i], verdicts.relations[i], verdicts.sources[i] = candidate, match.relation, source
            verdicts.jaccard[i], verdicts.containment[i] = match.jaccard, match.containment
            verdicts.hamming[i] = match.hamming
    return best


@kernel
def _covers(match: Match, size: int, other: int) -> bool:
    """Tell whether the other text contains most of a text."""
    return bool(match.relation == EXACT or match.containment * min(size, other) >= _COVERED * size)


@kernel
def _likeness(match: Match, size: int, other: int) -> float:
    """Return |A and B| / sqrt(|A| |B|), the cosine of two sets (Ochiai 1957).

    By Jaccard, a text would be matched to a small part of it rather than to a large text that contains nearly all of
    it; by containment, to anything that it contains. The geometric mean of the two containments balances both.
    """
    return match.containment * np.sqrt(min(size, other) / max(size, other)) if size > 0 and other > 0 else 0.0


@kernel
def _too_far(match: Match, flags: int, limits: Limits) -> bool:
    """Tell whether a match with a drifted copy says too little about the article that the copy was made from.

    Less is shared with every link of a chain, so each link but the first has to be a close one.
    """
    close = match.jaccard >= limits.chain_jaccard or match.containment >= limits.cut_containment
    return flags & VARIANT != 0 and not close
