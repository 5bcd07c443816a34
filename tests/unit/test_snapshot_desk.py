"""Requests for snapshots that are none, and answers that nobody can be given: the stream goes on."""

from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from stream_dedup.index.rocks import RocksStore
from stream_dedup.stream.snapshots import SnapshotDesk


@pytest.fixture
def desk(tmp_path: Path) -> SnapshotDesk:
    """A desk in a directory of its own, before a store that is never asked."""
    return SnapshotDesk(tmp_path, RocksStore.__new__(RocksStore), "digest")


@pytest.mark.parametrize("request_", [b"", b"[]", b"null", b"5", b"{}", b'{"directory": 5}', b'{"directory": null}'])
def test_request_that_is_none_is_answered_with_an_error(request_: bytes, desk: SnapshotDesk, tmp_path: Path) -> None:
    """Whoever may write into the directory may write anything."""
    request, answer = tmp_path / "snapshot.request", tmp_path / "snapshot.answer"
    request.write_bytes(request_)
    desk.serve()
    assert not request.exists()
    assert orjson.loads(answer.read_bytes())["error"]


def test_answer_that_cannot_be_written_is_told(desk: SnapshotDesk, tmp_path: Path) -> None:
    """A full disk, or rights that are missing: the log has it, and whoever asked hears nothing."""
    (tmp_path / "snapshot.request").write_bytes(b"{}")
    (tmp_path / "snapshot.part").mkdir()
    with capture_logs() as lines:
        desk.serve()
    assert [line["event"] for line in lines] == ["snapshot_failed", "snapshot_failed"]
