//! `a99 doctor`: checks the resources of a run, and suggests fixes.

use crate::args::ConfigCommandArgs;
use crate::config::EffectiveConfig;
use crate::failure::{Exit, Failure};
use crate::{embed, models, network, output, store};
use a99_core::text::escape_for_terminal;
use serde_json::{Value as Json, json};

/// Result of a check.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    /// A run works, but perhaps not as intended.
    Warning,
    /// A run that needs this fails.
    Problem,
}

impl Status {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Problem => "problem",
        }
    }
}

/// A check with its result.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// Stable name of the check.
    pub check: &'static str,
    pub status: Status,
    pub text: String,
    pub help: Option<String>,
}

impl Check {
    /// A passed check.
    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Check {
        Check {
            check,
            status: Status::Ok,
            text: text.into(),
            help: None,
        }
    }

    /// A failed check.
    pub(crate) fn problem(check: &'static str, text: impl Into<String>, help: &str) -> Check {
        Check {
            status: Status::Problem,
            help: (!help.is_empty()).then(|| help.to_owned()),
            ..Check::ok(check, text)
        }
    }

    /// A check with a warning.
    pub(crate) fn warning(check: &'static str, text: impl Into<String>, help: &str) -> Check {
        Check {
            status: Status::Warning,
            ..Check::problem(check, text, help)
        }
    }

    /// A check that a failure of the command ended.
    pub(crate) fn failed(check: &'static str, failure: &Failure) -> Check {
        let (text, help) = failure.told();
        Check::problem(check, text, &help)
    }

    fn to_json(&self) -> Json {
        json!({
            "check": self.check,
            "status": self.status.name(),
            "message": self.text,
            "help": self.help,
        })
    }

    fn to_text(&self) -> String {
        let Check { check, text, .. } = self;
        let text = escape_for_terminal(text);
        let help = self.help.as_ref().map_or(String::new(), |help| {
            format!("{:24}help: {}\n", "", escape_for_terminal(help))
        });
        format!("{:<8}{check:<15} {text}\n{help}", self.status.name())
    }
}

/// Prints checks; the exit code reports whether one found a problem.
pub(crate) fn report(checks: &[Check], json: bool) -> Exit {
    let sound = checks.iter().all(|check| check.status != Status::Problem);
    if json {
        let checks: Vec<Json> = checks.iter().map(Check::to_json).collect();
        let line = json!({"ok": sound, "checks": checks});
        output::out(&format!("{line}\n"));
    } else {
        for check in checks {
            output::out(&check.to_text());
        }
    }
    if sound { Exit::Ok } else { Exit::Error }
}

/// Optional features of the binary, with their purpose.
const FEATURES: &[(&str, bool, &str)] = &[
    ("http", cfg!(feature = "http"), "`--allow net:RULE`"),
    ("models", cfg!(feature = "models"), "`--llm`"),
    ("embed", cfg!(feature = "embed"), "`--embed`"),
    ("sqlite", cfg!(feature = "sqlite"), "`--store FILE`"),
    (
        "postgres",
        cfg!(feature = "postgres"),
        "`--store postgres://...`",
    ),
    ("source", cfg!(feature = "source"), "programs in JavaScript"),
    ("lsp", cfg!(feature = "lsp"), "`a99 lsp`"),
    ("xml", cfg!(feature = "xml"), "the atom `xmlParse`"),
    ("sandbox", cfg!(feature = "sandbox"), "`a99 sandbox`"),
];

fn features() -> Check {
    let of = |there: bool| -> Vec<&str> {
        let rows = FEATURES.iter().filter(|row| row.1 == there);
        rows.map(|row| row.0).collect()
    };
    let absent = of(false);
    let mut text = format!("a99 {}", env!("CARGO_PKG_VERSION"));
    if !of(true).is_empty() {
        text += &format!(" with {}", of(true).join(", "));
    }
    if absent.is_empty() {
        return Check::ok("command", text);
    }
    let rows = FEATURES.iter().filter(|row| !row.1);
    let lacks: Vec<String> = rows.map(|row| format!("{} ({})", row.0, row.2)).collect();
    text += &format!("; without {}", lacks.join(", "));
    Check {
        help: Some(format!(
            "`cargo install --path cli --features {}` from a checkout has them",
            absent.join(",")
        )),
        ..Check::ok("command", text)
    }
}

pub(crate) fn run(args: &ConfigCommandArgs) -> Result<Exit, Failure> {
    let program = args.program.as_deref();
    let mut checks = vec![features()];
    match EffectiveConfig::of(&args.config, program) {
        Ok(config) => {
            let text = match config.file() {
                Some(file) => format!("{} is read", file.name),
                None => "no file: options and defaults hold".to_owned(),
            };
            checks.push(Check::ok("configuration", text));
            for warning in &config.warnings {
                checks.push(Check::warning("configuration", warning, ""));
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::about("cannot start the runtime", error))?;
            runtime.block_on(async {
                checks.extend(network::checks(&config).await);
                checks.extend(models::checks(&config).await);
            });
            checks.extend(embedder(&config));
            checks.extend(storage(&config));
        }
        Err(failure) => checks.push(Check::failed("configuration", &failure)),
    }
    Ok(report(&checks, args.json))
}

/// Checks that the embedding model can be read. A service is not called, because calls cost money.
fn embedder(config: &EffectiveConfig) -> Option<Check> {
    let from = config.set.embed.as_deref()?;
    Some(match embed::grant(config, agent99::Capabilities::none()) {
        Err(failure) => Check::failed("embeddings", &failure),
        Ok(_) if embed::is_address(from) => {
            let from = network::shown_address(from);
            Check::ok("embeddings", format!("{from}, which is not asked here"))
        }
        Ok(_) => Check::ok("embeddings", format!("{from} holds the model")),
    })
}

/// Checks that the store can be opened, without creating a missing file.
fn storage(config: &EffectiveConfig) -> Option<Check> {
    let place = config.set.store.as_ref()?;
    if let Some(path) = place.file()
        && cfg!(feature = "sqlite")
        && !path.exists()
    {
        let folder = path
            .parent()
            .filter(|folder| *folder != std::path::Path::new(""));
        return Some(match folder.is_none_or(std::path::Path::is_dir) {
            true => Check::ok("store", format!("{place} will be made by the first run")),
            false => {
                let text = format!("{place}: there is no such folder");
                Check::problem("store", text, "make the folder, or name another one")
            }
        });
    }
    Some(match store::open(config, None) {
        Ok(opened) => {
            opened.close();
            Check::ok("store", format!("{place} can be opened"))
        }
        Err(failure) => Check::failed("store", &failure),
    })
}
