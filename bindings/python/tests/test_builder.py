"""The builder."""

import copy

import pytest

from agent99 import VM, Agent, atom


def test_names_and_bodies():
    program = (
        Agent.take({"type": "object"})
        .var_set("n", 0)
        .varSet(key="list", value=[])
        .while_("n < 3", lambda b: b.math_calc("n + 1", {"n": "n"}).as_("n"))
        .if_("n == 3", lambda b: b.var_set("is", "three"), lambda b: b.var_set("is", "other"))
        .map([1, 2], "x", lambda b: b.math_calc("x * 2", {"x": "x"}).as_("result"))
        .as_const("doubled")
        .try_(lambda b: b.Error(["no"]), lambda b: b.var_set("caught", "error"))
        .vars_let(a=1, snake_case=2)
        .return_({"properties": {"n": {}, "is": {}, "doubled": {}, "snake_case": {}}})
    )
    assert VM().run(program).unwrap() == {"n": 3, "is": "three", "doubled": [2, 4], "snake_case": 2}
    assert program.to_dict()["steps"][2]["op"] == "while"


def test_helpers_schemas_and_calls():
    program = (
        Agent()
        .version(4)
        .input_schema(
            {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        )
        .helper(
            "twice", ["x"], lambda b: b.math_calc("x * 2", {"x": "x"}).as_("y").return_(value="y")
        )
        .call_local("twice", [Agent.arg("n")])
        .as_("r")
        .return_(value="r")
    )
    vm = VM()
    assert vm.run(program, {"n": 4}).unwrap() == 8
    assert vm.run(program, {"n": "x"}).error.code == "args.invalid"
    assert vm.compile(program).input_schema["required"] == ["n"]
    each = (
        Agent()
        .call_all(items=[1, 2], as_="i", call=lambda b: b.store_get("k"))
        .as_("r")
        .return_(value="r")
    )
    assert each.to_dict()["steps"][0]["call"] == {"op": "storeGet", "key": "k"}


def test_atoms_of_a_vm():
    @atom
    def greet_all(first_name: str) -> str:
        return first_name

    vm = VM([greet_all])
    program = vm.agent().greet_all(first_name="a").as_("r").return_({"properties": {"r": {}}})
    assert vm.run(program).unwrap() == {"r": "a"}
    assert "greet_all" in dir(vm.agent()) and "storeGet" in dir(Agent())


def test_mistakes():
    with pytest.raises(AttributeError, match="no atom 'gret'"):
        Agent().gret()
    with pytest.raises(ValueError, match="No step"):
        Agent().as_("x")
    with pytest.raises(TypeError, match="takes key, value"):
        Agent().var_set(1, 2, 3)
    with pytest.raises(TypeError, match="twice"):
        Agent().var_set("a", key="b")
    with pytest.raises(TypeError, match="belongs to the step"):
        Agent().atom("x", result="y")
    with pytest.raises(ValueError, match="only the root"):
        Agent().seq(lambda b: b.version(4))
    with pytest.raises(TypeError, match="return its builder"):
        Agent().seq(lambda b: None)
    assert copy.copy(Agent().uuid()).to_dict() == Agent().uuid().to_dict()
