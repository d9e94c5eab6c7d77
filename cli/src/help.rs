//! Advice: what helps against the error of a run, in terms of this command's
//! options.

use agent99::{ErrorCode, RunError};

/// The member of a script that stands in for what an op needs.
const SCRIPTED: [(&str, &str); 18] = [
    ("httpFetch", "fetch"),
    ("llmPredict", "llm"),
    ("llmPredictBattery", "llmBattery"),
    ("llmVision", "llmBattery"),
    ("agentRun", "agents"),
    ("xmlParse", "xml"),
    ("transpileCode", "transpile"),
    ("runCode", "transpile"),
    ("cache", "store"),
    ("storeGet", "store"),
    ("storeSet", "store"),
    ("storeQuery", "store"),
    ("storeQueryWhere", "store"),
    ("storeVectorize", "embed"),
    ("storeVectorSearch", "vectors"),
    ("storeSearch", "vectors"),
    ("storeCreateCollection", "vectors"),
    ("storeVectorAdd", "vectors"),
];

/// Puts advice into an error that a user of this command can act on; what is there
/// already speaks of the library.
pub(crate) fn advise(error: &mut RunError) {
    let op = error.op.to_string_lossy();
    let text = match error.code {
        ErrorCode::OutOfFuel => {
            "give the run more with `--fuel N`, or let the program do less".to_owned()
        }
        ErrorCode::RunTimeout => {
            "give the run more time with `--timeout TIME`, or let the program do less".to_owned()
        }
        ErrorCode::HeapLimit => {
            "raise the limit with `--heap-mib N`, or let the program hold less".to_owned()
        }
        ErrorCode::QuotaExceeded => {
            format!("raise the quota with `--quota {op}=N`, or call `{op}` less often")
        }
        ErrorCode::AtomTimeout => {
            format!("give the atom more time with `--atom-timeout {op}=TIME`")
        }
        // What is said already may be of a sandbox or a script.
        ErrorCode::Capability => match &error.help {
            None => missing(&op),
            Some(said) if said.contains("`--") || said.contains("sandbox") => return,
            Some(said) => format!("{said}; {}", missing(&op)),
        },
        _ => return,
    };
    error.help = Some(text);
}

/// How to grant what an op needs.
fn missing(op: &str) -> String {
    let known = SCRIPTED.iter().find(|(name, _)| *name == op);
    match known {
        Some((_, member)) => format!(
            "nothing is granted: `--script FILE` names answers, here under `{member}` (see `a99 \
             run --help`)"
        ),
        None => "nothing is granted: `--script FILE` names answers (see `a99 run --help`)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_of_the_table_is_one() {
        let atoms = agent99::all_atoms();
        for (op, _) in SCRIPTED {
            assert!(atoms.get(op).is_some(), "{op}");
        }
        // Their members are those that scripts have.
        for (_, member) in SCRIPTED {
            let value = agent99::json!({ member: 1 });
            let script = agent99::capabilities::Script::new(value.into());
            let unknown = script.err().map(|error| error.to_string());
            assert!(
                !unknown.is_some_and(|text| text.contains("unknown")),
                "{member}"
            );
        }
    }

    #[test]
    fn advice_names_options() {
        for (code, option) in [
            (ErrorCode::OutOfFuel, "--fuel"),
            (ErrorCode::RunTimeout, "--timeout"),
            (ErrorCode::HeapLimit, "--heap-mib"),
            (ErrorCode::QuotaExceeded, "--quota map=N"),
            (ErrorCode::AtomTimeout, "--atom-timeout map=TIME"),
            (ErrorCode::Capability, "--script"),
        ] {
            let mut error = RunError::new(code, "map", "x");
            advise(&mut error);
            assert!(
                error.help.is_some_and(|help| help.contains(option)),
                "{option}"
            );
        }
        let mut error = RunError::new(ErrorCode::Program, "map", "x");
        advise(&mut error);
        assert_eq!(error.help, None);
    }
}
