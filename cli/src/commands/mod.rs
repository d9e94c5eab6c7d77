//! One file for each command.

pub mod check;
pub mod compile;
pub mod completions;
pub mod inspect;
pub mod keys;
pub mod run;
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(feature = "sandbox")]
pub mod sandbox_doctor;
#[cfg(feature = "sandbox")]
pub mod sandbox_image;
pub mod tools;
pub mod verify;

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
