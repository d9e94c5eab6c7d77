//! Copies of large files, full disks, and the image carried to another cache.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::support::*;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Bytes that do not repeat, so that a missing or swapped part is noticed.
fn fill(path: &Path, megabytes: u64) {
    use std::io::Write;
    let mut file = std::io::BufWriter::new(File::create(path).unwrap());
    let mut state = 1u64;
    for _ in 0..megabytes << 17 {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        file.write_all(&state.to_le_bytes()).unwrap();
    }
    file.flush().unwrap();
}

fn is_same(one: &Path, other: &Path) -> bool {
    let open = |path| std::io::BufReader::with_capacity(1 << 20, File::open(path).unwrap());
    let (mut one, mut other) = (open(one), open(other));
    let (mut a, mut b) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let count = one.read(&mut a).unwrap();
        if other.read_exact(&mut b[..count]).is_err() || a[..count] != b[..count] {
            return false;
        }
        if count == 0 {
            return other.read(&mut b).unwrap() == 0;
        }
    }
}

/// Larger than the guest's memory, in and out.
#[test]
#[ignore = "needs the image"]
fn s2_a_file_larger_than_memory_is_copied() {
    let home = Home::new("large");
    home.ok(&["start", "box", "--disk", "1500M"]);
    let (from, back) = (home.0.join("from"), home.0.join("back"));
    fill(&from, 600);
    let (from_text, back_text) = (from.to_str().unwrap(), back.to_str().unwrap());
    for _ in 0..2 {
        home.ok(&["cp", from_text, "box:large"]);
    }
    home.ok(&["cp", "box:large", back_text]);
    assert!(is_same(&from, &back));
    assert_eq!(home.ok(&["exec", "box", "--", "ls", "-A"]), "large\n");
}

#[test]
#[ignore = "needs the image"]
fn s2_a_full_disk_is_said_and_leaves_nothing_behind() {
    let home = Home::new("full");
    for (name, disk, megabytes) in [("disk", "200M", 300), ("memory", "none", 130)] {
        home.ok(&["start", name, "--disk", disk]);
        let from = home.0.join("from");
        fill(&from, megabytes);
        for _ in 0..2 {
            let output = home.run(&[
                "cp",
                from.to_str().unwrap(),
                &format!("{name}:big"),
                "--json",
            ]);
            assert_eq!(output.status.code(), Some(125), "{output:?}");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                said.contains("sandbox.copy") && said.contains("No space left on device"),
                "{said}"
            );
            assert_eq!(home.ok(&["exec", name, "--", "ls", "-A"]), "");
        }
        // There is room again.
        fill(&from, 60);
        home.ok(&["cp", from.to_str().unwrap(), &format!("{name}:small")]);
    }
}

/// An exported image can be imported into another cache, and guests start from it.
#[test]
#[ignore = "needs the image"]
fn s1_an_image_goes_from_one_cache_to_another() {
    let home = Home::new("image");
    let file = home.0.join("image.a99");
    let file = file.to_str().unwrap();
    home.ok(&["image", "export", file]);
    let elsewhere = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("A99_CACHE_DIR", home.0.join("cache"));
        command.output().unwrap()
    };
    let imported = elsewhere(&["image", "import", file]);
    assert!(imported.status.success(), "{imported:?}");
    let output = elsewhere(&["exec", "--", "sh", "-c", "echo $((6*7)); uname -m"]);
    assert_eq!(output.stdout, b"42\nriscv64\n", "{output:?}");
    // Import again, over the existing image.
    assert!(elsewhere(&["image", "import", file]).status.success());
    assert!(
        elsewhere(&["exec", "--", "python3", "-c", "print(1)"])
            .status
            .success()
    );
    let damaged = fs::read(file).unwrap();
    fs::write(file, &damaged[..damaged.len() / 2]).unwrap();
    assert_eq!(
        elsewhere(&["image", "import", file]).status.code(),
        Some(125)
    );
    assert!(elsewhere(&["exec", "--", "true"]).status.success());
}
