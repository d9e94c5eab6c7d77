//! Class S8: a guest can add to a mount only within its budget, and gets refunds for
//! removals.

use super::client::{Client, EXCL, RDWR, TRUNC};
use a99_sandbox_p9::{Budget, Mount, MountMode, Options, Server};
use rustix::io::Errno;
use std::fs;

const BYTES: u64 = 1 << 20;
const ENTRIES: u64 = 10;

/// Bytes of a write.
const CHUNK: usize = 64 << 10;

fn ground() -> (tempfile::TempDir, Client) {
    ground_of(ENTRIES)
}

fn ground_of(entries: u64) -> (tempfile::TempDir, Client) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("host"), vec![1; 300_000]).expect("written");
    let mount = Mount {
        budget: Budget {
            bytes: BYTES,
            entries,
        },
        ..Mount::new("/m", folder.path(), MountMode::ReadWrite)
    };
    let server = Server::new(vec![mount], Options::default()).expect("shared");
    (folder, Client::new(server))
}

/// Bytes on the disk of a folder's files.
fn on_disk(folder: &tempfile::TempDir) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(folder.path()).expect("a folder").flatten();
    let files = entries.map(|entry| entry.metadata().expect("there"));
    files.map(|file| file.blocks() * 512).sum()
}

/// Writes chunks until one is refused.
fn fill(client: &mut Client, fid: u32, from: u64) -> Result<u64, Errno> {
    let chunk = vec![7; CHUNK];
    let mut at = from;
    loop {
        match client.write(fid, at, &chunk) {
            Ok(written) => at += u64::from(written),
            Err(Errno::DQUOT) => return Ok(at - from),
            Err(errno) => return Err(errno),
        }
        assert!(at < from + 8 * BYTES, "no end");
    }
}

#[test]
fn s8_bytes_on_the_disk_are_bounded_and_come_back() {
    let (folder, mut client) = ground();
    let before = on_disk(&folder);
    let fid = client
        .create("0", "a", RDWR | EXCL, 0o644)
        .expect("created");
    let filled = fill(&mut client, fid, 0).expect("until the budget is spent");
    assert!((BYTES / 2..=BYTES).contains(&filled), "{filled}");
    assert!(on_disk(&folder) - before <= BYTES + (64 << 10));
    // Existing bytes can be overwritten; no byte can be added.
    assert!(client.write(fid, 0, &[8; 1000]).is_ok());
    let other = client.create("0", "b", RDWR, 0o644).expect("an entry");
    assert_eq!(client.write(other, 0, &[1; CHUNK]), Err(Errno::DQUOT));
    let host = client.open("0/host", RDWR).expect("open");
    assert!(client.write(host, 0, &[8; 1000]).is_ok());
    assert_eq!(client.write(host, 300_000, &[8; CHUNK]), Err(Errno::DQUOT));
    // Holes do not evade the budget.
    assert_eq!(client.truncate("0/b", 1 << 40), Ok(()));
    assert_eq!(client.write(other, 1 << 30, &[1; CHUNK]), Err(Errno::DQUOT));
    // An open file keeps its space after it was unlinked.
    assert_eq!(client.unlink("0", "a", 0), Ok(()));
    assert_eq!(client.write(other, 0, &[1; CHUNK]), Err(Errno::DQUOT));
    client.clunk(fid).expect("closed");
    assert!(client.write(other, 0, &[1; 60_000]).is_ok());
    let filled = fill(&mut client, other, 1 << 20).expect("until the budget is spent");
    assert!(filled > BYTES / 2, "{filled}");
    // Every way to truncate refunds the bytes.
    assert_eq!(client.truncate("0/b", 0), Ok(()));
    assert!(fill(&mut client, other, 0).expect("again") > BYTES / 2);
    let cut = client.open("0/b", RDWR | TRUNC).expect("cut");
    assert!(fill(&mut client, cut, 0).expect("again") > BYTES / 2);
    assert_eq!(client.truncate("0/b", 0), Ok(()));
    // So does a file that replaces another.
    let full = client.create("0", "e", RDWR, 0o644).expect("an entry");
    assert!(fill(&mut client, full, 0).expect("again") > BYTES / 2);
    client.clunk(full).expect("closed");
    client.create("0", "c", RDWR, 0o644).expect("an entry");
    assert_eq!(client.rename(("0", "c"), ("0", "e")), Ok(()));
    let last = client.create("0", "d", RDWR, 0o644).expect("an entry");
    assert!(fill(&mut client, last, 0).expect("again") > BYTES / 2);
}

#[test]
fn s8_entries_are_bounded_and_come_back() {
    let (folder, mut client) = ground();
    let dquot = Err(Errno::DQUOT);
    for number in 0..ENTRIES {
        let name = format!("n{number}");
        match number % 4 {
            0 => client.mkdir("0", &name, 0o755).expect("made"),
            1 => client.symlink("0", &name, "x").expect("made"),
            2 => client.link("0/host", "0", &name).expect("made"),
            _ => drop(client.create("0", &name, RDWR, 0o644).expect("made")),
        }
    }
    assert_eq!(client.mkdir("0", "more", 0o755), dquot);
    assert_eq!(client.symlink("0", "more", "x"), dquot);
    assert_eq!(client.link("0/host", "0", "more"), dquot);
    assert_eq!(client.mknod("0", "more", 0o100_644), dquot);
    assert_eq!(client.create("0", "more", RDWR, 0o644).map(drop), dquot);
    assert_eq!(
        fs::read_dir(folder.path()).expect("there").count() as u64,
        ENTRIES + 1
    );
    assert_eq!(client.unlink("0", "n0", 0x200), Ok(()));
    assert_eq!(client.unlink("0", "n2", 0), Ok(()));
    assert_eq!(client.rename(("0", "n5"), ("0", "n1")), Ok(()));
    for name in ["a", "b", "c"] {
        assert_eq!(client.mkdir("0", name, 0o755), Ok(()));
    }
    assert_eq!(client.mkdir("0", "d", 0o755), dquot);
}

