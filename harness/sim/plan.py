"""A stream as a script: an iterator of timed steps, the only language that faults and player share.

A step is ``(due_s, kind, data)``: seconds from the moment the request was read whole, what it is, and
its bytes. A step whose time has passed is played at once, so control steps say 0.0 for "right after
the one before". A plan that simply ends means a clean end of the body. Plain tuples and integers,
because a step is made for each of 60,000 tokens a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

Step = tuple[float, int, bytes]
Plan = Iterator[Step]

# Bytes of the body: framed as the head said (a chunk each), counted by kind in the truth log.
CONTENT: Final = 0  # progress that a user sees: text or refusal
PROGRESS: Final = 1  # progress of another channel: reasoning, tool arguments
EVENT: Final = 2  # an event without progress
TERMINAL: Final = 3  # the event that settles the outcome: what comes later cannot change it
COMMENT: Final = 4  # a comment of the plan's own; the promised keepalives are the player's
PART: Final = 5  # a piece that leaves its event open: no keepalive may follow it
LAST_BODY: Final = PART

# Everything else.
HEAD: Final = 6  # the head of a streaming answer (data: further header lines), chunked from here
RAW: Final = 7  # bytes as they are: a whole answer, or what breaks the framing; unframed from here
STALL: Final = 8  # from here on a right client counts a stall, though keepalives flow
MUTE: Final = 9  # no keepalives from here
UNMUTE: Final = 10  # keepalives from here, promised by the gateway or not
CLOSE: Final = 11  # the connection closes without ending the body
RESET: Final = 12  # the connection is reset
HANG: Final = 13  # nothing more ever happens, but the connection stays (and keepalives, unless muted)
