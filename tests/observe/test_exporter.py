from __future__ import annotations

import http.client
import socket

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from harness.gateways.profile import Keepalive
from harness.observe.aggregate import Aggregate
from harness.observe.exporter import ExporterError, registry_of, serve
from harness.observe.exposition import text
from harness.observe.families import FAMILIES
from harness.observe.state import Nodes, Observed, Reason, RunState

PROMISE = Keepalive("x", 10.0, "periodic", 16.0, 22.0)
BASE = 'gateway="sim:hopbase",model="m1",protocol="chat",run="r1",scenario="default"'
KIND = 'gateway="sim:hopbase",kind="{}",model="m1",protocol="chat",run="r1",scenario="default"'


def state(**changed):
    return RunState(**{"run": "r1", "gateway": "sim:hopbase", "version": "0.1.0", "simulated": True,
                       "started_at": 1000.0, **changed})  # fmt: skip


def observed(aggregate, now=103.0, **changed):
    return Observed(
        aggregate.snapshot(now),
        [state(**changed)],
        Nodes(users=5, workers={"running": 2, "missing": 1}, report_ages_s={"w1": 0.5}),
    )


def lines(aggregate, name, **changed):
    """The sample lines of one metric."""
    return [
        line
        for line in text(observed(aggregate, **changed), openmetrics=False).splitlines()
        if line.startswith(f"harness_{name}") and line[len(f"harness_{name}")] in "{ "
    ]


def test_counters_have_their_exact_lines(aggregate):
    assert lines(aggregate, "attempts_total") == [
        'harness_attempts_total{finish="stop",gateway="sim:hopbase",model="m1",outcome="completed",protocol="chat",'
        'run="r1",scenario="default",status="200"} 1.0',
        'harness_attempts_total{finish="none",gateway="sim:hopbase",model="m1",outcome="stalled",protocol="chat",'
        'run="r1",scenario="default",status="200"} 1.0',
    ]
    assert lines(aggregate, "wait_seconds_total") == [
        f"harness_wait_seconds_total{{{KIND.format('thinking')}}} 3.0",
        f"harness_wait_seconds_total{{{KIND.format('dead')}}} 0.5",
    ]


def test_histograms_are_cumulative_and_spell_bounds_as_the_client_library_does(aggregate):
    buckets = {
        line.partition('le="')[2].partition('"')[0]: line.rpartition(" ")[2]
        for line in lines(aggregate, "time_to_first_token_seconds_bucket")
    }

    assert len(buckets) == 36
    assert (buckets["0.3"], buckets["0.4"], buckets["1.0"], buckets["+Inf"]) == ("0.0", "2.0", "2.0", "2.0")
    assert lines(aggregate, "time_to_first_token_seconds_count") == [
        f"harness_time_to_first_token_seconds_count{{{BASE}}} 2.0"
    ]
    assert lines(aggregate, "time_to_first_token_seconds_sum") == [
        f"harness_time_to_first_token_seconds_sum{{{BASE}}} 0.8"
    ]


def test_gauges_of_open_streams_are_those_of_the_moment_and_fall_back_to_zero(
    aggregate, labels, session, record
):
    stream = session(last_byte=101.0, last_progress=100.5)
    aggregate.attempt_started(labels, stream)
    assert lines(aggregate, "oldest_silence_seconds") == [f"harness_oldest_silence_seconds{{{BASE}}} 2.0"]
    assert lines(aggregate, "oldest_progress_gap_seconds", now=104.0) == [
        f"harness_oldest_progress_gap_seconds{{{BASE}}} 3.5"
    ]
    assert [line.rpartition(" ")[2] for line in lines(aggregate, "open_streams")] == [
        "0.0",
        "0.0",
        "1.0",
        "0.0",
    ]

    aggregate.attempt_ended(labels, stream, record())
    assert [line.rpartition(" ")[2] for line in lines(aggregate, "open_streams")] == ["0.0"] * 4
    assert lines(aggregate, "oldest_silence_seconds") == [f"harness_oldest_silence_seconds{{{BASE}}} 0.0"]


def test_run_nodes_and_promise(aggregate):
    assert lines(aggregate, "run_info") == [
        'harness_run_info{gateway="sim:hopbase",run="r1",simulated="true",version="0.1.0"} 1.0'
    ]
    assert lines(aggregate, "users") == ["harness_users 5.0"]
    assert lines(aggregate, "workers") == [
        'harness_workers{state="running"} 2.0',
        'harness_workers{state="missing"} 1.0',
    ]
    assert lines(aggregate, "worker_report_age_seconds") == [
        'harness_worker_report_age_seconds{worker="w1"} 0.5'
    ]
    assert lines(aggregate, "keepalive_promised_seconds", keepalive=PROMISE) == [
        f"harness_keepalive_promised_seconds{{{BASE}}} 10.0"
    ]
    assert lines(aggregate, "run_start_timestamp_seconds") == [
        'harness_run_start_timestamp_seconds{gateway="sim:hopbase",run="r1"} 1000.0'
    ]


