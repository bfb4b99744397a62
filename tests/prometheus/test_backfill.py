"""Every query of every panel on data with known answers: none is empty, the key ones are exact."""

from __future__ import annotations

import pytest

from harness.observe.buckets import FIRST_TOKEN, Histogram
from tests.boards.expand import ALL, BOARDS, CHOSEN, Asked, expand, panels, queries
from tests.prometheus.dataset import SECONDS, T1, T2, TTFT

RATES = {"__rate_interval": "20s", "__range": "205s"}
R1 = {**CHOSEN, "run": "r1", **RATES}
BOTH = {**CHOSEN, "__rate_interval": "20s", "__range": "700s"}
END = T1 + SECONDS


def of(board: str) -> dict[str, str]:
    return BOTH if board == "harness-comparison.json" else R1


def asked() -> list[Asked]:
    return [one for name, board in BOARDS.items() for one in queries(of(name), {name: board})]


@pytest.mark.parametrize("one", asked(), ids=str)
def test_every_query_has_data(backfilled, one):
    if one.target["instant"]:
        at = T2 + SECONDS if one.board == "harness-comparison.json" else END
        found = backfilled.instant(one.expr, at)
        values = [float(series["value"][1]) for series in found]
    else:
        found = backfilled.over(one.expr, T1 + 30, T2 + SECONDS)
        values = [float(value) for series in found for _, value in series["values"]]

    assert values
    assert all(value == value for value in values), "NaN"


def panel(board, title):
    return next(p for p in panels(BOARDS[f"harness-{board}.json"]) if p["title"] == title)


def ask(prometheus, board, title, at=END, values=R1, query=0):
    """The answer of a panel's query: its number, or numbers by the values of its labels."""
    target = panel(board, title)["targets"][query]
    found = prometheus.instant(expand(target["expr"], values), at)
    if len(found) == 1 and not found[0]["metric"]:
        return float(found[0]["value"][1])
    return {"|".join(s["metric"][k] for k in sorted(s["metric"])): float(s["value"][1]) for s in found}


def ttft(q, late=0.0):
    """The quantile of these first tokens, from buckets that not Prometheus counted."""
    histogram = Histogram(FIRST_TOKEN)
    for second in range(SECONDS):
        answers = 3 - (second % 10 == 9)  # messages answers 500; its 429 is followed by a stream
        histogram.add_many([TTFT[second % 10] + late] * answers)
    return histogram.quantile(q)


@pytest.mark.parametrize(
    ("board", "title", "expected"),
    [
        ("overview", "What this data is", 1),
        ("overview", "Valid", 1),
        ("overview", "Requests", 600),
        ("overview", "Completed", 520 / 620),
        ("overview", "TTFT p95", ttft(0.95)),
        ("overview", "Longest silence now", 200),
        ("overview", "Stalled", 20),
        ("overview", "Errors in streams", 20),
        # 600 streams have a first token less those of the 20 500s; 40 of them take 3 s.
        ("overview", "TTFT objective met", 540 / 620),
        ("overview", "TTFT budget left", 1 - (80 / 620) / 0.05),
        ("overview", "Success budget left", 1 - (100 / 620) / 0.05),
        ("overview", "TTFT misses left", 0.05 * 620 - 80),
        ("overview", "Failures left", 0.05 * 620 - 100),
        (
            "overview",
            "What became of the requests",
            {"not_needed": 520 - 20, "recovered": 20, "not_retryable": 80},
        ),
        ("overview", "Validity by reason", {"sim:hopbase|none|r1": 1}),
        ("stalls", "Oldest silence now", 200),
        ("stalls", "Oldest wait now", 400),
        ("stalls", "Silent streams now", 6),
        ("stalls", "Stalled", 20),
        ("stalls", "Recovered", 20),
        ("stalls", "Keepalive violations", 20),
        ("stalls", "Promised keepalive", 10),
        ("stalls", "Waiting covered", 0.75),
        ("stalls", "Stalls of this run", {"true|keepalive_only_mid": 20, "false|keepalive_only_mid": 20}),
        ("stalls", "Stalls that recovered", {"keepalive_only_mid": 20}),
        ("errors", "First-attempt success", 500 / 600),
        ("errors", "Final success", 520 / 600),
        ("errors", "Retries", 20),
        ("errors", "Attempts per request", 620 / 600),
        ("errors", "Errors in streams", 20),
        ("errors", "HTTP errors", 40),
        ("errors", "Tokens wasted", 140 / (580 * 50)),
        ("errors", "Protocol violations", 40),
        (
            "errors",
            "Outcomes by protocol",
            {
                "completed|chat|200": 180,
                "stalled|chat|200": 20,
                "completed|responses|200": 160,
                "error_event|responses|200": 20,
                "truncated|responses|200": 20,
                "completed|messages|200": 180,
                "http_error|messages|429": 20,
                "http_error|messages|500": 20,
            },
        ),
        ("errors", "Protocol violations by rule", {"chat|chat.usage_missing": 40}),
        ("capacity", "Knee", 8),
        ("capacity", "Highest step", 16),
        ("capacity", "Best goodput", 9),
        ("capacity", "Load against goodput", {"1": 4, "2": 8, "3": 16}),
    ],
)
def test_key_panels_show_the_exact_number_of_the_run(backfilled, board, title, expected):
    assert ask(backfilled, board, title) == pytest.approx(expected, rel=1e-9)


