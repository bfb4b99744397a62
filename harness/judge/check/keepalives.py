"""Statements about comments: how often, which text, where they stand, and who may trip over them."""

from __future__ import annotations

import json
from itertools import pairwise

from harness.judge.check.answers import WHOLE
from harness.judge.check.observation import Case, Observation
from harness.judge.check.raw import without_comments
from harness.judge.check.sdks import events_of
from harness.judge.check.verdict import Seen, Verdict, fine, wrong
from harness.stream.assemble import quantile

# "About every 10 s" and "every 15 s" both mean two seconds more or less; longer intervals get their share.
_ABOUT_S = 2.0
_ABOUT_SHARE = 2.0 / 15.0
# Machines are late by this much whatever the time scale is.
_SLACK_S = 0.03
# Fewer intervals say nothing about a rule.
_FEWEST = 3
# An intermediary that is this much more patient than the promised interval must not cut the stream.
_PATIENCE_S = 5.0


def interval(case: Case) -> Verdict:
    """Comments come at the promised interval: p95 about it, none beyond the profile's bound."""
    promised = case.profile.keepalive
    if promised is None:
        return Verdict("not testable here", "the profile promises no keepalive")
    about_s = max(_ABOUT_S * case.profile.time_scale, _ABOUT_SHARE * promised.interval_s)
    low_s, high_s = promised.interval_s - about_s - _SLACK_S, promised.interval_s + about_s + _SLACK_S
    most_s = promised.violation_s + _SLACK_S

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream or stream.record.headers_s is None:
            return None
        gaps = intervals(stream, promised.kind)
        longest_s, at_s = _longest_wait(stream, promised.kind)
        if longest_s > most_s:
            told = f"{longest_s:.3f} s without a comment, and one was due every {promised.interval_s:g} s"
            return wrong(f"{told} (bound {promised.violation_s:g} s)", at_s=at_s)
        if len(gaps) < _FEWEST:
            return None
        ordered = sorted(gaps)
        p5_s, p50_s, p95_s = (quantile(ordered, q) for q in (0.05, 0.5, 0.95))
        told = (f"{len(gaps)} intervals: p5 {p5_s:.3f} s, median {p50_s:.3f} s, p95 {p95_s:.3f} s, "
                f"max {ordered[-1]:.3f} s; promised {promised.interval_s:g} s")  # fmt: skip
        return Seen(low_s <= p5_s and p95_s <= high_s, told)

    missing = (f"fewer than {_FEWEST} intervals of {promised.interval_s:g} s in any stream: "
               "the model did not pause for long enough")  # fmt: skip
    return case.each(WHOLE, test, missing=missing)


def intervals(stream: Observation, kind: str) -> list[float]:
    """Return what a promise of *kind* speaks about: time since the last keepalive, or since the last byte."""
    moments = [at_s for at_s, _ in stream.comments]
    if kind == "periodic":
        return [b - a for a, b in pairwise([stream.record.headers_s or 0.0, *moments])]
    reads = [stream.record.headers_s or 0.0, *(at_s for at_s, _ in stream.chunks)]
    before = {now: then for then, now in pairwise(reads)}
    return [at_s - before[at_s] for at_s in moments if at_s in before]


def _longest_wait(stream: Observation, kind: str) -> tuple[float, float]:
    """Return the longest time in which a keepalive was due and did not come, and when it began.

    The end of the stream ends the last one: after the terminal nothing is due.
    """
    record = stream.record
    end_s = record.terminal_s if record.terminal_s is not None else record.end_s
    begin_s = record.headers_s or 0.0
    stops = [at for at, _ in (stream.comments if kind == "periodic" else stream.chunks)]
    moments = [begin_s, *(at for at in stops if at <= end_s), max(begin_s, end_s)]
    return max((b - a, a) for a, b in pairwise(moments))


def text(case: Case) -> Verdict:
    """Every comment is the promised line, followed by a blank line."""
    promised = case.profile.keepalive
    if promised is None:
        return Verdict("not testable here", "the profile promises no keepalive")
    expected = f": {promised.text}".encode()

    def test(stream: Observation) -> Seen | None:
        for block in stream.blocks:
            for line in block.comments:
                if line.text != expected:
                    return wrong(f"expected {expected.decode()!r}", line.text + line.end, line.at_s)
            if block.comments and not block.fields and (len(block.lines) > 1 or not block.whole):
                return wrong("no blank line after the comment", block.raw, block.at_s)
        count = len(stream.comments)
        return fine(f"{count} comments, each {expected.decode()!r}", expected) if count else None

    return case.each(WHOLE, test, missing="no comment came")


