//! `a99 inspect`: prints the bytecode of a program or the content of an artifact, or writes a page.

mod page;

use crate::args::InspectArgs;
use crate::failure::{Exit, Failure};
use crate::{artifact, input, output, write};
use agent99::{Engine, Map, Value};

pub(crate) fn run(args: &InspectArgs) -> Result<Exit, Failure> {
    let InspectArgs {
        program: args,
        html,
    } = args;
    let source = input::read(&args.program)?;
    let written = |program, source: &input::Source| match html {
        Some(path) => {
            let page = page::write(&source.name, program, &source.bytes);
            let inputs = std::iter::once(args.program.as_path());
            write::replace(path, page.as_bytes(), inputs)
        }
        None => Ok(()),
    };
    let is_page_only = html.is_some() && !args.json;
    if source.is_artifact() {
        let artifact = artifact::decode(&source)?;
        written(artifact.program(), &source)?;
        return match is_page_only {
            true => Ok(Exit::Ok),
            false => artifact::show(&source, &artifact, args.json),
        };
    }
    let (agent, source) = input::agent_of(&Engine::new(), source)?;
    written(agent.artifact().program(), &source)?;
    if is_page_only {
        super::show_warnings(&agent, &source);
        return Ok(Exit::Ok);
    }
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
