//! Mounts and network of a running guest, from the image that was built last.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{builder, sh};
use a99_sandbox::{MountMode, Policy, Sandbox, Stream, VmCode, block_on};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

fn mounted(host: &Path, mode: MountMode) -> Sandbox {
    let builder = builder().mount("/mnt/data", host, mode);
    builder.start_blocking().expect("a sandbox")
}

/// The checks of AgentVM's mount tests.
#[test]
#[ignore = "needs the image"]
fn agentvm_mounts() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path();
    fs::create_dir_all(host.join("one/two")).unwrap();
    fs::write(host.join("hello.txt"), "from the host\n").unwrap();
    fs::write(host.join("one/two/deep.txt"), "deep\n").unwrap();
    let sandbox = mounted(host, MountMode::ReadWrite);
    assert_eq!(sh(&sandbox, "ls /mnt/data"), "hello.txt\none\n");
    assert_eq!(sh(&sandbox, "cat /mnt/data/hello.txt"), "from the host\n");
    assert_eq!(
        sh(&sandbox, "ls /mnt/data/one; ls /mnt/data/one/two"),
        "two\ndeep.txt\n"
    );
    assert_eq!(sh(&sandbox, "cat /mnt/data/one/two/deep.txt"), "deep\n");
    sh(
        &sandbox,
        "echo back >/mnt/data/new.txt; chmod 750 /mnt/data/new.txt; mv /mnt/data/new.txt /mnt/data/one/moved",
    );
    assert_eq!(
        fs::read_to_string(host.join("one/moved")).unwrap(),
        "back\n"
    );
    let mode = fs::metadata(host.join("one/moved"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
    // Changes on the host are visible.
    fs::write(host.join("hello.txt"), "changed\n").unwrap();
    assert_eq!(sh(&sandbox, "cat /mnt/data/hello.txt"), "changed\n");
    let content: Vec<u8> = (0..5_000_000u32).map(|n| (n ^ (n >> 10)) as u8).collect();
    fs::write(host.join("large"), &content).unwrap();
    sh(&sandbox, "cp /mnt/data/large /mnt/data/copy");
    block_on(sandbox.stop());
    assert!(fs::read(host.join("copy")).unwrap() == content);
}

#[test]
#[ignore = "needs the image"]
fn modes_of_mounts_hold() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path();
    fs::write(host.join("file"), "old\n").unwrap();
    let sandbox = mounted(host, MountMode::ReadOnly);
    for text in [
        "echo x >/mnt/data/file",
        "rm /mnt/data/file",
        "touch /mnt/data/new",
        "mount -o remount,rw /mnt/data; echo x >/mnt/data/file",
    ] {
        let output = block_on(sandbox.exec(text)).unwrap();
        assert_ne!(output.exit_code(), 0, "{text}");
    }
    let sandbox = mounted(host, MountMode::Overlay);
    sh(
        &sandbox,
        "echo new >/mnt/data/file; echo more >/mnt/data/more; mkdir /mnt/data/dir",
    );
    assert_eq!(
        sh(&sandbox, "cat /mnt/data/file /mnt/data/more"),
        "new\nmore\n"
    );
    block_on(sandbox.stop());
    assert_eq!(fs::read_to_string(host.join("file")).unwrap(), "old\n");
    assert_eq!(fs::read_dir(host).unwrap().count(), 1);
    let missing = builder().mount("/mnt/x", host.join("none"), MountMode::ReadOnly);
    assert_eq!(missing.start_blocking().unwrap_err().code, VmCode::Mount);
}

#[test]
#[ignore = "needs the image"]
fn several_mounts_and_single_files() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path();
    fs::create_dir(host.join("a")).unwrap();
    fs::write(host.join("a/x"), "a\n").unwrap();
    fs::write(host.join("single"), "single\n").unwrap();
    let sandbox = builder()
        .mount("/a", host.join("a"), MountMode::ReadOnly)
        .mount("/b/c", host.join("a"), MountMode::ReadWrite)
        .mount("/etc/single.conf", host.join("single"), MountMode::ReadOnly)
        .start_blocking()
        .unwrap();
    assert_eq!(
        sh(&sandbox, "cat /a/x /b/c/x /etc/single.conf"),
        "a\na\nsingle\n"
    );
    sh(&sandbox, "echo b >/b/c/y");
    assert_eq!(sh(&sandbox, "cat /a/y"), "b\n");
}

