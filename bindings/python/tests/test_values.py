"""Values that cross: both ways, and what is refused."""

import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import math
import pickle
import uuid

import pytest

from agent99 import UNDEFINED, VM, BadValue, atom

ECHO = {"op": "seq", "steps": [{"op": "return", "value": {"$kind": "arg", "path": "v"}}], "a99": 4}


@pytest.fixture(scope="module")
def vm():
    return VM()


def echo(vm, value):
    return vm.run(ECHO, {"v": value}).unwrap()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        1,
        -1,
        2**53,
        -(2**53),
        1.5,
        "",
        "text",
        "ü€😀",
        "\ud800 alone",
        "\udc00\ud800",
        [],
        [1, [2, [3]]],
        {},
        {"b": 1, "a": {"z": None}},
        {"": 0, "__proto__": 1, "\ud801": 2},
    ],
)
def test_the_same_value_returns(vm, value):
    found = echo(vm, value)
    assert found == value
    assert type(found) is type(value)
    if isinstance(value, dict):
        assert list(found) == list(value)


def test_numbers(vm):
    assert math.isnan(echo(vm, math.nan))
    assert echo(vm, math.inf) == math.inf
    minus = echo(vm, -0.0)
    assert isinstance(minus, float) and math.copysign(1, minus) == -1
    assert isinstance(echo(vm, 3.0), int)
    assert isinstance(echo(vm, 1e300), float)


def test_a_pair_of_surrogates_is_one_character(vm):
    assert echo(vm, "\ud83d\ude00") == "😀"


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    y: list


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, "a"), [1, "a"]),
        ({7}, [7]),
        (frozenset(), []),
        (Point(1, [Point(2, [])]), {"x": 1, "y": [{"x": 2, "y": []}]}),
        (Pair(1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.ChainMap({"a": 1}), {"a": 1}),
        (
            datetime.datetime(2024, 2, 29, 12, 0, 1, 5678, datetime.timezone.utc),
            "2024-02-29T12:00:01.005Z",
        ),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (UNDEFINED, None),
    ],
)
def test_other_types(vm, value, expected):
    assert echo(vm, value) == expected


def test_an_ordered_dict_keeps_its_own_order(vm):
    moved = collections.OrderedDict(a=1, b=2)
    moved.move_to_end("a")
    assert list(echo(vm, moved)) == ["b", "a"]


def cyclic():
    value = {"list": [1]}
    value["list"].append(value)
    return value


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


class Raises(collections.abc.Mapping):
    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 1

    def items(self):
        raise RuntimeError("no items")


class Endless(dict):
    def items(self):
        while True:
            yield "a" * 1_000_000, 1


class Odd(dict):
    def items(self):
        return [(1, 2, 3)]


class Shape:
    def __init__(self, model):
        self.model = model

    def model_dump(self):
        return self.model


def endless_model():
    class Model:
        def model_dump(self):
            return Model()

    return Model()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2**53 + 1, "args.v: an int beyond 2**53"),
        ({"a": [1, 10**400]}, "args.v.a[1]: an int beyond"),
        ({1: 2}, "args.v: a key is int"),
        ({"a b": {None: 1}}, 'args.v["a b"]: a key is NoneType'),
        (cyclic(), "args.v.list[1]: dict contains itself"),
        (deep(), "more than 512 levels"),
        ([b"x"], "args.v[0]: bytes is no value"),
        (object(), "args.v: object is no value"),
        (decimal.Decimal(1), "Decimal is no value"),
        (print, "functions are atoms"),
        ([Raises()], "args.v[0]: reading Raises raised RuntimeError: no items"),
        (Endless(), "more than 256 MiB"),
        (Odd(), "args.v: reading Odd raised ValueError"),
        (Shape({"x": 2**60}), "args.v.x: an int beyond"),
        (endless_model(), "more than 512 levels"),
    ],
)
def test_what_is_refused_has_a_path(vm, value, words):
    with pytest.raises(BadValue) as caught:
        echo(vm, value)
    assert words in str(caught.value)


def test_a_dict_that_changes_while_it_is_read(vm):
    outer = {}

    class Changes(dict):
        def items(self):
            for name in range(100):
                outer[f"n{name}"] = name
            return [("a", 1)]

    outer.update(a=Changes(), b=2)
    with pytest.raises(BadValue, match="the dict changed"):
        echo(vm, outer)


def test_a_list_that_changes_while_it_is_read(vm):
    outer = []

    class Changes(dict):
        def items(self):
            outer.clear()
            return []

    outer.extend([Changes(), 1, 2])
    with pytest.raises(BadValue, match=r"args\.v: the list changed"):
        echo(vm, outer)


def test_an_interrupt_while_reading_is_not_swallowed(vm):
    class Stops(dict):
        def items(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        echo(vm, [Stops()])


def test_undefined():
    seen = []

    @atom
    def note(a: object = "default", b: object = None) -> object:
        seen.append((a, b))
        return {"u": UNDEFINED, "n": None}

    vm = VM([note])
    result = vm.run(
        "export default function agent() { return note({ a: undefined, b: [undefined] }) }"
    )
    assert seen == [("default", [UNDEFINED])]
    assert result.result == {"u": UNDEFINED, "n": None}
    assert not UNDEFINED and copy.deepcopy(UNDEFINED) is UNDEFINED
    assert pickle.loads(pickle.dumps(UNDEFINED)) is UNDEFINED
    assert vm.run("export default function agent() { return undefined }").result is None


def test_a_bad_result_of_an_atom_fails_its_call():
    @atom
    def huge() -> object:
        return {"n": [2**70]}

    vm = VM([huge])
    error = vm.run({"op": "seq", "steps": [{"op": "huge"}]}).error
    assert error is not None and error.op == "huge"
    assert "result.n[0]: an int beyond 2**53" in error.message
    caught = vm.run(
        "export default function agent() { try { huge({}) } catch (e) { return { e: e.message } } }"
    )
    assert "beyond 2**53" in str(caught.unwrap())


def test_the_engine_limits_what_crosses(vm):
    result = vm.run(ECHO, {"v": "x" * 100}, membrane_max_bytes=50)
    assert result.error is not None
