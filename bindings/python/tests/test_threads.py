"""Threads, re-entrance, and memory over many runs."""

import asyncio
import contextlib
import gc
import resource
import sys
import threading
import time

import pytest

from agent99 import VM, Context, atom

COUNT = "export default function agent({ n }) { let s = 0\n for (let i = 0; i < n; i++) { s += i }\n return { s } }"


@atom
def add(a: int, b: int) -> int:
    return a + b


def test_sixteen_threads_share_a_vm():
    vm = VM([add])
    program = vm.compile(
        "export default function agent({ n }) { return { s: add({ a: n, b: 1 }) } }"
    )
    wrong = []

    def work(n):
        for i in range(200):
            found = vm.run(program, {"n": n * 1000 + i}).unwrap()
            if found != {"s": n * 1000 + i + 1}:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_interpreter_is_free_while_the_engine_computes():
    vm = VM()
    is_over = False
    ticks = 0

    def tick():
        nonlocal ticks
        while not is_over:
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    result = vm.run(COUNT, {"n": 10**9}, fuel=1e12, timeout_ms=200)
    is_over = True
    thread.join()
    assert result.error is not None and ticks > 20


def test_an_atom_runs_programs_itself():
    vm = VM()

    @atom
    def nested(n: int) -> int:
        if n == 0:
            return 0
        program = {
            "op": "seq",
            "steps": [{"op": "nested", "n": n - 1, "result": "r"}, {"op": "return", "value": "r"}],
        }
        return 1 + outer.run({**program, "a99": 4}).unwrap()

    outer = VM([nested])
    assert nested(20) == 20
    del vm


@pytest.mark.parametrize("takes_context", [False, True])
def test_endless_nesting_is_an_error(takes_context):
    deepest = 0

    def nested() -> None:
        nonlocal deepest
        deepest += 1
        vm.run(program).unwrap()

    def within(ctx: Context) -> None:
        nested()

    vm = VM({"nested": within if takes_context else nested})
    program = vm.compile({"op": "seq", "steps": [{"op": "nested"}]})
    found = []

    def work():
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit if takes_context else 100_000)
        try:
            found.append(vm.run(program).error)
        finally:
            sys.setrecursionlimit(limit)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "recursion" in found[0].message or "runs within runs" in found[0].message
    # Code that is not optimised takes more of the stack.
    assert 20 < deepest <= 257


def test_a_run_is_stepped_by_one_thread_at_a_time():
    run = VM().start(COUNT, {"n": 10**9}, fuel=1e12)
    raised = []

    def work():
        for _ in range(100):
            try:
                run.next()
            except RuntimeError as error:
                raised.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(raised) <= {"another thread steps this run"}


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Kept:
    contexts: list = []


@atom
def good(n: int) -> object:
    return {"n": n, "text": "x" * 50}


@atom
def raises(n: int) -> None:
    raise ValueError(f"no {n}")


@atom
def keeps(ctx: Context) -> None:
    Kept.contexts = [ctx]


@atom
def refused() -> object:
    return object()


@atom(timeout_ms=1)
async def late() -> None:
    await asyncio.sleep(10)


@atom
async def quick() -> int:
    await asyncio.sleep(0)
    return 1


def test_memory_stays_flat():
    vm = VM([good, raises, keeps, refused, late, quick])
    steps = [
        vm.compile({"op": "seq", "steps": [{"op": op, **more}]})
        for op, more in (
            ("good", {"n": 1}),
            ("raises", {"n": 1}),
            ("keeps", {}),
            ("refused", {}),
        )
    ]
    waits = vm.compile({"op": "seq", "steps": [{"op": "quick"}]})
    lates = vm.compile({"op": "seq", "steps": [{"op": "late"}]})

    async def more(count):
        for at in range(count):
            await vm.run_async(waits)
            if at % 20 == 0:
                await vm.run_async(lates)
                task = asyncio.ensure_future(vm.run_async(lates))
                await asyncio.sleep(0)
                task.cancel()
                # On a busy machine its time is up before.
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def round_of(count):
        for at in range(count):
            for program in steps:
                vm.run(program, {"a": [1, {"b": "c"}]}, context={"f": print, "n": at})
            vm.start(steps[0])
            vm.run({"op": "seq", "steps": [{"op": "good", "n": at}]})
        asyncio.run(more(count))
        gc.collect()

    round_of(2000)
    before = resident()
    for _ in range(3):
        round_of(2000)
    assert resident() - before < 4 << 20
