//! Rates: CPU time per unit of fuel, for every operation that a program can request.
//!
//! Cases are generated from the engine's tables ([`all`]): every builtin function and method with
//! receivers and arguments of many kinds, every atom, every operator, member and form. [`missing`]
//! finds rows without a case, so that a new row of a table is measured or reported.

mod atoms;
mod builtins;
mod language;
mod measure;
mod rare;
mod report;

pub use measure::{Rate, Rig};
pub use report::Report;

pub(crate) use atoms::capabilities;

use a99_testkit::cost::Shape;
use serde_json::{Value as Json, json};

/// Bound of CPU time for a unit of fuel, in microseconds.
pub const BOUND_US: f64 = a99_core::costs::MICROSECONDS_A_UNIT as f64;

/// Measured input sizes.
pub const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// Input sizes of a quick run.
pub const QUICK: [usize; 2] = [100, 10_000];

/// A case to measure: steps that run in a loop over variables of a given size.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its group: `methods`, `atoms`, ...
    pub group: &'static str,
    /// The engine's name of the operation; the cases of a row share a line of the table.
    pub row: String,
    /// Name of the case within its row.
    pub variant: String,
    /// The steps of a turn.
    pub steps: Vec<Json>,
    /// Variables and the shapes of their values.
    pub vars: Vec<(&'static str, Shape)>,
    /// Steps before the loop.
    pub before: Vec<Json>,
    /// Other members of the program's root.
    pub root: Option<Json>,
}

impl Case {
    /// A case that evaluates an expression into a variable.
    fn expr(group: &'static str, row: &str, variant: &str, value: &Json) -> Case {
        let step = json!({"op": "varSet", "key": "t", "value": value});
        Case::steps(group, row, variant, vec![step])
    }

    fn steps(group: &'static str, row: &str, variant: &str, steps: Vec<Json>) -> Case {
        Case {
            group,
            row: row.to_owned(),
            variant: variant.to_owned(),
            steps,
            vars: Vec::new(),
            before: Vec::new(),
            root: None,
        }
    }

    fn var(mut self, name: &'static str, shape: Shape) -> Case {
        self.vars.push((name, shape));
        self
    }

    fn first(mut self, step: Json) -> Case {
        self.before.push(step);
        self
    }

    /// Whether the work grows with the size.
    fn scales(&self) -> bool {
        self.vars.iter().any(|(_, shape)| shape.scales())
    }

    /// The row and the variant.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.group, self.row, self.variant)
    }
}

fn id(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

fn lit(value: impl Into<Json>) -> Json {
    json!({"$expr": "literal", "value": value.into()})
}

fn method(object: Json, name: &str, arguments: Vec<Json>) -> Json {
    json!({"$expr": "methodCall", "object": object, "method": name, "arguments": arguments})
}

/// A call of a global function.
fn call(name: &str, arguments: Vec<Json>) -> Json {
    json!({"$expr": "call", "callee": name, "arguments": arguments})
}

/// All cases of all tables.
pub fn all() -> Vec<Case> {
    let mut cases = builtins::cases();
    cases.extend(atoms::cases());
    cases.extend(language::cases());
    cases.extend(rare::cases());
    cases
}

/// Rows of the engine's tables without a measured case.
pub fn missing(rig: &Rig, measured: &[Rate]) -> Vec<String> {
    let has = |group: &str, row: &str| {
        let found = |rate: &Rate| rate.group == group && rate.row == row;
        measured.iter().any(found)
    };
    let mut out = Vec::new();
    for (group, row) in builtins::rows().into_iter().chain(atoms::rows()) {
        if !has(group, &row) {
            out.push(format!("{group} {row}"));
        }
    }
    out.extend(
        rig.ops_not_met()
            .into_iter()
            .map(|op| format!("instruction {op}")),
    );
    out
}
