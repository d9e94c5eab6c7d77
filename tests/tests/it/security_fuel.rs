//! Threats F01 to F10: fuel that does not count, comes back, or differs.

use crate::attack::{
    ENGINE, bin, call, forever, id, list, lit, ret, rich, run_granted, run_with, seq, set, stopped,
    within,
};
use a99_core::costs::{BOTH, FREE, Formula, READ, Sizes};
use a99_core::json::{Document, Limits as ReadLimits};
use a99_testkit::oracle::{NoHost, OracleOptions};
use agent99::capabilities::{AgentReply, FnAgentRunner, MemoryStore};
use agent99::{
    AtomBody, AtomDef, AtomSig, Binding, Capabilities, CostModel, Engine, ErrorCode, Fuel,
    HostReply, Param, Params, Quota, RunOptions, Value, all_atoms, json,
};
use serde_json::Value as Json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn f01_prices_from_data_never_give_fuel() {
    for k in [
        json!(-1e6),
        json!(-0.5),
        json!("x"),
        json!(null),
        json!({"valueOf": -1}),
    ] {
        let steps = json!([{"op": "storeVectorSearch", "vector": [1], "k": "args.k"}]);
        let granted = Capabilities::none().with_store(MemoryStore::new());
        let outcome = run_granted(steps, json!({"k": k}), rich(), granted);
        assert!(
            outcome.fuel_used.to_f64() >= 5.0,
            "{k}: {}",
            outcome.fuel_used
        );
    }
    // What is not finite is not bounded by the budget either, so it is the
    // static price.
    for k in [
        bin("/", lit(1), lit(0)),
        bin("/", lit(0), lit(0)),
        bin("/", lit(-1), lit(0)),
    ] {
        let steps = json!([{"op": "storeVectorSearch", "vector": [1], "k": k}]);
        let granted = Capabilities::none().with_store(MemoryStore::new());
        let outcome = run_granted(steps, json!({}), rich(), granted);
        assert!(
            (5.0..100.0).contains(&outcome.fuel_used.to_f64()),
            "{}",
            outcome.fuel_used
        );
    }
    let steps = json!([{"op": "storeVectorSearch", "vector": [1], "k": 1e300}]);
    let outcome = run_granted(
        steps,
        json!({}),
        rich(),
        Capabilities::none().with_store(MemoryStore::new()),
    );
    assert!(outcome.fuel_used.to_f64() >= 5.0);
}

#[test]
fn f01_what_a_host_reports_never_gives_fuel() {
    let runner = FnAgentRunner::new(|_, _, _| {
        Ok(AgentReply::from(Value::Null).with_fuel(Fuel::from_micro(i64::MIN)))
    });
    let steps = json!([forever(
        json!([{"op": "agentRun", "agentId": "other", "input": {}}])
    )]);
    let granted = Capabilities::none().with_agent(runner);
    let outcome = run_granted(steps, json!({}), RunOptions::new(), granted);
    stopped(&outcome, ErrorCode::OutOfFuel);
    assert!(outcome.fuel_used.to_f64() >= 1_000.0);
}

#[test]
fn f02_budgets_that_cannot_be_are_refused() {
    for units in [f64::NAN, -1.0, -0.000_001, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(RunOptions::new().fuel(units).is_err(), "{units}");
        assert!(RunOptions::new().cost("len", units).is_err(), "{units}");
    }
    // As large as it gets it is still a budget, and still ends.
    for units in [18_446_744_073_709_551_616.0, f64::MAX, 9.3e12] {
        let Ok(options) = RunOptions::new().fuel(units) else {
            continue;
        };
        assert!(options.fuel.micro() > 0);
        let outcome = run_with(
            json!([forever(json!([]))]),
            json!({}),
            options.timeout_ms(20),
        );
        stopped(&outcome, ErrorCode::RunTimeout);
    }
    let outcome = run_with(
        json!([set("x", lit(1))]),
        json!({}),
        RunOptions::new().fuel(0.0).unwrap(),
    );
    assert!(outcome.error.is_some());
}

