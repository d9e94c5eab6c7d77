//! `a99 model`: makes the model of embeddings ready.

use crate::args::{ModelArgs, ModelCommand, ModelImportArgs};
use crate::failure::{Exit, Failure};

/// Runs the command.
pub(crate) fn run(args: &ModelArgs) -> Result<Exit, Failure> {
    match &args.command {
        ModelCommand::Import(args) => import(args),
    }
}

#[cfg(feature = "embed")]
fn import(args: &ModelImportArgs) -> Result<Exit, Failure> {
    use crate::{embed, output};
    use a99_embed::Imported;
    use agent99::{Map, Value};
    let done = a99_embed::import(&args.from, &args.into);
    let done = done.map_err(|error| embed::failure(&error))?;
    let folder = args.into.display().to_string();
    if args.json {
        let mut map = Map::new();
        map.insert("ok", true);
        map.insert("model", folder);
        map.insert("written", done == Imported::Written);
        output::json(&Value::Object(map));
    } else {
        let what = match done {
            Imported::Written => "model",
            Imported::Present => "model, there already",
        };
        output::note(what, &folder);
    }
    Ok(Exit::Ok)
}

#[cfg(not(feature = "embed"))]
fn import(args: &ModelImportArgs) -> Result<Exit, Failure> {
    let what = format!("`a99 model import {}`", args.from.display());
    Err(Failure::missing_feature(&what, "embed"))
}