/// Cached attributes do not hide changes of the host.
#[test]
#[ignore = "needs the image"]
fn what_the_host_changes_is_seen_by_the_next_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "one\n").unwrap();
    for mode in [MountMode::ReadWrite, MountMode::ReadOnly] {
        let sandbox = mounted(folder.path(), mode);
        // The second stat of each command uses the first one's answer.
        let look = "cd /mnt/data; stat -c '%s %a' file; stat -c '%s %a %F' file; cat file; ls";
        let again = |expected: &str| assert_eq!(sh(&sandbox, look), expected);
        for _ in 0..3 {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            again("4 644\n4 644 regular file\none\nfile\n");
            fs::write(&file, "two\n").unwrap();
            again("4 644\n4 644 regular file\ntwo\nfile\n");
            fs::write(&file, "three\n").unwrap();
            again("6 644\n6 644 regular file\nthree\nfile\n");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            again("6 600\n6 600 regular file\nthree\nfile\n");
            fs::write(folder.path().join("other"), "replaced\n").unwrap();
            fs::rename(folder.path().join("other"), &file).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            again("9 640\n9 640 regular file\nreplaced\nfile\n");
            fs::remove_file(&file).unwrap();
            let gone = "stat /mnt/data/file 2>&1 | grep -c 'No such file'; ls /mnt/data";
            assert_eq!(sh(&sandbox, gone), "1\n");
            fs::create_dir(&file).unwrap();
            let kind = "stat -c %F /mnt/data/file";
            assert_eq!(sh(&sandbox, kind), "directory\n");
            fs::remove_dir(&file).unwrap();
            fs::write(&file, "one\n").unwrap();
        }
        block_on(sandbox.stop());
    }
}

/// A process that has opened a file sees later changes of it.
#[test]
#[ignore = "needs the image"]
fn what_happens_to_an_open_file_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "one").unwrap();
    let sandbox = mounted(folder.path(), MountMode::ReadWrite);
    // Its own changes, each between two looks.
    sh(
        &sandbox,
        "cd /mnt/data; python3 - <<'END'
import mmap, os, time
for _ in range(50):
    open('a', 'w').close()
    look = os.open('a', os.O_PATH)
    assert os.stat('a').st_size == 0
    fd = os.open('a', os.O_RDWR)
    os.write(fd, b'hello')
    assert os.fstat(fd).st_size == 5 and os.stat('a').st_size == 5
    os.ftruncate(fd, 3)
    assert os.fstat(look).st_size == 3 and os.fstat(fd).st_size == 3
    os.chmod('a', 0o604)
    assert os.fstat(look).st_mode & 0o777 == 0o604
    again = os.open('a', os.O_RDONLY)
    os.link('a', 'b')
    assert os.fstat(again).st_nlink == 2 and os.stat('b').st_nlink == 2
    again = os.dup2(os.open('a', os.O_PATH), again)
    os.utime('b', (1, 2))
    assert os.fstat(again).st_mtime == 2
    os.rename('b', 'c')
    assert not os.path.exists('b') and os.stat('c').st_ino == os.stat('a').st_ino
    os.unlink('a')
    assert os.fstat(again).st_nlink == 1 and os.fstat(look).st_size == 3
    shared = mmap.mmap(fd, 3)
    shared[0:3] = b'new'
    shared.flush()
    before = os.stat('c').st_mtime_ns
    assert open('c').read() == 'new' and before > 2
    cut = os.open('c', os.O_RDWR | os.O_TRUNC)
    assert os.fstat(cut).st_size == 0 and os.fstat(fd).st_size == 0
    os.unlink('c')
    assert os.fstat(fd).st_nlink == 0
    for one in (look, fd, again, cut): os.close(one)
END",
    );
    // Changes on the host, while a process waits between two looks.
    let watch = "cd /mnt/data; python3 -c \"
