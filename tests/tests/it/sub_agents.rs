//! Sub-agents of a registry: names, budgets that nest, and what is told of them.

use a99_core::json::{Document, Limits};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_testkit::oracle::{self, Answer, OracleHost, OracleOptions, OracleOutcome};
use agent99::account::{Account, AccountLimits, Usage};
use agent99::artifact::EncodeOptions;
use agent99::capabilities::{Capabilities, ScriptedAi};
use agent99::{AgentRegistry, Engine, ErrorCode, Fuel, Outcome, RunOptions, Share, SubAgent, json};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::Value as Json;
use std::sync::{Arc, LazyLock};

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::new);

fn program(steps: &Json) -> agent99::Agent {
    ENGINE.compile(text(steps)).expect("a program")
}

fn agent(id: &str) -> Json {
    json!({"op": "agentRun", "agentId": id, "input": {"n": 1}, "result": "r"})
}

fn ret() -> Json {
    json!({"op": "return", "value": "r"})
}

/// Work of about so many units.
fn work(units: u32) -> Json {
    json!({"op": "reduce", "items": vec![1; 17 * units as usize], "as": "x", "accumulator": "sum",
        "initial": 0, "steps": [{"op": "mathCalc", "expr": "sum + x", "result": "result"}],
        "result": "r"})
}

fn forever() -> Json {
    json!({"op": "while", "condition": "1 == 1", "body": [{"op": "varSet", "key": "x", "value": 1}]})
}

fn units(units: f64) -> Fuel {
    Fuel::from_decimal(units).expect("an amount")
}

/// Runs steps that call these agents.
fn run_with(
    agents: Vec<(&str, SubAgent)>,
    granted: Capabilities,
    steps: &Json,
    options: RunOptions,
) -> Outcome {
    let mut registry = AgentRegistry::builder(&ENGINE).granted(granted);
    for (name, agent) in agents {
        registry = registry.sub_agent(name, agent);
    }
    let registry = registry.build().expect("a registry");
    let main = program(steps);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(ENGINE.run(&main, json!({}), options, registry.capabilities()))
}

fn run(agents: Vec<(&str, SubAgent)>, steps: &Json, fuel: f64) -> Outcome {
    let options = RunOptions::new().fuel(fuel).expect("fuel");
    run_with(agents, Capabilities::none(), steps, options)
}

fn sub(steps: &Json) -> SubAgent {
    SubAgent::new(program(steps))
}

fn message(outcome: &Outcome) -> String {
    let error = outcome.error.as_ref().expect("an error");
    error.message.to_string()
}

#[test]
fn agents_are_found_by_name_and_hash() {
    let steps = json!([{"op": "return", "value": {"=": "n + 1"}}]);
    let hash = program(&steps).hash().expect("a hash");
    for id in ["next", &hash] {
        let outcome = run(
            vec![("next", sub(&steps))],
            &json!([agent(id), ret()]),
            100.0,
        );
        assert_eq!(outcome.result, 2.0.into());
        let usage = outcome.usage.expect("a call");
        assert_eq!((usage.spent.calls, &*usage.children[0].name), (1, "next"));
    }
    let outcome = run(vec![("next", sub(&steps))], &json!([agent("nxt")]), 100.0);
    assert_eq!(
        message(&outcome),
        "agentRun: no agent is called `nxt`; did you mean `next`?"
    );
    for name in ["", "proc_1", "sha256:00"] {
        let registry = AgentRegistry::builder(&ENGINE).sub_agent(name, sub(&steps));
        assert!(registry.build().is_err(), "{name}");
    }
    let twice = AgentRegistry::builder(&ENGINE).sub_agent("a", sub(&steps));
    assert!(twice.sub_agent("a", sub(&steps)).build().is_err());
}

#[test]
fn what_an_agent_uses_its_caller_pays_whatever_came_of_it() {
    let good = sub(&json!([work(50), ret()]));
    let bad = sub(&json!([work(50), {"op": "Error", "args": ["no"]}]));
    let caught = json!([{"op": "try", "try": [agent("bad")], "catch": []}, agent("good"), ret()]);
    let outcome = run(vec![("good", good), ("bad", bad)], &caught, 1_000.0);
    assert_eq!(outcome.error, None);
    let usage = outcome.usage.expect("calls");
    let used: Vec<f64> = usage.children.iter().map(|c| c.fuel.to_f64()).collect();
    assert!(used.iter().all(|used| *used > 50.0), "{used:?}");
    assert!(outcome.fuel_used.to_f64() >= used.iter().sum());
    assert_eq!((usage.children[0].failed, usage.children[1].failed), (1, 0));
}

