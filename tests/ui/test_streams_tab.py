"""The page in a real browser: start a run, see it move, stop it, take its files home."""

import json
import signal

import gevent
import httpx

MIX = "ok=60,stall-mid=10,error-mid=15,truncate=15"


def start_page(launch, port, results, *arguments):
    process = launch(
        "run", "--host", "sim", "--gateway", "hopbase", "--time-scale", "0.02", "--sim-mix", MIX,
        "--web-host", "127.0.0.1", "--web-port", port, "--metrics-port", "0", "--metrics-linger", "0s",
        "--results", results, "--loglevel", "WARNING", *arguments,
    )  # fmt: skip
    for _ in range(400):
        try:
            httpx.get(f"http://127.0.0.1:{port}/harness/tab.js", trust_env=False)
        except httpx.ConnectError:
            gevent.sleep(0.05)
        else:
            return process
    raise AssertionError(process.err)


def ended(page):
    return sum(int(cells["Streams"]) for cells in page.rows().values())


def test_a_run_from_start_to_downloads(launch, free_port, tmp_path, show):
    results = tmp_path / "results"
    process = start_page(launch, free_port, results)
    page = show(f"http://127.0.0.1:{free_port}/")
    page.fill("userCount", "9")
    page.fill("spawnRate", "9")
    page.button("Start").click()
    page.tab("Streams")

    page.wait(lambda: page.rows().keys() == {"chat", "messages", "responses"}, "a row per protocol")
    before = page.wait(lambda: ended(page), "streams that ended")
    page.wait(lambda: ended(page) >= before + 10, "numbers that move")
    page.wait(lambda: "keepalive only mid" in page.rows()["chat"]["Stalls"], "a stall", 30)
    cells = page.rows()["chat"]
    low, mid, high = (float(n.replace(",", "")) for n in cells["TTFT p50 / p95 / p99 (ms)"].split(" / "))
    assert 100 < low <= mid <= high
    assert 0 < int(cells["Failed"]) < int(cells["Streams"])
    assert page.find("#harness-simulated")[0].text.startswith("SIMULATED (sim:hopbase)")
    charts = page.find("#harness-charts svg")
    assert ["Time to first token (last 2 s)", "Outcomes per second", "Open streams", "Oldest silence"] == [
        chart.get_attribute("aria-label") for chart in charts
    ]
    assert 1 == len({chart.size["width"] for chart in charts})  # no chart is larger than the others
    page.wait(lambda: "stalled" in page.find(".harness-chart")[1].text, "the outcomes in the chart")
    page.wait(lambda: len(page.find("#harness-silent tr")) > 1, "silent streams")
    assert "NaN" not in page.driver.page_source

    page.tab("Charts")
    page.wait(lambda: not page.find("#harness-charts"), "our charts leave other tabs alone")
    page.button("Stop").click()
    page.wait((results / "latest" / "summary.json").exists, "the end of the run")
    page.tab("Download Data")
    for words in ("Attempts (JSONL)", "Summary (JSON)"):
        page.button(words).click()
    attempts = page.wait(lambda: list(page.downloads.glob("*-attempts.jsonl")), "attempts")[0]
    summary = page.wait(lambda: list(page.downloads.glob("*-summary.json")), "summary")[0]
    lines = [json.loads(line) for line in attempts.read_text().splitlines()]
    assert json.loads(summary.read_text())["attempts"] == len(lines) > before
    process.signal(signal.SIGINT)
    process.wait(20)
