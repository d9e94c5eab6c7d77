//! Advice: what helps against the error of a run, in terms of this command's
//! options.

use crate::grants::Grant;
use crate::input::Source;
use a99_core::diag::suggest;
use agent99::{AtomSet, Capability, ErrorCode, RunError};

/// Puts advice into an error that a user of this command can act on; what is there
/// already speaks of the library.
pub(crate) fn advise(error: &mut RunError, source: &Source, atoms: &AtomSet) {
    let op = error.op.to_string_lossy();
    let text = match error.code {
        ErrorCode::OutOfFuel => {
            "raise the budget with `--fuel N`, or let the program do less".to_owned()
        }
        ErrorCode::RunTimeout => {
            "raise the limit with `--timeout TIME`, or let the program do less".to_owned()
        }
        ErrorCode::HeapLimit => {
            "raise the limit with `--heap-mib N`, or let the program hold less".to_owned()
        }
        ErrorCode::QuotaExceeded => {
            format!("raise the quota with `--quota {op}=N`, or call `{op}` less often")
        }
        ErrorCode::AtomTimeout => {
            format!("raise the limit with `--atom-timeout {op}=TIME`")
        }
        // What is said already may be of a sandbox or a script.
        ErrorCode::Capability => match &error.help {
            _ if unreadable(error).is_some() => {
                let path = unreadable(error).unwrap_or_default();
                format!(
                    "`--readable-context {path}`, or `readable-context = [\"{path}\"]` in \
                     agent99.toml, lets the program read it"
                )
            }
            None => missing(&op, error, source, atoms),
            Some(said) if said.contains("`--") || said.contains("sandbox") => return,
            Some(said) => format!("{said}; {}", missing(&op, error, source, atoms)),
        },
        ErrorCode::Program => match unknown_atom(error, atoms) {
            Some(text) => text,
            None => return,
        },
        _ => return,
    };
    error.help = Some(text);
}

/// What helps where the program calls an atom that is not there.
fn unknown_atom(error: &RunError, atoms: &AtomSet) -> Option<String> {
    let message = error.message.to_string_lossy();
    let name = message.strip_prefix("Unknown Atom: ")?;
    let known = atoms.iter().map(|atom| &*atom.sig.name);
    // Names with a colon are the engine's own.
    let near = suggest(name, known.filter(|name| !name.contains(':')));
    Some(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`a99 tools` lists the atoms".to_owned(),
    })
}

/// The part of the request context that an error says the program may not read, if it is
/// one that an option can name.
fn unreadable(error: &RunError) -> Option<String> {
    let text = error.message.to_string_lossy();
    let rest = text.strip_prefix("The host lets no program read '")?;
    let path = rest.strip_suffix("' of its context")?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    path.chars().all(is_plain).then(|| path.to_owned())
}

/// How to grant what an op needs.
fn missing(op: &str, error: &RunError, source: &Source, atoms: &AtomSet) -> String {
    use Capability::{
        Agent, AgentTurn, Ai, Clock, Dom, Embedder, Fetch, Llm, LlmBattery, LocalStorage,
        Procedures, Random, Shell, Store, Transpiler, Vectors, Xml,
    };
    let Some(capability) = atoms.get(op).and_then(|atom| atom.sig.capability) else {
        return "script the answers with `--script FILE` (see `a99 run --help`)".into();
    };
    let member = capability.member();
    match capability {
        AgentTurn => format!(
            "only agents of `a99 agent host` have it; script it with `--script FILE`, under \
             `{member}`"
        ),
        Fetch => {
            let host = host_of(error, source).unwrap_or_else(|| "HOST".to_owned());
            format!(
                "grant the address with `--allow net:{host}`, or `allow = [\"net:{host}\"]` in \
                 agent99.toml; or script the response with `--script FILE`, under `{member}`"
            )
        }
        Llm | LlmBattery | Ai => format!(
            "grant a model with `--llm URL --model NAME`, where URL is a service such as \
             `http://localhost:1234/v1`; or script the answers with `--script FILE`, under \
             `{member}`"
        ),
        Agent => format!(
            "grant the agent with `--agent NAME=FILE`; or script its answers with `--script \
             FILE`, under `{member}`"
        ),
        Vectors => format!(
            "grant a store of documents and vectors with `--store FILE`; or script them with \
             `--script FILE`, under `{member}`"
        ),
        Embedder => format!(
            "grant embeddings with `--embed DIR`, a model from `a99 model import`; or script \
             them with `--script FILE`, under `{member}`"
        ),
        Xml | Transpiler | Shell | Store | Clock | Random => format!(
            "script the answers with `--script FILE`, under `{member}` (see `a99 run --help`)"
        ),
        Dom | LocalStorage | Procedures => "no option of this command grants it".into(),
    }
}

