"""The VM: atoms, programs and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._atoms import Atom, capability_table
from ._builder import Agent
from ._drive import Event, Session, drive_async, drive_sync
from ._errors import AgentError, CompileError, Diagnostic, failure, run_error
from ._errors import answer as error_answer
from ._native import UNDEFINED, Direct, Failure, Host

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._steps import Steps

_host = Host()
_call = _host.call
_begin = _host.begin

# Operations; see `a99_bindings::Op`.
_VERSION, _ENGINE, _FREE, _COMPILE, _START = range(5)
_RESTORE, _SAVE, _LOAD, _DESCRIBE, _PRINT, _TRANSPILE = range(9, 15)
_TOOLS, _ATOMS, _PROMPT, _DECLARATIONS, _EXPLAIN = range(16, 21)

ToolForm = Literal["openai", "openai-strict", "anthropic", "gemini", "mcp"]
PromptForm = Literal["short", "full", "source"]

AnyProgram = Any
"""A tree, JSON or JavaScript text, an artifact's bytes, a `Program` or an `Agent`."""


class RunOptions(TypedDict, total=False):
    """Options of a run; those that are absent have the engine's defaults."""

    fuel: float
    """Units of fuel; 1,000 by default."""
    timeout_ms: float
    capabilities: Any
    """A mapping or an object: `fetch`, `store` with `get` and `set`, `llm` with `predict`, ...; the
    functions may be coroutine functions."""
    context: Any
    """Data of the host for its atoms. Programs read the paths of `readable_context` only."""
    readable_context: Iterable[str]
    trace: bool
    on_event: Callable[[dict[str, Any]], object]
    """Called with each event of the run while it is in progress, such as chunks that it sends."""
    costs: Mapping[str, float | Callable[[dict[str, Any], Any], float]]
    """Prices by atom, or functions of the step's inputs and the context that decide them."""
    timeouts: Mapping[str, float | None]
    """Milliseconds by atom; None is no limit."""
    quotas: Mapping[str, int]
    """Calls allowed by atom."""
    quota_used: Mapping[str, int]
    max_heap_bytes: int
    membrane_max_bytes: int
    membrane_max_depth: int
    cost_model: Literal["metered", "flat"]
    equality: Literal["loose", "exact"]
    depth: int


_NAMES = {
    "fuel": "fuel",
    "timeout_ms": "timeoutMs",
    "readable_context": "readableContext",
    "trace": "trace",
    "quotas": "quotas",
    "quota_used": "quotaUsed",
    "max_heap_bytes": "maxHeapBytes",
    "membrane_max_bytes": "membraneMaxBytes",
    "membrane_max_depth": "membraneMaxDepth",
    "cost_model": "costModel",
    "equality": "equality",
    "depth": "depth",
}
_OWN = {"capabilities", "context", "costs", "on_event", "timeouts"}
_NONE: dict[str, Any] = {}
_NO_DIRECT = Direct({})

# Artifacts that a VM keeps loaded for runs of their bytes, the last ones used.
_LOADED = 64


@dataclass
class RunResult:
    """The end of a run."""

    result: Any
    """What the program returned; None if it returned nothing or failed."""
    error: AgentError | None
    fuel_used: float
    warnings: list[str] = field(default_factory=list)
    trace: list[dict[str, Any]] | None = None
    logs: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    quota_used: dict[str, int] | None = None
    returned: bool = True
    """False if the program returned nothing."""

    def unwrap(self) -> Any:
        """The result; raises the error of a run that failed."""
        if self.error is not None:
            raise self.error
        return self.result


def finished(event: Event, cause: Exception | None = None) -> RunResult:
    """The result of a run's last event."""
    _, result, error, fuel, warnings, trace, logs, usage, quotas, *causes = event
    raised = None
    if error is not UNDEFINED:
        raised = run_error(error)
        for raised_by in (cause, *causes):
            if raised_by is not None and error_answer(raised_by)["message"] == raised.message:
                raised.__cause__ = raised_by
    return RunResult(
        None if result is UNDEFINED or raised is not None else result,
        raised,
        fuel,
        warnings,
        None if trace is UNDEFINED else trace,
        logs,
        None if usage is UNDEFINED else usage,
        None if quotas is UNDEFINED else quotas,
        raised is None and result is not UNDEFINED,
    )