#[test]
fn f03_odd_price_functions_are_isolated() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let steps = json!([{"op": "len", "list": [1]}, {"op": "len", "list": [1]}]);
    let used = |options: RunOptions| {
        let outcome = run_with(steps.clone(), json!({}), options);
        assert_eq!(outcome.error, None);
        outcome.fuel_used
    };
    let usual = used(RunOptions::new());
    let odd: [fn(&Value, &Value) -> f64; 4] = [
        |_, _| panic!("secret"),
        |_, _| -5.0,
        |_, _| f64::NAN,
        |_, _| f64::INFINITY,
    ];
    for price in odd {
        assert_eq!(used(RunOptions::new().cost_fn("len", price)), usual);
    }
    std::panic::set_hook(quiet);
    // A price function may run programs of its own; nothing is locked.
    let inner = ENGINE.compile(seq(steps.clone())).unwrap();
    let reentrant = RunOptions::new().cost_fn("len", move |_, _| {
        ENGINE
            .run_sync(&inner, json!({}), RunOptions::new())
            .fuel_used
            .to_f64()
    });
    assert!(used(reentrant) > usual);
    // One that is slow costs the run its time.
    let slow = rich().timeout_ms(40).cost_fn("len", |_, _| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        0.0
    });
    let outcome = within(600, || {
        run_with(
            json!([forever(json!([{"op": "len", "list": []}]))]),
            json!({}),
            slow,
        )
    });
    stopped(&outcome, ErrorCode::RunTimeout);
}

#[test]
fn f04_fuel_is_exact() {
    let steps: Vec<Json> = (0..10)
        .map(|_| json!({"op": "consoleWarn", "message": ""}))
        .collect();
    let mut options = RunOptions::new().cost_model(CostModel::Flat);
    options = options.cost("consoleWarn", 0.1).unwrap();
    let outcome = run_with(json!(steps), json!({}), options);
    assert_eq!(
        outcome.fuel_used.to_string(),
        "1.1",
        "ten tenths and the root"
    );
}

#[test]
fn f05_sub_agents_share_one_budget_and_one_depth() {
    // A program that is given itself.
    let program = json!({"op": "seq", "steps": [
        {"op": "agentRun", "agentId": "args.self", "input": {"self": "args.self"}, "result": "x"},
        {"op": "agentRun", "agentId": "args.self", "input": {"self": "args.self"}, "result": "y"},
        {"op": "return", "value": {}},
    ]});
    let agent = ENGINE.compile(program.to_string()).unwrap();
    let outcome = within(5_000, || {
        ENGINE.run_sync(&agent, json!({"self": program}), RunOptions::new())
    });
    let error = outcome.error.clone().expect("an end");
    assert!(
        matches!(error.code, ErrorCode::Program | ErrorCode::OutOfFuel),
        "{error:?}"
    );
    // Fan-out that catches the depth error: the shared budget ends it.
    let wide = json!({"op": "seq", "steps": [
        {"op": "while", "condition": lit(true), "body": [
            {"op": "try", "try": [{"op": "agentRun", "agentId": "args.self", "input": {"self": "args.self"}}], "catch": []}]},
    ]});
    let agent = ENGINE.compile(wide.to_string()).unwrap();
    let outcome = ENGINE.run_sync(&agent, json!({"self": wide}), RunOptions::new());
    stopped(&outcome, ErrorCode::OutOfFuel);
    let used = outcome.fuel_used.to_f64();
    assert!((1_000.0..1_010.0).contains(&used), "{used}");
}

