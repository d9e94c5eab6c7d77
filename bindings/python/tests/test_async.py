"""Runs under asyncio and trio, coroutines in plain runs, cancelling, contextvars."""

import asyncio
import contextvars
import gc
import os
import signal
import sys
import threading
import time

import pytest

from agent99 import VM, Context, atom

LOOP = "export default function agent() { while (true) {} }"
USER = contextvars.ContextVar("USER", default="nobody")
THREE = {
    "op": "seq",
    "steps": [
        {"op": "callAll", "items": [1, 2, 3], "as": "n", "call": {"op": "wait", "n": "n"}, "result": "r"},
        {"op": "return", "schema": {"properties": {"r": {}}}},
    ],
}


def step(op, **inputs):
    call = {"op": op, **inputs, "result": "r"}
    return {"op": "seq", "steps": [call, {"op": "return", "schema": {"properties": {"r": {}}}}]}


async def sleep(seconds):
    if "trio" in sys.modules:
        import sniffio

        if sniffio.current_async_library() == "trio":
            import trio

            return await trio.sleep(seconds)
    await asyncio.sleep(seconds)


def run_asyncio(main):
    return asyncio.run(main())


def run_trio(main):
    return pytest.importorskip("trio").run(main)


@pytest.fixture(params=[run_asyncio, run_trio])
def loop(request):
    if request.param is run_trio:
        pytest.importorskip("trio")
    return request.param


