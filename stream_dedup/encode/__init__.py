"""Links and clusters to bytes, in the format of the outputs.

Knows formats and the schemas of the outputs; knows nothing of Kafka or of how a decision is made.
"""

from stream_dedup.encode.encoder import Encoder, JsonEncoder

__all__ = ["Encoder", "JsonEncoder"]