#[test]
fn f06_a_capability_that_runs_agents_stays_in_the_tree() {
    let calls = Arc::new(AtomicUsize::new(0));
    let quota = Quota::new(3);
    let (count, shared) = (calls.clone(), quota.clone());
    let inner = ENGINE
        .compile(seq(json!([forever(json!([{"op": "len", "list": []}]))])))
        .unwrap();
    let runner = FnAgentRunner::new(move |_, _, about| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut options = RunOptions::new();
        options.fuel = about.fuel_left;
        options.depth = about.depth + 1;
        options.quotas.insert("len".to_owned(), shared.clone());
        let outcome = ENGINE.run_sync(&inner, json!({}), options);
        assert_eq!(
            outcome.error.as_ref().unwrap().code,
            ErrorCode::QuotaExceeded
        );
        Ok(AgentReply::from(Value::Null).with_fuel(outcome.fuel_used))
    });
    let steps = json!([forever(
        json!([{"op": "agentRun", "agentId": "x", "input": {}}])
    )]);
    let outcome = run_granted(
        steps,
        json!({}),
        RunOptions::new().fuel(50.0).unwrap(),
        Capabilities::none().with_agent(runner),
    );
    stopped(&outcome, ErrorCode::OutOfFuel);
    assert_eq!(quota.used(), 3, "one count over all runs");
    assert!(calls.load(Ordering::SeqCst) > 3);
    // What is used inside is paid outside.
    let greedy = FnAgentRunner::new(|_, _, about| {
        Ok(AgentReply::from(Value::Null).with_fuel(about.fuel_left))
    });
    let steps = json!([{"op": "agentRun", "agentId": "x", "input": {}}, {"op": "agentRun", "agentId": "x", "input": {}}]);
    let outcome = run_granted(
        steps,
        json!({}),
        RunOptions::new(),
        Capabilities::none().with_agent(greedy),
    );
    stopped(&outcome, ErrorCode::OutOfFuel);
}

#[test]
fn f07_prices_saturate() {
    for price in [9.2e12, 1e18, f64::MAX] {
        let Ok(options) = rich().cost("len", price) else {
            continue;
        };
        let steps = json!([forever(json!([{"op": "len", "list": []}]))]);
        let outcome = run_with(steps, json!({}), options);
        stopped(&outcome, ErrorCode::OutOfFuel);
        assert!(outcome.fuel_used.micro() > 0);
    }
    let options = rich().cost_fn("len", |_, _| 1e300);
    let outcome = run_with(
        json!([forever(json!([{"op": "len", "list": []}]))]),
        json!({}),
        options,
    );
    assert!(outcome.error.is_some() && outcome.fuel_used.micro() > 0);
}

#[test]
fn f08_every_way_round_is_paid() {
    let loops = [
        forever(json!([])),
        json!({"op": "while", "condition": "true", "body": []}),
        json!({"op": "while", "condition": "1", "body": [{"op": "seq", "steps": []}]}),
        forever(json!([{"op": "if", "condition": lit(false), "then": [forever(json!([]))]}])),
        forever(json!([{"op": "map", "items": [], "as": "x", "steps": []}])),
        forever(json!([{"op": "try", "try": [], "catch": []}])),
        forever(json!([{"op": "scope", "steps": []}])),
        forever(json!([{"op": "continue"}])),
        forever(json!([{"op": "forEach", "items": [], "as": "x", "steps": []}])),
        forever(json!([{"op": "forEach", "items": [1], "as": "x", "steps": [{"op": "break"}]}])),
    ];
    for model in [CostModel::Metered, CostModel::Flat] {
        for step in &loops {
            let options = RunOptions::new().cost_model(model).timeout_ms(60_000);
            stopped(
                &run_with(json!([step]), json!({}), options),
                ErrorCode::OutOfFuel,
            );
        }
    }
    for op in ["map", "filter", "find", "reduce", "forEach"] {
        let steps = json!([{"op": op, "items": "args.l", "as": "x", "condition": "true == false", "accumulator": "a", "initial": 0, "steps": []}]);
        let used = |n: usize| {
            let outcome = run_with(steps.clone(), json!({"l": vec![0; n]}), rich());
            outcome.fuel_used
        };
        assert!(used(10_000) > used(10), "{op}");
    }
}

/// A program with a bit of everything that costs.
pub fn mixed() -> Json {
    json!([
        set("l", list(json!([lit(3), lit(1), lit(2)]))),
        {"op": "map", "items": "l", "as": "x", "steps": [set("result", bin("*", id("x"), lit(2)))], "result": "m"},
        {"op": "try", "try": [
            set("t", call(lit("abc"), "repeat", json!([lit(5)]))),
            {"op": "Error", "args": ["boo"]},
        ], "catch": [set("c", bin("+", id("t"), lit("!")))]},
        set("i", lit(0)),
        {"op": "while", "condition": bin("<", id("i"), lit(3)), "body": [
            set("i", bin("+", id("i"), lit(1))),
            {"op": "push", "list": "l", "item": "i"},
        ]},
        {"op": "template", "tmpl": "{{c}}-{{i}}", "vars": {"c": "c", "i": "i"}, "result": "p"},
        {"op": "if", "condition": "i == 3 && p != ''", "then": [set("j", call(id("JSON"), "stringify", json!([id("l")])))]},
        {"op": "memoize", "key": "k", "steps": [set("result", call(id("l"), "join", json!([lit("+")])))], "result": "q"},
        {"op": "return", "value": {"m": id("m"), "p": id("p"), "j": id("j"), "q": id("q")}},
    ])
}

