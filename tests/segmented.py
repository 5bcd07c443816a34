"""What the tests of the segmenters share.

Knows how to cut one text and what its letters are; knows nothing of any segmenter.
"""

from stream_dedup.evaluate.segmenters import segmenters


def words(name: str, text: str) -> list[str]:
    """Cut one text with the segmenter of this name."""
    return segmenters()[name].cut([text])[0]


def letters(text: str) -> str:
    """Leave out punctuation, symbols and blanks."""
    return "".join(filter(str.isalnum, text))
