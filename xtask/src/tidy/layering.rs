//! Layering rules: which crate may depend on which, and which may name an external dependency.
//!
//! The rules are tables of `xtask/rules.md`. They are compared with cargo's metadata both ways; a
//! difference is reported with the line to edit.

use super::tables::{Row, section, table};
use crate::shell::{Failed, failed, metadata, root};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The page with the tables.
const PAGE: &str = "xtask/rules.md";

/// The heading of the table of our crates and their dependencies.
const CRATES: &str = "## Map";
const CRATE_COLUMNS: [&str; 4] = ["folder", "package", "what it is", "may depend on (ours)"];

/// The heading of the table of external dependencies that only some of our crates may name.
const EXTERNAL: &str = "## External crates";
const EXTERNAL_COLUMNS: [&str; 3] = ["crate", "what for", "named by"];

/// The paragraph of that section that lists the main dependencies.
const BUILT_ON: &str = "Built on";

/// Crates whose dependencies are not part of a product.
const WORKSHOP: [&str; 2] = ["xtask", "a99-testkit"];

/// Mark of a dependency that a feature enables.
const BY_FEATURE: &str = "by a feature";

/// A crate of the workspace according to its manifest.
#[derive(Debug)]
struct Package {
    name: String,
    /// The manifest's folder, relative to the workspace.
    folder: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    name: String,
    /// Whether only tests, examples and benchmarks use it.
    is_dev: bool,
    is_optional: bool,
    line: usize,
}

impl Package {
    fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    /// Dependencies of the crate without dev-dependencies.
    fn arrows(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|found| !found.is_dev)
    }
}

/// Compares the page with the workspace's manifests.
pub(crate) fn diagnostics() -> Result<Vec<String>, Failed> {
    let metadata = metadata()?;
    let listed = metadata["packages"].as_array();
    let listed = listed.ok_or_else(|| failed("cargo metadata", "no packages"))?;
    let packages: Vec<Package> = listed.iter().map(package).collect();
    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| failed(PAGE, error))?;
    Ok(compare(&page, &packages))
}

fn package(package: &Value) -> Package {
    let path = Path::new(text(package, "manifest_path"));
    let manifest = fs::read_to_string(path).unwrap_or_default();
    let folder = path.parent().unwrap_or(path);
    let folder = folder.strip_prefix(root()).unwrap_or(folder);
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    Package {
        name: text(package, "name").to_owned(),
        folder: folder.to_string_lossy().into_owned(),
        dependencies: dependencies
            .map(|found| {
                let name = text(found, "name");
                Dependency {
                    name: name.to_owned(),
                    is_dev: found["kind"] == "dev",
                    is_optional: found["optional"] == true,
                    line: line_of(&manifest, name),
                }
            })
            .collect(),
    }
}

