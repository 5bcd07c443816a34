"""One-line views of a published decision, and of one that a shadow disagrees with.

Knows columns; knows nothing of topics.
"""

from rich.cells import cell_len
from rich.text import Text

from stream_dedup.ask.decisions import DecisionAnswer
from stream_dedup.ask.disagreements import DisagreementAnswer, SideAnswer
from stream_dedup.engine.shadow import Disagreement
from stream_dedup.rendering.answers import measures_line
from stream_dedup.rendering.plain import escape_control, fitted

_STYLES = {"unique": "green", "duplicate": "yellow", "announcement": "cyan", "dead": "red"}
_KINDS = {
    Disagreement.DUPLICATE: "yellow",
    Disagreement.UNIQUE: "green",
    Disagreement.RELATION: "cyan",
    Disagreement.ORIGINAL: "cyan",
}
_WHAT_CELLS, _ID_CELLS, _SOURCE_CELLS = 11, 28, 14


def decision_line(decision: DecisionAnswer) -> Text:
    """Return a decision on one line: when, what, which article, its source, and why."""
    what = decision.decision if decision.decision in {"unique", "dead"} else str(decision.relation)
    return _line(decision, (fitted(what, _WHAT_CELLS), _STYLES[decision.decision]), _why(decision))


def disagreement_line(one: DisagreementAnswer) -> Text:
    """Return a disagreement on one line: when, its kind, which article, its source, and both decisions."""
    sides = f"in force {_side(one.live)}; shadow {_side(one.shadow)}"
    return _line(one, (fitted(one.disagreement, _WHAT_CELLS), _KINDS[one.disagreement]), sides)


def _line(one: DecisionAnswer | DisagreementAnswer, what: tuple[str, str], why: str) -> Text:
    return Text.assemble(
        ((one.decided_at or "")[11:19].ljust(8), "dim"),
        "  ",
        what,
        "  ",
        _column(_name(one), _ID_CELLS),
        "  ",
        fitted(one.source, _SOURCE_CELLS),
        "  ",
        escape_control(why),
    )


def _side(side: SideAnswer) -> str:
    if side.relation is None:
        return side.decision
    measures = measures_line(side.jaccard, side.containment, side.hamming)
    beside = "unique, " if side.decision == "unique" else ""
    return f"{beside}{side.relation} of {side.duplicate_of}{f' ({measures})' if measures else ''}"


def _column(text: str, cells: int) -> str:
    """Return a text padded to a width; a wider one stays whole, so that it can be copied."""
    shown = escape_control(text)
    return shown if cell_len(shown) > cells else fitted(text, cells)


def _name(one: DecisionAnswer | DisagreementAnswer) -> str:
    known = one.id if one.id is not None else "no key"
    return f"{one.scope}/{known}" if one.scope else known


def _why(decision: DecisionAnswer) -> str:
    if decision.decision == "unique":
        beside = f"{decision.relation} of {decision.matched}" if decision.relation else ""
        return ": ".join(filter(None, (beside, decision.title)))
    if decision.decision == "dead":
        return f"{decision.reason}: {(decision.detail or '').partition(': ')[2]}"
    if decision.decision == "announcement":
        return (
            f"canonical article now {decision.duplicate_of}"
            if decision.duplicate_of
            else "nothing is left of its cluster"
        )
    measures = measures_line(decision.jaccard, decision.containment, decision.hamming)
    matched = f", matched {decision.matched}" if decision.matched != decision.duplicate_of else ""
    return f"of {decision.duplicate_of}{matched}: {measures}, {decision.candidate_source}"
