//! Failures of functions: classification of `Result`s, and codes of a host.

use crate::{failure, run_step, value};
use agent99::{AtomCx, AtomDecl, AtomError, Engine, ErrorCode, HostCode, RunOptions, atom, json};
use std::borrow::Cow;
use std::fmt;

/// An error with only a text, like catch-all error types.
struct AnyError(Box<dyn fmt::Display + Send>);

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: std::error::Error + Send + 'static> From<E> for AnyError {
    fn from(error: E) -> AnyError {
        AnyError(Box::new(error))
    }
}

type Answer<T> = Result<T, String>;
type Whole = Result<u8, AnyError>;

mod anyhow {
    pub(super) type Result<T, E = super::AnyError> = core::result::Result<T, E>;
}

/// By an alias of another name.
#[atom(cost = 0)]
fn by_alias(n: u8) -> Answer<u8> {
    n.checked_mul(2).ok_or_else(|| "too much".to_owned())
}

/// By an alias that shows neither type.
#[atom(cost = 0)]
fn by_whole_alias(n: u8) -> Whole {
    Ok(n.to_string().repeat(2).parse()?)
}

mod paths {
    #![allow(unused_qualifications, reason = "that is what is tested")]

    /// By a path.
    #[agent99::atom(cost = 0)]
    pub(super) fn by_path(n: u8) -> std::result::Result<u8, &'static str> {
        n.checked_mul(2).ok_or("too much")
    }
}

/// By a catch-all type of errors, waiting.
#[atom(cost = 0)]
async fn by_any(n: u8) -> anyhow::Result<u8> {
    Ok(n.to_string().repeat(2).parse()?)
}

#[test]
fn a_result_is_one_by_whatever_name() {
    for atom in [BY_ALIAS, BY_WHOLE_ALIAS, paths::BY_PATH, BY_ANY] {
        let schema = json!({"type": "integer", "minimum": 0, "maximum": 255});
        assert_eq!(atom.output_schema(), schema, "{}", atom.name);
        let run = |n: u8| run_step([atom.def()], json!({"op": atom.name, "n": n}));
        let twice = [json!(2), json!(11)];
        assert!(twice.contains(&value(&run(1)).to_json()), "{}", atom.name);
        let (op, text) = failure(&run(200));
        assert_eq!(op, atom.name);
        assert!(text.starts_with("too much") || text.starts_with("number too large"));
    }
}

/// Borrows its answer.
#[atom(cost = 0)]
fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}

/// Borrows its answer and its error, called once.
#[atom(cost = 0, effect = "io")]
fn only_word(text: &str) -> Result<&str, Cow<'_, str>> {
    match text.split_once(' ') {
        None => Ok(text),
        Some((_, rest)) => Err(format!("more than a word: {rest}").into()),
    }
}

#[test]
fn answers_may_borrow_from_inputs() {
    let step = |op: &str, text: &str| json!({"op": op, "text": text});
    let outcome = run_step([FIRST_WORD.def()], step("firstWord", "a b"));
    assert_eq!(value(&outcome).to_json(), "a");
    let outcome = run_step([ONLY_WORD.def()], step("onlyWord", "a"));
    assert_eq!(value(&outcome).to_json(), "a");
    let outcome = run_step([ONLY_WORD.def()], step("onlyWord", "a b"));
    assert_eq!(failure(&outcome).1, "more than a word: b");
}

/// A type of the host with the name of the standard library's.
mod ours {
    #[derive(serde::Serialize, schemars::JsonSchema)]
    pub(super) struct Result {
        pub(super) points: u8,
    }
}

/// Gives a struct that is called `Result`.
#[atom(cost = 0)]
fn named_result(points: u8) -> ours::Result {
    ours::Result { points }
}

/// A `Result` inside of an answer is data, as serde writes it.
#[atom(cost = 0, output = "{}")]
fn results(n: u8) -> Vec<Answer<u8>> {
    vec![by_alias(n)]
}

