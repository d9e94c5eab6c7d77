//! Tests of the store.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const LAYOUT: [u8; 32] = [1; 32];

const WASM: &[u8] = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7f\x03\x02\x01\0\x07\x05\x01\x01a\0\0\x0a\x06\x01\x04\0\x41\x2a\x0b";

fn store(folder: &Path) -> CodeStore {
    CodeStore::new(
        folder,
        SealKey::from_bytes(&[7; 64]).expect("a key's length"),
    )
}

fn engine() -> Engine {
    crate::engine().expect("an engine")
}

fn region(number: u8) -> Region {
    Region {
        key: [number; 32],
        function: 0,
        roots: vec![8, 4094],
        entries: vec![(8, 0), (4094, 127)],
    }
}

/// Machine code of a module for some pages.
fn bundle(engine: &Engine, numbers: &[u8]) -> PackedBundle {
    let module = Module::new(engine, WASM).expect("a module");
    let mut bytes = module.serialize().expect("bytes");
    // Modules differ, and stay modules.
    bytes.extend(numbers);
    let regions = numbers.iter().map(|number| region(*number)).collect();
    PackedBundle::new(regions, bytes)
}

/// A module that is only stored.
fn filler(number: u8, len: usize) -> PackedBundle {
    PackedBundle::new(vec![region(number)], vec![number; len])
}

fn files(store: &CodeStore) -> Vec<PathBuf> {
    let entries = fs::read_dir(&store.folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Pages that are known, by number.
fn known(store: &CodeStore) -> Vec<u8> {
    let mut found: Vec<u8> = store
        .scan(&LAYOUT)
        .iter()
        .flat_map(|bundle| bundle.regions.iter().map(|region| region.key[0]))
        .collect();
    found.sort_unstable();
    found
}

/// A store with one pack.
fn saved() -> (tempfile::TempDir, CodeStore, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(folder.path());
    store
        .save(&LAYOUT, vec![bundle(&engine(), &[0, 1, 2])])
        .expect("saved");
    let [path] = files(&store).try_into().expect("one file");
    (folder, store, path)
}

#[test]
fn what_was_stored_is_loaded_by_another_process() {
    let (folder, _, path) = saved();
    let mode = fs::metadata(path).expect("there").mode();
    assert_eq!(mode & 0o777, 0o600);
    let other = store(folder.path());
    let [bundle] = other.scan(&LAYOUT).try_into().expect("one");
    assert_eq!(bundle.regions(), [region(0), region(1), region(2)]);
    let (module, _) = other.load(&engine(), &bundle).expect("sealed");
    assert!(module.get_export("a").is_some());
    assert!(other.scan(&[2; 32]).is_empty());
    assert_eq!(other.damaged(), 0);
}

#[test]
fn s08_code_that_was_not_sealed_here_is_dropped() {
    let (folder, _, path) = saved();
    let key = SealKey::from_bytes(&[8; 64]).expect("a key's length");
    let other = CodeStore::new(folder.path(), key);
    assert!(other.scan(&LAYOUT).is_empty());
    assert_eq!(other.damaged(), 1);
    assert!(!path.exists());
}

#[test]
fn s08_no_changed_byte_of_code_is_loaded() {
    let (_folder, store, path) = saved();
    let whole = fs::read(&path).expect("there");
    let index_end = HEAD_BYTES + encode(&[&bundle(&engine(), &[0, 1, 2])]).len();
    let places = (0..index_end)
        .step_by(7)
        .chain([index_end, whole.len() - 1]);
    for at in places {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).expect("written");
        let found = store.scan(&LAYOUT);
        let loads = |bundle| store.load(&engine(), bundle).is_some();
        assert!(!found.iter().any(loads), "byte {at}");
    }
    assert!(store.damaged() > 0);
}

#[test]
fn s08_a_truncated_pack_is_dropped() {
    let (_folder, store, path) = saved();
    let whole = fs::read(&path).expect("there");
    for (dropped, len) in [0, 8, HEAD_BYTES, HEAD_BYTES + 9, whole.len() - 1]
        .into_iter()
        .enumerate()
    {
        fs::write(&path, &whole[..len]).expect("written");
        assert!(store.scan(&LAYOUT).is_empty());
        assert_eq!(store.damaged(), dropped as u64 + 1);
        assert!(!path.exists());
    }
}

#[test]
fn s08_code_that_others_can_write_is_not_loaded() {
    let (_folder, store, path) = saved();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).expect("mine");
    assert!(store.scan(&LAYOUT).is_empty());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mine");
    assert_eq!(store.scan(&LAYOUT).len(), 1);
    fs::set_permissions(&store.folder, fs::Permissions::from_mode(0o722)).expect("mine");
    assert!(store.scan(&LAYOUT).is_empty());
    fs::set_permissions(&store.folder, fs::Permissions::from_mode(0o700)).expect("mine");
    let moved = store.folder.join("moved");
    fs::rename(&path, &moved).expect("moved");
    symlink(&moved, &path).expect("linked");
    assert!(store.scan(&LAYOUT).is_empty());
    // Not ours to remove.
    assert_eq!(store.damaged(), 0);
}