#[test]
fn shares_bound_an_agent() {
    let endless = || sub(&json!([forever()]));
    let steps = json!([{"op": "try", "try": [agent("a")], "catch": []}]);
    for (share, most, paid) in [
        (Share::AtMost(units(20.0)), 20.0, true),
        (Share::Part(0.25), 25.0, true),
        (Share::Own(units(500.0)), 500.0, false),
    ] {
        let outcome = run(vec![("a", endless().share(share))], &steps, 100.0);
        assert_eq!(outcome.error, None, "{share:?}");
        let used = outcome.usage.expect("a call").children[0].fuel.to_f64();
        assert!(
            (most - 1.0..most + 0.5).contains(&used),
            "{share:?}: {used}"
        );
        let all = outcome.fuel_used.to_f64();
        assert_eq!(all > used, paid, "{share:?}: {all}");
    }
    let outcome = run(vec![("a", endless())], &steps, 100.0);
    assert_eq!(outcome.error.expect("the end").code, ErrorCode::OutOfFuel);
    let half = SubAgent::new(program(&json!([]))).share(Share::Part(1.5));
    let registry = AgentRegistry::builder(&ENGINE).sub_agent("a", half);
    assert!(registry.build().is_err());
}

#[test]
fn agents_that_call_each_other_in_circles_end() {
    let to = |id: &str| sub(&json!([agent(id), ret()]));
    let agents = || vec![("a", to("b")), ("b", to("a"))];
    let outcome = run(agents(), &json!([agent("a")]), 1_000_000.0);
    assert!(message(&outcome).starts_with("Agent depth limit exceeded"));
    let mut depth = 0;
    let mut at = &*outcome.usage.expect("calls");
    while let Some(next) = at.children.first() {
        depth += 1;
        at = next;
    }
    assert_eq!(depth, 10);
}

#[test]
fn a_result_that_looks_like_a_run_is_a_result() {
    let steps = json!([{"op": "return", "value": {"fuelUsed": 0, "error": {"message": "mine"}}}]);
    let outcome = run(vec![("a", sub(&steps))], &json!([agent("a"), ret()]), 100.0);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.result.to_json()["error"]["message"], "mine");
}

#[test]
fn agents_share_accounts_of_calls_and_tokens() {
    let ask = json!({"op": "llmPredict", "prompt": "Say something that is short.", "result": "r"});
    let agents = || {
        let one = AccountLimits {
            calls: Some(2),
            ..AccountLimits::default()
        };
        vec![("a", sub(&json!([ask, ask, ask, ret()])).limits(one))]
    };
    let model = Arc::new(ScriptedAi::replies(["a", "b", "c", "d"]));
    let granted = Capabilities::none().with_ai(model.clone());
    let steps = json!([{"op": "try", "try": [agent("a")], "catch": []}, agent("a")]);
    let outcome = run_with(agents(), granted, &steps, RunOptions::new());
    assert_eq!(message(&outcome), "the budget of calls of `a` is used up");
    assert_eq!(model.requests().len(), 4, "two for each");
    let usage = outcome.usage.expect("calls");
    assert_eq!(usage.spent.calls, 6);
    assert!(usage.spent.tokens > 0);
    assert_eq!(
        usage.spent.tokens,
        usage.children.iter().map(|c| c.spent.tokens).sum::<u64>()
    );
    // The run's own account bounds all of them, and what it ends it does not catch.
    let limits = AccountLimits {
        calls: Some(1),
        ..AccountLimits::default()
    };
    let account = Account::new("main", limits);
    let steps = json!([{"op": "try", "try": [ask, ask], "catch": []}]);
    let granted = Capabilities::none().with_ai(ScriptedAi::replies(["a", "b"]));
    let options = RunOptions::new().account(account.clone());
    let outcome = run_with(vec![], granted, &steps, options);
    assert_eq!(outcome.error.expect("the end").code, ErrorCode::Budget);
    assert_eq!(account.usage().failed, 1);
}

