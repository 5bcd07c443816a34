"""Turns candidates into verdicts, in order: what each article is a copy of, and whether later ones should find it.

Knows in which order articles are judged and which of them are worth indexing; knows nothing of storage or of ids.
"""

import numpy as np

from stream_dedup.arrays import I64, Bool
from stream_dedup.compiled.kernel import kernel
from stream_dedup.engine.compare import EXACT, NEAR, Limits
from stream_dedup.engine.matching import (
    SKIP,
    JudgingContext,
    JudgingInput,
    Verdicts,
    Workspace,
    is_copy,
    look_up,
    look_up_first,
    row_of,
)
from stream_dedup.index.entries.entries import SEALED, VARIANT, Rows
from stream_dedup.index.lookup.candidates import Candidates
from stream_dedup.index.lookup.keys import batch_ahead
from stream_dedup.index.records.records import has_expired


def judge(candidates: Candidates, cases: JudgingInput, caps: I64, limits: Limits, duplicates: Bool) -> Verdicts:
    """Judge a batch in order: each article against stored entries and the articles before it that were indexed.

    The outcome is the same as that of judging one article at a time, however the stream is batched.

    Args:
        candidates: candidates of the batch of n articles.
        cases: cases of its articles.
        caps: postings visible under a key, by kind, shape (3,).
        limits: thresholds.
        duplicates: which of the relations `NONE` to `CONTAINS` make an article a duplicate, shape (5,).
    """
    # Articles of the batch that come before the stored ones are listed as they are judged.
    ahead = np.zeros(len(candidates.keyed.key_kinds), np.int64)
    batch = JudgingContext(cases, candidates.keyed, caps, ahead, duplicates)
    verdicts = Verdicts.empty(len(cases.modes))
    _judge(candidates.rows, batch, limits, _workspace(candidates, caps), verdicts)
    return verdicts


def proved(candidates: Candidates, cases: JudgingInput, caps: I64, limits: Limits, duplicates: Bool) -> Bool:
    """Tell which articles are proved by contents and first landmarks to be copies of stored entries, shape (n,).

    Skipped articles are included. `judge` finds all of these proved too, whatever its verdicts on the articles before
    them, so their other keys need not be looked up. The arguments are those of `judge`.
    """
    keyed = candidates.keyed
    ahead = batch_ahead(keyed.own_keys, len(keyed.key_kinds))
    batch = JudgingContext(cases, keyed, caps, ahead, duplicates)
    verdicts = Verdicts.empty(len(cases.modes))
    _prove(candidates.rows, batch, limits, _workspace(candidates, caps), verdicts)
    return np.asarray(verdicts.covered | (cases.modes == SKIP))


def _workspace(candidates: Candidates, caps: I64) -> Workspace:
    keyed = candidates.keyed
    return Workspace(
        np.full(len(keyed.key_kinds), -1, np.int64),
        np.empty(keyed.own_keys.size, np.int64),
        np.empty(keyed.own_keys.size, np.int64),
        np.empty(int(caps.max()), np.int64),
        *np.full((6, len(candidates.rows.fingerprints)), -1, np.int64),
    )


@kernel
def _judge(rows: Rows, batch: JudgingContext, limits: Limits, workspace: Workspace, verdicts: Verdicts) -> None:
    nodes = 0
    for i in range(len(batch.cases.modes)):
        if batch.cases.modes[i] == SKIP:
            continue
        look_up(i, rows, batch, limits, workspace, verdicts)
        drifted = _drifted(i, batch, limits, verdicts)
        verdicts.indexed[i] = _worth_indexing(i, rows, batch, verdicts, drifted)
        if verdicts.indexed[i]:
            _mark(i, rows, batch, verdicts, drifted)
            nodes = _insert(i, nodes, rows, batch, workspace)


@kernel
def _prove(rows: Rows, batch: JudgingContext, limits: Limits, workspace: Workspace, verdicts: Verdicts) -> None:
    for i in range(len(batch.cases.modes)):
        if batch.cases.modes[i] != SKIP:
            look_up_first(i, rows, batch, limits, workspace, verdicts)


@kernel
def _drifted(i: int, batch: JudgingContext, limits: Limits, verdicts: Verdicts) -> bool:
    """Tell whether an article is a copy with so much text of its own that copies of it could miss the original."""
    own = verdicts.jaccard[i] < limits.variant_jaccard and verdicts.containment[i] < limits.cut_containment
    return is_copy(i, batch, verdicts) and own


@kernel
def _worth_indexing(i: int, rows: Rows, batch: JudgingContext, verdicts: Verdicts, drifted: bool) -> bool:  # noqa: FBT001  # compiled
    """Tell whether an article is canonical, or copies of it would miss the original.

    They would if it has drifted far from the original, or if the original and all similar texts expire much earlier.
    """
    if not is_copy(i, batch, verdicts):
        return True
    if drifted and rows.flags[verdicts.rows[i]] & SEALED == 0:
        return True
    # A shortened copy or a round-up cannot stand in for the text: what is similar to it may share little with the text.
    relation = verdicts.relations[i]
    whole = relation == EXACT or relation == NEAR  # noqa: PLR1714  # compiled code has no set of constants
    return whole and has_expired(verdicts.newest_match_ms[i], batch.cases.reindex_before[i])


@kernel
def _mark(i: int, rows: Rows, batch: JudgingContext, verdicts: Verdicts, drifted: bool) -> None:  # noqa: FBT001  # compiled
    """Flag an indexed copy as drifted, and as belonging to a sealed cluster, if that is so."""
    row = row_of(i, rows, batch)
    if drifted:
        rows.flags[row] |= VARIANT
    if is_copy(i, batch, verdicts):
        # A copy of a drifted copy is no closer to the canonical article than the drifted copy is.
        rows.flags[row] |= rows.flags[verdicts.rows[i]] & (VARIANT | SEALED)


@kernel
def _insert(i: int, nodes: int, rows: Rows, batch: JudgingContext, workspace: Workspace) -> int:
    """Make article i visible to later articles of the batch; return how many nodes are used."""
    for key in batch.keyed.own_keys[i]:
        if key >= 0:
            workspace.node_rows[nodes] = row_of(i, rows, batch)
            workspace.older[nodes] = workspace.newest[key]
            workspace.newest[key] = nodes
            nodes += 1
    return nodes
