//! container2wasm images at work: our test program that behaves like one (`c2w_image`),
//! with the checks of AgentVM's tests and one for each of its faults on this path.

use crate::alone::alone;
use crate::common::{IMAGE, Network, limits, module, run, start, text};
use a99_sandbox::c2w::{Machine, Mount, Options, Run, Source};
use a99_sandbox::vm::VmCode;
use a99_sandbox::{ExecOptions, MountMode, Sandbox, block_on};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn mount(guest: &str, host: &Path) -> Mount {
    Mount {
        guest: guest.to_owned(),
        host: host.to_owned(),
        ..Mount::default()
    }
}

fn short() -> Run {
    Run {
        timeout: Some(Duration::from_millis(300)),
        ..Run::default()
    }
}

#[test]
fn commands_give_exact_bytes_and_codes() {
    let machine = start(Options::default());
    let output = run(&machine, "echo hello");
    assert_eq!((&output.stdout[..], output.exit_code), (&b"hello\n"[..], 0));
    assert!(output.stderr.is_empty() && !output.session_reset);
    // AgentVM trimmed output and returned two-byte line ends.
    assert_eq!(
        run(&machine, "printf '  a\\n\\nb \\n'").stdout,
        b"  a\n\nb \n"
    );
    assert_eq!(run(&machine, "printf 'a\\r\\n'").stdout, b"a\r\n");
    assert_ne!(run(&machine, "ls /nonexistent").exit_code, 0);
    assert_eq!(run(&machine, "eval false").exit_code, 1);
    text(&machine, "export MYVAR=foobar; cd /tmp");
    assert_eq!(text(&machine, "echo $MYVAR $PWD"), "foobar /tmp\n");
    // The emulator's own messages are separate; the guest's are not.
    let output = run(&machine, "complain oh; no_such_program");
    assert_eq!((&output.stderr[..], output.exit_code), (&b"oh\n"[..], 127));
    assert_eq!(output.stdout, b"sh: no_such_program: not found\n");
    machine.stop();
}

#[test]
fn a_sandbox_may_be_such_an_image() {
    let (_folder, image) = module("tests/c2w_image/image.rs");
    let sandbox = Sandbox::builder().image(&image).start_blocking().unwrap();
    let exec = |script: &str, options: ExecOptions| block_on(sandbox.exec_with(script, options));
    let output = exec(
        "export A=kept; echo hello; eval false",
        ExecOptions::default(),
    )
    .unwrap();
    assert_eq!(
        (&output.stdout[..], output.exit_code()),
        (&b"hello\n"[..], 1)
    );
    let limit = |millis| ExecOptions {
        timeout: Some(Duration::from_millis(millis)),
        ..ExecOptions::default()
    };
    let error = exec("sleep 100", limit(300)).unwrap_err();
    assert_eq!(error.code, VmCode::TimedOut);
    let output = exec("echo $A", limit(30_000)).unwrap();
    assert_eq!(output.stdout, b"kept\n");
    // Standard input is typed, so its size is limited.
    let much = vec![b'x'; a99_sandbox::c2w::MAX_INPUT + 1];
    let stdin = sandbox.command(["cat"]).stdin(much);
    let error = block_on(stdin.output()).unwrap_err();
    assert_eq!(error.code, VmCode::Unsupported);
    block_on(sandbox.stop());
    let error = exec("echo late", ExecOptions::default()).unwrap_err();
    assert_eq!(error.code, VmCode::Stopped);
    let overlay = MountMode::Overlay;
    let refused = Sandbox::builder()
        .image(&image)
        .mount("/x", "/usr", overlay)
        .start_blocking();
    assert_eq!(refused.unwrap_err().code, VmCode::Unsupported);
}

#[test]
fn s03_codes_and_characters_are_whole_however_they_are_cut() {
    let machine = start(Options::default());
    for code in 0..200 {
        // In a child, so that the session's shell stays.
        let output = run(
            &machine,
            &format!("f() {{ [ {code} = 0 ]; }}; f; a=$?; echo ä{code}; [ $a = 0 ]"),
        );
        assert_eq!(output.exit_code, i32::from(code != 0));
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            format!("ä{code}\n")
        );
    }
    // 0x01 is the emulator's escape: it is doubled on input.
    assert_eq!(
        run(&machine, "echo '\u{1}x\u{1}\u{1}'").stdout,
        b"\x01x\x01\x01\n"
    );
}

