"""Atoms: functions of the host that programs may call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from ._native import UNDEFINED
from ._schema import Convert, Schema, describe, hints_of

Effect = Literal["pure", "mutates", "read", "idempotent", "unsafe"]
Cost = float | Callable[[dict[str, Any], Any], float]

P = ParamSpec("P")
R = TypeVar("R")


class Context:
    """What an atom may know of its call. An atom whose first parameter has this type gets it."""

    __slots__ = (
        "op",
        "call_id",
        "pointer",
        "args",
        "context",
        "capabilities",
        "cancelled",
        "warnings",
        "_fuel",
        "_charged",
    )

    def __init__(
        self,
        op: str,
        call_id: str,
        pointer: str | None,
        fuel: float,
        args: Any,
        context: Any,
        capabilities: Any,
    ) -> None:
        self.op = op
        self.call_id = call_id
        """Unique within the run, and the same when a restored run calls again."""
        self.pointer = pointer
        self.args = args
        """Arguments of the run, as the caller gave them."""
        self.context = context
        """The run's ``context`` as the caller gave it, functions included."""
        self.capabilities = capabilities
        self.cancelled = False
        """True once the answer is no longer wanted."""
        self.warnings: list[str] = []
        """Texts to add to the warnings of the run."""
        self._fuel = fuel
        self._charged = 0.0

    @property
    def fuel(self) -> float:
        """Fuel left in the run. Lowering it charges the difference."""
        return self._fuel - self._charged

    @fuel.setter
    def fuel(self, left: float) -> None:
        self.charge(self.fuel - left)

    def charge(self, units: float) -> None:
        """Charges fuel beyond the atom's price."""
        if not units >= 0:
            raise ValueError(f"a charge must be at least 0, not {units}")
        self._charged += units

    def _extra(self) -> Any:
        if not self._charged and not self.warnings:
            return UNDEFINED
        extra: dict[str, Any] = {"warnings": [str(text) for text in self.warnings]}
        if self._charged:
            extra["charge"] = float(self._charged)
        return extra


