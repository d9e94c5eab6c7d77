//! The work, done by rhai with a maximum of operations. It cannot suspend a run. Maximal sizes
//! are not set: with one of them every `push` measures the whole list again, so that the rows
//! take minutes.

use a99_benches_work::inputs::{self, TAGS, TenSteps};
use a99_benches_work::protocol::{About, Entry};
use a99_benches_work::{Size, Task, list, protocol};
use rhai::{AST, Array, Dynamic, Engine, EvalAltResult, ImmutableString, Map, Scope};
use std::collections::HashMap;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "rhai",
    version: "rhai 1.27.0",
    limits: "maximum of operations; none of sizes, which make each `push` measure the list",
};

/// A new engine takes a hundred times as long as a new run of ours.
const STATES: u32 = 100;

fn limited() -> Engine {
    let mut engine = Engine::new();
    engine.set_max_operations(1_000_000_000_000);
    engine.register_fn("inc", |x: f64| x + 1.0);
    engine.register_fn("decode", |text: ImmutableString| {
        failing::<Dynamic>(serde_json::from_str(&text))
    });
    engine.register_fn("encode", |value: Array| {
        failing(serde_json::to_string(&value))
    });
    engine
}

fn failing<T>(found: serde_json::Result<T>) -> Result<T, Box<EvalAltResult>> {
    found.map_err(|error| error.to_string().into())
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

const ROWS: &str = r#"
    let rows = [];
    for i in 0..n {
        rows.push(#{ id: i, price: i % 97 + 0.5, qty: i % 5 + 1, tag: tags[i % 4] });
    }
    let totals = [];
    for row in rows {
        totals.push(#{ id: row.id, tag: row.tag, total: row.price * row.qty });
    }
    let large = [];
    for t in totals { if t.total > 50 { large.push(t); } }
    let sum = 0.0;
    for t in large { sum += t.total; }
    let counts = #{};
    for t in large { counts[t.tag] = (counts[t.tag] ?? 0) + 1; }
    #{ sum: sum, counts: counts }
"#;

const ORDERS: &str = r#"
    let short = [];
    for order in decode(text) {
        let picked = #{ id: order.id, customer: order.customer, total: order.total };
        let fields = order.keys().len();
        short.push(picked + #{ seen: true, fields: fields });
    }
    encode(short)
"#;

const FIB: &str = "
    fn fib(n) { if n < 2.0 { n } else { fib(n - 1.0) + fib(n - 2.0) } }
    fib(n)
";

const ENTRIES: &[Entry] = &[
    (list::W1_MAP, |size| {
        let engine = limited();
        let ast = engine.compile_expression(CONDITION).expect("an expression");
        let inputs = condition();
        Task::all(size.evaluations, move || {
            for _ in 0..size.evaluations {
                let found = engine.eval_ast_with_scope::<bool>(&mut scope(&inputs), &ast);
                assert!(found.expect("it ends"));
            }
        })
    }),
    (list::W1_BOUND, |size| {
        let engine = limited();
        let text = format!("fn run(a, b, c, d, e, f, name) {{ {CONDITION} }}");
        let ast = engine.compile(text).expect("a function");
        Task::all(size.evaluations, move || {
            for _ in 0..size.evaluations {
                let args = (3.5, 4.0, 9.0, 2.0, 7.0, 4.0, "x");
                let found = engine.call_fn::<bool>(&mut Scope::new(), &ast, "run", args);
                assert!(found.expect("it ends"));
            }
        })
    }),
    (list::W1_LOOP, |size| {
        let body = format!("if {CONDITION} {{ s = s + 1.0; }}");
        looped(&body, size, f64::from(size.turns))
    }),
    (list::W2, |size| {
        looped(
            "s = s + i * i % 7.0;",
            size,
            inputs::sum_of_remainders(size.turns),
        )
    }),
    (list::W2D, |size| {
        looped("s = s + i * i;", size, inputs::sum_of_squares(size.turns))
    }),
    (list::W3, |size| {
        // A call takes half a microsecond.
        let (n, wanted) = (size.fib.min(20), inputs::fibonacci(size.fib.min(20)));
        let calls = inputs::fibonacci_calls(n);
        with("n", f64::from(n).into(), FIB, calls, move |found| {
            assert_eq!(found.as_float().expect("a number"), wanted);
        })
    }),
    (list::W4, rows),
    (list::W6, |size| {
        let text = inputs::orders(size.orders);
        let bytes = text.len() as u64;
        let mut first = None;
        with("text", text.into(), ORDERS, bytes, move |found| {
            let found = found.into_string().expect("a text");
            let first = first.get_or_insert_with(|| {
                inputs::check_orders(&found, size.orders);
                found.clone()
            });
            assert!(found == *first, "another result");
        })
    }),
    (list::W7_SYNC, |size| {
        let (turns, calls) = loop_task("s = inc(i);", size, 1.0);
        let (_, rest) = loop_task("", size, 0.0);
        Task::Net {
            operations: turns,
            run: calls,
            rest,
        }
    }),
    (list::W8_COMPILE, |size| {
        let engine = limited();
        let size = size.few_states(10);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                drop(engine.compile(TEN_STEPS).expect("a script"));
            }
        })
    }),
    (list::W8_COLD, |size| {
        let size = size.few_states(STATES);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                let engine = limited();
                once(&engine, &engine.compile(TEN_STEPS).expect("a script"));
            }
        })
    }),
    (list::W8_FRESH, |size| {
        let ast = limited().compile(TEN_STEPS).expect("a script");
        let size = size.few_states(STATES);
        Task::all(size.runs, move || {
            for _ in 0..size.runs {
                once(&limited(), &ast);
            }
        })
    }),
];

