"""The records of a file, whatever its format.

Knows the readers; knows nothing of what a test expects.
"""

from pathlib import Path

import orjson

from stream_dedup.files.readers import reader_for


def records_in(path: Path) -> list[dict[str, object]]:
    """Return all records, each of which is JSON."""
    return [orjson.loads(record.value) for record, _ in reader_for(path)(path)]
