//! Private apt: separate lists, cache, sources and state below the cache folder, with
//! Debian's archive keyring as the only root of trust.
//!
//! The machine's apt is neither read nor changed, with two exceptions: the address of its
//! mirror ([`sources`]), and its network settings (proxies, and whether its clock is
//! reliable).

mod by_hash;
mod settings;
pub mod sources;

use super::command::{Printed, finish, program, tail};
use super::error::{At, ErrorCode, ImageError, disk_full};
use super::lock::Locked;
use super::packages::{Arch, SUITE, Wanted};
use super::progress::{Progress, note};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Paths of the keyring: its older and its newer name.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Messages of apt about a signature by an unknown key. apt reports "is not signed" also
/// for a mirror that it cannot reach.
const UNKNOWN_KEY: [&str; 3] = [
    "NO_PUBKEY",
    "Missing key",
    "couldn't be verified because the public key",
];

/// Whether this system has apt.
pub fn exists() -> bool {
    super::tools::in_path("apt-get").is_some()
}

/// Whether Debian's archive keyring is installed.
pub fn has_keyring() -> bool {
    keyring().is_some()
}

fn keyring() -> Option<&'static str> {
    KEYRINGS.into_iter().find(|path| Path::new(path).exists())
}

/// Apt with indices that were just fetched and verified.
#[derive(Debug)]
pub struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Fetches the indices of the release.
    pub fn fetch(folder: &Path, progress: &mut dyn Progress) -> Result<Apt, ImageError> {
        let apt = Apt {
            folder: folder.to_path_buf(),
        };
        let mut last = None;
        for mirror in sources::mirrors(Path::new("/etc/apt")) {
            apt.configure(&mirror)?;
            match apt.update() {
                Ok(()) => return Ok(apt),
                Err(error) if error.code == ErrorCode::DiskFull => return Err(error),
                Err(error) => {
                    note(
                        progress,
                        format!("{mirror} cannot be used: {}", error.reason),
                    );
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| download_failed("no mirror")))
    }

    /// Writes configuration and sources.
    fn configure(&self, mirror: &str) -> Result<(), ImageError> {
        let folders = ["empty", "lists/partial", "cache/archives/partial", "state"];
        for folder in folders {
            super::cache::make_folder(&self.folder.join(folder))?;
        }
        let keyring = keyring().ok_or_else(|| keyring_too_old("it is not installed"))?;
        let write = |name: &str, text: String| {
            let path = self.folder.join(name);
            fs::write(&path, text).at(&path)
        };
        write("state/status", String::new())?;
        write("guest.sources", settings::source(mirror, keyring))?;
        write(
            "apt.conf",
            settings::file(&self.folder, &settings::of_machine())?,
        )
    }

    fn update(&self) -> Result<(), ImageError> {
        check_update(&finish(self.program("apt-get").args(["-q", "update"]))?)
    }

    /// Lists the offered versions of these packages.
    pub fn offers(&self, wanted: &[Wanted]) -> Result<Offers, ImageError> {
        let names: Vec<String> = wanted.iter().map(|w| full_name(*w)).collect();
        let show = |option: &str| {
            let mut command = self.program("apt-cache");
            // `apt show` fails if a package is unknown, but shows the others.
            finish(command.arg("show").arg(option).args(&names))
        };
        let all = packages(&show("--all-versions")?.stdout);
        let current = packages(&show("--no-all-versions")?.stdout);
        Ok(Offers::new(all, current))
    }

    /// Downloads packages into a folder; apt checks them against its indices.
    pub fn download(&self, packages: &[(Wanted, Locked)], folder: &Path) -> Result<(), ImageError> {
        let mut command = self.program("apt-get");
        command.current_dir(folder).args(["-q", "download"]);
        for (wanted, locked) in packages {
            command.arg(format!("{}={}", full_name(*wanted), locked.version));
        }
        let printed = finish(&mut command)?;
        match printed.status.success() {
            true => Ok(()),
            false => Err(fetch_error(&printed.stderr)),
        }
    }

    /// Returns the verified index of an architecture's packages.
    pub(super) fn index(&self, arch: Arch) -> Result<String, ImageError> {
        let folder = self.folder.join("lists");
        let suffix = format!("_{SUITE}_main_binary-{}_Packages", arch.name());
        for entry in fs::read_dir(&folder).at(&folder)? {
            let path = entry.at(&folder)?.path();
            if path.to_string_lossy().ends_with(&suffix) {
                return fs::read_to_string(&path).at(&path);
            }
        }
        Err(download_failed("the index was not kept"))
    }

    fn program(&self, name: &str) -> Command {
        let mut command = program(name);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }
}

/// Fetches a file from elsewhere, with apt's network settings; `sha256` is its hash.
pub(super) fn download(url: &str, target: &Path, sha256: &str) -> Result<(), ImageError> {
    let mut command = program(by_hash::HELPER);
    command.args(["download-file", url]).arg(target);
    let printed = finish(command.arg(format!("SHA256:{sha256}")))?;
    match printed.status.success() {
        true => Ok(()),
        false => Err(fetch_error(&printed.stderr)),
    }
}

