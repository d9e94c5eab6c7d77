//! The work, done by wasmi.

use std::process::ExitCode;

fn main() -> ExitCode {
    peer_wasmi::timed()
}