#[test]
fn s02_a_hostile_command_harms_only_itself() {
    let machine = start(Options::default());
    // AgentVM's faults: each hung for good, or ended the machine.
    assert_eq!(run(&machine, "cat").exit_code, 0);
    assert_eq!(run(&machine, "echo \"open").exit_code, 2);
    assert_eq!(run(&machine, "echo 'open").exit_code, 2);
    assert_eq!(
        text(&machine, "echo '\u{1e}abc:0\u{1e}'"),
        "\u{1e}abc:0\u{1e}\n"
    );
    text(&machine, "stty echo onlcr opost");
    assert_eq!(text(&machine, "echo plain"), "plain\n");
    for endless in [
        "sleep 1000",
        "cat /dev/tty",
        "yes no",
        "while :; do true; done",
    ] {
        let began = Instant::now();
        let error = machine.exec(endless, &short()).expect_err(endless);
        assert_eq!(error.code, VmCode::TimedOut, "{endless}: {error}");
        assert!(!error.text.contains("still runs"), "{endless}: {error}");
        assert!(began.elapsed() < Duration::from_secs(10), "{endless}");
        assert_eq!(text(&machine, "echo back"), "back\n", "{endless}");
    }
}

#[test]
fn s02_a_shell_that_ends_is_replaced() {
    let machine = start(Options::default());
    text(&machine, "export KEPT=\"it's\"; LOST=1; cd /tmp");
    let output = run(&machine, "echo bye; exit 7");
    assert_eq!((&output.stdout[..], output.exit_code), (&b"bye\n"[..], 7));
    assert!(output.session_reset);
    assert_eq!(text(&machine, "echo \"$KEPT,$LOST,$PWD\""), "it's,,/tmp\n");
    let output = run(&machine, "kill -9 $$");
    assert_eq!((output.exit_code, output.session_reset), (137, true));
    assert_eq!(text(&machine, "echo \"$KEPT,$PWD\""), "it's,/tmp\n");
}

#[test]
fn s01_a_flood_ends_in_an_error_and_costs_what_it_is() {
    let machine = start(Options::default());
    let limit = Run {
        output_limit: 1 << 20,
        ..limits()
    };
    let error = machine.exec("yes flood", &limit).unwrap_err();
    assert_eq!(error.code, VmCode::OutputLimit);
    // AgentVM took quadratic time: 37 s for this.
    let began = Instant::now();
    let output = run(&machine, "flood 8192");
    assert_eq!(output.stdout.len(), 8 << 20);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn long_commands_go_by_a_file() {
    let machine = start(Options::default());
    for len in [800, 900, 1000, 4095, 4096, 20_000] {
        let word = "ä".repeat(len / 2);
        assert_eq!(
            text(&machine, &format!("echo '{word}'")),
            format!("{word}\n")
        );
    }
    let error = machine.exec(b"echo \0", &limits()).unwrap_err();
    assert_eq!(error.code, VmCode::BadOption);
}

#[test]
fn mounts_are_folders_of_the_host() {
    let host = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(host.path().join("one/two")).unwrap();
    std::fs::write(host.path().join("file"), "of the host").unwrap();
    std::fs::write(host.path().join("one/two/deep"), "deep").unwrap();
    for index in 0..1000 {
        std::fs::write(host.path().join(format!("one/{index:03}")), "").unwrap();
    }
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("secret"), "s").unwrap();
    std::os::unix::fs::symlink(secret.path(), host.path().join("out")).unwrap();
    let read_only = Mount {
        read_only: true,
        ..mount("/ro", host.path())
    };
    let options = Options {
        mounts: vec![mount("/mnt/data", host.path()), read_only],
        ..Options::default()
    };
    let machine = start(options);
    assert_eq!(text(&machine, "ls /mnt/data"), "file\none\nout\n");
    assert_eq!(
        text(&machine, "cat /mnt/data/file /ro/one/two/deep"),
        "of the hostdeep"
    );
    assert_eq!(text(&machine, "ls /ro/one").lines().count(), 1001);
    text(&machine, "echo written >/mnt/data/one/new");
    let new = host.path().join("one/new");
    assert_eq!(std::fs::read(&new).unwrap(), b"written\n");
    assert_ne!(run(&machine, "echo no >/ro/one/new").exit_code, 0);
    assert_ne!(run(&machine, "rm /ro/file").exit_code, 0);
    assert_ne!(run(&machine, "cat /mnt/data/out/secret").exit_code, 0);
    assert_ne!(run(&machine, "echo x >/mnt/data/out/new").exit_code, 0);
    assert_ne!(run(&machine, "cat /mnt/data/../../etc/passwd").exit_code, 0);
    text(&machine, "rm /mnt/data/one/new");
    assert!(!new.exists());
}

