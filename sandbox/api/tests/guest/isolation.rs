//! Isolation of commands inside a guest: attacks on limits, on other commands, on the agent
//! and on the kernel, as the ordinary user and as the administrator; and the abilities that
//! both keep.

use crate::common::{builder, sh, start};
use a99_sandbox::{Command, ExecOptions, MountMode, Output, Sandbox, VmCode, VmError, block_on};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(300);

fn command(sandbox: &Sandbox, root: bool, text: &str) -> Command {
    let command = sandbox.command(["sh", "-c", text]);
    let command = if root { command.root() } else { command };
    command.timeout(TIMEOUT)
}

#[track_caller]
fn run(sandbox: &Sandbox, root: bool, text: &str) -> Output {
    block_on(command(sandbox, root, text).output()).expect("it runs")
}

#[track_caller]
fn works(sandbox: &Sandbox, root: bool, text: &str) -> String {
    let output = run(sandbox, root, text);
    let errors = output.stderr_text();
    assert_eq!(output.exit_code(), 0, "root: {root}: {text}: {errors}");
    output.stdout_text()
}

#[track_caller]
fn fails(sandbox: &Sandbox, root: bool, text: &str) {
    let output = run(sandbox, root, text);
    let all = output.stdout_text() + &output.stderr_text();
    assert_ne!(output.exit_code(), 0, "root: {root}: {text}: {all}");
}

/// Runs a Python script that must print only `denied`.
#[track_caller]
fn denied(sandbox: &Sandbox, root: bool, script: &str) {
    let command = sandbox.command(["python3", "-c", script]);
    let command = if root { command.root() } else { command };
    let output = block_on(command.timeout(TIMEOUT).output()).expect("it runs");
    let text = output.stdout_text();
    assert_eq!(text, "denied\n", "root: {root}: {}", output.stderr_text());
}

#[test]
#[ignore = "needs the image"]
fn s2_commands_run_as_an_ordinary_user_and_as_root_on_request() {
    let sandbox = start();
    let who = "echo $(id -u) $(id -un) $HOME $PWD $USER; touch $HOME/x /tmp/x /x; grep NoNewPrivs /proc/self/status";
    let user = "1000 agent /home/agent /home/agent agent\nNoNewPrivs:\t1\n";
    assert_eq!(works(&sandbox, false, who), user);
    assert_eq!(sh(&sandbox, who), user);
    let root = "0 root /root /root root\nNoNewPrivs:\t1\n";
    assert_eq!(works(&sandbox, true, who), root);
    let options = ExecOptions {
        root: true,
        ..ExecOptions::default()
    };
    let output = block_on(sandbox.exec_with("id -u", options)).expect("it runs");
    assert_eq!(output.stdout, b"0\n");
    fails(&sandbox, false, "touch /etc/x");
    fails(&sandbox, false, "ls /run/agent99");
    works(
        &sandbox,
        true,
        "touch /etc/x; chown 1000:1000 /etc/x; chmod 600 /etc/x",
    );
    assert_eq!(sh(&sandbox, "echo mine >/etc/x; cat /etc/x"), "mine\n");
}

#[test]
#[ignore = "needs the image"]
fn s2_a_command_cannot_leave_its_limits() {
    let leave = "for g in /sys/fs/cgroup /sys/fs/cgroup/agent99 /tmp/g; do mkdir -p /tmp/g; \
                 mount -t cgroup2 cgroup2 /tmp/g; echo 0 >$g/cgroup.procs; done 2>/dev/null; \
                 while :; do :; done";
    for root in [false, true] {
        let sandbox = start();
        let begin = Instant::now();
        let command = command(&sandbox, root, leave).timeout(Duration::from_secs(1));
        let error = block_on(command.output()).expect_err("it never ends");
        assert_eq!(error.code, VmCode::TimedOut);
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(6), "{took:?}");
        // Its processes have ended, and it had separate limits.
        is_at_rest(&sandbox);
        fails(
            &sandbox,
            root,
            "find / -name cgroup.controllers 2>/dev/null | grep .",
        );
        let bomb = "for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; wait";
        let limited = self::command(&sandbox, root, bomb).process_limit(5);
        let output = block_on(limited.output()).expect("it ends");
        let errors = output.stderr_text();
        assert!(errors.contains("fork"), "{errors}");
    }
    // In the session it ends only the session.
    let sandbox = start();
    let options = ExecOptions {
        timeout: Some(Duration::from_secs(1)),
        ..ExecOptions::default()
    };
    let error = block_on(sandbox.exec_with(leave, options)).expect_err("it never ends");
    assert_eq!(error.code, VmCode::TimedOut);
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
    is_at_rest(&sandbox);
}

