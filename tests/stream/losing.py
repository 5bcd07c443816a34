"""A broker that loses the end of a topic, as by an unclean leader election or a disk that kept less than it said.

Knows how a segment of a topic is laid out; knows nothing of who reads it.
"""

import os
import struct

from deploy.broker import KafkaBroker

_BATCH = struct.Struct(">qi")  # how a batch begins in a segment: its first offset, and the length of the rest


def lose_end(broker: KafkaBroker, topic: str, offset: int) -> None:
    """Cut off the end of a topic of one partition at a batch boundary, as a leader that never saw it would."""
    broker.kill()
    (segment,) = broker.folder.glob(f"log/{topic}-0/*.log")
    data, end = segment.read_bytes(), 0
    while (batch := _BATCH.unpack_from(data, end))[0] < offset:
        end += batch[1] + _BATCH.size
    os.truncate(segment, end)
    for kind in ("index", "timeindex", "snapshot"):
        for file in segment.parent.glob(f"*.{kind}"):
            file.unlink()
    broker.restart()
