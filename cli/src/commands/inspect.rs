//! `a99 inspect`: prints the bytecode of a program, or the content of an artifact.

use crate::args::ProgramArgs;
use crate::failure::{Exit, Failure};
use crate::{artifact, input, output};
use agent99::{Engine, Map, Value};

pub(crate) fn run(args: &ProgramArgs) -> Result<Exit, Failure> {
    let source = input::read(&args.program)?;
    if source.is_artifact() {
        return artifact::show(&source, args.json);
    }
    let (agent, source) = input::agent_of(&Engine::new(), source)?;
    let listing = agent.disassemble();
    if args.json {
        let mut map = Map::new();
        map.insert("disassembly", listing);
        map.insert("diagnostics", agent.warnings().to_json());
        output::json(&Value::Object(map));
    } else {
        super::show_warnings(&agent, &source);
        // The disassembler escapes all text of the program.
        output::out(&listing);
    }
    Ok(Exit::Ok)
}
