//! The oracle's host: capabilities and host atoms.

use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::Value;

/// The answer to a call, with its duration.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The value, or the message of the failure.
    pub result: Result<Value, Text>,
    /// Milliseconds until the answer; the oracle adds them to its clock.
    pub delay_ms: f64,
}

/// Capabilities of a run, by method: `fetch`, `store.get`, `store.set`,
/// `store.query`, `store.vectorSearch`, `llm.predict`, `agent.run`,
/// `xml.parse`, `code.transpile` and so on.
pub trait OracleHost {
    /// True if a method is granted.
    fn provides(&self, method: &str) -> bool;
    /// Calls a method.
    fn call(&mut self, method: &str, args: Vec<Value>) -> Answer;
    /// Bytes of the documents that a store scanned in the last call (D82).
    fn looked(&mut self) -> u64 {
        0
    }
    /// Sets the fuel that the next call may use (decision D83).
    fn offered(&mut self, fuel: Fuel) {
        let _ = fuel;
    }
    /// Fuel that the last call used.
    fn used(&mut self) -> Fuel {
        Fuel::ZERO
    }
    /// Executes a host atom on its step.
    fn atom(&mut self, op: &str, input: Value) -> Answer;
}

/// A host that grants nothing.
#[derive(Debug, Default)]
pub struct NoHost;

impl OracleHost for NoHost {
    fn provides(&self, _: &str) -> bool {
        false
    }

    fn call(&mut self, method: &str, _: Vec<Value>) -> Answer {
        Answer {
            result: Err(format!("no capability {method}").into()),
            delay_ms: 0.0,
        }
    }

    fn atom(&mut self, op: &str, _: Value) -> Answer {
        Answer {
            result: Err(format!("no atom {op}").into()),
            delay_ms: 0.0,
        }
    }
}
