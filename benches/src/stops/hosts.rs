//! What comes from the host while a run goes on: answers of atoms, programs
//! that arrive at run time.

use super::Watch;
use a99_compiler::{CompileOptions, compile_watched};
use a99_core::json::Document;
use a99_core::verify::verify_watched;
use agent99::vm::Executable;
use agent99::vm::machine::{LoadRequest, Machine, Request, Step};
use agent99::vm::native::Host as _;
use agent99::{AtomBody, AtomError, AtomSet, HostReply, Text, all_atoms, atom};
use serde_json::{Value as Json, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Takes a list of pairs.
#[atom(cost = 1)]
fn takes_pairs(pairs: Vec<(String, f64)>) -> f64 {
    pairs.len() as f64
}

/// Takes a text.
#[atom(cost = 1)]
fn takes_text(text: String) -> f64 {
    text.len() as f64
}

/// Gives what it takes.
#[atom(cost = 1)]
fn gives_pairs(pairs: Vec<(String, f64)>) -> Vec<(String, f64)> {
    pairs
}

/// Gives what it takes, as an atom that waits does.
#[atom(cost = 1, effect = "io")]
async fn waits(value: Json) -> Json {
    value
}

/// All atoms, and those here.
pub(crate) fn atoms() -> AtomSet {
    let mut atoms = all_atoms();
    for def in [
        TAKES_PAIRS.def(),
        TAKES_TEXT.def(),
        GIVES_PAIRS.def(),
        WAITS.def(),
    ] {
        atoms.insert(def);
    }
    atoms
}

/// Name and step of each.
pub(crate) fn operations() -> Vec<(String, Json)> {
    let id = |name: &str| json!({"$expr": "ident", "name": name});
    let step = |op: &str, key: &str, name: &str| json!({"op": op, key: id(name), "result": "x"});
    vec![
        (
            "#[atom] pairs".to_owned(),
            step("takesPairs", "pairs", "pairs"),
        ),
        ("#[atom] text".to_owned(), step("takesText", "text", "page")),
        (
            "#[atom] giving pairs".to_owned(),
            step("givesPairs", "pairs", "pairs"),
        ),
        (
            "async atom of pairs".to_owned(),
            step("waits", "value", "pairs"),
        ),
        (
            "async atom of numbers".to_owned(),
            step("waits", "value", "numbers"),
        ),
        (
            "async atom of a text".to_owned(),
            step("waits", "value", "page"),
        ),
        (
            "async atom of an object".to_owned(),
            step("waits", "value", "object"),
        ),
        (
            "agentRun".to_owned(),
            json!({"op": "agentRun", "agentId": id("program"), "input": id("object"), "result": "x"}),
        ),
    ]
}

/// Answers a call that does not wait.
pub(crate) fn answer(
    machine: &mut Machine,
    request: Request,
    watch: &Watch,
) -> Result<Step, String> {
    let started = match &request.atom.body {
        AtomBody::Async(body) => body(request.call),
        AtomBody::AsyncDyn(body) => body(request.call),
        _ => return Err("not an atom that waits".to_owned()),
    };
    let mut future: Pin<Box<dyn Future<Output = Result<HostReply, AtomError>> + Send>> = started;
    let answer = match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(answer) => answer,
        Poll::Pending => return Err("an atom that waits".to_owned()),
    };
    drop(future);
    Ok(match machine.deliver(answer, watch) {
        Some(step) => step,
        None => machine.resume(watch),
    })
}

/// Compiles a program that arrived at run time.
pub(crate) fn load(
    atoms: &Arc<AtomSet>,
    request: &LoadRequest,
    watch: &Watch,
) -> Result<Arc<Executable>, Text> {
    let stop = || watch.stop().is_some();
    let options = CompileOptions {
        outer: request.outer.clone(),
        ..CompileOptions::default()
    };
    let document = Arc::new(Document::from_value(&request.program));
    let program = compile_watched(&document, &**atoms, &options, &stop)
        .map_err(|refused| Text::from(format!("{refused:?}")))?;
    let artifact = verify_watched(program, &stop)
        .ok_or_else(|| Text::from("stopped"))?
        .map_err(|error| Text::from(error.to_string()))?;
    let exe = Executable::link(&artifact, atoms).map_err(|error| Text::from(error.to_string()))?;
    Ok(Arc::new(exe))
}
