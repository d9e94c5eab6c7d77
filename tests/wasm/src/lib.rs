//! Session with the engine: commands as JSON in, answers as JSON out.
//!
//! The same code is compiled for the machine that tests run on and for
//! `wasm32-unknown-unknown`, and must answer alike (`sandbox/api/tests/c2w/engine.rs`,
//! where wasmtime is linked).

#![warn(unreachable_pub)]

#[cfg(target_family = "wasm")]
mod exports;

use agent99::capabilities::{Capabilities, FixedClock, SeededRandom};
use agent99::{Agent, CompileOptions, Engine, Map, Next, Run, RunOptions, Value};
use std::sync::Arc;
use std::time::Duration;

/// An engine, and the run that is under way.
#[derive(Debug)]
pub struct Session {
    engine: Engine,
    run: Option<Run>,
}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}

impl Session {
    /// A session whose clock stands and whose randomness is reproducible.
    #[must_use]
    pub fn new() -> Session {
        let clock = Arc::new(FixedClock::new(1_700_000_000_000.0));
        let random = Arc::new(SeededRandom::new(99));
        Session {
            engine: Engine::builder_with(clock, random).build(),
            run: None,
        }
    }

    /// Does what a command says, an object with `do` and what that takes:
    ///
    /// - `start`: `program`, the text of one, and `args`; begins a run, with its trace;
    /// - `next`: goes on with it until it wants something;
    /// - `answer`: `id` of a call, and `value` or `error`;
    /// - `snapshot`: the run as hexadecimal digits;
    /// - `restore`: `program`, `bytes`; goes on with such a run.
    ///
    /// The answer is an object; one with `fault` where the command cannot be done.
    #[must_use]
    pub fn handle(&mut self, command: &str) -> String {
        let done = match serde_json::from_str::<Value>(command) {
            Ok(command) => self.obey(&command),
            Err(error) => Err(error.to_string()),
        };
        match done {
            Ok(answer) => answer,
            Err(fault) => object([("fault", fault.into())]),
        }
        .to_json_string()
    }

    fn obey(&mut self, command: &Value) -> Result<Value, String> {
        let text = |name: &str| {
            let value = command.get(name).and_then(Value::as_str);
            value.ok_or_else(|| format!("`{name}` is no text"))
        };
        match text("do")? {
            "start" => {
                let agent = self.agent(text("program")?)?;
                let args = command.get("args").cloned().unwrap_or(Value::Null);
                let (options, none) = (options(), Capabilities::none());
                self.run = Some(self.engine.start(&agent, args, options, none));
                Ok(object([]))
            }
            "restore" => {
                let agent = self.agent(text("program")?)?;
                let bytes = unhex(text("bytes")?)?;
                let (options, none) = (options(), Capabilities::none());
                let run = self.engine.restore(&agent, &bytes, options, none);
                self.run = Some(run.map_err(|error| error.to_string())?);
                Ok(object([]))
            }
            "next" => Ok(loop {
                match self.run()?.next(Duration::ZERO) {
                    Next::Pause => {}
                    Next::Wait(_) => break object([("wait", true.into())]),
                    Next::Done(outcome) => break object([("done", outcome.to_json())]),
                    Next::Call(call) => {
                        let pointer = call.pointer().unwrap_or_default();
                        break object([
                            ("call", call.id.to_string().into()),
                            ("atom", (*call.atom).into()),
                            ("pointer", pointer.into()),
                            ("inputs", call.inputs()),
                        ]);
                    }
                }
            }),
            "answer" => {
                let id = text("id")?.parse().map_err(|_| "`id` is none")?;
                let answer = match command.get("value") {
                    Some(value) => Ok(value.clone().into()),
                    None => Err(agent99::AtomError::new(text("error")?)),
                };
                let done = self.run()?.answer(&id, answer);
                done.map_err(|error| error.to_string())?;
                Ok(object([]))
            }
            "snapshot" => {
                let bytes = self.run()?.snapshot().map_err(|error| error.to_string())?;
                Ok(object([("bytes", hex(&bytes).into())]))
            }
            other => Err(format!("unknown command {other}")),
        }
    }

    fn agent(&self, program: &str) -> Result<Agent, String> {
        let options = CompileOptions {
            lint: true,
            ..CompileOptions::default()
        };
        let agent = self
            .engine
            .compile_with(program, &options)
            .map_err(|found| found.to_string())?;
        Ok(agent)
    }

    fn run(&mut self) -> Result<&mut Run, String> {
        self.run.as_mut().ok_or_else(|| "no run".to_owned())
    }
}

fn options() -> RunOptions {
    RunOptions::new().trace(true)
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    for (name, value) in entries {
        map.insert(name, value);
    }
    map.into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits.ok_or("no hexadecimal digits")?;
    Ok(digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect())
}
