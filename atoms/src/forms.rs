//! The signatures of the control forms, which the compiler lowers itself
//! (language sections 2.1, 2.2 and 2.4). Their prices and schemas stand here
//! so that hosts can list and override them like any other atom.

use crate::def::{Adjust, Input, Kind, TENTH, form, opt, req};
use a99_core::costs::MICRO;
use a99_core::sig::{Form, Params};
use a99_vm::atom::AtomDef;

/// A list of steps.
const STEPS: Input = req("steps", Kind::List).literal();

/// Flow (language section 2.1).
pub(crate) fn flow() -> Vec<AtomDef> {
    let name = |n| req(n, Kind::Text).literal();
    let list = |n| req(n, Kind::List);
    vec![
        form(
            Form::Seq,
            "seq",
            "Runs steps one after the other.",
            TENTH,
            &[STEPS],
        ),
        form(
            Form::If,
            "if",
            "Runs `then` when the condition is truthy, else `else`.",
            TENTH,
            &[
                req("condition", Kind::Any),
                opt("vars", Kind::Record),
                req("then", Kind::List).literal(),
                opt("else", Kind::List).literal(),
            ],
        ),
        form(
            Form::While,
            "while",
            "Runs `body` as long as the condition is truthy.",
            TENTH,
            &[
                req("condition", Kind::Any),
                opt("vars", Kind::Record),
                req("body", Kind::List).literal(),
            ],
        ),
        form(
            Form::Try,
            "try",
            "Runs `try`; when a step fails, binds the message as `error` and runs `catch`.",
            TENTH,
            &[
                req("try", Kind::List).literal(),
                opt("catch", Kind::List).literal(),
                opt("catchParam", Kind::Text).literal(),
            ],
        ),
        return_form(),
        form(
            Form::Scope,
            "scope",
            "Runs steps in a child scope, whose variables end with it.",
            TENTH,
            &[STEPS],
        ),
        form(
            Form::CallLocal,
            "callLocal",
            "Calls a helper of the program by name.",
            TENTH,
            &[name("name"), req("args", Kind::List)],
        ),
        form(
            Form::Error,
            "Error",
            "Fails with a message.",
            TENTH,
            &[opt("args", Kind::List).literal()],
        )
        .whole_price(),
        form(
            Form::Map,
            "map",
            "Runs steps for each item and collects their `result` variables.",
            MICRO,
            &[list("items"), name("as"), STEPS],
        ),
        form(
            Form::Filter,
            "filter",
            "Keeps the items for which the condition is truthy.",
            MICRO,
            &[list("items"), name("as"), req("condition", Kind::Any)],
        ),
        form(
            Form::Find,
            "find",
            "Gives the first item for which the condition is truthy, or null.",
            MICRO,
            &[list("items"), name("as"), req("condition", Kind::Any)],
        ),
        form(
            Form::Reduce,
            "reduce",
            "Runs steps for each item; their `result` becomes the accumulator.",
            MICRO,
            &[
                list("items"),
                name("as"),
                name("accumulator"),
                req("initial", Kind::Any),
                STEPS,
            ],
        ),
        form(
            Form::Memoize,
            "memoize",
            "Runs steps once for each key in a run and remembers their result.",
            MICRO,
            &[opt("key", Kind::Text), STEPS],
        ),
        form(
            Form::Cache,
            "cache",
            "Keeps the result of steps in the store, for a day unless `ttlMs` says otherwise.",
            5 * MICRO,
            &[opt("key", Kind::Text), STEPS, opt("ttlMs", Kind::Number)],
        )
        .whole_price(),
    ]
}

/// `return` has no input schema in the reference.
fn return_form() -> AtomDef {
    let mut def = form(
        Form::Return,
        "return",
        "Ends the program with the variables that the schema names, or with a value.",
        TENTH,
        &[
            opt("schema", Kind::Record).literal(),
            opt("filter", Kind::Bool).literal(),
            opt("value", Kind::Any),
        ],
    );
    def.sig.input_schema = "{}".into();
    def
}

/// State (language section 2.2).
pub(crate) fn state() -> Vec<AtomDef> {
    let name = || req("key", Kind::Text).literal();
    let fifth = 2 * TENTH;
    vec![
        form(
            Form::VarSet,
            "varSet",
            "Sets a variable in the current scope.",
            TENTH,
            &[name(), req("value", Kind::Any)],
        ),
        form(
            Form::ConstSet,
            "constSet",
            "Sets a variable that cannot be set again.",
            TENTH,
            &[name(), req("value", Kind::Any)],
        ),
        form(
            Form::VarGet,
            "varGet",
            "Gives the value of a variable or path.",
            TENTH,
            &[req("key", Kind::Text)],
        ),
        form(
            Form::VarsImport,
            "varsImport",
            "Copies arguments of the run into variables.",
            fifth,
            &[req("keys", Kind::Names).literal()],
        ),
        vars_let(),
        form(
            Form::VarsExport,
            "varsExport",
            "Gives an object of variables.",
            fifth,
            &[req("keys", Kind::Names).literal()],
        ),
    ]
}

/// `varsLet` binds every key of its step.
fn vars_let() -> AtomDef {
    let docs = "Sets each of its keys as a variable, in order.";
    let mut def = form(Form::VarsLet, "varsLet", docs, TENTH, &[]);
    def.sig.params = Params::Open;
    def.sig.input_schema = r#"{"type":"object","additionalProperties":{}}"#.into();
    def
}

/// Expression texts (language section 2.4).
pub(crate) fn math() -> Vec<AtomDef> {
    vec![form(
        Form::MathCalc,
        "mathCalc",
        "Evaluates an expression text over the variables of the current scope.",
        MICRO,
        &[req("expr", Kind::Text).literal(), opt("vars", Kind::Record)],
    )]
}

/// `runCode`, which stands among the IO atoms (language section 2.6).
pub(crate) fn run_code() -> AtomDef {
    form(
        Form::RunCode,
        "runCode",
        "Transpiles source code and runs it in a child scope.",
        MICRO,
        &[req("code", Kind::Text), opt("args", Kind::Record)],
    )
    .whole_price()
    .io()
}
