//! Lock file: the version of each package that an image consists of.
//!
//! It is committed. Each hash was taken from an index that Debian had signed; a package
//! with this hash is therefore as trustworthy as a signed one.

use super::cache::write_whole;
use super::error::{ErrorCode, ImageError};
use super::packages::{SUITE, Wanted};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The lock file that this library was built with.
pub const COMMITTED: &str = include_str!("../lock.json");

/// Maximum plausible size of a package in bytes: the kernel's source has 150 MB, all others
/// are far smaller.
const MAX_PACKAGE: u64 = 1 << 30;

/// One version of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// Name of the package.
    pub name: String,
    /// Debian's name of the architecture, or `all`.
    pub architecture: String,
    /// Version.
    pub version: String,
    /// Size of the package in bytes.
    pub size: u64,
    /// SHA-256 of the package, in hexadecimal.
    pub sha256: String,
}

impl Locked {
    /// Whether this is a version of the wanted package.
    pub fn is(&self, wanted: Wanted) -> bool {
        let fits = self.architecture == wanted.arch.name() || self.architecture == "all";
        self.name == wanted.name && fits
    }
}

/// Locked versions of all packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    /// Debian release.
    pub suite: String,
    /// Packages, sorted by name and architecture.
    pub packages: Vec<Locked>,
}

impl LockFile {
    /// Creates a lock file without packages.
    pub fn empty() -> LockFile {
        LockFile {
            suite: SUITE.to_owned(),
            packages: Vec::new(),
        }
    }

    /// Parses the text of a lock file.
    pub fn parse(text: &str) -> Result<LockFile, ImageError> {
        let bad = |reason: String| {
            ImageError::new(ErrorCode::Lock, "lock file", reason)
                .help("`cargo xtask guest --update` writes a new one")
        };
        let lock: LockFile = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        if lock.suite != SUITE {
            return Err(bad(format!("is for {}, not for {SUITE}", lock.suite)));
        }
        for package in &lock.packages {
            let hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            if package.sha256.len() != 64 || !package.sha256.chars().all(hexadecimal) {
                return Err(bad(format!("{}: not a SHA-256", package.name)));
            }
            if package.size > MAX_PACKAGE {
                return Err(bad(format!("{}: too large", package.name)));
            }
        }
        Ok(lock)
    }

    /// Formats this lock file with one package a line, so that a changed package changes
    /// one line.
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.packages.iter().map(line).collect();
        let (suite, lines) = (&self.suite, lines.join(",\n"));
        format!("{{\n  \"suite\": \"{suite}\",\n  \"packages\": [\n{lines}\n  ]\n}}\n")
    }

    /// Writes this lock file.
    pub fn write(&self, path: &Path) -> Result<(), ImageError> {
        write_whole(path, self.text().as_bytes())
    }

    /// Finds the version of a package.
    pub fn find(&self, wanted: Wanted) -> Option<&Locked> {
        self.packages.iter().find(|package| package.is(wanted))
    }

    /// Sets the version of a package.
    pub fn set(&mut self, wanted: Wanted, locked: Locked) {
        self.packages.retain(|package| !package.is(wanted));
        self.packages.push(locked);
        self.packages.sort();
    }
}

fn line(package: &Locked) -> String {
    // Five plain fields always serialise.
    let json = serde_json::to_string(package).unwrap_or_default();
    format!("    {json}")
}

#[cfg(test)]
mod tests {
    use super::super::packages::{Arch, compiler, disk_files, kernel, root_files};
    use super::*;

    fn package(name: &str, architecture: &str, version: &str) -> Locked {
        Locked {
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            version: version.to_owned(),
            size: 5,
            sha256: "a".repeat(64),
        }
    }

    const LIBC: Wanted = Wanted {
        name: "libc6",
        arch: Arch::Riscv64,
    };

    #[test]
    fn what_is_written_can_be_read() {
        let mut lock = LockFile::empty();
        lock.set(LIBC, package("libc6", "riscv64", "2"));
        lock.set(LIBC, package("libc6", "riscv64", "3"));
        let other = Wanted {
            arch: Arch::Amd64,
            ..LIBC
        };
        assert_eq!(lock.find(other), None);
        lock.set(other, package("libc6", "amd64", "1"));
        assert_eq!(lock.find(LIBC).unwrap().version, "3");
        assert_eq!(lock.find(other).unwrap().version, "1");
        assert_eq!(LockFile::parse(&lock.text()).unwrap(), lock);
        assert_eq!(lock.text().lines().count(), 7);
    }

    #[test]
    fn packages_for_all_architectures_fit_each() {
        assert!(package("libc6", "all", "1").is(LIBC));
        assert!(!package("libc6", "amd64", "1").is(LIBC));
        assert!(!package("libc7", "riscv64", "1").is(LIBC));
    }

    #[test]
    fn broken_lock_files_are_refused() {
        let mut wrong_suite = LockFile::empty();
        wrong_suite.suite = "sid".to_owned();
        let mut bad_hash = LockFile::empty();
        bad_hash.packages.push(package("a", "all", "1"));
        bad_hash.packages[0].sha256 = "A".repeat(64);
        let mut huge = LockFile::empty();
        huge.packages.push(package("a", "all", "1"));
        huge.packages[0].size = u64::MAX;
        let texts = [wrong_suite, bad_hash, huge].map(|lock| lock.text());
        let more = ["", "[]", "{\"suite\":\"trixie\"}"].map(str::to_owned);
        for text in texts.iter().chain(&more) {
            let error = LockFile::parse(text).unwrap_err();
            assert_eq!(error.code, ErrorCode::Lock, "{text}");
        }
    }

    #[test]
    fn the_committed_lock_file_names_all_packages() {
        let lock = LockFile::parse(COMMITTED).unwrap();
        let all = [kernel(), root_files(), disk_files(), compiler(Arch::Amd64)].concat();
        for wanted in &all {
            assert!(lock.find(*wanted).is_some(), "{}", wanted.name);
        }
        assert_eq!(lock.packages.len(), all.len());
        assert_eq!(lock.text(), COMMITTED);
    }
}
