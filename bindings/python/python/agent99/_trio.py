"""The loop of a run under trio; imported where trio runs."""

from __future__ import annotations

from collections import deque
from typing import Any

import trio

from ._drive import CALL, DONE, EVENTS, REQUEST, WAIT, Event, Pending, Reply, Session, _seconds
from ._native import Run


async def drive_trio(session: Session, event: Event) -> Event:
    """Runs to the end. Coroutines run in a nursery, which ends with the run."""
    run: Run = event[1]
    ready: deque[tuple[Any, Reply]] = deque()
    scopes: dict[Any, trio.CancelScope] = {}
    wake = trio.Event()
    raised: BaseException | None = None

    async def work(pending: Pending, scope: trio.CancelScope) -> None:
        with scope:
            try:
                reply = session.reply(pending.id, await pending.awaitable, pending.context)
            except Exception as error:
                reply = session.failed(error, pending.context)
            ready.append((pending.id, reply))
            wake.set()

    try:
        async with trio.open_nursery() as nursery:
            try:
                while (tag := event[0]) != DONE:
                    for id in session.cancelled(event):
                        if (scope := scopes.pop(id, None)) is not None:
                            scope.cancel()
                    if tag == CALL or tag == REQUEST:
                        got = session.invoke(event)
                        if type(got) is Pending:
                            scope = scopes[got.id] = trio.CancelScope()
                            nursery.start_soon(work, got, scope)
                            event = run.next()
                        else:
                            event = run.answer(event[2], *got)  # type: ignore[misc]
                    elif tag == WAIT:
                        if not ready:
                            wake = trio.Event()
                            seconds = _seconds(run, event[2])
                            with trio.move_on_after(float("inf") if seconds is None else seconds):
                                await wake.wait()
                        if ready:
                            id, reply = ready.popleft()
                            scopes.pop(id, None)
                            event = run.answer(id, *reply)
                        else:
                            event = run.next()
                    else:
                        if tag == EVENTS:
                            session.report(event)
                        else:
                            await trio.lowlevel.checkpoint()
                        event = run.next()
            except trio.Cancelled:
                raise
            except BaseException as error:
                # Raised below, for the nursery would make a group of it.
                raised = error
            finally:
                session.end()
                nursery.cancel_scope.cancel()
    finally:
        if event[0] != DONE:
            run.free()
    if raised is not None:
        raise raised
    return event
