"""The call that sends the input's offsets, in a thread of its own, with a client that fails in it."""

from unittest.mock import Mock

import pytest

from stream_dedup.settings import Settings
from stream_dedup.stream.output import writer as writer_
from stream_dedup.stream.output.exactly_once import ExactlyOnceWriter
from stream_dedup.stream.output.writer import GroupOffsets


def test_error_that_is_not_kafkas_ends_the_commit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the transaction would be committed without the offsets."""
    client = Mock(**{"flush.return_value": 0})
    client.send_offsets_to_transaction.side_effect = TypeError("no metadata of a group")
    monkeypatch.setattr(writer_, "make_producer", lambda *_: client)
    writer = ExactlyOnceWriter(Settings.model_validate({"kafka": {}}), "changelog", lambda: None)
    writer.begin()
    with pytest.raises(TypeError, match="no metadata"):
        writer.commit([], GroupOffsets({("in", 0): 1}, object()))
    client.commit_transaction.assert_not_called()