/// Checks that the guest is idle.
#[track_caller]
fn is_at_rest(sandbox: &Sandbox) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let before = sandbox.instructions();
        thread::sleep(Duration::from_millis(400));
        let ran = sandbox.instructions() - before;
        if ran < 2_000_000 {
            return;
        }
        assert!(Instant::now() < deadline, "{ran} instructions in 0.4 s");
    }
}

#[test]
#[ignore = "needs the image"]
fn s2_root_on_request_has_no_way_to_the_kernel() {
    let sandbox = start();
    for root in [false, true] {
        for text in [
            "mount -t tmpfs none /tmp",
            "mount -o remount,rw /proc/sys",
            "mount --bind /tmp /mnt",
            "umount /proc/sys",
            "umount /dev/shm",
            "mknod /tmp/mem c 1 1",
            "mknod /tmp/port c 243 1 || mknod /tmp/vport c 248 1",
            "reboot -f",
            "poweroff -f",
            "unshare -m true",
            "unshare -p true",
            "hostname other",
            "date -s 2001-01-01 2>/dev/null; [ $(date +%Y) = 2001 ]",
            "echo 2 >/proc/sys/vm/panic_on_oom",
            "echo x >/proc/sys/kernel/core_pattern",
            "echo c >/proc/sysrq-trigger",
            "echo 1 >/sys/kernel/mm/transparent_hugepage/enabled || echo 1 >/sys/power/state",
            "echo -1000 >/proc/self/oom_score_adj",
            "nice -n -5 true 2>&1 | grep -q . && false; [ \"$(nice -n -5 nice)\" = -5 ]",
            "ulimit -n 100000",
            "ls /dev | grep -E 'vport|hvc|mem|kmsg|console|port'",
            "dmesg",
            "kill -9 1; kill -0 1 && [ ! -e /proc/1 ]",
            "echo x >>/sbin/agent99-agent",
            "rm -f /sbin/agent99-agent",
            "mv /sbin/agent99-agent /tmp/",
            "ls /sys/fs/cgroup | grep .",
        ] {
            fails(&sandbox, root, text);
        }
    }
    assert_eq!(works(&sandbox, true, "echo on"), "on\n");
    // An administrator can install programs.
    works(
        &sandbox,
        true,
        "mkdir -p /opt/x && printf '#!/bin/sh\nexit 0\n' >/usr/local/bin/own && chmod 755 /usr/local/bin/own && chown 12:34 /opt/x \
         && [ $(stat -c %u:%g /opt/x) = 12:34 ] && chroot / true && own true",
    );
}

