//! Agents: compiled, verified and linked programs.

use a99_builder::Builder;
use a99_core::artifact::{ArtifactError, EncodeOptions};
use a99_core::diag::Diagnostics;
use a99_core::disasm::{Listing, listing};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_core::verify::Artifact;
use a99_vm::{Args, Executable};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Missing arguments that are named in warnings, at most.
const MAX_MISSING: usize = 8;

/// Number of runs after which a clone creates its unshared copy.
const RUNS_BEFORE_OWN: u32 = 16;

/// A compiled, verified and linked agent. Clones are cheap, and one agent can run any number
/// of times concurrently.
///
/// Give each thread that runs an agent frequently its own clone. The threads then write
/// no shared memory when a run begins or ends.
#[derive(Debug)]
pub struct Agent {
    exe: Arc<Executable>,
    /// Unshared copy of `exe`: only runs of this agent count its owners. Frequently run
    /// clones create it.
    own: OnceLock<Arc<Executable>>,
    /// Runs of a clone before it has `own`; approximate if threads share the clone.
    runs: AtomicU32,
    /// Arguments that the source requires, with line and column.
    required: Option<Arc<[Required]>>,
}

/// A required argument: name, binding in the pattern, line and column.
pub(crate) type Required = (String, String, (u32, u32));

impl Clone for Agent {
    fn clone(&self) -> Agent {
        Agent {
            exe: Arc::clone(&self.exe),
            own: OnceLock::new(),
            runs: AtomicU32::new(0),
            required: self.required.clone(),
        }
    }
}

impl Agent {
    pub(crate) fn of(exe: Arc<Executable>) -> Agent {
        Agent {
            own: OnceLock::from(Arc::clone(&exe)),
            exe,
            runs: AtomicU32::new(0),
            required: None,
        }
    }

    #[cfg(feature = "source")]
    pub(crate) fn with_required(mut self, required: Vec<Required>) -> Agent {
        self.required = (!required.is_empty()).then(|| required.into());
        self
    }

    /// Warnings about missing arguments: an untyped source reads them as `undefined`.
    /// Arguments given as JSON text are not checked.
    pub(crate) fn missing(&self, args: &Args) -> Vec<Text> {
        let (Some(required), Args::Value(args)) = (&self.required, args) else {
            return Vec::new();
        };
        let given = |name: &str| {
            args.as_object()
                .is_some_and(|args| args.get(name).is_some())
        };
        let missing = required.iter().filter(|(name, ..)| !given(name));
        let missing = missing
            .take(MAX_MISSING)
            .map(|(name, pattern, (line, column))| {
                format!(
                    "the argument `{name}` is not given, so it is undefined (line {line}, column \
                 {column}); give it, or a default: `{{ {pattern} = ... }}`"
                )
            });
        missing.map(Text::from).collect()
    }

    pub(crate) fn for_a_run(&self) -> &Arc<Executable> {
        match self.own.get() {
            Some(own) => own,
            None => self.of_a_clone(),
        }
    }

    fn of_a_clone(&self) -> &Arc<Executable> {
        let runs = self.runs.load(Ordering::Relaxed);
        if runs < RUNS_BEFORE_OWN {
            // Threads that share a clone may lose counts: the threshold needs no exact value.
            self.runs.store(runs + 1, Ordering::Relaxed);
            return &self.exe;
        }
        self.own.get_or_init(|| Arc::new(self.exe.unshared()))
    }

    /// Starts a builder for an agent. `schema` documents its arguments for readers (language
    /// section 4.13).
    pub fn take(schema: impl Into<Value>) -> Builder {
        Builder::take(schema)
    }

    /// Warnings of the compiler.
    pub fn warnings(&self) -> &Diagnostics {
        &self.exe.program().warnings
    }

    /// The verified program.
    pub fn artifact(&self) -> &Artifact {
        self.exe.artifact()
    }

    /// Disassembly: instructions, fuel of each block, source places.
    pub fn disassemble(&self) -> String {
        self.listing().text
    }

    /// Disassembly with the source line and the price of each line.
    pub fn listing(&self) -> Listing {
        listing(self.exe.program())
    }

    /// Encodes the program as an `.a99b` file without a signature, for
    /// [`Engine::load`](crate::Engine::load); see [`artifact`](crate::artifact). The same
    /// program always gives the same bytes.
    ///
    /// # Errors
    /// The program takes 4 GiB or more.
    pub fn to_bytes(&self, options: &EncodeOptions) -> Result<Vec<u8>, ArtifactError> {
        self.artifact().to_bytes(options)
    }

    /// The source text. A program compiled from a value returns generated JSON, a stripped
    /// one `None`.
    pub fn source(&self) -> Option<std::borrow::Cow<'_, [u8]>> {
        self.exe.program().source.text()
    }

    /// Line and column of a JSON pointer in the original text, if that text is not JSON.
    /// Pointers come from errors and trace events.
    pub fn line_col(&self, pointer: &str) -> Option<(u32, u32)> {
        self.exe.program().source.line_col_at(pointer)
    }

    /// The linked program, for hosts that drive the machine themselves.
    pub fn executable(&self) -> &Arc<Executable> {
        &self.exe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Next, RunOptions, capabilities::Capabilities, json};
    use std::time::Duration;

    const WAITS: &str = r#"{"op": "seq", "steps": [
        {"op": "varsImport", "keys": ["url"]},
        {"op": "httpFetch", "url": "url", "result": "page"},
        {"op": "return", "schema": {"type": "object", "properties": {"page": {}, "url": {}}}}
    ]}"#;

    #[test]
    fn a_clone_that_runs_again_and_again_has_parts_of_its_own() {
        let engine = Engine::new();
        let agent = engine.compile(WAITS).expect("it compiles");
        let clone = agent.clone();
        let granted = Capabilities::none;
        let mut snapshots = Vec::new();
        for _ in 0..RUNS_BEFORE_OWN + 2 {
            let (args, options) = (json!({"url": "x:/"}), RunOptions::new());
            let mut run = engine.start(&clone, args, options, granted());
            let Next::Call(call) = run.next(Duration::ZERO) else {
                panic!("it fetches");
            };
            snapshots.push(run.snapshot().expect("it waits"));
            run.answer(&call.id, Ok(Value::from("Hello").into()))
                .expect("its call");
            let Next::Done(outcome) = run.next(Duration::ZERO) else {
                panic!("it ends");
            };
            let wanted = json!({"page": "Hello", "url": "x:/"});
            assert_eq!(outcome.result.to_json(), wanted);
        }
        assert!(!Arc::ptr_eq(clone.for_a_run(), agent.for_a_run()));
        assert!(Arc::ptr_eq(agent.for_a_run(), agent.executable()));
        // Both copies accept the snapshot.
        let last = snapshots.last().expect("it ran");
        for agent in [&agent, &clone] {
            let restored = engine.restore(agent, last, RunOptions::new(), granted());
            assert!(restored.is_ok());
        }
    }
}
