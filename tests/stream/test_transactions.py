"""Open transactions on a real broker: what they hide, how they are found, and what is not taken for one.

Knows writers and readers; knows nothing of services.
"""

from contextlib import closing
from types import SimpleNamespace

import pytest

from stream_dedup.stream.input.history import History
from stream_dedup.stream.kafka import transactions as transactions_
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.transactions import has_open_transaction
from stream_dedup.stream.output.errors import FencedError
from stream_dedup.stream.output.exactly_once import abort_open_transaction
from stream_dedup.stream.output.writer import GroupOffsets
from stream_dedup.stream.protocol import Step
from tests.stream.writing import RECORDS, Stage, member, steps


def test_open_transaction_hides_what_the_group_has_decided_until_it_is_aborted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that holds none of the group's offsets, like those of a rebuild, hides nothing."""
    settings, writer, open_at, hidden_at = stage.settings(), stage.writer(), list[Step](), list[Step]()

    def look(step: Step) -> None:
        def end() -> None:
            hidden_at.append(step)
            abort_open_transaction(settings, stage.changelog, stage.wait)

        if step in {Step.BEGUN, Step.CONFIRMED, Step.OFFSETS_SENT}:
            if has_open_transaction(settings, stage.changelog, stage.wait):
                open_at.append(step)
            if step is Step.OFFSETS_SENT:
                with pytest.raises(BrokerError, match="a killed process has left open hides what the group"):
                    History(stage.settings(deadline=2), {})
            with closing(History(settings, {}, while_hidden=end)) as history:
                assert history.total == 0

    steps(monkeypatch, look)
    with member(stage) as consumer:
        writer.begin()
        with pytest.raises(FencedError):
            writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 1}, consumer.consumer_group_metadata()))
    assert open_at == [Step.CONFIRMED, Step.OFFSETS_SENT]
    assert hidden_at == [Step.OFFSETS_SENT]
    assert not has_open_transaction(settings, stage.changelog, stage.wait)


def test_what_is_committed_meanwhile_was_not_left_open(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that is at work, as a rebuild with other settings may be, is not to be taken for a killed one."""
    end = 0

    def asked(*_: object, **__: object) -> tuple[int, int]:
        nonlocal end
        end += 3  # a transaction is committed before each answer
        return 0, end

    client = SimpleNamespace(get_watermark_offsets=asked, close=lambda: None)
    monkeypatch.setattr(transactions_, "make_consumer", lambda *_: client)
    assert not has_open_transaction(stage.settings(), stage.changelog, stage.wait)
