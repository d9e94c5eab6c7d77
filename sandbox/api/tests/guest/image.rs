//! Contents of the image: the usual tools, the guest's own disk, memory that is returned,
//! and packages for Python.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::alone::alone;
use crate::common::{builder, sh, start};
use a99_sandbox::{MountMode, Policy, Sandbox, VmCode, block_on};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes that this process has written to its memory.
fn private_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").expect("a process");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes
        .expect("a figure")
        .parse::<u64>()
        .expect("a number")
        << 10
}

/// Exit code and both outputs.
fn run(sandbox: &Sandbox, text: &str) -> (i32, String) {
    let output = block_on(sandbox.exec(text)).expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &output.stderr_text();
    (output.exit_code(), said)
}

#[test]
#[ignore = "needs the image"]
fn the_usual_tools_are_there() {
    let sandbox = start();
    for (text, expected) in [
        ("bash -c 'a=(1 2 3); echo ${a[2]} $BASH_VERSION'", "3 5."),
        ("git --version", "git version 2."),
        ("curl --version", "libcurl"),
        ("wget --version", "GNU Wget"),
        ("echo '{\"a\": [1, 2]}' | jq -c .a", "[1,2]"),
        (
            "cd /tmp; echo x >a; zip -q a.zip a; rm a; unzip -q a.zip; cat a",
            "x",
        ),
        ("echo text | less", "text"),
        ("file -b /usr/bin/busybox", "UCB RISC-V"),
        (
            "printf 'all:\\n\\t@echo made\\n' >/tmp/Makefile; make -C /tmp -s",
            "made",
        ),
        ("TZ=Europe/Berlin date -d @0 +%H%Z", "01CET"),
        (
            "TZ=America/New_York python3 -c 'import time; print(time.tzname)'",
            "EDT",
        ),
        ("pip --version", "pip 2"),
        ("#!/usr/bin/env bash\n[[ -x /bin/bash ]] && echo yes", "yes"),
        (
            "test -s /etc/ssl/certs/ca-certificates.crt && echo yes",
            "yes",
        ),
    ] {
        let (code, said) = run(&sandbox, text);
        assert!(
            code == 0 && said.contains(expected),
            "{text}: {code} {said}"
        );
    }
    // The installed parts are complete.
    let (_, broken) = run(
        &sandbox,
        "find / -xdev -xtype l 2>/dev/null | grep -v ^/dev/",
    );
    assert_eq!(broken, "", "links that lead nowhere");
}

#[test]
#[ignore = "needs the image"]
fn git_works() {
    let sandbox = start();
    let said = sh(
        &sandbox,
        "mkdir /tmp/r && cd /tmp/r && git init -q && git config user.email a@b && \
         git config user.name A && echo 1 >f && git add f && git commit -qm first && \
         git checkout -qb other && echo 2 >f && git commit -qam second && \
         git clone -q . /tmp/c && git -C /tmp/c log --format=%s && git diff --stat HEAD~",
    );
    assert!(said.starts_with("second\nfirst\n f | 2 +-"), "{said}");
}

#[test]
#[ignore = "needs the image"]
fn the_disk_in_memory_can_be_looked_at() {
    let said = sh(&start(), "df -h / | tail -n 1");
    assert!(said.contains("4.0G") && said.ends_with(" /\n"), "{said}");
    let sandbox = builder().files_in_memory().start_blocking();
    let sandbox = sandbox.expect("a sandbox");
    let said = sh(&sandbox, "df -h / | tail -n 1");
    assert!(said.contains("152M") && said.ends_with(" /\n"), "{said}");
    let free: u64 = sh(&sandbox, "df -B1 --output=avail / | tail -n 1")
        .trim()
        .parse()
        .unwrap();
    assert!(free > 100_000_000, "{free}");
}

