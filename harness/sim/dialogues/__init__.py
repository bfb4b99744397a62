"""The three protocols as bytes: each renders the events of one answer, in every dialect."""

from harness.sim.dialogues.base import Accent, Dialogue, ErrorFacts, Usage
from harness.sim.dialogues.chat import Chat
from harness.sim.dialogues.messages import Messages
from harness.sim.dialogues.responses import Responses

DIALOGUES: dict[str, type[Dialogue]] = {"chat": Chat, "responses": Responses, "messages": Messages}

__all__ = ["DIALOGUES", "Accent", "Chat", "Dialogue", "ErrorFacts", "Messages", "Responses", "Usage"]
