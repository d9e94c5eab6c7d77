from collections.abc import Callable, Mapping
from typing import Any, final

@final
class Undefined:
    def __bool__(self) -> bool: ...

UNDEFINED: Undefined

class Failure(Exception):
    args: tuple[dict[str, Any]]

class BadValue(TypeError): ...



@final
class Run:
    def elapsed(self) -> float: ...
    def next(self) -> tuple[Any, ...]: ...
    def answer(self, id: object, ok: bool, value: object, extra: object) -> tuple[Any, ...]: ...
    def abort(self) -> tuple[Any, ...]: ...
    def snapshot(self) -> bytes: ...
    def free(self) -> None: ...

@final
class Direct:
    def __init__(
        self, functions: Mapping[str, tuple[Callable[..., object], list[str] | None]]
    ) -> None: ...

@final
class Host:
    def __init__(self) -> None: ...
    def call(self, op: int, *args: object) -> Any: ...
    def begin(
        self,
        op: int,
        engine: object,
        agent: object,
        input: object,
        options: object,
        direct: Direct,
        costs: Mapping[str, Callable[..., object]] | None,
        inline: bool,
    ) -> tuple[Any, ...]: ...

def on_other(hook: Callable[[object], object]) -> None: ...
def on_exception(hook: Callable[[Exception], object]) -> None: ...
