"""Every statement that can be checked: name, what it says, what has to be asked, who judges it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from harness.gateways import Profile
from harness.judge.check import (
    again,
    answers,
    breaks,
    chat,
    elsewhere,
    keepalives,
    messages,
    responses,
    sdks,
    speed,
    stuck,
)
from harness.judge.check.observation import Case
from harness.judge.check.verdict import Finding, Verdict

_WHOLE = answers.WHOLE
_BREAK = ("break",)
_SDK = ("healthy", "thinking")
_USAGE = ("healthy", "no-usage")
_STUCK = ("stuck-before", "stuck-within")


class UnknownPromiseError(ValueError):
    """Nobody knows this name or id; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Check:
    """A statement that gateways make, and how it is judged. `asks`: the situations that can show it."""

    name: str
    statement: str
    asks: tuple[str, ...]
    judge: Callable[[Case], Verdict]


@dataclass(frozen=True, slots=True)
class Promise:
    """A check that one gateway's profile asks for, under the id of its documents (or the check's name)."""

    id: str
    check: Check


def _documentation(name: str, statement: str, why: str) -> Check:
    return Check(name, statement, (), partial(elsewhere.documentation, why))


CHECKS: dict[str, Check] = {
    c.name: c
    for c in (
        *(Check(f"{p}-is-sse", f"a streaming {title} request is answered 200 with text/event-stream",
                ("healthy",), partial(answers.is_sse, p))
          for p, title in (("chat", "chat completion"), ("responses", "response"), ("messages", "message"))),
        Check("official-format", "events follow the protocol's official definition", _WHOLE,
              answers.official_format),
        Check("sdks-work", "the official SDKs' iterators and helpers read the stream", _SDK,
              sdks.sdks_work),
        Check("nothing-inserted", "nothing is inserted but comments", _WHOLE, answers.nothing_inserted),
        Check("content-unmodified", "the content of events is not modified", ("healthy",),
              answers.content_unmodified),
        Check("arrives-in-pieces", "the answer arrives in pieces while it is generated", ("healthy",),
              answers.arrives_in_pieces),
        Check("endpoint-answers", "POST to the documented path is answered 200", ("healthy",),
              answers.endpoint_answers),
        Check("bearer-key-needed", "a bearer key is needed: 200 with one, 401 without", ("healthy", "no-key"),
              answers.bearer_key_needed),
        Check("documented-body", "the documented request body is accepted", ("healthy",),
              answers.documented_body),
        Check("keepalive-interval", "a comment comes at the promised interval", _WHOLE, keepalives.interval),
        Check("keepalive-text", "the comment is the promised line, then a blank line", _WHOLE,
              keepalives.text),
        Check("keepalive-between-events", "comments stand between two events", _WHOLE,
              keepalives.between_events),
        Check("survives-idle-proxies", "comments keep intermediaries from closing an idle connection", _WHOLE,
              keepalives.survives_idle_proxies),
        Check("comments-ignored", "SDKs and parsers ignore comments", _WHOLE, keepalives.ignored),
        Check("comments-skipped-by-hand", "skipping lines that begin with a colon is enough for line readers",
              _WHOLE, keepalives.skipped_by_hand),
        Check("silence-is-normal", "a model that reasons without text is not cut off", _WHOLE,
              keepalives.silence_is_normal),
        Check("stuck-is-noticed", "a model without output counts as stuck after the promised time", _STUCK,
              stuck.noticed),
        Check("stuck-is-retried", "then the gateway retries, and the client sees one good stream",
              ("stuck-once", "healthy", "resume"), stuck.retried),
        Check("stuck-is-an-error", "or it returns an error, never silence without end", _STUCK,
              stuck.is_an_error),
        Check("chat-one-data-line", "each Chat event is one data: line with a chunk", _WHOLE,
              chat.one_data_line),
        Check("chat-text", "the text is in choices[0].delta.content", _WHOLE, chat.text),
        Check("chat-done-last", "the stream ends with data: [DONE]", _WHOLE, chat.done_last),
        Check("chat-order", "text, finish_reason with an empty delta, counts with no choices, [DONE]", _WHOLE,
              chat.order),
        Check("chat-constant-id", "id and model stay the same over the stream", _WHOLE, chat.constant_id),
        Check("chat-ids", "ids begin with chatcmpl-, the model is echoed, both stay the same", _WHOLE,
              chat.ids),
        Check("chat-role-first", "the first chunk has role assistant and empty content", _WHOLE,
              chat.role_first),
        Check("chat-finish-before-usage", "the last chunk but the counts carries finish_reason", _WHOLE,
              chat.finish_before_usage),
        Check("usage-when-asked", "counts come if they were asked for, and only then", _USAGE,
              chat.usage_when_asked),
        Check("usage-adds-up", "the counts are complete and add up", _WHOLE, chat.usage_adds_up),
        Check("done-closes", "[DONE] closes the answer", _WHOLE, chat.done_closes),
        Check("reasoning-not-sent", "reasoning is counted and not sent", _WHOLE, chat.reasoning_not_sent),
        Check("responses-two-lines", "each Responses event has an event: and a data: line", _WHOLE,
              responses.two_lines),
        Check("responses-type-is-name", "data.type is the event's name", _WHOLE, responses.type_is_name),
        Check("responses-created", "response.created has an id and status in_progress", _WHOLE,
              responses.created),
        Check("responses-delta", "response.output_text.delta says where it belongs", _WHOLE, responses.delta),
        Check("responses-completed", "response.completed has the same id, its status and counts that add up",
              _WHOLE, responses.completed),
        Check("responses-terminal-last", "the Responses stream ends with its terminal event", _WHOLE,
              responses.terminal_last),
        Check("messages-order", "message_start, blocks, message_delta, message_stop, in this order", _WHOLE,
              messages.order),
        Check("messages-delta", "message_delta carries the stop reason and the output count", _WHOLE,
              messages.delta),
        Check("messages-shapes", "Messages events have the documented fields", _WHOLE, messages.shapes),
        Check("status-stays-200", "once output has begun, the status is 200", _BREAK,
              breaks.status_stays_200),
        Check("errors-are-events", "later errors come as one event", _BREAK, breaks.errors_are_events),
        Check("chat-error-shape", "a Chat error is data: {\"error\": …} without an event line", _BREAK,
              breaks.chat_shape),
        Check("responses-error-shape", "a Responses error is event: response.failed", _BREAK,
              breaks.responses_shape),
        Check("messages-error-shape", "a Messages error is event: error", _BREAK, breaks.messages_shape),
        Check("messages-cut-is-reported", "a Messages stream that is cut says so in an error event", _BREAK,
              partial(breaks.cut_is_reported, "messages")),
        Check("messages-error-is-last", "and then the Messages stream ends", _BREAK,
              partial(breaks.error_is_last, "messages")),
        Check("messages-error-text", "type and message of a Messages error are the documented ones", _BREAK,
              partial(breaks.error_text, "messages")),
        Check("cut-is-reported", "a Chat stream that is cut says so in an error event", _BREAK,
              partial(breaks.cut_is_reported, "chat")),
        Check("chat-error-text", "type, code and message of a Chat error are the documented ones", _BREAK,
              partial(breaks.error_text, "chat")),
        Check("chat-error-is-last", "a Chat error is the last event", _BREAK,
              partial(breaks.error_is_last, "chat")),
        Check("documented-errors", "errors inside a stream are those that the profile documents", _BREAK,
              breaks.documented_errors),
        Check("errors-inside-the-loop", "the loop that reads the stream meets its errors", _BREAK,
              breaks.errors_inside_the_loop),
        Check("not-resumable", "fragments cannot be resumed", ("healthy", "resume"), again.not_resumable),
        Check("resend-whole", "the whole request has to be sent again", ("healthy",), again.resend_whole),
        Check("first-word-in-a-second", "the first word comes in less than a second",
              ("fast", "no-reasoning", "healthy"), speed.first_word),
        Check("fast-model-at-once", "the fast model begins at once", ("fast",), speed.fast_model),
        Check("without-reasoning-at-once", "without reasoning it begins at once", ("no-reasoning",),
              speed.without_reasoning),
        Check("python-example", "the documented Python loop prints the text", ("healthy", "thinking"),
              sdks.python_example),
        Check("javascript-example", "the documented JavaScript loop prints the text", ("healthy", "thinking"),
              sdks.javascript_example),
        Check("partial-is-billed", "what was generated before an interruption is billed", _BREAK,
              elsewhere.partial_is_billed),
        Check("leaving-stops-generation", "closing the connection stops the generation", ("leave",),
              elsewhere.leaving),
        Check("only-generated-is-billed", "only what was generated until then is counted", ("leave",),
              elsewhere.leaving),
        _documentation("timeouts-page", "details are on a page about concurrency, timeouts and billing",
                       "that page is not public"),
        _documentation("retries-page", "the retry strategy is on a page about error codes",
                       "that page is not public"),
        _documentation("like-its-chat", "pieces as in its own chat", "the chat is not part of the interface"),
        _documentation("recommended-use", "recommended for conversations", "a recommendation, not a promise"),
    )
}  # fmt: skip


