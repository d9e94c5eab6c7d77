//! Builtin functions and methods: every row of the tables, with receivers and arguments of every
//! kind that it accepts.

use super::{Case, call, id, lit, method};
use a99_core::builtins::{FUNCTIONS, METHODS};
use a99_testkit::cost::Shape::{self, *};
use serde_json::{Value as Json, json};

/// Names of all rows, as in [`super::Rate`].
pub(crate) fn rows() -> Vec<(&'static str, String)> {
    let functions = FUNCTIONS
        .iter()
        .map(|f| ("functions", function_name(f.ns, f.name)));
    let methods = METHODS.iter().map(|m| ("methods", m.name.to_owned()));
    functions.chain(methods).collect()
}

fn function_name(ns: &str, name: &str) -> String {
    match ns {
        "" => name.to_owned(),
        ns => format!("{ns}.{name}"),
    }
}

/// An argument: a value of a size, or an expression.
#[derive(Clone, Debug)]
enum Arg {
    Value(Shape),
    Expr(&'static str, Json),
}

/// Builtins that can be passed as callbacks.
fn callbacks() -> Vec<Arg> {
    let member =
        |ns: &str, name: &str| json!({"$expr": "member", "object": id(ns), "property": name});
    vec![
        Arg::Expr("isNaN", id("isNaN")),
        Arg::Expr("Math.max", member("Math", "max")),
        Arg::Expr("encodeURIComponent", id("encodeURIComponent")),
        Arg::Expr("JSON.stringify", member("JSON", "stringify")),
        Arg::Expr("Set", id("Set")),
        Arg::Expr("parseFloat", id("parseFloat")),
    ]
}

fn values(shapes: &[Shape]) -> Vec<Arg> {
    shapes.iter().map(|s| Arg::Value(*s)).collect()
}

/// Lists of arguments to try.
fn argument_lists() -> Vec<Vec<Arg>> {
    let mut lists: Vec<Vec<Arg>> = [
        &[][..],
        &[Zero],
        &[Number],
        &[Minus],
        &[Half],
        &[Half, Last],
        &[Half, Number],
        &[Zero, Half],
        &[Zero, Zero, Piece],
        &[Comma],
        &[Empty],
        &[Comma, Piece],
        &[Empty, Piece],
        &[Twice, Piece],
        &[Piece],
        &[Text],
        &[Other],
        &[TextHalf],
        &[Wide],
        &[Digits],
        &[Numbers],
        &[Texts],
        &[Small],
        &[Piece, Small],
        &[Small, Small],
        &[Half1],
        &[Letter],
        &[Half, Letter],
        &[Halves],
        &[Accents],
        &[Marks],
        &[Sigmas],
        &[Letter, Accents],
    ]
    .iter()
    .map(|shapes| values(shapes))
    .collect();
    for callback in callbacks() {
        lists.push(vec![callback.clone()]);
        lists.push(vec![callback, Arg::Value(Zero)]);
    }
    for form in ["NFC", "NFD", "NFKC", "NFKD"] {
        lists.push(vec![Arg::Expr(form, lit(form))]);
    }
    // Digits and bases of numbers, and depths.
    for number in [3, 36, 100] {
        let name = ["3", "36", "100"][usize::from(number > 3) + usize::from(number > 36)];
        lists.push(vec![Arg::Expr(name, lit(number))]);
    }
    lists.push(vec![Arg::Expr("set of numbers", id("s"))]);
    lists.push(vec![Arg::Expr(
        "schema",
        json!({"$expr": "object", "properties": [
        {"key": "type", "value": lit("number")}]}),
    )]);
    lists
}

/// The receivers of methods.
const RECEIVERS: [Shape; 26] = [
    Text, Wide, Commas, Spaces, Quotes, Digits, Numbers, Fractions, Texts, LongTexts, Flags,
    Nested, Pairs, Objects, Record, Number, Small, Accents, Marks, Sigmas, Capitals, Halves,
    Letters, Deep, Tiny, Huge,
];

/// Subjects of functions.
const SUBJECTS: [Shape; 27] = [
    Number,
    Text,
    Wide,
    Digits,
    Spaces,
    Quotes,
    JsonNumbers,
    JsonObjects,
    JsonDeep,
    JsonEscapes,
    Percents,
    Numbers,
    Fractions,
    Texts,
    LongTexts,
    Nested,
    Pairs,
    Objects,
    Record,
    Numbered,
    Small,
    Commas,
    Accents,
    Halves,
    Tiny,
    Huge,
    Deep,
];

/// Arguments as expressions; values become the variables `p`, `q` and `w`.
fn operands(case: Case, list: &[Arg]) -> (Case, Vec<Json>, String) {
    let names = ["p", "q", "w"];
    let mut case = case;
    let mut exprs = Vec::new();
    let mut shown = Vec::new();
    for (name, arg) in names.into_iter().zip(list) {
        match arg {
            Arg::Value(shape) => {
                case = case.var(name, *shape);
                exprs.push(id(name));
                shown.push(format!("{shape:?}"));
            }
            Arg::Expr(text, expr) => {
                if *expr == id("s") {
                    case = case
                        .var("s0", Texts)
                        .first(json!({"op": "varSet", "key": "s",
                        "value": call("Set", vec![id("s0")])}));
                }
                exprs.push(expr.clone());
                shown.push((*text).to_owned());
            }
        }
    }
    (case, exprs, shown.join(", "))
}

/// Whether to try arguments with every subject.
fn is_plain(list: &[Arg]) -> bool {
    match list {
        [] => true,
        [Arg::Expr(name, _)] => matches!(*name, "schema" | "parseFloat"),
        [Arg::Value(shape)] => matches!(shape, Zero | Small | Text),
        _ => false,
    }
}

fn with_value(case: Case, value: &Json) -> Case {
    Case {
        steps: vec![json!({"op": "varSet", "key": "t", "value": value})],
        ..case
    }
}

/// All cases; a trial run drops invalid calls.
pub(crate) fn cases() -> Vec<Case> {
    let lists = argument_lists();
    let mut out = Vec::new();
    for row in METHODS {
        for shape in RECEIVERS {
            for list in &lists {
                let case = Case::steps("methods", row.name, "", vec![]).var("v", shape);
                let (case, args, shown) = operands(case, list);
                let case = with_value(case, &method(id("v"), row.name, args));
                out.push(Case {
                    variant: format!("{shape:?} ({shown})"),
                    ..case
                });
            }
        }
        for (kind, make, shape) in [
            ("Set", "Set", Numbers),
            ("SetOfTexts", "Set", Texts),
            ("Date", "Date", Zero),
        ] {
            for list in &lists {
                let case = Case::steps("methods", row.name, "", vec![])
                    .var("v0", shape)
                    .first(
                        json!({"op": "varSet", "key": "v", "value": call(make, vec![id("v0")])}),
                    );
                let (case, args, shown) = operands(case, list);
                let case = with_value(case, &method(id("v"), row.name, args));
                out.push(Case {
                    variant: format!("{kind} ({shown})"),
                    ..case
                });
            }
        }
    }
    for row in FUNCTIONS {
        let name = function_name(row.ns, row.name);
        for shape in SUBJECTS {
            // All arguments with some subjects, few with the others.
            let rich = matches!(shape, Number | Text | Numbers | Record);
            let few = lists.iter().filter(|list| rich || is_plain(list));
            for list in few.map(Vec::as_slice) {
                let case = Case::steps("functions", &name, "", vec![]).var("v", shape);
                let (case, mut args, shown) = operands(case, list);
                args.insert(0, id("v"));
                let value = if row.ns.is_empty() {
                    call(row.name, args)
                } else {
                    method(id(row.ns), row.name, args)
                };
                let case = with_value(case, &value);
                out.push(Case {
                    variant: format!("{shape:?} {shown}"),
                    ..case
                });
            }
        }
        let value = if row.ns.is_empty() {
            call(row.name, vec![])
        } else {
            method(id(row.ns), row.name, vec![])
        };
        out.push(Case::expr("functions", &name, "()", &value));
        // The cost of a failure matters as much as that of a success.
        let caught = json!({"op": "try", "try": [{"op": "varSet", "key": "t", "value": value}],
            "catch": []});
        out.push(Case::steps("functions", &name, "()-caught", vec![caught]));
    }
    out
}
