//! Arguments that a configuration file may give too: limits and grants.
//!
//! [`KEYS`] is the list of them: a key of `agent99.toml` has the name of its option.

use super::{AgentArg, StorePlace};
use crate::address::shown_address;
use crate::duration::time;
use crate::grants::{EnvArg, Grant, HeaderArg, shown_variable};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

// What the options are about, in the order of the help.
const NETWORK: &str = "Network and secrets";
const STORES: &str = "Stores and embeddings";
const MODELS: &str = "Models and agents";
const LIMITS: &str = "Limits";
const FIXED: &str = "Reproducible runs";
const FILES: &str = "Configuration";

/// The configuration file, and what it may say.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Read settings and grants from this file [default: `agent99.toml` in the
    /// program's folder or above]
    #[arg(long, help_heading = FILES, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Read no configuration file
    #[arg(long, help_heading = FILES, conflicts_with = "config")]
    pub no_config: bool,
    /// The settings.
    #[command(flatten)]
    pub set: Settings,
}

/// What the options say, or a configuration file; nothing is the default.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Settings {
    /// Allow-list of the network: `net:RULE,...`, where a rule is HOST[:PORT[-PORT]]
    /// and a host is a name, *.name, an address, a CIDR range or `*` for all public
    /// addresses; may be repeated
    #[arg(long, help_heading = NETWORK, value_name = "GRANT", value_parser = Grant::parse)]
    pub allow: Vec<Grant>,
    /// Trust the certificate authorities of this PEM file, instead of the system's
    #[arg(long, help_heading = NETWORK, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca: Option<PathBuf>,
    /// Let atoms read this environment variable, as `env.NAME` of the request
    /// context; may be repeated
    #[arg(long, help_heading = NETWORK, value_name = "NAME", value_parser = EnvArg::parse)]
    pub env: Vec<EnvArg>,
    /// Let the program itself read this part of the request context, such as `user`
    /// or `env.STAGE`, by `context('user.id')`; may be repeated
    #[arg(long, help_heading = NETWORK, value_name = "PATH", value_parser = context_path)]
    pub readable_context: Vec<String>,
    /// Send this secret header with requests to an origin: `ORIGIN NAME=TEXT`, where
    /// TEXT contains {env:VARIABLE} or {file:PATH}. The program never sees it; may be
    /// repeated
    #[arg(long, help_heading = NETWORK, value_name = "HEADER", value_parser = HeaderArg::parse)]
    pub header: Vec<HeaderArg>,
    /// Keep the program's store between runs: in this SQLite file, created if it is missing,
    /// or on the PostgreSQL server at this address, such as `postgres://user@host/database`
    /// [default: memory, for the run alone]
    #[arg(long, help_heading = STORES, value_name = "FILE|URL", value_hint = ValueHint::AnyPath, value_parser = StorePlace::parse)]
    pub store: Option<StorePlace>,
    /// Let the program embed texts (storeVectorize) with the model in this folder, from
    /// `a99 model import`, or by the service at this address, such as
    /// `https://api.openai.com/v1`
    #[arg(long, help_heading = STORES, value_name = "DIR|URL", value_hint = ValueHint::AnyPath)]
    pub embed: Option<String>,
    /// The model of the service of `--embed`
    #[arg(long, help_heading = STORES, value_name = "NAME")]
    pub embed_model: Option<String>,
    /// Let the program ask a language model (llmChat, llmToolLoop, llmPredict,
    /// llmPredictBattery, llmVision) of the service at this address:
    /// `http://localhost:1234/v1` of LM Studio, `http://localhost:11434/v1` of Ollama,
    /// `https://api.openai.com/v1`, `https://api.anthropic.com/v1`. This grants no network
    #[arg(long, help_heading = MODELS, value_name = "URL")]
    pub llm: Option<String>,
    /// The model of the service of `--llm`, or `SERVICE/MODEL` of the services in
    /// `[models]` of `agent99.toml`
    #[arg(long, help_heading = MODELS, value_name = "NAME")]
    pub model: Option<String>,
    /// The environment variable with the key for the service of `--llm`
    #[arg(long, help_heading = MODELS, value_name = "VARIABLE")]
    pub llm_key_env: Option<String>,
    /// Limit of language model tokens for the program and its agents
    #[arg(long, help_heading = MODELS, value_name = "N", allow_negative_numbers = true)]
    pub max_tokens: Option<u64>,
    /// Limit of the cost of models and embeddings, in US dollars or the `currency` of
    /// `[models]`. Each model needs a price: those of public services are known (`a99
    /// doctor` shows them), set others by `--price` or `[models]` of `agent99.toml`
    #[arg(long, help_heading = MODELS, value_name = "N", value_parser = super::run::amount, allow_negative_numbers = true)]
    pub max_money: Option<f64>,
    /// Price of a million tokens of a model's prompts and of its answers, as in
    /// `gpt-5=1.25,10`, or `local/qwen3=0,0` for a free model; may be repeated
    #[arg(long, help_heading = MODELS, value_name = "MODEL=PROMPT,ANSWER", value_parser = super::run::price)]
    pub price: Vec<(String, (f64, f64))>,
    /// Let the program call this program as a sub-agent by its name (agentRun). It has the
    /// program's grants and uses its fuel: all remaining fuel, or a `,share=` from 0 to 1, or
    /// at most `,fuel=N`; `,tokens=N` limits its tokens. May be repeated
    #[arg(long, help_heading = MODELS, value_name = "NAME=FILE", value_parser = AgentArg::parse)]
    pub agent: Vec<AgentArg>,
    /// Fuel budget of the run [default: 1000]
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = super::run::amount, allow_negative_numbers = true)]
    pub fuel: Option<f64>,
    /// Time limit of the run, as in 500ms, 5s, 2m, 1h; seconds without a unit
    /// [default: 10 ms for each unit of fuel; with a network or a model, 10m]
    #[arg(long, help_heading = LIMITS, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub timeout: Option<Duration>,
    /// Time limit of one call of an atom, or `none`; may be repeated [default: that
    /// of each atom, 1s for most]
    #[arg(long, help_heading = LIMITS, value_name = "OP=TIME", value_parser = super::run::op_timeout)]
    pub atom_timeout: Vec<(String, Option<Duration>)>,
    /// Memory limit of the run's values in MiB [default: 64]
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub heap_mib: Option<u32>,
    /// Cost model [default: metered]
    #[arg(long, help_heading = LIMITS, value_name = "MODEL", value_enum)]
    pub cost_model: Option<CostModelArg>,
    /// Price of an op for this run; may be repeated
    #[arg(long, help_heading = LIMITS, value_name = "OP=N", value_parser = super::run::op_amount)]
    pub cost: Vec<(String, f64)>,
    /// Maximum number of calls of an op; may be repeated
    #[arg(long, help_heading = LIMITS, value_name = "OP=N", value_parser = super::run::op_count)]
    pub quota: Vec<(String, u64)>,
    /// Seed of the run's randomness, to make it reproducible
    #[arg(long, help_heading = FIXED, value_name = "N", value_parser = super::run::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Fixed time for the program, as in 2026-01-31T12:00:00Z
    #[arg(long, help_heading = FIXED, value_name = "TIME", value_parser = super::run::moment)]
    pub now: Option<f64>,
}