/// What a random agent does after some work.
#[derive(Clone, Debug)]
enum Then {
    Returns,
    Fails,
    Never,
    Calls(Vec<usize>),
    CallsAll(Vec<usize>),
}

fn then() -> impl Strategy<Value = Then> {
    let some = proptest::collection::vec(0..5_usize, 1..4);
    prop_oneof![
        3 => Just(Then::Returns),
        1 => Just(Then::Fails),
        1 => Just(Then::Never),
        2 => some.clone().prop_map(Then::Calls),
        2 => some.prop_map(Then::CallsAll),
    ]
}

fn steps(then: &Then, busy: u32) -> Json {
    let caught = |step: Json| json!({"op": "try", "try": [step], "catch": []});
    let mut steps = vec![work(busy)];
    match then {
        Then::Returns => {}
        Then::Fails => steps.push(json!({"op": "Error", "args": ["no"]})),
        Then::Never => steps.push(forever()),
        Then::Calls(ids) => steps.extend(ids.iter().map(|id| caught(agent(&format!("a{id}"))))),
        Then::CallsAll(ids) => {
            let calls = ids
                .iter()
                .map(|id| json!({"op": "agentRun", "agentId": format!("a{id}"), "input": {}}));
            steps.push(json!({"op": "callAll", "calls": calls.collect::<Vec<_>>(), "result": "r"}));
        }
    }
    steps.push(ret());
    Json::Array(steps)
}

/// The agents of a tree on the oracle, which charges by itself what they use.
struct OnOracle {
    agents: Arc<Vec<(Document, Share)>>,
    depth: u32,
    offered: Fuel,
    used: Fuel,
}

impl OnOracle {
    fn new(agents: Arc<Vec<(Document, Share)>>, depth: u32) -> OnOracle {
        OnOracle {
            agents,
            depth,
            offered: Fuel::ZERO,
            used: Fuel::ZERO,
        }
    }

    fn run(&mut self, document: &Document, args: &Value, fuel: Fuel) -> OracleOutcome {
        let options = OracleOptions {
            fuel,
            agent_depth: self.depth,
            ..OracleOptions::default()
        };
        oracle::run(document, args, &options, self).expect("a program")
    }

    fn agent(&mut self, id: &Value, input: &Value) -> Result<Value, Text> {
        let id = id.as_str().and_then(|id| id.strip_prefix('a'));
        let at: usize = id.and_then(|id| id.parse().ok()).expect("an agent");
        let agents = Arc::clone(&self.agents);
        let (document, share) = &agents[at];
        let fuel = match share {
            Share::Part(part) => Fuel::from_micro((self.offered.micro() as f64 * part) as i64),
            Share::AtMost(most) => self.offered.min(*most),
            _ => self.offered,
        };
        let outcome = OnOracle::new(agents.clone(), self.depth + 1).run(document, input, fuel);
        self.used = outcome.fuel_used;
        match outcome.error {
            Some(error) => Err(error.message),
            None => Ok(outcome.result),
        }
    }
}

impl OracleHost for OnOracle {
    fn provides(&self, method: &str) -> bool {
        method == "agent.run"
    }

    fn call(&mut self, _: &str, args: Vec<Value>) -> Answer {
        self.used = Fuel::ZERO;
        Answer {
            result: self.agent(&args[0], &args[1]),
            delay_ms: 0.0,
        }
    }

    fn offered(&mut self, fuel: Fuel) {
        self.offered = fuel;
    }

    fn used(&mut self) -> Fuel {
        std::mem::take(&mut self.used)
    }

    fn atom(&mut self, op: &str, _: Value) -> Answer {
        panic!("no atom {op}")
    }
}

/// What all agents below used of their own is what the one above them was charged.
fn nests(usage: &Usage) -> bool {
    let below: i64 = usage.children.iter().map(|c| c.fuel.micro()).sum();
    let calls: u64 = usage.children.iter().map(|c| c.spent.calls).sum();
    below <= usage.fuel.micro() && calls <= usage.spent.calls && usage.children.iter().all(nests)
}

fn shared(share: u8) -> Share {
    match share {
        0 => Share::Part(0.5),
        1 => Share::AtMost(units(60.0)),
        _ => Share::All,
    }
}

fn text(steps: &Json) -> String {
    json!({"a99": 4, "op": "seq", "steps": steps}).to_string()
}

