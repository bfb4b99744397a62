"""Requests that arrive when they are planned, whether or not the ones before were answered.

Locust's users do not ask here: each only *offers* its share of the rate, so that Locust's own numbers
(users, spawn rate, shapes, the web UI) steer requests per second. Who asks are visitors: instances of the
same user classes, taken from a pool when an arrival is due and put back when their task is done, each
with a connection of its own.
"""

from __future__ import annotations

from locust.exception import StopTest, StopUser
from locust.runners import locust_exception_handler
from locust.user.task import (
    LOCUST_STATE_RUNNING,
    LOCUST_STATE_STOPPING,
    LOCUST_STATE_WAITING,
    DefaultTaskSet,
)

import logging
import traceback
from collections.abc import Callable
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.pool import Group

from harness.load.arrivals import OpenLoad, Order, plan_of

if TYPE_CHECKING:
    from harness.load.users import StreamUser

logger = logging.getLogger("harness")

# An arrival of this user class: begun so many seconds late, or (None) dropped.
Counted = Callable[["StreamUser", float | None], None]


class OpenLoop:
    """The open load of one run in one process. *count* hears of every arrival exactly once.

    *finished* is called once when a replay has played its last line and every answer has ended.
    """

    def __init__(
        self, load: OpenLoad, seed: str, count: Counted, finished: Callable[[], None] | None = None
    ) -> None:
        self._load = load
        self._seed = seed
        self._random = Random(seed)
        self._plan = plan_of(load, self._random)
        self._count = count
        self._finished = finished
        self._offering: list[StreamUser] = []
        self._taken = 0
        self._unbegun: dict[Any, StreamUser] = {}
        self._free: dict[type[StreamUser], list[StreamUser]] = {}
        self._visits = Group()
        self._changed = Event()
        self._dispatcher: gevent.Greenlet[..., Any] | None = None

    @property
    def in_flight(self) -> int:
        """Requests that have begun and not ended."""
        return len(self._visits)

    def offer(self, user: StreamUser) -> None:
        """Add *user*'s share to the rate until this greenlet is killed; the last one to leave drains."""
        self._offering.append(user)
        self._rate_changed()
        if self._dispatcher is None:
            self._dispatcher = gevent.spawn(self._dispatch)
        try:
            Event().wait()
        finally:
            self._begin_due()
            self._offering.remove(user)
            self._rate_changed()
            if not self._offering:
                self._drain(user.environment.stop_timeout or 0.0)

    def _rate_changed(self) -> None:
        self._begin_due()
        self._plan.set_rate(len(self._offering) * self._load.rate_per_user, monotonic())
        self._changed.set()

    def _dispatch(self) -> None:
        try:
            while self._offering:
                self._changed.clear()
                self._begin_due()
                if self._plan.finished:
                    break
                due = self._plan.due()
                self._changed.wait(None if due is None else max(0.0, due - monotonic()))
        finally:
            self._dispatcher = None
        if self._plan.finished and self._offering and self._finished is not None:
            self._visits.join()
            finished, self._finished = self._finished, None
            finished()

    def _begin_due(self) -> None:
        """Begin or drop every request that is due by now."""
        while self._offering and (due := self._plan.due()) is not None and due <= monotonic():
            planned, order = self._plan.take()
            self._taken += 1
            user = self._next_user(order)
            if len(self._visits) >= self._load.max_in_flight:
                self._count(user, None)
                continue
            greenlet: gevent.Greenlet[..., object] = gevent.Greenlet(
                self._visit, user, planned, order, self._taken
            )
            self._unbegun[greenlet] = user
            self._visits.start(greenlet)

    def _next_user(self, order: Order | None) -> StreamUser:
        """Return the user whose turn it is: at random, so that the arrivals of each class are Poisson too."""
        able = self._offering
        if order is not None and order.protocol is not None:
            able = [user for user in able if user.protocol == order.protocol] or able
        if self._load.kind == "poisson":
            return self._random.choice(able)
        return able[self._taken % len(able)]

    def _visit(self, user: StreamUser, planned: float, order: Order | None, number: int) -> None:
        del self._unbegun[gevent.getcurrent()]
        free = self._free.setdefault(type(user), [])
        visitor = free.pop() if free else None
        comes_back = False
        try:
            if visitor is None:
                visitor = type(user)(user.environment)
                visitor._taskset_instance = DefaultTaskSet(visitor)
                visitor.on_start()
            # Which visitor is free is chance; what the arrival asks must not be.
            visitor.random.seed(f"{self._seed}-{number}")
            self._perform(visitor, planned, order)
            comes_back = True
        except StopUser:  # this visitor wants no more; the next arrival gets a new one
            if (
                visitor is not None and visitor.planned is not None
            ):  # the run is ending, or its budget is spent
                visitor.planned = None
                self._count(user, None)
        except StopTest as wish:
            raised = gevent.Greenlet(_raise, wish)
            raised.link_exception(locust_exception_handler(user.environment))
            raised.start()
        except Exception as error:  # noqa: BLE001 - what Locust does with a task that fails
            logger.error("%s\n%s", error, traceback.format_exc())
            user.environment.events.user_error.fire(
                user_instance=user, exception=error, tb=error.__traceback__
            )
        finally:
            if visitor is None or visitor.planned is not None:  # its task never asked anything
                self._count(user, max(0.0, monotonic() - planned))
            if visitor is not None:
                visitor.planned = None
                if comes_back:
                    free.append(visitor)
                else:
                    visitor.on_stop()

    def _perform(self, visitor: StreamUser, planned: float, order: Order | None) -> None:
        """Let *visitor* do one task; a greenlet of its own carries its state, as Locust's users do."""
        visitor.planned, visitor.order = planned, order
        visitor._state = LOCUST_STATE_RUNNING
        greenlet = gevent.getcurrent()
        _visitors[greenlet] = visitor
        try:
            tasks = visitor._taskset_instance
            assert tasks is not None
            tasks.execute_task(tasks.get_next_task())
        finally:
            del _visitors[greenlet]

    def _drain(self, patience_s: float) -> None:
        """Let what has begun end for *patience_s*, then cut the rest; who waits for a retry goes at once."""
        try:
            for greenlet in list(self._visits):
                visitor = _visitors.get(greenlet)
                if visitor is not None and visitor._state == LOCUST_STATE_WAITING:
                    self._visits.killone(greenlet)
                elif visitor is not None:
                    visitor._state = LOCUST_STATE_STOPPING
            self._visits.join(timeout=patience_s)
        finally:
            self._visits.kill()
            while self._unbegun:  # killed before their greenlet ran at all
                self._count(self._unbegun.popitem()[1], None)
            for visitors in self._free.values():
                while visitors:
                    visitors.pop().on_stop()


_visitors: dict[Any, StreamUser] = {}


def _raise(error: Exception) -> None:
    raise error