/// How often `make` succeeds before the budget is spent.
fn count(mut make: impl FnMut(u64) -> Result<(), Errno>) -> u64 {
    (0..)
        .find(|number| match make(*number) {
            Ok(()) => *number > BYTES,
            Err(errno) => {
                assert_eq!(errno, Errno::DQUOT);
                true
            }
        })
        .expect("an end")
}

#[test]
fn s4_names_links_folders_and_attributes_count_as_bytes() {
    let (folder, mut client) = ground_of(u64::MAX);
    let long = |number: u64| format!("{number:0>200}");
    let name = |number: u64| format!("n{number}");
    let target = "t".repeat(4000);
    // Minimum bytes on the host for each.
    let links = count(|number| client.symlink("0", &name(number), &target));
    assert!(links * 4000 <= BYTES && links > 10, "{links}");
    for number in 0..links {
        client.unlink("0", &name(number), 0).expect("removed");
    }
    let folders = count(|number| client.mkdir("0", &long(number), 0o755));
    let on_disk = fs::read_dir(folder.path()).expect("there").flatten();
    let on_disk = on_disk.map(|entry| {
        use std::os::unix::fs::MetadataExt;
        let blocks = entry.metadata().expect("there").blocks();
        blocks * 512 + entry.file_name().len() as u64
    });
    assert!(
        on_disk.sum::<u64>() <= BYTES + 300_000 && folders > 10,
        "{folders}"
    );
    for number in 0..folders {
        client.unlink("0", &long(number), 0x200).expect("removed");
    }
    let files = count(|number| client.mknod("0", &long(number), 0o100_644));
    assert!(files * 456 <= BYTES && files > 10, "{files}");
    // The budget is spent for other entries too, and removals are refunded.
    assert_eq!(client.link("0/host", "0", &long(files)), Err(Errno::DQUOT));
    assert_eq!(client.rename(("0", &long(0)), ("0", "short")), Ok(()));
    client.unlink("0", "short", 0).expect("removed");
    for number in 1..files {
        client.unlink("0", &long(number), 0).expect("removed");
    }
    let again = count(|number| client.mknod("0", &long(number), 0o100_644));
    assert!(again.abs_diff(files) < files / 20, "{again} of {files}");
}

#[test]
fn s4_attributes_count_until_their_file_is_gone() {
    let (_folder, mut client) = ground_of(u64::MAX);
    let value = vec![1; 1000];
    let mut fill = |round: u64| {
        count(|number| {
            let name = format!("f{round}.{number}");
            client.mknod("0", &name, 0o100_644)?;
            let set = client.setxattr(&format!("0/{name}"), "user.a", &value, 0);
            if set == Err(Errno::OPNOTSUPP) {
                return Err(Errno::DQUOT);
            }
            set
        })
    };
    let first = fill(0);
    assert!(first * 1256 <= BYTES, "{first}");
    assert!(fill(1) < 5);
    for number in 0..=first {
        // The last file may lack its attribute, or not exist.
        let _ = client.unlink("0", &format!("f0.{number}"), 0);
    }
    let mut again = 0;
    while again < first
        && client.mknod("0", &format!("g{again}"), 0o100_644).is_ok()
        && client.setxattr(&format!("0/g{again}"), "user.a", &value, 0) != Err(Errno::DQUOT)
    {
        again += 1;
    }
    assert!(again.abs_diff(first) < 5, "{again} of {first}");
}

/// In a separate process with few descriptors: one guest gets an error that says so, leaves
/// others their share, and continues after closing files.
#[test]
fn s8_a_guest_has_a_share_of_the_descriptors() {
    const FEW: &str = "A99_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(FEW).is_none() {
        let test = std::env::current_exe().expect("this test");
        let status = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 300; exec \"$0\" \"$@\""])
            .arg(test)
            .args([
                "--exact",
                "budget::s8_a_guest_has_a_share_of_the_descriptors",
            ])
            .env(FEW, "1")
            .status();
        assert!(status.expect("it runs").success());
        return;
    }
    let (_folder, mut client) = ground();
    let (_other_folder, mut other) = ground();
    let mut fids = Vec::new();
    let refused = loop {
        match client.open("0/host", 0) {
            Ok(fid) => fids.push(fid),
            Err(errno) => break errno,
        }
    };
    assert_eq!(refused, Errno::MFILE);
    assert!(fids.len() >= 40, "{}", fids.len());
    let others: Vec<_> = (0..20).map(|_| other.open("0/host", 0)).collect();
    assert!(
        others.iter().all(Result::is_ok),
        "another guest has its share"
    );
    let files: Vec<_> = (0..60).map(|_| fs::File::open("/dev/null")).collect();
    assert!(files.iter().all(Result::is_ok), "and so has the process");
    for fid in fids.drain(..5) {
        client.clunk(fid).expect("closed");
    }
    assert!(client.open("0/host", 0).is_ok());
}
