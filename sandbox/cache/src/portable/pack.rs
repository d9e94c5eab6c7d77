//! Packs in files: a pack's description and its layer, in an archive as that of an image.
//!
//! A pack is files for guests and nothing that the host runs, so any one may be imported; a
//! guest's programs are then those that the file's maker chose. Contents and sizes are
//! checked against the description, and the file against a hash that the caller trusts.

use super::super::cache::Cache;
use super::super::digest::Inputs;
use super::super::error::{At, ErrorCode, ImageError};
use super::super::packs::{DESCRIPTION, LAYER, is_name, step_name};
use super::super::progress::{Event, Progress, StepEnd};
use super::super::step;
use super::export::{source, write};
use super::import::{ArchiveReader, bad};
use super::manifest::Part;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Maximum bytes of a layer: the largest named pack has 270 MB.
const MAX_LAYER: u64 = 4 << 30;

/// Bytes of a sector; a layer has whole ones.
const SECTOR: u64 = 512;

/// Pack that a file holds; its description has more members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Name of the pack.
    pub name: String,
    /// SHA-256 of its layer, in hexadecimal.
    pub sha256: String,
    /// Size of its layer in bytes.
    pub bytes: u64,
}

impl Carried {
    /// Parses an untrusted description; the error is the reason of a refusal.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let pack: Self =
            serde_json::from_slice(text).map_err(|error| format!("{DESCRIPTION}: {error}"))?;
        if !is_name(&pack.name) {
            return Err("has a pack with a name that is refused".to_owned());
        }
        match pack.bytes {
            1..=MAX_LAYER if pack.bytes.is_multiple_of(SECTOR) => Ok(pack),
            bytes => Err(format!("has a layer of {bytes} bytes, which is refused")),
        }
    }
}

/// Writes a pack of the cache into a file.
///
/// # Errors
/// [`ErrorCode::NotBuilt`] if there is no such pack, [`ErrorCode::HashMismatch`] if it is
/// damaged; an existing file then stays unchanged.
pub fn export_pack(cache: &Cache, name: &str, file: &Path) -> Result<Carried, ImageError> {
    let entry = cache.pack(name)?.ok_or_else(|| {
        let reason = "was not built, so it cannot be exported";
        ImageError::new(ErrorCode::NotBuilt, name, reason)
            .help(format!("`a99 sandbox build --pack {name}` builds it"))
    })?;
    let path = entry.path(DESCRIPTION);
    let text = fs::read(&path).at(&path)?;
    // Only a description that can be read back is written.
    let pack = Carried::parse(&text).map_err(|reason| bad(&path, reason))?;
    let layer = source(&entry, LAYER, LAYER)?;
    write(file, (DESCRIPTION, &text), &[layer])?;
    Ok(pack)
}

/// Whether a file holds a pack, by its first bytes.
///
/// # Errors
/// [`ErrorCode::BadFile`] and those of reading.
pub fn is_pack(file: &Path) -> Result<bool, ImageError> {
    Ok(ArchiveReader::open(file)?.text(DESCRIPTION)?.is_some())
}

/// Imports the pack in a file; its name means this one from now on.
///
/// # Errors
/// [`ErrorCode::BadFile`] if the file is damaged, truncated, or not a pack;
/// [`ErrorCode::HashMismatch`] if it is not the trusted one. The cache then stays as it is.
pub fn import_pack(
    cache: &Cache,
    file: &Path,
    trusted: Option<&str>,
    progress: &mut dyn Progress,
) -> Result<Carried, ImageError> {
    let start = Instant::now();
    let mut archive = ArchiveReader::open(file)?;
    let _building = cache.lock(progress)?;
    let step = "import";
    progress.event(Event::Started { step });
    let text = archive.text(DESCRIPTION)?;
    let text = text.ok_or_else(|| bad(file, "holds no pack"))?;
    let pack = Carried::parse(&text).map_err(|reason| bad(file, reason))?;
    let out = cache.work("out")?;
    step::check_room(&out, pack.bytes)?;
    let part = Part {
        path: LAYER.to_owned(),
        size: pack.bytes,
        sha256: pack.sha256.clone(),
    };
    archive.part(&part, &out, progress)?;
    archive.end(trusted)?;
    let path = out.join(DESCRIPTION);
    fs::write(&path, &text).at(&path)?;
    // A distinct kind of key: no build finds the result under the key of its inputs.
    let mut inputs = Inputs::default();
    inputs.content("imported", &text);
    let entry = cache.publish(&step_name(&pack.name), inputs, &out, start.elapsed())?;
    cache.record_pack(&pack.name, &entry)?;
    progress.event(Event::Finished {
        step,
        end: StepEnd::Built,
        elapsed: start.elapsed(),
    });
    Ok(pack)
}

