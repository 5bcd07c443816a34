"""Files in which nothing could be judged: why, and what to do about it.

Knows the reasons that a whole file may have; knows nothing of what else is made of its records.
"""

import time
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.files.items import item_of
from stream_dedup.files.readers import ONE_OBJECT_PER_LINE, FileFormatError, reader_for
from stream_dedup.settings import InputSettings
from stream_dedup.text.utf8 import TO_UTF8

_LOOKED_AT = 100  # records: a fault of the whole file shows in each


def advice(reasons: Collection[str]) -> str:
    """Return what to do about the reasons for which records were not judged, as far as a whole file may cause them."""
    told = ""
    if Reason.MISSING_FIELD in reasons or Reason.WRONG_TYPE in reasons:
        told += "; for other field names, set input.fields"
    if Reason.NOT_AN_OBJECT in reasons or Reason.INVALID_JSON in reasons:
        told += f"; {ONE_OBJECT_PER_LINE}"
    if Reason.INVALID_UTF8 in reasons:
        told += f"; records must be in UTF-8: {TO_UTF8}"
    return told


def no_articles(path: Path, settings: InputSettings) -> FileFormatError:
    """Return the error about a file with records none of which is an article, or with none at all.

    Args:
        path: of the file; one that can be read only once is told without a reason.
        settings: names of the articles' fields, and bounds.

    Raises:
        FileFormatError: the file cannot be read any more.
    """
    faults = list(_faults(path, settings)) if path.is_file() else []
    first = f": record {faults[0][0]}: {faults[0][1]}" if faults else ""
    return FileFormatError(f"{path}: no articles in it{first}{advice({error.reason for _, error in faults})}")


def _faults(path: Path, settings: InputSettings) -> Iterator[tuple[int, UndecodableError]]:
    """Yield why the first records of a file are not articles, each with its number."""
    decoder, now_ms = Decoder(settings), time.time_ns() // 1_000_000
    for record, _ in islice(reader_for(path, {settings.fields.deleted})(path), _LOOKED_AT):
        try:
            item_of(record, decoder, now_ms)
        except UndecodableError as error:
            yield record.number, error