import os, time
fd = os.open('file', os.O_RDONLY)
open('opened', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
time.sleep(0.1)
print(os.fstat(fd).st_size, os.stat('file').st_size)\"";
    let host = folder.path().to_owned();
    let changer = thread::spawn(move || {
        while !host.join("opened").exists() {
            thread::sleep(std::time::Duration::from_millis(1));
        }
        fs::write(host.join("file"), "longer").unwrap();
        fs::write(host.join("go"), "").unwrap();
    });
    assert_eq!(sh(&sandbox, watch), "6 6\n");
    changer.join().unwrap();
}

#[test]
#[ignore = "needs the image"]
fn a_thousand_files_are_listed_and_none_is_held() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1000 {
        let path = folder.path().join(format!("file-{number}"));
        fs::write(path, vec![b'x'; number]).unwrap();
    }
    let sandbox = mounted(folder.path(), MountMode::ReadWrite);
    let listed = sh(&sandbox, "cd /mnt/data; ls; stat -c '%n %s' *");
    let mut lines: Vec<&str> = listed.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = (0..1000).map(|n| format!("file-{n}")).collect();
    expected.extend((0..1000).map(|n| format!("file-{n} {n}")));
    expected.sort_unstable();
    assert_eq!(lines, expected);
    // This process serves the files; its descriptors are listed here.
    let held = || {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let paths = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        paths
            .filter(|path| path.parent() == Some(folder.path()))
            .count()
    };
    let start = std::time::Instant::now();
    while held() > 0 {
        let waited = start.elapsed();
        assert!(waited.as_secs() < 20, "{} files are held", held());
        thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(sh(&sandbox, "cat /mnt/data/file-3"), "xxx");
}

#[test]
#[ignore = "needs the image"]
fn a_database_with_a_shared_mapping_works_in_a_mount() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = mounted(folder.path(), MountMode::ReadWrite);
    // The journal's index is a shared mapping.
    let script = "import sqlite3\nd = sqlite3.connect('/mnt/data/db')\nprint(d.execute('pragma journal_mode=wal').fetchone()[0])\nd.execute('create table t (n)')\nd.executemany('insert into t values (?)', [(n,) for n in range(1000)])\nd.commit()\ne = sqlite3.connect('/mnt/data/db')\nprint(e.execute('select sum(n) from t').fetchone()[0])";
    let output = block_on(sandbox.command(["python3", "-c", script]).output()).unwrap();
    assert_eq!(
        output.stdout_text(),
        "wal\n499500\n",
        "{}",
        output.stderr_text()
    );
}

/// Takes both kinds of locks on one file, releases one, and prints the locks that another
/// process can take each time; then prints a line and waits.
const LOCKS: &str = r#"
import fcntl, os, sys
TRY = fcntl.LOCK_EX | fcntl.LOCK_NB
def may(lock):
    child = os.fork()
    if child:
        return "no" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) else "yes"
    try:
        lock(os.open("/mnt/data/file", os.O_RDWR), TRY)
        os._exit(0)
    except BlockingIOError:
        os._exit(1)
def show(what):
    print(what, may(fcntl.flock), may(fcntl.lockf), flush=True)
show("free")
first = os.open("/mnt/data/file", os.O_RDWR)
fcntl.flock(first, TRY)
show("flock")
second = os.open("/mnt/data/file", os.O_RDWR)
fcntl.lockf(second, TRY)
show("both")
# A lock of fcntl goes with any descriptor of the file, one of flock with its own.
os.close(second)
show("flock")
fcntl.flock(first, fcntl.LOCK_UN)
fcntl.lockf(first, TRY)
show("fcntl")
fcntl.flock(first, TRY)
fcntl.lockf(first, fcntl.LOCK_UN)
show("flock")
sys.stdin.read(1)
os.close(first)
show("free")
"#;

