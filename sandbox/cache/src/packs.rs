//! Packs in the cache: which result each name means.

use super::cache::{Cache, write_whole};
use super::entry::{Entry, Manifest};
use super::error::ImageError;
use std::collections::BTreeMap;
use std::fs;

/// File name of the file system in the result of a pack.
pub const LAYER: &str = "pack.erofs";

/// File name of the description in the result of a pack.
pub const DESCRIPTION: &str = "pack.json";

/// File that names the packs: step and key of each.
const PACKS: &str = "packs.json";

/// Longest name of a pack.
pub(super) const MAX_NAME: usize = 40;

/// Whether a pack can have this name: small letters and digits.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain)
}

/// Name of the step that makes a pack: one word, as the cache splits it from the key.
pub fn step_name(pack: &str) -> String {
    format!("pack-{pack}")
}

impl Cache {
    /// Records the result that a pack's name means from now on. The caller holds the lock.
    ///
    /// # Errors
    /// Those of writing.
    pub fn record_pack(&self, name: &str, entry: &Entry) -> Result<(), ImageError> {
        let mut packs = self.pack_keys();
        let Manifest { step, key, .. } = &entry.manifest;
        packs.insert(name.to_owned(), (step.clone(), key.clone()));
        self.set_pack_keys(&packs)
    }

    /// Removes a pack's name, and its results unless another name means one; returns how
    /// many bytes of the disk that frees, `None` if there is no such pack. Guests that run
    /// keep their file. The caller holds the lock.
    ///
    /// # Errors
    /// Those of writing and removing.
    pub fn remove_pack(&self, name: &str) -> Result<Option<u64>, ImageError> {
        let mut packs = self.pack_keys();
        let Some((step, _)) = packs.remove(name) else {
            return Ok(None);
        };
        self.set_pack_keys(&packs)?;
        match packs.values().any(|(other, _)| *other == step) {
            true => Ok(Some(0)),
            false => self.remove_results(&step).map(Some),
        }
    }

    /// Finds the result of a pack, if it was built and is sound.
    ///
    /// # Errors
    /// Those of reading.
    pub fn pack(&self, name: &str) -> Result<Option<Entry>, ImageError> {
        match self.pack_keys().get(name) {
            Some((step, key)) => self.find(step, key),
            None => Ok(None),
        }
    }

    /// Names of the recorded packs.
    pub fn packs(&self) -> Vec<String> {
        self.pack_keys().into_keys().collect()
    }

    /// Key of a step's result that a pack means.
    pub(super) fn pack_key(&self, step: &str) -> Option<String> {
        let mut packs = self.pack_keys().into_values();
        packs.find(|(of, _)| of == step).map(|(_, key)| key)
    }

    fn set_pack_keys(&self, packs: &BTreeMap<String, (String, String)>) -> Result<(), ImageError> {
        let path = self.root().join(PACKS);
        let text = serde_json::to_vec_pretty(packs)
            .map_err(|error| ImageError::io(&path, &error.into()))?;
        write_whole(&path, &text)
    }

    fn pack_keys(&self) -> BTreeMap<String, (String, String)> {
        let text = fs::read(self.root().join(PACKS)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::digest::Inputs;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_pack_stays_until_its_name_means_another() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let make = |value: &str| {
            let out = cache.work("out").unwrap();
            fs::write(out.join("file"), value).unwrap();
            let mut inputs = Inputs::default();
            inputs.value("option", value);
            cache
                .publish("pack-x", inputs, &out, Duration::ZERO)
                .unwrap()
        };
        assert!(cache.pack("x").unwrap().is_none());
        let first = make("first");
        cache.record_pack("x", &first).unwrap();
        // Later results push others out, but not the one that the name means.
        for number in 0..8 {
            make(&number.to_string());
        }
        assert_eq!(cache.pack("x").unwrap().unwrap().folder, first.folder);
        assert_eq!(cache.packs(), ["x"]);
        fs::write(first.path("file"), "firsT").unwrap();
        assert!(cache.pack("x").unwrap().is_none(), "damaged");
        cache.record_pack("y", &first).unwrap();
        assert_eq!(
            cache.remove_pack("x").unwrap(),
            Some(0),
            "another name has it"
        );
        assert!(first.folder.exists());
        let freed = cache.remove_pack("y").unwrap().unwrap();
        assert!(freed >= 4096, "{freed}");
        let left = fs::read_dir(first.folder.parent().unwrap()).unwrap();
        assert_eq!((left.count(), cache.packs().len()), (0, 0));
        assert_eq!(cache.remove_pack("y").unwrap(), None);
    }
}
