"""Why two texts are, or are not, copies: measures, bits, words, and the two texts with their differences.

Knows their layout; knows nothing of how they are measured.
"""

from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stream_dedup.ask.answers import MeasuresAnswer, ReasonAnswer, TextAnswer, WordAnswer
from stream_dedup.rendering.answers import facts, instant, link_shown
from stream_dedup.rendering.differences import Piece, Side, differences, shortened
from stream_dedup.rendering.fitting import ByWidth
from stream_dedup.rendering.plain import escape_control, plain
from stream_dedup.text.normal import Normaliser

_BITS = 64
_AROUND = 30  # characters in both texts shown on either side of a difference
_UNCOUNTED = "forms of characters, blanks or invisible characters"
_STYLES = {Side.BOTH: "dim", Side.FIRST: "red", Side.SECOND: "green"}
_MARKS = {Side.BOTH: ("", ""), Side.FIRST: ("[-", "-]"), Side.SECOND: ("{+", "+}")}


def reason_shown(reason: ReasonAnswer, normal: Normaliser, *, marks: bool) -> RenderableType:
    """Return why two articles of a service are, or are not, copies.

    Args:
        reason: the answer.
        normal: makes the normal forms of characters.
        marks: whether differences are marked with signs, as where there are no colours.
    """
    link = reason.decided
    decided = link_shown(link) if link is not None else "no link from the first to the second"
    told = facts(
        {
            "decided": decided,
            "stream's time": instant(link.stream_time) if link is not None else "",
            "since then": "the second article has been revised: its current text is compared" if reason.revised else "",
        }
    )
    bodies = reason.first.body, reason.second.body
    return Group(
        _text_facts("first", reason.first),
        Text(),
        _text_facts("second", reason.second),
        Text(),
        told,
        Text(),
        measures_shown(reason, (reason.first.id, reason.second.id)),
        differences_shown(*bodies, normal, marks=marks),
    )


def measures_shown(measures: MeasuresAnswer, names: tuple[str, str]) -> RenderableType:
    """Return how two texts compare.

    Args:
        measures: of them.
        names: of the two texts.
    """
    keys = measures.keys
    weights = f"with the weights of IDF epoch {measures.idf_epoch}"
    words_of = {"shared": measures.shared_words, "differing": measures.differing_words}
    verdict = Text(measures.relation or "not a copy", "bold green" if measures.relation else "bold")
    return Group(
        verdict.append(f"  {measures.verdict}", "not bold default"),
        Text(),
        Text(f"Jaccard      {measures.jaccard:.4f}   of {measures.grams[0]} and {measures.grams[1]} n-grams"),
        Text(f"containment  {measures.containment:.4f}"),
        Text(f"cosine       {measures.cosine:.4f}   of the bit sums"),
        Text(f"Hamming      {measures.hamming:6d}   bits {measures.differing_bits} {weights}"),
        Text(f"shared keys  {keys.landmarks:6d}   landmarks, {keys.table_keys} table keys{', content' * keys.content}"),
        Text(),
        ByWidth(lambda width: _fingerprints(measures.fingerprints, names, width)),
        Text(),
        *(_words(f"heaviest {which} words", words, names) for which, words in words_of.items() if words),
    )


def differences_shown(first: str, second: str, normal: Normaliser, *, marks: bool) -> RenderableType:
    """Return two texts as one, with differences highlighted and what they have in common shortened.

    Args:
        first: text.
        second: text.
        normal: makes the normal forms of characters: those with the same form do not differ.
        marks: whether differences are marked with signs, as where there are no colours.
    """
    pieces = differences(first, second, normal)
    if all(piece.side is Side.BOTH for piece in pieces):
        counted = "" if first == second else f", except for {_UNCOUNTED}, which do not count"
        return plain(f"the two texts are identical{counted}", "bold")
    legend = [Piece(Side.BOTH, "differences: "), Piece(Side.FIRST, "only in the first"), Piece(Side.BOTH, ", ")]
    heading = Text("").join(_pieces([*legend, Piece(Side.SECOND, "only in the second")], marks=marks))
    return Group(heading, Text("").join(_pieces(shortened(pieces, _AROUND), marks=marks)))


def _pieces(pieces: Sequence[Piece], *, marks: bool) -> Iterator[Text]:
    for side, text in pieces:
        lines = "\n".join(map(escape_control, text.split("\n")))
        before, after = _MARKS[side] if marks else ("", "")
        yield Text(f"{before}{lines}{after}", _STYLES[side])


def _text_facts(name: str, text: TextAnswer) -> RenderableType:
    return facts(
        {
            name: text.id,
            "title": text.title,
            "source": text.source,
            "published": instant(text.published_at),
            "URL": text.url,
            "message": str(text.message) if text.message else "",
        }
    )


def _fingerprints(fingerprints: tuple[str, str], names: tuple[str, str], width: int) -> Text:
    """Return two fingerprints in binary, one below the other, with differing bits marked; nothing is ever cut."""
    first, second = (f"{int(fingerprint, 16):0{_BITS}b}" for fingerprint in fingerprints)
    marks = "".join("^" if a != b else " " for a, b in zip(first, second, strict=True)).rstrip()
    told = [f"{fingerprint}  {escape_control(name)}" for fingerprint, name in zip(fingerprints, names, strict=True)]
    beside = [f"{bits}  {one}" for bits, one in zip((first, second), told, strict=True)]
    if max(map(cell_len, beside)) <= width:
        return Text("\n").join(map(Text, [*beside, marks]))
    # Names may take any number of lines, but bits must be aligned below each other.
    stretch = next((bits for bits in (_BITS, _BITS // 2, _BITS // 4) if bits <= width), _BITS // 8)
    rows = [row[at : at + stretch] for at in range(0, _BITS, stretch) for row in (first, second, marks)]
    return Text("\n").join(map(Text, [*told, *rows]))


def _words(title: str, words: Sequence[WordAnswer], names: tuple[str, str]) -> RenderableType:
    # Not the table's own title, which would be broken at the table's width.
    heading = Text(title, "table.title")
    return ByWidth(lambda width: Group(heading, _words_table(words, _headings(names, width)), Text()))


def _headings(names: tuple[str, str], width: int) -> tuple[str, str]:
    """Return the headings of two columns: the texts' names, if they leave half of the width."""
    return names if sum(map(cell_len, names)) <= width // 2 else ("first", "second")


def _words_table(words: Sequence[WordAnswer], headings: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("word", overflow="fold")
    for heading in headings:
        table.add_column(plain(heading), justify="right", overflow="fold", no_wrap=True)
    for word in words:
        table.add_row(plain(word.word), *(f"{weight:.4f}" if weight else "" for weight in word.weights))
    return table
