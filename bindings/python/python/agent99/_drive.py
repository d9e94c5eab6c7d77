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

    __slots__ = ("id", "awaitable", "context")

    def __init__(self, id: Any, awaitable: Any, context: Context | None) -> None:
        self.id = id
        self.awaitable = awaitable
        self.context = context


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

    A single pending coroutine runs within this task, which costs no more than awaiting it. Tasks
    are made when several are pending.
    """
    run: Run = event[1]
    waiting: Pending | None = None
    tasks: dict[Any, asyncio.Task[Any]] = {}
    ready: deque[tuple[Any, Reply]] = deque()
    wake: asyncio.Future[None] | None = None

    def begin(pending: Pending) -> None:
        async def work() -> None:
            nonlocal wake
            try:
                reply = session.reply(pending.id, await pending.awaitable, pending.context)
            except Exception as error:
                reply = session.failed(error, pending.context)
            ready.append((pending.id, reply))
            if wake is not None and not wake.done():
                wake.set_result(None)

        tasks[pending.id] = asyncio.ensure_future(work())

    try:
        while (tag := event[0]) != DONE:
            for id in session.cancelled(event):
                if (task := tasks.pop(id, None)) is not None:
                    _drop(task)
                elif waiting is not None and waiting.id == id:
                    _close(waiting.awaitable)
                    waiting = None
            if tag == CALL or tag == REQUEST:
                got = first or session.invoke(event)
                first = None
                if type(got) is not Pending:
                    event = run.answer(event[2], *got)  # type: ignore[misc]
                    continue
                if waiting is not None:
                    begin(waiting)
                waiting = got
                event = run.next()
            elif tag == WAIT:
                if waiting is not None and not tasks and not ready:
                    alone, waiting = waiting, None
                    seconds = _seconds(run, event[2])
                    try:
                        value = await _Alone(alone.awaitable, seconds)
                    except Exception as error:
                        reply = session.failed(error, alone.context)
                    else:
                        if value is _EXPIRED:
                            event = run.next()
                            continue
                        reply = session.reply(alone.id, value, alone.context)
                    event = run.answer(alone.id, *reply)
                    continue
                if waiting is not None:
                    begin(waiting)
                    waiting = None
                if not ready:
                    wake = asyncio.get_running_loop().create_future()
                    try:
                        await asyncio.wait([wake], timeout=_seconds(run, event[2]))
                    finally:
                        wake = None
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
        if waiting is not None:
            _close(waiting.awaitable)
        for task in tasks.values():
            _drop(task)
    return event


def _drop(task: asyncio.Task[Any]) -> None:
    task.cancel()
    # What it ends with is not wanted; reading it keeps asyncio from reporting it.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def _close(awaitable: Any) -> None:
    if inspect.iscoroutine(awaitable):
        awaitable.close()


class _Expired:
    pass


_EXPIRED = _Expired()


class _Alone:
    """Awaits within the current task, for a limited time; gives `_EXPIRED` after it."""

    __slots__ = ("awaitable", "seconds")

    def __init__(self, awaitable: Any, seconds: float | None) -> None:
        self.awaitable = awaitable
        self.seconds = seconds

    def __await__(self) -> Generator[Any, Any, Any]:
        awaitable = self.awaitable
        steps = awaitable if isinstance(awaitable, Coroutine) else _started(awaitable)
        try:
            # A coroutine that need not wait costs no timer.
            future = steps.send(None)
        except StopIteration as stop:
            return stop.value
        if self.seconds is None:
            return (yield from _rest(steps, future))
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        expired = False

        def expire() -> None:
            nonlocal expired
            expired = True
            task.cancel()

        timer = loop.call_later(self.seconds, expire)
        try:
            return (yield from _rest(steps, future))
        except asyncio.CancelledError:
            # The host's own cancelling is not ours to swallow; 3.10 does not tell them apart.
            if expired and (sys.version_info < (3, 11) or task.uncancel() == 0):
                return _EXPIRED
            raise
        finally:
            timer.cancel()


def _started(awaitable: Any) -> Any:
    async def wait() -> Any:
        return await awaitable

    return wait()


def _rest(steps: Any, future: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine whose first step yielded a future."""
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
