//! `a99 schema`: prints the JSON Schema of programs.

use crate::args::SchemaArgs;
use crate::failure::{Exit, Failure};
use crate::{output, write};
use agent99::{Engine, SchemaForm};

pub(crate) fn run(args: &SchemaArgs) -> Result<Exit, Failure> {
    let form = match args.strict {
        true => SchemaForm::Strict,
        false => SchemaForm::Full,
    };
    let text = format!("{:#}\n", Engine::new().program_schema(form));
    match &args.output {
        None => output::out(&text),
        Some(path) => {
            write::replace(path, text.as_bytes(), std::iter::empty())?;
            output::note(
                &path.display().to_string(),
                &format!("{} bytes", text.len()),
            );
        }
    }
    Ok(Exit::Ok)
}