/// A path into the request context: names with dots between them.
fn context_path(text: &str) -> Result<String, String> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    match text
        .split('.')
        .all(|name| !name.is_empty() && name.chars().all(part))
    {
        true => Ok(text.to_owned()),
        false => Err("expected names with dots between them, such as user.id".to_owned()),
    }
}

/// Which work is paid for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostModelArg {
    /// Steps, expressions, and work that grows with its operands
    Metered,
    /// Steps and expressions only
    Flat,
}

/// A setting that options and configuration files have.
pub(crate) struct Key {
    /// Its name in both.
    pub name: &'static str,
    /// Whether it always uses a secret or a variable of the user's.
    private: bool,
    /// Whether it lets the program reach something.
    pub grants: bool,
    /// What holds if nothing is said, for people.
    pub default: &'static str,
    /// Takes the setting from the other one.
    take: fn(&mut Settings, &Settings),
    /// The values as options would say them.
    shown: fn(&Settings) -> Vec<String>,
}

/// What a setting is about.
enum Kind {
    Limit,
    Grant,
    Private,
}

macro_rules! keys {
    ($($name:literal $field:ident $kind:ident $default:literal $shown:expr;)*) => {
        /// The settings, in the order of the help.
        pub(crate) const KEYS: &[Key] = &[$(Key {
            name: $name,
            private: matches!(Kind::$kind, Kind::Private),
            grants: !matches!(Kind::$kind, Kind::Limit),
            default: $default,
            take: |to, from| to.$field = from.$field.clone(),
            shown: |from| from.$field.iter().map($shown).collect(),
        }),*];
    };
}

