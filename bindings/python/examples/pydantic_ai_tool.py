"""A pydantic-ai agent whose one tool runs programs that the model writes."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models import Model

from agent99 import VM, Agent99Error, atom


@atom(cost=5, effect="read")
def temperature(city: str) -> float:
    """Temperature of a city in degrees Celsius."""
    return {"Oslo": 4.5, "Rome": 19.0}.get(city, 12.0)


vm = VM([temperature])


async def run_program(source: str) -> Any:
    """Runs a program: `export default function agent() { ... return value }`, in a subset of
    JavaScript. Call `temperature({ city })` for the temperature of a city."""
    try:
        return (await vm.run_async(source, fuel=1000, timeout_ms=2000)).unwrap()
    except Agent99Error as error:
        # The model sees the findings, as `a99 check` prints them, and tries again.
        raise ModelRetry(str(error)) from error


def agent(model: Model | str) -> Agent[None, str]:
    return Agent(model, tools=[run_program], retries=3)