class Program:
    """A compiled program of a VM."""

    __slots__ = ("_vm", "_handle", "warnings", "_facts", "__weakref__")

    def __init__(self, vm: VM, handle: float, warnings: list[Diagnostic]) -> None:
        self._vm = vm
        self._handle = handle
        self.warnings = warnings
        self._facts: dict[str, Any] | None = None

    def __del__(self) -> None:
        if _call is not None:
            _call(_FREE, self._handle)

    def _describe(self) -> dict[str, Any]:
        facts = self._facts
        if facts is None:
            facts = self._facts = dict(_call(_DESCRIBE, self._handle))
        return facts

    @property
    def hash(self) -> str:
        """The identity of the program's content."""
        hash: str = self._describe()["hash"]
        return hash

    @property
    def ops(self) -> list[str]:
        """Atoms that the program names."""
        ops: list[str] = self._describe()["ops"]
        return ops

    @property
    def input_schema(self) -> dict[str, Any] | None:
        """The schema that arguments must match."""
        return self._describe().get("inputSchema")

    def to_bytes(self, *, strip: bool = False) -> bytes:
        """The artifact (`.a99b`), which `VM.load` reads; `strip` leaves out places and names."""
        try:
            saved: bytes = _call(_SAVE, self._handle, strip)
        except Failure as found:
            raise failure(found) from None
        return saved

    def to_source(self) -> str:
        """The program as JavaScript."""
        try:
            source: str = _call(_PRINT, self._vm._engine, self._handle)
        except Failure as found:
            raise failure(found) from None
        return source

    def run(
        self, args: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]
    ) -> RunResult:
        """Runs the program; see `VM.run`."""
        return self._vm.run(self, args, **options)

    async def run_async(
        self, args: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]
    ) -> RunResult:
        """Runs the program under asyncio or trio; see `VM.run_async`."""
        return await self._vm.run_async(self, args, **options)

    def __repr__(self) -> str:
        return f"<agent99.Program {self.hash[:12]}>"


