//! External dependencies, checked by cargo-deny with the rules of `deny.toml`: licences, duplicate
//! versions and sources in CI, advisories with the caller's database.

use crate::shell::{Failed, root, run, works};
use std::path::Path;
use std::process::Command;

/// The version to install.
const VERSION: &str = "0.20.2";

/// Build settings for cargo-deny: it runs for a second, so compile it quickly.
const BUILD: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
];

/// Address of the database in `deny.toml`. It does not resolve; git is configured to read the
/// caller's clone instead.
const DATABASE: &str = "https://advisories.invalid/db";

/// Path of cargo-deny's copy of the database, as in `deny.toml`.
const COPY: &str = "target/advisories";

/// Checks licences, duplicate versions and sources, of the workspace and of the fuzz targets.
pub(crate) fn deny() -> Result<(), Failed> {
    install()?;
    let checks = ["licenses", "bans", "sources"];
    run(cargo_deny(None).arg("check").args(checks))?;
    let mut fuzz = cargo_deny(Some("fuzz/Cargo.toml"));
    // Both share the rules; those for the workspace alone do not match here.
    fuzz.args(["check", "--allow", "unmatched-skip"]);
    fuzz.args(["--allow", "license-exception-not-encountered"]);
    run(fuzz.args(checks))
}

/// Checks advisories about the workspace's dependencies, with a clone of a database in RustSec's
/// format.
pub(crate) fn advisories(args: &[&str]) -> Result<(), Failed> {
    let ["--db", path] = *args else {
        let text = "expected --db PATH, a clone of RustSec's advisory database; without one \
                    nothing is checked";
        return Err(Failed(text.to_owned()));
    };
    let clone = Path::new(path).canonicalize();
    let clone = clone.map_err(|error| Failed(format!("{path}: {error}")))?;
    install()?;
    // A copy of another clone would be mixed with this one.
    let copy = root().join(COPY);
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(|error| Failed(format!("{COPY}: {error}")))?;
    }
    let mut check = cargo_deny(None);
    check.args(["check", "advisories"]);
    check.env("GIT_CONFIG_COUNT", "1");
    let instead = format!("url.file://{}.insteadOf", clone.display());
    check.env("GIT_CONFIG_KEY_0", instead);
    run(check.env("GIT_CONFIG_VALUE_0", DATABASE))
}

fn cargo_deny(manifest: Option<&str>) -> Command {
    let mut command = Command::new("cargo-deny");
    command.current_dir(root()).arg("--config");
    command.arg(root().join("deny.toml"));
    if let Some(manifest) = manifest {
        command.args(["--manifest-path", manifest]);
    }
    command
}

/// Builds cargo-deny if missing: takes minutes, once for each machine.
fn install() -> Result<(), Failed> {
    if works(Command::new("cargo-deny").arg("--version")) {
        return Ok(());
    }
    let mut install = Command::new("cargo");
    install.args(["install", "cargo-deny", "--locked", "--quiet"]);
    install.args(["--version", VERSION]).envs(BUILD);
    run(&mut install)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_name_the_same_places() {
        let rules = std::fs::read_to_string(root().join("deny.toml")).expect("the rules");
        assert!(rules.contains(DATABASE) && rules.contains(COPY));
    }
}
