//! Operations with data from the host during a run: answers of atoms, and programs that arrive at
//! run time.

use super::{Watch, lateness, own_time};
use a99_compiler::{CompileOptions, compile_watched};
use a99_core::json::Document;
use a99_core::verify::verify_watched;
use a99_vm::Executable;
use a99_vm::machine::{LoadRequest, Machine, Request, Requests, Step};
use a99_vm::native::Host as _;
use agent99::{AtomBody, AtomError, AtomSet, HostReply, Text, all_atoms, atom};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Takes a list of pairs.
#[atom(cost = 1)]
fn takes_pairs(pairs: Vec<(String, f64)>) -> f64 {
    let len = pairs.len();
    own_time(|| drop(pairs));
    len as f64
}

/// Takes a text.
#[atom(cost = 1)]
fn takes_text(text: String) -> f64 {
    text.len() as f64
}

/// Returns its argument.
#[atom(cost = 1)]
fn gives_pairs(pairs: Vec<(String, f64)>) -> Vec<(String, f64)> {
    pairs
}

/// Returns its argument as an asynchronous atom.
#[atom(cost = 1, effect = "io")]
async fn waits(value: Own) -> Own {
    value
}

/// Data of the host. Dropping it is the host's own time, also when an interrupted read drops
/// partial data.
#[derive(Clone, Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
struct Own(Json);

impl<'de> Deserialize<'de> for Own {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OwnVisitor)
    }
}

struct OwnVisitor;

impl<'de> Visitor<'de> for OwnVisitor {
    type Value = Own;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list, an object or a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Own, E> {
        Ok(Own(Json::from(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Own, A::Error> {
        let mut own = Own(json!([]));
        while let Some(item) = items.next_element()? {
            own.0.as_array_mut().expect("a list").push(item);
        }
        Ok(own)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Own, A::Error> {
        let mut own = Own(json!({}));
        while let Some((key, value)) = members.next_entry()? {
            own.0.as_object_mut().expect("an object").insert(key, value);
        }
        Ok(own)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        own_time(|| drop(self.0.take()));
    }
}

/// All atoms, and those of this module.
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

/// Name and step of each operation.
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
            "callAll of objects".to_owned(),
            json!({"op": "callAll", "calls": vec![step("waits", "value", "object"); 4], "result": "x"}),
        ),
        (
            "agentRun".to_owned(),
            json!({"op": "agentRun", "agentId": id("program"), "input": id("object"), "result": "x"}),
        ),
        (
            "agentRun with helpers".to_owned(),
            json!({"op": "agentRun", "agentId": id("caller"), "input": {}, "result": "x"}),
        ),
    ]
}

/// Answers a call.
pub(crate) fn answer(
    machine: &mut Machine,
    request: Request,
    watch: &Watch,
) -> Result<Step, String> {
    let answer = answer_of(machine, request, watch)?;
    Ok(match machine.deliver(answer, watch) {
        Some(step) => step,
        None => machine.resume(watch),
    })
}

/// Answers several calls.
pub(crate) fn answer_all(
    machine: &mut Machine,
    requests: Requests,
    watch: &Watch,
) -> Result<Step, String> {
    let (mut answers, mut bytes) = (Vec::new(), 0usize);
    for one in requests.calls {
        let answer = answer_of(machine, one.request, watch)?;
        let room = requests.room.saturating_sub(bytes);
        match Requests::bytes_of(&answer, room, watch) {
            Ok(more) => bytes += more,
            Err(reason) => {
                machine.stop(reason);
                return Ok(Step::Done);
            }
        }
        answers.push(answer);
    }
    machine.deliver_all(answers, watch);
    Ok(machine.resume(watch))
}

/// Answers a call that is ready at its first poll. The deadline of the call varies each time; how
/// late it ends is recorded.
fn answer_of(
    machine: &Machine,
    mut request: Request,
    watch: &Watch,
) -> Result<Result<HostReply, AtomError>, String> {
    /// Longer than any call takes.
    const LONGEST_US: u64 = 30_000;
    const STEP_US: u64 = 617;
    let offset = watch.calls.fetch_add(STEP_US, Relaxed) % LONGEST_US;
    let begun = watch.look();
    let deadline = Instant::now() + Duration::from_micros(offset);
    request.call.deadline = Some(deadline);
    let body = machine.atom_of(&request).body.clone();
    let (answer, late) = lateness(deadline, || {
        let mut future = match body {
            AtomBody::Async(body) => body(request.call),
            AtomBody::AsyncDyn(body) => body(request.call),
            _ => return Err("not an atom that waits".to_owned()),
        };
        let mut context = Context::from_waker(Waker::noop());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Err("an atom that waits".to_owned()),
        }
    });
    watch.answered(begun, late.as_micros() as u64);
    answer
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
    let document = Document::from_value_watched(&request.program, &stop)
        .ok_or_else(|| Text::from("stopped"))?;
    let document = Arc::new(document);
    let program = compile_watched(&document, &**atoms, &options, &stop)
        .map_err(|refused| Text::from(format!("{refused:?}")))?;
    let artifact = verify_watched(program, &stop)
        .ok_or_else(|| Text::from("stopped"))?
        .map_err(|error| Text::from(error.to_string()))?;
    if stop() {
        return Err(Text::from("stopped"));
    }
    Executable::link_watched(&artifact, atoms, &stop)
        .ok_or_else(|| Text::from("stopped"))?
        .map(Arc::new)
        .map_err(|error| Text::from(error.to_string()))
}
