//! The integration tests of the workspace.

mod attack;
mod oracle;
mod security_cpu;
mod security_escape;
mod vectors;
