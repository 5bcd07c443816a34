"""Disagreements of a shadow, as read from its topic.

Knows what their messages contain; knows nothing of how they are read, or how they arise.
"""

import orjson
from confluent_kafka import Message
from pydantic import Field

from stream_dedup.article import Relation
from stream_dedup.ask.answers import Answer, MessageLocation
from stream_dedup.ask.decisions import judged_location, output_of
from stream_dedup.engine.shadow import Disagreement


class SideAnswer(Answer):
    """One of two decisions on an article."""

    decision: str = Field(description="`unique` or `duplicate`.")
    relation: Relation | None
    duplicate_of: str | None
    matched: str | None
    jaccard: float | None
    containment: float | None
    hamming: int | None
    fingerprint: str | None


class DisagreementAnswer(Answer):
    """An article on which a shadow would have decided differently."""

    id: str
    scope: str = ""
    disagreement: Disagreement
    source: str
    decided_at: str | None
    live: SideAnswer = Field(description="The decision in force.")
    shadow: SideAnswer = Field(description="The shadow's decision.")
    message: MessageLocation | None = Field(description="Location of the judged message, if known.")
    output: MessageLocation = Field(description="Location of the message that reports the disagreement.")


def disagreement(message: Message) -> DisagreementAnswer | None:
    """Return the disagreement that a message reports; None if the message is empty.

    Raises:
        ValueError: it was not written by the service.
    """
    output, value = output_of(message), message.value()
    if value is None:
        return None
    try:
        told = orjson.loads(value)
        return DisagreementAnswer.model_validate({**told, "message": judged_location(told), "output": output})
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"not a disagreement of a shadow: {output}") from None