/// The host that the failed step names in its URL, if it does so in plain text.
fn host_of(error: &RunError, source: &Source) -> Option<String> {
    let program: serde_json::Value = serde_json::from_slice(&source.bytes).ok()?;
    let url = program
        .pointer(error.pointer.as_deref()?)?
        .get("url")?
        .as_str()?;
    let schemes = [("https://", 443), ("http://", 80)];
    let (rest, port) = schemes
        .iter()
        .find_map(|(scheme, port)| Some((url.strip_prefix(scheme)?, port)))?;
    let host = rest.split(['/', '?', '#', '{']).next()?;
    // The loopback needs its port; what is no rule is not suggested.
    let rules = [host.to_owned(), format!("{host}:{port}")];
    let mut rules = rules.into_iter();
    rules.find(|rule| Grant::parse(&format!("net:{rule}")).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_can_grant_is_said() {
        let atoms = agent99::all_atoms();
        for atom in atoms.iter() {
            let Some(capability) = atom.sig.capability else {
                continue;
            };
            let name = &atom.sig.name;
            let mut error = RunError::new(ErrorCode::Capability, &**name, "x");
            advise(&mut error, &Source::none(), &atoms);
            let help = error.help.expect("help");
            let member = format!("`{}`", capability.member());
            assert!(member == "``" || help.contains(&member), "{name}: {help}");
        }
    }

    #[test]
    fn advice_names_options() {
        let program = br#"{"op": "seq", "steps": [{"op": "httpFetch", "url": "https://api.example.com/a?b"}]}"#;
        let source = Source {
            name: "p.json".to_owned(),
            bytes: program.to_vec(),
        };
        let mut error = RunError::new(ErrorCode::Capability, "httpFetch", "x");
        error.pointer = Some("/steps/0".into());
        advise(&mut error, &source, &agent99::all_atoms());
        let help = error.help.expect("help");
        assert!(help.contains("`--allow net:api.example.com`"), "{help}");
        for (code, option) in [
            (ErrorCode::OutOfFuel, "--fuel"),
            (ErrorCode::RunTimeout, "--timeout"),
            (ErrorCode::HeapLimit, "--heap-mib"),
            (ErrorCode::QuotaExceeded, "--quota map=N"),
            (ErrorCode::AtomTimeout, "--atom-timeout map=TIME"),
            (ErrorCode::Capability, "--script"),
        ] {
            let mut error = RunError::new(code, "map", "x");
            advise(&mut error, &source, &agent99::all_atoms());
            assert!(
                error.help.is_some_and(|help| help.contains(option)),
                "{option}"
            );
        }
        let mut error = RunError::new(ErrorCode::Program, "map", "x");
        advise(&mut error, &source, &agent99::all_atoms());
        assert_eq!(error.help, None);
    }

    #[test]
    fn u7_an_unknown_atom_is_named_by_the_nearest() {
        let source = Source::none();
        for (name, wanted) in [("httpFech", "`httpFetch`"), ("zzz", "`a99 tools`")] {
            let mut error = RunError::new(ErrorCode::Program, "x", format!("Unknown Atom: {name}"));
            advise(&mut error, &source, &agent99::all_atoms());
            let help = error.help.unwrap_or_default();
            assert!(help.contains(wanted), "{help}");
        }
    }
}
