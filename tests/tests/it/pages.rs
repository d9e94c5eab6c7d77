//! Programs on pages: each compiles without a finding that the page does not
//! show, and gives what the page says on the machine, through an artifact and on
//! the oracle.
//!
//! `docs/README.md` tells writers how a page says what comes out.

use a99_core::fuel::Fuel;
use a99_core::json::{Document, Limits};
use a99_core::text::Text;
use a99_testkit::oracle::{self, Answer, OracleHost, OracleOptions};
use a99_testkit::pages::{Fence, fences, pages};
use agent99::artifact::EncodeOptions;
use agent99::capabilities::{
    AgentCall, AgentOutcome, CapabilityError, ScanMeter, Script, StoreMethod,
};
use agent99::{Agent, Capabilities, Diagnostics, Engine, RunOptions, Value};
use serde_json::Value as Json;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The least number of programs and runs that pages show: a reader that finds
/// none would pass everything.
const PROGRAMS: usize = 60;
const RUNS: usize = 90;

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

fn all_pages() -> Vec<Vec<Fence>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    pages(&root).expect("the pages")
}

/// A run that a page shows: a line of a block `runs`, or a command.
#[derive(Debug)]
struct Run {
    place: String,
    args: Json,
    fuel: f64,
    script: Option<String>,
    outcome: Expected,
}

#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Result(Json),
    Undefined,
    Error(String),
}

/// The runs of a block: `[--fuel N] [--script FILE] ARGS -> OUTCOME`. What begins
/// with a blank belongs to the line before.
fn runs(fence: &Fence) -> Result<Vec<Run>, String> {
    let mut lines: Vec<String> = Vec::new();
    for line in fence.text.lines() {
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => *last += line,
            None => lines.push(line.to_owned()),
        }
    }
    lines.iter().map(|line| run_of(fence, line)).collect()
}

fn run_of(fence: &Fence, line: &str) -> Result<Run, String> {
    let (mut left, right) = line
        .split_once(" -> ")
        .ok_or_else(|| format!("no ` -> ` in: {line}"))?;
    let outcome = match right.trim() {
        "undefined" => Expected::Undefined,
        right => match right.strip_prefix("error: ") {
            Some(message) => Expected::Error(message.to_owned()),
            None => Expected::Result(
                serde_json::from_str(right).map_err(|e| format!("{e} in: {right}"))?,
            ),
        },
    };
    let mut run = Run {
        place: fence.place(),
        args: Json::Null,
        fuel: 1000.0,
        script: None,
        outcome,
    };
    while let Some(option) = left.strip_prefix("--") {
        let mut words = option.splitn(3, ' ');
        let (name, value) = (words.next(), words.next().unwrap_or_default());
        match name {
            Some("fuel") => run.fuel = value.parse().map_err(|_| line.to_owned())?,
            Some("script") => run.script = Some(value.to_owned()),
            _ => return Err(format!("an option that no run has: {line}")),
        }
        left = words.next().unwrap_or_default();
    }
    run.args = serde_json::from_str(left).map_err(|e| format!("{e} in: {left}"))?;
    run.place = format!("{} ({})", fence.place(), run.args);
    Ok(run)
}

/// The runs of a program among the commands of a block that need nothing but
/// arguments and a script. The command's own test types all of them.
fn commands(fence: &Fence, program: &str) -> Vec<Run> {
    let mut found: Vec<(Run, String)> = Vec::new();
    let start = format!("$ a99 run {program}");
    for line in fence.text.lines() {
        if let Some(rest) = line.strip_prefix(&start) {
            let (args, rest) = match rest.trim().strip_prefix("--args '") {
                Some(quoted) => quoted.split_once('\'').unwrap_or_default(),
                None => ("{}", rest.trim()),
            };
            let run = Run {
                place: format!("{} ({args})", fence.place()),
                args: serde_json::from_str(args).unwrap_or_default(),
                fuel: 1000.0,
                script: rest.trim().strip_prefix("--script ").map(str::to_owned),
                outcome: Expected::Undefined,
            };
            let plain = rest.trim().is_empty() || run.script.is_some();
            let script = run.script.as_deref().unwrap_or_default();
            if plain && !script.contains(' ') {
                found.push((run, String::new()));
                continue;
            }
        }
        match found.last_mut() {
            Some((_, shown)) if !line.starts_with('$') => *shown += &format!("{line}\n"),
            // What another command prints is none of this one's.
            Some((_, shown)) => shown.push('\0'),
            None => {}
        }
    }
    let read = |(mut run, shown): (Run, String)| {
        let shown = shown.split('\0').next()?.trim().to_owned();
        let message = shown.lines().find_map(|line| line.strip_prefix("error["));
        run.outcome = match message.and_then(|line| line.split_once("]: ")) {
            Some((_, message)) => Expected::Error(message.to_owned()),
            None => Expected::Result(serde_json::from_str(&shown).ok()?),
        };
        Some(run)
    };
    found.into_iter().filter_map(read).collect()
}

