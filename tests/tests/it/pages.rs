//! Programs on pages: each compiles without a finding that the page does not
//! show, and gives what the page says on the machine, through an artifact and on
//! the oracle.
//!
//! `docs/README.md` tells writers how a page says what comes out.

use a99_core::fuel::Fuel;
use a99_core::json::{Document, Limits};
use a99_core::text::Text;
use a99_testkit::oracle::{self, Answer, OracleHost, OracleOptions};
use a99_testkit::pages::{Fence, pages};
use agent99::artifact::EncodeOptions;
use agent99::capabilities::{AgentCall, CapabilityError, Script, StoreMethod};
use agent99::{Agent, Capabilities, Diagnostics, Engine, RunOptions, Value};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The least number of programs and runs that pages show: a reader that finds
/// none would pass everything.
const PROGRAMS: usize = 15;
const RUNS: usize = 25;

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

fn all_pages() -> Vec<Vec<Fence>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    pages(&root).expect("the pages")
}

/// One line of a block `runs`: `[--fuel N] [--script FILE] ARGS -> OUTCOME`.
#[derive(Debug)]
struct Run {
    args: Json,
    fuel: f64,
    script: Option<String>,
    outcome: Expected,
}

#[derive(Debug, PartialEq)]
enum Expected {
    Result(Json),
    Undefined,
    Error(String),
}

/// The runs of a block; what begins with a blank belongs to the line before.
fn runs(fence: &Fence) -> Result<Vec<Run>, String> {
    let mut lines: Vec<String> = Vec::new();
    for line in fence.text.lines() {
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => *last += line,
            None => lines.push(line.to_owned()),
        }
    }
    lines.iter().map(|line| run_of(line)).collect()
}

fn run_of(line: &str) -> Result<Run, String> {
    let (mut left, right) = line
        .split_once(" -> ")
        .ok_or_else(|| format!("no ` -> ` in: {line}"))?;
    let mut run = Run {
        args: Json::Null,
        fuel: 1000.0,
        script: None,
        outcome: match right.trim() {
            "undefined" => Expected::Undefined,
            right => match right.strip_prefix("error: ") {
                Some(message) => Expected::Error(message.to_owned()),
                None => Expected::Result(
                    serde_json::from_str(right).map_err(|e| format!("{e} in: {right}"))?,
                ),
            },
        },
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
    Ok(run)
}

/// A program of a page, and what the page says of it.
struct Shown<'p> {
    program: &'p Fence,
    findings: Option<&'p Fence>,
    runs: Vec<&'p Fence>,
}

/// The programs of a page, and its other files by their names.
fn shown(page: &[Fence]) -> Result<(Vec<Shown<'_>>, HashMap<&str, &str>), String> {
    let mut programs: Vec<Shown<'_>> = Vec::new();
    let mut files = HashMap::new();
    for fence in page {
        let without = || format!("{}: no program before this", fence.place());
        match fence.kind.as_str() {
            "json" => {
                let json: Json = serde_json::from_str(&fence.text)
                    .map_err(|e| format!("{}: {e}", fence.place()))?;
                if json["op"] == "seq" {
                    programs.push(Shown {
                        program: fence,
                        findings: None,
                        runs: Vec::new(),
                    });
                } else {
                    files.insert(fence.name.as_str(), fence.text.as_str());
                }
            }
            "check" => programs.last_mut().ok_or_else(without)?.findings = Some(fence),
            "runs" => programs.last_mut().ok_or_else(without)?.runs.push(fence),
            _ => {}
        }
    }
    Ok((programs, files))
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
                };
                let reply = wait.block_on(set.agent.as_ref()?.run(next(), next(), call));
                reply.map(|reply| reply.value)
            }
            "store.get" => wait.block_on(set.store.as_ref()?.get(next())),
            "store.set" => wait.block_on(set.store.as_ref()?.set(next(), next())),
            "store.vectorSearch" => {
                let store = set.store.as_ref()?;
                wait.block_on(store.vector_search(next(), next(), next(), next()))
            }
            _ => return None,
        })
    }
}

