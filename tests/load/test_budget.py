"""Budgets: what may begin, why no more may, and what is said before."""

import pytest

from harness.load.budget import Budget, Spending, projection


def test_without_a_budget_everything_may_begin():
    spending = Spending(Budget())
    spending.answered(10**9)

    assert all(spending.request() for _ in range(1000))
    assert spending.reason is None


def test_exactly_so_many_requests_begin():
    spending = Spending(Budget(requests=3))

    assert [True, True, True, False, False] == [spending.request() for _ in range(5)]
    assert "3 requests were sent, as --max-requests says" == spending.reason


def test_nothing_begins_once_the_tokens_are_spent():
    spending = Spending(Budget(tokens=1000))
    assert spending.request()
    spending.answered(999)
    assert spending.request()
    spending.answered(53)

    assert not spending.request()
    assert "the token budget is spent: 1,052 of 1,000 tokens" == spending.reason


def test_the_parts_of_the_processes_add_up_and_none_is_without_bound():
    parts = [Budget(requests=10, tokens=1).share(number, 3) for number in range(3)]

    assert [4, 3, 3] == [part.requests for part in parts]
    assert all(part.tokens == 1 for part in parts)
    assert Budget() == Budget().share(0, 3)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        # an open load for a known time: 5 requests/s for a minute, 300 tokens each
        ({"rate": 5.0, "run_time_s": 60.0}, "cost: up to 90,000 tokens in all; about 100 tokens in and"),
        ({"rate": 5.0, "run_time_s": 60.0, "budget": Budget(requests=10)}, "up to 3,000 tokens in all"),
        ({"rate": 5.0, "run_time_s": 60.0, "budget": Budget(tokens=777)}, "up to 777 tokens in all"),
        ({"budget": Budget(requests=10)}, "up to 3,000 tokens in all"),
        ({}, "up to 200 out per request, without bound (bound it with --max-requests or --token-budget)"),
    ],
)  # fmt: skip
def test_the_projection_uses_what_is_known(known, words):
    given = {"rate": None, "run_time_s": None, "budget": Budget()} | known
    assert words in projection(prompt_tokens=100, answer_tokens=200, **given)