fn main() -> ExitCode {
    protocol::main(ABOUT, ENTRIES)
}

/// A scope filled from a host's map.
fn scope(map: &HashMap<&'static str, Dynamic>) -> Scope<'static> {
    let mut scope = Scope::new();
    for (name, value) in map {
        scope.push_dynamic(*name, value.clone());
    }
    scope
}

fn condition() -> HashMap<&'static str, Dynamic> {
    let numbers = inputs::CONDITION.map(|(name, number)| (name, number.into()));
    let mut map = HashMap::from(numbers);
    map.insert("name", "x".into());
    map
}

/// A loop over the inputs of the condition, whose sum is returned.
fn looped(body: &str, size: Size, sum: f64) -> Task {
    let engine = limited();
    let text = format!("let i = 0.0; let s = 0.0; while i < n {{ {body} i = i + 1.0; }} s");
    let ast = engine.compile(text).expect("a script");
    let mut inputs = condition();
    inputs.insert("n", f64::from(size.turns).into());
    Task::all(size.turns, move || {
        let found: f64 = engine
            .eval_ast_with_scope(&mut scope(&inputs), &ast)
            .expect("the loop ends");
        assert_eq!(found, sum);
    })
}

/// A loop whose sum is `last` times its turns.
fn loop_task(body: &str, size: Size, last: f64) -> (u64, Box<dyn FnMut()>) {
    let sum = last * f64::from(size.turns);
    match looped(body, size, sum) {
        Task::All { operations, run } => (operations, run),
        _ => unreachable!("made above"),
    }
}

/// A script over one variable.
fn with(
    name: &'static str,
    value: Dynamic,
    text: &str,
    operations: u64,
    mut check: impl FnMut(Dynamic) + 'static,
) -> Task {
    let engine = limited();
    let ast = engine.compile(text).expect("a script");
    Task::all(operations, move || {
        let mut scope = Scope::new();
        scope.push_dynamic(name, value.clone());
        check(
            engine
                .eval_ast_with_scope(&mut scope, &ast)
                .expect("it ends"),
        );
    })
}

fn rows(size: Size) -> Task {
    let engine = limited();
    let ast = engine.compile(ROWS).expect("a script");
    let wanted = inputs::rows(size.rows);
    Task::all(size.rows, move || {
        let mut scope = Scope::new();
        let tags: Array = TAGS.map(Dynamic::from).into();
        scope.push("n", i64::from(size.rows)).push("tags", tags);
        let found: Map = engine
            .eval_ast_with_scope(&mut scope, &ast)
            .expect("it ends");
        let counts = found["counts"].as_map_ref().expect("a map");
        let counts = TAGS.map(|tag| counts.get(tag).map_or(0, |n| n.as_int().expect("a number")));
        let found = inputs::Rows {
            sum: found["sum"].as_float().expect("a number"),
            counts: counts.map(|n| n as f64),
        };
        assert_eq!(found, wanted);
    })
}

fn once(engine: &Engine, ast: &AST) {
    let tags: Array = TenSteps::TAGS.map(Dynamic::from).into();
    let mut scope = Scope::new();
    scope
        .push("name", ImmutableString::from(TenSteps::NAME))
        .push("price", TenSteps::PRICE)
        .push("quantity", TenSteps::QUANTITY)
        .push("tags", tags);
    let found: Map = engine
        .eval_ast_with_scope(&mut scope, ast)
        .expect("it ends");
    let text = |name: &str| found[name].clone().into_string().expect("a text");
    let found = TenSteps {
        net: found["net"].as_float().expect("a number"),
        count: found["count"].as_int().expect("a number") as f64,
        text: text("text"),
        label: text("label"),
        joined: text("joined"),
    };
    found.check();
}
