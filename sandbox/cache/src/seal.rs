//! Seal key: the key of a cache folder, which authenticates modules that were compiled
//! here.
//!
//! A compiled module is machine code, and loading it runs it. Owner and mode of a file show
//! who stored it, not who made it: an archive that its user unpacked is the user's. So a
//! module's manifest is sealed with a key that was made in this folder and never leaves it.
//! Mounts do not expose it to guests either.

use super::error::{At, ErrorCode, ImageError};
use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::OFlags;
use sha2::Sha256;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Bytes of a key: a block of the hash, used without hashing first (RFC 2104 section 2).
const KEY_BYTES: usize = 64;

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// File name of the key.
const NAME: &str = "key";

/// Key of a cache folder.
#[derive(Clone)]
pub struct SealKey([u8; KEY_BYTES]);

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey")
    }
}

impl SealKey {
    /// Loads the key in a folder, creating it if necessary.
    ///
    /// # Errors
    /// [`ErrorCode::UntrustedCache`] for one that other users may know.
    pub(super) fn of(folder: &Path) -> Result<Self, ImageError> {
        let path = folder.join(NAME);
        if fs::symlink_metadata(&path).is_err() {
            make(folder, &path)?;
        }
        let mut options = File::options();
        let no_link = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = options
            .read(true)
            .custom_flags(no_link.bits() as i32)
            .open(&path)
            .at(&path)?;
        let metadata = file.metadata().at(&path)?;
        let own = rustix::process::geteuid().as_raw();
        let mut key = [0; KEY_BYTES];
        let ours = metadata.is_file()
            && metadata.uid() == own
            && metadata.mode() & OTHERS == 0
            && metadata.len() == KEY_BYTES as u64;
        if !ours {
            let shown = path.display().to_string();
            let help = format!("`rm {shown}`: another one is made, and the image compiled again");
            let reason = "is no key that only this user knows";
            return Err(ImageError::new(ErrorCode::UntrustedCache, shown, reason).help(help));
        }
        file.read_exact(&mut key).at(&path)?;
        Ok(Self(key))
    }

    /// Returns the key's bytes, meant only for a worker of this process.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Restores the key from the bytes that a parent process passed; `None` if the length
    /// is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    fn hmac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mut hmac = <Hmac<Sha256> as KeyInit>::new(&self.0.into());
        hmac.update(bytes);
        hmac
    }

    /// Seals bytes; returns the seal in hexadecimal.
    pub fn seal(&self, bytes: &[u8]) -> String {
        super::digest::hex(&self.hmac(bytes).finalize().into_bytes())
    }

    /// Whether `seal` is the seal of `bytes`.
    pub fn is_sealed(&self, bytes: &[u8], seal: &str) -> bool {
        let digit = |pair: &[u8]| {
            let text = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(text, 16).ok()
        };
        let seal: Option<Vec<u8>> = seal.as_bytes().chunks(2).map(digit).collect();
        seal.is_some_and(|seal| self.hmac(bytes).verify_slice(&seal).is_ok())
    }
}

/// Creates the key atomically, and never a second one.
fn make(folder: &Path, path: &Path) -> Result<(), ImageError> {
    let mut random = [0; KEY_BYTES + 8];
    getrandom::fill(&mut random)
        .map_err(|error| ImageError::io(path, &std::io::Error::other(error)))?;
    let (key, name) = random.split_at(KEY_BYTES);
    let beside = folder.join(format!("{NAME}-{}", super::digest::hex(name)));
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .at(&beside)?;
    let written = file.write_all(key).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| match fs::hard_link(&beside, path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    fs::remove_file(&beside).at(&beside)?;
    linked.at(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_has_one_key_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys: Vec<SealKey> = std::thread::scope(|scope| {
            let make = || scope.spawn(|| SealKey::of(folder.path()).expect("a key"));
            let threads: Vec<_> = (0..8).map(|_| make()).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("made"))
                .collect()
        });
        assert!(
            keys.iter()
                .all(|key| key.0 == keys[0].0 && key.0 != [0; KEY_BYTES])
        );
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
        let path = folder.path().join(NAME);
        let mode = fs::metadata(&path).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
        let refused = || SealKey::of(folder.path()).expect_err("refused").code;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mine");
        assert_eq!(refused(), ErrorCode::UntrustedCache);
        fs::write(&path, "short").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mine");
        assert_eq!(refused(), ErrorCode::UntrustedCache);
        fs::rename(&path, folder.path().join("else")).expect("moved");
        symlink("else", &path).expect("linked");
        assert_eq!(refused(), ErrorCode::Io);
    }

    /// RFC 4231, test case 2 with the key zero-padded, which changes nothing.
    #[test]
    fn seals_are_hmacs_and_hold_for_what_was_sealed() {
        let mut key = SealKey([0; KEY_BYTES]);
        key.0[..4].copy_from_slice(b"Jefe");
        let text = b"what do ya want for nothing?";
        let seal = key.seal(text);
        assert!(
            seal.starts_with("5bdcc146bf60754e6a042426089575c7"),
            "{seal}"
        );
        assert!(key.is_sealed(text, &seal));
        assert!(!key.is_sealed(b"what", &seal));
        for bad in ["", "5b", "zz", &seal[1..], &seal.replace('5', "6")] {
            assert!(!key.is_sealed(text, bad), "{bad}");
        }
    }
}
