//! `a99 repl`: evaluates JavaScript and steps, with variables and functions that persist.
//!
//! Each entry becomes a separate program that takes the variables as arguments and returns them. It
//! pays fuel and is bounded in time and memory, and a failed entry leaves the variables unchanged.

mod entry;
mod reader;

use crate::args::{ReplArgs, Settings};
use crate::duration::milliseconds;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::{self, Format};
use crate::pretty::pretty;
use crate::script::Script;
use a99_core::diag::codes;
use agent99::capabilities::Capabilities;
use agent99::{Agent, Diagnostic, Engine, Map, Outcome, RunOptions, Value};
use entry::Entry;
use reader::Reader;
use std::io::{self, IsTerminal as _};

const HELP: &str = "\
  EXPRESSION            shows its value: 1 + 2 * n, await hash({ value: name })
  NAME = EXPRESSION     sets a variable, as `let` and `const` do
  function f(x) {...}   keeps the function for later entries
  STATEMENTS            for (const x of list) total += x
  {\"op\": ...}           runs a step in JSON, {\"$expr\": ...} an expression node
  :vars                 shows the variables and functions
  :clear                removes them
  :help                 shows this
  :quit                 ends, as Ctrl-D does
An entry continues on the next line until its brackets are closed. Tab
completes names, the arrow keys recall entries. `_` is the last value. Variables
are kept as JSON: a date becomes its text.
";

pub(crate) fn run(args: &ReplArgs) -> Result<Exit, Failure> {
    let script = match &args.script {
        Some(path) => Script::parse(&input::read_for("--script", path)?)?,
        None => Script::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::about("cannot start the runtime", error))?;
    let mut session = Session {
        engine: script
            .engine_builder(&Settings::default())?
            .lint(true)
            .build(),
        granted: runtime.block_on(script.granted(&Settings::default()))?,
        options: RunOptions::new()
            .fuel(args.fuel)
            .map_err(|error| Failure::usage(error.to_string()))?
            .timeout_ms(milliseconds(args.timeout)),
        variables: Map::new(),
        functions: Vec::new(),
        json: args.json,
    };
    let interactive = io::stdin().is_terminal() && !args.json;
    if interactive {
        output::err("JavaScript, one entry at a time; :help shows how, :quit ends.\n");
    }
    let mut reader = Reader::new(interactive, &session.engine)?;
    let mut exit = Exit::Ok;
    while let Some(text) = reader.next(session.names())? {
        let done = match text.trim() {
            ":quit" | ":q" | ":exit" => break,
            text => runtime.block_on(session.line(text)),
        };
        // In scripted input the first failure decides the exit code.
        if exit == Exit::Ok && !interactive {
            exit = done;
        }
    }
    Ok(exit)
}

/// Warnings that variables of a session cause: a later entry may use them.
const GENERATED: [&str; 1] = [codes::UNUSED_NAME];

/// State between entries.
struct Session {
    engine: Engine,
    granted: Capabilities,
    options: RunOptions,
    variables: Map,
    /// Declared functions, with the text of the declaration.
    functions: Vec<(String, String)>,
    json: bool,
}

impl Session {
    async fn line(&mut self, text: &str) -> Exit {
        match text {
            "" => return Exit::Ok,
            ":help" | ":h" | "help" => output::err(HELP),
            ":vars" => self.show_variables(),
            ":clear" => {
                self.variables = Map::new();
                self.functions.clear();
            }
            text if text.starts_with(':') => {
                let text = format!("there is no command `{text}`; `:help` lists them");
                return Failure::usage(text).report(self.format());
            }
            text => return self.evaluate(text).await,
        }
        Exit::Ok
    }

    fn format(&self) -> Format {
        match self.json {
            true => Format::Json,
            false => Format::Human,
        }
    }

    /// Names of variables and functions.
    fn names(&self) -> impl Iterator<Item = String> + use<> {
        let variables = self
            .variables
            .keys()
            .map(|key| key.to_string_lossy().into_owned());
        let functions = self.functions.iter().map(|(name, _)| name.clone());
        variables.chain(functions).collect::<Vec<_>>().into_iter()
    }

    fn show_variables(&self) {
        if self.json {
            output::json(&Value::Object(self.variables.clone()));
        } else {
            for (name, value) in &self.variables {
                show(&name.to_string_lossy(), value);
            }
            for (_, text) in &self.functions {
                output::out(&format!("{}\n", a99_core::text::escape_for_terminal(text)));
            }
        }
    }

    async fn evaluate(&mut self, text: &str) -> Exit {
        let compiled = Entry::parse(text, &self.engine).and_then(|entry| {
            let agent = entry.compile(&self.engine, &self.variables, &self.functions, text)?;
            self.warn(&entry, &agent);
            Ok((entry, agent))
        });
        let (entry, agent) = match compiled {
            Ok(compiled) => compiled,
            Err(failure) => return failure.report(self.format()),
        };
        let arguments = Value::Object(self.variables.clone());
        let run = self.engine.run(
            &agent,
            arguments,
            self.options.clone(),
            self.granted.clone(),
        );
        self.take(&entry, run.await)
    }

    /// Prints lint warnings about an entry.
    fn warn(&self, entry: &Entry, agent: &Agent) {
        let declared = entry.declared(&self.variables);
        let declared = declared.map(|program| self.engine.compile(program.to_string()));
        let agent = match &declared {
            None => agent,
            Some(Ok(agent)) => agent,
            Some(Err(_)) => return,
        };
        // Skip warnings about the code generated around the entry.
        let is_about = |warning: &Diagnostic| match &declared {
            None => !GENERATED.contains(&warning.code),
            Some(_) => entry.returns() || warning.pointer.starts_with("/steps/1"),
        };
        for warning in agent.warnings().iter().filter(|warning| is_about(warning)) {
            let help = warning.help.as_ref();
            let help = help.map_or(String::new(), |help| format!(" ({help})"));
            let text = format!("{}{help}", warning.message);
            output::note(&format!("warning[{}]", warning.code), &text);
        }
    }

    /// Stores and shows the outcome of a line.
    fn take(&mut self, entry: &Entry, mut outcome: Outcome) -> Exit {
        for warning in &outcome.warnings {
            output::note("warning", &warning.to_string_lossy());
        }
        if !self.json {
            outcome.logs.iter().for_each(crate::stream::log);
        }
        if let Some(error) = &mut outcome.error {
            // The pointer refers to the generated program.
            error.pointer = None;
            crate::help::advise(error, &input::Source::none(), self.engine.atoms());
            let exit = Exit::of(error.code);
            if self.json {
                let mut map = Map::new();
                map.insert("error", error.to_json());
                map.insert("fuel_used", outcome.fuel_used.to_f64());
                output::json(&Value::Object(map));
            } else {
                output::err(&super::run::error_text(error, None));
            }
            return exit;
        }
        let fuel = outcome.fuel_used.to_f64();
        let (value, changed) = match (entry.returns(), outcome.result) {
            (true, result) => (Some(or_null(result)), Map::new()),
            (false, Value::Object(after)) => self.keep(entry, after),
            (false, _) => (None, Map::new()),
        };
        if self.json {
            let mut map = Map::new();
            if let Some(value) = value {
                map.insert("result", value);
            }
            map.insert("variables", changed);
            map.insert("fuel_used", fuel);
            output::json(&Value::Object(map));
            return Exit::Ok;
        }
        if let Some(value) = &value {
            output::out(&format!("{}\n", shown(value)));
        }
        for (name, value) in &changed {
            show(&name.to_string_lossy(), value);
        }
        Exit::Ok
    }

    /// Stores changed variables. Returns the value to show, and the changed variables.
    fn keep(&mut self, entry: &Entry, after: Map) -> (Option<Value>, Map) {
        let mut changed = Map::new();
        let mut shown = None;
        for (name, value) in after {
            if value.is_undefined() {
                continue;
            }
            if entry.has_value() && name.as_bytes() == entry::NEW_VALUE.as_bytes() {
                self.variables.insert("_", value.clone());
                shown = Some(value);
            } else if self.variables.get_bytes(name.as_bytes()) != Some(&value) {
                changed.insert(name.clone(), value.clone());
                self.variables.insert(name, value);
            }
        }
        // An expression always has a value; a step may have none.
        if shown.is_none() && entry.has_value() && matches!(entry, Entry::Source { .. }) {
            shown = Some(Value::Null);
        }
        for (name, text) in entry.functions() {
            self.variables.remove(name);
            self.functions.retain(|(other, _)| other != name);
            self.functions.push((name.clone(), text.clone()));
        }
        self.functions
            .retain(|(name, _)| !self.variables.contains(name));
        (shown, changed)
    }
}

fn or_null(value: Value) -> Value {
    match value {
        Value::Undefined => Value::Null,
        other => other,
    }
}

/// A value as JSON, on one line if it is short.
fn shown(value: &Value) -> String {
    let text = value.to_json_string();
    match text.len() > 72 {
        true => pretty(&text),
        false => pretty(&text)
            .lines()
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn show(name: &str, value: &Value) {
    let name = a99_core::text::escape_for_terminal(name);
    output::out(&format!("{name} = {}\n", shown(value)));
}
