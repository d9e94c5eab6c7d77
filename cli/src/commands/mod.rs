//! Commands: one file for each.

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
mod computer;
pub(crate) mod config;
pub(crate) mod dev;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod inspect;
pub(crate) mod keys;
#[cfg(feature = "lsp")]
pub(crate) mod lsp;
pub(crate) mod man;
pub(crate) mod model;
pub(crate) mod new;
pub(crate) mod prompt;
pub(crate) mod repl;
pub(crate) mod run;
#[cfg(feature = "sandbox")]
pub(crate) mod sandbox;
#[cfg(feature = "sandbox")]
pub(crate) mod sandbox_doctor;
#[cfg(feature = "sandbox")]
pub(crate) mod sandbox_image;
#[cfg(feature = "sandbox")]
mod sandbox_packs;
#[cfg(feature = "sandbox")]
mod sandbox_registry;
mod sarif;
pub(crate) mod schema;
#[cfg(feature = "server")]
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod types;
pub(crate) mod verify;
pub(crate) mod watch;

use crate::input::Source;
use crate::output;
use agent99::{Agent, Diagnostics};

/// Prints the compiler's warnings.
fn show_warnings(agent: &Agent, source: &Source) {
    show_findings(agent.warnings(), source);
}

fn show_findings(findings: &Diagnostics, source: &Source) {
    if !findings.is_empty() {
        output::err(&findings.render(Some((&source.name, &source.bytes))));
    }
}
