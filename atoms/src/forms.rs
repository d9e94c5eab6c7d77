//! The signatures of the control forms, which the compiler lowers itself (language sections 2.1,
//! 2.2 and 2.4). Their prices and schemas let hosts list and override them like other atoms.

use crate::def::{Adjust, Input, Kind, TENTH, form, opt, req};
use a99_core::costs::MICRO;
use a99_core::sig::{
    Capability, Effect, Form, Gives, JsonKinds, MAX_CALLS_UNDER_WAY, Params, ShortPrompts,
};
use a99_vm::atom::AtomDef;

/// A required list of steps.
const fn steps(name: &'static str, docs: &'static str) -> Input {
    req(name, Kind::List, docs).told(Kind::Records).literal()
}

/// A condition; texts are expressions.
const fn condition(docs: &'static str) -> Input {
    req("condition", Kind::Any, docs).told(Kind::Condition)
}

/// Variables for the text of a condition or formula.
const VARS: Input = opt(
    "vars",
    Kind::Record,
    "Names for the text, each a value or reference; they hide variables of the same name. Without \
     it the text reads the variables.",
)
.members_resolved();

/// Flow (language section 2.1).
pub(crate) fn flow() -> Vec<AtomDef> {
    let name = |n, docs| req(n, Kind::Text, docs).literal();
    let items = |docs| req("items", Kind::List, docs);
    const AS: &str = "Name of the variable that holds the item.";
    const TEST: &str = "Expression over the item and the variables (`item.n > 3 && ok`), as text \
                        or node.";
    const KEY: &str = "Key of the entry; by default the steps and the variables that they read.";
    let test_vars = VARS.beside_params();
    vec![
        form(
            Form::Seq,
            "seq",
            "Runs steps one after the other.",
            TENTH,
            &[steps(
                "steps",
                "Steps to run in order, until an error or a `return`.",
            )],
        )
        .listed(ShortPrompts::Source),
        form(
            Form::If,
            "if",
            "Runs `then` when the condition is truthy, else `else`.",
            TENTH,
            &[
                condition("Expression over the variables (`n > 3 && ok`), as text or node."),
                VARS,
                steps("then", "Steps that run if the condition is truthy."),
                opt(
                    "else",
                    Kind::List,
                    "Steps that run otherwise; by default no steps.",
                )
                .told(Kind::Records)
                .literal(),
            ],
        ),
        form(
            Form::While,
            "while",
            "Runs `body` as long as the condition is truthy.",
            TENTH,
            &[
                condition("Expression that is tested before each turn, as text or node."),
                VARS,
                steps("body", "Steps of a turn."),
            ],
        ),
        for_each(),
        form(
            Form::Break,
            "break",
            "Ends the innermost `forEach` or `while`.",
            TENTH,
            &[],
        )
        .listed(ShortPrompts::Source),
        form(
            Form::Continue,
            "continue",
            "Ends this turn of the innermost `forEach` or `while`.",
            TENTH,
            &[],
        )
        .listed(ShortPrompts::Source),
        form(
            Form::Try,
            "try",
            "Runs `try`; when a step fails, binds the message as `error` and runs `catch`.",
            TENTH,
            &[
                steps("try", "Steps that may fail."),
                opt(
                    "catch",
                    Kind::List,
                    "Steps that run after a failure; without it the error stays. The variable \
                     `errorOp` holds the op that failed.",
                )
                .told(Kind::Records)
                .literal(),
                opt(
                    "catchParam",
                    Kind::Text,
                    "Name of the variable that holds the error's message in `catch`.",
                )
                .literal()
                .default("\"error\""),
            ],
        ),
        return_form(),
        form(
            Form::Scope,
            "scope",
            "Runs steps in a child scope, whose variables end with it.",
            TENTH,
            &[steps(
                "steps",
                "Steps to run; variables that they set end with them.",
            )],
        )
        .listed(ShortPrompts::Source),
        form(
            Form::CallLocal,
            "callLocal",
            "Calls a helper of the program by name.",
            TENTH,
            &[
                name("name", "Name of a helper in the program's `helpers`."),
                req(
                    "args",
                    Kind::List,
                    "A value or reference for each of its parameters, in order.",
                )
                .members_resolved(),
            ],
        ),
        form(
            Form::Error,
            "Error",
            "Fails with a message.",
            TENTH,
            &[opt(
                "args",
                Kind::List,
                "A list whose first item is the message; without one it is `Error`.",
            )
            .literal()],
        )
        .gives(Gives::NOTHING)
        .whole_price(),
        form(
            Form::Map,
            "map",
            "Runs steps for each item and collects their `result` variables.",
            MICRO,
            &[
                items("List to iterate over."),
                name("as", AS),
                steps(
                    "steps",
                    "Steps for an item; their variable `result` is collected.",
                ),
                INDEX,
            ],
        )
        .gives(Gives::always(JsonKinds::ARRAY)),
        form(
            Form::Filter,
            "filter",
            "Keeps the items for which the condition is truthy.",
            MICRO,
            &[
                items("List to choose from."),
                name("as", AS),
                condition(TEST),
                test_vars,
                INDEX,
            ],
        ),
        form(
            Form::Find,
            "find",
            "Returns the first item for which the condition is truthy, or null.",
            MICRO,
            &[
                items("List to search."),
                name("as", AS),
                condition(TEST),
                test_vars,
                INDEX,
            ],
        ),
        form(
            Form::Reduce,
            "reduce",
            "Runs steps for each item; their `result` becomes the accumulator.",
            MICRO,
            &[
                items("List to iterate over."),
                name("as", AS),
                name(
                    "accumulator",
                    "Name of the variable that holds the accumulator.",
                ),
                req(
                    "initial",
                    Kind::Any,
                    "The accumulator before the first item.",
                ),
                steps(
                    "steps",
                    "Steps for an item; their variable `result` is the next accumulator, unless \
                     it is null.",
                ),
                INDEX,
            ],
        ),
        form(
            Form::Memoize,
            "memoize",
            "Runs steps once for each key in a run and remembers their result.",
            MICRO,
            &[
                opt("key", Kind::Text, KEY),
                steps(
                    "steps",
                    "Steps whose variable `result` is memoized for the run.",
                ),
            ],
        )
        .listed(ShortPrompts::Source),
        form(
            Form::Cache,
            "cache",
            "Caches the result of steps in the store, by default for a day (`ttlMs`).",
            5 * MICRO,
            &[
                opt("key", Kind::Text, KEY),
                steps("steps", "Steps whose variable `result` is kept."),
                opt("ttlMs", Kind::Number, "Time to live in milliseconds.")
                    .whole(0.0, f64::INFINITY)
                    .default("86400000"),
            ],
        )
        .listed(ShortPrompts::Source)
        .needs(Capability::Store)
        .whole_price(),
        call_all(),
    ]
}

