"""Programs, options, results and errors."""

import gc
import pickle

import pytest

from agent99 import (
    VM, Agent, AgentError, Call, CompileError, Done, Pause, Request, UsageError, Wait, atom, explain, transpile,
)

SOURCE = "export default function agent({ who }) { return { hi: greet({ name: who }) } }"


@atom(cost=5)
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}."


@pytest.fixture(scope="module")
def vm():
    return VM([greet])


def test_every_form_of_a_program(vm):
    builder = vm.agent().greet(Agent.arg("who")).as_("hi").return_({"properties": {"hi": {}}})
    compiled = vm.compile(SOURCE)
    other = VM([greet]).compile(SOURCE)
    forms = [
        SOURCE, builder, builder.to_dict(), builder.to_json(), compiled, compiled.to_bytes(),
        compiled.to_bytes(strip=True), bytearray(compiled.to_bytes()), other, transpile_of(vm),
    ]
    for form in forms:
        result = vm.run(form, {"who": "Ada"})
        assert result.unwrap() == {"hi": "Hello, Ada."}
        assert result.fuel_used > 0 and result.warnings == [] and result.trace is None
    assert vm.load(compiled.to_bytes()).hash == compiled.hash
    assert "greet" in compiled.ops and "greet" in compiled.to_source()


def transpile_of(vm):
    return transpile("export default function agent({ who }) { return { hi: `Hello, ${who}.` } }")


def test_a_rejected_program_prints_like_the_command(vm):
    with pytest.raises(CompileError) as caught:
        vm.run("export default function agent() {\n  const anwser = 1\n  return { answer }\n}")
    assert str(caught.value) == (
        "error[source.unknown_name]: `answer` is not declared\n"
        "  --> program:3:12\n"
        "  |\n"
        "3 |   return { answer }\n"
        "  |            ^^^^^^\n"
        "  = help: did you mean `anwser`?"
    )
    assert caught.value.code == "source.unknown_name"
    assert caught.value.diagnostics[0].line == 3
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == caught.value.diagnostics
    found = vm.check({"op": "seq", "steps": [{"op": "gret"}]})
    assert [(one.severity, one.pointer, one.offending) for one in found] == [("warning", "/steps/0/op", "gret")]
    assert vm.check(SOURCE) == []


def test_errors_of_runs(vm):
    failed = vm.run("export default function agent() { throw new Error('no') }")
    assert failed.result is None
    with pytest.raises(AgentError, match="no") as caught:
        failed.unwrap()
    assert caught.value.code
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    spent = vm.run("export default function agent() { while (true) {} }", fuel=10)
    assert spent.error is not None and spent.error.code == "fuel.exhausted"
    assert explain("fuel.exhausted")["code"] == "fuel.exhausted"
    assert explain("no.such") is None


def test_an_exception_of_an_atom_is_the_error_of_the_step():
    class Silent(Exception):
        pass

    class Broken(Exception):
        def __str__(self):
            raise ValueError

    @atom
    def fails(how: str) -> None:
        if how == "coded":
            raise AgentError("declined", "shop.declined", help="ask again")
        raise {"silent": Silent(), "broken": Broken(), "plain": ValueError("wrong")}[how]

    vm = VM([fails])
    expected = {"silent": "Silent", "broken": "Broken", "plain": "wrong", "coded": "declined"}
    for how, message in expected.items():
        error = vm.run({"op": "seq", "steps": [{"op": "fails", "how": how}]}).error
        assert (error.message, error.op) == (message, "fails")
        assert isinstance(error.__cause__, Exception)
    assert (error.code, error.help) == ("shop.declined", "ask again")


def test_options(vm):
    traced = vm.run(SOURCE, {"who": "x"}, trace=True, costs={"greet": 50})
    assert traced.fuel_used > 50 and "greet" in [event["op"] for event in traced.trace]
    priced = vm.run(SOURCE, {"who": "x"}, costs={"greet": lambda inputs, context: 30 + context["n"]}, context={"n": 2})
    assert 32 < priced.fuel_used < 33
    static = vm.run(SOURCE, {"who": "x"}, costs={"greet": lambda inputs, context: 1 / 0})
    assert 5 < static.fuel_used < 6
    quota = vm.run(SOURCE, {"who": "x"}, quotas={"greet": 0})
    assert quota.error.code == "quota.exceeded"
    assert vm.run(SOURCE, {"who": "x"}, quotas={"greet": 3}).quota_used == {"greet": 1}
    late = vm.run("export default function agent() { while (true) {} }", fuel=1e9, timeout_ms=30)
    assert late.error is not None and "timeout" in late.error.code
    with pytest.raises(TypeError, match="no option 'fule'"):
        vm.run(SOURCE, {}, fule=3)
    with pytest.raises(UsageError, match="fuel"):
        vm.run(SOURCE, {}, fuel="much")
    with pytest.raises(UsageError, match="capability `fetsh`"):
        vm.run(SOURCE, {}, capabilities={"fetsh": print})


