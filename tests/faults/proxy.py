"""A TCP proxy on loopback whose traffic can be passed, slowed, held or cut while it runs.

Knows connections and bytes; knows nothing of Kafka.
"""

import asyncio
import math
import socket
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
_CHUNK_BYTES = 16 << 10
_CALL_SECONDS = 60.0
_TURNS_TO_SERVE = 5  # of asyncio's loop, from a connection that is accepted to its task at work


@dataclass(frozen=True, slots=True)
class Traffic:
    """What happens to the bytes.

    Attributes:
        refused: whether connections are cut and new ones refused.
        held: whether connections are accepted and stay open, but nothing is forwarded until the next change.
        latency: seconds that each piece of up to 16 KB waits before the next is read.
        rate: bytes per second, for each connection and direction.
    """

    refused: bool = False
    held: bool = False
    latency: float = 0.0
    rate: float = math.inf

    def delay(self, size: int) -> float:
        """Return the seconds that a piece of `size` bytes takes."""
        return self.latency + size / self.rate


PASS = Traffic()
CUT = Traffic(refused=True)
BLACK_HOLE = Traffic(held=True)


def slow(latency: float, rate: float) -> Traffic:
    """Return the traffic of a bad line: seconds of latency, bytes per second."""
    return Traffic(latency=latency, rate=rate)


class Proxy:
    """Forwards what arrives at `port`, in its own thread; a context manager.

    Bytes in transit when the traffic is held arrive once it passes again, as after a network outage. A cut loses them.
    """

    def __init__(self) -> None:
        # Never listens, but reserves the port: nobody else can get it while the listener is closed.
        self._holder = _bound_socket(0)
        self.port = int(self._holder.getsockname()[1])
        self._target: tuple[str, int] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._traffic = PASS
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """The address it listens on, as `host:port`."""
        return f"{HOST}:{self.port}"

    def forward_to(self, address: str) -> None:
        """Set where connections are forwarded to, as `host:port`."""
        host, port = address.split(":")
        self._target = host, int(port)

    def set(self, traffic: Traffic) -> None:
        """Change what happens to the bytes, in open connections too; returns once it is in effect."""
        self._call(self._set(traffic))

    def __enter__(self) -> Self:
        self._thread.start()
        self.set(PASS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.set(CUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._holder.close()

    def _call(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_SECONDS)

    async def _set(self, traffic: Traffic) -> None:
        self._traffic = traffic
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        if traffic.refused:
            await self._cut()
        elif self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=_bound_socket(self.port))

    async def _cut(self) -> None:
        if self._server is not None:
            await self._accept_no_more(self._server)
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept_no_more(self, server: asyncio.Server) -> None:
        """Wait until what has been accepted is among the connections: asyncio loses it if the server closes before."""
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(_TURNS_TO_SERVE):
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._forward(reader, writer)
        finally:
            self._connections.discard(task)
            self._end(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward in both directions until one of them ends."""
        await self._passing()
        assert self._target is not None, "forward_to() comes first"
        there, back = await asyncio.open_connection(*self._target)
        pumps = [asyncio.create_task(self._pump(*ends)) for ends in ((reader, back), (there, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            self._end(back)

    def _end(self, writer: asyncio.StreamWriter) -> None:
        """Close a connection after its last bytes, or at once if it is cut."""
        if self._traffic.refused:
            writer.transport.abort()
        else:
            writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_CHUNK_BYTES):
                await self._wait(len(piece))
                writer.write(piece)
                await writer.drain()

    async def _wait(self, size: int) -> None:
        """Wait as long as the current traffic delays a piece; a change takes effect at once."""
        await self._passing()
        if seconds := self._traffic.delay(size):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
            await self._passing()

    async def _passing(self) -> None:
        while self._traffic.held:
            await self._changed.wait()


def _bound_socket(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((HOST, port))
    return bound
