"""The API's connections: clients that send no complete request in time, or take no answer, are disconnected.

Knows sockets and time; knows nothing of paths or queries.
"""

import asyncio
import math

import h11
from fastapi import status
from uvicorn.protocols.http.h11_impl import H11Protocol

from stream_dedup.api.guards import BROWSER_HEADERS
from stream_dedup.api.problems import Code, problem

KEEP_ALIVE_SECONDS = 10  # without a request
PATIENCE_SECONDS = 30.0  # for a request to be complete, and for an answer to be taken
# curl, for one, sends an address as it was typed, with Chinese ids.
_LIKELY = "In its address, all characters outside ASCII must be percent-encoded (curl -G --data-urlencode 'id=...')"
MOST_CONNECTIONS = 256  # including those that browsers keep open


class Connection(H11Protocol):
    """A connection that is closed if its client keeps it waiting for too long.

    Above `MOST_CONNECTIONS`, the one that has waited longest for its client is closed to make room for a new one, so
    that idle connections cannot lock out other clients or the probes.
    """

    _patience: asyncio.TimerHandle | None = None  # set while waiting for the client

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        """Start waiting for a request, and close another connection if there are too many."""
        super().connection_made(transport)
        self._restart_timeout()
        if len(self.connections) > MOST_CONNECTIONS:
            others = [one for one in self.connections if isinstance(one, Connection)]
            min(others, key=Connection._gives_up_at).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for the client."""
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive data: with the last byte of a request, waiting for the client ends."""
        begins = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        super().data_received(data)
        if begins or not self._is_clients_turn():
            self._restart_timeout()

    def pause_writing(self) -> None:
        """Stop writing until the client has taken what was sent."""
        super().pause_writing()
        self._restart_timeout()

    def resume_writing(self) -> None:
        """Resume writing: the client has taken what was sent."""
        super().resume_writing()
        self._restart_timeout()

    def on_response_complete(self) -> None:
        """Proceed to the next request, which may already have arrived."""
        super().on_response_complete()
        self._restart_timeout()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not HTTP in the common form of errors, with its most likely cause."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            detail = f"this is not an HTTP request: {msg} {_LIKELY}"
            told = problem(status.HTTP_400_BAD_REQUEST, Code.NOT_HTTP, detail)
            headers = [*told.raw_headers, *BROWSER_HEADERS.items(), (b"connection", b"close")]
            head = h11.Response(status_code=told.status_code, headers=headers)
            for event in (head, h11.Data(data=bytes(told.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def give_up(self) -> None:
        """Close the connection at once, even if not everything was sent."""
        self.connections.discard(self)
        self._go_on()
        self.transport.abort()  # a regular close would wait until the client has taken the whole answer

    def _is_clients_turn(self) -> bool:
        # h11's state does not tell: for a client that will close, it is the same before and after the answer.
        asked = self.cycle is not None and not self.cycle.more_body
        return self.flow.write_paused or not asked or self.cycle.response_complete

    def _restart_timeout(self) -> None:
        self._go_on()
        if self._is_clients_turn():
            self._patience = self.loop.call_later(PATIENCE_SECONDS, self.give_up)

    def _go_on(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _gives_up_at(self) -> float:
        return self._patience.when() if self._patience is not None else math.inf
