//! `a99 prompt`: prints the prompt that teaches a model to write programs.

use crate::args::PromptArgs;
use crate::failure::{Exit, Failure};
use crate::output;
use agent99::{Engine, PromptForm, Value, json};

pub(crate) fn run(args: &PromptArgs) -> Result<Exit, Failure> {
    let form = match (args.full, args.source) {
        (true, _) => PromptForm::Full,
        (_, true) => PromptForm::Source,
        _ => PromptForm::Short,
    };
    let text = Engine::new().prompt(form);
    match args.json {
        true => output::json(&Value::from(json!({ "prompt": text }))),
        false => output::out(&text),
    }
    Ok(Exit::Ok)
}
