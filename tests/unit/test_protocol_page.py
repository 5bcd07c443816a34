"""The steps of a commit, in the docstring of `protocol` and on the architecture page.

Knows where both are; does not know what they say.
"""

import re
from pathlib import Path

from stream_dedup.stream import protocol

_PAGE = Path(protocol.__file__).parent.parent / "README.md"


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_page_and_docstring_tell_the_same_steps() -> None:
    """The architecture page has the docstring's steps, word for word."""
    page = _PAGE.read_text(encoding="utf-8")
    shown = page.split("<!-- protocol: begin -->")[1].split("<!-- protocol: end -->")[0]
    doc = protocol.__doc__ or ""
    assert _flat(shown) == _flat(doc[doc.index("1. ") :])


def test_steps_are_named_as_they_are_numbered() -> None:
    """The numbered steps are the members of `Step`, in order."""
    named = re.findall(r"^(\d)\. `(\w+)`", protocol.__doc__ or "", re.MULTILINE)
    assert named == [(str(place), str(step)) for place, step in enumerate(protocol.Step, 1)]