/// The line of a manifest that names a dependency, or the first line.
fn line_of(manifest: &str, name: &str) -> usize {
    let names = |line: &str| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    let at = manifest.lines().position(names);
    at.map_or(1, |at| at + 1)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn compare(page: &str, packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    match table(PAGE, page, CRATES, &CRATE_COLUMNS) {
        Ok(rows) => crates(&rows, packages, &mut found),
        Err(error) => found.push(error),
    }
    match table(PAGE, page, EXTERNAL, &EXTERNAL_COLUMNS) {
        Ok(rows) => external(&rows, packages, &mut found),
        Err(error) => found.push(error),
    }
    built_on(page, packages, &mut found);
    found
}

/// Whether a short name, without `a99-`, means this crate.
fn is_meant(package: &Package, name: &str) -> bool {
    package.name == name || package.name.strip_prefix("a99-") == Some(name)
}

fn short(name: &str) -> &str {
    name.strip_prefix("a99-").unwrap_or(name)
}

/// Checks the table of our crates.
fn crates(rows: &[Row], packages: &[Package], found: &mut Vec<String>) {
    for package in packages {
        let named = |row: &&Row| row.spans(1).any(|name| name == package.name);
        let Some(row) = rows.iter().find(named) else {
            let last = rows.last().map_or(1, |row| row.line);
            let (name, manifest) = (&package.name, package.manifest());
            found.push(format!(
                "{PAGE}:{last}: no row for {name} ({manifest}) in the table below `{CRATES}`"
            ));
            continue;
        };
        if !row.spans(0).any(|folder| folder == package.folder) {
            let (line, name, folder) = (row.line, &package.name, &package.folder);
            found.push(format!("{PAGE}:{line}: the folder of {name} is {folder}"));
        }
        arrows(row, package, packages, found);
    }
    for row in rows {
        let name = row.spans(1).next().unwrap_or_default();
        if !packages.iter().any(|package| package.name == name) {
            let line = row.line;
            found.push(format!(
                "{PAGE}:{line}: no crate of the workspace is called `{name}`"
            ));
        }
    }
}

/// Compares the dependencies that a row allows with the manifest.
fn arrows(row: &Row, package: &Package, packages: &[Package], found: &mut Vec<String>) {
    let (line, name) = (row.line, &package.name);
    let mut allowed: Vec<(&Package, bool)> = Vec::new();
    for item in items(row.cell(3)) {
        let (target, by_feature) = match item.strip_suffix(BY_FEATURE) {
            Some(target) => (target.trim(), true),
            None => (item, false),
        };
        match packages.iter().find(|package| is_meant(package, target)) {
            Some(target) => allowed.push((target, by_feature)),
            None => found.push(format!("{PAGE}:{line}: there is no crate `{target}`")),
        }
    }
    for dependency in package.arrows() {
        let Some(target) = packages.iter().find(|p| p.name == dependency.name) else {
            continue;
        };
        let place = format!("{}:{}", package.manifest(), dependency.line);
        let target = short(&target.name);
        match allowed.iter().find(|(p, _)| p.name == dependency.name) {
            None => found.push(format!(
                "{place}: {name} may not depend on {target} ({PAGE}:{line})"
            )),
            Some((_, true)) if !dependency.is_optional => found.push(format!(
                "{place}: {name} may depend on {target} by a feature only ({PAGE}:{line})"
            )),
            Some((_, false)) if dependency.is_optional => found.push(format!(
                "{PAGE}:{line}: {name} depends on {target} by a feature: write `{target} {BY_FEATURE}`"
            )),
            Some(_) => {}
        }
    }
    for (target, _) in allowed {
        if !package.arrows().any(|found| found.name == target.name) {
            let target = short(&target.name);
            found.push(format!(
                "{PAGE}:{line}: {name} does not depend on {target}: remove it from the row"
            ));
        }
    }
}

/// The comma-separated names of a cell.
fn items(cell: &str) -> impl Iterator<Item = &str> {
    let items = cell.split(',').map(str::trim);
    items.filter(|item| !item.is_empty() && *item != "nothing")
}

/// Checks the table of external dependencies that only some crates may name, also in tests.
fn external(rows: &[Row], packages: &[Package], found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for row in rows {
        let line = row.line;
        for item in items(row.cell(2)) {
            if !packages.iter().any(|package| is_meant(package, item)) {
                found.push(format!("{PAGE}:{line}: there is no crate `{item}`"));
            }
        }
        for name in row.spans(0) {
            if !seen.insert(name.to_owned()) {
                found.push(format!("{PAGE}:{line}: `{name}` has a row already"));
            }
            for package in packages {
                let mine = package.dependencies.iter().find(|found| found.name == name);
                let may = items(row.cell(2)).any(|item| is_meant(package, item));
                match (mine, may) {
                    (Some(dependency), false) => found.push(format!(
                        "{}:{}: {} may not name {name} ({PAGE}:{line})",
                        package.manifest(),
                        dependency.line,
                        package.name
                    )),
                    (None, true) => found.push(format!(
                        "{PAGE}:{line}: {} does not name {name}: remove it from the row",
                        package.name
                    )),
                    _ => {}
                }
            }
        }
    }
}

/// Checks that each main dependency is one of a product or a benchmark.
fn built_on(page: &str, packages: &[Package], found: &mut Vec<String>) {
    let lines = section(page, EXTERNAL);
    let paragraph: Vec<&(usize, &str)> = lines
        .iter()
        .skip_while(|(_, line)| !line.starts_with(BUILT_ON))
        .take_while(|(_, line)| !line.trim().is_empty())
        .collect();
    if paragraph.is_empty() {
        found.push(format!(
            "{PAGE}: no paragraph that begins with `{BUILT_ON}` below `{EXTERNAL}`"
        ));
    }
    for (line, text) in paragraph {
        for name in text.split('`').skip(1).step_by(2) {
            let products = packages
                .iter()
                .filter(|package| !WORKSHOP.contains(&package.name.as_str()));
            let mut arrows = products.flat_map(Package::arrows);
            if !arrows.any(|dependency| dependency.name == name) {
                found.push(format!(
                    "{PAGE}:{line}: no product or benchmark depends on {name}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(crates: &str, external: &str) -> String {
        format!(
            "{CRATES}\n\n| folder | package | what it is | may depend on (ours) |\n|---|---|---|---|\n\
             {crates}\n{EXTERNAL}\n\n| crate | what for | named by |\n|---|---|---|\n{external}\n\
             Built on `wasmtime`.\n"
        )
    }

    const CORE: &str = "| `core` | `a99-core` | data | nothing |\n";
    const VM: &str = "| `vm` | `a99-vm` | machine | core |\n";
    const SANDBOX: &str = "| `sandbox/runner` | `a99-sandbox` | guests | core by a feature |\n";
    const HEAVY: &str = "| `wasmtime` | guests | sandbox |\n";

    fn dependency(name: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            is_dev: false,
            is_optional: false,
            line: 7,
        }
    }

    fn workspace() -> Vec<Package> {
        let package = |name: &str, folder: &str, dependencies| Package {
            name: name.to_owned(),
            folder: folder.to_owned(),
            dependencies,
        };
        let by_feature = Dependency {
            is_optional: true,
            ..dependency("a99-core")
        };
        vec![
            package("a99-core", "core", Vec::new()),
            package("a99-vm", "vm", vec![dependency("a99-core")]),
            package(
                "a99-sandbox",
                "sandbox/runner",
                vec![by_feature, dependency("wasmtime")],
            ),
        ]
    }

    fn good() -> String {
        page(&[CORE, VM, SANDBOX].concat(), HEAVY)
    }

    #[test]
    fn a_page_that_says_what_is_has_no_diagnostic() {
        assert_eq!(compare(&good(), &workspace()), [""; 0]);
    }

    #[test]
    fn an_arrow_that_no_row_allows() {
        let mut packages = workspace();
        packages[0].dependencies.push(dependency("a99-vm"));
        assert_eq!(
            compare(&good(), &packages),
            ["core/Cargo.toml:7: a99-core may not depend on vm (xtask/rules.md:5)"]
        );
        // Tests may use more of our crates.
        packages[0].dependencies[0].is_dev = true;
        assert_eq!(compare(&good(), &packages), [""; 0]);
    }

    #[test]
    fn an_unused_arrow() {
        let mut packages = workspace();
        packages[1].dependencies.clear();
        assert_eq!(
            compare(&good(), &packages),
            ["xtask/rules.md:6: a99-vm does not depend on core: remove it from the row"]
        );
    }

    #[test]
    fn a_feature_stays_a_feature() {
        let mut packages = workspace();
        packages[2].dependencies[0].is_optional = false;
        assert_eq!(compare(&good(), &packages).len(), 1);
        packages[1].dependencies[0].is_optional = true;
        assert_eq!(compare(&good(), &packages).len(), 2);
    }

    #[test]
    fn rows_and_crates_belong_together() {
        let found = compare(&page(&[CORE, VM].concat(), HEAVY), &workspace());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("no row for a99-sandbox"), "{found:?}");
        let found = compare(&good(), &workspace()[..2]);
        assert!(
            found.contains(
                &"xtask/rules.md:7: no crate of the workspace is called `a99-sandbox`".to_owned()
            ),
            "{found:?}"
        );
        let mut packages = workspace();
        packages[0].folder = "kernel".to_owned();
        assert_eq!(
            compare(&good(), &packages),
            ["xtask/rules.md:5: the folder of a99-core is kernel"]
        );
    }

    #[test]
    fn only_some_may_name_a_heavy_crate() {
        let mut packages = workspace();
        packages[0].dependencies.push(Dependency {
            is_dev: true,
            ..dependency("wasmtime")
        });
        assert_eq!(
            compare(&good(), &packages),
            ["core/Cargo.toml:7: a99-core may not name wasmtime (xtask/rules.md:13)"]
        );
        let banned = page(
            &[CORE, VM, SANDBOX].concat(),
            "| `wasmtime` | no | nothing |\n",
        );
        assert_eq!(compare(&banned, &workspace()).len(), 1);
        let wide = page(
            &[CORE, VM, SANDBOX].concat(),
            "| `wasmtime` | guests | sandbox, vm |\n",
        );
        assert_eq!(
            compare(&wide, &workspace()),
            ["xtask/rules.md:13: a99-vm does not name wasmtime: remove it from the row"]
        );
    }

    #[test]
    fn what_it_is_built_on_is_used() {
        let mut packages = workspace();
        packages[2].dependencies.pop();
        let found = compare(&good(), &packages);
        let last = "xtask/rules.md:15: no product or benchmark depends on wasmtime";
        assert!(found.contains(&last.to_owned()), "{found:?}");
    }

    #[test]
    fn a_dependency_has_a_line() {
        let manifest =
            "[dependencies]\nserde_json.workspace = true\nserde = { workspace = true }\n";
        assert_eq!(line_of(manifest, "serde"), 3);
        assert_eq!(line_of(manifest, "serde_json"), 2);
        assert_eq!(line_of(manifest, "tokio"), 1);
    }
}
