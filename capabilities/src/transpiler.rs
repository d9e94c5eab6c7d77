//! Transpilers of source code, provided by the host.

use crate::error::{CapabilityError, Reply, ready};
use crate::script::Table;
use a99_core::value::Value;

/// Turns source text into a program (`code.transpile`, language section 2.6).
pub trait Transpiler: Send + Sync {
    /// Calls `transpile(code)`; the reply is a program, an object with `op`.
    fn transpile(&self, code: Value) -> Reply<'_>;
}

/// Answers from a table of sources; others are refused.
#[derive(Debug, Default)]
pub struct ScriptedTranspiler(Table);

impl ScriptedTranspiler {
    /// An empty table.
    #[must_use]
    pub fn new() -> ScriptedTranspiler {
        ScriptedTranspiler::default()
    }

    /// Answers this source with this program.
    #[must_use]
    pub fn on(mut self, code: &str, program: impl Into<Value>) -> ScriptedTranspiler {
        self.0.on(code.into(), Ok(program.into()));
        self
    }

    /// Fails for this source with this text.
    #[must_use]
    pub fn fails(mut self, code: &str, message: &str) -> ScriptedTranspiler {
        self.0.on(code.into(), Err(CapabilityError::new(message)));
        self
    }
}

impl Transpiler for ScriptedTranspiler {
    fn transpile(&self, code: Value) -> Reply<'_> {
        ready(self.0.answer(vec![code], "the source is not in the script"))
    }
}

/// Conformance suite of [`Transpiler`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Transpiler;
    use crate::error::{SuiteResult, ensure, expect, refused};
    use a99_core::value::Value;

    /// `good` is a valid source.
    pub async fn conformance(transpiler: &dyn Transpiler, good: &str) -> SuiteResult {
        let program = expect(
            transpiler.transpile(good.into()).await,
            "a good source transpiles",
        )?;
        let is_step = program.get("op").and_then(Value::as_str).is_some();
        ensure(is_step, "the reply is an object with an `op`")?;
        for bad in [Value::Undefined, Value::Number(1.0), "}{".into()] {
            refused(transpiler.transpile(bad).await, "a bad source is refused")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;
    use a99_core::value::Map;

    #[test]
    fn scripted_transpiler_conforms() {
        let program: Map = [("op", "seq")].into_iter().collect();
        let transpiler = ScriptedTranspiler::new()
            .on("f()", program)
            .fails("x", "no x");
        block_on(suite::conformance(&transpiler, "f()")).unwrap();
        assert_eq!(
            block_on(transpiler.transpile("x".into()))
                .unwrap_err()
                .message,
            "no x"
        );
    }
}
