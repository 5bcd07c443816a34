"""Free ports for processes that keep their address across restarts.

Knows which ports are safe to choose; knows nothing of who listens on them.

All of them are below those that Linux and macOS give to outgoing connections: a client that retries while its server
is down could otherwise be given the server's own port, and a restart would find it taken.
"""

import errno
import secrets
import socket
from contextlib import ExitStack, suppress

HOST = "127.0.0.1"
BROKER_PORTS = range(20_000, 32_000)
_SERVICE_PORTS = range(10_000, 20_000)
_ATTEMPTS = 100


def hold_free_port(held: ExitStack, ports: range = _SERVICE_PORTS) -> int:
    """Return a free port, which is held until the stack is closed.

    Args:
        held: closes the socket that holds the port.
        ports: those to choose from.

    Raises:
        OSError: none was free in a hundred attempts.
    """
    for _ in range(_ATTEMPTS):
        port = secrets.choice(ports)
        candidate = held.enter_context(socket.socket())
        with suppress(OSError):
            candidate.bind((HOST, port))
            return port
    raise OSError(errno.EADDRINUSE, f"no free port on {HOST} in {_ATTEMPTS} attempts from {ports[0]} to {ports[-1]}")


def free_port() -> int:
    """Return a port on which nothing listens.

    Raises:
        OSError: see `hold_free_port`.
    """
    with ExitStack() as held:
        return hold_free_port(held)
