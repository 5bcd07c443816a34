"""HTML left over in a raw text: entities and tags.

Knows HTML as it occurs in articles; knows nothing of Unicode's forms.
"""

import html
import re

# No alternative matches across a `<`, and none backtracks into an attribute, so the search is linear for any text.
# Attributes may have any length, as they hold pictures; anything else that long is text in angle brackets, not a tag.
_ATTRIBUTE = r"""\s+(?:[^\s<>"'=/]{1,64}\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)|[a-z][a-z0-9:_-]{0,31}(?=[\s/>]))"""
_INSIDE = rf"(?:{_ATTRIBUTE})++[^<>]{{0,500}}|\s[^<>]{{0,500}}"
_TAG = re.compile(rf"<(/?)([a-z][a-z0-9:-]{{0,31}})(?:{_INSIDE})?/?>|<!--|-->", re.IGNORECASE)
_ENDS = {"<script": "</script", "<style": "</style", "<!--": "-->"}  # what hides the text after it: up to what
# Python refuses to parse numbers of more than 4,300 digits, and can be told to refuse those of more than 640.
_ENDLESS = re.compile(r"&#[0-9]{641,};?")
_ESCAPES = 2  # a feed often escapes what is escaped already
_BREAKING = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6"})


def strip_html(text: str) -> str:
    """Decode entities and remove tags, comments and the contents of script and style; block tags leave a line break."""
    for _ in range(_ESCAPES):
        text = _unescaped(text) if "&" in text else text
    if "<" not in text:
        return text
    pieces: list[str] = []
    start, end_of_hidden = 0, ""
    for tag in _TAG.finditer(text):
        kind = (f"<{tag.group(1)}{tag.group(2)}" if tag.group(2) else tag.group()).lower()
        if end_of_hidden:
            if kind == end_of_hidden:
                start, end_of_hidden = tag.end(), ""
        elif kind != "-->":
            pieces.append(text[start : tag.start()])
            pieces.append("\n" if kind.lstrip("</") in _BREAKING else "")
            start, end_of_hidden = tag.end(), _ENDS.get(kind, "")
    # A script tag that is never closed hides nothing: it is text in angle brackets.
    return "".join([*pieces, text[start:]])


def _unescaped(text: str) -> str:
    """Decode entities; a number that is no code point becomes U+FFFD, however long it is."""
    return html.unescape(_ENDLESS.sub("\ufffd", text))
