//! `a99 tools`: prints the atoms as tool definitions for a model.

use crate::args::{ToolFormArg, ToolsArgs};
use crate::failure::{Exit, Failure};
use crate::output;
use a99_core::diag::suggest;
use agent99::{Engine, ToolFilter, ToolForm, Value};

pub(crate) fn run(args: &ToolsArgs) -> Result<Exit, Failure> {
    let engine = Engine::new();
    let filter = match args.filter.as_str() {
        "all" => ToolFilter::All,
        "flow" => ToolFilter::Flow,
        names => ToolFilter::Names(known_names(&engine, names)?),
    };
    if let Some(form) = form(args) {
        output::json(&Value::from(engine.tool_list(&filter, form)));
    } else {
        let tools = engine.tools(&filter);
        let width = tools.iter().map(|tool| name(tool).len()).max().unwrap_or(0);
        let lines = tools.iter().map(|tool| {
            let docs = &tool["function"]["description"];
            format!(
                "{:width$}  {}\n",
                name(tool),
                docs.as_str().unwrap_or_default()
            )
        });
        output::out(&lines.collect::<String>());
    }
    Ok(Exit::Ok)
}

/// The requested format; `None` is a list for people.
fn form(args: &ToolsArgs) -> Option<ToolForm> {
    let json = args.json.then_some(ToolFormArg::Openai);
    Some(match args.format.or(json)? {
        ToolFormArg::Openai => ToolForm::OpenAi,
        ToolFormArg::OpenaiStrict => ToolForm::OpenAiStrict,
        ToolFormArg::Anthropic => ToolForm::Anthropic,
        ToolFormArg::Gemini => ToolForm::Gemini,
        ToolFormArg::Mcp => ToolForm::Mcp,
    })
}

fn name(tool: &serde_json::Value) -> &str {
    tool["function"]["name"].as_str().unwrap_or_default()
}

/// The names of a list; refuses unknown atoms.
fn known_names(engine: &Engine, list: &str) -> Result<Vec<String>, Failure> {
    let all = engine.tools(&ToolFilter::All);
    let all: Vec<&str> = all.iter().map(name).collect();
    let mut names = Vec::new();
    for wanted in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if !all.contains(&wanted) {
            let hint = suggest(wanted, all.iter().copied());
            let lower = wanted.to_ascii_lowercase();
            let holds =
                |name: &&&str| lower.len() > 2 && name.to_ascii_lowercase().contains(&lower);
            let hint = hint.or_else(|| all.iter().find(holds).map(|name| (*name).to_owned()));
            let help = hint.map_or("`a99 tools` lists them".to_owned(), |name| {
                format!("did you mean `{name}`?")
            });
            let text = format!("there is no atom named `{wanted}`");
            return Err(Failure::advised("--filter", text, help));
        }
        names.push(wanted.to_owned());
    }
    if names.is_empty() {
        return Err(Failure::advised(
            "--filter",
            "expected `all`, `flow` or names of atoms",
            "write names of atoms, as in `--filter httpFetch,len`",
        ));
    }
    Ok(names)
}