def test_only_and_without():
    without = VM(without=["httpFetch"])
    program = {"op": "seq", "steps": [{"op": "httpFetch", "url": "x"}]}
    assert [found.code for found in without.check(program)] == ["lint.unknown_atom"]
    assert without.run(program, capabilities={"fetch": print}).error.message == "Unknown Atom: httpFetch"
    assert {one["op"] for one in VM(only=["seq", "return"]).atoms()} == {"seq", "return"}
    with pytest.raises(UsageError, match="did you mean|no atom"):
        VM(only=["seqq"])


def test_capabilities_of_mappings_and_objects():
    kept = {}

    class Store:
        def get(self, key):
            return kept.get(key)

        def set(self, key, value):
            kept[key] = value

    class Capabilities:
        store = Store()

        async def fetch(self, url, options=None):
            return {"url": url}

    program = {
        "op": "seq",
        "steps": [
            {"op": "storeSet", "key": "k", "value": 7},
            {"op": "storeGet", "key": "k", "result": "n"},
            {"op": "httpFetch", "url": "https://example.com/", "result": "page"},
            {"op": "return", "schema": {"properties": {"n": {}, "page": {}}}},
        ],
    }
    expected = {"n": 7, "page": {"url": "https://example.com/"}}
    assert VM().run(program, capabilities=Capabilities()).unwrap() == expected
    store = {"get": kept.get, "set": kept.__setitem__}
    assert VM(capabilities={"store": store, "fetch": Capabilities().fetch}).run(program).unwrap() == expected

    def broken(url, options=None):
        raise OSError("unreachable")

    failed = VM().run({"op": "seq", "steps": [{"op": "httpFetch", "url": "x"}]}, capabilities={"fetch": broken})
    assert "unreachable" in failed.error.message
    assert isinstance(failed.error.__cause__, OSError)


def test_a_run_within_a_run(vm):
    def agent_run(agent_id, input):
        assert agent_id == "a"
        return vm.run(SOURCE, input)

    program = {
        "op": "seq",
        "steps": [
            {"op": "agentRun", "agentId": "a", "input": {"who": "Bo"}, "result": "r"},
            {"op": "return", "schema": {"properties": {"r": {}}}},
        ],
    }
    result = vm.run(program, capabilities={"agent": {"run": agent_run}})
    assert result.unwrap() == {"r": {"hi": "Hello, Bo."}}


def test_steps_and_snapshots(vm):
    program = "export default function agent({ who }) { const a = greet({ name: who })\n return { a } }"
    run = vm.start(program, {"who": "Ada"})
    assert isinstance(run.event, Call)
    assert (run.event.op, run.event.input) == ("greet", {"name": "Ada"})
    call = run.event
    assert isinstance(run.next(), Wait)
    data = run.snapshot()
    assert isinstance(run.answer(call.id, "Hi", charge=10, warnings=["odd"]), Done)
    assert run.done.unwrap() == {"a": "Hi"}
    assert run.done.warnings == ["odd"] and run.done.fuel_used > 15
    with pytest.raises(ValueError, match="over"):
        run.next()

    again = VM([greet]).restore(program, data)
    assert isinstance(again.event, Call)
    assert again.invoke().result.unwrap() == {"a": "Hello, Ada."}
    failing = vm.start(program, {"who": "x"})
    assert failing.fail(failing.event.id, "not today").result.error.message == "not today"
    aborted = vm.start(program, {"who": "x"}).abort()
    assert aborted.error is not None
    long = vm.start("export default function agent() { while (true) {} }", fuel=1e9)
    assert isinstance(long.event, Pause)
    asks = vm.start({"op": "seq", "steps": [{"op": "storeGet", "key": "k"}]}, capabilities={"store": {"get": print}})
    assert isinstance(asks.event, Request) and (asks.event.method, asks.event.args) == ("store.get", ["k"])
    with pytest.raises(UsageError):
        vm.restore(program, b"no snapshot")


def test_descriptions(vm):
    tool = vm.tools("openai", ["greet"])[0]["function"]
    assert tool["name"] == "greet" and tool["description"] == "Greets somebody."
    for form in ("anthropic", "gemini", "mcp", "openai-strict"):
        assert vm.tools(form, ["greet"])
    assert any(one["op"] == "greet" and one["cost"] == 5 for one in vm.atoms())
    assert "greet" in vm.declarations()
    assert all(vm.prompt(form) for form in ("short", "full", "source"))


def test_vms_and_programs_are_freed():
    for _ in range(200):
        vm = VM([greet])
        program = vm.compile(SOURCE)
        assert program.run({"who": "x"}).error is None
        del vm, program
    gc.collect()


def test_events():
    seen = []
    program = {
        "op": "seq",
        "steps": [{"op": "streamChunk", "data": "a"}, {"op": "consoleLog", "message": "b"}, {"op": "streamChunk", "data": "c"}],
    }
    assert VM().run(program, on_event=seen.append).error is None
    chunks = [event for event in seen if "a" in event.values() or "c" in event.values()]
    assert len(chunks) == 2, seen
