"""``locust`` in this folder runs the harness's own load test; see the README for its options."""

from harness.locustfile import ChatUser, MessagesUser, ResponsesUser

__all__ = ["ChatUser", "MessagesUser", "ResponsesUser"]
