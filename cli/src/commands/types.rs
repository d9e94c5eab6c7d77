//! `a99 types`: writes the atoms as TypeScript declarations.

use crate::args::TypesArgs;
use crate::failure::{Exit, Failure};
use crate::{input, output, write};
use agent99::{Map, Value};

pub(crate) fn run(args: &TypesArgs) -> Result<Exit, Failure> {
    let text = agent99::Engine::new().type_declarations();
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
