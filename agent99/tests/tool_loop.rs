//! Tool loops: agents as tools under one account, and adversarial models.

use agent99::account::{Account, AccountLimits, Usage};
use agent99::capabilities::ai::{ModelScript, ModelTurn, ScriptedAi, ToolUse, Usage as Tokens};
use agent99::capabilities::{AiProvider, Capabilities, MemoryStore};
use agent99::{AgentRegistry, Engine, ErrorCode, Outcome, RunOptions, SubAgent, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn value(json: &serde_json::Value) -> Value {
    Value::from(json.clone())
}

/// A turn of a model that calls these tools and uses this number of tokens.
fn asks(calls: &[(&str, serde_json::Value)], tokens: u64) -> ModelTurn {
    let tools = calls.iter().enumerate().map(|(at, (name, input))| ToolUse {
        id: format!("c{at}"),
        name: (*name).to_owned(),
        input: value(input),
    });
    ModelTurn {
        tools: tools.collect(),
        usage: Some(Tokens {
            prompt_tokens: tokens,
            completion_tokens: 1,
            ..Tokens::default()
        }),
        ..ModelTurn::default()
    }
}

fn says(text: &str, tokens: u64) -> ModelTurn {
    ModelTurn {
        text: vec![text.to_owned()],
        ..asks(&[], tokens)
    }
}

fn model(turns: Vec<ModelTurn>) -> Arc<ScriptedAi> {
    Arc::new(ScriptedAi::new(ModelScript { turns }))
}

fn granted(model: &Arc<ScriptedAi>) -> Capabilities {
    let mut granted = Capabilities::none().with_store(MemoryStore::new());
    granted.ai = Some(Arc::clone(model) as Arc<dyn AiProvider>);
    granted
}

fn run(engine: &Engine, program: &str, granted: Capabilities, options: RunOptions) -> Outcome {
    let agent = engine.compile(program).expect("a program");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(engine.run(&agent, json!({}), options, granted))
}

fn options(fuel: f64) -> RunOptions {
    let options = RunOptions::new().fuel(fuel).expect("fuel");
    options.timeout_ms(60_000)
}

/// A loop whose tools are two agents.
const BOSS: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "llmToolLoop", "prompt": "Find out.", "result": "talk", "tools": [
        {"agent": "reader", "description": "Reads."},
        {"agent": "writer", "description": "Writes."}
    ]},
    {"op": "return", "value": "talk"}
]}"#;

/// An agent that calls a model once.
const WORKER: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "llmChat", "prompt": "Work.", "result": "said"},
    {"op": "return", "value": {"said": {"$expr": "member",
        "object": {"$expr": "ident", "name": "said"}, "property": "text"}}}
]}"#;

fn boss(turns: Vec<ModelTurn>, tokens: u64) -> (Outcome, Arc<ScriptedAi>) {
    let engine = Engine::new();
    let worker = || SubAgent::new(engine.compile(WORKER).expect("a program"));
    let model = model(turns);
    let registry = AgentRegistry::builder(&engine)
        .granted(granted(&model))
        .sub_agent("reader", worker())
        .sub_agent("writer", worker())
        .build()
        .expect("a registry");
    let limits = AccountLimits {
        tokens: Some(tokens),
        ..AccountLimits::default()
    };
    let options = options(5_000.0).account(Account::new("boss", limits));
    let outcome = run(&engine, BOSS, registry.capabilities(), options);
    (outcome, model)
}

fn usage_of(outcome: &Outcome) -> &Usage {
    outcome.usage.as_deref().expect("a usage")
}

/// Own usage of an account and of its descendants.
fn own_tokens(usage: &Usage) -> u64 {
    let below: u64 = usage.children.iter().map(|child| child.spent.tokens).sum();
    let own = usage
        .spent
        .tokens
        .checked_sub(below)
        .expect("no less than those below");
    own + usage.children.iter().map(own_tokens).sum::<u64>()
}

#[test]
fn a_loop_of_agents_stays_within_its_account() {
    let both = [("reader", json_of("a")), ("writer", json_of("b"))];
    let turns = vec![
        asks(&both, 100),
        says("read", 40),
        says("written", 30),
        says("Done.", 120),
    ];
    let (outcome, model) = boss(turns.clone(), 100_000);
    assert_eq!(outcome.error, None);
    let talk = outcome.result.to_json();
    assert_eq!(talk["text"], "Done.");
    let gave: Vec<_> = talk["calls"].as_array().unwrap().iter().collect();
    assert_eq!(gave[0]["value"]["said"], "read");
    assert_eq!(gave[1]["value"]["said"], "written");
    assert_eq!(
        talk["usage"],
        serde_json::json!({"inputTokens": 220, "outputTokens": 2})
    );
    assert_eq!(model.requests().len(), 4);
    // The sums match: the loop's tokens, and those of each agent below it.
    let usage = *outcome.usage.expect("a usage");
    assert_eq!(usage.spent.tokens, 101 + 41 + 31 + 121);
    assert_eq!(own_tokens(&usage), usage.spent.tokens);
    let below: Vec<u64> = usage
        .children
        .iter()
        .map(|child| child.spent.tokens)
        .collect();
    assert_eq!(below, [41, 31]);

    // Too little for the agents: they fail, and the model gets the errors.
    let (outcome, model) = boss(vec![asks(&both, 300), says("Done.", 5)], 310);
    let message = outcome
        .error
        .as_ref()
        .map(|error| error.message.to_string());
    let message = message.expect("nothing is left for the second round");
    assert!(message.contains("token"), "{message}");
    assert_eq!(
        model.requests().len(),
        1,
        "who has nothing left asks nobody"
    );
    assert!(
        usage_of(&outcome).spent.tokens <= 310,
        "{:?}",
        outcome.usage
    );
}

