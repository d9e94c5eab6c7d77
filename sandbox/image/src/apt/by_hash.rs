//! Package downloads by hash, for a mirror whose index does not match its signature, as
//! during synchronisation.
//!
//! The index is untrusted and only locates files. A package is accepted if it has the hash
//! of the lock file, which came from an index that Debian had signed.

use super::super::command::{finish, output, program};
use super::super::error::{ErrorCode, ImageError};
use super::super::lock::Locked;
use super::super::packages::SUITE;
use super::{Apt, download_failed, sources};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// Apt's own downloader, which uses apt's network settings.
pub(super) const HELPER: &str = "/usr/lib/apt/apt-helper";

/// Maximum size of a compressed index in bytes.
const MAX_INDEX: u64 = 64 << 20;

impl Apt {
    /// Downloads packages by their hashes into a folder, from the first mirror that has
    /// them all.
    pub fn download_by_hash(
        folder: &Path,
        packages: &[(super::Wanted, Locked)],
        into: &Path,
    ) -> Result<(), ImageError> {
        let apt = Apt {
            folder: folder.to_path_buf(),
        };
        let mut last = download_failed("no mirror");
        for mirror in sources::mirrors(Path::new("/etc/apt")) {
            apt.configure(&mirror)?;
            match apt.take_from(&mirror, packages, into) {
                Ok(()) => return Ok(()),
                Err(error) if error.code == ErrorCode::DiskFull => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn take_from(
        &self,
        mirror: &str,
        packages: &[(super::Wanted, Locked)],
        into: &Path,
    ) -> Result<(), ImageError> {
        let arches: BTreeSet<&str> = packages.iter().map(|(w, _)| w.arch.name()).collect();
        let mut places = HashMap::new();
        for arch in arches {
            let url = format!("{mirror}/dists/{SUITE}/main/binary-{arch}/Packages.xz");
            let index = self.folder.join(format!("unsigned-{arch}.xz"));
            let _ = fs::remove_file(&index);
            self.helper(&["download-file", &url], &index, None)?;
            let size = fs::metadata(&index).map_or(u64::MAX, |m| m.len());
            if size > MAX_INDEX {
                return Err(download_failed(format!("{url}: too large")));
            }
            let mut read = program(HELPER);
            read.env("APT_CONFIG", self.folder.join("apt.conf"));
            let text = output(read.arg("cat-file").arg(&index))?;
            places.extend(places_of(&text));
        }
        for (_, locked) in packages {
            let place = places.get(&locked.sha256).ok_or_else(|| {
                download_failed(format!(
                    "{mirror} has no {} {}",
                    locked.name, locked.version
                ))
            })?;
            let url = format!("{mirror}/{place}");
            let target = into.join(format!("{}.deb", locked.sha256));
            self.helper(&["download-file", &url], &target, Some(&locked.sha256))?;
        }
        Ok(())
    }

    fn helper(&self, args: &[&str], target: &Path, hash: Option<&str>) -> Result<(), ImageError> {
        let mut command = program(HELPER);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command.args(args).arg(target);
        if let Some(hash) = hash {
            command.arg(format!("SHA256:{hash}"));
        }
        let printed = finish(&mut command)?;
        match printed.status.success() {
            true => Ok(()),
            false => Err(super::fetch_error(&printed.stderr)),
        }
    }
}

/// Maps hashes to paths below a mirror; paths that lead elsewhere are skipped.
fn places_of(text: &str) -> HashMap<String, String> {
    let mut places = HashMap::new();
    let (mut place, mut hash) = (None, None);
    for line in text.lines().chain([""]) {
        if let Some(value) = line.strip_prefix("Filename: ") {
            place = Some(value.trim());
        } else if let Some(value) = line.strip_prefix("SHA256: ") {
            hash = Some(value.trim());
        } else if line.is_empty() {
            let plain = |place: &&str| {
                let part = |c: char| c.is_ascii_graphic() && !"\\?#%".contains(c);
                place.starts_with("pool/") && !place.contains("..") && place.chars().all(part)
            };
            if let (Some(place), Some(hash)) = (place.take().filter(plain), hash.take()) {
                places.insert(hash.to_owned(), place.to_owned());
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::places_of;

    #[test]
    fn places_are_found_by_hash_and_lead_nowhere_else() {
        let text = "Package: a\nFilename: pool/main/a/a/a_1_all.deb\nSHA256: 01\n\n\
                    Package: b\nSHA256: 02\nFilename: pool/../../b.deb\n\n\
                    Package: c\nSHA256: 03\nFilename: http://c.example/c.deb\n\n\
                    Package: d\nSHA256: 04\n\nPackage: e\nFilename: pool/e.deb\nSHA256: 05\n";
        let places = places_of(text);
        assert_eq!(places.len(), 2);
        assert_eq!(places["01"], "pool/main/a/a/a_1_all.deb");
        assert_eq!(places["05"], "pool/e.deb");
    }
}
