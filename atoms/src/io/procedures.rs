//! Stored programs (language section 2.7): `storeProcedure`, `releaseProcedure` and
//! `clearExpiredProcedures`, over the table that the host grants.

use crate::def::{Adjust, Kind, TENTH, all_need, host, opt, req, unlisted};
use crate::grants::{Answer, failed, inputs, required, truthy};
use a99_capabilities::Procedures;
use a99_core::costs::MICRO;
use a99_core::sig::{Capability, Gives, JsonKinds};
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, AtomError, HostCall, HostReply};
use std::sync::Arc;

/// Default time to live of a program: an hour.
const DEFAULT_TTL_MS: f64 = 3_600_000.0;

/// Default limit on a program's JSON text, in UTF-16 units.
const DEFAULT_MAX_SIZE: f64 = 102_400.0;

/// Upper bound for that limit; the reference has none.
const HARD_MAX_SIZE: f64 = 1_048_576.0;

pub(crate) fn atoms() -> Vec<AtomDef> {
    let all = vec![
        host(
            "storeProcedure",
            "Stores a program and returns its token.",
            MICRO,
            &[
                req(
                    "ast",
                    Kind::Record,
                    "The program: an object with `op`, usually `seq`.",
                ),
                opt("ttl", Kind::Number, "Time to live in milliseconds.")
                    .whole(0.0, f64::INFINITY)
                    .default("3600000"),
                opt(
                    "maxSize",
                    Kind::Number,
                    "Maximum length of its JSON text, up to 1048576 characters.",
                )
                .whole(0.0, HARD_MAX_SIZE)
                .default("102400"),
            ],
            store,
        )
        .gives(Gives::always(JsonKinds::ANY)),
        host(
            "releaseProcedure",
            "Deletes a stored program; returns whether it existed.",
            TENTH,
            &[req(
                "token",
                Kind::Text,
                "Token `proc_...` from `storeProcedure`.",
            )],
            release,
        )
        .gives(Gives::always(JsonKinds::ANY)),
        host(
            "clearExpiredProcedures",
            "Deletes expired stored programs; returns their number.",
            5 * TENTH,
            &[],
            clear,
        )
        .gives(Gives::always(JsonKinds::ANY)),
    ];
    unlisted(all_need(Capability::Procedures, all))
}

fn table(call: &HostCall) -> Result<Arc<dyn Procedures>, AtomError> {
    required(call, |c| &c.procedures, "Capability 'procedures' missing")
}

fn store(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [ast, ttl, max_size] = inputs(&mut call);
        if !ast.get("op").is_some_and(truthy) {
            return Err(AtomError::new(
                r#"Invalid AST: must be an object with an "op" property"#,
            ));
        }
        let ttl = number_or(ttl, DEFAULT_TTL_MS, "ttl")?;
        let max_size = number_or(max_size, DEFAULT_MAX_SIZE, "maxSize")?.min(HARD_MAX_SIZE);
        let size = ast.to_json_string().encode_utf16().count();
        // A limit of NaN admits no program.
        if max_size.is_nan() || size as f64 > max_size {
            return Err(AtomError::new(format!(
                "AST too large: {size} bytes exceeds limit of {max_size} bytes."
            )));
        }
        let token = table(&call)?.store(ast, ttl, call.now_ms).map_err(failed)?;
        Ok(Value::from(token).into())
    })
}

fn number_or(value: Value, default: f64, name: &str) -> Result<f64, AtomError> {
    match value {
        Value::Undefined | Value::Null => Ok(default),
        Value::Number(n) => Ok(n),
        _ => Err(AtomError::new(format!(
            "storeProcedure: {name} must be a number"
        ))),
    }
}

fn release(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [token] = inputs(&mut call);
        let table = table(&call)?;
        let known = token.as_str().is_some_and(|token| table.release(token));
        Ok(Value::Bool(known).into())
    })
}

fn clear(call: HostCall) -> Answer {
    Box::pin(async move {
        let removed = table(&call)?.clear_expired(call.now_ms);
        Ok(HostReply::from(Value::from(removed)))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, MemoryProcedures};

    #[test]
    fn programs_are_kept_and_released() {
        let bench = Bench::with(Capabilities::none().with_procedures(MemoryProcedures::default()));
        let token = bench
            .call("storeProcedure", r#"[{"op":"seq","steps":[]}]"#)
            .unwrap();
        assert!(token.starts_with("\"proc_"));
        let args = format!("[{token}]");
        assert_eq!(bench.call("releaseProcedure", &args).unwrap(), "true");
        assert_eq!(bench.call("releaseProcedure", &args).unwrap(), "false");
        assert_eq!(bench.call("releaseProcedure", "[7]").unwrap(), "false");
        bench
            .call("storeProcedure", r#"[{"op":"seq"}, 10]"#)
            .unwrap();
        let later = bench.at(1_010.0);
        assert_eq!(later.call("clearExpiredProcedures", "[]").unwrap(), "1");
    }

    #[test]
    fn bad_programs_are_refused() {
        let bench = Bench::with(Capabilities::none().with_procedures(MemoryProcedures::default()));
        let error = bench.call("storeProcedure", "[{}]").unwrap_err();
        assert_eq!(
            error,
            r#"Invalid AST: must be an object with an "op" property"#
        );
        let error = bench
            .call("storeProcedure", r#"[{"op":"seq"}, null, 5]"#)
            .unwrap_err();
        assert_eq!(error, "AST too large: 12 bytes exceeds limit of 5 bytes.");
        let error = Bench::new()
            .call("storeProcedure", r#"[{"op":"seq"}]"#)
            .unwrap_err();
        assert_eq!(error, "Capability 'procedures' missing");
    }
}
