"""The load test of ``harness run``: Locust users for the three protocols, chosen by ``--protocols``."""

from harness.load import ChatUser, MessagesUser, ResponsesUser

__all__ = ["ChatUser", "MessagesUser", "ResponsesUser"]
