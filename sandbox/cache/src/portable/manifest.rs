//! Manifest of a portable image: its first file lists the contents, and is checked before
//! any other part is read.

use super::super::digest::Inputs;
use super::super::machine::{DISK, SNAPSHOT};
use super::tar::MAX_NAME;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Name of the manifest in the archive.
pub(super) const NAME: &str = "manifest.json";

/// Format name in the manifest.
const FORMAT: &str = "agent99 guest image";

/// Version of the file's layout.
const VERSION: u32 = 2;

/// Maximum bytes of the manifest: today it has 30 KB.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// Maximum bytes of the snapshot: today it has 74 MB, and a guest's memory cannot have
/// more.
const MAX_SNAPSHOT: u64 = 1 << 30;

/// Maximum bytes of the image's disk: today it has some 50 MB.
const MAX_DISK: u64 = 1 << 30;

/// Maximum bytes of any other part, a text: the longest licence has 70 KB.
const MAX_TEXT: u64 = 4 << 20;

/// Maximum parts: today there are some sixty.
const MAX_PARTS: usize = 2000;

/// Maximum depth of folders above a part.
const MAX_DEPTH: usize = 4;

/// A file of the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Path below the image's folder.
    pub path: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
}

/// A build step of the image, as reported by the machine that built it. It is unverified
/// information for reproducing the build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name of the step.
    pub step: String,
    /// All inputs of its result: versions, hashes, settings.
    pub inputs: Inputs,
}

/// Manifest of a portable image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portable {
    format: String,
    version: u32,
    /// Version of Agent99 that wrote the file.
    pub written_by: String,
    /// Build steps of the image.
    pub origin: Vec<Origin>,
    /// Files in the order of the archive: first the snapshot, then the disk.
    pub files: Vec<Part>,
}

impl Portable {
    /// Creates the manifest of an image.
    pub(super) fn new(origin: Vec<Origin>, files: Vec<Part>) -> Portable {
        Portable {
            format: FORMAT.to_owned(),
            version: VERSION,
            written_by: env!("CARGO_PKG_VERSION").to_owned(),
            origin,
            files,
        }
    }

    /// Parses an untrusted manifest; the error is the reason of a refusal.
    pub(super) fn parse(text: &[u8]) -> Result<Portable, String> {
        let manifest: Portable =
            serde_json::from_slice(text).map_err(|error| format!("{NAME}: {error}"))?;
        if manifest.format != FORMAT {
            return Err(format!("is no {FORMAT}"));
        }
        if manifest.version != VERSION {
            let Portable { version, .. } = manifest;
            return Err(format!(
                "has layout {version}, this Agent99 reads {VERSION}"
            ));
        }
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.files.len() > MAX_PARTS {
            return Err(format!("has more than {MAX_PARTS} parts"));
        }
        let first = self.files.first().map(|part| part.path.as_str());
        if first != Some(SNAPSHOT) {
            return Err(format!("does not begin with {SNAPSHOT}"));
        }
        for (at, part) in self.files.iter().enumerate() {
            let shown: String = part.path.chars().take(MAX_NAME).collect();
            if !is_plain(&part.path) || part.path == NAME {
                return Err(format!("has a part with a name that is refused: {shown:?}"));
            }
            // Strict ordering rules out duplicate names.
            let ordered = at < 2 || self.files[at - 1].path < part.path;
            if !ordered || (at > 0 && part.path == SNAPSHOT) {
                return Err(format!("has parts out of order at {shown}"));
            }
            let most = match part.path.as_str() {
                SNAPSHOT => MAX_SNAPSHOT,
                DISK => MAX_DISK,
                _ => MAX_TEXT,
            };
            if part.size > most {
                let Part { size, .. } = part;
                return Err(format!(
                    "has {size} bytes of {shown}, at most {most} are read"
                ));
            }
        }
        let second = self.files.get(1).map(|part| part.path.as_str());
        if second != Some(DISK) {
            return Err(format!("has no {DISK} behind {SNAPSHOT}"));
        }
        self.check_folders()
    }

