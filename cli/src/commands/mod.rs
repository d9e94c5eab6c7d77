//! Commands: one file for each.

pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod inspect;
pub(crate) mod keys;
pub(crate) mod run;
#[cfg(feature = "sandbox")]
pub(crate) mod sandbox;
#[cfg(feature = "sandbox")]
pub(crate) mod sandbox_doctor;
#[cfg(feature = "sandbox")]
pub(crate) mod sandbox_image;
pub(crate) mod tools;
pub(crate) mod verify;

use crate::input::Source;
use crate::output;
use agent99::Agent;

/// Shows what the compiler warned of.
fn show_warnings(agent: &Agent, source: &Source) {
    if !agent.warnings().is_empty() {
        let text = agent.warnings().render(Some((&source.name, &source.bytes)));
        output::err(&text);
    }
}
