"""The loop of a run: calls the host's functions and answers the engine."""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any

from ._atoms import Atom, Context
from ._errors import answer as error_answer
from ._native import UNDEFINED, Run

DONE, CALL, REQUEST, WAIT, PAUSE, EVENTS = range(6)

Event = tuple[Any, ...]
Reply = tuple[bool, Any, Any]


class Pending:
    """A call whose function waits."""

    __slots__ = ("id", "awaitable", "context", "steps", "future")

    def __init__(self, id: Any, awaitable: Any, context: Context | None) -> None:
        self.id = id
        self.awaitable = awaitable
        self.context = context
        # The coroutine and the future it waits for, if it runs within the task of the run.
        self.steps: Any = None
        self.future: Any = None


class Session:
    """What the functions of the host need during a run."""

    __slots__ = ("atoms", "methods", "args", "options", "default", "cause", "contexts")

    def __init__(
        self,
        atoms: Mapping[str, Atom[Any, Any]],
        methods: Mapping[str, Callable[..., Any]],
        args: Any,
        options: Any,
        default: Any,
    ) -> None:
        self.atoms = atoms
        self.methods = methods
        self.args = args
        self.options = options
        self.default = default
        self.cause: Exception | None = None
        """The last exception of a function of the host."""
        self.contexts: dict[Any, Context] = {}

    def invoke(self, event: Event) -> Reply | Pending:
        """Calls the function of an event."""
        context = None
        try:
            if event[0] == CALL:
                _, _, id, op, inputs, fuel, pointer, _ = event
                one = self.atoms[op]
                if one.takes_context:
                    place = None if pointer is UNDEFINED else pointer
                    context = self.context(op, id, place, fuel)
                named = {name: value for name, value in inputs.items() if value is not UNDEFINED}
                result = one.call(named, context)
                waits = one.is_async or inspect.isawaitable(result)
            else:
                _, _, id, name, args, _ = event
                while args and args[-1] is UNDEFINED:
                    args.pop()
                result = self.methods[name](*args)
                waits = inspect.isawaitable(result)
        except Exception as error:
            return self.failed(error, context)
        if waits:
            return Pending(id, result, context)
        return self.reply(id, result, context)

    def context(self, op: str, id: Any, pointer: str | None, fuel: float) -> Context:
        options = self.options
        granted = options.get("capabilities", self.default)
        made = Context(op, id, pointer, fuel, self.args, options.get("context"), granted)
        self.contexts[id] = made
        return made

    def reply(self, id: Any, result: Any, context: Context | None) -> Reply:
        extra = UNDEFINED if context is None else self.ended(context)
        if hasattr(result, "unwrap") and hasattr(result, "fuel_used"):
            # A run within the run. The fuel of one that `agent.run` made is the caller's.
            if result.error is not None:
                return self.failed(result.error, None)
            if isinstance(id, str):
                return True, result.result, extra
            return True, {"result": result.result, "fuelUsed": result.fuel_used}, extra
        return True, result, extra

    def failed(self, error: Exception, context: Context | None) -> Reply:
        self.cause = error
        return False, error_answer(error), UNDEFINED if context is None else self.ended(context)

    def ended(self, context: Context) -> Any:
        self.contexts.pop(context.call_id, None)
        return context._extra()

    def cancelled(self, event: Event) -> list[Any]:
        """Ids whose answers are no longer wanted."""
        ids: Any = event[-1] if event[0] in (CALL, REQUEST, WAIT) else UNDEFINED
        if ids is UNDEFINED:
            return []
        for id in ids:
            context = self.contexts.pop(id, None)
            if context is not None:
                context.cancelled = True
        return list(ids)

    def report(self, event: Event) -> None:
        """Passes what happened in the run to the function for it."""
        report = self.options.get("on_event")
        for happened in event[2]:
            report(happened)

    def end(self) -> None:
        """Tells the functions that still run that their answers are not wanted."""
        for context in self.contexts.values():
            context.cancelled = True


def drive_sync(session: Session, event: Event) -> Event:
    """Runs to the end in place; in an event loop from the first coroutine on."""
    run: Run = event[1]
    try:
        while (tag := event[0]) != DONE:
            if session.contexts:
                session.cancelled(event)
            if tag == CALL or tag == REQUEST:
                got = session.invoke(event)
                if type(got) is Pending:
                    return _in_new_loop(session, event, got)
                event = run.answer(event[2], *got)  # type: ignore[misc]
            elif tag == WAIT:
                time.sleep(_seconds(run, event[2]) or 0.0)
                event = run.next()
            else:
                if tag == EVENTS:
                    session.report(event)
                event = run.next()
    except BaseException:
        session.end()
        run.free()
        raise
    return event


def _in_new_loop(session: Session, event: Event, first: Pending) -> Event:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(drive_asyncio(session, event, first))
    if inspect.iscoroutine(first.awaitable):
        first.awaitable.close()
    raise RuntimeError(
        "an atom or a capability is a coroutine function and an event loop runs in this thread: "
        "use `await vm.run_async(...)`"
    )


def _seconds(run: Run, until: Any) -> float | None:
    """Seconds until a run's time; None for no limit."""
    if until is UNDEFINED:
        return None
    return max(0.0, (float(until) - run.elapsed()) / 1000.0)


async def drive_async(session: Session, event: Event) -> Event:
    """Runs to the end under the event loop that runs."""
    if _is_trio():
        from ._trio import drive_trio

        return await drive_trio(session, event)
    return await drive_asyncio(session, event, None)


