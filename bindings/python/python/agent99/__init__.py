"""Agent99 runs untrusted agent programs inside a Python process.

from agent99 import VM, atom

@atom(cost=5)
def greet(name: str) -> str:
    "Greets somebody."
    return f"Hello, {name}."

vm = VM([greet])
vm.run("export default function agent({ who }) { return greet({ name: who }) }", {"who": "Ada"})
"""

from ._atoms import Atom, Context, atom
from ._builder import Agent
from ._errors import Agent99Error, AgentError, BadValue, CompileError, Diagnostic, UsageError
from ._native import UNDEFINED
from ._plain import plain as _plain
from ._schema import schema
from ._steps import Call, Done, Events, Pause, Request, Step, Steps, Wait
from ._vm import VM, Program, RunOptions, RunResult, explain, transpile, version

__version__ = version

__all__ = [
    "UNDEFINED",
    "VM",
    "Agent",
    "Agent99Error",
    "AgentError",
    "Atom",
    "BadValue",
    "Call",
    "CompileError",
    "Context",
    "Diagnostic",
    "Done",
    "Events",
    "Pause",
    "Program",
    "Request",
    "RunOptions",
    "RunResult",
    "Step",
    "Steps",
    "UsageError",
    "Wait",
    "atom",
    "explain",
    "schema",
    "transpile",
]
