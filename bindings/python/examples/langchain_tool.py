"""A tool for LangChain that runs programs that the model writes."""

from __future__ import annotations

import json

from langchain_core.tools import ToolException, tool

from agent99 import VM, Agent99Error, atom


@atom(cost=5, effect="read")
def temperature(city: str) -> float:
    """Temperature of a city in degrees Celsius."""
    return {"Oslo": 4.5, "Rome": 19.0}.get(city, 12.0)


vm = VM([temperature])


@tool
async def run_program(source: str) -> str:
    """Runs a program: `export default function agent() { ... return value }`, in a subset of
    JavaScript. Call `temperature({ city })` for the temperature of a city."""
    try:
        result = await vm.run_async(source, fuel=1000, timeout_ms=2000)
        return json.dumps(result.unwrap())
    except Agent99Error as error:
        raise ToolException(str(error)) from error


run_program.handle_tool_error = True