#[test]
#[ignore = "needs the image"]
fn s2_what_users_need_is_theirs() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("old"), "old\n").expect("a file");
    let sandbox = builder()
        .mount("/project", folder.path(), MountMode::ReadWrite)
        .network("allow:example.com".parse().expect("a policy"))
        .start_blocking()
        .expect("a sandbox");
    // The user owns a mount's files, and the host's user owns new ones.
    let text = "cd /project; stat -c '%U:%G' old; echo more >>old; mkdir d; echo new >d/new; \
                chmod 600 d/new; cat d/new; rm d/new; rmdir d; echo x >made";
    assert_eq!(works(&sandbox, false, text), "agent:agent\nnew\n");
    works(
        &sandbox,
        true,
        "echo root >/project/by-root; cat /project/old",
    );
    assert_eq!(works(&sandbox, false, "cat /project/by-root"), "root\n");
    let mine = fs::metadata(folder.path()).expect("a folder").uid();
    for name in ["made", "by-root", "old"] {
        let uid = fs::metadata(folder.path().join(name)).expect(name).uid();
        assert_eq!(uid, mine, "{name}");
    }
    // Ports, pings, raw packets, temporary and shared files, pseudo-terminals.
    let ping = works(&sandbox, false, "ping -c 1 192.168.127.1");
    assert!(ping.contains(" 0% packet loss"), "{ping}");
    works(&sandbox, false, "arping -c 1 -I eth0 192.168.127.1");
    let script = "import os, pty, socket, tempfile, multiprocessing\n\
                  s = socket.create_server(('', 80))\n\
                  tempfile.TemporaryFile().write(b'x')\n\
                  open('/dev/shm/x', 'w').write('x')\n\
                  multiprocessing.Semaphore(1)\n\
                  print(pty.openpty()[0] > 0, flush=True)\n\
                  open('/dev/stdout', 'w').write('again\\n')\n\
                  open('/dev/null', 'w').write('x')";
    let output = block_on(sandbox.command(["python3", "-c", script]).output()).expect("it runs");
    assert_eq!(
        output.stdout_text(),
        "True\nagain\n",
        "{}",
        output.stderr_text()
    );
    assert_eq!(
        sh(&sandbox, "echo a >/dev/stdout; echo b >>/dev/stderr"),
        "a\n"
    );
}

#[test]
#[ignore = "needs the image"]
fn s2_what_is_left_behind_is_found_and_ended_by_later_commands() {
    let sandbox = start();
    let text = "sleep 1000 >/dev/null 2>&1 & echo $!";
    let left = command(&sandbox, false, text).detach();
    let output = block_on(left.output()).expect("it runs");
    let pid = output.stdout_text().trim().to_owned();
    assert_eq!(works(&sandbox, false, "pidof sleep").trim(), pid);
    assert_eq!(sh(&sandbox, &format!("cat /proc/{pid}/comm")), "sleep\n");
    sh(&sandbox, &format!("kill {pid}"));
    let deadline = Instant::now() + Duration::from_secs(20);
    while run(&sandbox, false, "pidof sleep").exit_code() == 0 {
        assert!(Instant::now() < deadline, "it lives on");
    }
    // The library returns the process id that commands see.
    let process = sandbox
        .command(["sleep", "1001"])
        .spawn()
        .expect("it starts");
    let pid = block_on(process.pid()).expect("it runs");
    works(&sandbox, false, &format!("kill -0 {pid} && kill {pid}"));
    assert!(block_on(process.wait()).is_ok());
}

/// Tries all ways to a process and its descriptors; prints `denied` if all fail. Ways that
/// the kernel lacks also fail.
const REACH: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
target = int(sys.argv[1])
if len(sys.argv) > 2:
    os.setgroups([]); os.setresgid(1000, 1000, 1000); os.setresuid(1000, 1000, 1000)
reached = []
def attempt(name, way):
    try:
        if way() is not False: reached.append(name)
    except OSError: pass
def write(path):
    with open(path, "wb", buffering=0) as f: f.write(b"forged\n")
for number in list(range(0, 12)) + [200]:
    attempt(f"fd {number}", lambda: write(f"/proc/{target}/fd/{number}"))
    attempt(f"link {number}", lambda: os.readlink(f"/proc/{target}/fd/{number}"))
attempt("mem", lambda: open(f"/proc/{target}/mem", "r+b"))
attempt("maps", lambda: open(f"/proc/{target}/maps").read() or False)
attempt("environ", lambda: open(f"/proc/{target}/environ").read() or False)
attempt("root", lambda: os.listdir(f"/proc/{target}/root/"))
attempt("cwd", lambda: os.listdir(f"/proc/{target}/cwd/"))
attempt("ptrace", lambda: libc.ptrace(16, target, 0, 0) == 0)
attempt("seize", lambda: libc.ptrace(0x4206, target, 0, 0) == 0)
pidfd = libc.syscall(434, target, 0)
for number in range(0, 12):
    attempt(f"getfd {number}", lambda: libc.syscall(438, pidfd, number, 0) >= 0)
attempt("setns", lambda: libc.setns(pidfd, 0x20000000) == 0)
attempt("pid setns", lambda: libc.setns(pidfd, 0x00020000) == 0)
print("denied" if not reached else reached)
"#;

