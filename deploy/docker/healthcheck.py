"""Asks the service's HTTP port and exits with 0 if all is well, otherwise with 1: the image's health check.

Knows a path and a port; loads nothing of the service, since it runs every few seconds.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException

_SECONDS = 4
_OK = 200


def main(path: str) -> int:
    """Print the answer to a path; return the exit code."""
    connection = HTTPConnection("127.0.0.1", int(os.environ.get("STREAM_DEDUP_HTTP__PORT", "9108")), timeout=_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        print(answer.read().decode().strip())
    except (OSError, HTTPException) as error:
        print(error)
        return 1
    return int(answer.status != _OK)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
