"""PromQL, piece by piece: selectors with the boards' variables, rates, totals of a run, shares, quantiles.

Two ways to count. Over time: ``rate`` over ``$__rate_interval``. For a whole run: the last value of each
counter, because a run is a series of its own that begins at zero; ``increase`` would lose what came before
the first scrape and guess at the edges, and a run of ten seconds consists of edges.
"""

from __future__ import annotations

from typing import get_args

from harness.observe.families import FAMILIES, PREFIX
from harness.observe.labels import STREAM_LABELS
from harness.stream.outcome import CLIENT_ENDED, StallClass

RATE = "$__rate_interval"
RANGE = "$__range"

# What the client ended is neither the gateway's success nor its failure.
JUDGED = f'outcome!~"{"|".join(sorted(CLIENT_ENDED))}"'
COMPLETED = 'outcome="completed"'
# Past a hard limit; the other classes are warnings.
HARD = f'stall_class=~"{"|".join(get_args(StallClass))}"'


def metric(name: str, *matchers: str, over: str = "") -> str:
    """Return the selector of the metric *name* (without prefix), limited to what the variables chose.

    *name* may end in ``_bucket``, ``_sum`` or ``_count``; *over* is a range. Only labels that the metric
    has are matched: a missing one would match nothing.
    """
    labels = FAMILIES[_family_of(name)].labels
    chosen = [f'{label}=~"${label}"' for label in STREAM_LABELS if label in labels]
    inner = ",".join([*chosen, *matchers])
    return f"{PREFIX}{name}{{{inner}}}" + (f"[{over}]" if over else "")


def _family_of(name: str) -> str:
    if name in FAMILIES:
        return name
    base = name.rpartition("_")[0]
    if base not in FAMILIES or FAMILIES[base].kind != "histogram":
        raise KeyError(f"no metric {name}")
    return base


def summed(inner: str, *by: str) -> str:
    """Return the sum of *inner*, per value of the labels *by*."""
    return f"sum by ({', '.join(by)}) ({inner})" if by else f"sum({inner})"


def most(inner: str, *by: str) -> str:
    """Return the maximum of *inner*, per value of the labels *by*."""
    return f"max by ({', '.join(by)}) ({inner})" if by else f"max({inner})"


def rate(name: str, *matchers: str, by: tuple[str, ...] = ()) -> str:
    """Return how much the counter *name* rises per second."""
    return summed(f"rate({metric(name, *matchers, over=RATE)})", *by)


def total(name: str, *matchers: str, by: tuple[str, ...] = ()) -> str:
    """Return the count of *name* since its run began, exactly."""
    return summed(f"last_over_time({metric(name, *matchers, over=RANGE)})", *by)


def now(name: str, *matchers: str, by: tuple[str, ...] = ()) -> str:
    """Return the sum of the gauge *name*."""
    return summed(metric(name, *matchers), *by)


def share(part: str, whole: str) -> str:
    """Return *part* of *whole*: 0 where nothing of the part was seen, nothing where the whole is zero."""
    return f"({part} or {whole} * 0) / ({whole} > 0)"


def per(number: str, whole: str) -> str:
    """Return *number* divided by *whole*, nothing where the whole is zero."""
    return f"{number} / ({whole} > 0)"


def quantile(q: float, name: str, *matchers: str, by: tuple[str, ...] = ()) -> str:
    """Return the *q* quantile over time of the histogram *name*."""
    return _known(q, rate(f"{name}_bucket", *matchers, by=("le", *by)))


def run_quantile(q: float, name: str, *matchers: str, by: tuple[str, ...] = ()) -> str:
    """Return the *q* quantile of the histogram *name* over the whole run."""
    return _known(q, total(f"{name}_bucket", *matchers, by=("le", *by)))


def _known(q: float, buckets: str) -> str:
    # Without a value a quantile is NaN, which no panel shows well; a comparison leaves it out.
    return f"histogram_quantile({q:g}, {buckets}) >= 0"


def within(limit: str, name: str, *matchers: str, whole_run: bool = True, by: tuple[str, ...] = ()) -> str:
    """Return how many values of the histogram *name* were at most *limit*, one of its bounds."""
    count = total if whole_run else rate
    return count(f"{name}_bucket", *matchers, f'le="{limit}"', by=by)