#[test]
fn network_and_mounts_work_together() {
    // AgentVM used descriptors 3 and 4 for both, and had no network with another MAC.
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("file"), "x").unwrap();
    let options = Options {
        mounts: vec![mount("/a", host.path()), mount("/b", host.path())],
        network: Some(Box::new(Network::default())),
        mac: Some([0x02, 0xaa, 0xbb, 0, 0, 0x7f]),
        ..Options::default()
    };
    let machine = start(options);
    assert_eq!(text(&machine, "lease"), "02:aa:bb:00:00:7f 192.168.127.3\n");
    assert_eq!(text(&machine, "cat /a/file /b/file"), "xx");
    text(&machine, "bounce 300");
    // A silent network does not end the machine.
    text(&machine, "sleep 0.3");
    text(&machine, "bounce 3");
    assert_eq!(text(&machine, "cat /a/file"), "x");
}

#[test]
fn frames_do_not_wait_for_the_console() {
    let options = Options {
        network: Some(Box::new(Network::default())),
        ..Options::default()
    };
    let machine = start(options);
    let began = Instant::now();
    text(&machine, "bounce 500");
    // Each would take up to 10 ms if waits were not cut short.
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn options_reach_the_image() {
    let host = tempfile::tempdir().unwrap();
    let options = Options {
        env: vec![("A".to_owned(), "b c".to_owned())],
        args: vec!["sh".to_owned(), "-x y".to_owned()],
        entrypoint: Some("/bin/entry".to_owned()),
        mounts: vec![mount("/mnt/data", host.path())],
        ..Options::default()
    };
    let machine = start(options);
    let info = text(&machine, "info");
    let lines: Vec<_> = info
        .lines()
        .filter(|line| !line.starts_with("t: "))
        .collect();
    let expected = [
        "e: /bin/entry",
        "c: sh -x\\ y",
        "env: A=b c",
        "env: TERM=dumb",
        "m: /mnt/data",
    ];
    assert_eq!(lines, expected);
    let seconds: u64 = text(&machine, "date").trim().parse().unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(now.as_secs().abs_diff(seconds) <= 2);
    // One byte too many is refused here, not in the middle of a start.
    let too_long = Options {
        env: vec![("A".to_owned(), "x".repeat(1024))],
        ..Options::default()
    };
    let error = Machine::start(&IMAGE, too_long).unwrap_err();
    assert_eq!(error.code, VmCode::InfoTooLong);
    // The longest allowed text is accepted by the image.
    let used: usize = "t: 0000000000\nenv: A=\nenv: TERM=dumb\n".len();
    let longest = Options {
        env: vec![("A".to_owned(), "x".repeat(1024 - used))],
        ..Options::default()
    };
    start(longest);
}

#[test]
fn an_interactive_console_is_the_callers() {
    let printed = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&printed);
    let on_output = Box::new(move |source, bytes: &[u8]| {
        assert_eq!(source, Source::Console);
        theirs.lock().unwrap().extend(bytes);
    });
    let machine = Machine::interactive(&IMAGE, Options::default(), on_output).unwrap();
    let wait_for = |wanted: &str| {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let text = String::from_utf8_lossy(&printed.lock().unwrap()).into_owned();
            if text.contains(wanted) {
                return text;
            }
            assert!(Instant::now() < until, "{text:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for("/ # ");
    machine.write_to_stdin(b"echo \x7f $TERM x\x01y\n").unwrap();
    wait_for("xterm-256color x\x01y\r\n");
    machine.write_to_stdin(b"sleep 100\n\x03").unwrap();
    machine.write_to_stdin(b"echo still $?\n").unwrap();
    wait_for("still 130\r\n");
    let error = machine.exec("true", &limits()).unwrap_err();
    assert_eq!(error.code, VmCode::Unsupported);
    assert_eq!(
        machine.resize(120, 40).unwrap_err().code,
        VmCode::Unsupported
    );
    machine.write_to_stdin(b"exit 3\n").unwrap();
    let ended = machine
        .wait(Some(Duration::from_secs(10)))
        .expect("it ends");
    assert_eq!(ended.code, VmCode::GuestEnded);
    assert_eq!(
        machine.write_to_stdin(b"x").unwrap_err().code,
        VmCode::GuestEnded
    );
}

#[test]
fn a_machine_for_commands_keeps_its_console() {
    let machine = start(Options::default());
    let error = machine.write_to_stdin(b"x").unwrap_err();
    assert_eq!(error.code, VmCode::Unsupported);
    let ended = run(&machine, "echo on").exit_code;
    assert_eq!(ended, 0);
}

#[test]
fn an_idle_machine_rests() {
    if !alone(module_path!(), "an_idle_machine_rests") {
        return;
    }
    let machine = start(Options::default());
    let used = || {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<_> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    text(&machine, "true");
    // Other tests run in this process at the same time: take the best of some tries.
    let least = (0..40)
        .map(|_| {
            let before = used();
            std::thread::sleep(Duration::from_millis(500));
            used() - before
        })
        .find(|&ticks| ticks <= 10);
    assert!(least.is_some(), "more than 20 % of a processor");
}