#[test]
fn f09_every_budget_gives_what_the_oracle_gives() {
    let text = seq(mixed());
    let agent = ENGINE.compile(text.clone()).unwrap();
    let document = Document::parse(text, &ReadLimits::default()).unwrap();
    for (model, step) in [(CostModel::Metered, 7_919), (CostModel::Flat, 10_007)] {
        let full = ENGINE.run_sync(&agent, json!({}), rich().cost_model(model));
        assert_eq!(full.error, None);
        let mut last = -1;
        let budgets = (0..full.fuel_used.micro() + 2 * step).step_by(step as usize);
        let near = full.fuel_used.micro() - 1..=full.fuel_used.micro() + 1;
        for budget in budgets.chain(near) {
            let mut options = RunOptions::new().cost_model(model).timeout_ms(60_000);
            options.fuel = Fuel::from_micro(budget);
            let outcome = ENGINE.run_sync(&agent, json!({}), options);
            let oracle = OracleOptions {
                fuel: Fuel::from_micro(budget),
                cost_model: model,
                ..OracleOptions::default()
            };
            let expected =
                a99_testkit::oracle::run(&document, &Value::from(json!({})), &oracle, &mut NoHost)
                    .expect("accepted");
            assert_eq!(outcome.fuel_used, expected.fuel_used, "budget {budget}");
            let ours = outcome
                .error
                .as_ref()
                .map(|e| (e.message.to_string(), e.op.to_string()));
            let theirs = expected
                .error
                .as_ref()
                .map(|e| (e.message.to_string(), e.op.to_string()));
            assert_eq!(ours, theirs, "budget {budget}");
            assert_eq!(
                outcome.error.is_none(),
                budget > full.fuel_used.micro(),
                "budget {budget}"
            );
            if budget < full.fuel_used.micro() {
                assert!(
                    outcome.fuel_used.micro() >= last,
                    "fuel used grows with the budget"
                );
                last = outcome.fuel_used.micro();
            }
        }
    }
}

#[test]
fn f09_traced_metered_and_counted_runs_cost_the_same() {
    let agent = ENGINE.compile(seq(mixed())).unwrap();
    let plain = ENGINE.run_sync(&agent, json!({}), rich());
    let traced = ENGINE.run_sync(&agent, json!({}), rich().trace(true));
    let counted = ENGINE.run_sync(
        &agent,
        json!({}),
        rich().quota("push", 100).quota("varSet", 100),
    );
    for other in [traced, counted] {
        assert_eq!(
            (&other.result, other.fuel_used),
            (&plain.result, plain.fuel_used)
        );
    }
}

#[test]
fn f10_what_a_cache_saves_is_traced() {
    let steps = json!([
        {"op": "cache", "key": "k", "steps": [set("result", call(lit("x"), "repeat", json!([lit(10_000)])))], "result": "a"},
        {"op": "cache", "key": "k", "steps": [set("result", call(lit("x"), "repeat", json!([lit(10_000)])))], "result": "b"},
        ret(bin("===", id("a"), id("b"))),
    ]);
    let outcome = run_with(steps, json!({}), rich().trace(true));
    assert_eq!(outcome.result.to_json(), json!({"r": true}));
    let paid: Vec<f64> = outcome
        .trace
        .expect("a trace")
        .iter()
        .filter(|e| e.op == "cache")
        .map(|e| e.fuel_before.to_f64() - e.fuel_after.to_f64())
        .collect();
    assert_eq!(paid.len(), 2);
    assert!(
        paid[0] > paid[1] && paid[1] > 0.0,
        "a miss {} and a hit {}",
        paid[0],
        paid[1]
    );
}