#[cfg(test)]
mod tests {
    use super::super::super::digest;
    use super::super::super::packs::MAX_NAME;
    use super::*;
    use std::time::Duration;
    use tempfile::TempDir;

    /// A cache with a pack.
    fn built(name: &str, bytes: u64, layer: &[u8]) -> (TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let out = cache.work("out").unwrap();
        let sha256 = digest::of_bytes(layer);
        let text = format!(
            r#"{{"name": "{name}", "sha256": "{sha256}", "bytes": {bytes}, "packages": []}}"#
        );
        fs::write(out.join(DESCRIPTION), text).unwrap();
        fs::write(out.join(LAYER), layer).unwrap();
        let step = step_name("x");
        let entry = cache.publish(&step, Inputs::default(), &out, Duration::ZERO);
        cache.record_pack("x", &entry.unwrap()).unwrap();
        (folder, cache)
    }

    fn import(cache: &Cache, file: &Path, trusted: Option<&str>) -> Result<Carried, ImageError> {
        import_pack(cache, file, trusted, &mut |_: Event<'_>| {})
    }

    #[test]
    fn a_pack_arrives_and_a_changed_byte_is_refused() {
        let layer = [7; 1024];
        let (folder, home) = built("x", 1024, &layer);
        let file = folder.path().join("x.tar.gz");
        let carried = export_pack(&home, "x", &file).unwrap();
        assert!(is_pack(&file).unwrap());
        let error = export_pack(&home, "y", &file).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotBuilt);
        let away = tempfile::tempdir().unwrap();
        let away = Cache::at(away.path()).unwrap();
        let bytes = fs::read(&file).unwrap();
        let hash = digest::of_bytes(&bytes);
        let changed = folder.path().join("changed");
        // The time and the system in gzip's header change nothing but the file's hash.
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            fs::write(&changed, other).unwrap();
            let error = import(&away, &changed, Some(&hash)).unwrap_err();
            let codes = [ErrorCode::BadFile, ErrorCode::HashMismatch];
            assert!(codes.contains(&error.code), "{at}: {error}");
        }
        for end in 0..bytes.len() {
            fs::write(&changed, &bytes[..end]).unwrap();
            import(&away, &changed, None).unwrap_err();
        }
        assert_eq!(away.packs(), [""; 0]);
        let error = import(&away, &file, Some(&digest::of_bytes(b"other"))).unwrap_err();
        assert_eq!(error.code, ErrorCode::HashMismatch);
        for trusted in [None, Some(hash.as_str())] {
            assert_eq!(import(&away, &file, trusted).unwrap(), carried);
            let entry = away.pack("x").unwrap().expect("a pack");
            assert_eq!(fs::read(entry.path(LAYER)).unwrap(), layer);
        }
        // An imported pack exports to the same file again.
        export_pack(&away, "x", &changed).unwrap();
        assert_eq!(fs::read(&changed).unwrap(), bytes);
    }

    #[test]
    fn names_and_sizes_are_bounded() {
        let describe = |name: &str, bytes: u64| {
            format!(r#"{{"name": "{name}", "sha256": "0", "bytes": {bytes}}}"#)
        };
        Carried::parse(describe("py3", 512).as_bytes()).unwrap();
        let long = "a".repeat(MAX_NAME + 1);
        for (name, bytes) in [
            ("", 512),
            ("../x", 512),
            ("A", 512),
            (&*long, 512),
            ("x", 0),
            ("x", 513),
            ("x", MAX_LAYER + SECTOR),
            ("x", u64::MAX),
        ] {
            Carried::parse(describe(name, bytes).as_bytes()).unwrap_err();
        }
        // The file says less or more than there is.
        for bytes in [512, 2048] {
            let (folder, cache) = built("x", bytes, &[7; 1024]);
            let file = folder.path().join("x.tar.gz");
            export_pack(&cache, "x", &file).unwrap();
            let error = import(&cache, &file, None).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadFile, "{bytes}: {error}");
        }
    }
}