/// A program of a page, and what the page says of it.
struct Shown<'p> {
    program: &'p Fence,
    findings: Option<&'p Fence>,
    runs: Vec<Run>,
}

/// The programs of a page; of the runs, the scripts in place of their names.
fn shown(page: &[Fence]) -> Result<Vec<Shown<'_>>, String> {
    let mut programs: Vec<Shown<'_>> = Vec::new();
    let mut files: HashMap<&str, &str> = HashMap::new();
    for fence in page {
        let without = || format!("{}: no program before this", fence.place());
        let wrong = |why: String| format!("{}: {why}", fence.place());
        match fence.kind.as_str() {
            "json" => {
                let json: Json =
                    serde_json::from_str(&fence.text).map_err(|e| wrong(e.to_string()))?;
                if json["op"] == "seq" {
                    programs.push(Shown {
                        program: fence,
                        findings: None,
                        runs: Vec::new(),
                    });
                } else {
                    files.insert(&fence.name, &fence.text);
                }
            }
            "check" => programs.last_mut().ok_or_else(without)?.findings = Some(fence),
            "runs" | "console" => {
                let Some(last) = programs.last_mut() else {
                    // Commands about something else.
                    match fence.kind.as_str() {
                        "runs" => return Err(without()),
                        _ => continue,
                    }
                };
                let mut runs = match fence.kind.as_str() {
                    "runs" => runs(fence).map_err(wrong)?,
                    _ if last.program.name.is_empty() => continue,
                    _ => commands(fence, &last.program.name),
                };
                for run in &mut runs {
                    if let Some(name) = &run.script {
                        let text = files.get(name.as_str());
                        let none = || wrong(format!("the page has no {name} so far"));
                        run.script = Some((*text.ok_or_else(none)?).to_owned());
                    }
                }
                last.runs.append(&mut runs);
            }
            _ => {}
        }
    }
    Ok(programs)
}

/// What is found in a program: `CODE POINTER`, one a line.
fn findings(compiled: &Result<Agent, Diagnostics>) -> Vec<String> {
    let found = match compiled {
        Ok(agent) => agent.warnings(),
        Err(refused) => refused,
    };
    let line = |found: &agent99::Diagnostic| format!("{} {}", found.code, found.pointer);
    found.iter().map(line).collect()
}

/// Outcome of a run on one engine: result or message, and fuel.
#[derive(Debug, PartialEq)]
struct Came {
    outcome: Expected,
    fuel: Fuel,
}

fn came(result: &Value, error: Option<String>, fuel: Fuel) -> Came {
    let outcome = match error {
        Some(message) => Expected::Error(message),
        None if result.is_undefined() => Expected::Undefined,
        None => Expected::Result(result.to_json()),
    };
    Came { outcome, fuel }
}

/// The capabilities of a script, as the oracle asks for them.
struct Granted {
    set: Capabilities,
    runtime: Runtime,
    /// Bytes that a store looked at in the last call.
    looked: Cell<u64>,
}