#[test]
fn a13_a_mebibyte_of_text_fits_the_default_budget() {
    const MEBIBYTE: usize = 1 << 20;
    let words = "lorem, ".repeat(MEBIBYTE / 7);
    let numbers = format!("[{}1]", "1,".repeat(MEBIBYTE / 2 - 2));
    let records = format!("[{}1]", r#"{"id":12,"name":"ab"},"#.repeat(MEBIBYTE / 22));
    let split = |sep: &str| json!({"op": "split", "str": "args.t", "sep": sep, "result": "p"});
    let join = json!({"op": "join", "list": "p", "sep": ",", "result": "r"});
    let parse = json!({"op": "jsonParse", "str": "args.t", "result": "p"});
    let text = json!({"op": "jsonStringify", "value": "p", "result": "r"});
    for (name, input, steps) in [
        (
            "split at commas and join",
            &words,
            json!([split(","), join]),
        ),
        ("split into units", &words, json!([split("")])),
        ("parse numbers", &numbers, json!([parse])),
        ("parse records", &records, json!([parse])),
        ("write numbers", &numbers, json!([parse, text])),
        ("write records", &records, json!([parse, text])),
    ] {
        let outcome = run_with(steps, json!({"t": input}), rich());
        assert_eq!(outcome.error, None, "{name}");
        let fuel = outcome.fuel_used.to_f64();
        // What is written was read before.
        let read = run_with(json!([parse]), json!({"t": input}), rich());
        let before = if name.starts_with("write") {
            read.fuel_used.to_f64()
        } else {
            0.0
        };
        assert!(fuel - before < 1_000.0, "{name}: {fuel} - {before}");
    }
}

#[test]
fn a13_flat_prices_are_those_of_the_language() {
    let program = json!({"op": "seq", "steps": [
        {"op": "varSet", "key": "n", "value": 3},
        {"op": "while", "condition": bin(">", id("n"), lit(0)), "body": [
            {"op": "varSet", "key": "n", "value": bin("-", id("n"), lit(1))}]}]});
    let engine = &*ENGINE;
    let agent = engine.compile(program.to_string()).expect("a program");
    for (model, fuel) in [(CostModel::Flat, "1.41"), (CostModel::Metered, "0.081")] {
        let options = RunOptions::new().cost_model(model);
        let outcome = engine.run_sync(&agent, json!({}), options);
        assert_eq!(outcome.fuel_used.to_string(), fuel);
    }
}

/// What takes time for each part of a value pays for each part: what goes to the
/// host and comes back, literals, JSON text, copies that are kept, and the
/// result. None of it is known to the flat model.
#[test]
fn a13_every_part_is_paid() {
    let member = |i: usize| (format!("key{i}"), json!(i));
    let record = |n: usize| Json::from_iter((0..n).map(member));
    let store_set = json!({"op": "storeSet", "key": "k", "value": "args.r"});
    let store_get = json!({"op": "storeGet", "key": "k", "result": "v"});
    let kept = json!({"op": "memoize", "key": "k", "steps": [set("result", id("r"))],
        "result": "v"});
    let own = json!({"op": "varSet", "key": "r", "value": "args.r"});
    let hash = json!({"op": "hash", "value": id("r"), "result": "v"});
    let list = |n: usize| json!({"$expr": "array", "elements": vec![0; n]});
    // Steps, whose size is that of the argument `r` or their own, and the least
    // nanoseconds that they take for each part.
    type Steps<'s> = &'s dyn Fn(usize) -> Json;
    let cases: [(&str, Steps<'_>, i64); 7] = [
        ("to the host", &|_| json!([store_set]), 100),
        ("from the host", &|_| json!([store_set, store_get]), 200),
        ("kept", &|_| json!([own, kept, kept]), 20),
        ("JSON text", &|_| json!([own, hash]), 100),
        ("a literal", &|n| json!([set("v", record(n))]), 40),
        ("untagged operands", &|n| json!([set("v", list(n))]), 5),
        ("the result", &|_| json!([own, ret(id("r"))]), 100),
    ];
    for (name, steps, nanos) in cases {
        let used = |n: usize, model: CostModel| {
            let args = json!({"r": record(n)});
            let outcome = run_with(steps(n), args, rich().cost_model(model));
            assert_eq!(outcome.error, None, "{name}");
            outcome.fuel_used.micro()
        };
        // A part of the result is free: what is compared is beyond it.
        let (few, many) = (500, 2_500);
        let more = used(many, CostModel::Metered) - used(few, CostModel::Metered);
        // Fifty microseconds for a unit are a nanosecond for twenty micro-units.
        assert!(more >= (many - few) as i64 * nanos * 20, "{name}: {more}");
        let flat = used(many, CostModel::Flat) - used(few, CostModel::Flat);
        assert_eq!(flat, 0, "{name}");
    }
}

/// The atom `echo`, native or asynchronous, at a price, and how often it ran.
fn echo(waits: bool, metered: Formula) -> (Engine, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let input = Param {
        name: "value",
        binding: Binding::Value,
    };
    let atom = AtomDef {
        sig: AtomSig {
            params: Params::Named(vec![input].into()),
            metered,
            ..AtomSig::new("echo", "Gives what it gets.", 0)
        },
        body: match waits {
            true => AtomBody::AsyncDyn(Arc::new(move |mut call| {
                counted.fetch_add(1, Ordering::Relaxed);
                let value = call.args.pop().unwrap_or(Value::Undefined);
                Box::pin(async { Ok(HostReply::from(value)) })
            })),
            false => AtomBody::NativeDyn(Arc::new(move |_, _, args| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(args[0])
            })),
        },
        dynamic_cost: None,
    };
    let engine = Engine::builder().atoms(all_atoms().with(atom)).build();
    (engine, runs)
}

/// What a host's atom declares is paid, whatever its body does: what it reads
/// before it runs, its answer after it.
#[test]
fn a13_the_machine_charges_what_a_hosts_atom_declares() {
    let program = r#"{"op": "seq", "steps": [
        {"op": "varsImport", "keys": ["x"]},
        {"op": "echo", "value": "x", "result": "y"}]}"#;
    for waits in [false, true] {
        let used = |metered, length: usize| {
            let (engine, runs) = echo(waits, metered);
            let agent = engine.compile(program).expect("a program");
            let args = json!({"x": "a".repeat(length)});
            let outcome = engine.run_sync(&agent, args, rich());
            assert_eq!(outcome.error, None);
            assert_eq!(runs.load(Ordering::Relaxed), 1);
            outcome.fuel_used.micro()
        };
        for length in [1, 100_000] {
            let sizes = Sizes::units(length);
            let (free, both) = (used(FREE, length), used(BOTH, length));
            assert_eq!(both - free, BOTH.price(sizes.out_units(length)), "{length}");
            assert_eq!(used(READ, length) - free, READ.price(sizes), "{length}");
        }
        // What cannot be paid does not run.
        let (engine, runs) = echo(waits, READ);
        let agent = engine.compile(program).expect("a program");
        let fuel = Fuel::from_micro(READ.price(Sizes::units(100_000)) - 1);
        let options = RunOptions::new().fuel(fuel.to_f64()).expect("fuel");
        let outcome = engine.run_sync(&agent, json!({"x": "a".repeat(100_000)}), options);
        let code = outcome.error.map(|error| error.code);
        assert_eq!(code, Some(ErrorCode::OutOfFuel));
        assert_eq!(runs.load(Ordering::Relaxed), 0);
    }
}

/// A call of the host in a block that was paid whole: the budget may end at its
/// inputs, and then at any later step.
#[test]
fn the_step_that_ends_the_budget_is_blamed_after_a_call() {
    for micro in (295_000..345_000).step_by(500) {
        let case = json!({
            "id": "blame",
            "title": "blame",
            "generation": "v3",
            "requires": ["metered", "v3"],
            "ast": {"op": "seq", "steps": [
                {"op": "host", "q": 0, "result": "n"},
                {"op": "varSet", "key": "n", "value": 1},
                {"op": "return", "value": {"n": 1}},
            ]},
            "options": {"fuel": f64::from(micro) / 1e6},
            "customAtoms": [{"op": "host", "cost": 0.3, "timeoutMs": 0,
                "calls": [{"input": {}, "result": 0}]}],
            "expect": {},
        });
        let differs = a99_testkit::differential::difference_of(&case.into());
        assert_eq!(differs, None, "{micro} micro-units of fuel");
    }
}
