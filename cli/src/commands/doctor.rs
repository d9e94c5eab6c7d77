//! `a99 doctor`: checks the resources of a run, and suggests fixes.

use crate::address::{is_address, shown_address};
use crate::args::ConfigCommandArgs;
use crate::checks::{Check, report};
use crate::config::EffectiveConfig;
use crate::failure::{Exit, Failure};
use crate::{embed, models, network, store};

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
    ("server", cfg!(feature = "server"), "`a99 token`"),
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
        Ok(_) if is_address(from) => {
            let from = shown_address(from);
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