fn json_of(topic: &str) -> serde_json::Value {
    serde_json::json!({ "topic": topic })
}

/// A loop with a store and the given limits.
fn looping(bounds: &str) -> String {
    format!(
        r#"{{"a99": 4, "op": "seq", "steps": [
        {{"op": "llmToolLoop", "prompt": "x", "result": "talk"{bounds}, "tools": [
            {{"atom": "storeGet"}}, {{"atom": "len"}}]}},
        {{"op": "return", "value": "talk.rounds"}}]}}"#
    )
}

#[test]
fn models_that_ask_for_ever_end() {
    let engine = Engine::new();
    let began = Instant::now();
    let ask = || asks(&[("storeGet", serde_json::json!({"key": "k"}))], 1);
    let turns = || (0..500).map(|_| ask()).collect::<Vec<_>>();

    // By the rounds.
    let endless = model(turns());
    let outcome = run(&engine, &looping(""), granted(&endless), options(50_000.0));
    assert_eq!((outcome.error, outcome.result), (None, Value::from(8.0)));
    assert_eq!(endless.requests().len(), 8);

    // By the fuel.
    let endless = model(turns());
    let most = looping(r#", "maxRounds": 64"#);
    let outcome = run(&engine, &most, granted(&endless), options(1_000.0));
    let code = outcome.error.map(|error| error.code);
    assert_eq!(code, Some(ErrorCode::OutOfFuel));
    assert!(endless.requests().len() <= 10);

    // By a quota, and by the tokens of the program.
    let endless = model(turns());
    let quota = options(50_000.0).quota("llmChat", 3);
    let outcome = run(&engine, &most, granted(&endless), quota);
    assert_eq!(
        outcome.error.map(|error| error.code),
        Some(ErrorCode::QuotaExceeded)
    );
    assert_eq!(endless.requests().len(), 3);
    let endless = model(turns());
    let budget = looping(r#", "maxRounds": 64, "budget": {"tokens": 11}"#);
    let outcome = run(&engine, &budget, granted(&endless), options(50_000.0));
    assert_eq!((outcome.error, outcome.result), (None, Value::from(6.0)));
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn many_calls_in_a_round_are_bounded() {
    let engine = Engine::new();
    let began = Instant::now();
    let many = || {
        let calls: Vec<_> = (0..10_000)
            .map(|at| ("storeGet", serde_json::json!({"key": at.to_string()})))
            .collect();
        asks(&calls, 1)
    };
    // Little fuel ends it before a tool is called.
    let outcome = run(
        &engine,
        &looping(""),
        granted(&model(vec![many(), says("x", 1)])),
        options(150.0),
    );
    let code = outcome.error.map(|error| error.code);
    assert_eq!(code, Some(ErrorCode::OutOfFuel));
    // With enough fuel 64 are called, and the model is informed of the others.
    let asked = model(vec![many(), says("x", 1)]);
    let outcome = run(&engine, &looping(""), granted(&asked), options(20_000.0));
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.result, Value::from(2.0));
    let used = outcome.fuel_used.to_f64();
    assert!(used > 64.0 * 5.0 + 200.0, "{used}");
    let told = &asked.requests()[1].messages[2..];
    assert_eq!(told.len(), 65);
    let last = format!("{:?}", told[64]);
    assert!(last.contains("9936 other tools were not called"), "{last}");
    // Fewer than 64 host calls for the tools, plus the two of the model.
    assert_eq!(usage_of(&outcome).spent.calls, 66);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn large_inputs_are_paid_and_end() {
    let engine = Engine::new();
    let began = Instant::now();
    let long = "x".repeat(3 << 20);
    let deep = {
        let mut value = serde_json::json!(1);
        for _ in 0..400 {
            value = serde_json::json!([value]);
        }
        value
    };
    for input in [
        serde_json::json!({"list": long}),
        serde_json::json!(long),
        serde_json::json!({ "list": deep }),
        serde_json::json!({ "key": long }),
    ] {
        for fuel in [101.0, 150.0, 5_000.0] {
            for tool in ["len", "storeGet", "nobody"] {
                let turns = vec![asks(&[(tool, input.clone())], 1), says("x", 1)];
                let outcome = run(&engine, &looping(""), granted(&model(turns)), options(fuel));
                let code = outcome.error.as_ref().map(|error| error.code);
                match code {
                    None => assert!(outcome.fuel_used.to_f64() <= fuel),
                    Some(code) => assert!(
                        matches!(code, ErrorCode::OutOfFuel | ErrorCode::Boundary),
                        "{code:?}"
                    ),
                }
            }
        }
    }
    assert!(began.elapsed() < Duration::from_secs(40));
}