#[test]
#[ignore = "needs the image"]
fn both_kinds_of_locks_are_apart_and_seen_by_the_host() {
    use nix::fcntl::{Flock, FlockArg};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "content").unwrap();
    let sandbox = mounted(folder.path(), MountMode::ReadWrite);
    let host = || {
        let file = fs::File::options().write(true).open(&path).unwrap();
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map(drop)
    };
    let command = sandbox.command(["python3", "-c", LOCKS]).piped();
    let process = command.spawn().unwrap();
    let (mut lines, mut errors) = (String::new(), String::new());
    let mut read = |wanted: usize| {
        while lines.lines().count() < wanted {
            let Some(chunk) = block_on(process.next()).unwrap() else {
                panic!("it ended: {lines} {errors}");
            };
            let text = String::from_utf8_lossy(&chunk.bytes);
            match chunk.stream {
                Stream::Stdout => lines.push_str(&text),
                _ => errors.push_str(&text),
            }
        }
        lines.clone()
    };
    read(6);
    assert!(host().is_err(), "the guest's lock is one of the host's");
    assert!(block_on(process.write(b"x")).unwrap());
    let expected = "free yes yes\nflock no yes\nboth no no\nflock no yes\nfcntl yes no\nflock no yes\nfree yes yes\n";
    assert_eq!(read(7), expected);
    host().expect("given back");
    // The same in the other direction.
    let file = fs::File::open(&path).unwrap();
    let held = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
    let code = "import fcntl; fcntl.flock(open('/mnt/data/file'), fcntl.LOCK_SH | fcntl.LOCK_NB)";
    let refused = sandbox.command(["python3", "-c", code]).output();
    let refused = block_on(refused).unwrap();
    assert!(refused.stderr_text().contains("BlockingIOError"));
    drop(held);
    let granted = sandbox.command(["python3", "-c", code]).output();
    assert_eq!(block_on(granted).unwrap().exit_code(), 0);
}

#[test]
#[ignore = "needs the image"]
fn an_open_file_of_a_mount_survives_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "one\ntwo\n").unwrap();
    let sandbox = mounted(folder.path(), MountMode::ReadWrite);
    sh(&sandbox, "cd /mnt/data; exec 5<file; read x <&5; echo $x");
    let saved = block_on(sandbox.snapshot()).unwrap();
    block_on(sandbox.stop());
    let other = builder()
        .mount("/mnt/data", folder.path(), MountMode::ReadWrite)
        .restore(saved)
        .start_blocking()
        .unwrap();
    assert_eq!(
        sh(&other, "pwd; ls; cat file"),
        "/mnt/data\nfile\none\ntwo\n"
    );
    sh(&other, "echo three >>file");
    let text = fs::read_to_string(folder.path().join("file")).unwrap();
    assert_eq!(text, "one\ntwo\nthree\n");
}

/// A web server on the host's loopback that answers `connections` requests.
fn server(body: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let body = body.clone();
            thread::spawn(move || answer(stream.unwrap(), &body));
        }
    });
    address
}

fn answer(mut stream: TcpStream, body: &[u8]) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => request.extend(&buffer[..count]),
            _ => return,
        }
    }
    let status = if request.starts_with(b"GET /missing") {
        "404 Not Found"
    } else {
        "200 OK"
    };
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

fn networked(policy: &str) -> Sandbox {
    let policy: Policy = policy.parse().expect("a policy");
    builder()
        .network(policy)
        .start_blocking()
        .expect("a sandbox")
}

