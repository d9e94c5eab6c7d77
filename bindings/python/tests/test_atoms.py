"""Atoms: schemas from annotations, conversion, contexts."""

import dataclasses
import datetime
import enum
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest

from agent99 import VM, Atom, Context, atom, schema


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Line:
    start: Point
    end: Optional[Point] = None


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclasses.dataclass
class Tree:
    left: "Optional[Tree]"


def test_schemas():
    assert schema(int) == {"type": "integer"}
    assert schema(Optional[str]) == {"type": ["string", "null"]}
    assert schema(Union[int, str]) == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert schema(Literal["a", "b"]) == {"type": "string", "enum": ["a", "b"]}
    assert schema(Colour) == {"type": "string", "enum": ["red", "blue"]}
    assert schema(list[dict[str, int]]) == {
        "type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    assert schema(tuple[int, str])["items"] == [{"type": "integer"}, {"type": "string"}]
    assert schema(Point) == {
        "type": "object",
        "properties": {
            "x": {"type": "number"}, "y": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["x"],
    }
    assert schema(Movie)["properties"] == {"title": {"type": "string"}, "year": {"type": "integer"}}
    assert "required" not in schema(Movie)
    assert schema(Annotated[int, "how many"]) == {"type": "integer", "description": "how many"}
    assert schema(datetime.date) == {"type": "string", "format": "date"}
    assert schema(Any) == {}
    for wrong in (Tree, complex, dict[int, str]):
        with pytest.raises(TypeError):
            schema(wrong)


def run(function, **inputs):
    step = {"op": getattr(function, "op", None) or function.__name__, **inputs, "result": "r"}
    program = {"op": "seq", "steps": [step, {"op": "return", "schema": {"properties": {"r": {}}}}]}
    return VM([function]).run(program).unwrap()["r"]


def test_inputs_become_the_annotated_types():
    @atom
    def show(line: Line, colour: Colour, when: datetime.datetime, seen: set[int], pair: tuple[int, Point]) -> str:
        assert isinstance(line.start, Point) and line.end is None and isinstance(pair[1], Point)
        assert isinstance(seen, set) and when.tzinfo is not None
        return f"{line.start.x} {colour.name} {when.year}"

    found = run(
        show, line={"start": {"x": 1.5}}, colour="red", when="2024-01-02T03:04:05Z", seen=[1, 1], pair=[1, {"x": 1}],
    )
    assert found == "1.5 RED 2024"
    with pytest.raises(Exception, match="colour"):
        run(show, line={"start": {"x": 1}}, colour="green", when="2024-01-02", seen=[], pair=[1, {"x": 1}])


def test_pydantic_models():
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        n: int

    class Outer(pydantic.BaseModel):
        inner: Inner
        names: list[str] = []

    def use(outer: Outer) -> Outer:
        return outer.model_copy(update={"names": [str(outer.inner.n)]})

    use.__annotations__ = {"outer": Outer, "return": Outer}
    assert "$ref" not in str(schema(Outer))
    assert run(use, outer={"inner": {"n": 3}}) == {"inner": {"n": 3}, "names": ["3"]}


def test_the_decorator_keeps_the_function():
    @atom(cost=3, timeout_ms=None, effect="pure", op="plus")
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert isinstance(add, Atom) and add(1) == 3 and add.__name__ == "add"
    described = next(one for one in VM([add]).atoms() if one["op"] == "plus")
    assert described["docs"] == "Adds." and described["effect"] == "pure" and described["timeoutMs"] == 0
    assert described["inputSchema"]["required"] == ["a"]
    assert described["outputSchema"] == {"type": "integer"}
    assert run(add, a=5) == 7


def test_inputs_in_any_order_and_with_gaps():
    def show(a: int, b: int = 2, c: int = 3) -> list[int]:
        return [a, b, c]

    def named(*, a: int, b: int = 2) -> list[int]:
        return [a, b]

    def more(a: int, **others: int) -> dict[str, int]:
        return {"a": a, **others}

    assert run(show, b=5, a=1) == [1, 5, 3]
    assert run(show, a=1) == [1, 2, 3]
    assert run(show, c=9, a=1) == [1, 2, 9]
    assert run(named, b=1, a=4) == [4, 1]
    assert run(more, z=1, a=4) == {"a": 4, "z": 1}
    with pytest.raises(Exception, match="unexpected keyword argument 'd'"):
        run(show, a=1, d=4)
    with pytest.raises(Exception, match="Missing a|missing 1 required|a"):
        run(show, b=1)


def test_methods_lambdas_and_callables():
    class Counter:
        def __init__(self):
            self.n = 0

        @atom(cost=2)
        def count(self, by: int = 1) -> int:
            self.n += by
            return self.n

        @atom
        def show(self, ctx: Context) -> str:
            return f"{ctx.op} {self.n}"

    counter = Counter()
    assert run(counter.count, by=4) == 4 and counter.n == 4
    assert counter.count.cost == 2 and run(counter.show) == "show 4"
    program = {"op": "seq", "steps": [{"op": "twice", "n": 4, "result": "r"}, {"op": "return", "value": "r"}], "a99": 4}
    assert VM({"twice": lambda n: 2 * n}).run(program).unwrap() == 8


def test_contexts():
    seen = {}

    @atom
    def look(ctx: Context, n: int = 1) -> float:
        seen.update(op=ctx.op, args=ctx.args, context=ctx.context, pointer=ctx.pointer, id=ctx.call_id)
        ctx.context["on_chunk"]("called")
        ctx.warnings.append("beware")
        before = ctx.fuel
        ctx.fuel -= 20
        with pytest.raises(ValueError):
            ctx.charge(-1)
        return before

    chunks = []
    program = {"op": "seq", "steps": [{"op": "look", "result": "r"}, {"op": "return", "value": "r"}], "a99": 4}
    context = {"user": "ada", "on_chunk": chunks.append}
    result = VM([look]).run(program, {"a": 1}, context=context, fuel=100)
    assert result.unwrap() < 100 and result.fuel_used > 20 and result.warnings == ["beware"]
    assert chunks == ["called"] and seen["context"] is context and seen["args"] == {"a": 1}
    assert seen["op"] == "look" and seen["pointer"] == "/steps/0"


def test_raw_steps():
    @atom(inputs="raw")
    def raw(step: dict) -> object:
        return step

    assert run(raw, a={"$kind": "arg", "path": "x"}) == {"a": {"$kind": "arg", "path": "x"}}


def test_wrong_definitions_are_errors():
    def positional(a, /):
        return a

    def recursive(tree: Tree):
        return None

    def unreadable(a: complex):
        return a

    for function in (positional, recursive, unreadable):
        with pytest.raises(TypeError):
            VM([function])
    with pytest.raises(TypeError):
        VM([lambda n: n])
    with pytest.raises(Exception, match="effect"):
        VM([atom(effect="none")(lambda: 1, ) if False else Atom(len_of, effect="none")])


def len_of(items: list) -> int:
    return len(items)
