//! Digests: SHA-256 of texts, files and lists of inputs.

use super::error::{At, ImageError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes hashed at a time.
const CHUNK: usize = 256 * 1024;

/// Hexadecimal digits of a key in a folder's name: 128 bits make collisions of inputs
/// implausible.
const KEY_DIGITS: usize = 32;

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Incremental SHA-256.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds a chunk.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash in hexadecimal.
    pub fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Returns the SHA-256 of a file's content, in hexadecimal.
pub fn of_file(path: &Path) -> Result<String, ImageError> {
    let mut file = File::open(path).at(path)?;
    let mut hasher = Hasher::default();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk).at(path)? {
            0 => return Ok(hasher.hex()),
            count => hasher.update(&chunk[..count]),
        }
    }
}

/// Encodes bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// All inputs that a step's result depends on, by label. The list is stored with the
/// result, so that a reader can see its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Inputs(Vec<(String, String)>);

impl Inputs {
    /// Adds a short value, such as a version.
    pub fn value(&mut self, label: impl Into<String>, value: impl Into<String>) {
        self.0.push((label.into(), value.into()));
    }

    /// Adds the hash of a content.
    pub fn content(&mut self, label: impl Into<String>, bytes: &[u8]) {
        self.value(label, of_bytes(bytes));
    }

    /// Returns the value of a label.
    pub fn get(&self, label: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == label);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the key of this list. It includes lengths, so that different lists never
    /// encode the same.
    pub fn key(&self) -> String {
        let mut hasher = Sha256::new();
        for (label, value) in &self.0 {
            for part in [label, value] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
        }
        let mut key = hex(&hasher.finalize());
        key.truncate(KEY_DIGITS);
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn hashes_are_sha256() {
        assert_eq!(of_bytes(b""), EMPTY);
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(of_file(file.path()).unwrap(), EMPTY);
        std::fs::write(file.path(), vec![7; CHUNK + 3]).unwrap();
        assert_eq!(of_file(file.path()).unwrap(), of_bytes(&vec![7; CHUNK + 3]));
    }

    #[test]
    fn keys_depend_on_every_part_and_its_borders() {
        let key = |parts: &[(&str, &str)]| {
            let mut inputs = Inputs::default();
            for (label, value) in parts {
                inputs.value(*label, *value);
            }
            inputs.key()
        };
        let base = key(&[("a", "b"), ("c", "d")]);
        assert_eq!(base.len(), KEY_DIGITS);
        assert_eq!(base, key(&[("a", "b"), ("c", "d")]));
        assert_ne!(base, key(&[("a", "b"), ("c", "e")]));
        assert_ne!(base, key(&[("c", "d"), ("a", "b")]));
        assert_ne!(key(&[("ab", "c")]), key(&[("a", "bc")]));
        assert_ne!(base, key(&[("a", "b")]));
    }
}
