//! `a99 model`: imports the embedding model, and shows prices of models.

use crate::args::{ConfigCommandArgs, ModelArgs, ModelCommand, ModelImportArgs};
use crate::config::EffectiveConfig;
use crate::failure::{Exit, Failure};

pub(crate) fn run(args: &ModelArgs) -> Result<Exit, Failure> {
    match &args.command {
        ModelCommand::Import(args) => import(args),
        ModelCommand::Prices(args) => prices(args),
    }
}

fn prices(args: &ConfigCommandArgs) -> Result<Exit, Failure> {
    let config = EffectiveConfig::of(&args.config, args.program.as_deref())?;
    let (currency, models) = crate::models::prices(&config)?;
    if args.json {
        let models: Vec<_> = models.iter().map(|model| model.to_json()).collect();
        let line = serde_json::json!({"ok": true, "currency": currency, "models": models});
        crate::output::out(&format!("{line}\n"));
        return Ok(Exit::Ok);
    }
    for model in &models {
        let text = a99_core::text::escape_for_terminal(&model.to_text(&currency));
        crate::output::out(&format!("{text}\n"));
    }
    if models.is_empty() {
        crate::output::note(
            "models",
            "the run has none: `--llm`, `--embed` or `[models]` names one",
        );
    }
    Ok(Exit::Ok)
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
