"""Message bytes to articles and withdrawals, or to the reason why they are neither.

Knows formats, field paths and bounds; knows nothing of Kafka or of what becomes of an article.
"""

from stream_dedup.decode.decoder import Decoder
from stream_dedup.decode.reason import Reason, UndecodableError, internal
from stream_dedup.decode.scope import Header
from stream_dedup.decode.wire import WireDecoder

__all__ = ["Decoder", "Header", "Reason", "UndecodableError", "WireDecoder", "internal"]
