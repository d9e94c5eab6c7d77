//! Manifests of published crates: the metadata that a registry needs.

/// Folders of the crates that users depend on directly.
const PUBLISHED: [&str; 18] = [
    "agent99",
    "atoms",
    "builder",
    "capabilities",
    "cli",
    "compiler",
    "core",
    "ecma",
    "egress",
    "expr",
    "host/embed",
    "host/http",
    "host/models",
    "host/postgres",
    "host/vectors",
    "host/xml",
    "macros",
    "vm",
];

/// Metadata of a crate for a registry.
const METADATA: [&str; 4] = ["description", "keywords", "categories", "documentation"];

/// Diagnostics about a manifest.
pub(super) fn diagnostics(path: &str, text: &str) -> Vec<String> {
    let Some(folder) = path.strip_suffix("Cargo.toml") else {
        return Vec::new();
    };
    if folder.is_empty() {
        return without_version(text);
    }
    let mut found = Vec::new();
    let published = text.contains("\npublish = true\n");
    if PUBLISHED.contains(&folder.trim_end_matches('/')) && !published {
        found.push("users depend on it: `publish = true`".to_owned());
    }
    if !published {
        return found;
    }
    for key in METADATA {
        let has = text
            .lines()
            .any(|line| line.starts_with(&format!("{key} = ")));
        if !has {
            found.push(format!("is published and has no `{key}`"));
        }
    }
    // Dev-dependencies on our crates have no version: with one, a crate could only be published
    // after its dependents.
    let mut section = "";
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let own = line.starts_with("a99-") || line.starts_with("agent99");
        if section == "[dev-dependencies]" && own && !line.contains("path = ") {
            found.push(format!("name it by its path alone: {line}"));
        }
    }
    found
}

/// Dependencies on published crates without a version, which cannot be packaged.
fn without_version(text: &str) -> Vec<String> {
    let own = text.lines().filter(|line| line.contains("{ path = \""));
    let named = own.filter(|line| {
        let path = line.split('"').nth(1).unwrap_or_default();
        PUBLISHED.contains(&path)
    });
    named
        .filter(|line| !line.contains("version = \""))
        .map(|line| format!("a dependency without a version cannot be packaged: {line}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::diagnostics;

    #[test]
    fn published_crates_say_what_they_are() {
        let private = "[package]\nname = \"x\"\n";
        assert_eq!(diagnostics("core/Cargo.toml", private).len(), 1);
        assert!(diagnostics("xtask/Cargo.toml", private).is_empty());
        let bare = "[package]\npublish = true\ndescription = \"x\"\n";
        assert_eq!(diagnostics("core/Cargo.toml", bare).len(), 3);
        let whole = "[package]\npublish = true\ndescription = \"x\"\nkeywords = []\ncategories = []\n\
                     documentation = \"x\"\n";
        assert!(diagnostics("core/Cargo.toml", whole).is_empty());
        let dev = format!("{whole}[dev-dependencies]\na99-vm.workspace = true\n");
        assert_eq!(diagnostics("core/Cargo.toml", &dev).len(), 1);
    }

    #[test]
    fn path_dependencies_have_versions() {
        let text = "a99-core = { path = \"core\" }\n";
        assert_eq!(diagnostics("Cargo.toml", text).len(), 1);
        let text = "a99-core = { path = \"core\", version = \"0.1.0\" }\na99-testkit = { path = \"tests\" }\n";
        assert!(diagnostics("Cargo.toml", text).is_empty());
    }
}