fn document(steps: &Json) -> Document {
    Document::parse(text(steps), &Limits::default()).expect("JSON")
}

/// The agent as its artifact has it.
fn from_file(agent: &agent99::Agent) -> agent99::Agent {
    let bytes = agent
        .to_bytes(&EncodeOptions::default())
        .expect("an artifact");
    ENGINE.load(&bytes).expect("an artifact")
}

/// An agent of a tree: what it does, after work of so many units, with which share.
type Random = (Then, u32, u8);

/// Options of a run that a busy machine does not cut off: without them a small budget is a
/// short time, too.
fn unhurried() -> RunOptions {
    RunOptions::new().timeout_ms(60_000)
}

/// Runs a tree twice and on the oracle: all agree, and what agents used nests.
fn budgets_nest(agents: &[Random], main: &[usize], fuel: u32) -> Result<(), TestCaseError> {
    let made = agents.iter().enumerate().map(|(at, (then, busy, share))| {
        // Every other agent comes from a file.
        let agent = match at % 2 {
            0 => program(&steps(then, *busy)),
            _ => from_file(&program(&steps(then, *busy))),
        };
        let agent = SubAgent::new(agent).share(shared(*share));
        (format!("a{at}"), agent.options(unhurried()))
    });
    let made: Vec<(String, SubAgent)> = made.collect();
    let shares = agents.iter().map(|(_, _, share)| shared(*share));
    let programs = (agents.iter()).map(|(then, busy, _)| document(&steps(then, *busy)));
    let on_oracle = Arc::new(programs.zip(shares).collect::<Vec<_>>());
    let named = || {
        let named = made
            .iter()
            .map(|(name, agent)| (name.as_str(), agent.clone()));
        named.collect()
    };
    let main = steps(&Then::Calls(main.to_vec()), 1);
    let run = || {
        let options = unhurried().fuel(f64::from(fuel)).expect("fuel");
        run_with(named(), Capabilities::none(), &main, options)
    };
    let outcome = run();
    // A budget may be passed by the last price.
    prop_assert!(outcome.fuel_used.to_f64() < f64::from(fuel) + 50.0);
    let usage = outcome.usage.expect("calls");
    prop_assert!(nests(&usage), "{usage:?}");
    prop_assert_eq!(usage.fuel, outcome.fuel_used);
    // Once more the same.
    let again = run();
    prop_assert_eq!(again.fuel_used, outcome.fuel_used);
    let code = outcome.error.map(|e| e.code);
    prop_assert_eq!(again.error.map(|e| e.code), code);
    // And on the oracle.
    let whole = units(f64::from(fuel));
    let third = OnOracle::new(on_oracle, 0).run(&document(&main), &Value::Undefined, whole);
    prop_assert_eq!(third.fuel_used, outcome.fuel_used);
    prop_assert_eq!(third.error.map(|e| e.code), code);
    let error = third
        .result
        .as_object()
        .and_then(|error| error.get("message"));
    if error.is_none() {
        prop_assert_eq!(third.result, outcome.result);
    }
    Ok(())
}

/// What failed among several calls was charged with the first answer, so that what that
/// cost itself was lost where it was not enough.
#[test]
fn calls_of_callall_that_fail_are_paid_before_the_answers() {
    use Then::{Calls, CallsAll, Returns};
    let agents = [
        (CallsAll(vec![0, 1]), 0, 1),
        (Returns, 4, 1),
        (Returns, 0, 0),
        (Calls(vec![4]), 0, 2),
        (CallsAll(vec![0]), 0, 0),
    ];
    budgets_nest(&agents, &[3], 90).expect("the same");
    let agents = [
        (CallsAll(vec![0, 0]), 0, 1),
        (Returns, 28, 2),
        (Calls(vec![1, 1]), 6, 0),
        (Calls(vec![4]), 29, 2),
        (CallsAll(vec![4, 0]), 23, 3),
    ];
    budgets_nest(&agents, &[3, 1], 1_657).expect("the same");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn budgets_of_random_trees_nest(
        agents in proptest::collection::vec((then(), 0..40_u32, 0..4_u8), 5),
        main in proptest::collection::vec(0..5_usize, 1..4),
        fuel in 50..2_000_u32,
    ) {
        budgets_nest(&agents, &main, fuel)?;
    }
}
