"""The loop of a run under asyncio; imported where asyncio runs, for it takes long to import."""

from __future__ import annotations

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from ._drive import CALL, DONE, EVENTS, REQUEST, WAIT, Event, Pending, Reply, Session, _seconds
from ._native import Run


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
                got.steps = (
                    got.awaitable
                    if isinstance(got.awaitable, Coroutine)
                    else _started(got.awaitable)
                )
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
