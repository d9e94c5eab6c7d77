//! Package store: chooses package versions and keeps their files.
//!
//! A locked version is taken from the store, or else fetched. Debian's mirrors drop
//! superseded versions. When a locked one is gone, the signed current versions of the whole
//! step are taken and reported, because packages of one step fit each other only within one
//! state of the archive. The choice is recorded, so that the next build does nothing.

use super::apt::{Apt, Offers};
use super::cache::{Cache, make_folder};
use super::digest;
use super::error::{At, ErrorCode, ImageError};
use super::lock::{LockFile, Locked};
use super::packages::Wanted;
use super::progress::{Progress, note};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Policy for package versions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// Locked versions, or current ones if those are gone.
    #[default]
    Preferred,
    /// Locked versions only.
    Locked,
    /// Current versions; the lock file is rewritten.
    Updated,
}

/// Packages of a build.
#[derive(Debug)]
pub struct Packages<'a> {
    cache: &'a Cache,
    folder: PathBuf,
    versions: Versions,
    /// The lock file as committed.
    committed: LockFile,
    /// The lock file with replacements for versions that are gone.
    chosen: LockFile,
    apt: Option<Apt>,
}

impl<'a> Packages<'a> {
    /// Opens the packages that a lock file names.
    pub fn open(
        cache: &'a Cache,
        committed: LockFile,
        versions: Versions,
    ) -> Result<Packages<'a>, ImageError> {
        let folder = cache.folder("packages")?;
        let mut packages = Packages {
            cache,
            folder,
            versions,
            chosen: committed.clone(),
            committed,
            apt: None,
        };
        if versions == Versions::Preferred {
            let remembered = fs::read_to_string(packages.memory()).ok();
            let remembered = remembered.and_then(|text| LockFile::parse(&text).ok());
            packages.chosen = remembered.unwrap_or(packages.chosen);
        }
        Ok(packages)
    }

    /// Returns the versions in use.
    pub fn chosen(&self) -> &LockFile {
        &self.chosen
    }

    /// Lists the versions that replace locked ones.
    pub fn replaced(&self) -> Vec<String> {
        let locked = &self.committed.packages;
        let others = self.chosen.packages.iter();
        let others = others.filter(|package| !locked.contains(package));
        others
            .map(|package| format!("{} {}", package.name, package.version))
            .collect()
    }

    /// Returns the path of a fetched package.
    pub fn file(&self, wanted: Wanted) -> Result<PathBuf, ImageError> {
        let locked = self.chosen.find(wanted).ok_or_else(|| not_locked(wanted))?;
        Ok(self.file_of(locked))
    }

    /// Takes the current versions of all these packages.
    pub fn update(
        &mut self,
        all: &[Wanted],
        progress: &mut dyn Progress,
    ) -> Result<(), ImageError> {
        let offers = self.apt(progress)?.offers(all)?;
        let mut lock = LockFile::empty();
        for wanted in all {
            lock.set(*wanted, offers.current(*wanted)?.clone());
        }
        self.committed = lock.clone();
        self.chosen = lock;
        Ok(())
    }

    /// Ensures that the files of a step's packages are in the store. This may change the
    /// chosen versions.
    pub fn ensure(
        &mut self,
        group: &[Wanted],
        progress: &mut dyn Progress,
    ) -> Result<(), ImageError> {
        if self.missing(group).is_empty() {
            return Ok(());
        }
        let offers = match self.apt(progress) {
            Ok(apt) => apt.offers(group)?,
            Err(error) => return self.ensure_locked(group, error, progress),
        };
        if let Some(gone) = self.first_gone(group, &offers)? {
            self.replace(group, &gone, &offers, progress)?;
        }
        let missing = self.missing(group);
        if !missing.is_empty() {
            self.download(&missing, progress)?;
        }
        Ok(())
    }

    /// Does the same without an index, which was unavailable for this `reason`: locked
    /// packages are known by their hashes.
    fn ensure_locked(
        &self,
        group: &[Wanted],
        reason: ImageError,
        progress: &mut dyn Progress,
    ) -> Result<(), ImageError> {
        let missing = self.missing(group).into_iter();
        let list: Option<Vec<(Wanted, Locked)>> = missing
            .map(|(wanted, locked)| Some((wanted, locked?)))
            .collect();
        let Some(list) = list.filter(|_| reason.code == ErrorCode::DownloadFailed) else {
            return Err(reason);
        };
        note(
            progress,
            format!("fetching {} locked packages by their hashes", list.len()),
        );
        let folder = self.cache.work("download")?;
        let apt = self.cache.folder("apt")?;
        // The failure of the index explains more than that of its replacement.
        Apt::download_by_hash(&apt, &list, &folder).map_err(|_| reason)?;
        self.keep(&list, &folder)
    }

    fn apt(&mut self, progress: &mut dyn Progress) -> Result<&Apt, ImageError> {
        let apt = match self.apt.take() {
            Some(apt) => apt,
            None => Apt::fetch(&self.cache.folder("apt")?, progress)?,
        };
        Ok(self.apt.insert(apt))
    }

    /// Lists packages of a group whose files are missing from the store, or damaged.
    fn missing(&self, group: &[Wanted]) -> Vec<(Wanted, Option<Locked>)> {
        let mut missing = Vec::new();
        for wanted in group {
            let locked = self.chosen.find(*wanted);
            if !locked.is_some_and(|locked| self.is_stored(locked)) {
                missing.push((*wanted, locked.cloned()));
            }
        }
        missing
    }

    fn is_stored(&self, locked: &Locked) -> bool {
        let path = self.file_of(locked);
        let size = fs::symlink_metadata(&path)
            .ok()
            .filter(|m| m.is_file())
            .map(|m| m.len());
        size == Some(locked.size) && digest::of_file(&path).is_ok_and(|hash| hash == locked.sha256)
    }

    /// Returns the first needed package that is not offered in its version.
    fn first_gone(&self, group: &[Wanted], offers: &Offers) -> Result<Option<String>, ImageError> {
        for (wanted, locked) in self.missing(group) {
            let Some(locked) = locked else {
                return Ok(Some(format!("{} is not locked", wanted.name)));
            };
            match offers.version(wanted, &locked.version) {
                None => return Ok(Some(format!("{} {} is gone", locked.name, locked.version))),
                Some(offer) if offer.sha256 != locked.sha256 => {
                    return Err(mismatch(&locked, &offer.sha256));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// Takes the current versions for a group.
    fn replace(
        &mut self,
        group: &[Wanted],
        gone: &str,
        offers: &Offers,
        progress: &mut dyn Progress,
    ) -> Result<(), ImageError> {
        if self.versions == Versions::Locked {
            return Err(ImageError::new(ErrorCode::LockedGone, "packages", gone)
                .help("`cargo xtask guest --update` takes the current versions and locks them"));
        }
        for wanted in group {
            let current = offers.current(*wanted)?.clone();
            let old = self.chosen.find(*wanted);
            if old != Some(&current) {
                let old = old.map_or("none", |old| &old.version);
                let (name, new) = (&current.name, &current.version);
                note(
                    progress,
                    format!("{name}: {new} in place of {old} ({gone})"),
                );
                self.chosen.set(*wanted, current);
            }
        }
        self.chosen.write(&self.memory())
    }

    fn download(
        &mut self,
        missing: &[(Wanted, Option<Locked>)],
        progress: &mut dyn Progress,
    ) -> Result<(), ImageError> {
        let list: Vec<(Wanted, Locked)> = missing
            .iter()
            .filter_map(|(wanted, locked)| Some((*wanted, locked.clone()?)))
            .collect();
        let size: u64 = list.iter().map(|(_, locked)| locked.size).sum();
        let (count, megabytes) = (list.len(), size.div_ceil(1_000_000));
        note(
            progress,
            format!("fetching {count} packages, {megabytes} MB"),
        );
        let folder = self.cache.work("download")?;
        self.apt(progress)?.download(&list, &folder)?;
        self.keep(&list, &folder)
    }

    /// Moves fetched files into the store if they have the locked hash.
    fn keep(&self, list: &[(Wanted, Locked)], folder: &Path) -> Result<(), ImageError> {
        let mut fetched = hashes(folder)?;
        make_folder(&self.folder)?;
        for (_, locked) in list {
            let path = fetched.remove(&locked.sha256);
            let path = path.ok_or_else(|| mismatch(locked, "another one"))?;
            let target = self.file_of(locked);
            fs::rename(&path, &target).at(&target)?;
        }
        Ok(())
    }

    fn file_of(&self, locked: &Locked) -> PathBuf {
        self.folder.join(format!("{}.deb", locked.sha256))
    }

    /// Path of the recorded choice for the committed lock file.
    fn memory(&self) -> PathBuf {
        let key = digest::of_bytes(self.committed.text().as_bytes());
        self.folder.join(format!("chosen-{key}.json"))
    }
}

fn hashes(folder: &Path) -> Result<HashMap<String, PathBuf>, ImageError> {
    let mut hashes = HashMap::new();
    for entry in fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        if path.is_file() {
            hashes.insert(digest::of_file(&path)?, path);
        }
    }
    Ok(hashes)
}

fn not_locked(wanted: Wanted) -> ImageError {
    let reason = "not in the lock file";
    ImageError::new(ErrorCode::Lock, wanted.name, reason).help("`cargo xtask guest --update`")
}

fn mismatch(locked: &Locked, other: &str) -> ImageError {
    let subject = format!("{} {}", locked.name, locked.version);
    let reason = format!(
        "the lock file has hash {}, the mirror {other}",
        locked.sha256
    );
    ImageError::new(ErrorCode::HashMismatch, subject, reason)
}

#[cfg(test)]
mod tests {
    use super::super::packages::Arch;
    use super::super::progress::Event;
    use super::*;

    const A: Wanted = Wanted {
        name: "a",
        arch: Arch::Riscv64,
    };
    const B: Wanted = Wanted {
        name: "b",
        arch: Arch::Riscv64,
    };

    fn package(name: &str, version: &str) -> Locked {
        let content = format!("{name} {version}");
        Locked {
            name: name.to_owned(),
            architecture: "riscv64".to_owned(),
            version: version.to_owned(),
            size: content.len() as u64,
            sha256: digest::of_bytes(content.as_bytes()),
        }
    }

    fn lock(packages: &[(Wanted, &str)]) -> LockFile {
        let mut lock = LockFile::empty();
        for (wanted, version) in packages {
            lock.set(*wanted, package(wanted.name, version));
        }
        lock
    }

    fn offers(all: &[(&str, &str)], current: &[(&str, &str)]) -> Offers {
        let of = |list: &[(&str, &str)]| list.iter().map(|(n, v)| package(n, v)).collect();
        Offers::new(of(all), of(current))
    }

    fn store(packages: &Packages<'_>, name: &str, version: &str) {
        let target = packages.file_of(&package(name, version));
        fs::write(target, format!("{name} {version}")).unwrap();
    }

    #[test]
    fn stored_packages_need_no_network() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let lock = lock(&[(A, "1"), (B, "1")]);
        let mut packages = Packages::open(&cache, lock, Versions::Locked).unwrap();
        assert_eq!(packages.missing(&[A, B]).len(), 2);
        store(&packages, "a", "1");
        store(&packages, "b", "1");
        packages.ensure(&[A, B], &mut |_: Event<'_>| ()).unwrap();
        assert!(packages.file(A).unwrap().exists());
        // A damaged file counts as missing.
        fs::write(packages.file(A).unwrap(), "a 2").unwrap();
        assert_eq!(packages.missing(&[A, B]).len(), 1);
    }

    #[test]
    fn versions_that_are_gone_are_replaced_together_said_and_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let locked = lock(&[(A, "1"), (B, "1")]);
        let open = || Packages::open(&cache, locked.clone(), Versions::Preferred).unwrap();
        let mut packages = open();
        store(&packages, "a", "1");
        let offers = offers(
            &[("a", "1"), ("a", "2"), ("b", "2")],
            &[("a", "2"), ("b", "2")],
        );
        let gone = packages.first_gone(&[A, B], &offers).unwrap().unwrap();
        assert_eq!(gone, "b 1 is gone");
        let mut said = Vec::new();
        let mut record = |event: Event<'_>| said.push(format!("{event:?}"));
        packages
            .replace(&[A, B], &gone, &offers, &mut record)
            .unwrap();
        assert_eq!(said.len(), 2);
        assert!(
            said[0].contains("a: 2 in place of 1 (b 1 is gone)"),
            "{said:?}"
        );
        assert_eq!(open().chosen(), &lock(&[(A, "2"), (B, "2")]));
        assert_eq!(open().replaced(), ["a 2", "b 2"]);
        // Another lock file, or strict use of the locked versions, ignores the choice.
        let strict = Packages::open(&cache, locked.clone(), Versions::Locked).unwrap();
        assert_eq!(strict.chosen(), &locked);
        assert!(strict.replaced().is_empty());
        let other = lock(&[(A, "1")]);
        let other_packages = Packages::open(&cache, other.clone(), Versions::Preferred).unwrap();
        assert_eq!(other_packages.chosen(), &other);
    }

    #[test]
    fn locked_means_locked() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let locked = lock(&[(A, "1")]);
        let mut packages = Packages::open(&cache, locked, Versions::Locked).unwrap();
        let offers = offers(&[("a", "2"), ("b", "1")], &[("a", "2"), ("b", "1")]);
        let gone = packages.first_gone(&[A], &offers).unwrap().unwrap();
        let mut silent = |_: Event<'_>| ();
        let error = packages
            .replace(&[A], &gone, &offers, &mut silent)
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::LockedGone);
        let unlocked = packages.first_gone(&[B], &offers).unwrap().unwrap();
        assert_eq!(unlocked, "b is not locked");
    }

    #[test]
    fn other_bytes_under_the_same_version_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let packages = Packages::open(&cache, lock(&[(A, "1")]), Versions::Preferred).unwrap();
        let mut forged = package("a", "1");
        forged.sha256 = "0".repeat(64);
        let offers = Offers::new(vec![forged.clone()], vec![forged]);
        let error = packages.first_gone(&[A], &offers).unwrap_err();
        assert_eq!(error.code, ErrorCode::HashMismatch);
    }
}
