"""The process that serves the API beside a service: settings come as JSON on standard input, whose end is its own.

Knows standard input and signals; knows nothing of HTTP.
"""

import os
import signal
import sys
import threading

import structlog

from stream_dedup.api.server import Server
from stream_dedup.observe.logs import configure_logs
from stream_dedup.observe.strays import catch_strays
from stream_dedup.settings import Settings

log = structlog.get_logger()


def main() -> int:
    """Serve until the service that started this process closes standard input, or is gone."""
    settings = Settings.model_validate_json(sys.stdin.buffer.readline())
    configure_logs(settings.log, settings.secrets())
    catch_strays()
    server = Server(settings)
    # Whoever stops the service with its whole group (Ctrl-C) wants the service to end first.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_wait_for_end, args=(server,), name="parent", daemon=True).start()
    try:
        server.run()
    except OSError as error:
        log.error("api_not_served", error=str(error))  # noqa: TRY400  # the message says it all
        return 1
    return 0


def _wait_for_end(server: Server) -> None:
    # By the descriptor: at its end Python wants the lock of a buffered reader, and this thread is not waited for.
    while os.read(sys.stdin.fileno(), 1):
        pass
    server.stop()


if __name__ == "__main__":
    sys.exit(main())
