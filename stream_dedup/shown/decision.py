"""A published decision in a line.

Knows columns; knows nothing of topics.
"""

from rich.cells import cell_len
from rich.text import Text

from stream_dedup.ask.decisions import DecisionAnswer
from stream_dedup.shown.answers import measures_shown
from stream_dedup.shown.plain import fitted, harmless

_STYLES = {"unique": "green", "duplicate": "yellow", "announcement": "cyan", "dead": "red"}
_WHAT_CELLS, _ID_CELLS, _SOURCE_CELLS = 11, 28, 14


def decision_line(decision: DecisionAnswer) -> Text:
    """Return a decision in a line: when, what, which article, from where, and why."""
    what = decision.decision if decision.decision in {"unique", "dead"} else str(decision.relation)
    return Text.assemble(
        ((decision.decided_at or "")[11:19].ljust(8), "dim"),
        "  ",
        (fitted(what, _WHAT_CELLS), _STYLES[decision.decision]),
        "  ",
        _column(_name(decision), _ID_CELLS),
        "  ",
        fitted(decision.source, _SOURCE_CELLS),
        "  ",
        harmless(_why(decision)),
    )


def _column(text: str, cells: int) -> str:
    """Return a text filled up to a width; a wider one whole, so that it can be copied."""
    shown = harmless(text)
    return shown if cell_len(shown) > cells else fitted(text, cells)


def _name(decision: DecisionAnswer) -> str:
    known = decision.id if decision.id is not None else "no key"
    return f"{decision.scope}/{known}" if decision.scope else known


def _why(decision: DecisionAnswer) -> str:
    if decision.decision == "unique":
        beside = f"{decision.relation} of {decision.matched}: " if decision.relation else ""
        return f"{beside}{decision.title}"
    if decision.decision == "dead":
        return f"{decision.reason}: {(decision.detail or '').partition(': ')[2]}"
    if decision.decision == "announcement":
        return f"now called {decision.duplicate_of}" if decision.duplicate_of else "nothing is left of its cluster"
    measures = measures_shown(decision.jaccard, decision.containment, decision.hamming)
    matched = f", matched {decision.matched}" if decision.matched != decision.duplicate_of else ""
    return f"of {decision.duplicate_of}{matched}: {measures}, {decision.candidate_source}"
