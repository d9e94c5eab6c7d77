"""A tool for smolagents that runs programs that the model writes."""

from __future__ import annotations

from smolagents import Tool

from agent99 import VM, atom


@atom(cost=5, effect="read")
def temperature(city: str) -> float:
    """Temperature of a city in degrees Celsius."""
    return {"Oslo": 4.5, "Rome": 19.0}.get(city, 12.0)


class RunProgram(Tool):
    name = "run_program"
    description = (
        "Runs a program: `export default function agent() { ... return value }`, in a subset of "
        "JavaScript. Call `temperature({ city })` for the temperature of a city."
    )
    inputs = {"source": {"type": "string", "description": "The program."}}
    output_type = "any"

    def __init__(self, vm: VM | None = None) -> None:
        super().__init__()
        self.vm = vm or VM([temperature])

    def forward(self, source: str) -> object:
        return self.vm.run(source, fuel=1000, timeout_ms=2000).unwrap()
