"""Runs whose events the caller handles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._drive import CALL, DONE, EVENTS, REQUEST, WAIT, Event, Pending, Session
from ._errors import answer as error_answer
from ._errors import failure
from ._native import UNDEFINED, Failure, Run

if TYPE_CHECKING:
    from ._vm import RunResult


@dataclass(frozen=True)
class Call:
    """An atom of the host is to be run: `answer` or `fail` its id."""

    id: str
    op: str
    input: dict[str, Any]
    fuel_left: float
    pointer: str | None
    cancelled: tuple[Any, ...] = ()
    """Ids of earlier calls whose answers are no longer wanted."""


@dataclass(frozen=True)
class Request:
    """A method of the capabilities is to be called: `answer` or `fail` its id."""

    id: int
    method: str
    args: list[Any]
    cancelled: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Wait:
    """All calls are pending. `Steps.next` at `until_ms` of the run's time, or after an answer."""

    until_ms: float | None
    cancelled: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Pause:
    """About a millisecond of computing is done."""


@dataclass(frozen=True)
class Events:
    """What happened in the run since the last event; with the option `events` only."""

    events: list[dict[str, Any]]


@dataclass(frozen=True)
class Done:
    """The run is over."""

    result: RunResult


Step = Call | Request | Wait | Pause | Events | Done


class Steps:
    """A run step by step. `event` is the present one. After a `Call` or `Request`, `next` gives
    further ones that may run beside it, until a `Wait`."""

    def __init__(self, session: Session, event: Event) -> None:
        self._session = session
        self._run: Run | None = event[1] if event[0] != DONE else None
        self._raw = event
        self.event: Step = self._read(event)

    @property
    def done(self) -> RunResult | None:
        """The result, once the run is over."""
        return self.event.result if isinstance(self.event, Done) else None

    @property
    def elapsed_ms(self) -> float:
        """Time since the run began."""
        return self._live().elapsed()

    def next(self) -> Step:
        """Continues without an answer."""
        return self._step(lambda run: run.next())

    def answer(
        self,
        id: str | int,
        value: Any = None,
        *,
        charge: float | None = None,
        fuel_used: float | None = None,
        warnings: list[str] | None = None,
    ) -> Step:
        """Answers a call. `charge` is fuel that it took beyond its price."""
        extra = {"charge": charge, "fuelUsed": fuel_used, "warnings": warnings}
        given = {name: part for name, part in extra.items() if part is not None}
        return self._step(lambda run: run.answer(id, True, value, given or UNDEFINED))

    def fail(self, id: str | int, error: Exception | str) -> Step:
        """Answers a call with an error."""
        told = {"message": error} if isinstance(error, str) else error_answer(error)
        return self._step(lambda run: run.answer(id, False, told, UNDEFINED))

    def invoke(self) -> Step:
        """Calls the function of the VM for the present event, which must not be a coroutine
        function, and answers with its result."""
        if not isinstance(self.event, (Call, Request)):
            raise ValueError("the present event is no call")
        got = self._session.invoke(self._raw)
        if isinstance(got, Pending):
            raise TypeError("the function is a coroutine function; await it and use `answer`")
        return self._step(lambda run: run.answer(self._raw[2], *got))

    def abort(self) -> RunResult:
        """Ends the run with the error of an abort."""
        event = self._step(lambda run: run.abort())
        assert isinstance(event, Done)
        return event.result

    def snapshot(self) -> bytes:
        """The bytes from which `VM.restore` continues the run, while it waits or pauses."""
        try:
            return self._live().snapshot()
        except Failure as found:
            raise failure(found) from None

    def _live(self) -> Run:
        if self._run is None or isinstance(self.event, Done):
            raise ValueError("the run is over")
        return self._run

    def _step(self, act: Any) -> Step:
        try:
            self._raw = act(self._live())
        except Failure as found:
            raise failure(found) from None
        self.event = self._read(self._raw)
        return self.event

    def _read(self, event: Event) -> Step:
        from ._vm import finished

        tag, ids = event[0], event[-1]
        cancelled = () if ids is UNDEFINED or tag not in (CALL, REQUEST, WAIT) else tuple(ids)
        if tag == DONE:
            return Done(finished(event, self._session.cause))
        if tag == CALL:
            _, _, id, op, given, fuel, pointer, _ = event
            return Call(id, op, given, fuel, None if pointer is UNDEFINED else pointer, cancelled)
        if tag == REQUEST:
            return Request(event[2], event[3], event[4], cancelled)
        if tag == WAIT:
            return Wait(None if event[2] is UNDEFINED else event[2], cancelled)
        return Events(event[2]) if tag == EVENTS else Pause()
