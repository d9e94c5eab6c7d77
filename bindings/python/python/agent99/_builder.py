"""Programs as chains of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._atoms import _camel

if TYPE_CHECKING:
    from ._vm import VM

# Inputs that hold steps: a function fills a builder for them.
_BODIES = {"steps", "then", "else", "body", "try", "catch", "calls", "call"}
_STEP_KEYS = {"op", "result", "resultConst"}


class Agent:
    """A program under construction: each call adds a step and returns the builder.

    Atoms are methods by their exact names or in snake case, with a final underscore for Python's
    keywords: ``b.var_set("n", 1)``, ``b.if_("n > 0", lambda b: ...)``, ``b.storeGet("key")``.
    Inputs are given in the order of the atom's documentation or by name. A function given for
    steps fills a builder of its own. ``vm.agent()`` knows the VM's own atoms, too.
    """

    def __init__(self, vm: VM | None = None) -> None:
        self._vm = vm
        self._root: dict[str, Any] = {}
        self.steps: list[dict[str, Any]] = []

    @classmethod
    def take(cls, schema: Any = None) -> Agent:
        """A program for arguments of a schema, which documents it; `input_schema` enforces one."""
        del schema
        return cls()

    @staticmethod
    def arg(path: str) -> dict[str, Any]:
        """An input that is an argument of the program."""
        return {"$kind": "arg", "path": path}

    def atom(self, op: str, /, **inputs: Any) -> Agent:
        """Adds a step of any atom, with its inputs by their exact names."""
        step: dict[str, Any] = {"op": op}
        for name, value in inputs.items():
            if name in _STEP_KEYS:
                raise TypeError(f"'{name}' belongs to the step and cannot be an input")
            step[name] = self._operand(name, value)
        self.steps.append(step)
        return self

    def step(self, node: dict[str, Any]) -> Agent:
        """Adds a step as it is."""
        self.steps.append(node)
        return self

    def as_(self, name: str) -> Agent:
        """Names the variable that receives the last step's value."""
        if not self.steps:
            raise ValueError("No step to capture; add the step whose value the name is for")
        self.steps[-1]["result"] = name
        return self

    def as_const(self, name: str) -> Agent:
        """Names the constant that receives the last step's value."""
        self.as_(name).steps[-1]["resultConst"] = True
        return self

    def version(self, version: int) -> Agent:
        """Sets the version of the language."""
        self._root["a99"] = version
        return self

    def input_schema(self, schema: Any) -> Agent:
        """Sets the schema that arguments must match: a JSON Schema or a type."""
        self._root["inputSchema"] = _schema(schema)
        return self

    def helper(self, name: str, params: Sequence[str], body: Callable[[Agent], Agent]) -> Agent:
        """Adds a helper that `call_local` calls."""
        steps = self._operand("steps", body)
        helpers = self._root.setdefault("helpers", {})
        helpers[name] = {"steps": steps, "paramNames": list(params)}
        return self

    def to_dict(self) -> dict[str, Any]:
        """The program as a tree."""
        root = dict(self._root)
        program: dict[str, Any] = {"op": "seq"}
        if "a99" in root:
            program["a99"] = root.pop("a99")
        return {**program, "steps": self.steps, **root}

    def to_json(self) -> str:
        """The program as JSON text."""
        import json

        return json.dumps(self.to_dict(), ensure_ascii=False)

    def __getattr__(self, name: str) -> Callable[..., Agent]:
        if name.startswith("_"):
            raise AttributeError(name)
        table = self._table()
        op = next((op for op in (name, name.rstrip("_"), _camel(name)) if op in table), None)
        if op is None:
            raise AttributeError(
                f"there is no atom '{name}'; write .atom('{name}', ...), or use vm.agent() for atoms of a VM"
            )
        order = table[op]

        def add(*args: Any, **inputs: Any) -> Agent:
            named: dict[str, Any] = {}
            places = iter(order)
            for arg in args:
                if not order and isinstance(arg, dict):
                    # The names are the program's: `vars_let({"a": 1})`.
                    named.update(arg)
                    continue
                for place in places:
                    # Steps may follow a condition without names for it.
                    if not _is_body(arg) or place in _BODIES:
                        named[place] = arg
                        break
                else:
                    raise TypeError(f"{op} takes {', '.join(order) or 'no inputs'}")
            for key, value in inputs.items():
                exact = _camel(key) if order and key not in order else key
                if exact in named:
                    raise TypeError(f"{op} got '{exact}' twice")
                named[exact] = value
            if op == "return" and "schema" in named:
                named["schema"] = _schema(named["schema"])
            return self.atom(op, **named)

        return add

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._table()]

    def _table(self) -> dict[str, list[str]]:
        from ._vm import default_vm

        return (self._vm or default_vm())._inputs()

    def _operand(self, name: str, value: Any) -> Any:
        if not _is_body(value):
            return value
        inner = value if isinstance(value, Agent) else value(Agent(self._vm))
        if not isinstance(inner, Agent):
            raise TypeError(f"the function for '{name}' must return its builder")
        if inner._root:
            raise ValueError(f"only the root of a program has {', '.join(map(repr, inner._root))}")
        if name == "call":
            if len(inner.steps) != 1:
                raise ValueError("a call for each item is one step")
            return inner.steps[0]
        return inner.steps


def _is_body(value: Any) -> bool:
    return isinstance(value, Agent) or (callable(value) and not isinstance(value, type))


def _schema(given: Any) -> Any:
    if isinstance(given, dict):
        return given
    from ._schema import schema

    return schema(given)
