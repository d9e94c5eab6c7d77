//! `consoleLog`, `consoleWarn`, `consoleError` and `streamChunk` (language section 2.7).

use crate::def::{Adjust, Kind, TENTH, host, native, req};
use crate::grants::{Answer, inputs};
use a99_core::costs::{READ, Sizes};

use a99_core::sig::{Effect, Gives, JsonKinds, ShortPrompts};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_vm::LogLevel;
use a99_vm::atom::{AtomDef, HostCall, Scope};
use a99_vm::convert::{BoundaryLimits, cut};
use a99_vm::heap::{Oom, Val};
use a99_vm::json::{Replacer, stringify};
use a99_vm::native::{Cx, Fault};

pub(crate) fn atoms() -> Vec<AtomDef> {
    let message = |docs| [req("message", Kind::Any, docs)];
    vec![
        native(
            "consoleLog",
            "Records a message in the trace.",
            TENTH,
            &message("The message; other values than texts are written as JSON."),
            log,
        )
        .listed(ShortPrompts::Neither)
        .metered(READ)
        .whole_price()
        .effect(Effect::Unsafe),
        native(
            "consoleWarn",
            "Adds a message to the warnings.",
            TENTH,
            &message("The warning; other values than texts are written as JSON."),
            warn,
        )
        .listed(ShortPrompts::Neither)
        .metered(READ)
        .whole_price()
        .effect(Effect::Unsafe),
        native(
            "consoleError",
            "Fails with a message.",
            TENTH,
            &message("The error's message; other values than texts are written as JSON."),
            error,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::NOTHING)
        .metered(READ)
        .whole_price()
        .effect(Effect::Unsafe),
        // The time limit does not apply: the reader determines the duration.
        host(
            "streamChunk",
            "Sends data to the host while the program runs; returns null.",
            TENTH,
            &[req("data", Kind::Any, "Data to send.")],
            stream_chunk,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::NULL))
        .untimed(),
    ]
}

/// The trace shows the step and its input; logging does no more.
fn log(cx: &mut Cx<'_>, scope: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let text = text_of(cx, args[0], scope.limits())?;
    cx.log(LogLevel::Log, &args[..1])?;
    scope
        .locals
        .log("console.log", || Value::from(Text::from_wtf8(text)));
    Ok(Val::Undefined)
}

/// Formats the text before it adds the warning, because formatting may fail and the instruction may
/// run again.
fn warn(cx: &mut Cx<'_>, scope: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let text = text_of(cx, args[0], scope.limits())?;
    let text = Text::from_wtf8(text);
    scope
        .locals
        .log("console.warn", || Value::from(text.clone()));
    scope.locals.warn(text);
    Ok(Val::Undefined)
}

fn error(cx: &mut Cx<'_>, scope: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let message = text_of(cx, args[0], scope.limits())?;
    Err(Fault::by("console.error", message))
}

/// Sends the data to a listener. A run without one pays the same.
fn stream_chunk(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [data] = inputs(&mut call);
        call.send_chunk(data).await;
        Ok(Value::Null.into())
    })
}

/// A text itself, other values as JSON; a value without JSON text is `undefined`. The result goes
/// to the host and is cut to the limit of the boundary.
fn text_of(cx: &mut Cx<'_>, v: Val, limits: &BoundaryLimits) -> Result<Vec<u8>, Fault> {
    let text = match v {
        Val::Str(text) => {
            cx.charge(READ, Sizes::units(text.units()))?;
            Some(text)
        }
        // Writing the JSON charges for it.
        other => stringify(cx, other, Replacer::None, b"")?,
    };
    let Some(text) = text else {
        return Ok(b"undefined".to_vec());
    };
    let wanted = cut(cx.bytes(text), limits).len();
    cx.heap.check(wanted)?;
    let mut out = Vec::new();
    out.try_reserve_exact(wanted).map_err(|_| Oom { wanted })?;
    out.extend_from_slice(&cx.bytes(text)[..wanted]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, fails, run};

    #[test]
    fn warnings_are_kept() {
        let bench = Bench::new();
        assert_eq!(
            bench.native("consoleWarn", r#"["slow"]"#).unwrap(),
            "undefined"
        );
        assert_eq!(
            bench.native("consoleWarn", r#"[{"n":1}]"#).unwrap(),
            "undefined"
        );
        let warnings: Vec<String> = bench
            .locals
            .take_warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(warnings, ["slow", r#"{"n":1}"#]);
    }

    #[test]
    fn log_is_silent_and_error_fails() {
        assert_eq!(run("consoleLog", r#"["x"]"#), "undefined");
        assert_eq!(fails("consoleError", r#"["broken"]"#), "broken");
        assert_eq!(fails("consoleError", r#"[[1]]"#), "[1]");
        assert_eq!(fails("consoleError", "[]"), "undefined");
    }
}