def between_events(case: Case) -> Verdict:
    """No comment stands among the lines of an event."""

    def test(stream: Observation) -> Seen | None:
        for block in stream.blocks:
            if block.comments and block.fields:
                return wrong("a comment among the lines of an event", block.raw, block.at_s)
        count = len(stream.comments)
        return fine(f"{count} comments, all between events") if count else None

    return case.each(WHOLE, test, missing="no comment came")


def survives_idle_proxies(case: Case) -> Verdict:
    """No silence in which an impatient intermediary would have closed the connection."""
    promised = case.profile.keepalive
    if promised is None:
        return Verdict("not testable here", "the profile promises no keepalive")
    patience_s = promised.interval_s + _PATIENCE_S * case.profile.time_scale

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream or not stream.chunks:
            return None
        silence_s, at_s = _longest_wait(stream, "idle")
        if silence_s > patience_s + _SLACK_S:
            return wrong(f"no byte for {silence_s:.3f} s: a proxy with an idle limit of {patience_s:g} s "
                         "closes the connection", at_s=at_s)  # fmt: skip
        pause_s = _longest_pause(stream)
        if pause_s < 2 * patience_s:
            return None
        return fine(f"a pause of {pause_s:.3f} s without output, but never {silence_s:.3f} s without a byte: "
                    f"a proxy with an idle limit of {patience_s:g} s lets it pass")  # fmt: skip

    return case.each(WHOLE, test, missing=f"no pause in the output was as long as {2 * patience_s:g} s")


def _longest_pause(stream: Observation) -> float:
    """Return the longest time without an event, from the headers to the end."""
    record = stream.record
    moments = [record.headers_s or 0.0, *(event.block.at_s for event in stream.events), record.end_s]
    return max(b - a for a, b in pairwise(moments))


def silence_is_normal(case: Case) -> Verdict:
    """A model that reasons without text is not cut off for it."""
    promised = case.profile.keepalive
    long_s = 1.5 * promised.interval_s if promised else 15.0 * case.profile.time_scale

    def test(stream: Observation) -> Seen | None:
        pause_s = _longest_pause(stream) if stream.is_stream else 0.0
        if pause_s < long_s:
            return None
        what = f"a pause of {pause_s:.3f} s, then {stream.record.outcome}"
        return Seen(stream.record.outcome == "completed", what)

    return case.each(WHOLE, test, missing=f"no pause was as long as {long_s:g} s")


def ignored(case: Case) -> Verdict:
    """Parsers see the same events with the comments and without them."""

    def test(stream: Observation) -> Seen | None:
        if not stream.ended or not stream.comments:
            return None
        bare = without_comments(stream.body)
        readers = []
        for reader, seen in events_of(stream.protocol, stream.body).items():
            without = events_of(stream.protocol, bare)[reader]
            if seen != without:
                return wrong(f"{reader} sees {_count(seen)} with the comments and {_count(without)} without",
                             stream.comments[0][1], stream.comments[0][0])  # fmt: skip
            readers.append(reader)
        return fine(f"{len(stream.comments)} comments; the same events without them for {', '.join(readers)}")

    return case.each(WHOLE, test, missing="no comment came")


def _count(seen: list[str] | str) -> str:
    return seen if isinstance(seen, str) else f"{len(seen)} events"


def skipped_by_hand(case: Case) -> Verdict:
    """Who reads line by line and skips lines that begin with a colon never parses anything but JSON."""

    def test(stream: Observation) -> Seen | None:
        if not stream.is_stream:
            return None
        parsed = 0
        for block in stream.blocks:
            for line in block.lines if block.whole else ():
                name, value = line.field
                if line.is_comment or name in (b"event", b"id", b"retry"):
                    continue
                if name != b"data":
                    return wrong("a line that is neither a field nor a comment", line.text, line.at_s)
                if not value.startswith(b"[DONE]") and not _is_json(value):
                    return wrong("a data line that is no JSON", line.text, line.at_s)
                parsed += 1
        skipped = len(stream.comments)
        return fine(f"{skipped} comment lines skipped, {parsed} data lines parsed") if skipped else None

    return case.each(WHOLE, test, missing="no comment came")


def _is_json(value: bytes) -> bool:
    try:
        json.loads(value.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return False
    return True
