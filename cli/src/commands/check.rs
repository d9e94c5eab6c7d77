//! `a99 check`: compiles and verifies a program; an artifact is verified as by
//! `a99 verify`.

use crate::args::ProgramArgs;
use crate::failure::{Exit, Failure};
use crate::{input, output};
use agent99::{Engine, Map, Value};

/// Runs the command.
pub(crate) fn run(args: &ProgramArgs) -> Result<Exit, Failure> {
    let source = input::read(&args.program)?;
    if source.is_artifact() {
        return super::verify::report(&source, None, args.json);
    }
    let (agent, source) = input::agent_of(&Engine::new(), source)?;
    let warnings = agent.warnings();
    if args.json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.insert("diagnostics", warnings.to_json());
        output::json(&Value::Object(map));
    } else {
        super::show_warnings(&agent, &source);
        let found = match warnings.len() {
            0 => String::new(),
            1 => ", 1 warning".to_owned(),
            n => format!(", {n} warnings"),
        };
        output::note(&source.name, &format!("ok{found}"));
    }
    Ok(Exit::Ok)
}
