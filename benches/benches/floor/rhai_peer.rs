//! rhai with a maximum of operations. It cannot suspend a run.

use crate::ours::{COMPILES, EVALUATIONS, TURNS};
use crate::{Entry, RHAI, entry, work};
use a99_benches::FUEL;
use rhai::{AST, Dynamic, Engine, Scope};
use std::collections::HashMap;
use std::hint::black_box;

/// Turns of each loop: a tenth of ours, for it is slow.
const RHAI_TURNS: u32 = TURNS / 10;
/// New engines for cold and fresh runs.
const ENGINES: u64 = 100;

/// An engine with its limits on.
fn limited() -> Engine {
    let mut engine = Engine::new();
    engine.set_max_operations(FUEL as u64);
    engine.set_max_string_size(1 << 26);
    engine.set_max_array_size(1 << 22);
    engine.set_max_map_size(1 << 22);
    engine.register_fn("inc", |x: f64| x + 1.0);
    engine
}

const CONDITION: &str = r#"a*b + c/d - e%f > 10.0 && name == "x""#;

const TEN_STEPS: &str = r#"
    let total = price * quantity;
    let discount = 0.0;
    if total > 100.0 { discount = 0.1; }
    let net = total * (1.0 - discount);
    let count = tags.len();
    let text = name + " owes " + net;
    let label = name.to_upper();
    let joined = "";
    for tag in tags { if joined != "" { joined += ","; } joined += tag; }
    #{ net: net, count: count, text: text, label: label, joined: joined }
"#;

pub fn entries() -> Vec<Entry> {
    let turn = "let i = 0.0; let s = 0.0; while i < n { BODY i = i + 1.0; } s";
    let body = |text: &str| turn.replace("BODY", text);
    vec![
        looped(work::W2, &body("s = s + i * i % 7.0;")),
        looped(work::W2D, &body("s = s + i * i;")),
        looped(work::EMPTY, &body("")),
        looped(work::W7, &body("s = inc(i);")),
        looped(
            work::W1_LOOP,
            &body(&format!("if {CONDITION} {{ s = s + 1.0; }}")),
        ),
        condition_map(),
        compile(),
        cold(),
        fresh(),
    ]
}

/// A scope filled from a host's map.
fn scope(map: &HashMap<&'static str, Dynamic>) -> Scope<'static> {
    let mut scope = Scope::new();
    for (name, value) in map {
        scope.push_dynamic(*name, value.clone());
    }
    scope
}

fn condition_inputs() -> HashMap<&'static str, Dynamic> {
    let mut map: HashMap<_, Dynamic> = [
        ("a", 3.5),
        ("b", 4.0),
        ("c", 9.0),
        ("d", 2.0),
        ("e", 7.0),
        ("f", 4.0),
    ]
    .into_iter()
    .map(|(key, number)| (key, number.into()))
    .collect();
    map.insert("name", "x".into());
    map
}

fn looped(work: &'static str, text: &str) -> Entry {
    let engine = limited();
    let ast = engine.compile(text).expect("a good script");
    let mut inputs = condition_inputs();
    inputs.insert("n", f64::from(RHAI_TURNS).into());
    entry(work, RHAI, move || {
        let sum: f64 = engine
            .eval_ast_with_scope(&mut scope(&inputs), &ast)
            .expect("the loop ends");
        black_box(sum);
        u64::from(RHAI_TURNS)
    })
}

fn condition_map() -> Entry {
    let engine = limited();
    let ast = engine
        .compile_expression(CONDITION)
        .expect("a good expression");
    let inputs = condition_inputs();
    entry(work::W1_MAP, RHAI, move || {
        for _ in 0..EVALUATIONS {
            assert!(
                engine
                    .eval_ast_with_scope::<bool>(&mut scope(&inputs), &ast)
                    .expect("it holds")
            );
        }
        EVALUATIONS
    })
}

fn compile() -> Entry {
    let engine = limited();
    entry(work::W8_COMPILE, RHAI, move || {
        for _ in 0..COMPILES {
            black_box(engine.compile(TEN_STEPS).expect("a good script"));
        }
        COMPILES
    })
}

fn once(engine: &Engine, ast: &AST) -> Dynamic {
    let tags: rhai::Array = ["a", "b", "c"].map(Dynamic::from).into();
    let mut scope = Scope::new();
    scope.push("name", rhai::ImmutableString::from("Ada"));
    scope
        .push("price", 12.5)
        .push("quantity", 10.0)
        .push("tags", tags);
    engine
        .eval_ast_with_scope(&mut scope, ast)
        .expect("the agent runs")
}

fn cold() -> Entry {
    entry(work::W8_COLD, RHAI, || {
        for _ in 0..ENGINES {
            let engine = limited();
            let ast = engine.compile(TEN_STEPS).expect("a good script");
            let _ = black_box(once(&engine, &ast));
        }
        ENGINES
    })
}

fn fresh() -> Entry {
    let ast = limited().compile(TEN_STEPS).expect("a good script");
    entry(work::W8_FRESH, RHAI, move || {
        for _ in 0..ENGINES {
            let _ = black_box(once(&limited(), &ast));
        }
        ENGINES
    })
}
