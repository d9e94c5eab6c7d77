//! The integration tests of the workspace.

mod attack;
mod differential;
mod oracle;
mod replay;
mod security_cpu;
mod security_escape;
mod security_fuel;
mod vectors;