#[test]
#[ignore = "needs the image"]
fn a_disk_of_its_own_takes_what_is_written_and_no_memory() {
    if !alone(
        module_path!(),
        "a_disk_of_its_own_takes_what_is_written_and_no_memory",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sandbox = builder().disk_in(2 << 30, folder.path()).start_blocking();
    let sandbox = sandbox.expect("a sandbox");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "it has a name"
    );
    let said = sh(&sandbox, "df -B1 --output=size / /tmp | tail -n 1");
    let size: u64 = said.trim().parse().unwrap();
    assert!(size > 1 << 30, "{size}");
    // Warms up: runs each kind of work once.
    sh(
        &sandbox,
        "python3 -c 1; head -c 40000000 /dev/zero >/tmp/x; cat /tmp/x >/dev/null; rm /tmp/x",
    );
    let before = private_bytes();
    let start = Instant::now();
    sh(
        &sandbox,
        "cat >/tmp/p.py <<'E'\n\
         import os\n\
         piece = os.urandom(1 << 20)\n\
         with open('/tmp/large', 'wb', 0) as f:\n\
         \x20   for n in range(1024):\n\
         \x20       f.write(n.to_bytes(8) + piece[8:])\n\
         os.sync()\n\
         with open('/tmp/large', 'rb', 0) as f:\n\
         \x20   for n in range(1024):\n\
         \x20       assert f.read(1 << 20) == n.to_bytes(8) + piece[8:], n\n\
         E\n\
         python3 /tmp/p.py",
    );
    let elapsed = start.elapsed();
    let more = private_bytes().saturating_sub(before);
    println!(
        "1 GiB written and read: {elapsed:.1?}, {} MB more",
        more / 1_000_000
    );
    assert!(more <= 32 << 20, "{more} bytes more");
    let used = |path: &Path| nameless(path).iter().sum::<u64>();
    let open = used(folder.path());
    assert!(open >= 1 << 30, "{open}");
    sh(&sandbox, "rm /tmp/large; sync");
    assert!(used(folder.path()) < 256 << 20, "given back");
    block_on(sandbox.stop());
    assert!(nameless(folder.path()).is_empty(), "gone with the sandbox");
}

/// Unnamed files that this process has open in a folder: their sizes on disk.
fn nameless(folder: &Path) -> Vec<u64> {
    use std::os::unix::fs::MetadataExt;
    let fds = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let ours = fds.filter(|fd| {
        let target = fs::read_link(fd.path()).unwrap_or_default();
        target.starts_with(folder) && target.to_string_lossy().ends_with("(deleted)")
    });
    ours.map(|fd| fs::metadata(fd.path()).unwrap().blocks() * 512)
        .collect()
}

#[test]
#[ignore = "needs the image"]
fn a_disk_of_its_own_is_the_whole_root() {
    let folder = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("f"), "host\n").unwrap();
    let sandbox = builder()
        .disk_in(64 << 20, folder.path())
        .mount("/mnt/data", data.path(), MountMode::ReadWrite)
        .mount("/mnt/over", data.path(), MountMode::Overlay)
        .start_blocking()
        .expect("a sandbox");
    assert_eq!(
        sh(&sandbox, "cat /mnt/data/f; echo x >/mnt/data/g"),
        "host\n"
    );
    assert_eq!(fs::read_to_string(data.path().join("g")).unwrap(), "x\n");
    sh(
        &sandbox,
        "rm /mnt/over/f; echo z >/mnt/over/h; ! test -e /mnt/over/f",
    );
    assert!(data.path().join("f").exists() && !data.path().join("h").exists());
    let output = block_on(sandbox.exec("git --version; ls /proc/self >/dev/null")).unwrap();
    assert!(output.exit_code() == 0 && !output.session_reset());
    // A full disk leaves the guest usable.
    let (code, said) = run(&sandbox, "head -c 100000000 /dev/zero >/tmp/x");
    assert!(code != 0 && said.contains("No space left"), "{said}");
    sh(&sandbox, "rm /tmp/x; python3 -c 'print(1)'");
    let command = block_on(
        sandbox
            .command(["sh", "-c", "echo y >/tmp/y; cat /tmp/y"])
            .output(),
    );
    assert_eq!(command.unwrap().stdout, b"y\n");
    assert_eq!(sh(&sandbox, "cat /tmp/y"), "y\n", "one root for all");
    for (bytes, code) in [(1, VmCode::BadOption), (1 << 40, VmCode::BadOption)] {
        let refused = builder().disk_in(bytes, folder.path()).start_blocking();
        assert_eq!(refused.expect_err("refused").code, code, "{bytes}");
    }
}

#[test]
#[ignore = "needs the image"]
fn memory_comes_back() {
    if !alone(module_path!(), "memory_comes_back") {
        return;
    }
    let sandbox = start();
    sh(&sandbox, "python3 -c 1");
    let idle_memory = || {
        std::thread::sleep(Duration::from_secs(2));
        private_bytes()
    };
    let before = idle_memory();
    sh(&sandbox, "python3 -c 'x = bytearray(b\"x\") * 120_000_000'");
    let peak = private_bytes();
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut after = idle_memory();
    while after > before + (16 << 20) && Instant::now() < deadline {
        after = idle_memory();
    }
    println!("private memory: {before} before, {peak} at the end, {after} after");
    assert!(
        after <= before + (16 << 20),
        "{before} before, {after} after"
    );
    // Released space is usable again.
    sh(
        &sandbox,
        "python3 -c 'x = bytearray(100_000_000); assert not any(x[::4096])'",
    );
}

