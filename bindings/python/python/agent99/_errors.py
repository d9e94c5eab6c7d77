"""Exceptions and diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _native

BadValue = _native.BadValue
"""A Python object that no program can have. The message has its path."""


@dataclass(frozen=True)
class Diagnostic:
    """A finding about a program. ``str()`` prints it like the command ``a99``."""

    code: str
    severity: str
    message: str
    pointer: str = ""
    help: str | None = None
    offending: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    source_line: str | None = None

    @classmethod
    def _of(cls, found: dict[str, Any], text: str | None) -> Diagnostic:
        line = found.get("line")
        lines = text.split("\n") if text is not None and line else []
        return cls(
            code=found["code"],
            severity=found["severity"],
            message=found["message"],
            pointer=found.get("pointer", ""),
            help=found.get("help"),
            offending=found.get("offending"),
            line=line,
            column=found.get("column"),
            end_line=found.get("endLine"),
            end_column=found.get("endColumn"),
            source_line=lines[line - 1].rstrip("\r") if line and line <= len(lines) else None,
        )

    def __str__(self) -> str:
        out = [f"{self.severity}[{self.code}]: {_shown(self.message)}"]
        place = "  --> program"
        if self.line:
            place += f":{self.line}:{self.column}"
        out.append(place + (f" (at {_shown(self.pointer)})" if self.pointer else ""))
        if self.source_line is not None and self.column:
            number = str(self.line)
            margin = " " * len(number)
            start = max(0, self.column - 41) if len(self.source_line) > 100 else 0
            shown = self.source_line[start : start + 100]
            before = self.column - 1 - start
            end = self.end_column if self.end_line == self.line else None
            width = end - self.column if end else 1
            if not end and self.offending and shown.startswith(self.offending, before):
                width = len(self.offending)
            carets = " " * before + "^" * max(1, min(width, len(shown) - before))
            out += [f"{margin} |", f"{number} | {_shown(shown)}", f"{margin} | {carets}"]
        elif self.offending:
            out.append(f"   | {_shown(self.offending[:200])}")
        if self.help:
            out.append(f"  = help: {_shown(self.help)}")
        return "\n".join(out)


def _shown(text: str) -> str:
    """Escapes what would control a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Agent99Error(Exception):
    """Base of this package's exceptions. ``code`` is stable; ``agent99.explain`` explains it."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return self.message if self.help is None else f"{self.message} (help: {self.help})"


class AgentError(Agent99Error):
    """The error of a run. ``op`` is the atom that failed; ``details`` has all that is known.

    A function of the host may raise it to choose the code that the program sees.
    """

    def __init__(
        self,
        message: str,
        code: str = "program.error",
        *,
        op: str | None = None,
        pointer: str | None = None,
        help: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message, help)
        self.op = op
        self.pointer = pointer
        self.details = details or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _agent_error, (
            self.details,
            self.code,
            self.message,
            self.op,
            self.pointer,
            self.help,
        )


def _agent_error(
    details: dict[str, Any],
    code: str,
    message: str,
    op: str | None,
    pointer: str | None,
    help: str | None,
) -> AgentError:
    return AgentError(message, code, op=op, pointer=pointer, help=help, details=details)


class CompileError(Agent99Error):
    """A program that was rejected. ``str()`` prints all its diagnostics."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        first = next((d for d in diagnostics if d.severity == "error"), None)
        super().__init__(
            first.code if first else "binding.failed",
            first.message if first else "the program was rejected",
            first.help if first else None,
        )
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "\n".join(str(found) for found in self.diagnostics) or self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return CompileError, (self.diagnostics,)


class UsageError(Agent99Error):
    """An option, an argument or an atom's definition that the engine refuses."""

    def __reduce__(self) -> tuple[Any, ...]:
        return UsageError, (self.code, self.message, self.help)


def run_error(found: dict[str, Any]) -> AgentError:
    """The error of a run's last event."""
    return AgentError(
        found.get("message", ""),
        found.get("hostCode") or found.get("code", ""),
        op=found.get("op"),
        pointer=found.get("pointer"),
        help=found.get("help"),
        details=found,
    )


def failure(found: _native.Failure, text: str | None = None) -> Agent99Error:
    """The exception for an operation that failed."""
    info = found.args[0]
    diagnostics = info.get("diagnostics")
    if diagnostics is not None:
        return CompileError([Diagnostic._of(one, text) for one in diagnostics])
    return UsageError(info["code"], info["message"], info.get("help"))


def answer(error: Exception) -> dict[str, Any]:
    """What a program is told about an exception of the host's function."""
    if isinstance(error, Agent99Error):
        told = {"message": error.message, "code": error.code}
        if error.help is not None:
            told["help"] = error.help
        return told
    try:
        message = str(error)
    except Exception:
        message = ""
    return {"message": message or type(error).__name__}


_native.on_exception(answer)
