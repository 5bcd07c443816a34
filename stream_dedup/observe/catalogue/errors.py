"""Metrics of what went wrong, and of what the service is waiting for.

Knows faults; knows nothing of where values come from.
"""

from stream_dedup.decode import Reason
from stream_dedup.observe.metric import Label, counter, gauge


class Errors:
    """Errors: what went wrong, and what the service is waiting for."""

    dead_letters = counter(
        "messages",
        "Messages that could not be judged, by reason.",
        "See [dead letters](README.md#dead-letters) for what to do about each reason. `internal` is a fault of the "
        "service.",
        Label("reason", tuple(Reason)),
    )
    rebalances = counter(
        "rebalances",
        "How often input partitions were assigned or revoked.",
        "Often: `input.group` has other members, or a process does not poll in time (`heartbeat_age_seconds`).",
    )
    input_lost = counter(
        "offsets",
        "Offsets of the input that the broker no longer had: deleted before they were read, or lost after.",
        "Grows: articles are missing; `input_lost` in the log says of which partitions, and what to do.",
    )
    registry_waiting = gauge(
        "0 or 1",
        "1 while waiting for the schema registry.",
        "1: messages wait for a schema, nothing is lost; `registry_out_of_reach` in the log has the registry's answer.",
    )
    heartbeat_age_seconds = gauge(
        "seconds",
        "Time since the poll loop last ran.",
        "More than a few seconds: a slow disk, or a machine short of CPU. At `http.stuck_seconds` `/healthz` fails.",
    )
    stack_dumps = counter(
        "dumps",
        "How often the stacks of all threads were logged: the loop was stuck, or SIGUSR1 was sent.",
        "Grows: the stacks in the log event `loop_stuck` show where the loop was stuck.",
    )