class VM:
    """An engine with atoms of the host. Threads may share it."""

    def __init__(
        self,
        atoms: Iterable[Atom[Any, Any] | Callable[..., Any]] | Mapping[str, Any] = (),
        *,
        only: Iterable[str] | None = None,
        without: Iterable[str] = (),
        capabilities: Any = None,
    ) -> None:
        """`atoms` are `@atom` functions or plain ones; a mapping gives them names. `only` and
        `without` name the language's atoms to keep or to remove. `capabilities` are those of runs
        that name none."""
        self._atoms: dict[str, Atom[Any, Any]] = {}
        named: list[tuple[Any, Any]] = (
            list(atoms.items()) if isinstance(atoms, Mapping) else [(None, one) for one in atoms]
        )
        for name, one in named:
            if not isinstance(one, Atom):
                one = Atom(one, op=name)
            elif name is not None and name != one.op:
                one = Atom(
                    one.function,
                    **{**one._options(), "op": name, "input": one.input, "output": one.output},
                )
            self._atoms[one.op] = one
        direct = ((op, one.direct()) for op, one in self._atoms.items())
        self._direct = Direct({op: called for op, called in direct if called is not None})
        self._costs: dict[str, Callable[..., float]] = {
            op: one.cost for op, one in self._atoms.items() if callable(one.cost)
        }
        self._capabilities = capabilities
        self._methods = {} if capabilities is None else capability_table(capabilities)
        self._defaults = {"capabilities": list(self._methods)} if self._methods else _NONE
        self._loaded: dict[bytes, Program] = {}
        self._orders: dict[str, list[str]] | None = None
        config: dict[str, Any] = {"atoms": [one.config() for one in self._atoms.values()]}
        if only is not None:
            config["only"] = list(only)
        config["without"] = list(without)
        self._engine: float = _checked(_ENGINE, config)

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and _call is not None:
            _call(_FREE, engine)

    # Programs.

    def compile(self, program: AnyProgram) -> Program:
        """Compiles a tree, JSON or JavaScript text, an artifact's bytes or a builder. Raises
        `CompileError`."""
        if isinstance(program, Program):
            return program if program._vm is self else self.load(program.to_bytes())
        if isinstance(program, (bytes, bytearray, memoryview)):
            return self.load(bytes(program))
        given = program.to_dict() if isinstance(program, Agent) else program
        text = given if isinstance(given, str) else None
        found = _checked(_COMPILE, self._engine, given, "auto")
        if "diagnostics" in found:
            raise CompileError([Diagnostic._of(one, text) for one in found["diagnostics"]])
        warnings = [Diagnostic._of(one, text) for one in found["warnings"]]
        return Program(self, found["agent"], warnings)

    def check(self, program: AnyProgram) -> list[Diagnostic]:
        """Errors and warnings of a program, without running it; none if it is empty."""
        try:
            return self.compile(program).warnings
        except CompileError as error:
            return error.diagnostics

    def load(self, data: bytes) -> Program:
        """Loads an artifact (`.a99b`). It is verified, and gets no more trust than source."""
        found = _checked(_LOAD, self._engine, bytes(data))
        return Program(
            self, found["agent"], [Diagnostic._of(one, None) for one in found["warnings"]]
        )

    def agent(self) -> Agent:
        """A builder that knows the VM's own atoms."""
        return Agent(self)

    # Runs.

    def run(
        self,
        program: AnyProgram,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Runs a program to its end. A failure of the program is `RunResult.error`.

        Raises `CompileError` for a program that is rejected, `UsageError` for wrong options and
        `BadValue` for arguments that are no values. Coroutine functions run in an event loop of
        the run's own; where one runs already, use `run_async`.
        """
        event, session = self._begun(program, args, options, True)
        if session is None:
            return finished(event)
        return finished(drive_sync(session, event), session.cause)

    async def run_async(
        self,
        program: AnyProgram,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Runs a program under asyncio or trio. Its coroutine functions run beside each other.
        Cancelling the task aborts the run."""
        event, session = self._begun(program, args, options, False)
        if session is None:
            return finished(event)
        return finished(await drive_async(session, event), session.cause)

    def _begun(
        self, program: AnyProgram, args: Mapping[str, Any] | None, options: Any, alone: bool
    ) -> tuple[Event, Session | None]:
        """The first event of a run, and what its functions need unless it is the last one."""
        if options:
            named, costs, methods = self._options(options)
        else:
            named, costs, methods = self._defaults, self._costs or None, self._methods
        try:
            event = _begin(
                _START,
                self._engine,
                self._agent(program),
                _NONE if args is None else args,
                named,
                self._direct,
                costs,
                alone,
            )
        except Failure as found:
            raise failure(found, program if isinstance(program, str) else None) from None
        if event[0] == 0:
            return event, None
        return event, Session(self._atoms, methods, args, options, self._capabilities)

    def start(
        self,
        program: AnyProgram,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[RunOptions],
    ) -> Steps:
        """Starts a run whose events the caller handles, calls of atoms included."""
        return self._steps(_START, program, _NONE if args is None else args, options)

    def restore(self, program: AnyProgram, snapshot: bytes, **options: Unpack[RunOptions]) -> Steps:
        """Continues a run from the bytes of `Steps.snapshot`, here or in another process."""
        return self._steps(_RESTORE, program, bytes(snapshot), options)

    def _steps(self, op: int, program: AnyProgram, given: Any, options: Any) -> Steps:
        from ._steps import Steps

        named, costs, methods = self._options(options)
        agent = self._agent(program)
        try:
            event = _begin(op, self._engine, agent, given, named, _NO_DIRECT, costs, False)
        except Failure as found:
            raise failure(found, program if isinstance(program, str) else None) from None
        args = given if op == _START else None
        return Steps(Session(self._atoms, methods, args, options, self._capabilities), event)

    # Descriptions.

    def tools(
        self, form: ToolForm = "openai", filter: Literal["all", "flow"] | Iterable[str] = "all"
    ) -> list[dict[str, Any]]:
        """The atoms as tools of a model."""
        names = filter if isinstance(filter, str) else list(filter)
        tools: list[dict[str, Any]] = _checked(_TOOLS, self._engine, names, form)
        return tools

    def atoms(self) -> list[dict[str, Any]]:
        """All atoms with their documentation, schemas and prices."""
        atoms: list[dict[str, Any]] = _checked(_ATOMS, self._engine)
        return atoms

    def prompt(self, form: PromptForm = "short") -> str:
        """A system prompt that teaches a model to write programs."""
        prompt: str = _checked(_PROMPT, self._engine, form)
        return prompt

    def declarations(self) -> str:
        """Types of the atoms for editors of the JavaScript form, in TypeScript."""
        declarations: str = _checked(_DECLARATIONS, self._engine)
        return declarations

    # Parts.

    def _agent(self, program: AnyProgram) -> Any:
        """The handle of a program, or the program for the engine, which keeps compiled ones by
        content."""
        if type(program) is Program and program._vm is self:
            return program._handle
        if isinstance(program, (str, dict)):
            return program
        if isinstance(program, Agent):
            return program.to_dict()
        data = program.to_bytes() if isinstance(program, Program) else program
        if not isinstance(data, (bytes, bytearray, memoryview)):
            # The extension says why it is no value.
            return data
        data = bytes(data)
        loaded = self._loaded.pop(data, None) or self.load(data)
        self._loaded[data] = loaded
        if len(self._loaded) > _LOADED:
            del self._loaded[next(iter(self._loaded))]
        return loaded._handle

    def _options(self, options: Any) -> tuple[dict[str, Any], Any, dict[str, Callable[..., Any]]]:
        """The engine's options, price functions and methods of capabilities."""
        named: dict[str, Any] = {}
        costs: dict[str, Callable[..., Any]] = self._costs
        methods = self._methods
        for name, value in options.items():
            if value is None:
                continue
            if (known := _NAMES.get(name)) is not None:
                named[known] = value
            elif name == "costs":
                functions = {op: cost for op, cost in value.items() if callable(cost)}
                named["costOverrides"] = {
                    op: cost for op, cost in value.items() if not callable(cost)
                }
                if functions:
                    named["costFns"] = list(functions)
                    costs = {**costs, **functions}
            elif name == "timeouts":
                named["timeoutOverrides"] = {
                    op: 0 if ms is None else ms for op, ms in value.items()
                }
            elif name == "context":
                # Functions in it are for atoms of the host only.
                plain = (
                    value
                    if not isinstance(value, Mapping)
                    else {key: member for key, member in value.items() if not callable(member)}
                )
                named["context"] = plain
            elif name == "on_event":
                named["events"] = True
            elif name == "capabilities":
                methods = capability_table(value)
            else:
                known = ", ".join(sorted([*_NAMES, *_OWN]))
                raise TypeError(f"a run has no option '{name}'; it has {known}")
        if methods:
            named["capabilities"] = list(methods)
        return named, costs or None, methods

    def _inputs(self) -> dict[str, list[str]]:
        """Inputs of each atom, in order."""
        if self._orders is None:
            orders = {}
            for one in self.atoms():
                described = one.get("inputSchema")
                properties = described.get("properties", {}) if isinstance(described, dict) else {}
                orders[one["op"]] = list(properties)
            # Of the language's atoms only this one has alternatives instead of a list.
            orders["return"] = ["schema", "filter", "value"]
            self._orders = orders
        return self._orders


def _checked(op: int, *args: Any) -> Any:
    try:
        return _call(op, *args)
    except Failure as found:
        raise failure(found) from None


_default: VM | None = None


def default_vm() -> VM:
    """A VM without atoms of the host, made at first use."""
    global _default
    if _default is None:
        _default = VM()
    return _default


def transpile(source: str) -> dict[str, Any]:
    """The tree of a program in JavaScript. Raises `CompileError`."""
    found = _checked(_TRANSPILE, default_vm()._engine, source)
    if "diagnostics" in found:
        raise CompileError([Diagnostic._of(one, source) for one in found["diagnostics"]])
    program: dict[str, Any] = found["program"]
    return program


def explain(code: str) -> dict[str, str] | None:
    """What an error code means; None for an unknown one."""
    found = _checked(_EXPLAIN, code)
    return None if found is UNDEFINED else found


version: str = _call(_VERSION)["version"]