/// Name of the index variable (D65). Older artifacts do not have it.
const INDEX: Input = opt(
    "index",
    Kind::Text,
    "Name of the variable that holds the index of the item, from 0; in programs of version 4.",
)
.literal()
.beside_params();

/// The loop whose steps share the enclosing variables (D63).
fn for_each() -> AtomDef {
    form(
        Form::ForEach,
        "forEach",
        "Runs steps for each item; variables that they set persist, as in `while`.",
        MICRO,
        &[
            req("items", Kind::List, "List to iterate over."),
            req(
                "as",
                Kind::Text,
                "Name of the variable that holds the item.",
            )
            .literal(),
            opt(
                "index",
                Kind::Text,
                "Name of the variable that holds the index of the item, from 0.",
            )
            .literal(),
            steps("steps", "Steps for an item."),
        ],
    )
}

/// Concurrent calls (language section 2.10).
fn call_all() -> AtomDef {
    form(
        Form::CallAll,
        "callAll",
        "Makes several calls at once and returns a list of their answers in the order of the \
         calls, each `{value}` or `{error}`.",
        TENTH,
        &[
            opt(
                "calls",
                Kind::List,
                "Calls of atoms, each as a step `{\"op\": ..., inputs}` without `result`.",
            )
            .told(Kind::Records)
            .literal(),
            opt(
                "items",
                Kind::List,
                "List with a call for each item, instead of `calls`.",
            ),
            opt(
                "as",
                Kind::Text,
                "Name of the variable that holds the item in `call`.",
            )
            .literal(),
            opt(
                "call",
                Kind::Record,
                "The call for each item: `{\"op\": ..., inputs}`.",
            )
            .literal(),
            opt(
                "limit",
                Kind::Number,
                "Calls in progress at once, from 1 to 64.",
            )
            .whole(1.0, MAX_CALLS_UNDER_WAY)
            .default("8"),
        ],
    )
    .listed(ShortPrompts::Neither)
    .gives(Gives::always(JsonKinds::ARRAY))
}

