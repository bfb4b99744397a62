"""A connection that is over leaves nothing behind, without the garbage collector's help."""

import asyncio
import gc
import weakref
from typing import cast

from harness.sim.gateway import SimulatedGateway
from harness.sim.server import Connection


class NoGateway:
    """Answers nothing."""

    def serve(self, request, link):
        return None


def test_a_lost_connection_is_no_garbage():
    async def lose():
        loop = asyncio.get_running_loop()
        kept = []

        def make():
            connection = Connection(cast(SimulatedGateway, NoGateway()))
            kept.append(weakref.ref(connection))
            return connection

        server = await loop.create_server(make, "127.0.0.1", 0)
        for _ in range(3):
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.close()
            await writer.wait_closed()
        await asyncio.sleep(0.1)
        server.close()
        return [ref() for ref in kept]

    gc.disable()
    try:
        assert [None, None, None] == asyncio.run(lose())
    finally:
        gc.enable()
