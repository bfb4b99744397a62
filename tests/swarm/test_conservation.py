"""Nothing is ever lost: with every fault at 200 users, what was measured is what was played."""

import json
import re
import urllib.request
from collections import Counter

import gevent

MIX = (
    "ok=40,slow-first-token=5,stall-pre=5,stall-mid=5,stall-pre-dead=5,stall-mid-dead=5,error-mid=5,truncate=5,"
    "reset=5,http-429=5,http-500=5,not-a-stream=5"
)

# The packaged locustfile, and a greenlet that looks at the books all the time.
WATCHED = """
from locust import events
import gevent
from harness.locustfile import ChatUser, MessagesUser, ResponsesUser
from harness.observe.snapshot import Snapshot

@events.init.add_listener
def watch(environment, **_):
    looks = [0, 0]
    def look():
        while True:
            gevent.sleep(0.03)
            node = environment.harness
            if node.run is not None:
                totals = Snapshot.from_plain(node.observe().snapshot).run(node.run.name)
                looks[0] += 1
                looks[1] += bool(totals.conservation().missing)
    gevent.spawn(look)
    environment.events.quit.add_listener(lambda **_: print(f"{looks[0]} looks, {looks[1]} unbalanced"))
"""


def samples(text, name):
    """Sum of the values of a metric."""
    return sum(float(v) for v in re.findall(rf"^harness_{name}{{[^}}]*}} (\S+)$", text, re.MULTILINE))


def test_started_is_outcomes_plus_open_at_every_moment_and_the_records_are_the_truth(
    launch, tmp_path, free_port, records, until
):
    (tmp_path / "watched.py").write_text(WATCHED)
    process = launch(
        "run", "-f", "watched.py", "--headless", "--only-summary", "--exit-code-on-error", "0",
        "-u", "200", "-r", "100", "-t", "7s", "--results", "results", "--metrics-port", free_port,
        "--host", "sim", "--gateway", "hopbase", "--time-scale", "0.01", "--limit", "silence=1300ms",
        "--sim-mix", MIX, "--sim-truth", "truth.jsonl",
    )  # fmt: skip
    # A busy machine may hold up the simulator for a moment: the limit of silence leaves it more than the
    # profile's scaled one would.
    process.wait_for("Ramping to 200 users")
    scrapes, text = [], ""
    while process.popen.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/metrics") as answer:
                text = answer.read().decode()
        except OSError:
            break  # it lingers until a scrape has seen the end, so the last one has
        scrapes.append((samples(text, "attempts_total"), samples(text, "open_streams")))
        gevent.sleep(0.3)
    assert 0 == process.wait()

    ((looks, unbalanced),) = re.findall(r"(\d+) looks, (\d+) unbalanced", process.out)
    assert (True, "0") == (int(looks) > 50, unbalanced)
    ended = [number for number, _ in scrapes]
    assert ended == sorted(ended)
    assert max(open_now for _, open_now in scrapes) > 50

    kept = {(r["request"], r["attempt"]): r for r in records(tmp_path / "results")}
    assert len(kept) == samples(text, "attempts_total") == len(records(tmp_path / "results"))
    assert 0 == samples(text, "open_streams")
    played = [json.loads(line) for line in (tmp_path / "truth.jsonl").read_text().splitlines()]
    truth = {(line["request"], line["attempt"]): line for line in played}
    assert len(truth) == len(played)
    assert truth.keys() == kept.keys()
    aborted = {key for key, record in kept.items() if record["outcome"] == "aborted"}
    assert {} == {
        key: (line["fault"], line["outcome"], kept[key]["outcome"])
        for key, line in truth.items()
        if key not in aborted and line["outcome"] != kept[key]["outcome"]
    }
    assert len(aborted) < 200
    assert {line["fault"] for line in truth.values()} == {entry.partition("=")[0] for entry in MIX.split(",")}
    summary = json.loads((tmp_path / "results" / "latest" / "summary.json").read_text())
    assert Counter(record["outcome"] for record in kept.values()) == summary["outcomes"]
