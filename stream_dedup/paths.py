"""Whether there is anything at a path.

Knows how a look-up can fail; knows nothing of what paths are for.
"""

from pathlib import Path


def is_there(path: Path) -> bool:
    """Tell whether there is anything at a path.

    Raises:
        OSError: it cannot be looked up, such as for lack of a right: from Python 3.14 on `Path.exists` hides that.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