/// In the reference, `return` has no input schema.
fn return_form() -> AtomDef {
    let mut def = form(
        Form::Return,
        "return",
        "Ends the program with the variables that the schema names, or with a value.",
        TENTH,
        &[
            opt(
                "schema",
                Kind::Record,
                "JSON Schema of the result: an object of the variables that `properties` names.",
            )
            .literal(),
            opt(
                "filter",
                Kind::Bool,
                "Whether members that the schema does not declare are removed.",
            )
            .literal()
            .default("true"),
            opt(
                "value",
                Kind::Any,
                "The result itself, instead of `schema`; in programs before version 4 an object.",
            ),
        ],
    );
    def.sig.input_schema = "{}".into();
    def
}

/// State (language section 2.2).
pub(crate) fn state() -> Vec<AtomDef> {
    let name = |docs| req("key", Kind::Text, docs).literal();
    let fifth = 2 * TENTH;
    vec![
        form(
            Form::VarSet,
            "varSet",
            "Sets a variable in the current scope.",
            TENTH,
            &[
                name("Name of the variable."),
                req("value", Kind::Any, "Its value."),
            ],
        ),
        form(
            Form::ConstSet,
            "constSet",
            "Sets a variable that cannot be set again.",
            TENTH,
            &[
                name("Name of the variable, which must be free in this scope."),
                req("value", Kind::Any, "Its value."),
            ],
        )
        .listed(ShortPrompts::Source),
        form(
            Form::VarGet,
            "varGet",
            "Returns the value of a variable or path.",
            TENTH,
            &[req(
                "key",
                Kind::Text,
                "Name of a variable, or a path from one: `user.name`.",
            )
            .subject()],
        )
        .listed(ShortPrompts::Source),
        form(
            Form::VarsImport,
            "varsImport",
            "Copies arguments of the run into variables.",
            fifth,
            &[req(
                "keys",
                Kind::Names,
                "Names of arguments, or an object that maps variables to names of arguments.",
            )
            .literal()],
        ),
        vars_let(),
        form(
            Form::VarsExport,
            "varsExport",
            "Returns an object of variables.",
            fifth,
            &[req(
                "keys",
                Kind::Names,
                "Names of variables, or an object that maps members to names or paths.",
            )
            .literal()],
        )
        .listed(ShortPrompts::Source)
        .gives(Gives::always(JsonKinds::OBJECT)),
    ]
}

/// `varsLet` binds each key of its step.
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
        &[
            req(
                "expr",
                Kind::Text,
                "Expression, as in `price * (1 + rate)`: arithmetic, comparisons, `&&`, `||`, `!` \
                 and members by `.name`; no calls and no ternary.",
            )
            .literal(),
            VARS,
        ],
    )]
}

/// `runCode`, which the language lists among the IO atoms (language section 2.6).
pub(crate) fn run_code() -> AtomDef {
    form(
        Form::RunCode,
        "runCode",
        "Transpiles source code and runs it in a child scope.",
        MICRO,
        &[
            req(
                "code",
                Kind::Text,
                "Source text in the language of the host's transpiler.",
            ),
            opt("args", Kind::Record, "Arguments of the transpiled program."),
        ],
    )
    .listed(ShortPrompts::Neither)
    .needs(Capability::Transpiler)
    .whole_price()
    .effect(Effect::Read)
}
