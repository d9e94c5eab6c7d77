"""Checked by mypy and pyright, and run by `test_typed`: what users write has types."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agent99 import VM, Agent, AgentError, Context, Diagnostic, Program, RunResult, Steps, atom


@dataclass
class Order:
    number: int
    paid: bool = False


@atom(cost=5, timeout_ms=None, effect="read")
def look_up(ctx: Context, number: int) -> Order:
    ctx.fuel -= 1
    return Order(number)


@atom
async def slow(text: str) -> str:
    await asyncio.sleep(0)
    return text.upper()


def main() -> dict[str, object]:
    direct: Order = look_up(Context("look_up", "", None, 10.0, {}, None, None), 3)
    vm = VM([look_up, slow], capabilities={"fetch": slow})
    program: Program = vm.compile(
        vm.agent()
        .look_up(number=direct.number)
        .as_("order")
        .slow(text="hi")
        .as_("t")
        .return_({"properties": {"order": {}, "t": {}}})
    )
    result: RunResult = program.run({"a": 1}, fuel=100, costs={"slow": lambda inputs, context: 2.0})
    error: AgentError | None = result.error
    assert error is None, error
    findings: list[Diagnostic] = vm.check(Agent.take().step({"op": "nothing"}))
    steps: Steps = vm.start(program, {})
    assert findings and steps.done is None
    again: RunResult = asyncio.run(program.run_async(None, timeout_ms=1000))
    return {"plain": result.unwrap(), "async": again.unwrap()}
