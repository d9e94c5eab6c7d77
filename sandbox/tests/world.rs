//! Mounts and network of a running guest, from the image that was built last.
//!
//! They need the image (`cargo xtask guest`), so they are run by name:
//! `cargo test -p a99-sandbox --features vm --test world -- --ignored`.

mod common;

use a99_sandbox::{MountMode, Policy, Sandbox, VmCode, block_on};
use common::{builder, sh};
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
    // The host's changes are seen.
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

#[test]
#[ignore = "needs the image"]
fn a_database_with_a_shared_mapping_works_in_a_mount() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = mounted(folder.path(), MountMode::ReadWrite);
    // A shared mapping is what the journal's index is.
    let script = "import sqlite3\nd = sqlite3.connect('/mnt/data/db')\nprint(d.execute('pragma journal_mode=wal').fetchone()[0])\nd.execute('create table t (n)')\nd.executemany('insert into t values (?)', [(n,) for n in range(1000)])\nd.commit()\ne = sqlite3.connect('/mnt/data/db')\nprint(e.execute('select sum(n) from t').fetchone()[0])";
    let output = block_on(sandbox.command(["python3", "-c", script]).output()).unwrap();
    assert_eq!(
        output.stdout_text(),
        "wal\n499500\n",
        "{}",
        output.stderr_text()
    );
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

/// A web server of the host's loopback that answers `connections` requests.
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

/// S04: nothing is reached that was not named.
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
    // Without a network there is none, whatever there was before.
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