/// A server on the host; dropping it ends it.
struct Server(Child, u16);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path) -> Server {
    let tls = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls");
    let mut python = Command::new("python3");
    python.arg(tls.join("server.py")).arg(folder);
    python
        .arg(tls.join("certificate.pem"))
        .arg(tls.join("key.pem"));
    let python = python.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut python = python.expect("python3 on the host");
    let mut line = String::new();
    let out = python.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a port");
    let port = line.trim().parse().expect("a port");
    Server(python, port)
}

#[test]
#[ignore = "needs the image"]
fn s7_pip_installs_over_tls_and_nobody_believes_a_stranger() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let place = format!("host.agent99.internal:{}", server.1);
    let policy: Policy = format!("allow:{place}").parse().expect("a policy");
    let authority = include_str!("../tls/authority.pem");
    let sandbox = builder()
        .network(policy)
        .start_blocking()
        .expect("a sandbox");
    sh(&sandbox, &format!("cat >/tmp/ca.pem <<'E'\n{authority}E"));
    let index = format!("https://{place}/simple");
    // Without the authority, clients reject the server's certificate.
    for (text, expected) in [
        (format!("curl -sS {index}/"), "certificate"),
        (format!("wget -qO- {index}/ || echo failed $?"), "failed 5"),
        (
            format!("busybox wget -qO- {index}/; true"),
            "applet not found",
        ),
        (
            format!("python3 -c \"import urllib.request as r; r.urlopen('{index}/')\""),
            "CERTIFICATE_VERIFY_FAILED",
        ),
    ] {
        let (_, said) = run(&sandbox, &text);
        assert!(
            said.contains(expected) && !said.contains("a99demo"),
            "{text}: {said}"
        );
    }
    for text in [
        format!("curl -sS --cacert /tmp/ca.pem {index}/a99demo/"),
        format!("wget -qO- --ca-certificate=/tmp/ca.pem {index}/a99demo/"),
        format!(
            "git -c http.sslCAInfo=/tmp/ca.pem ls-remote {index} 2>&1 | grep -c 'not found' | sed s/1/a99demo/"
        ),
    ] {
        let said = sh(&sandbox, &text);
        assert!(said.contains("a99demo"), "{text}: {said}");
    }
    let start = Instant::now();
    sh(&sandbox, "python3 -m venv /tmp/venv");
    let made = start.elapsed();
    let install = format!(
        "/tmp/venv/bin/pip install --no-input --disable-pip-version-check --retries 0 \
         --index-url {index} a99demo"
    );
    let (code, said) = run(&sandbox, &install);
    assert!(
        code != 0 && said.contains("CERTIFICATE_VERIFY_FAILED"),
        "{said}"
    );
    let start = Instant::now();
    let (code, said) = run(&sandbox, &format!("{install} --cert /tmp/ca.pem"));
    assert!(
        code == 0 && said.contains("Successfully installed a99demo-1.0"),
        "{said}"
    );
    println!("venv {made:.1?}, install {:.1?}", start.elapsed());
    let said = sh(
        &sandbox,
        "/tmp/venv/bin/python -c 'import a99demo; print(a99demo.ANSWER)'",
    );
    assert_eq!(said, "42\n");
    // Without a virtual environment, pip installs for all of the user's programs.
    let install = install.replace("/tmp/venv/bin/pip", "pip");
    let (code, said) = run(&sandbox, &format!("{install} --cert /tmp/ca.pem"));
    assert!(
        code == 0 && said.contains("Successfully installed a99demo-1.0"),
        "{said}"
    );
    let said = sh(
        &sandbox,
        "python3 -c 'import a99demo; print(a99demo.ANSWER)'",
    );
    assert_eq!(said, "42\n");
}

#[test]
#[ignore = "needs the image"]
fn s7_names_in_every_script_are_listed_as_they_are() {
    let sandbox = builder().start_blocking().expect("a sandbox");
    let names = ["emoji😀", "é", "日本語.txt", "한국"];
    for name in names {
        sh(&sandbox, &format!("touch '/tmp/{name}'"));
    }
    let listed = sh(&sandbox, "ls /tmp; ls -l /tmp");
    for name in names {
        assert_eq!(listed.matches(name).count(), 2, "{listed}");
    }
}
