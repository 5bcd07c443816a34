"""What a record of a file holds: an article, a withdrawal, or neither.

Knows records and how they are decoded; knows nothing of what becomes of either.
"""

from stream_dedup.article import Article, Origin, Withdrawal
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.files.readers import Record


def item_of(record: Record, decoder: Decoder, now_ms: int, origin: Origin | None = None) -> Article | Withdrawal:
    """Return the article or withdrawal in a record.

    Args:
        record: the record.
        decoder: decodes it.
        now_ms: the time now, milliseconds since 1970 in UTC.
        origin: where it comes from.

    Raises:
        UndecodableError: it is faulty, or neither of the two.
    """
    if record.fault is not None:
        raise UndecodableError(Reason.INVALID_RECORD, record.fault)
    return decoder.decode(record.value, now_ms, origin)
