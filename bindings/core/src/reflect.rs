//! What an engine says about itself: atoms, tools, prompts, codes.

use crate::codes;
use crate::failure::Failure;
use a99_core::json::{Document, Limits};
use agent99::{
    Agent, AtomSet, AtomTimeout, CostModel, Effect, Engine, Fuel, Map, PromptForm, ToolFilter,
    ToolForm, Value,
};

pub(crate) fn version() -> Value {
    let mut map = Map::new();
    map.insert("version", env!("CARGO_PKG_VERSION"));
    map.insert("abi", f64::from(crate::ABI));
    Value::Object(map)
}

/// A schema's text as a value; undefined for none.
fn schema(text: &str) -> Value {
    match Document::parse(text, &Limits::default()) {
        Ok(document) => document.to_value(document.root()),
        Err(_) => Value::Undefined,
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Pure => "pure",
        Effect::Mutates => "mutates",
        Effect::Read => "read",
        Effect::Idempotent => "idempotent",
        Effect::Unsafe => "unsafe",
    }
}

/// The atoms that programs may name, with their signatures.
pub(crate) fn atoms(engine: &Engine) -> Value {
    let set: &AtomSet = engine.atoms();
    let atoms = set
        .iter()
        .filter(|atom| !a99_atoms_internal(&atom.sig.name));
    let atoms = atoms.map(|atom| {
        let sig = &atom.sig;
        let mut map = Map::new();
        map.insert("op", &*sig.name);
        map.insert("docs", &*sig.docs);
        map.insert("inputSchema", schema(&sig.input_schema));
        map.insert("outputSchema", schema(&sig.output_schema));
        map.insert("effect", effect(sig.effect));
        let cost = Fuel::from_micro(sig.cost.fixed_in(CostModel::Flat));
        map.insert("cost", cost.to_f64());
        map.insert(
            "timeoutMs",
            match sig.timeout {
                AtomTimeout::None => 0.0,
                AtomTimeout::Ms(ms) => ms as f64,
            },
        );
        if let Some(capability) = sig.capability {
            map.insert("capability", capability.name());
        }
        Value::Object(map)
    });
    Value::Array(atoms.collect())
}

/// Internal atoms have names that programs cannot write.
fn a99_atoms_internal(name: &str) -> bool {
    agent99::is_internal(name)
}

pub(crate) fn tools(engine: &Engine, filter: &Value, form: &Value) -> Result<Value, Failure> {
    let filter = match filter {
        Value::Undefined | Value::Null => ToolFilter::All,
        Value::Array(names) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            let names: Option<Vec<String>> = names.collect();
            let wrong = || Failure::argument("the names of atoms must be texts");
            ToolFilter::Names(names.ok_or_else(wrong)?)
        }
        other => match other.as_str() {
            Some("all") => ToolFilter::All,
            Some("flow") => ToolFilter::Flow,
            _ => {
                return Err(Failure::argument(
                    "the filter must be `all`, `flow` or a list",
                ));
            }
        },
    };
    let form = match form.as_str() {
        None | Some("openai") => ToolForm::OpenAi,
        Some("openai-strict") => ToolForm::OpenAiStrict,
        Some("anthropic") => ToolForm::Anthropic,
        Some("gemini") => ToolForm::Gemini,
        Some("mcp") => ToolForm::Mcp,
        Some(other) => {
            let help = "write `openai`, `openai-strict`, `anthropic`, `gemini` or `mcp`";
            let failure = Failure::argument(format!("`{other}` is no form of tools"));
            return Err(failure.with_help(help));
        }
    };
    Ok(Value::from(engine.tool_list(&filter, form)))
}

pub(crate) fn prompt(engine: &Engine, form: &Value) -> Result<Value, Failure> {
    let form = match form.as_str() {
        None | Some("short") => PromptForm::Short,
        Some("full") => PromptForm::Full,
        Some("source") => PromptForm::Source,
        Some(other) => {
            let failure = Failure::argument(format!("`{other}` is no form of a prompt"));
            return Err(failure.with_help("write `short`, `full` or `source`"));
        }
    };
    Ok(engine.prompt(form).into())
}

pub(crate) fn explain(code: &str) -> Value {
    if let Some((code, meaning)) = codes::TABLE.iter().find(|(of, _)| *of == code) {
        return crate::object([("code", (*code).into()), ("meaning", (*meaning).into())]);
    }
    let Some(row) = agent99::codes::find(code) else {
        return Value::Undefined;
    };
    let mut map = Map::new();
    map.insert("code", row.name);
    map.insert("meaning", row.meaning);
    if !row.help.is_empty() {
        map.insert("help", row.help);
    }
    Value::Object(map)
}

/// The node of a condition text. The dialect `v2` is that of the second generation's builder;
/// the default accepts all that programs may write.
pub(crate) fn condition(text: &str, dialect: &Value) -> Value {
    let strict = || {
        let parsed = a99_compiler::compat::parse_condition_v2(text)?;
        Ok(Value::from(a99_compiler::expr::to_expr_json(&parsed)))
    };
    let node: Result<Value, String> = match dialect.as_str() {
        Some("v2") => strict(),
        _ => agent99::expression(text).map(Value::from).map_err(|found| {
            let first = found.iter().next();
            first.map_or_else(String::new, |one| match &one.help {
                Some(help) => format!("{}; {help}", one.message),
                None => one.message.clone(),
            })
        }),
    };
    let (name, value) = match node {
        Ok(node) => ("expr", node),
        Err(message) => ("error", message.into()),
    };
    crate::object([(name, value)])
}

#[cfg(feature = "source")]
pub(crate) fn print(engine: &Engine, agent: &Agent) -> Result<Value, Failure> {
    engine
        .print_source(agent)
        .map(Value::from)
        .map_err(Failure::refused)
}

#[cfg(feature = "source")]
pub(crate) fn transpile(engine: &Engine, source: &Value) -> Result<Value, Failure> {
    let wrong = || Failure::argument("the source must be a text");
    let text = source.as_text().ok_or_else(wrong)?;
    Ok(match engine.read_source(text.as_bytes()) {
        Ok((document, warnings)) => {
            let program = document.to_value(document.root());
            let warnings = crate::programs::found(&warnings);
            crate::object([("program", program), ("warnings", warnings)])
        }
        Err(found) => crate::object([("diagnostics", crate::programs::found(&found))]),
    })
}

#[cfg(feature = "source")]
pub(crate) fn declarations(engine: &Engine) -> Result<Value, Failure> {
    Ok(engine.type_declarations().into())
}

#[cfg(not(feature = "source"))]
mod without_source {
    use super::{Agent, Engine, Failure, Value};
    use crate::codes;

    fn absent() -> Failure {
        Failure::new(codes::BAD_ARGUMENT, "this build has no source form")
    }

    pub(crate) fn print(_: &Engine, _: &Agent) -> Result<Value, Failure> {
        Err(absent())
    }

    pub(crate) fn transpile(_: &Engine, _: &Value) -> Result<Value, Failure> {
        Err(absent())
    }

    pub(crate) fn declarations(_: &Engine) -> Result<Value, Failure> {
        Err(absent())
    }
}
#[cfg(not(feature = "source"))]
pub(crate) use without_source::{declarations, print, transpile};