keys! {
    "allow" allow Grant "nothing" ToString::to_string;
    "ca" ca Grant "the system's authorities" |path| path.display().to_string();
    "env" env Private "none" ToString::to_string;
    "readable-context" readable_context Grant "nothing" Clone::clone;
    "header" header Private "none" ToString::to_string;
    "store" store Grant "memory, for the run alone" ToString::to_string;
    "embed" embed Grant "nothing" |from| shown_address(from);
    "embed-model" embed_model Limit "none" Clone::clone;
    "llm" llm Grant "nothing" |url| shown_address(url);
    "model" model Limit "none" Clone::clone;
    "llm-key-env" llm_key_env Private "none" |name| shown_variable(name);
    "max-tokens" max_tokens Limit "no limit" ToString::to_string;
    "max-money" max_money Limit "no limit" ToString::to_string;
    "price" price Limit "that of the service" |(model, (prompt, answer))| format!("{model}={prompt},{answer}");
    "agent" agent Grant "none" ToString::to_string;
    "fuel" fuel Limit "1000" ToString::to_string;
    "timeout" timeout Limit "10 ms for each unit of fuel; with a network or a model, 10m" |time| format!("{time:?}");
    "atom-timeout" atom_timeout Limit "that of each atom" |(op, time)| match time {
        Some(time) => format!("{op}={time:?}"),
        None => format!("{op}=none"),
    };
    "heap-mib" heap_mib Limit "64" ToString::to_string;
    "cost-model" cost_model Limit "metered" |model| match model {
        CostModelArg::Metered => "metered".to_owned(),
        CostModelArg::Flat => "flat".to_owned(),
    };
    "cost" cost Limit "that of each atom" |(op, price)| format!("{op}={price}");
    "quota" quota Limit "none" |(op, calls)| format!("{op}={calls}");
    "seed" seed Limit "the system's randomness" ToString::to_string;
    "now" now Limit "the system's time" |ms| a99_ecma::date::to_iso(*ms);
}

impl Key {
    /// Whether these settings use a secret or a variable of the user's with it, or decide who
    /// gets one: then only an option says so, or a file that `--config` names.
    pub(crate) fn is_private(&self, settings: &Settings) -> bool {
        let store = settings.store.as_ref();
        // Authorities vouch for whoever is sent a key.
        self.private
            || self.name == "ca"
            || self.name == "store" && store.is_some_and(StorePlace::asks_for_a_secret)
    }

    /// Whether what is written for it may be a secret, whatever it is.
    pub(crate) fn may_hold_secret(&self) -> bool {
        self.private || self.name == "store"
    }

    /// The values that these settings have, none where nothing is said.
    pub(crate) fn shown(&self, settings: &Settings) -> Vec<String> {
        (self.shown)(settings)
    }

    /// Takes the setting from the other one.
    pub(crate) fn take(&self, to: &mut Settings, from: &Settings) {
        (self.take)(to, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        set: Settings,
    }

    /// A value of each key.
    const VALUES: &[(&str, &str)] = &[
        ("allow", "net:example.com:443"),
        ("ca", "ca.pem"),
        ("env", "STAGE"),
        ("readable-context", "user.id"),
        ("header", "https://a.example x-key={env:KEY}"),
        ("store", "a.db"),
        ("embed", "minilm"),
        ("embed-model", "m"),
        ("llm", "http://localhost:1234/v1"),
        ("model", "m"),
        ("llm-key-env", "KEY"),
        ("max-tokens", "5"),
        ("max-money", "5"),
        ("price", "m=1.25,10"),
        ("agent", "a=a.json"),
        ("fuel", "5"),
        ("timeout", "5s"),
        ("atom-timeout", "map=5s"),
        ("heap-mib", "5"),
        ("cost-model", "flat"),
        ("cost", "map=5"),
        ("quota", "map=5"),
        ("seed", "5"),
        ("now", "2026-01-31T12:00:00Z"),
    ];

    #[test]
    fn the_page_has_each_key_and_its_default() {
        let page = include_str!("../../../docs/grants.md");
        for key in KEYS {
            let start = format!("| `{}` | ", key.name);
            let end = format!(" | {} |", key.default);
            let is_there = page
                .lines()
                .any(|line| line.starts_with(&start) && line.ends_with(&end));
            assert!(is_there, "{}", key.name);
        }
    }

    #[test]
    fn each_option_is_a_key_and_moves_alone() {
        let command = <Only as clap::CommandFactory>::command();
        let options: Vec<_> = command
            .get_arguments()
            .filter_map(|a| a.get_long())
            .collect();
        let options: Vec<_> = options.into_iter().filter(|name| *name != "help").collect();
        let keys: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        assert_eq!(options, keys);
        assert_eq!(VALUES.iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys);
        for (name, value) in VALUES {
            let word = format!("--{name}={value}");
            let from = Only::try_parse_from(["a99", &word])
                .unwrap_or_else(|e| panic!("{e}"))
                .set;
            let mut to = Settings::default();
            for key in KEYS {
                assert_eq!(
                    key.shown(&from).len(),
                    usize::from(key.name == *name),
                    "{name}"
                );
                key.take(&mut to, &from);
            }
            let said = |settings: &Settings| -> Vec<_> {
                KEYS.iter().flat_map(|key| key.shown(settings)).collect()
            };
            assert_eq!(said(&to), said(&from), "{name}");
        }
    }
}
