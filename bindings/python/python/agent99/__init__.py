"""Agent99 runs untrusted agent programs inside a Python process.

from agent99 import VM, atom

@atom(cost=5)
def greet(name: str) -> str:
    "Greets somebody."
    return f"Hello, {name}."

vm = VM([greet])
vm.run("export default function agent({ who }) { return greet({ name: who }) }", {"who": "Ada"})
"""

from typing import TYPE_CHECKING, Any

from ._atoms import Atom, Context, atom
from ._builder import Agent
from ._errors import Agent99Error, AgentError, BadValue, CompileError, Diagnostic, UsageError
from ._native import UNDEFINED, on_other
from ._vm import VM, Program, RunOptions, RunResult, explain, transpile, version

if TYPE_CHECKING:
    from ._schema import schema
    from ._steps import Call, Done, Events, Pause, Request, Step, Steps, Wait

__version__ = version


_LATE: dict[str, str] = dict.fromkeys(
    ("Call", "Done", "Events", "Pause", "Request", "Step", "Steps", "Wait"), "_steps"
)


def __getattr__(name: str) -> Any:
    # With the modules that these import, half of the time of importing this package.
    module = "_schema" if name == "schema" else _LATE.get(name)
    if module is None:
        raise AttributeError(f"module 'agent99' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"agent99.{module}"), name)
    return found


def _plain(value: Any) -> Any:
    from ._plain import plain

    return plain(value)


on_other(_plain)

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
