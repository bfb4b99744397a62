"""Answers that are no stream: whole answers, the list of models, token counts, errors of the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.gateways import Profile
from harness.sim.dialogues import Dialogue, Usage
from harness.sim.heads import answer
from harness.sim.pace import Pace
from harness.sim.plan import RAW, Plan
from harness.sim.words import said

_SIMULATED_MODEL = "sim"


def whole_answer(dialogue: Dialogue, pace: Pace, finish: str, headers: Mapping[str, str]) -> Plan:
    """Tell the whole answer when its last token would have been told."""
    usage = Usage(dialogue.usage_in, pace.tokens)
    body = msgspec.json.encode(dialogue.whole(said(0, pace.tokens), finish, usage))
    yield pace.first_token_s + pace.tokens * pace.gap_s, RAW, answer(200, headers, body)


def models(profile: Profile, only: str, headers: Mapping[str, str]) -> bytes:
    """Return the list of models, in a form that the readers of both vendors take; *only*: that one alone."""
    names = sorted({e.model for e in profile.endpoints.values() if e.model} | {_SIMULATED_MODEL})
    entries = [_model(name, profile.name) for name in names]
    body: dict[str, Any] = {
        "object": "list",
        "data": entries,
        "has_more": False,
        "first_id": names[0],
        "last_id": names[-1],
    }
    return answer(200, headers, msgspec.json.encode(_model(only, profile.name) if only else body))


def _model(name: str, owner: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": owner,
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    }


def token_count(tokens: int, headers: Mapping[str, str]) -> bytes:
    """Return the answer to a request for a token count."""
    return answer(200, headers, msgspec.json.encode({"input_tokens": tokens}))