def _is_trio() -> bool:
    if "trio" not in sys.modules:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    sniffio = sys.modules.get("sniffio")
    if sniffio is None:
        return False
    try:
        return bool(sniffio.current_async_library() == "trio")
    except sniffio.AsyncLibraryNotFoundError:
        return False


async def drive_asyncio(session: Session, event: Event, first: Pending | None) -> Event:
    """Runs to the end under asyncio.

    One coroutine at a time runs within this task, as if awaited: one that need not wait costs no
    task. Those that come while it waits get tasks.
    """
    run: Run = event[1]
    loop = asyncio.get_running_loop()
    here: Pending | None = None
    tasks: dict[Any, asyncio.Task[Any]] = {}
    ready: deque[tuple[Any, Reply]] = deque()
    wake: asyncio.Future[None] | None = None

    def wake_up(_: Any = None) -> None:
        if wake is not None and not wake.done():
            wake.set_result(None)

    def begin(pending: Pending) -> None:
        async def work() -> None:
            try:
                reply = session.reply(pending.id, await pending.awaitable, pending.context)
            except Exception as error:
                reply = session.failed(error, pending.context)
            ready.append((pending.id, reply))
            wake_up()

        tasks[pending.id] = asyncio.ensure_future(work())

    def step(pending: Pending, go_on: Callable[[Any], Any], given: Any) -> Reply | None:
        """Runs the coroutine of this task until it waits (None) or ends."""
        try:
            pending.future = go_on(given)
        except StopIteration as stop:
            return session.reply(pending.id, stop.value, pending.context)
        except Exception as error:
            return session.failed(error, pending.context)
        return None

    try:
        while (tag := event[0]) != DONE:
            for id in session.cancelled(event):
                if (task := tasks.pop(id, None)) is not None:
                    _drop(task)
                elif here is not None and here.id == id:
                    _stop(here)
                    here = None
            if tag == CALL or tag == REQUEST:
                got = first or session.invoke(event)
                first = None
                if type(got) is not Pending:
                    event = run.answer(event[2], *got)  # type: ignore[misc]
                    continue
                if here is not None:
                    begin(got)
                    event = run.next()
                    continue
                got.steps = got.awaitable if isinstance(got.awaitable, Coroutine) else _started(got.awaitable)
                reply = step(got, got.steps.send, None)
                if reply is None:
                    here = got
                    event = run.next()
                else:
                    event = run.answer(got.id, *reply)
            elif tag == WAIT:
                if not ready:
                    thrown = None
                    try:
                        if here is not None and here.future is None:
                            # A bare yield, as of `asyncio.sleep(0)`.
                            await _bare()
                        else:
                            wake = loop.create_future()
                            if here is not None:
                                future: Any = here.future
                                future._asyncio_future_blocking = False
                                future.add_done_callback(wake_up)
                            seconds = _seconds(run, event[2])
                            timer = None if seconds is None else loop.call_later(seconds, wake_up)
                            try:
                                await wake
                            finally:
                                wake = None
                                if timer is not None:
                                    timer.cancel()
                    except asyncio.CancelledError as error:
                        if here is None:
                            raise
                        # Cancelling this task cancels what it awaits; a timeout within the
                        # coroutine may be its origin, and end there.
                        if here.future is not None:
                            here.future.cancel()
                        thrown = error
                    if here is not None and (thrown or here.future is None or here.future.done()):
                        reply = step(here, here.steps.throw if thrown else here.steps.send, thrown)
                        if reply is not None:
                            ready.append((here.id, reply))
                            here = None
                        elif not ready:
                            # It waits again, at the same time of the run.
                            continue
                if ready:
                    id, reply = ready.popleft()
                    tasks.pop(id, None)
                    event = run.answer(id, *reply)
                else:
                    event = run.next()
            else:
                if tag == EVENTS:
                    session.report(event)
                else:
                    await asyncio.sleep(0)
                event = run.next()
    except BaseException:
        run.free()
        raise
    finally:
        session.end()
        if here is not None:
            _stop(here)
        for task in tasks.values():
            _drop(task)
    return event


def _drop(task: asyncio.Future[Any]) -> None:
    task.cancel()
    # What it ends with is not wanted; reading it keeps asyncio from reporting it.
    task.add_done_callback(_ended)


def _stop(pending: Pending) -> None:
    """Cancels the coroutine of this task. What it still awaits then goes on in a task."""
    if pending.future is not None:
        pending.future.cancel()
    try:
        future = pending.steps.throw(asyncio.CancelledError())
    except (StopIteration, asyncio.CancelledError, Exception):
        return
    task = asyncio.ensure_future(_rest(pending.steps, future))
    # asyncio itself keeps no reference.
    _ending.add(task)
    task.add_done_callback(_ended)


_ending: set[asyncio.Future[Any]] = set()


def _ended(task: asyncio.Future[Any]) -> None:
    _ending.discard(task)
    if not task.cancelled():
        task.exception()


@types.coroutine
def _bare() -> Generator[None, None, None]:
    yield


@types.coroutine
def _rest(steps: Any, future: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that yielded a future."""
    while True:
        try:
            value = yield future
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:
            step, given = steps.throw, error
        else:
            step, given = steps.send, value
        try:
            future = step(given)
        except StopIteration as stop:
            return stop.value


async def _started(awaitable: Any) -> Any:
    return await awaitable