impl OracleHost for Granted {
    fn provides(&self, method: &str) -> bool {
        let set = &self.set;
        let store = |wanted: StoreMethod| set.store.as_ref().is_some_and(|s| s.supports(wanted));
        match method {
            "fetch" => set.fetch.is_some(),
            "llm.predict" => set.llm.is_some(),
            "llmBattery.predict" => set.llm_battery.is_some(),
            "vector.embed" => set.embedder.is_some(),
            "xml.parse" => set.xml.is_some(),
            "code.transpile" => set.transpiler.is_some(),
            "agent.run" => set.agent.is_some(),
            "store.get" => store(StoreMethod::Get),
            "store.set" => store(StoreMethod::Set),
            "store.vectorSearch" => store(StoreMethod::VectorSearch),
            _ => false,
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

    fn atom(&mut self, op: &str, _: Value) -> Answer {
        Answer {
            result: Err(Text::from(format!("no atom {op}"))),
            delay_ms: 0.0,
        }
    }
}

/// The outcome of a run on each engine, by the engine's name.
fn outcomes(
    engine: &Engine,
    program: &Fence,
    agent: &Agent,
    run: &Run,
    script: &Script,
) -> Result<[(&'static str, Came); 3], String> {
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
    };
    let args = Value::from(run.args.clone());
    let done = oracle::run(&document, &args, &options, &mut host).map_err(|r| r.message)?;
    let error = done.error.map(|e| e.message.to_string());
    Ok([
        ("machine", machine(agent)?),
        ("artifact", machine(&loaded)?),
        ("oracle", came(&done.result, error, done.fuel_used)),
    ])
}

/// What is wrong with a program and what its page says of it.
fn judge(shown: &Shown<'_>, files: &HashMap<&str, &str>, count: &mut usize) -> Vec<String> {
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
    for fence in &shown.runs {
        let runs = match runs(fence) {
            Ok(runs) => runs,
            Err(why) => {
                wrong.push(format!("{}: {why}", fence.place()));
                continue;
            }
        };
        for run in runs {
            *count += 1;
            let place = format!("{} ({})", fence.place(), run.args);
            let script = match run.script.as_deref().map(|name| files.get(name)) {
                None => Ok(Script::default()),
                Some(None) => Err("the page has no such file".to_owned()),
                Some(Some(text)) => {
                    let json: Json = serde_json::from_str(text).expect("read before");
                    Script::new(json.into()).map_err(|e| e.to_string())
                }
            };
            let came =
                script.and_then(|script| outcomes(&engine, shown.program, &agent, &run, &script));
            match came {
                Err(why) => wrong.push(format!("{place}: {why}")),
                Ok(came) => {
                    let of = |(engine, came): &(&str, Came)| {
                        format!("{place}: {engine} gives {:?}", came.outcome)
                    };
                    let others = came.iter().filter(|(_, c)| c.outcome != run.outcome);
                    wrong.extend(others.map(of));
                    // An exhausted budget is overdrawn by different last prices.
                    let out = came[0].1.outcome == Expected::Error("Out of Fuel".to_owned());
                    if !out && came.iter().any(|(_, c)| c.fuel != came[0].1.fuel) {
                        wrong.push(format!("{place}: engines differ: {came:?}"));
                    }
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
            Ok((shown, files)) => {
                programs += shown.len();
                let each = shown.iter().map(|shown| judge(shown, &files, &mut runs));
                wrong.extend(each.flatten());
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
    let page = "# x\n\n```json\n{\"op\": \"seq\", \"steps\": [\n\
                {\"op\": \"return\", \"value\": {\"a\": 1}}]}\n```\n\n\
                ```runs\n{} -> {\"a\": 2}\n{} -> {\"a\":\n  1}\n{} -> error: no\n```\n";
    let page = a99_testkit::pages::fences("docs/x.md", page);
    let (shown, files) = shown(&page).expect("a page");
    let wrong = judge(&shown[0], &files, &mut 0);
    assert_eq!(wrong.len(), 6, "{wrong:?}");
    assert!(
        wrong
            .iter()
            .all(|line| line.starts_with("docs/x.md:8 ({})"))
    );

    let page = "```json\n{\"op\": \"seq\", \"steps\": [{\"op\": \"split\"}]}\n```\n";
    let page = a99_testkit::pages::fences("docs/x.md", page);
    let (shown, files) = self::shown(&page).expect("a page");
    let wrong = judge(&shown[0], &files, &mut 0).join("\n");
    assert!(wrong.starts_with("docs/x.md:1: found is\nlint."), "{wrong}");
}