def test_numbers_of_a_finished_run_do_not_change_afterwards(backfilled):
    assert ask(backfilled, "overview", "Requests", at=T2 + 100, values={**R1, "__range": "600s"}) == 600


def test_the_last_column_of_a_table_is_of_the_same_rows(backfilled):
    assert ask(backfilled, "stalls", "Stalls of this run", query=1) == pytest.approx(
        {"true|keepalive_only_mid": 165, "false|keepalive_only_mid": 167}
    )
    assert ask(backfilled, "capacity", "Load against goodput", query=3) == {"1": 0.5, "2": 1, "3": 2}
    assert ask(backfilled, "overview", "Runs in view", query=1) == {"sim:hopbase|r1|true|0.1.0": 200}


def test_a_run_against_a_real_gateway_has_no_banner_and_says_why_it_is_not_valid(backfilled):
    r2 = {**R1, "run": "r2"}

    assert ask(backfilled, "overview", "What this data is", at=T2 + SECONDS, values=r2) == 0
    assert ask(backfilled, "overview", "Validity by reason", at=T2 + SECONDS, values=r2) == {
        "hopbase|late_arrivals|r2": 0
    }
    assert ask(backfilled, "overview", "TTFT p95", at=T2 + SECONDS, values=r2) == pytest.approx(
        ttft(0.95, late=0.5)
    )


def test_both_runs_stand_side_by_side(backfilled):
    at = T2 + SECONDS
    everything = panel("comparison", "Whole runs by $by")
    columns = [o["matcher"]["options"] for o in everything["fieldConfig"]["overrides"]]

    def column(name, values=BOTH):
        return ask(backfilled, "comparison", "Whole runs by $by", at, values, columns.index(name))

    assert column("Attempts") == {"r1": 620, "r2": 620}
    assert column("TTFT p50") == pytest.approx({"r1": ttft(0.5), "r2": ttft(0.5, 0.5)})
    assert column("Stalled") == pytest.approx({"r1": 20 / 620, "r2": 20 / 620})
    assert column("Tokens per attempt") == pytest.approx({"r1": 580 * 50 / 620, "r2": 580 * 50 / 620})
    by_gateway = {**BOTH, "by": "gateway", "a": "sim:hopbase", "b": "hopbase"}
    assert column("TTFT p95", by_gateway) == pytest.approx(
        {"sim:hopbase": ttft(0.95), "hopbase": ttft(0.95, 0.5)}
    )
    pair = [ask(backfilled, "comparison", "TTFT", at, by_gateway, query) for query in (0, 1)]
    assert pair == pytest.approx([ttft(0.5), ttft(0.5, 0.5)])


def test_rates_are_what_was_played(backfilled):
    """One request per second and protocol; a rate misses nothing where the data begins before its window."""
    at = T1 + 100

    assert ask(backfilled, "overview", "Offered and achieved load", at) == pytest.approx(3.3)
    assert ask(backfilled, "overview", "Offered and achieved load", at, query=1) == pytest.approx(3.1)
    assert ask(backfilled, "overview", "Open streams by phase", at) == {
        "connecting": 0,
        "waiting": 3,
        "streaming": 0,
        "silent": 6,
    }
    assert ask(backfilled, "overview", "Open streams by phase", T1 + 50) == {
        "connecting": 0,
        "waiting": 3,
        "streaming": 3,
        "silent": 3,
    }
    assert ask(backfilled, "stalls", "Waiting for output: thinking or dead", at) == pytest.approx(
        {"thinking": 4.65, "dead": 1.55}
    )
    assert ask(backfilled, "capacity", "Headroom", at) == pytest.approx(1 - 3.1 / 8)
    assert ask(backfilled, "capacity", "Little's law: open streams", at) == 9


