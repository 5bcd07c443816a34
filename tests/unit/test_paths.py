"""Whether there is anything at a path, with all that the system answers."""

from pathlib import Path

import pytest

from stream_dedup.paths import is_there


def test_something_is_there_or_not(tmp_path: Path) -> None:
    """A file, a directory; no dangling link, and nothing inside a file."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(tmp_path / "none")
    assert is_there(file)
    assert is_there(tmp_path)
    assert not any(is_there(path) for path in (tmp_path / "none", link, file / "inside"))


def test_what_cannot_be_looked_up_is_an_error(tmp_path: Path) -> None:
    """It is not taken for absent, on any version of Python."""
    with pytest.raises(OSError, match="File name too long"):
        is_there(tmp_path / ("x" * 300))
