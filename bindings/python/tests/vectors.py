"""The package as an engine of the project's vectors (`cargo xtask vectors --over python`).

Reads runs and conditions as lines of JSON, and asks for what the host's functions answer. The
protocol is that of tests/src/vectors/process.rs.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import traceback
from typing import Any

from agent99 import UNDEFINED, VM, Agent99Error, Call, CompileError, Done, Request, Steps, Wait, atom
from agent99._native import Host

SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0": -0.0}


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["$undefined"]:
        return UNDEFINED
    if list(value) == ["$number"]:
        return SPECIAL[value["$number"]]
    return {name: decode(member) for name, member in value.items()}


def encode(value: Any) -> Any:
    if value is UNDEFINED:
        return {"$undefined": True}
    if isinstance(value, float):
        if math.isnan(value):
            return {"$number": "NaN"}
        if math.isinf(value):
            return {"$number": "Infinity" if value > 0 else "-Infinity"}
        if value == 0 and math.copysign(1, value) < 0:
            return {"$number": "-0"}
        return value
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {name: encode(member) for name, member in value.items()}
    return value


class Error(Exception):
    """An exception of the kind that the vectors expect: an empty text shows the kind's name."""


class Peer:
    """The side that has the scripts."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.calls = 0

    def send(self, message: Any) -> None:
        sys.stdout.write(json.dumps(message, allow_nan=False) + "\n")
        sys.stdout.flush()

    async def ask(self, message: dict[str, Any]) -> Any:
        self.calls += 1
        future = asyncio.get_running_loop().create_future()
        self.waiting[self.calls] = future
        self.send({"call": self.calls, **message})
        reply = await future
        if reply.get("delayMs"):
            await asyncio.sleep(reply["delayMs"] / 1000)
        if "error" in reply:
            raise Error(reply["error"])
        return decode(reply["result"])


def capabilities(peer: Peer, names: list[str]) -> dict[str, Any]:
    granted: dict[str, Any] = {}
    for name in names:

        async def method(*args: Any, name: str = name) -> Any:
            return await peer.ask({"method": name, "args": [encode(arg) for arg in args]})

        root, _, member = name.partition(".")
        if member:
            granted.setdefault(root, {})[member] = method
        else:
            granted.setdefault(root, method)
    return granted


def scripted(peer: Peer, op: str) -> Any:
    async def execute(step: Any) -> Any:
        return await peer.ask({"atom": op, "input": encode(step)})

    return execute


def request(event: Call | Request) -> dict[str, Any]:
    if isinstance(event, Call):
        return {"atom": event.op, "input": encode(event.input)}
    return {"method": event.method, "args": [encode(arg) for arg in event.args]}


async def aborted(peer: Peer, steps: Steps, spec: dict[str, Any]) -> Any:
    """A run that is aborted after a time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + spec["abortAfterMs"] / 1000
    pending: dict[asyncio.Future[Any], str | int] = {}
    while not isinstance(event := steps.event, Done):
        if isinstance(event, (Call, Request)):
            pending[asyncio.ensure_future(peer.ask(request(event)))] = event.id
            steps.next()
        elif isinstance(event, Wait):
            left = max(0, end - loop.time())
            if event.until_ms is not None:
                left = min(left, max(0, event.until_ms - steps.elapsed_ms) / 1000 + 0.001)
            ended, _ = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if loop.time() >= end:
                return steps.abort()
            for one in ended:
                id = pending.pop(one)
                error = one.exception()
                steps.answer(id, one.result()) if error is None else steps.fail(id, str(error))
                break
            else:
                steps.next()
        elif loop.time() >= end:
            return steps.abort()
        else:
            await asyncio.sleep(0)
            steps.next()
    return event.result


async def run(peer: Peer, spec: dict[str, Any]) -> None:
    atoms = []
    for one in spec["atoms"]:

        limit = one["timeoutMs"] or None
        make = atom(op=one["op"], cost=one["cost"], timeout_ms=limit, inputs="raw")
        atoms.append(make(scripted(peer, one["op"])))
    costs: dict[str, Any] = {}
    for op, price in decode(spec["costs"]).items():
        is_price = math.isfinite(price) and price >= 0
        costs[op] = price if is_price else lambda *_, price=price: price
    granted = capabilities(peer, spec["capabilities"])
    options: dict[str, Any] = {
        "fuel": spec["fuel"],
        "timeouts": spec["timeouts"],
        "costs": costs,
        "quotas": spec["quotas"],
        "equality": "exact" if spec["exactEquality"] else "loose",
        "cost_model": "metered" if spec["metered"] else "flat",
        "readable_context": spec["readableContext"],
        "trace": spec["trace"],
        "capabilities": {name: of for name, of in granted.items() if name != "events"},
    }
    context = decode(spec["context"])
    if context is not UNDEFINED:
        options["context"] = context
    if spec["timeoutMs"] is not None:
        options["timeout_ms"] = max(0, spec["timeoutMs"])
    chunks: list[asyncio.Task[Any]] = []
    if "events" in granted:

        def on_event(event: dict[str, Any]) -> None:
            if event["event"] == "chunk":
                chunks.append(asyncio.ensure_future(granted["events"]["chunk"](event.get("value", UNDEFINED))))

        options["on_event"] = on_event
    try:
        vm = VM(atoms)
        args = decode(spec["args"])
        args = None if args is UNDEFINED else args
        if spec["aborted"]:
            # A task that was cancelled before its start has no outcome in Python.
            peer.send({"skipped": True})
            return
        if spec["abortAfterMs"] is not None:
            done = await aborted(peer, vm.start(spec["program"], args, **options), spec)
        else:
            done = await vm.run_async(spec["program"], args, **options)
    except CompileError as error:
        first = next(one for one in error.diagnostics if one.severity == "error")
        peer.send({"rejected": first.message})
        return
    except (Agent99Error, ValueError) as error:
        peer.send({"rejected": str(error)})
        return
    await asyncio.gather(*chunks)
    error = done.error
    plain = error and {"message": error.message, "op": error.op, "code": error.code}
    result = done.result if done.returned else UNDEFINED
    if error:
        result = {"$error": True, "message": error.message, "op": error.op}
    trace = done.trace and [
        {**event, **{key: encode(event.get(key, UNDEFINED)) for key in ("input", "stateDiff", "result")}}
        for event in done.trace
    ]
    peer.send(
        {"done": {"result": encode(result), "error": plain, "fuelUsed": done.fuel_used, "trace": trace}}
    )


async def reported(peer: Peer, spec: dict[str, Any]) -> None:
    """A run whose bugs end the replay."""
    try:
        await run(peer, spec)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


async def main() -> None:
    peer = Peer()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 30)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    runs = set()
    while line := await reader.readline():
        message = json.loads(line)
        if "run" in message:
            task = asyncio.ensure_future(reported(peer, message["run"]))
            runs.add(task)
            task.add_done_callback(runs.discard)
        elif "condition" in message:
            peer.send(Host().call(15, message["condition"], "v2"))
        else:
            peer.waiting.pop(message["answer"]).set_result(message)


asyncio.run(main())
