"""Bounds on what Locust itself keeps of a run: it forgets no second, and sends its history with each page.

Of every row Locust keeps the number of requests of each second, of which it reads the last twelve; after a
day that is 8.5 MB per row. Its history for the charts has an entry each 5 s and is part of the page. Here old
seconds are dropped, and old history is thinned: a chart still goes from the start to now.
"""

from __future__ import annotations

from locust.stats import RequestStats

# Locust looks back 12 s; workers report 3 s late, and a hung one later.
KEPT_S = 120

# An hour at Locust's 5 s: about 0.5 MB of page.
KEPT_MOMENTS = 720


def trim(stats: RequestStats) -> None:
    """Forget what nothing reads any more. Counts, percentiles and the end of the charts stay as they are."""
    newest = stats.last_request_timestamp
    if newest is not None:
        for entry in (*stats.entries.values(), stats.total):
            for seconds in (entry.num_reqs_per_sec, entry.num_fail_per_sec):
                for second in [second for second in seconds if second < newest - KEPT_S]:
                    del seconds[second]
    history = stats.history
    if len(history) > KEPT_MOMENTS:
        # Every second moment of the older half: what happened long ago is drawn ever more coarsely.
        half = len(history) // 2
        history[:half] = history[:half:2]