def test_heatmaps_count_into_the_bucket_of_the_value(backfilled):
    """Buckets of keepalive intervals around 10 s: one band, at the promise."""
    cumulative = ask(backfilled, "stalls", "Keepalive intervals", T1 + 100)

    assert cumulative["9.5"] == 0
    assert cumulative["10.5"] == cumulative["+Inf"] == pytest.approx(62)
    gaps = ask(backfilled, "stalls", "Gaps between tokens", T1 + 100)
    assert (gaps["0.015"], gaps["0.02"] / gaps["+Inf"]) == (0, pytest.approx(48 / 49))


@pytest.mark.parametrize(
    "title",
    [
        "Event loop lag p99",
        "Read lag p99",
        "Uncertain arrivals p99",
        "CPU, busiest process",
        "Arrivals dropped",
        "Arrival lag p99",
        "Open sockets",
        "Scrape duration",
    ],
)
def test_the_generators_row_is_on_every_board_with_the_same_number(backfilled, title):
    expected = {
        # Quantiles lie inside the bucket of the value that was played.
        "Event loop lag p99": (0.00025, 0.0005),
        "Read lag p99": (0.002, 0.005),
        "Uncertain arrivals p99": (0.005, 0.01),
        "CPU, busiest process": (0.35, 0.35),
        "Arrivals dropped": (1 / 11, 1 / 11),
        "Arrival lag p99": (0.00025, 0.0005),
        "Open sockets": (40, 40),
        "Scrape duration": (0.004, 0.004),
    }
    low, high = expected[title]
    for name in BOARDS:
        shown = ask(backfilled, name.removeprefix("harness-").removesuffix(".json"), title, T1 + 100)
        assert low - 1e-9 <= shown <= high + 1e-9, name


def test_variables_offer_what_is_there_and_follow_one_another(backfilled):
    offered = {}
    for variable in BOARDS["harness-overview.json"]["templating"]["list"]:
        if variable["type"] == "query":
            selector, _, label = variable["query"]["query"].removeprefix("label_values(").rpartition(", ")
            offered[variable["name"]] = backfilled.label_values(
                label.removesuffix(")"), expand(selector, {**ALL, "run": "r2"}), T1, T2 + SECONDS
            )

    assert offered == {
        "run": ["r1", "r2"],
        "gateway": ["hopbase"],
        "protocol": ["chat", "messages", "responses"],
        "scenario": ["default"],
        "model": ["m1"],
    }


def test_a_runs_beginning_and_end_are_marked(backfilled):
    marks = BOARDS["harness-overview.json"]["annotations"]["list"]

    shown = {m["name"]: backfilled.number(expand(m["expr"], {**ALL, "run": "r1"}), END + 20) for m in marks}
    assert shown == {"Run start": T1 * 1000, "Run end": END * 1000}


def test_what_never_happened_is_zero_and_not_missing(backfilled):
    """No error event of chat ever made a series; the share of them is 0 %, not "no data"."""
    chat = {**R1, "protocol": "chat"}
    columns = [
        o["matcher"]["options"] for o in panel("comparison", "Whole runs by $by")["fieldConfig"]["overrides"]
    ]
    shares = ask(
        backfilled,
        "comparison",
        "Whole runs by $by",
        T2 + SECONDS,
        {**BOTH, "protocol": "chat"},
        columns.index("Errors in streams"),
    )

    assert shares == {"r1": 0, "r2": 0}
    assert ask(backfilled, "overview", "Errors in streams", values=chat) == 0
    assert ask(backfilled, "errors", "Tokens wasted", values=chat) == 0
    assert ask(backfilled, "errors", "HTTP errors", values=chat) == 0


@pytest.mark.parametrize(
    ("chosen", "requests"),
    [
        ({"protocol": "chat"}, 200),
        ({"protocol": "chat|messages"}, 400),
        ({"run": "r1|r2"}, 600),  # r2 had not begun
        ({"model": "m1"}, 600),
        ({"gateway": "sim:hopbase"}, 600),
    ],
)
def test_variables_choose(backfilled, chosen, requests):
    assert ask(backfilled, "overview", "Requests", values={**R1, **chosen}) == requests


@pytest.mark.parametrize(
    "chosen", [{"run": ""}, {"run": "r3"}, {"protocol": "x"}, {"gateway": "hopbase"}, {"model": "m2"}]
)
def test_what_is_not_there_is_not_shown(backfilled, chosen):
    assert ask(backfilled, "overview", "Requests", values={**R1, **chosen}) == {}
