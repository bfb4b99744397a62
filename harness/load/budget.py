"""What a run may cost at most: requests and tokens. Shared gateways bill both.

Pure counting; whoever counts decides what a spent budget means. Tokens are known only when an attempt
has ended, so what is open when a token budget is spent still comes on top, and the run says so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits; 0 means none."""

    requests: int = 0
    tokens: int = 0

    def share(self, number: int, of: int) -> Budget:
        """Return the part of process *number* (from 0) of *of*: the parts add up to the whole.

        A process whose part would be nothing gets one token or request, because 0 means no limit.
        """
        return Budget(_part(self.requests, number, of), _part(self.tokens, number, of))


def _part(whole: int, number: int, of: int) -> int:
    return max(1, whole // of + (number < whole % of)) if whole else 0


class Spending:
    """What was spent of a budget so far."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.requests = self.tokens = 0

    def request(self) -> bool:
        """Count one more request; False if it must not begin."""
        if self.reason is not None:
            return False
        self.requests += 1
        return True

    def answered(self, tokens: int) -> None:
        """Count the tokens that an attempt cost, in and out."""
        self.tokens += tokens

    @property
    def reason(self) -> str | None:
        """Why no further request may begin, as a sentence; None if one may."""
        budget = self.budget
        if budget.tokens and self.tokens >= budget.tokens:
            return f"the token budget is spent: {self.tokens:,} of {budget.tokens:,} tokens"
        if budget.requests and self.requests >= budget.requests:
            return f"{self.requests:,} requests were sent, as --max-requests says"
        return None


def projection(
    *,
    prompt_tokens: float,
    answer_tokens: float,
    rate: float | None,
    run_time_s: float | None,
    budget: Budget,
) -> str:
    """Return one line that says what a run may cost in tokens, from what is known before it starts.

    *rate* is requests per second of an open load; None where the gateway's speed decides.
    """
    each = prompt_tokens + answer_tokens
    cost = f"about {prompt_tokens:,.0f} tokens in and up to {answer_tokens:,.0f} out per request"
    requests = None
    if rate is not None and run_time_s is not None:
        requests = rate * run_time_s
    if budget.requests:
        requests = budget.requests if requests is None else min(requests, budget.requests)
    total = None if requests is None else requests * each
    if budget.tokens:
        total = budget.tokens if total is None else min(total, budget.tokens)
    if total is None:
        return f"projected cost: {cost}, without bound (bound it with --max-requests or --token-budget)"
    return f"projected cost: up to {total:,.0f} tokens in all; {cost}"