class Atom(Generic[P, R]):
    """A function as an atom. Calling it calls the function."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        op: str | None = None,
        docs: str | None = None,
        input: Schema | None = None,
        output: Schema | None = None,
        cost: Cost = 1.0,
        timeout_ms: float | None = 1000.0,
        effect: Effect = "unsafe",
        inputs: Literal["resolved", "raw"] = "resolved",
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.op = op if op else str(getattr(function, "__name__", ""))
        if not self.op.isidentifier():
            raise TypeError(f"{function!r} needs a name: @atom(op='name')")
        called = function if inspect.isroutine(function) else getattr(function, "__call__")
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self.cost = cost
        self.timeout_ms = timeout_ms
        self.effect = effect
        self.inputs = inputs
        self.docs = docs if docs is not None else inspect.getdoc(function)
        self._raw = inputs == "raw"
        self._makes: dict[str, Convert] = {}
        self.input: Schema | None = input
        self.output: Schema | None = output
        self.takes_context = False
        self._read_signature()

    def _read_signature(self) -> None:
        parameters = list(inspect.signature(self.function).parameters.values())
        if parameters and parameters[0].name == "self":
            # A method, which is an atom once it is taken from an instance.
            return
        hints = hints_of(_annotated(self.function))
        if parameters and hints.get(parameters[0].name) is Context:
            self.takes_context = True
            del parameters[0]
        if self._raw:
            if len(parameters) != 1:
                raise TypeError(f"{self.op}: an atom with raw inputs takes the step as its one parameter")
            return
        properties: Schema = {}
        required: list[str] = []
        for parameter in parameters:
            name = parameter.name
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise TypeError(f"{self.op}: inputs are passed by name, so that `{parameter}` gets none")
            if self.input is not None and name not in hints:
                continue
            try:
                properties[name], convert = describe(hints.get(name, inspect.Parameter.empty))
            except TypeError as error:
                raise TypeError(f"{self.op}: parameter `{name}`: {error}") from error
            if convert is not None:
                self._makes[name] = convert
            if parameter.default is parameter.empty:
                required.append(name)
        if self.input is None:
            self.input = {"type": "object", "properties": properties}
            if required:
                self.input["required"] = required
        if self.output is None and "return" in hints:
            try:
                self.output = describe(hints["return"])[0] or None
            except TypeError:
                self.output = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Atom(
            getattr(self.function, "__get__")(instance, owner), **self._options()
        )

    def __repr__(self) -> str:
        return f"<atom {self.op}>"

    def _options(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "docs": self.docs,
            "cost": self.cost,
            "timeout_ms": self.timeout_ms,
            "effect": self.effect,
            "inputs": self.inputs,
        }

    def config(self) -> dict[str, Any]:
        """The atom as the engine's configuration has it."""
        config: dict[str, Any] = {
            "op": self.op,
            "effect": self.effect,
            "timeoutMs": 0 if self.timeout_ms is None else self.timeout_ms,
            "inputs": self.inputs,
        }
        if callable(self.cost):
            config["costFn"] = True
        else:
            config["cost"] = self.cost
        given = {"docs": self.docs, "input": self.input, "output": self.output}
        config.update((key, value) for key, value in given.items() if value is not None)
        return config

    def direct(self) -> tuple[Callable[..., Any], list[str] | None] | None:
        """The function that the extension may call without a context, and its parameters if inputs
        may be passed by position."""
        if self.is_async or self.takes_context:
            return None
        if self._raw or self._makes:
            return (lambda **inputs: self.call(inputs, None)), None
        parameters = inspect.signature(self.function).parameters.values()
        plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
        return self.function, [one.name for one in parameters] if plain else None

    def call(self, inputs: dict[str, Any], context: Context | None) -> Any:
        """Calls the function with the inputs of a step."""
        args = () if context is None else (context,)
        function: Callable[..., Any] = self.function
        if self._raw:
            return function(*args, inputs)
        for name, convert in self._makes.items():
            if name in inputs:
                inputs[name] = convert(inputs[name])
        return function(*args, **inputs)


def _annotated(function: Any) -> Any:
    """The object with a callable's annotations."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


@overload
def atom(function: Callable[P, R], /) -> Atom[P, R]: ...
@overload
def atom(
    *,
    op: str | None = ...,
    docs: str | None = ...,
    input: Schema | None = ...,
    output: Schema | None = ...,
    cost: Cost = ...,
    timeout_ms: float | None = ...,
    effect: Effect = ...,
    inputs: Literal["resolved", "raw"] = ...,
) -> Callable[[Callable[P, R]], Atom[P, R]]: ...
def atom(function: Any = None, /, **options: Any) -> Any:
    """Makes an atom of a function or a coroutine function.

    Its parameters are the inputs, by name: annotations give the schema, and inputs are converted
    to dataclasses, enums, dates and pydantic models. The docstring documents the atom. A first
    parameter annotated `Context` receives the call's context. A coroutine function runs beside
    others; `timeout_ms=None` lets it take any time.
    """
    if function is not None:
        return Atom(function)
    return lambda function: Atom(function, **options)


def capability_table(capabilities: Any) -> dict[str, Callable[..., Any]]:
    """Methods of capabilities by their names, `store.get`: of a mapping or an object, whose
    attributes are functions or have functions."""
    table: dict[str, Callable[..., Any]] = {}
    for name, member in _members(capabilities):
        if callable(member) and not isinstance(member, type):
            table[_camel(name)] = member
        elif member is not None:
            for method, function in _members(member):
                if callable(function):
                    table[f"{_camel(name)}.{_camel(method)}"] = function
    return table


def _members(of: Any) -> list[tuple[str, Any]]:
    if isinstance(of, Mapping):
        return list(of.items())
    names = [name for name in dir(of) if not name.startswith("_")]
    return [(name, getattr(of, name)) for name in names]


def _camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
