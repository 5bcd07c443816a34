"""Whether a text shows anything.

Knows what is visible; knows nothing of where texts come from.
"""

import re

from stream_dedup.text.normal import Normaliser

# A letter or digit that is certainly shown, so that nearly no text has to be normalised for it: before it there are no
# entities and at most plain tags, which hide nothing. Left out are those of which normalising may leave nothing.
_SHOWN = re.compile(
    r"(?:[^<&]*</?(?!script|style)[a-z][^<>&]*>)*?[^<&]*?[^\W_\u037a\u115f\u1160\u3164\ufb50-\ufeff\uff9e-\uffa0]",
    re.IGNORECASE,
)


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it is empty, or has only invisible characters and tags."""
    return _SHOWN.match(text) is None and Normaliser()(text).strip() == ""
