"""Times of an installed agent99: medians, in microseconds. `python bench.py [--json]`"""

import asyncio
import json
import statistics
import sys
import time

from agent99 import VM, atom

CALLS = 1000
ROUNDS = 15


@atom
def plain(a: int, b: int) -> int:
    return a + b


@atom
async def ready(a: int, b: int) -> int:
    return a + b


@atom
async def waits(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def program(step, count, result):
    steps = [dict(step) for _ in range(count)]
    return {
        "op": "seq",
        "steps": [*steps, {"op": "return", "schema": {"properties": {result: {}}}}],
    }


def median(work, times):
    """Microseconds of one of `times` calls."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(times):
            work()
        rounds.append((time.perf_counter() - began) / times * 1e6)
    return statistics.median(rounds)


async def median_async(work, times):
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(times):
            await work()
        rounds.append((time.perf_counter() - began) / times * 1e6)
    return statistics.median(rounds)


def main():
    vm = VM([plain, ready, waits])
    figures = {}
    ten = vm.compile(program({"op": "varSet", "key": "n", "value": 1}, 9, "n"))
    figures["run of ten steps"] = median(lambda: vm.run(ten), 2000)
    figures["run of ten steps, options"] = median(
        lambda: vm.run(ten, {"a": 1}, fuel=100, trace=False), 2000
    )
    calls = {
        op: vm.compile(program({"op": op, "a": 1, "b": 2, "result": "r"}, CALLS, "r"))
        for op in ("plain", "ready", "waits")
    }
    figures["sync atom"] = median(lambda: vm.run(calls["plain"], fuel=1e6), 10) / CALLS

    async def in_loop():
        figures["run_async of ten steps"] = await median_async(lambda: vm.run_async(ten), 2000)
        figures["async atom, ready"] = (
            await median_async(lambda: vm.run_async(calls["ready"], fuel=1e6), 5) / CALLS
        )
        figures["async atom, waits once"] = (
            await median_async(lambda: vm.run_async(calls["waits"], fuel=1e6), 5) / CALLS
        )

    asyncio.run(in_loop())
    rows = {
        "rows": [
            {"id": at, "name": f"name {at}", "on": at % 2 == 0, "x": at * 1.5} for at in range(100)
        ]
    }
    echo = vm.compile(
        {"op": "seq", "a99": 4, "steps": [{"op": "return", "value": {"$kind": "arg", "path": "v"}}]}
    )
    empty = median(lambda: vm.run(echo, {"v": 1}), 200)
    figures["values of 4.4 KB both ways"] = median(lambda: vm.run(echo, {"v": rows}), 200) - empty
    figures["the same by json"] = median(lambda: json.loads(json.dumps(rows)), 200)
    if "--json" in sys.argv:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:32} {value:8.2f}")


main()
