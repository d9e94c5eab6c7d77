//! An agent written as a chain of calls, compiled and run: invoice lines to
//! totals. It is the same program as `examples/invoice/agent.json`.
//!
//! `cargo run -p agent99 --example builder`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use agent99::builder::{Builder, Expr, ident};
use agent99::{Agent, Diagnostics, Engine, RunOptions, json};

/// Invoice lines to totals.
pub fn invoice() -> Builder {
    let input = json!({
        "type": "object",
        "properties": {
            "customer": {"type": "string"},
            "taxRate": {"type": "number"},
            "coupon": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["customer", "taxRate", "lines"],
    });
    // A plain literal costs no fuel; a literal node does.
    let hundred = || Expr::node(100);
    Agent::take(input.clone())
        .input_schema(input)
        .helper("cents", &["amount"], |b| {
            let scaled = ident("amount") * hundred();
            b.return_value(ident("Math").method("round", [scaled]) / hundred())
        })
        .vars_import(["customer", "taxRate", "coupon", "lines"])
        .map("lines", "line", |b| {
            b.math_calc(
                "qty * price",
                [("qty", "line.qty"), ("price", "line.unitPrice")],
            )
            .as_("exact")
            .call_local("cents", ["exact"])
            .as_("amount")
            .var_set(
                "result",
                [
                    ("sku", ident("line").member("sku")),
                    ("amount", ident("amount")),
                ],
            )
        })
        .as_("items")
        .reduce("items", "item", "sum", 0, |b| {
            b.var_set("result", ident("sum") + ident("item").member("amount"))
        })
        .as_("exact")
        .call_local("cents", ["exact"])
        .as_("subtotal")
        .var_set("discount", 0)
        .if_("coupon == 'SPRING10' && subtotal >= 100", (), |then| {
            then.math_calc("subtotal * 0.1", ())
                .as_("exact")
                .call_local("cents", ["exact"])
                .as_("discount")
        })
        .math_calc("(subtotal - discount) * taxRate", ())
        .as_("exact")
        .call_local("cents", ["exact"])
        .as_("tax")
        .math_calc("subtotal - discount + tax", ())
        .as_("exact")
        .call_local("cents", ["exact"])
        .as_("total")
        .template(
            "{{customer}} owes {{amount}} EUR for {{count}} lines.",
            [
                ("customer", "customer".into()),
                (
                    "amount",
                    ident("total").method("toFixed", [Expr::node(2)]).into(),
                ),
                ("count", agent99::Operand::from("items.length")),
            ],
        )
        .as_("summary")
        .return_(json!({
            "type": "object",
            "properties": {
                "items": {"type": "array"},
                "subtotal": {"type": "number"},
                "discount": {"type": "number"},
                "tax": {"type": "number"},
                "total": {"type": "number"},
                "summary": {"type": "string"},
            },
        }))
}

fn main() -> Result<(), Diagnostics> {
    let engine = Engine::new();
    let agent = engine.compile_builder(&invoice())?;
    let args = json!({
        "customer": "Northwind Traders",
        "taxRate": 0.2,
        "coupon": "SPRING10",
        "lines": [
            {"sku": "PEN-01", "qty": 12, "unitPrice": 1.35},
            {"sku": "STAPLER", "qty": 10, "unitPrice": 8.49},
        ],
    });
    let outcome = engine.run_sync(&agent, args, RunOptions::new());
    println!("{}", outcome.result.to_json_pretty());
    println!("{} fuel", outcome.fuel_used);
    Ok(())
}