/// Checks that all indices were fetched and have good signatures. apt only warns about a
/// failure, and keeps using old indices.
fn check_update(printed: &Printed) -> Result<(), ImageError> {
    let stderr = &printed.stderr;
    if UNKNOWN_KEY.iter().any(|text| stderr.contains(text)) {
        return Err(keyring_too_old(&tail(stderr)));
    }
    match printed.status.success() && !stderr.contains("Failed to fetch") {
        true => Ok(()),
        false => Err(fetch_error(stderr)),
    }
}

/// Versions of packages in the indices.
#[derive(Debug)]
pub struct Offers {
    all: Vec<Locked>,
    current: Vec<Locked>,
}

impl Offers {
    /// Combines all versions with the one of each package that apt would install.
    pub(super) fn new(all: Vec<Locked>, current: Vec<Locked>) -> Offers {
        Offers { all, current }
    }

    /// Returns a given version of a package.
    pub fn version(&self, wanted: Wanted, version: &str) -> Option<&Locked> {
        let offered = |package: &&Locked| package.is(wanted) && package.version == version;
        self.all.iter().find(offered)
    }

    /// Returns the current version of a package.
    pub fn current(&self, wanted: Wanted) -> Result<&Locked, ImageError> {
        let current = self.current.iter().find(|package| package.is(wanted));
        current.ok_or_else(|| {
            let reason = format!("{SUITE} has no such package");
            ImageError::new(ErrorCode::DownloadFailed, full_name(wanted), reason)
        })
    }
}

fn full_name(wanted: Wanted) -> String {
    format!("{}:{}", wanted.name, wanted.arch.name())
}

/// Parses the packages of an index in Debian's control format.
fn packages(text: &str) -> Vec<Locked> {
    let of = |stanza: Vec<(&str, String)>| {
        let field = |name: &str| {
            let found = stanza.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.clone())
        };
        Some(Locked {
            name: field("Package")?,
            architecture: field("Architecture")?,
            version: field("Version")?,
            size: field("Size")?.parse().ok()?,
            sha256: field("SHA256")?,
        })
    };
    sources::deb822(text).into_iter().filter_map(of).collect()
}

fn keyring_too_old(reason: &str) -> ImageError {
    ImageError::new(
        ErrorCode::KeyringTooOld,
        "debian-archive-keyring",
        format!("the keys of {SUITE} are not known: {reason}"),
    )
    .help("`apt-get update && apt-get install debian-archive-keyring`, as root")
}

fn download_failed(reason: impl Into<String>) -> ImageError {
    ImageError::new(ErrorCode::DownloadFailed, "packages", reason)
        .help("check the network and the proxy settings of apt, then try again")
}

fn fetch_error(stderr: &str) -> ImageError {
    match stderr.contains("No space left") || stderr.contains("enough free space") {
        true => disk_full("apt"),
        false => download_failed(tail(stderr)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn indices_are_read() {
        let text = "\
Package: libc6
Architecture: riscv64
Version: 2.41-12
Depends: libgcc-s1,
 other
Size: 12
SHA256: abc
Description: GNU
 .
 more

Package: broken
Version: 1

Package: netbase
Architecture: all
Version: 6.5
Size: 7
SHA256: def
";
        let found = packages(text);
        let names: Vec<&str> = found.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["libc6", "netbase"]);
        assert_eq!((found[0].size, found[0].sha256.as_str()), (12, "abc"));
        let offers = Offers::new(found.clone(), found);
        let wanted = |name| Wanted {
            name,
            arch: Arch::Riscv64,
        };
        assert!(offers.version(wanted("libc6"), "2.41-12").is_some());
        assert!(offers.version(wanted("libc6"), "2.41-13").is_none());
        assert_eq!(offers.current(wanted("netbase")).unwrap().version, "6.5");
        let gone = offers.current(wanted("gone")).unwrap_err();
        assert_eq!(gone.code, ErrorCode::DownloadFailed);
    }

    #[test]
    fn failures_of_apt_are_distinguished() {
        let update = |stderr: &str, code: i32| {
            let printed = Printed {
                stdout: String::new(),
                stderr: stderr.to_owned(),
                status: ExitStatus::from_raw(code << 8),
            };
            check_update(&printed).map_err(|error| error.code)
        };
        assert_eq!(update("", 0), Ok(()));
        let unknown = "W: GPG error: http://m.example/debian trixie InRelease: The following \
                       signatures couldn't be verified because the public key is not \
                       available: NO_PUBKEY 6ED0E7B82643E131\nW: Failed to fetch";
        assert_eq!(update(unknown, 0), Err(ErrorCode::KeyringTooOld));
        let unreachable = "E: Failed to fetch http://m.example/InRelease  400\n\
                           E: The repository 'http://m.example trixie' is not signed.";
        assert_eq!(update(unreachable, 100), Err(ErrorCode::DownloadFailed));
        let stale = "W: Failed to fetch http://m.example/InRelease\nW: old ones used instead.";
        assert_eq!(update(stale, 0), Err(ErrorCode::DownloadFailed));
        assert_eq!(
            fetch_error("E: No space left on device").code,
            ErrorCode::DiskFull
        );
        let error = fetch_error("Err: could not resolve host");
        assert_eq!(error.code, ErrorCode::DownloadFailed);
        assert!(
            keyring_too_old("NO_PUBKEY 1")
                .to_string()
                .contains("apt-get install")
        );
    }
}