    /// Checks that no part has the path of another part's folder.
    fn check_folders(&self) -> Result<(), String> {
        let paths: HashSet<&str> = self.files.iter().map(|part| part.path.as_str()).collect();
        let folders = |part: &'_ Part| {
            let ends = part.path.match_indices('/');
            ends.map(|(end, _)| part.path[..end].to_owned())
                .collect::<Vec<_>>()
        };
        let mut all = self.files.iter().flat_map(folders);
        match all.find(|folder| paths.contains(folder.as_str())) {
            Some(folder) => Err(format!("has {folder} as a part and as a folder")),
            None => Ok(()),
        }
    }

    /// Total bytes of all parts.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|part| part.size).sum()
    }
}

/// Whether a path consists of plain names, leads only downwards, and means the same on
/// every system.
fn is_plain(path: &str) -> bool {
    let plain = |name: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        !name.is_empty() && !name.starts_with('.') && name.chars().all(letters)
    };
    path.len() <= MAX_NAME && path.split('/').count() <= MAX_DEPTH && path.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(path: &str, size: u64) -> Part {
        Part {
            path: path.to_owned(),
            size,
            sha256: "0".repeat(64),
        }
    }

    fn refusal(files: Vec<Part>) -> String {
        let text = serde_json::to_vec(&Portable::new(Vec::new(), files)).unwrap();
        Portable::parse(&text).unwrap_err()
    }

    #[test]
    fn manifests_come_back() {
        let files = vec![
            part(SNAPSHOT, 7),
            part(DISK, 10),
            part("kernel.config", 1),
            part("licences/a", 2),
        ];
        let manifest = Portable::new(Vec::new(), files);
        let text = serde_json::to_vec(&manifest).unwrap();
        assert_eq!(Portable::parse(&text).unwrap(), manifest);
        assert_eq!(manifest.size(), 20);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "a".repeat(MAX_NAME + 1);
        for name in [
            "/etc/passwd",
            "../a",
            "a/../b",
            "a//b",
            "a/",
            "",
            ".",
            ".hidden",
            "a/.b",
            "a\\b",
            "a\0b",
            "a b",
            "ä",
            "C:x",
            "a/b/c/d/e",
            NAME,
            &long,
        ] {
            let reason = refusal(vec![part(SNAPSHOT, 1), part(name, 1)]);
            assert!(
                reason.contains("name that is refused"),
                "{name:?}: {reason}"
            );
        }
    }

    #[test]
    fn sizes_numbers_and_order_are_bounded() {
        assert!(refusal(vec![]).contains("does not begin"));
        assert!(refusal(vec![part("a", 1)]).contains("does not begin"));
        assert!(refusal(vec![part(SNAPSHOT, MAX_SNAPSHOT + 1)]).contains("at most"));
        let text = part("a", MAX_TEXT + 1);
        assert!(refusal(vec![part(SNAPSHOT, 1), text]).contains("at most"));
        for names in [["b", "a"], ["a", "a"], ["a", SNAPSHOT]] {
            let mut files = vec![part(SNAPSHOT, 1)];
            files.extend(names.map(|name| part(name, 1)));
            assert!(refusal(files).contains("out of order"), "{names:?}");
        }
        assert!(refusal(vec![part(SNAPSHOT, 1)]).contains(DISK));
        assert!(refusal(vec![part(SNAPSHOT, 1), part("licences", 1)]).contains(DISK));
        assert!(refusal(vec![part(SNAPSHOT, 1), part(DISK, MAX_DISK + 1)]).contains("at most"));
        let folder = ["m", "m-b", "m/b"].map(|name| part(name, 1));
        let files = [vec![part(SNAPSHOT, 1), part(DISK, 1)], folder.to_vec()].concat();
        assert!(refusal(files).contains("as a folder"));
        let many = (0..=MAX_PARTS).map(|n| part(&format!("a{n:05}"), 1));
        assert!(refusal(many.collect()).contains("parts"));
    }

    #[test]
    fn other_files_and_layouts_are_distinguished() {
        let text = |change: fn(&mut Portable)| {
            let mut manifest = Portable::new(Vec::new(), vec![part(SNAPSHOT, 1), part(DISK, 1)]);
            change(&mut manifest);
            serde_json::to_vec(&manifest).unwrap()
        };
        let reason = |text: &[u8]| Portable::parse(text).unwrap_err();
        assert!(reason(&text(|m| m.format = "other".to_owned())).contains("is no agent99"));
        assert!(reason(&text(|m| m.version = 1)).contains("has layout 1"));
        assert!(reason(b"{").contains(NAME));
        assert!(reason(b"{\"more\": 1}").contains(NAME));
    }
}
