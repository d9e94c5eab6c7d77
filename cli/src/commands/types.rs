//! `a99 types`: writes the atoms as TypeScript declarations.

use crate::args::TypesArgs;
use crate::failure::{Exit, Failure};
use crate::{input, output, write};
use agent99::{Map, Value};

pub(crate) fn run(args: &TypesArgs) -> Result<Exit, Failure> {
    let text = text()?;
    if args.output == std::path::Path::new(input::STDIN) {
        if args.json {
            let mut map = Map::new();
            map.insert("types", text);
            output::json(&Value::Object(map));
        } else {
            output::out(&text);
        }
        return Ok(Exit::Ok);
    }
    write::replace(&args.output, text.as_bytes(), std::iter::empty())?;
    let name = args.output.display().to_string();
    if args.json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.insert("output", name);
        map.insert("bytes", text.len() as f64);
        output::json(&Value::Object(map));
    } else {
        output::note(&name, &format!("{} bytes", text.len()));
    }
    Ok(Exit::Ok)
}

/// The declarations of the atoms of this command.
#[cfg(feature = "source")]
pub(super) fn text() -> Result<String, Failure> {
    Ok(agent99::Engine::new().type_declarations())
}

#[cfg(not(feature = "source"))]
pub(super) fn text() -> Result<String, Failure> {
    Err(Failure::missing_feature(
        "types for the source form",
        "source",
    ))
}
