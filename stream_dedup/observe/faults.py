"""Where an exception was raised, without what it says: that may be text of an article.

Knows stacks; knows no event.
"""

import traceback
from pathlib import Path

_FRAMES = 6  # the innermost


def raised_at(error: BaseException) -> str:
    """Return the innermost frames of an exception as `file.py:line function`, the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
