//! `a99 config`: prints the effective settings and grants, with their sources.

use crate::args::{ConfigCommandArgs, KEYS};
use crate::config::{EffectiveConfig, From};
use crate::failure::{Exit, Failure};
use crate::output;
use agent99::{Map, Value};

pub(crate) fn run(args: &ConfigCommandArgs) -> Result<Exit, Failure> {
    let program = args.program.as_deref();
    if let Some(program) = program
        && let Err(error) = program.metadata()
    {
        return Err(Failure::about(&program.display().to_string(), error));
    }
    let config = EffectiveConfig::of(&args.config, program)?;
    let file = config.file().map(|file| &*file.name);
    if args.json {
        output::json(&json(&config));
        return Ok(Exit::Ok);
    }
    let mut text = match file {
        Some(file) => format!("# {file}\n"),
        None => "# no file\n".to_owned(),
    };
    for key in KEYS {
        let from = config.from(key);
        let values = key.shown(&config.set);
        let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        let line = match (&from, values.len()) {
            (From::Default, _) => format!("# {} = {}", key.name, key.default),
            (_, 1) => format!("{} = {}", key.name, quoted[0]),
            _ => format!("{} = [{}]", key.name, quoted.join(", ")),
        };
        let from = match &from {
            From::Line(line) => format!("{}:{line}", file.unwrap_or_default()),
            other => other.to_string(),
        };
        text += &format!("{line:<60} # {from}\n");
    }
    if let Some(models) = &config.models {
        text += &format!(
            "# [{}] {}\n",
            crate::config::models::SECTION,
            models.shown()
        );
    }
    output::out(&text);
    for warning in &config.warnings {
        output::note("warning", warning);
    }
    Ok(Exit::Ok)
}

fn json(config: &EffectiveConfig) -> Value {
    let texts = |texts: &[String]| -> Value {
        Value::Array(
            texts
                .iter()
                .map(|text| Value::from(text.as_str()))
                .collect(),
        )
    };
    let settings = KEYS.iter().map(|key| {
        let mut row = Map::new();
        row.insert("key", key.name);
        row.insert("values", texts(&key.shown(&config.set)));
        let from = match config.from(key) {
            From::Default => "default",
            From::Option => "option",
            From::Line(line) => {
                row.insert("line", line as f64);
                "file"
            }
        };
        row.insert("from", from);
        row.insert("default", key.default);
        Value::Object(row)
    });
    let settings = Value::Array(settings.collect());
    let mut out = Map::new();
    out.insert(
        "file",
        match config.file() {
            Some(file) => Value::from(file.name.as_str()),
            None => Value::Null,
        },
    );
    out.insert("settings", settings);
    if let Some(models) = &config.models {
        out.insert(crate::config::models::SECTION, models.shown());
    }
    out.insert("warnings", texts(&config.warnings));
    Value::Object(out)
}
