//! `cargo xtask guest`: builds the image that sandboxes start from.
//!
//! The command does the work; it is built here with the sandbox in it, so that
//! other chores do without wasmtime.

use crate::shell::{Failed, cargo, root, run};

/// Calls `a99 sandbox build` with these flags.
pub fn build(flags: &[&str]) -> Result<(), Failed> {
    let mut build = cargo("run");
    build.args(["--quiet", "--profile", "sandbox", "--package", "a99-cli"]);
    build.args(["--features", "sandbox", "--", "sandbox", "build"]);
    build.args(flags);
    // The command's own last line says what failed.
    run(build.current_dir(root())).map_err(|_| Failed(String::new()))
}
