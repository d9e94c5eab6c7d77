//! Help for mistakes in a configuration file.

use super::file::Places;
use super::models::SECTION;
use super::{SYNTAX, UNKNOWN_KEY};
use crate::args::{KEYS, RunArgs};
use crate::failure::Failure;
use crate::words;
use a99_core::diag::{excerpt, suggest};
use clap::Args as _;
use toml::Spanned;
use toml::de::DeValue;

/// The form of a value that may hold a secret; messages never show such a value.
pub(super) fn form_of(name: &str) -> &'static str {
    match name {
        "header" => {
            "write `--header 'https://api.example.com authorization=Bearer {env:TOKEN}'`: an \
             address, the name, `=`, and where the secret is"
        }
        _ => "write the name alone, as in `--env STAGE`, and set it before: `export STAGE=...`",
    }
}

/// The error of a line that is not TOML.
pub(super) fn syntax(places: &Places<'_>, at: usize, message: &str, line: &str) -> Failure {
    // The value may be a secret: the key alone is shown.
    let line = line.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if let Some(section) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next())
        && section.chars().all(|c| plain(c) || ".\"".contains(c))
    {
        let section = excerpt(section);
        let help = match message.contains("duplicate") {
            true => format!("a section stands once: put the lines of both below one `[{section}]`"),
            false => "a section is `[models.roles]`, alone in its line".to_owned(),
        };
        let text = format!("{message}, at `[{section}]`");
        return Failure::coded(SYNTAX, places.at(at, &text), help);
    }
    let word = line.split(['=', ':']).next().unwrap_or(line).trim();
    let has_sign = line.contains(['=', ':']);
    // Without an equals sign the key is the first word.
    let word = match has_sign {
        true => word,
        false => word.split_whitespace().next().unwrap_or(word),
    };
    let is_word = !word.is_empty() && word.chars().all(plain);
    let help = match line.split_once(['=', ':']) {
        _ if line.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) => {
            format!(
                "write plain quotes, `{} = \"...\"`",
                if is_word { word } else { "key" }
            )
        }
        None if is_word => format!("write `=` between the key and its value, `{word} = ...`"),
        _ if is_word && message.contains("duplicate") => {
            format!(
                "a key stands once: remove one of the two lines of `{word}`, or make a list, \
                 `{word} = [...]`"
            )
        }
        Some(_) if is_word && !line.contains('=') => {
            format!("write `=` instead of `:`, `{word} = ...`")
        }
        _ => "write `key = \"value\"` or `key = [\"value\", ...]`, a line for each key".to_owned(),
    };
    let text = match is_word {
        true => format!("{message}, at `{}`", excerpt(word)),
        false => message.to_owned(),
    };
    Failure::coded(SYNTAX, places.at(at, &text), help)
}

/// Names of settings in other tools.
const OTHERS: &[(&[&str], &str)] = &[
    (
        &[
            "memory",
            "heap",
            "mem",
            "max-memory",
            "memory-limit",
            "memory-mib",
        ],
        "heap-mib",
    ),
    (
        &["timeout-ms", "time-limit", "deadline", "max-time"],
        "timeout",
    ),
    (&["gas", "budget", "limit", "max-fuel"], "fuel"),
    (
        &[
            "net",
            "network",
            "allow-net",
            "hosts",
            "grants",
            "permissions",
        ],
        "allow",
    ),
    (&["headers", "secrets", "auth"], "header"),
    (&["db", "database", "storage", "kv"], "store"),
    (&["quotas", "limits", "max-calls", "rate-limit"], "quota"),
    (&["costs", "prices", "price"], "cost"),
    (&["environment", "vars", "variables", "envs"], "env"),
    (&["random-seed", "rng"], "seed"),
    (&["time", "clock", "date"], "now"),
    (
        &[
            "provider", "base-url", "endpoint", "llm-url", "api-base", "service",
        ],
        "llm",
    ),
    (
        &["api-key", "key", "token", "llm-key", "api-key-env"],
        "llm-key-env",
    ),
    (&["llm-model", "model-name", "engine"], "model"),
    (
        &[
            "token-limit",
            "max-output-tokens",
            "tokens",
            "budget-tokens",
        ],
        "max-tokens",
    ),
    (
        &["max-cost", "spend", "max-spend", "cost-limit", "money"],
        "max-money",
    ),
    (&["agents", "sub-agents", "subagents", "sub-agent"], "agent"),
    (&["embedder", "embeddings", "embedding"], "embed"),
];

