//! The store with its worker, which is this program.

#[path = "it/make.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod make;

use a99_sandbox_cache::Cache;
use a99_sandbox_oci::{OciCode, Store, TASK, Worker, serve};
use make::{Layout, Tar};
use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((task, rest)) = arguments.split_first()
        && task == TASK
    {
        return if serve(rest) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    images_are_added_found_and_removed();
    ExitCode::SUCCESS
}

fn images_are_added_found_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("cache")).expect("a cache");
    let store = Store::of(&cache).expect("a store");
    let worker = Worker::new("/proc/self/exe", [] as [&str; 0]);
    let file = folder.path().join("box.tar");
    let archive = Layout::new([Tar::default().file("a", "content")]).finish();
    fs::write(&file, &archive).expect("the archive");
    let mut notes = Vec::new();
    let added = store.add(&file, None, None, &worker, &mut |text| {
        notes.push(text.to_owned())
    });
    let added = added.expect("an image");
    assert_eq!((added.name.as_str(), added.image.layers), ("box", 1));
    assert_eq!(notes, ["layer 1 of 1", "writing the file system"]);
    let bytes = fs::read(&added.file).expect("the file system");
    assert_eq!(bytes.len() as u64, added.image.bytes);
    assert!(bytes.windows(7).any(|window| window == b"content"));
    // The store has it, so its layers are not read again: they may even be missing.
    let mut without = Layout::new([Tar::default().file("a", "content")]);
    without.files.clear();
    fs::write(folder.path().join("same.tar"), without.finish()).expect("the archive");
    let mut notes = 0;
    let mut count = |_: &str| notes += 1;
    let again = folder.path().join("same.tar");
    let again = store.add(&again, Some("two"), None, &worker, &mut count);
    assert_eq!(again.expect("a second name").image, added.image);
    assert_eq!(notes, 0);
    assert_eq!(store.list().len(), 2);
    assert_eq!(store.remove("box").expect("removed"), 0);
    assert_eq!(
        store.find("two").expect("still there").image.id,
        added.image.id
    );
    fs::write(&added.file, b"changed").expect("written");
    assert_eq!(
        store.find("two").expect_err("changed").code,
        OciCode::Damaged
    );
    // Adding it again mends what was changed.
    let mended = store.add(&file, Some("two"), None, &worker, &mut |_| {});
    assert_eq!(mended.expect("an image").sha256, added.sha256);
    assert_eq!(store.find("two").expect("sound").image, added.image);
    let freed = store.remove("two").expect("removed");
    assert!(freed > 0, "the description");
    assert!(!added.file.exists() && store.list().is_empty());
    assert_eq!(
        store.remove("two").expect_err("gone").code,
        OciCode::NotFound
    );
    fs::write(&file, &archive[..archive.len() / 2]).expect("the archive");
    let cut = store.add(&file, None, None, &worker, &mut |_| {});
    assert_eq!(cut.expect_err("cut").code, OciCode::Damaged);
    let bad = store.add(&file, Some("../x"), None, &worker, &mut |_| {});
    assert_eq!(bad.expect_err("a path").code, OciCode::Name);
    let lost = Worker::new("/bin/false", [] as [&str; 0]);
    let lost = store.add(&file, None, None, &lost, &mut |_| {});
    assert_eq!(lost.expect_err("no worker").code, OciCode::Worker);
}
