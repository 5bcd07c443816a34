"""The process that serves the API: it reads its settings as JSON from standard input, and ends when that is closed.

Knows standard input and signals; knows nothing of HTTP.
"""

import os
import signal
import sys
import threading

import structlog

from stream_dedup.api.server import Server
from stream_dedup.observe.log_hooks import install_log_hooks
from stream_dedup.observe.logs import configure_logs
from stream_dedup.settings import Settings

log = structlog.get_logger()


def main() -> int:
    """Serve until the service that started this process closes standard input, or has ended."""
    settings = Settings.model_validate_json(sys.stdin.buffer.readline())
    configure_logs(settings.log, settings.secrets())
    install_log_hooks()
    server = Server(settings)
    # A signal to the whole process group (Ctrl-C) is meant for the service, which ends first and then this process.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_wait_for_end, args=(server,), name="parent", daemon=True).start()
    try:
        server.run()
    except OSError as error:
        log.error("api_not_served", error=str(error))  # noqa: TRY400  # the message says everything
        return 1
    return 0


def _wait_for_end(server: Server) -> None:
    # Read the descriptor: at exit Python needs the lock of a buffered reader, which this daemon thread would hold.
    while os.read(sys.stdin.fileno(), 1):
        pass
    server.stop()


if __name__ == "__main__":
    sys.exit(main())
