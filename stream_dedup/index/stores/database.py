"""Opens a database of RocksDB with all its families, and checks that none of its files is missing or cut short.

Knows how RocksDB opens a database; knows nothing of what is in it.
"""

from collections.abc import Mapping
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

from stream_dedup.index.stores.options import access_of, options_of
from stream_dedup.index.stores.store import Family

_CACHE_BYTES = _BUFFER_BYTES = 1 << 20  # of a database from which nothing is read
_OPEN_FILES = 16  # of these: the sizes of all are compared without opening them


def open_database(directory: Path, options: Mapping[Family, Options], access: AccessType) -> Rdict:
    """Return an open database.

    Args:
        directory: its directory.
        options: options of each family.
        access: how it is opened.

    Raises:
        Exception: RocksDB's; it raises nothing more specific.
    """
    others = {str(family): chosen for family, chosen in options.items() if family is not Family.META}
    return Rdict(str(directory), options[Family.META], column_families=others, access_type=access)


def check_files(directory: Path, no_logs: Path) -> None:
    """Check that all files are there and of their full size; to those that follow a database, its family seems empty.

    Takes some 15 ms, however large the log is, since that is not read.

    Args:
        directory: directory of a database, which another process may be writing to.
        no_logs: a directory that contains no logs of a database.

    Raises:
        Exception: RocksDB's, naming a file; also if the writer has removed that one since its name was read.
    """
    options = options_of(_CACHE_BYTES, _BUFFER_BYTES, read_only=True, follows=False)
    for chosen in options.values():
        chosen.set_max_open_files(_OPEN_FILES)
    options[Family.META].set_wal_dir(str(no_logs))
    open_database(directory, options, access_of(read_only=True, follow=None)).close()