def test_a_run_says_when_it_ended_and_whether_it_counts(aggregate):
    assert lines(aggregate, "run_end_timestamp_seconds") == []
    assert lines(aggregate, "run_valid") == []
    assert lines(aggregate, "run_end_timestamp_seconds", ended_at=1060.5) == [
        'harness_run_end_timestamp_seconds{gateway="sim:hopbase",run="r1"} 1060.5'
    ]
    assert lines(aggregate, "run_valid", valid=True) == [
        'harness_run_valid{gateway="sim:hopbase",reason="none",run="r1"} 1.0'
    ]
    reasons = (Reason("lost_records", "3 records"), Reason("hub_lag", "late"))
    assert lines(aggregate, "run_valid", valid=False, reasons=reasons) == [
        'harness_run_valid{gateway="sim:hopbase",reason="lost_records",run="r1"} 0.0',
        'harness_run_valid{gateway="sim:hopbase",reason="hub_lag",run="r1"} 0.0',
    ]


def test_the_metrics_have_the_names_that_dashboards_query():
    names = """
        requests_total attempts_total time_to_headers_seconds time_to_first_byte_seconds
        time_to_first_token_seconds time_to_first_content_seconds inter_token_latency_seconds
        stream_duration_seconds longest_silence_seconds keepalive_interval_seconds keepalive_promised_seconds
        keepalives_total keepalive_deviations_total stalls_total stall_duration_seconds wait_seconds_total
        error_events_total retries_total retry_wait_seconds request_attempts tokens_total
        protocol_violations_total open_streams oldest_silence_seconds oldest_progress_gap_seconds
        arrivals_total arrival_lag_seconds generator_lag_seconds generator_uncertainty_seconds
        hub_lag_seconds generator_cpu_ratio generator_open_sockets users workers worker_report_age_seconds
        run_info run_valid run_start_timestamp_seconds run_end_timestamp_seconds
        capacity_step_load capacity_step_goodput capacity_knee
    """
    assert set(names.split()) == set(FAMILIES)


def test_every_family_has_help_and_type_before_the_first_stream():
    empty = text(Observed(Aggregate().snapshot(0.0)), openmetrics=False)

    for name, family in FAMILIES.items():
        assert f"\n# HELP harness_{name} {family.help}\n# TYPE harness_{name} {family.kind}\n" in f"\n{empty}"


def test_the_text_is_the_client_librarys_to_the_byte(aggregate, labels, session, record):
    nasty = labels._replace(model='a"b\\c\nd', run="r1")
    aggregate.attempt_started(nasty, session())
    aggregate.gaps(nasty, [0.1] * 7 + [1e9])
    aggregate.request_started(nasty)
    for _ in range(3):
        aggregate.attempt_ended(
            nasty, session(dead_s=1e-7, thinking_s=4e6), record(violations={"chat.done_missing": 10**7})
        )
    aggregate.cpu_ratio = 0.25
    registry = registry_of(lambda: observed(aggregate, keepalive=PROMISE, valid=True, ended_at=1.7e9))
    seen = observed(aggregate, keepalive=PROMISE, valid=True, ended_at=1.7e9)

    assert text(seen, openmetrics=False) == generate_latest(registry).decode()
    assert text(seen, openmetrics=True) == generate_openmetrics(registry).decode()


def test_the_writer_pauses_so_that_streams_can_be_read(aggregate, labels):
    for i in range(40):
        aggregate.gaps(labels._replace(model=f"m{i}"), [0.1])
    pauses = []
    written = text(observed(aggregate), openmetrics=False, pause=lambda: pauses.append(1))

    assert len(pauses) >= written.count("\n") // 600


def get(port, accept="*/*", path="/metrics", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, headers={"Accept": accept, "Accept-Encoding": "gzip"})
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type"), response.read().decode()
    finally:
        connection.close()


@pytest.fixture
def clock():
    class Clock:
        now = 50.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def exporter(aggregate, clock):
    running = serve(lambda: observed(aggregate), port=0, clock=clock)
    yield running
    running.close()


def test_a_scrape_gets_prometheus_text_or_openmetrics_as_it_asks(exporter, aggregate):
    status, kind, body = get(exporter.port, "text/plain;version=0.0.4")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert body == text(observed(aggregate), openmetrics=False)

    status, kind, body = get(exporter.port, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert status == 200
    assert kind is not None
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert body == text(observed(aggregate), openmetrics=True)


def test_only_a_whole_scrape_that_began_late_enough_has_seen_the_end(exporter, clock):
    assert not exporter.scraped_after(0.0)
    get(exporter.port, path="/favicon.ico")
    get(exporter.port, method="POST")
    assert not exporter.scraped_after(0.0)

    get(exporter.port)
    get(exporter.port, path="/favicon.ico")  # answered after the first one was noted
    exporter.close()
    assert exporter.scraped_after(50.0)
    assert not exporter.scraped_after(50.1)


def test_a_busy_port_is_one_line_that_says_what_to_do(exporter):
    with pytest.raises(ExporterError) as caught:
        serve(lambda: Observed({}), port=exporter.port)

    assert str(caught.value) == (
        f"metrics port {exporter.port} on 127.0.0.1 is in use (another run?): "
        "choose another with --metrics-port PORT, or 0 to do without"
    )


def test_a_host_that_is_not_ours_is_one_line_too():
    with pytest.raises(
        ExporterError, match=r"^cannot serve metrics on 192\.0\.2\.1:0 \(.+\): see --metrics-host"
    ):
        serve(lambda: Observed({}), host="192.0.2.1", port=0)


def test_closing_twice_is_harmless_and_frees_the_port(aggregate):
    running = serve(lambda: observed(aggregate), port=0)
    port = running.port
    running.close()
    running.close()

    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
