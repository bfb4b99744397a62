"""A Locust process whose users read with httpx's own iterators: what most harnesses do."""

import locust  # noqa: F401  # patches the standard library, so it has to come first

import json
import sys
import time

import gevent
import httpx

URL, USERS, SECONDS, START_S = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
SEEN = {"events": 0}
CONTEXT = httpx.create_ssl_context()


def user(number: int, until: float) -> None:
    """Stream one answer after the other until the time is up."""
    client = httpx.Client(verify=CONTEXT, trust_env=False, timeout=60)
    count = 0
    gevent.sleep(number / USERS * START_S)
    while time.time() < until:
        request = f"{number}x{count}"
        count += 1
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
        first, rest = None, b""
        with client.stream("POST", URL + "/v1/chat/completions", json=body,
                           headers={"X-Client-Request-Id": f"{request}-1"}) as response:  # fmt: skip
            # Not iter_lines(): it ends lines at U+2028 too, which tears JSON apart.
            for data in response.iter_bytes():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {"):
                        SEEN["events"] += 1
                        chunk = json.loads(line[6:])
                        if first is None and chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                            first = time.time()
        if first is not None:
            print(request, repr(first))


def main() -> None:
    """Run all users and print what was seen."""
    until = time.time() + SECONDS
    gevent.joinall([gevent.spawn(user, number, until) for number in range(USERS)])
    print("events", SEEN["events"])


main()
