//! A private apt: its own lists, cache, sources and state below the cache
//! folder, and only Debian's archive keyring as the root of trust.
//!
//! The machine's apt is neither read nor changed, with two exceptions: where
//! its mirror is ([`sources`]), and how it gets there (proxies, and whether
//! its clock can be believed).

pub mod sources;

use super::command::{Printed, finish, output, program, tail};
use super::error::{At, ErrorCode, ImageError, disk_full};
use super::lock::Locked;
use super::packages::{Arch, SUITE, Wanted};
use super::progress::{Progress, note};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the keyring is: by its older and its newer name.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Settings of the machine that are kept: how to reach the network. None of
/// them weakens the check of signatures.
const KEPT_SETTINGS: [&str; 9] = [
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
    "Acquire::http::Timeout",
    "Acquire::https::Timeout",
    "Acquire::https::CAInfo",
    "Acquire::ForceIPv4",
    "Acquire::ForceIPv6",
    "Acquire::Check-Date",
    "Acquire::Check-Valid-Until",
];

/// How apt says that a signature was made by a key it does not know.
const UNKNOWN_KEY: [&str; 4] = [
    "NO_PUBKEY",
    "Missing key",
    "is not signed",
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

/// Apt with indices that have just been fetched and checked.
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
        write("guest.sources", source_stanza(mirror, keyring))?;
        write("apt.conf", settings(&self.folder, &machine_settings())?)
    }

    fn update(&self) -> Result<(), ImageError> {
        let printed = finish(self.program("apt-get").args(["-q", "update"]))?;
        let Printed { stderr, status, .. } = &printed;
        if UNKNOWN_KEY.iter().any(|text| stderr.contains(text)) {
            return Err(keyring_too_old(&tail(stderr)));
        }
        // A failed index is only a warning for apt: the old one is used.
        let old_used = stderr.contains("Failed to fetch");
        match status.success() && !old_used {
            true => Ok(()),
            false => Err(fetch_error(stderr)),
        }
    }

    /// The versions on offer of these packages.
    pub fn offers(&self, wanted: &[Wanted]) -> Result<Offers, ImageError> {
        let names: Vec<String> = wanted.iter().map(|w| full_name(*w)).collect();
        let show = |option: &str| {
            let mut command = self.program("apt-cache");
            // It fails if one of the packages is unknown; the others are shown.
            finish(command.arg("show").arg(option).args(&names))
        };
        let all = packages(&show("--all-versions")?.stdout);
        let current = packages(&show("--no-all-versions")?.stdout);
        Ok(Offers::new(all, current))
    }

    /// Fetches packages into a folder; apt checks them against its indices.
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

    fn program(&self, name: &str) -> Command {
        let mut command = program(name);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }
}

/// The versions of packages that the indices have.
#[derive(Debug)]
pub struct Offers {
    all: Vec<Locked>,
    current: Vec<Locked>,
}

impl Offers {
    /// All versions, and the one of each package that apt would install.
    pub(super) fn new(all: Vec<Locked>, current: Vec<Locked>) -> Offers {
        Offers { all, current }
    }

    /// A certain version of a package.
    pub fn version(&self, wanted: Wanted, version: &str) -> Option<&Locked> {
        let offered = |package: &&Locked| package.is(wanted) && package.version == version;
        self.all.iter().find(offered)
    }

    /// The current version of a package.
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

/// The packages of an index in Debian's control format.
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

fn source_stanza(mirror: &str, keyring: &str) -> String {
    format!("Types: deb\nURIs: {mirror}\nSuites: {SUITE}\nComponents: main\nSigned-By: {keyring}\n")
}

/// The configuration file. apt reads it before all others, and with no parts
/// and no main file there are none.
fn settings(folder: &Path, kept: &[String]) -> Result<String, ImageError> {
    let folder = folder
        .to_str()
        .filter(|path| !path.contains(['"', '\\', '\n']));
    let folder = folder.ok_or_else(|| {
        let reason = "apt cannot work in a folder of this name";
        ImageError::new(ErrorCode::Io, "cache folder", reason).help("set A99_CACHE_DIR")
    })?;
    let host = Arch::host().map_or("", Arch::name);
    let mut text = format!(
        r#"Dir::Etc::parts "{folder}/empty";
Dir::Etc::main "/dev/null";
Dir::Etc::sourcelist "{folder}/guest.sources";
Dir::Etc::sourceparts "{folder}/empty";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "{folder}/empty";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "{folder}/empty";
Dir::State "{folder}/state";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/state/status";
Dir::Cache "{folder}/cache";
APT::Architecture "riscv64";
APT::Architectures {{ "riscv64"; "{host}"; }};
APT::Get::AllowUnauthenticated "false";
APT::Sandbox::User "root";
Acquire::AllowInsecureRepositories "false";
Acquire::Languages "none";
Acquire::Retries "3";
"#
    );
    for line in kept {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

/// The kept settings of the machine, as lines of a configuration file.
fn machine_settings() -> Vec<String> {
    let dump = output(program("apt-config").arg("dump")).unwrap_or_default();
    kept_settings(&dump)
}

fn kept_settings(dump: &str) -> Vec<String> {
    let kept = |line: &&str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        // Proxies may be set for single hosts: `Acquire::http::Proxy::HOST`.
        KEPT_SETTINGS.iter().any(|setting| {
            let rest = name.strip_prefix(setting);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        })
    };
    dump.lines().filter(kept).map(str::to_owned).collect()
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

    #[test]
    fn only_the_way_to_the_network_is_kept() {
        let dump = "\
APT \"\";
Acquire \"\";
Acquire::AllowInsecureRepositories \"true\";
Acquire::http \"\";
Acquire::http::Proxy \"http://proxy.example:3128\";
Acquire::http::Proxy::deb.debian.org \"DIRECT\";
Acquire::http::ProxyAutoDetect \"run-me\";
Acquire::Check-Date \"false\";
APT::Get::AllowUnauthenticated \"true\";
APT::Update::Post-Invoke:: \"run-me\";
";
        assert_eq!(
            kept_settings(dump),
            [
                "Acquire::http::Proxy \"http://proxy.example:3128\";",
                "Acquire::http::Proxy::deb.debian.org \"DIRECT\";",
                "Acquire::Check-Date \"false\";",
            ]
        );
    }

    #[test]
    fn everything_is_below_the_cache_folder() {
        let text = settings(Path::new("/c"), &["Acquire::ForceIPv4 \"1\";".to_owned()]).unwrap();
        for line in text.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(
                line.contains("\"/c/") || line.contains("/dev/null"),
                "{line}"
            );
        }
        assert!(text.ends_with("Acquire::ForceIPv4 \"1\";\n"));
        assert!(settings(Path::new("/c\"d"), &[]).is_err());
        let source = source_stanza("http://m.example/debian", KEYRINGS[0]);
        assert!(source.contains("Signed-By: /usr/share/keyrings/"));
        assert!(!source.to_lowercase().contains("trusted"));
    }

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
    fn failures_of_apt_are_told_apart() {
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