/// Tables of the section of language models.
const MODEL_TABLES: [&str; 5] = ["services", "roles", "prices", "timeouts", "retries"];

/// The error of an unknown key.
pub(super) fn unknown(
    word: &str,
    places: &Places<'_>,
    (at, value): (usize, &Spanned<DeValue<'_>>),
) -> Failure {
    let words = word.replace('_', "-");
    let names = KEYS.iter().map(|key| key.name);
    let near = match names.clone().find(|name| *name == words) {
        Some(name) => Some(name.to_owned()),
        None => suggest(word, names.clone()),
    };
    let run = RunArgs::augment_args(clap::Command::new("run"));
    let option = |of: &clap::Arg| of.get_long() == Some(&*words) && !of.is_hide_set();
    let is_option = run.get_arguments().any(option);
    let others = OTHERS.iter().find(|row| row.0.contains(&&*words));
    let inside: Vec<String> = match value.get_ref() {
        DeValue::Table(table) => {
            let names = table.iter().map(|(name, _)| name.get_ref().to_string());
            names
                .filter(|name| KEYS.iter().any(|key| key.name == *name))
                .collect()
        }
        _ => Vec::new(),
    };
    let help = match near {
        _ if MODEL_TABLES.contains(&&*words) => {
            format!("language models have a section: write `[{SECTION}.{words}]`")
        }
        _ if !inside.is_empty() => format!(
            "there are no sections: write `{}` at the top of the file, without `[{}]`",
            inside.join("`, `"),
            excerpt(word)
        ),
        Some(near) if near == words => format!("did you mean `{near}`?"),
        _ if others.is_some() => {
            format!("did you mean `{}`?", others.map_or("", |row| row.1))
        }
        _ if is_option => format!("`--{words}` is an option alone"),
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("keys are {}", names.collect::<Vec<_>>().join(", ")),
    };
    let text = format!("there is no setting `{}`", excerpt(word));
    Failure::coded(UNKNOWN_KEY, places.at(at, &text), help)
}

/// An example value of each setting, as the file writes it.
pub(super) fn example(name: &str) -> &'static str {
    match name {
        "allow" => "[\"net:api.example.com\"]",
        "ca" => "\"ca.pem\"",
        "env" => "[\"STAGE\"]",
        "readable-context" => "[\"user.id\"]",
        "header" => "[\"https://api.example.com authorization=Bearer {env:TOKEN}\"]",
        "store" => "\"notes.db\"",
        "embed" => "\"minilm\"",
        "embed-model" => "\"text-embedding-3-small\"",
        "llm" => "\"http://localhost:11434/v1\"",
        "model" => "\"llama3.2\"",
        "agent" => "[\"researcher=researcher.json\"]",
        "llm-key-env" => "\"OPENAI_API_KEY\"",
        "timeout" => "\"5s\"",
        "atom-timeout" => "[\"httpFetch=5s\"]",
        "cost-model" => "\"metered\"",
        "cost" | "quota" => "[\"httpFetch=20\"]",
        "now" => "\"2026-01-31T12:00:00Z\"",
        "heap-mib" => "64",
        _ => "1000",
    }
}

/// Help for a rejected value, in terms of the file.
pub(super) fn help_for(name: &str, error: &clap::Error) -> String {
    let told = words::told(error);
    match told.help.strip_prefix(&format!("write `--{name} ")) {
        Some(value) => {
            let value = value.trim_end_matches('`').trim_matches('\'');
            match value.parse::<f64>() {
                Ok(number) => format!("write `{name} = {number}`"),
                Err(_) => format!("write `{name} = \"{value}\"`"),
            }
        }
        None if told.help.contains("--") => {
            format!("write it as in `{name} = {}`", example(name))
        }
        None => told.help,
    }
}

/// The reason that clap gives, without the option's name.
pub(super) fn reason(error: &clap::Error) -> String {
    let text = crate::address::without_logins(&error.render().to_string());
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let possible = lines.next().map(str::trim).unwrap_or_default();
    match (line.find(" for '--"), line.rfind("': ")) {
        (Some(from), Some(to)) if from < to => format!("{}: {}", &line[..from], &line[to + 3..]),
        (Some(from), _) => format!("{} {possible}", &line[..from])
            .trim_end()
            .to_owned(),
        _ => line.to_owned(),
    }
}