def promises_of(profile: Profile, only: Iterable[str] = ()) -> list[Promise]:
    """Return what the gateway promises, or those called *only*: ids or names.

    A profile without a table of promises promises what the rest of the file says.
    Raises `UnknownPromiseError`.
    """
    table = profile.promises or tuple((name, name) for name in _implied(profile))
    for name, _ in table:
        if name not in CHECKS:
            raise UnknownPromiseError(
                f"[promises] in {profile.name}: unknown check {name!r}{_near(name, CHECKS)}"
            )
    promises = [Promise(promise_id, CHECKS[name]) for name, promise_id in table]
    chosen = list(only)
    known = {word for p in promises for word in (p.id, p.check.name)}
    for word in chosen:
        if word not in known:
            raise UnknownPromiseError(
                f"--only: {profile.name} has no promise {word!r}{_near(word, known)} (harness check --list)"
            )
    return [p for p in promises if not chosen or p.id in chosen or p.check.name in chosen]


def judge(promises: Iterable[Promise], case: Case) -> list[Finding]:
    """Return a finding for each of *promises*."""
    return [Finding(p.id, p.check.name, p.check.statement, p.check.judge(case)) for p in promises]


def _implied(profile: Profile) -> list[str]:
    names = [f"{protocol}-is-sse" for protocol in profile.endpoints] + ["official-format"]
    if "chat" in profile.endpoints and profile.terminator == "required":
        names.append("chat-done-last")
    if "responses" in profile.endpoints:
        names.append("responses-terminal-last")
    if "messages" in profile.endpoints:
        names.append("messages-order")
    if profile.keepalive is not None:
        names += ["keepalive-interval", "keepalive-text", "keepalive-between-events"]
    if profile.errors:
        names.append("documented-errors")
    return names


def _near(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean {near[0]}?" if near else ""
