"""Hypothesis profiles: `default` for every run, `nightly` (HYPOTHESIS_PROFILE=nightly) for the long hunt.

A test says how many examples it needs by default; under `nightly` each gets `NIGHTLY` of them.
"""

import os

from hypothesis import HealthCheck, settings

NIGHTLY = 20_000

# Examples are the same in every run, so that a red test is red again; the nightly hunt looks elsewhere.
settings.register_profile("default", max_examples=500, deadline=None, derandomize=True, database=None)
settings.register_profile(
    "nightly",
    max_examples=NIGHTLY,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