#[test]
#[ignore = "needs the image"]
fn a_web_server_of_the_host_is_reached_when_it_is_named() {
    let body: Vec<u8> = (0..2_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let address = server(body.clone());
    let port = address.port();
    let sandbox = networked(&format!("allow:127.0.0.1:{port}"));
    let fetch = format!(
        "wget -q -O /got http://host.agent99.internal:{port}/; wget -q -O - http://192.168.127.254:{port}/ | cmp - /got"
    );
    sh(&sandbox, &fetch);
    let file = tempfile::tempdir().unwrap();
    block_on(sandbox.copy_out("/got", file.path().join("got"))).unwrap();
    assert!(fs::read(file.path().join("got")).unwrap() == body);
    let missing = format!("wget -q -O - http://192.168.127.254:{port}/missing");
    assert_ne!(block_on(sandbox.exec(missing)).unwrap().exit_code(), 0);
    assert!(sh(&sandbox, "cat /etc/resolv.conf").contains("nameserver 192.168.127.1"));
    assert!(sh(&sandbox, "ping -c 2 192.168.127.1").contains("0% packet loss"));
}

/// S04: only named destinations are reachable.
#[test]
#[ignore = "needs the image"]
fn s04_a_guest_reaches_nothing_that_was_not_named() {
    let address = server(b"secret".to_vec());
    let port = address.port();
    for policy in ["full", "allow:example.com", "off"] {
        let sandbox = networked(policy);
        for host in [
            "192.168.127.254",
            "192.168.127.1",
            "127.0.0.1",
            "169.254.169.254",
            "10.0.0.1",
        ] {
            let text = format!("wget -q -T 3 -O - http://{host}:{port}/");
            let output = block_on(sandbox.exec(&text)).unwrap();
            assert_ne!(output.exit_code(), 0, "{policy} {host}");
            assert_eq!(output.stdout, b"", "{policy} {host}");
        }
    }
}

#[test]
#[ignore = "needs the image"]
fn a_port_of_the_host_leads_into_the_guest() {
    let sandbox = builder()
        .network("allow:example.com".parse().unwrap())
        .forward("127.0.0.1:0".parse().unwrap(), 8080)
        .start_blocking()
        .unwrap();
    let script = "import socket\ns = socket.create_server(('', 8080))\nprint('on', flush=True)\nwhile True:\n c, _ = s.accept()\n c.sendall(c.recv(99).upper())\n c.close()";
    let serving = sandbox.command(["python3", "-c", script]).spawn().unwrap();
    assert_eq!(block_on(serving.next()).unwrap().unwrap().bytes, b"on\n");
    for _ in 0..3 {
        let mut stream = TcpStream::connect(sandbox.forwards()[0]).unwrap();
        stream.write_all(b"hello").unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        assert_eq!(got, "HELLO");
    }
    drop(serving);
}

#[test]
#[ignore = "needs the image"]
fn connections_are_reset_by_a_restore_and_new_ones_work() {
    let address = server(b"fine".to_vec());
    let policy = format!("allow:127.0.0.1:{}", address.port());
    let sandbox = networked(&policy);
    let get = format!("wget -q -O - http://192.168.127.254:{}/", address.port());
    assert_eq!(sh(&sandbox, &get), "fine");
    let saved = block_on(sandbox.snapshot()).unwrap();
    let other = builder()
        .network(policy.parse().unwrap())
        .restore(saved.clone());
    let other = other.start_blocking().unwrap();
    assert_eq!(sh(&other, &get), "fine");
    // A restore without a network has none, regardless of the saved one.
    let alone = builder().restore(saved).start_blocking().unwrap();
    assert_ne!(block_on(alone.exec(&get)).unwrap().exit_code(), 0);
}

#[test]
#[ignore = "needs the image"]
fn an_address_of_ones_own_works() {
    let address = server(b"fine".to_vec());
    let policy = format!("allow:127.0.0.1:{}", address.port());
    let sandbox = builder()
        .network(policy.parse().unwrap())
        .mac([2, 0, 0, 0xab, 0xcd, 0xef]);
    let sandbox = sandbox.start_blocking().unwrap();
    assert!(sh(&sandbox, "cat /sys/class/net/eth0/address").starts_with("02:00:00:ab:cd:ef"));
    let get = format!("wget -q -O - http://192.168.127.254:{}/", address.port());
    assert_eq!(sh(&sandbox, &get), "fine");
}

/// Times have the host file system's range: fractions, and before 1970.
#[test]
#[ignore = "needs the image"]
fn b10_times_keep_their_fractions() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let sandbox = mounted(folder.path(), MountMode::ReadWrite);
    sh(
        &sandbox,
        "cd /mnt/data; python3 - <<'END'
import os
for name, times in [('a', (1500000000, 2250000001)), ('b', (-1500000000, -1))]:
    open(name, 'w').close()
    os.utime(name, ns=times)
    found = os.stat(name)
    assert (found.st_atime_ns, found.st_mtime_ns) == times, (name, found)
os.utime('a', (1.5, 2.25))
assert os.stat('a').st_mtime == 2.25
open('c', 'w').close()
os.utime('c')
import shutil
shutil.copy2('a', 'd')
END",
    );
    let time = |name: &str| {
        let metadata = fs::metadata(folder.path().join(name)).unwrap();
        (metadata.mtime(), metadata.mtime_nsec())
    };
    assert_eq!(time("a"), (2, 250_000_000));
    assert_eq!(time("b"), (-1, 999_999_999));
    assert_eq!(time("d"), time("a"));
    assert!(time("c").1 > 0, "{:?}", time("c"));
}
