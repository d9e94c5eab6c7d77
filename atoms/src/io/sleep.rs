//! `sleep`: a run that waits for a time to pass, and holds no thread meanwhile (D121).

use crate::def::{Adjust, Input, Kind, host, req};
use crate::grants::{Answer, inputs};
use a99_core::costs::MICRO;
use a99_core::error::ErrorCode;
use a99_core::sig::{Effect, Gives, JsonKinds};
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, AtomError, HostCall};
use a99_vm::driver;
use std::time::Duration;

/// Maximum milliseconds: 24 hours.
const MAX_MS: f64 = 86_400_000.0;

const MS: Input = req(
    "ms",
    Kind::Number,
    "Milliseconds, at most 86400000 (24 hours).",
)
.within(0.0, MAX_MS);

/// Time counts against the run, not against the atom. A repeated call has no further effect.
pub(crate) fn atoms() -> Vec<AtomDef> {
    let docs = "Waits until a time has passed. It counts against the timeout of the run.";
    let sleep = host("sleep", docs, MICRO, &[MS], wait)
        .untimed()
        .effect(Effect::Idempotent)
        .gives(Gives::always(JsonKinds::NULL));
    vec![sleep]
}

fn milliseconds(value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(ms) if (0.0..=MAX_MS).contains(ms) => Ok(*ms),
        _ => Err("sleep: `ms` must be a number from 0 to 86400000, which is 24 hours".to_owned()),
    }
}

fn wait(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [ms] = inputs(&mut call);
        let ms = milliseconds(&ms).map_err(|text| AtomError::coded(ErrorCode::Boundary, text))?;
        // A restored run waits for the rest.
        let rest = Duration::from_secs_f64((ms - call.waited_ms).max(0.0) / 1_000.0);
        driver::sleep(&call, rest).await?;
        Ok(Value::Null.into())
    })
}
