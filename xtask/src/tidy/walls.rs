//! The walls: which of our crates may depend on which.
//!
//! The table is the one of `ARCHITECTURE.md`; a change of one is a change of
//! both.

use crate::shell::{Failed, cargo, failed, output};
use serde_json::Value;

/// A crate of the workspace, and those of ours that it may depend on.
const WALLS: &[(&str, &[&str])] = &[
    ("a99-core", &[]),
    ("a99-ecma", &[]),
    ("a99-egress", &[]),
    ("a99-compiler", &["a99-core"]),
    ("a99-macros", &[]),
    ("a99-vm", &["a99-core", "a99-ecma"]),
    ("a99-capabilities", &["a99-core"]),
    ("a99-atoms", &["a99-core", "a99-vm", "a99-capabilities"]),
    (
        "agent99",
        &[
            "a99-core",
            "a99-compiler",
            "a99-macros",
            "a99-vm",
            "a99-capabilities",
            "a99-atoms",
        ],
    ),
    ("a99-guest", &[]),
    (
        "a99-cli",
        &["agent99", "a99-core", "a99-guest-agent", "a99-sandbox"],
    ),
    (
        "a99-testkit",
        &[
            "agent99",
            "a99-core",
            "a99-ecma",
            "a99-compiler",
            "a99-capabilities",
            "a99-guest",
            "a99-sandbox",
        ],
    ),
    ("a99-benches", &["agent99", "a99-core", "a99-compiler"]),
    ("a99-guest-agent", &[]),
    ("a99-sandbox", &["a99-egress", "a99-guest-agent"]),
    ("xtask", &["a99-core", "a99-atoms"]),
];

/// Crates that register things by linking: an atom must exist only where the
/// host put it into a set.
const BANNED: [&str; 3] = ["inventory", "linkme", "ctor"];

/// Crates that may know an async runtime.
const TOKIO: [&str; 4] = ["a99-vm", "a99-cli", "a99-testkit", "a99-benches"];

/// Checks the workspace's manifests.
pub fn findings() -> Result<Vec<String>, Failed> {
    let mut metadata = cargo("metadata");
    metadata.args(["--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output(&mut metadata)?)
        .map_err(|error| failed("cargo metadata", error))?;
    let packages = metadata["packages"].as_array();
    let packages = packages.ok_or_else(|| failed("cargo metadata", "no packages"))?;
    Ok(packages.iter().flat_map(package_findings).collect())
}

fn package_findings(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let Some((_, allowed)) = WALLS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name}: not in the table of walls")];
    };
    let mut findings = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let target = text(dependency, "name");
        // Tests may use more of what is ours; the product may not.
        let product = dependency["kind"] != "dev";
        let ours = WALLS.iter().any(|(known, _)| *known == target);
        if product && ours && !allowed.contains(&target) {
            findings.push(format!("{name}: may not depend on {target}"));
        }
        if BANNED.contains(&target) {
            findings.push(format!("{name}: {target} registers by linking"));
        }
        if product && target == "tokio" && !TOKIO.contains(&name) {
            findings.push(format!("{name}: may not know tokio"));
        }
    }
    findings
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(name: &str, dependency: &str, kind: Value) -> Vec<String> {
        package_findings(&json!({
            "name": name,
            "dependencies": [{ "name": dependency, "kind": kind }],
        }))
    }

    #[test]
    fn walls_hold() {
        assert!(check("a99-vm", "a99-core", Value::Null).is_empty());
        assert!(check("a99-vm", "a99-compiler", json!("dev")).is_empty());
        assert_eq!(
            check("a99-vm", "a99-compiler", Value::Null),
            ["a99-vm: may not depend on a99-compiler"]
        );
        assert_eq!(check("a99-vm", "inventory", json!("dev")).len(), 1);
        assert_eq!(check("a99-core", "tokio", Value::Null).len(), 1);
        assert_eq!(check("stranger", "serde", Value::Null).len(), 1);
    }
}
