//! A function of the host as an atom: defined, registered, called by a program
//! and shown as a tool for models.
//!
//! `cargo run -p agent99 --example host_atom`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use agent99::{
    AtomCx, AtomSet, AtomSets, Capabilities, Diagnostics, Engine, RunOptions, ToolFilter, ToolForm,
    atom, json,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line of an order.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Line {
    /// The article's number.
    sku: String,
    /// How many.
    quantity: u32,
}

#[derive(Serialize, JsonSchema)]
struct Quote {
    total: f64,
    currency: String,
}

/// A longer order is more work.
fn price_of(input: &QuoteOrderInput) -> f64 {
    1.0 + 0.1 * input.lines.len() as f64
}

/// What an order would cost.
#[atom(cost = price_of, timeout_ms = 200)]
async fn quote_order(
    cx: &AtomCx,
    /// What is ordered.
    lines: Vec<Line>,
    /// Three letters of ISO 4217.
    #[atom(default = "EUR".to_owned())]
    currency: String,
) -> Result<Quote, String> {
    if lines.is_empty() {
        return Err("an order needs at least one line".to_owned());
    }
    if cx.context().get("customer").is_none() {
        cx.warn("no customer is known: list prices apply");
    }
    let article = |line: &Line| match line.sku.as_str() {
        "PEN-01" => Ok(1.35),
        "STAPLER" => Ok(8.49),
        other => Err(format!("there is no article {other}")),
    };
    let mut total = 0.0;
    for line in &lines {
        total += article(line)? * f64::from(line.quantity);
    }
    Ok(Quote { total, currency })
}

const PROGRAM: &str = r#"{"op": "seq", "steps": [
    {"op": "quoteOrder", "lines": {"$kind": "arg", "path": "order"}, "result": "quote"},
    {"op": "return", "schema": {"type": "object", "properties": {"quote": {}}}}
]}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Diagnostics> {
    let atoms = AtomSet::core().with(QUOTE_ORDER);
    let engine = Engine::builder().atoms(atoms).build();
    let agent = engine.compile(PROGRAM)?;

    let order = json!({"order": [
        {"sku": "PEN-01", "quantity": 12},
        {"sku": "STAPLER", "quantity": 1},
    ]});
    let (options, granted) = (RunOptions::new(), Capabilities::none());
    let outcome = engine.run(&agent, order, options, granted).await;
    println!("{}", outcome.result.to_json_pretty());
    println!("{} fuel", outcome.fuel_used);

    let wrong = json!({"order": [{"sku": "PEN-01", "quantity": -1}]});
    let (options, granted) = (RunOptions::new(), Capabilities::none());
    let outcome = engine.run(&agent, wrong, options, granted).await;
    if let Some(error) = outcome.error {
        println!("{}: {}", error.op, error.message);
    }

    let ours = ToolFilter::Names(vec!["quoteOrder".to_owned()]);
    for tool in engine.tools_as(&ours, ToolForm::OpenAiStrict) {
        println!("{tool:#}");
    }
    Ok(())
}