impl Granted {
    fn ask(&self, method: &str, args: Vec<Value>) -> Option<Result<Value, CapabilityError>> {
        let set = &self.set;
        let mut args = args.into_iter().chain(std::iter::repeat(Value::Undefined));
        let mut next = || args.next().unwrap_or(Value::Undefined);
        let wait = &self.runtime;
        Some(match method {
            "fetch" => wait.block_on(set.fetch.as_ref()?.fetch(next(), next())),
            "llm.predict" => wait.block_on(set.llm.as_ref()?.predict(next(), next())),
            "llmBattery.predict" => {
                let model = set.llm_battery.as_ref()?;
                wait.block_on(model.predict(next(), next(), next(), next()))
            }
            "vector.embed" => wait.block_on(set.embedder.as_ref()?.embed(next())),
            "xml.parse" => wait.block_on(set.xml.as_ref()?.parse(next())),
            "code.transpile" => wait.block_on(set.transpiler.as_ref()?.transpile(next())),
            "agent.run" => {
                let call = AgentCall {
                    fuel_left: Fuel::from_decimal(1.0).expect("an amount"),
                    depth: 0,
                    context: Arc::new(Value::Undefined),
                    id: agent99::CallId::default(),
                    account: Default::default(),
                    events: None,
                };
                let reply = wait.block_on(set.agent.as_ref()?.run(next(), next(), call));
                reply.map(|reply| match reply.outcome {
                    AgentOutcome::Any(value) | AgentOutcome::Result(value) => value,
                    AgentOutcome::Failed(error) => panic!("{error}"),
                })
            }
            method => {
                use StoreMethod::*;
                let store = set.store.as_ref()?;
                let looked = Arc::new(ScanMeter::up_to(u64::MAX));
                let reply = match StoreMethod::named(method.strip_prefix("store.")?)? {
                    Get => store.get(next()),
                    Set => store.set(next(), next()),
                    SetUntil => store.set_until(next(), next(), next().as_f64()?),
                    Delete => store.delete(next()),
                    List => store.list(next(), next(), next()),
                    CompareAndSet => {
                        let (key, expected, value) = (next(), next(), next());
                        store.compare_and_set(key, expected, value, next().as_f64())
                    }
                    Query => store.query_counted(next(), Arc::clone(&looked)),
                    QueryPredicate => store.query_predicate_counted(next(), Arc::clone(&looked)),
                    VectorSearch => store.vector_search(next(), next(), next(), next()),
                    CreateCollection => store.create_collection(next(), next(), next()),
                    VectorAdd => store.vector_add(next(), next()),
                    VectorUpsert => store.vector_upsert(next(), next()),
                    VectorDelete => store.vector_delete(next(), next()),
                };
                let answer = wait.block_on(reply);
                self.looked.set(looked.bytes());
                answer
            }
        })
    }
}

impl OracleHost for Granted {
    fn provides(&self, method: &str) -> bool {
        let set = &self.set;
        match method {
            "fetch" => set.fetch.is_some(),
            "llm.predict" => set.llm.is_some(),
            "llmBattery.predict" => set.llm_battery.is_some(),
            "ai.generate" => set.ai.is_some(),
            "vector.embed" => set.embedder.is_some(),
            "xml.parse" => set.xml.is_some(),
            "code.transpile" => set.transpiler.is_some(),
            "agent.run" => set.agent.is_some(),
            method => {
                let method = method.strip_prefix("store.").and_then(StoreMethod::named);
                method.is_some_and(|method| {
                    set.store
                        .as_ref()
                        .is_some_and(|store| store.supports(method))
                })
            }
        }
    }

    fn call(&mut self, method: &str, args: Vec<Value>) -> Answer {
        let answer = self.ask(method, args);
        let none = || Err(CapabilityError::new(format!("no capability {method}")));
        Answer {
            result: answer.unwrap_or_else(none).map_err(|e| e.message),
            delay_ms: 0.0,
        }
    }

    fn looked(&mut self) -> u64 {
        self.looked.take()
    }

    fn atom(&mut self, op: &str, _: Value) -> Answer {
        Answer {
            result: Err(Text::from(format!("no atom {op}"))),
            delay_ms: 0.0,
        }
    }
}

/// The outcome of a run on each engine that judges it, by the engine's name.
fn outcomes(
    engine: &Engine,
    program: &Fence,
    agent: &Agent,
    run: &Run,
) -> Result<Vec<(&'static str, Came)>, String> {
    let script = match &run.script {
        None => Script::default(),
        Some(text) => {
            let json: Json = serde_json::from_str(text).map_err(|e| e.to_string())?;
            Script::new(json.into()).map_err(|e| e.to_string())?
        }
    };
    let runtime = runtime();
    let granted = || runtime.block_on(script.granted());
    let granted = || granted().map_err(|e| e.to_string());
    let options = || RunOptions::new().fuel(run.fuel).map_err(|e| e.to_string());
    let machine = |agent: &Agent| {
        let done = engine.run(agent, run.args.clone(), options()?, granted()?);
        let done = runtime.block_on(done);
        let error = done.error.as_ref().map(|e| e.message.to_string());
        Ok::<Came, String>(came(&done.result, error, done.fuel_used))
    };

    let bytes = agent.to_bytes(&EncodeOptions { strip: false });
    let bytes = bytes.map_err(|e| e.to_string())?;
    let loaded = engine.load(&bytes).map_err(|e| e.to_string())?;

    let document =
        Document::parse(program.text.as_bytes(), &Limits::default()).map_err(|d| d.render(None))?;
    let options = OracleOptions {
        fuel: Fuel::from_decimal(run.fuel).map_err(|e| e.to_string())?,
        ..OracleOptions::default()
    };
    let mut host = Granted {
        set: granted()?,
        runtime: self::runtime(),
        looked: Cell::new(0),
    };
    let args = Value::from(run.args.clone());
    let done = oracle::run(&document, &args, &options, &mut host).map_err(|r| r.message)?;
    let mut outcomes = vec![
        ("machine", machine(agent)?),
        ("artifact", machine(&loaded)?),
    ];
    if done.not_judged.is_none() {
        let error = done.error.map(|e| e.message.to_string());
        outcomes.push(("oracle", came(&done.result, error, done.fuel_used)));
    }
    Ok(outcomes)
}

