//! Bodies of the fuzz targets `safetensors` and `wheel`: files that anybody may have made.
//! Each takes any bytes, and panics if something that must hold does not.

use crate::archive::Archive;
use crate::safetensors::Safetensors;
use std::io::{Cursor, Read};

/// Bytes of an entry that are unpacked, at most: its reader bounds them.
const MAX_ENTRY_BYTES: u64 = 64 << 10;

/// Entries of an archive that are read, at most.
const MAX_ENTRIES: usize = 16;

/// Checks a file of weights: tensors that its header admits are inside the file, and are read
/// with as many numbers as their shapes have.
///
/// # Panics
/// If they are not.
pub fn safetensors(data: &[u8]) {
    let Ok(mut file) = Safetensors::open(Cursor::new(data)) else {
        return;
    };
    let mut bytes = 0;
    for (name, shape, size) in file.tensors() {
        bytes += size;
        let mut count = 0;
        if file
            .read(&name, &shape, |numbers| count += numbers.len())
            .is_ok()
        {
            assert_eq!(count, shape.iter().product::<usize>(), "{name}");
        }
    }
    assert!(bytes <= data.len() as u64, "{bytes} of {}", data.len());
}

/// Checks a wheel: for any directory, an entry gives no more bytes than its reader asks for,
/// and an uncompressed one no more than the file has.
///
/// # Panics
/// If it does.
pub fn wheel(data: &[u8]) {
    let Ok(mut archive) = Archive::open(Cursor::new(data)) else {
        return;
    };
    let entries = archive.entries().to_vec();
    // An entry takes 46 bytes of the directory at least.
    assert!(entries.len() <= data.len() / 46);
    for entry in entries.into_iter().take(MAX_ENTRIES) {
        let Ok(reader) = archive.read(&entry) else {
            continue;
        };
        let mut unpacked = Vec::new();
        let read = reader.take(MAX_ENTRY_BYTES).read_to_end(&mut unpacked);
        if read.is_ok() && entry.is_stored() {
            assert!(unpacked.len() <= data.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tests::zip;
    use proptest::prelude::*;
    use std::path::Path;

    type Target = fn(&[u8]);

    /// A target's name and body.
    const TARGETS: [(&str, Target); 2] = [("safetensors", safetensors), ("wheel", wheel)];

    /// A small file of weights.
    fn weights() -> Vec<u8> {
        let header = r#"{"__metadata__":{"format":"pt"},
            "a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},
            "b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}}"#;
        let size = (header.len() as u64).to_le_bytes();
        [&size[..], header.as_bytes(), &[0; 32]].concat()
    }

    fn archive() -> Vec<u8> {
        let long = [7; 300];
        zip(&[("a/b.txt", b"text", false), ("c", &long, true)])
    }

    #[test]
    fn stored_inputs_are_met() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz-inputs");
        for (name, target) in TARGETS {
            let entries = std::fs::read_dir(folder.join(name)).expect("a folder for each target");
            let paths: Vec<_> = entries
                .map(|entry| entry.expect("an entry").path())
                .collect();
            assert!(!paths.is_empty(), "{name} has inputs");
            for path in paths {
                let data = std::fs::read(&path).expect("an input");
                // A panic says which input it was.
                eprintln!("{}", path.display());
                target(&data);
            }
        }
    }

    /// The list equals the targets of cargo-fuzz, and each has inputs.
    #[test]
    fn targets_are_those_of_the_fuzzer() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest = folder.join("../../fuzz/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("the manifest");
        for (name, _) in TARGETS {
            let line = format!("name = \"{name}\"\n");
            assert!(manifest.contains(&line), "fuzz/Cargo.toml has no {name}");
            let file = folder.join(format!("../../fuzz/fuzz_targets/{name}.rs"));
            let text = std::fs::read_to_string(file).expect("a target");
            assert!(
                text.contains(&format!("a99_embed::fuzz::{name}(data)")),
                "{name}"
            );
        }
        let bodies = include_str!("fuzz.rs").matches("\npub fn ").count();
        assert_eq!(bodies, TARGETS.len(), "TARGETS lacks a body");
    }

    #[test]
    fn whole_files_are_read() {
        let mut file = Safetensors::open(Cursor::new(weights())).expect("weights");
        assert_eq!(file.tensors().len(), 2);
        file.read("a", &[2, 3], |_| {}).expect("numbers");
        let archive = Archive::open(Cursor::new(archive())).expect("an archive");
        assert_eq!(archive.entries().len(), 2);
    }

    proptest! {
        #[test]
        fn files_with_changed_bytes_are_no_panic(
            which in 0..2usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut data = [weights(), archive()][which].clone();
            for (at, byte) in changes {
                let at = at.index(data.len());
                data[at] = byte;
            }
            if is_cut {
                data.truncate(cut.index(data.len()));
            }
            TARGETS[which].1(&data);
        }

        #[test]
        fn any_bytes_are_no_panic(data in prop::collection::vec(any::<u8>(), 0..2_000)) {
            for (_, target) in TARGETS {
                target(&data);
            }
        }
    }
}
