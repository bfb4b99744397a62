"""The page for people who were not there: what it says first, what it draws, and what can never run in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import msgspec
import pytest

from harness.cli import main
from harness.judge.judging import judge_run
from harness.judge.outputs import write_outputs
from harness.judge.report.charts import crowd, shares_that_got_there, short
from harness.judge.report.page import build_report
from harness.judge.report.picture import Picture
from harness.judge.report.svg import Scale
from harness.judge.report.words import lead
from harness.judge.sample import Sample
from harness.stream.record import ErrorRecord, KeepaliveRecord, RequestSummary, Retry

ATTACK = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """Text, tags and well-formedness of a page."""

    VOID = frozenset({"meta", "br", "img", "line", "rect", "circle", "path"})

    def __init__(self, html):
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert [] == self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in self.VOID or tag in ("rect", "circle", "path"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert tag == self._open.pop(), tag

    def handle_data(self, data):
        if "style" not in self._open[-1:]:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def error_of(message):
    return ErrorRecord("stream", "server_error", None, message, True, "data")


@pytest.fixture
def broken(folder, record, stalled, rejected):
    """1,000 requests: 900 fine, 40 with an error, 30 hung, 20 refused, 10 open at the end; two protocols."""
    records = [record(i, protocol="chat" if i % 2 else "messages") for i in range(900)]
    records += [
        record(i, outcome="error_event", finish=None, error=error_of("please retry")) for i in range(900, 940)
    ]
    records += [stalled(i, first_token_s=None, ttft=None) for i in range(940, 970)]
    records += [rejected(i) for i in range(970, 990)]
    records += [record(i, None, outcome="aborted", end_s=5.0) for i in range(990, 1000)]
    return folder.run(records, run={"base_url": "http://gateway.example:8080", "tags": {"build": "b-17"}})


def judged(run, folder, **gate):
    verdict = judge_run(run, folder.gates({"stat": "p90", "limit": "1.5s", **gate}))
    write_outputs(run, verdict)
    return verdict


def test_the_first_paragraph_is_what_a_manager_asks(broken, folder):
    judged(broken, folder)

    assert lead(Picture(broken)) == (
        "The gateway g was asked 1,000 questions in 1.7 minutes. Of 1,000 answers 90 broke: 40 ended in the "
        "middle with an error message, 30 hung: they stopped and nothing more came and 20 were refused. 10 "
        "were still being written when the test ended. Half of the answers began within 400 ms; for 95 of "
        "100 it took more than 5.00 s. The limit was 90 of 100 within 1.50 s: kept. The verdict: passed."
    )


def test_a_handful_of_answers_is_counted_and_not_scaled_up(folder, record, stalled):
    run = folder.run([*(record(i) for i in range(9)), stalled(9)])

    assert "1 of 10 answers hung: it stopped and nothing more came." in lead(Picture(run))
    assert "No limits were set, so there is no verdict." in lead(Picture(run))


def test_simulated_runs_say_so_first_and_last(folder, record):
    run = folder.run(
        [record(i, simulated=True, gateway="sim:hopbase") for i in range(10)],
        run={"gateway": "sim:hopbase", "simulated": True, "time_scale": 0.02},
        summary={"gateway": "sim:hopbase"},
    )
    said = lead(Picture(run))

    assert said.startswith(
        "This was a rehearsal against a simulated gateway (sim:hopbase, played at 0.02 of real"
    )
    assert said.endswith("Nothing here says anything about a real gateway.")
    assert "SIMULATED at 0.02 of real time: a played gateway." in Page(build_report([run])).text


def test_an_invalid_run_has_no_verdict(folder, record):
    run = folder.run([record(0), record(0)])

    assert "No verdict: the measurement itself cannot be trusted." in lead(Picture(run))
    assert "This run is invalid:" in Page(build_report([run])).text


def test_the_page_holds_every_part_and_nothing_that_loads_or_runs(broken, folder):
    judged(broken, folder)
    html = build_report([broken], title="Nightly <check> & more")
    page = Page(html)

    for heading in ("What was tested", "Gates", "How answers ended", "How long it took", "Over time",
                    "Stalls", "Health of the load generator"):  # fmt: skip
        assert f"<h2>{heading}</h2>" in html
    assert "Nightly <check> & more" in page.text
    assert not {"script", "img", "link", "iframe", "object", "form"} & set(page.tags)
    assert not re.search(r"(?:src|href)=|url\(|@import|https?://(?!gateway\.example)", html)
    assert "default-src 'none'" in html
    assert "prefers-color-scheme: dark" in html
    assert len(html) < 200_000


def test_gates_stand_worst_first(broken, folder):
    gates = folder.gates({"id": "fine", "stat": "p50"}, {"id": "late", "stat": "p99"})
    write_outputs(broken, judge_run(broken, gates))
    text = Page(build_report([broken])).text

    assert text.index("late") < text.index("fine")
    assert "of 2 gates, 1 failed, 1 passed" in text


def test_a_verdict_of_another_run_is_not_this_runs(broken, folder):
    judged(broken, folder)
    verdict = json.loads((broken / "verdict.json").read_text())
    (broken / "verdict.json").write_text(json.dumps({**verdict, "run": "another"}))

    assert Picture(broken).verdict is None


def hostile(folder, record):
    failed = record(
        0, request=f"q{ATTACK}", outcome="error_event", finish=None, error=error_of(ATTACK), model=ATTACK
    )
    return folder.run(
        [failed, *(record(i) for i in range(1, 30))],
        run={"base_url": ATTACK, "models": {"chat": ATTACK}, "tags": {ATTACK: ATTACK}},
        summary={"notes": [ATTACK]},
    )


def test_what_a_server_wrote_is_text(folder, record):
    page = Page(build_report([hostile(folder, record)], title=ATTACK))

    assert not {"script", "img"} & set(page.tags)
    assert page.text.count("document.title='owned'") >= 6


def dom_of(path):
    with subprocess.Popen(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         f"--user-data-dir={path.parent / 'profile'}", "--virtual-time-budget=2000", "--dump-dom", f"file://{path}"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as browser:  # fmt: skip
        out, _ = browser.communicate(timeout=60)
    return out


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium: apt-get install chromium")
def test_nothing_runs_in_a_real_browser(folder, record):
    """The control page shows that the browser would have run it."""
    report, control = folder.base / "report.html", folder.base / "control.html"
    report.write_text(build_report([hostile(folder, record)], title="mine"))
    control.write_text(f"<title>mine</title><p>{ATTACK}</p>")

    assert "<title>owned</title>" in dom_of(control)
    dom = dom_of(report)
    assert "<title>mine</title>" in dom
    assert "<script" not in dom
    assert dom.count("<section") >= 5


def test_redacted_pages_name_no_host_model_or_tag(folder, record):
    error = error_of("cannot reach backend-7.internal for secret-model")
    records = [record(i, model="secret-model", peer="10.1.2.3:443") for i in range(30)]
    records += [record(30, model="secret-model", outcome="error_event", finish=None, error=error)]
    run = folder.run(
        records,
        run={
            "base_url": "https://gw.example.com:8443/v1",
            "tags": {"team": "blue"},
            "models": {"chat": "secret-model"},
        },
        summary={"notes": ["host gw.example.com was slow"]},
    )
    write_outputs(run, judge_run(run, folder.gates({"stat": "p50", "where": {"model": "secret-model"}})))
    open_, closed = build_report([run]), build_report([run], title="for secret-model", redact=True)

    for word in ("secret-model", "gw.example.com", "blue", "backend-7"):
        assert word in open_
        assert word not in closed
    assert "████" in closed
    assert Page(closed).text.count("How answers ended") == 1


def test_retries_and_their_cost_are_told(folder, record, rejected):
    again = rejected(0, final=False, retry=Retry("retry", "rate_limited", 1.0))
    summary = RequestSummary(2, "completed", "recovered", 1.4, 1.4, 2.0, 12, "usage")
    run = folder.run(
        [again, record(0, attempt=2, request_summary=summary), *(record(i) for i in range(1, 9))]
    )
    text = Page(build_report([run])).text

    assert "sent again: rate_limited 1" in text
    assert "requests that a further attempt recovered 1" in text
    assert "output tokens thrown away 12" in text


def test_several_runs_stand_side_by_side(folder, record):
    runs = [folder.run([record(i, 0.4 * k, run=f"run{k}") for i in range(60)], f"run{k}") for k in (1, 2)]
    html = build_report(runs)
    page = Page(html)

    assert "Side by side" in page.text
    assert 2 == page.tags.count("details")
    assert re.search(r"ttft p50</td><td class=\"number\">400 ms</td><td class=\"number\">800 ms", html)


def test_runs_of_the_same_name_are_told_apart(folder, record):
    runs = [folder.run([record(i) for i in range(20)], f"{place}/r1") for place in ("here", "there")]

    assert "r1 (2) (100.0 % got there)" in Page(build_report(runs)).text


def test_the_worst_streams_show_their_timelines(folder, record, stalled):
    run = folder.run([*(record(i) for i in range(30)), stalled(30)])
    line = {"request": "q30", "attempt": 1, "t": [0.1, 0.4, 0.5, 0.9, 1.4, 1.9], "dropped": 7,
            "kind": ["lifecycle", "content", "content", "content", "comment", "comment"]}  # fmt: skip
    (run / "timelines.jsonl").write_text(json.dumps(line) + "\n")
    html = build_report([run])

    # 1.5 s of silence after the last token at 0.9 s of 2.4 s: from 8 + 944 × 0.375 to the end
    assert '<rect class="silence" x="362.0" y="4" width="590.0" height="34">' in html
    assert "<title>1.50 s without output</title>" in html
    assert 'class="comment" d="M558.7 24V38M755.3 24V38"' in html
    assert "7 entries in its middle were not kept" in html


def test_a_crowd_of_cuts_points_to_a_timer(folder, record):
    """61 cuts after 60 s of silence and nine at random:

    The sentence that sends someone to a proxy's settings.
    """
    cut = [
        record(i, outcome="cut", finish=None, end_s=70.0 + i % 40, silence_end_s=60.0 + (i % 5) / 100)
        for i in range(61)
    ]
    cut += [
        record(100 + i, outcome="cut", finish=None, end_s=9.0 + i, silence_end_s=4.0 * i) for i in range(9)
    ]
    html = build_report([folder.run([*cut, *(record(200 + i) for i in range(50))])])

    assert "61 of 70 cuts came at 60 s of silence." in Page(html).text
    assert "60 s: nginx, AWS ALB" in html


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([60.0, 60.02, 60.01, 59.99, 60.0, 12.0], (60.0, 5)),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], None),  # nothing in common
        ([60.0] * 4, None),  # too few
        ([60.0] * 5 + [1.0, 5.0, 9.0, 13.0, 20.0, 30.0], None),  # fewer than half
        ([], None),
    ],
)
def test_what_counts_as_a_crowd(values, found):
    crowded = crowd(values)

    assert found == (crowded and (round(crowded[0], 6), crowded[1]))


def test_keepalives_are_drawn_against_the_promise(folder, record):
    keepalive = KeepaliveRecord(3, 0, 10.0, 10.0, 10.1, 10.3, 1, 0, "keep")
    run = folder.run(
        [record(i, keepalive=keepalive) for i in range(20)],
        run={"keepalive": {"interval_s": 10.0, "late_s": 16.0, "violation_s": 22.0, "kind": "periodic"}},
    )
    text = Page(build_report([run])).text

    assert "60 comments and 0 pings; 20 came late, 0 broke the promise." in text
    assert "promised: 10.0 s" in text
    assert "promise broken: 22.0 s" in text


def test_a_curve_ends_where_the_failures_begin():
    """Half of the streams failed: the curve ends at 50 %, not at 100."""
    sample = Sample()
    for value in (0.1, 0.2, 0.3, 0.4):
        sample.add(value)
    sample.lost = 4
    drawn = shares_that_got_there({"chat": sample}, "ttft")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", drawn)]

    assert "chat (50.0 % got there)" in drawn
    assert min(heights) == pytest.approx((14 + 212) / 2, abs=0.5)  # half-way between roof and floor


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(0, 100, 0, 1), [0, 20, 40, 60, 80, 100]),
        (Scale(0, 0.7, 0, 1), [0, 0.2, 0.4, 0.6]),
        (Scale(0.05, 20, 0, 1, log=True), [0.1, 0.3, 1, 3, 10]),
        (Scale(0.2, 0.4, 0, 1, log=True), [0.2, 0.25, 0.3, 0.35, 0.4]),
        (Scale(3, 3, 0, 1), [3]),
    ],
)
def test_ticks_are_round(scale, ticks):
    assert ticks == pytest.approx(scale.ticks(4 if scale.high == 0.4 else 6))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0"), (0.0005, "500 µs"), (0.25, "250 ms"), (1.5, "1.5 s"), (1200.0, "1,200 s")]
)
def test_axis_words(seconds, text):
    assert text == short(seconds)


def test_an_empty_run_is_a_page_that_says_so(folder):
    assert "Not one answer was measured." in Page(build_report([folder.run([])])).text


def test_the_command_writes_beside_the_records_or_where_it_is_told(broken, folder, capsys):
    assert 0 == main(["report", str(broken), "--title", "T"])
    assert f"{broken}/report.html\n" == capsys.readouterr().out
    assert "<h1>T</h1>" in (broken / "report.html").read_text()
    assert 0 == main(["report", str(broken), "--output", str(folder.base / "x.html")])
    assert (folder.base / "x.html").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["none"], "none does not exist"),
        (["r1", "--output", "no/x.html"], "cannot write no/x.html (No such file or directory)"),
        (["old"], "line 1: schema 'harness.attempt/0'"),
    ],
)
def test_what_cannot_be_reported_is_one_line(words, line, folder, record, capsys, monkeypatch):
    folder.run([record(0)])
    folder.run([msgspec.structs.replace(record(0), schema="harness.attempt/0")], "old")
    monkeypatch.chdir(folder.base)

    assert 2 == main(["report", *words])
    said = capsys.readouterr().err
    assert line in said
    assert 1 == said.count("\n")
