"""An asyncio process with aiohttp and a line parser on bytes: the fast way to write a client by hand.

The loop over lines is that of peer_httpx.py, written out: a function for both would cost a call per read.
"""

import asyncio
import json
import sys
import time

import aiohttp

URL, USERS, SECONDS, START_S = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
SEEN = {"events": 0}


async def user(session: aiohttp.ClientSession, number: int, until: float) -> None:
    """Stream one answer after the other until the time is up."""
    count = 0
    await asyncio.sleep(number / USERS * START_S)
    while time.time() < until:
        request = f"{number}x{count}"
        count += 1
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
        first = None
        rest = b""
        async with session.post(URL + "/v1/chat/completions", json=body,
                                headers={"X-Client-Request-Id": f"{request}-1"}) as response:  # fmt: skip
            async for data in response.content.iter_any():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {"):
                        SEEN["events"] += 1
                        chunk = json.loads(line[6:])
                        if first is None and chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                            first = time.time()
        if first is not None:
            print(request, repr(first))


async def main() -> None:
    """Run all users and print what was seen."""
    until = time.time() + SECONDS
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(user(session, number, until) for number in range(USERS)))
    print("events", SEEN["events"])


asyncio.run(main())