def test_coroutines_run_beside_each_other(loop):
    at_once = most = 0

    @atom
    async def wait(n: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await sleep(0.05)
        at_once -= 1
        return n * 10

    async def main():
        began = time.monotonic()
        result = await VM([wait]).run_async(THREE)
        return result.unwrap(), time.monotonic() - began

    result, seconds = loop(main)
    assert result == {"r": [{"value": 10}, {"value": 20}, {"value": 30}]}
    assert most == 3 and seconds < 0.14


def test_other_tasks_go_on_while_the_engine_computes(loop):
    async def main():
        ticks = 0
        is_over = False

        async def tick():
            nonlocal ticks
            while not is_over:
                ticks += 1
                await sleep(0.001)

        async def run():
            nonlocal is_over
            result = await VM().run_async(LOOP, timeout_ms=150, fuel=1e9)
            is_over = True
            return result

        if loop is run_trio:
            import trio

            async with trio.open_nursery() as nursery:
                nursery.start_soon(tick)
                result = await run()
        else:
            task = asyncio.ensure_future(tick())
            result = await run()
            await task
        return result, ticks

    result, ticks = loop(main)
    assert result.error is not None and ticks > 10


def test_a_call_that_is_late_is_cancelled(loop):
    ended = []

    @atom(timeout_ms=40)
    async def never(ctx: Context) -> None:
        try:
            await sleep(60)
        except BaseException as error:
            ended.append((type(error).__name__, ctx.cancelled))
            raise

    @atom(timeout_ms=40)
    async def wait(n: int) -> int:
        await sleep(60 if n == 2 else 0)
        return n

    async def main():
        began = time.monotonic()
        vm = VM([never, wait])
        alone = await vm.run_async(step("never"))
        among = await vm.run_async(THREE)
        after = await vm.run_async(step("wait", n=1))
        return alone, among, after, time.monotonic() - began

    alone, among, after, seconds = loop(main)
    assert "timeout" in alone.error.code and ended[0][0] in ("CancelledError", "Cancelled")
    assert among.unwrap()["r"][0] == {"value": 1} and "error" in among.unwrap()["r"][1]
    assert after.unwrap() == {"r": 1} and seconds < 5


def test_errors_of_coroutines(loop):
    @atom
    async def wait(n: int) -> int:
        await sleep(0)
        if n == 2:
            raise ValueError("two")
        return n

    async def main():
        vm = VM([wait])
        return await vm.run_async(step("wait", n=2)), await vm.run_async(THREE)

    alone, among = loop(main)
    assert alone.error.message == "two" and isinstance(alone.error.__cause__, ValueError)
    assert [sorted(one) for one in among.unwrap()["r"]] == [["value"], ["error"], ["value"]]


def test_contextvars_reach_the_atoms(loop):
    @atom
    async def wait(n: int) -> str:
        await sleep(0)
        return USER.get()

    @atom
    def plain() -> str:
        return USER.get()

    async def main():
        USER.set("ada")
        vm = VM([wait, plain])
        return [
            (await vm.run_async(step("wait", n=1))).unwrap()["r"],
            (await vm.run_async(step("plain"))).unwrap()["r"],
            (await vm.run_async(THREE)).unwrap()["r"][2]["value"],
        ]

    assert loop(main) == ["ada", "ada", "ada"]


@pytest.mark.parametrize("kind", ["waiting", "several", "computing"])
def test_cancelling_the_task_aborts_the_run(loop, kind):
    ended = []

    @atom(timeout_ms=None)
    async def wait(n: int) -> None:
        try:
            await sleep(60)
        finally:
            ended.append(n)

    program = {"waiting": step("wait", n=1), "several": THREE, "computing": LOOP}[kind]

    async def main():
        run = VM([wait]).run_async(program, fuel=1e12, timeout_ms=60_000)
        began = time.monotonic()
        if loop is run_trio:
            import trio

            with trio.move_on_after(0.05) as scope:
                await run
            assert scope.cancelled_caught
        else:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(run, 0.05)
        await sleep(0)
        return time.monotonic() - began

    assert loop(main) < 1
    assert sorted(ended) == {"waiting": [1], "several": [1, 2, 3], "computing": []}[kind]


def test_timeouts_within_a_coroutine():
    if sys.version_info < (3, 11):
        pytest.skip("asyncio.timeout is of 3.11")

    @atom
    async def guarded() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            return "in time"
        return "late"

    assert asyncio.run(VM([guarded]).run_async(step("guarded"))).unwrap() == {"r": "in time"}


def test_coroutines_in_a_plain_run():
    @atom
    async def wait(n: int) -> str:
        await asyncio.sleep(0.001)
        return f"{USER.get()} {n}"

    vm = VM([wait])
    USER.set("bo")
    assert vm.run(step("wait", n=1)).unwrap() == {"r": "bo 1"}
    assert [one["value"] for one in vm.run(THREE).unwrap()["r"]] == ["bo 1", "bo 2", "bo 3"]

    async def main():
        with pytest.raises(RuntimeError, match="run_async"):
            vm.run(step("wait", n=1))

    asyncio.run(main())


def test_tasks_that_ignore_cancelling_do_not_hold_the_run():
    @atom(timeout_ms=30)
    async def wait(n: int) -> int:
        for _ in range(3):
            try:
                await asyncio.sleep(0.3)
            except asyncio.CancelledError:
                pass
        return n

    async def main():
        began = time.monotonic()
        result = await VM([wait]).run_async(THREE)
        return result, time.monotonic() - began

    result, seconds = asyncio.run(main())
    assert all("error" in one for one in result.unwrap()["r"]) and seconds < 0.25


def test_sleeping_in_a_plain_run():
    began = time.monotonic()
    assert VM().run({"op": "seq", "steps": [{"op": "sleep", "ms": 30}]}, timeout_ms=1000).error is None
    assert time.monotonic() - began >= 0.03


@pytest.mark.parametrize("kind", ["plain", "async", "atom", "coroutine"])
def test_an_interrupt_ends_the_run_within_50_ms(kind):
    @atom
    def nap() -> None:
        time.sleep(0.001)

    @atom(timeout_ms=None)
    async def wait(n: int) -> None:
        await asyncio.sleep(60)

    vm = VM([nap, wait])
    sent = []

    def interrupt():
        time.sleep(0.1)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    options = {"fuel": 1e12, "timeout_ms": 20_000}
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        if kind == "plain":
            vm.run(LOOP, **options)
        elif kind == "async":
            asyncio.run(vm.run_async(LOOP, **options))
        elif kind == "atom":
            vm.run("export default function agent() { while (true) { nap({}) } }", **options)
        else:
            vm.run(step("wait", n=1), **options)
    assert time.monotonic() - sent[0] < 0.05
    gc.collect()
    assert vm.run(step("nap")).error is None


def test_a_coroutine_outlasts_other_deadlines_of_the_run():
    """The run's time passes for a sleep beside a coroutine, which goes on."""

    @atom
    async def wait(n: int) -> int:
        for _ in range(6):
            await asyncio.sleep(0.01)
        return n

    program = {
        "op": "seq",
        "steps": [
            {"op": "callAll", "calls": [{"op": "wait", "n": 1}, {"op": "sleep", "ms": 5}, {"op": "wait", "n": 2}], "result": "r"},
            {"op": "return", "schema": {"properties": {"r": {}}}},
        ],
    }
    found = asyncio.run(VM([wait]).run_async(program)).unwrap()["r"]
    assert [one.get("value") for one in (found[0], found[2])] == [1, 2] and "error" not in found[1]


def test_awaitables_that_are_no_coroutines():
    class Later:
        def __await__(self):
            yield from asyncio.sleep(0.001).__await__()
            return 5

    def later() -> object:
        return Later()

    async def main():
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        loop.call_later(0.01, future.set_result, 7)
        granted = {"store": {"get": lambda key: Later() if key == "later" else future}}
        keys = {"op": "callAll", "items": ["later", "future"], "as": "k", "call": {"op": "storeGet", "key": "k"}}
        program = {"op": "seq", "steps": [{**keys, "result": "r"}, {"op": "return", "schema": {"properties": {"r": {}}}}]}
        return (await VM().run_async(program, capabilities=granted)).unwrap()["r"]

    assert asyncio.run(main()) == [{"value": 5}, {"value": 7}]


def test_cleaning_up_after_cancelling_may_await():
    cleaned = []

    @atom(timeout_ms=20)
    async def tidy() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    async def main():
        result = await VM([tidy]).run_async(step("tidy"))
        await asyncio.sleep(0.05)
        return result

    assert "timeout" in asyncio.run(main()).error.code and cleaned == [True]