#[test]
#[ignore = "needs the image"]
fn s3_no_command_speaks_for_another() {
    let sandbox = start();
    for target_is_root in [false, true] {
        let text = "echo real; sleep 1000; exit 7";
        let victim = command(&sandbox, target_is_root, text);
        let victim = victim.spawn().expect("it starts");
        let pid = block_on(victim.pid()).expect("it runs").to_string();
        for (root, more) in [(false, &[][..]), (true, &[]), (true, &["as the user"])] {
            let attacker = sandbox.command(["python3", "-c", REACH, &pid]);
            let attacker = more.iter().fold(attacker, |a, text| a.arg(text));
            let attacker = if root { attacker.root() } else { attacker };
            let output = block_on(attacker.timeout(TIMEOUT).output()).expect("it runs");
            let (text, errors) = (output.stdout_text(), output.stderr_text());
            assert_eq!(
                text, "denied\n",
                "{target_is_root} {root} {more:?} {errors}"
            );
        }
        // The same in the session, towards the session's shell.
        let script = REACH.replace('\'', "'\\''");
        let answer = sh(&sandbox, &format!("python3 -c '{script}' {pid}"));
        assert_eq!(answer, "denied\n");
        let shell = sh(&sandbox, "echo $$");
        for root in [false, true] {
            let attacker = sandbox.command(["python3", "-c", REACH, shell.trim()]);
            let attacker = if root { attacker.root() } else { attacker };
            let output = block_on(attacker.output()).expect("it runs");
            assert_eq!(output.stdout_text(), "denied\n", "{}", output.stderr_text());
        }
        victim.kill().expect("the guest runs");
        let mut seen = Vec::new();
        while let Some(chunk) = block_on(victim.next()).expect("it is killed") {
            seen.extend(chunk.bytes);
        }
        assert_eq!(seen, b"real\n");
    }
}

#[test]
#[ignore = "needs the image"]
fn s3_nothing_leads_to_the_agent() {
    let sandbox = start();
    for root in [false, true] {
        // The first process that commands see is not the agent, and is as well protected.
        let attacker = sandbox.command(["python3", "-c", REACH, "1"]);
        let attacker = if root { attacker.root() } else { attacker };
        let output = block_on(attacker.output()).expect("it runs");
        assert_eq!(output.stdout_text(), "denied\n", "{}", output.stderr_text());
        let agents = "cat /proc/[0-9]*/stat | grep -c agent99 | grep -q '^[01]$'";
        works(&sandbox, root, agents);
        fails(&sandbox, root, "ls /dev/vport*");
        // A device with its number can neither be created nor found elsewhere.
        let script = "import os\ntry:\n os.mknod('/tmp/p', 0o20666, os.makedev(1, 1))\n print('made')\nexcept OSError: print('denied')";
        denied(&sandbox, root, script);
    }
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
}

#[test]
#[ignore = "needs the image"]
fn s3_a_terminal_is_its_own_commands() {
    let sandbox = start();
    let shell = sandbox.shell(24, 80).spawn().expect("it starts");
    assert!(block_on(shell.pid()).is_some());
    for root in [false, true] {
        let text =
            "for t in /dev/pts/[0-9]* /dev/tty; do echo forged >$t; done 2>/dev/null; echo done";
        assert_eq!(works(&sandbox, root, text), "done\n");
    }
    block_on(shell.write(b"exit 3\n")).expect("it runs");
    let mut seen = String::new();
    while let Some(chunk) = block_on(shell.next()).expect("it runs") {
        seen.push_str(&String::from_utf8_lossy(&chunk.bytes));
    }
    assert!(!seen.contains("forged"), "{seen}");
    assert_eq!(block_on(shell.wait()).expect("it ends").exit_code(), 3);
}