#[test]
fn s08_code_of_another_user_is_not_loaded() {
    let (_folder, store, path) = saved();
    if !rustix::process::geteuid().is_root() {
        // Only root can make such a file.
        return;
    }
    std::os::unix::fs::chown(&path, Some(12345), None).expect("root");
    assert!(store.scan(&LAYOUT).is_empty());
    assert!(path.exists());
}

#[test]
fn small_packs_become_one_and_large_ones_stay() {
    let (_folder, store, first) = saved();
    store
        .save(&LAYOUT, vec![filler(3, 100), filler(4, SMALL as usize)])
        .expect("saved");
    assert!(!first.exists());
    assert_eq!(files(&store).len(), 1);
    assert_eq!(known(&store), [0, 1, 2, 3, 4]);
    store.save(&LAYOUT, vec![filler(5, 10)]).expect("saved");
    store.save(&LAYOUT, vec![filler(5, 10)]).expect("saved");
    assert_eq!(files(&store).len(), 2);
    assert_eq!(known(&store), [0, 1, 2, 3, 4, 5]);
    assert_eq!(store.damaged(), 0);
}

#[test]
fn the_least_recently_used_goes_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = store(folder.path());
    store.max_bytes = 3 * SMALL + 4096;
    let add = |store: &CodeStore, number| {
        let filler = filler(number, SMALL as usize);
        store.save(&LAYOUT, vec![filler]).expect("saved");
    };
    for number in 1..=3 {
        add(&store, number);
        for path in files(&store) {
            let file = File::open(path).expect("there");
            let modified = file.metadata().expect("there").modified().expect("a time");
            let older = modified - Duration::from_secs(60);
            file.set_modified(older).expect("mine");
        }
    }
    assert_eq!(known(&store), [1, 2, 3]);
    // Used, whatever it holds.
    let of_first = |bundle: &PackedBundle| bundle.regions[0].key[0] == 1;
    let mut found = store.scan(&LAYOUT).into_iter();
    let first = found.find(of_first).expect("there");
    // The system's time of a new file is up to a tick old.
    let just_now = SystemTime::now() - Duration::from_secs(1);
    if let Bytes::File(pack, ..) = &first.bytes {
        pack.file.set_modified(just_now).expect("mine");
    }
    add(&store, 4);
    assert_eq!(known(&store), [1, 3, 4]);
    // What was removed can still be read by who had found it.
    add(&store, 5);
    add(&store, 6);
    assert_eq!(known(&store), [4, 5, 6]);
    assert!(first.read().is_some());
}

#[test]
fn use_keeps_a_pack() {
    let (_folder, store, path) = saved();
    let file = File::open(&path).expect("there");
    file.set_modified(SystemTime::UNIX_EPOCH).expect("mine");
    let [bundle] = store.scan(&LAYOUT).try_into().expect("one");
    store.load(&engine(), &bundle).expect("sealed");
    let modified = file.metadata().expect("there").modified().expect("a time");
    assert!(modified.elapsed().expect("past") < Duration::from_secs(60));
}

#[test]
fn processes_at_once_lose_nothing_that_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    // A store is all that a process has in common with another.
    std::thread::scope(|scope| {
        for process in 0..4u8 {
            let folder = folder.path();
            scope.spawn(move || {
                let store = store(folder);
                for round in 0..8 {
                    let filler = filler(process * 8 + round, 1000);
                    store.save(&LAYOUT, vec![filler]).expect("saved");
                    for bundle in store.scan(&LAYOUT) {
                        assert!(bundle.read().is_some());
                    }
                    assert_eq!(store.damaged(), 0);
                }
            });
        }
    });
    let store = store(folder.path());
    let mut found = known(&store);
    found.dedup();
    assert!(!found.is_empty());
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|is| is == PACK);
    assert!(files(&store).iter().all(is_pack));
}
