"""HTML left over in a raw text: entities and tags.

Knows HTML as it occurs in articles; knows nothing of Unicode's forms.
"""

import html
import re

# No alternative matches across a `<`, and none backtracks into an attribute, so the search is linear for any text.
# Attributes may have any length, as they hold pictures; anything else that long is text in angle brackets, not a tag.
_ATTRIBUTE = r"""\s+(?:[^\s<>"'=/]{1,64}\s*=\s*(?:"[^"<]*"|'[^'<]*'|[^\s"'<>]+)|[a-z][a-z0-9:_-]{0,31}(?=[\s/>]))"""
_REST = rf"(?:(?:{_ATTRIBUTE})++[^<>]{{0,500}}|\s[^<>]{{0,500}})?/?>"  # of a tag, behind its name
_TAG = re.compile(rf"<(/?)([a-z][a-z0-9:-]{{0,31}}){_REST}|<!--", re.IGNORECASE)
# What hides the text after it: up to what. Nothing else counts in there, neither a tag nor another comment.
_ENDS = {
    "<script": re.compile(rf"</script{_REST}", re.IGNORECASE),
    "<style": re.compile(rf"</style{_REST}", re.IGNORECASE),
    "<!--": re.compile("-->"),
}
# Python refuses to parse numbers of more than 4,300 digits, and can be told to refuse those of more than 640.
_ENDLESS = re.compile(r"&#[0-9]{641,};?")
_ESCAPES = 2  # a feed often escapes what is escaped already
# Elements that browsers put on lines of their own, or in cells of their own (HTML, "Rendering": flow content, tables).
_BREAKING = re.compile(
    "address|article|aside|blockquote|br|caption|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|"
    "figure|footer|form|h1|h2|h3|h4|h5|h6|header|hgroup|hr|legend|li|listing|main|menu|nav|ol|optgroup|option|p|"
    "plaintext|pre|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul|xmp"
)


def strip_html(text: str) -> str:
    """Decode entities and remove tags, comments and the contents of script and style; block tags leave a line break.

    A script or comment that is never closed hides nothing: only its tag is removed.
    """
    for _ in range(_ESCAPES):
        text = _unescaped(text) if "&" in text else text
    if "<" not in text:
        return text
    pieces: list[str] = []
    start, ends = 0, _ENDS.copy()
    while tag := _TAG.search(text, start):
        kind = (f"<{tag.group(1)}{tag.group(2)}" if tag.group(2) else tag.group()).lower()
        pieces.append(text[start : tag.start()])
        pieces.append("\n" if _BREAKING.fullmatch(kind.lstrip("</")) else "")
        start = tag.end()
        if kind in ends:
            # Of a comment, the first two characters alone are no part of its end: `<!-->` is a whole one.
            if end := ends[kind].search(text, tag.start() + 2):
                start = end.end()
            else:
                del ends[kind]  # no later one is closed either: to look again would take quadratic time
    return "".join([*pieces, text[start:]])


def _unescaped(text: str) -> str:
    """Decode entities; a number that is no code point becomes U+FFFD, however long it is."""
    return html.unescape(_ENDLESS.sub("\ufffd", text))
