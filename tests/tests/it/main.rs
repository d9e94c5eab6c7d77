//! The integration tests of the workspace.

mod oracle;
mod vectors;