#[test]
#[ignore = "needs the image"]
fn s6_nothing_that_a_command_does_stops_the_agent() {
    let sandbox = start();
    let hog = "x = []\nwhile True: x.append(bytearray(1 << 20))";
    let hog = sandbox.command(["python3", "-c", hog]).timeout(TIMEOUT);
    let output = block_on(hog.output()).expect("it is ended");
    assert!(output.out_of_memory());
    // Load, a fork bomb and a flood at once, for long enough that a silent agent would have
    // been noticed several times.
    let time = Duration::from_secs(8);
    let loads = [
        "sleep 1000 & f() { f | f & }; f; wait",
        "while :; do :; done",
        "cat /dev/zero | tr '\\0' x",
        "while :; do head -c 30000000 /dev/zero >/tmp/fill; rm /tmp/fill; done",
    ];
    let threads: Vec<_> = loads
        .into_iter()
        .enumerate()
        .map(|(number, text)| {
            let command = command(&sandbox, number % 2 == 1, text).timeout(time);
            thread::spawn(move || block_on(command.output_limit(1 << 40).output()))
        })
        .collect();
    let begin = Instant::now();
    for thread in threads {
        let error = thread.join().expect("no panic").expect_err("it never ends");
        assert_eq!(error.code, VmCode::TimedOut, "{error}");
    }
    let took = begin.elapsed();
    assert!(took < time + TIMEOUT, "{took:?}");
    assert_eq!(sh(&sandbox, "echo on"), "on\n");
    is_at_rest(&sandbox);
}

#[test]
#[ignore = "needs the image"]
fn s6_the_kernel_cannot_be_made_to_fail() {
    let sandbox = start();
    for root in [false, true] {
        let text = "echo 2 >/proc/sys/vm/panic_on_oom; echo 1 >/proc/sys/kernel/panic; kill -9 1; kill -SEGV 1; kill -9 -1; sleep 0.2; echo on";
        // It kills all processes that it may, which excludes itself.
        let output = run(&sandbox, root, text);
        assert_eq!(output.stdout_text(), "on\n", "{}", output.stderr_text());
        let hog = "import sys\nx = [bytearray(1 << 20) for _ in range(400)]";
        let hog = sandbox.command(["python3", "-c", hog]);
        let hog = if root { hog.root() } else { hog };
        let output = block_on(hog.output()).expect("it is ended");
        assert!(output.out_of_memory(), "{output:?}");
    }
    assert_eq!(
        works(&sandbox, false, "cat /proc/sys/vm/panic_on_oom"),
        "0\n"
    );
}

#[test]
#[ignore = "needs the image"]
fn s6_commands_that_do_not_start_say_why() {
    let sandbox = start();
    let error =
        |command: Command| -> VmError { block_on(command.output()).expect_err("it cannot") };
    let code = |error: &VmError| error.output.as_ref().map(|output| output.exit_code());
    let missing = error(sandbox.command(["no-such-command"]));
    assert_eq!(missing.code, VmCode::CannotStart);
    assert_eq!(code(&missing), Some(127), "{missing}");
    assert!(missing.text.contains("no-such-command"), "{missing}");
    let refused = error(sandbox.command(["/etc/passwd"]));
    assert_eq!(
        (refused.code, code(&refused)),
        (VmCode::CannotStart, Some(126))
    );
    for folder in ["/nowhere", "/etc/passwd", "/run/agent99"] {
        let lost = error(sandbox.command(["true"]).cwd(folder));
        assert_eq!(lost.code, VmCode::NoFolder, "{lost}");
        assert!(lost.text.contains(folder), "{lost}");
    }
    assert_eq!(run(&sandbox, true, "true").exit_code(), 0);
    let entered = sandbox.command(["pwd"]).root().cwd("/root").output();
    assert_eq!(block_on(entered).expect("it runs").stdout, b"/root\n");
}

/// A script that loses a process to the out-of-memory killer reports it, and continues.
#[test]
#[ignore = "needs the image"]
fn a_script_that_loses_a_process_for_want_of_memory_says_so() {
    let sandbox = start();
    let script = "python3 -c 'x = [bytearray(1 << 20) for _ in range(400)]'";
    let output = block_on(sandbox.exec(script)).expect("it ends");
    assert_eq!(output.exit_code(), 137);
    assert!(output.out_of_memory() && !output.session_reset());
    let output = block_on(sandbox.exec("sh -c 'kill -9 $$'")).expect("it ends");
    assert_eq!(output.exit_code(), 137);
    assert!(!output.out_of_memory());
}