#[test]
fn nothing_else_is_a_result() {
    let outcome = run_step(
        [NAMED_RESULT.def()],
        json!({"op": "namedResult", "points": 3}),
    );
    assert_eq!(value(&outcome).to_json(), json!({"points": 3}));
    assert_eq!(NAMED_RESULT.output_schema()["type"], "object");
    let outcome = run_step([RESULTS.def()], json!({"op": "results", "n": 200}));
    assert_eq!(value(&outcome).to_json(), json!([{"Err": "too much"}]));
}

const DECLINED: HostCode = HostCode::new("billing.declined");

enum BillingError {
    Declined,
    Unreachable,
}

impl From<BillingError> for AtomError {
    fn from(error: BillingError) -> AtomError {
        match error {
            BillingError::Declined => AtomError::new("the card was declined")
                .with_host_code(DECLINED)
                .with_help("ask for another card"),
            BillingError::Unreachable => AtomError::missing("the bank does not answer"),
        }
    }
}

/// Fails with an error of its own.
#[atom(cost = 0)]
fn charge(amount: f64) -> Result<f64, BillingError> {
    match amount {
        1e6.. => Err(BillingError::Unreachable),
        100.0.. => Err(BillingError::Declined),
        _ => Ok(amount),
    }
}

/// The same, waiting.
#[atom(cost = 0)]
async fn charge_later(_cx: &AtomCx, amount: f64) -> Result<f64, AtomError> {
    Ok(charge(amount)?)
}

/// Fails with codes that are the engine's to give.
#[atom(cost = 0)]
fn claims() -> Result<(), AtomError> {
    Err(AtomError::coded(ErrorCode::OutOfFuel, ""))
}

#[test]
fn codes_of_the_host_arrive() {
    for atom in [CHARGE, CHARGE_LATER] {
        let run = |amount: f64| run_step([atom.def()], json!({"op": atom.name, "amount": amount}));
        assert_eq!(value(&run(1.0)).to_json(), json!(1));
        let error = run(150.0).error.expect("it is declined");
        match error.host_code {
            Some(DECLINED) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(error.code, ErrorCode::Program);
        assert_eq!(
            serde_json::to_value(&error).unwrap(),
            json!({
                "code": "program.error", "hostCode": "billing.declined",
                "message": "the card was declined", "op": atom.name, "pointer": "/steps/0",
                "help": "ask for another card",
            })
        );
        let error = run(1e7).error.expect("nobody answers");
        assert_eq!((error.code, error.host_code), (ErrorCode::Capability, None));
    }
    let error = run_step([CLAIMS.def()], json!({"op": "claims"}))
        .error
        .unwrap();
    assert_eq!(error.code, ErrorCode::Program);
    assert_eq!(error.message.to_string(), "Error");
}

#[test]
fn programs_see_the_message_only() {
    let engine = Engine::builder()
        .atoms(agent99::core_atoms().with(CHARGE))
        .build();
    let program = r#"{"op": "seq", "steps": [
        {"op": "try", "try": [{"op": "charge", "amount": 150}], "catch": [
            {"op": "return", "value": {"$expr": "object", "properties": [
                {"key": "why", "value": {"$expr": "ident", "name": "error"}},
                {"key": "who", "value": {"$expr": "ident", "name": "errorOp"}}]}}]}]}"#;
    let agent = engine.compile(program).unwrap();
    let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
    assert_eq!(
        outcome.result.to_json(),
        json!({"why": "the card was declined", "who": "charge"})
    );
}

#[test]
fn declarations_can_be_kept_by_reference() {
    const ALL: &[AtomDecl] = &[CHARGE, paths::BY_PATH];
    let mut set = agent99::AtomSet::new();
    ALL.iter().for_each(|atom| set.insert(atom));
    assert_eq!(set.iter().count(), 2);
}