/// What is wrong with a program and what its page says of it.
fn judge(shown: &Shown<'_>) -> Vec<String> {
    let place = shown.program.place();
    let engine = Engine::builder().lint(true).build();
    let compiled = engine.compile(shown.program.text.as_str());
    let found = findings(&compiled).join("\n");
    let said = shown.findings.map_or("", |fence| fence.text.trim());
    let mut wrong = Vec::new();
    if found != said {
        let text = match &compiled {
            Ok(agent) => agent.warnings().render(None),
            Err(refused) => refused.render(None),
        };
        wrong.push(format!("{place}: found is\n{found}\n{text}"));
    }
    let Ok(agent) = compiled else { return wrong };
    for run in &shown.runs {
        let place = &run.place;
        match outcomes(&engine, shown.program, &agent, run) {
            Err(why) => wrong.push(format!("{place}: {why}")),
            Ok(came) => {
                let others = came.iter().filter(|(_, c)| c.outcome != run.outcome);
                wrong.extend(
                    others.map(|(engine, c)| format!("{place}: {engine} gives {:?}", c.outcome)),
                );
                // An exhausted budget is overdrawn by different last prices.
                let out = came[0].1.outcome == Expected::Error("Out of Fuel".to_owned());
                if !out && came.iter().any(|(_, c)| c.fuel != came[0].1.fuel) {
                    wrong.push(format!("{place}: engines differ: {came:?}"));
                }
            }
        }
    }
    wrong
}

/// Each program of each page is what the page says, and does it.
#[test]
fn programs_of_pages_do_what_the_page_says() {
    let (mut programs, mut runs) = (0, 0);
    let mut wrong = Vec::new();
    for page in all_pages() {
        match shown(&page) {
            Err(why) => wrong.push(why),
            Ok(shown) => {
                programs += shown.len();
                runs += shown.iter().map(|shown| shown.runs.len()).sum::<usize>();
                wrong.extend(shown.iter().flat_map(judge));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(programs >= PROGRAMS, "only {programs} programs were found");
    assert!(runs >= RUNS, "only {runs} runs were found");
}

/// A page that says what is not so is told, with its line.
#[test]
fn a_page_that_is_wrong_is_told() {
    let page = |text: &str| fences("docs/x.md", text);
    let told = |text: &str| {
        let page = page(text);
        let shown = shown(&page).expect("a page");
        let wrong: Vec<String> = shown.iter().flat_map(judge).collect();
        wrong.join("\n")
    };
    let program = "# x\n\n```json p.json\n{\"op\": \"seq\", \"steps\": [\n\
                   {\"op\": \"return\", \"value\": {\"a\": 1}}]}\n```\n\n";
    let runs = "```runs\n{} -> {\"a\": 2}\n{} -> {\"a\":\n  1}\n{} -> error: no\n```\n";
    let wrong = told(&format!("{program}{runs}"));
    assert_eq!(wrong.lines().count(), 6, "{wrong}");
    assert!(
        wrong
            .lines()
            .all(|line| line.starts_with("docs/x.md:8 ({})")),
        "{wrong}"
    );
    let typed = "```console\n$ a99 run p.json\n{\n  \"a\": 1\n}\n\
                 $ a99 run p.json --args '{\"b\": 1}'\nerror[x.y]: no\n  --> x\n\
                 $ a99 run p.json --json\n{}\n```\n";
    let wrong = told(&format!("{program}{typed}"));
    assert_eq!(wrong.lines().count(), 3, "{wrong}");

    let wrong = told("```json\n{\"op\": \"seq\", \"steps\": [{\"op\": \"split\"}]}\n```\n");
    assert!(wrong.starts_with("docs/x.md:1: found is\nlint."), "{wrong}");
    for (text, why) in [
        (
            "```runs\n{} -> 1\n```",
            "docs/x.md:1: no program before this",
        ),
        (
            "```json\n{\n```",
            "docs/x.md:1: EOF while parsing an object at line 2 column 0",
        ),
    ] {
        assert_eq!(shown(&page(text)).err().as_deref(), Some(why));
    }
}
