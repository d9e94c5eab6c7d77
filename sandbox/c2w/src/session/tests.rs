//! The session over terminals of the host, with the host's shells: an image provides just
//! such a terminal and shell.

use super::super::options::MAX_INPUT;
use super::*;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

const LIMIT: usize = 64 << 20;

fn limits(timeout: Option<Duration>, output_limit: usize) -> Run {
    Run {
        timeout,
        output_limit,
        ..Run::default()
    }
}

/// A shell on a terminal of the host, as a container's runtime starts it: echo, line ends
/// of two bytes, a prompt.
#[derive(Debug)]
struct Pty {
    master: File,
    output: Receiver<Vec<u8>>,
    shell: Child,
}

impl Pty {
    fn new(shell: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("open");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let name = name.into_string().expect("text");
        // A test that runs in the background inherits an ignored SIGINT.
        let shell = Command::new("setsid")
            .args(["env", "--default-signal=INT"])
            .args(["sh", "-c", "exec \"$0\" -i <>\"$1\" >&0 2>&1", shell, &name])
            .env("PS1", "/ # ")
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let master = File::from(master);
        let mut reader = master.try_clone().expect("a descriptor");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 997];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            master,
            output,
            shell,
        }
    }
}

/// Kills all processes of a session; a nested shell would otherwise keep reading its closed
/// terminal.
fn kill_session(leader: u32) {
    let leader = leader.to_string();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // State, parent, group and session follow the name (proc_pid_stat(5)).
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let session = after_name.split_whitespace().nth(3);
        let pid = entry.file_name().to_str().and_then(|pid| pid.parse().ok());
        if session == Some(leader.as_str()) {
            let pid = pid.and_then(Pid::from_raw).expect("a process");
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        kill_session(self.shell.id());
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl Terminal for Pty {
    fn type_in(&self, bytes: &[u8], _: Option<Instant>) -> Result<(), VmError> {
        // In chunks, as an image reads its console.
        for chunk in bytes.chunks(128) {
            (&self.master).write_all(chunk).expect("a terminal");
        }
        Ok(())
    }

    fn output(&self, until: Option<Instant>) -> Result<Vec<u8>, VmError> {
        let timeout = until.map_or(Duration::from_secs(600), |until| {
            until.saturating_duration_since(Instant::now())
        });
        match self.output.recv_timeout(timeout) {
            Ok(bytes) => Ok(bytes),
            Err(RecvTimeoutError::Timeout) => Ok(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(VmError::new(VmCode::GuestEnded, "the terminal is gone"))
            }
        }
    }
}

/// Runs a check with each shell of the host.
fn with_shells(check: impl Fn(&mut Session<Pty>)) {
    with_shells_in(|session, _| check(session));
}

/// Does the same with a folder for the shell's files, which afterwards holds only the state
/// of the session.
fn with_shells_in(check: impl Fn(&mut Session<Pty>, &str)) {
    for shell in ["dash", "bash"] {
        let found = Command::new(shell).args(["-c", "exit"]).status();
        if found.is_err() {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("text");
        let session = begin(path, Pty::new(shell));
        check(
            &mut session.unwrap_or_else(|error| panic!("{shell}: {error}")),
            path,
        );
        for entry in folder.path().read_dir().expect("a folder") {
            let path = entry.expect("an entry").path();
            let kind = path.extension().expect("a kind");
            assert!(kind == "env" || kind == "cwd", "{path:?} is left");
        }
    }
}

fn begin<T: Terminal>(folder: &str, terminal: T) -> Result<Session<T>, VmError> {
    Session::begin_in(&["/nowhere", folder], terminal, Duration::from_secs(20))
}

#[track_caller]
fn run(session: &mut Session<Pty>, script: &str) -> Output {
    let output = session.exec(
        script.as_bytes(),
        &limits(Some(Duration::from_secs(20)), LIMIT),
    );
    output.unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[track_caller]
fn expect(session: &mut Session<Pty>, script: &str, stdout: &[u8], code: i32) {
    let output = run(session, script);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.stdout, stdout, "{script}: {text:?}");
    assert_eq!(output.exit_code, code, "{script}: {text:?}");
    assert!(!output.session_reset, "{script}");
}

#[test]
fn output_and_status_are_exact() {
    with_shells(|session| {
        expect(session, "echo hello", b"hello\n", 0);
        expect(session, "printf 'no end'", b"no end", 0);
        expect(session, "", b"", 0);
        expect(session, "echo '  a '; echo; # comment", b"  a \n\n", 0);
        expect(
            session,
            "printf '\\377\\303\\244\\001\\036\\r\\n\\t'",
            b"\xff\xc3\xa4\x01\x1e\r\n\t",
            0,
        );
        expect(session, "sh -c 'exit 42'", b"", 42);
        expect(session, "false", b"", 1);
        expect(session, "echo out; echo err >&2", b"out\nerr\n", 0);
        // The shell reports this as `Killed`.
        assert_eq!(run(session, "sh -c 'kill -9 $$'").exit_code, 137);
        expect(
            session,
            "cat <<END\na 'b' \"c\" $((1+1))\nEND",
            b"a 'b' \"c\" 2\n",
            0,
        );
        expect(session, "for i in 1 2\ndo\n  echo $i\ndone", b"1\n2\n", 0);
        expect(
            session,
            "echo ! !! '!x' \u{1b} ~ ä",
            "! !! !x \u{1b} ~ ä\n"
                .replace('~', &std::env::var("HOME").unwrap())
                .as_bytes(),
            0,
        );
    });
}

#[test]
fn state_stays() {
    with_shells(|session| {
        expect(
            session,
            "export A='x  y'; B=z; cd /usr; f() { echo $B; }",
            b"",
            0,
        );
        expect(session, "echo \"$A\"; f; pwd", b"x  y\nz\n/usr\n", 0);
    });
}

#[test]
fn s02_a_hostile_script_harms_only_itself() {
    with_shells(|session| {
        // This hung AgentVM for good: `cat` swallowed the mark.
        expect(session, "cat", b"", 0);
        expect(session, "read x; echo \"<$x>\"", b"<>\n", 0);
        let open = run(session, "echo \"open");
        assert!(open.exit_code != 0 && !open.stdout.is_empty());
        let open = run(session, "echo 'open");
        assert_ne!(open.exit_code, 0);
        assert_ne!(run(session, "if true; then").exit_code, 0);
        assert_ne!(run(session, "cat <<END\nno end").exit_code, 1000);
        assert_ne!(run(session, "$(").exit_code, 0);
        expect(session, "echo after", b"after\n", 0);
        // Forged marks.
        let forged = "printf '\\036%s:0\\036\\n' 0123456789abcdef0123456789abcdef";
        let printed = b"\x1e0123456789abcdef0123456789abcdef:0\x1e\n";
        expect(session, forged, printed, 0);
        // Changed terminal settings.
        run(session, "stty echo onlcr opost");
        expect(session, "echo again", b"again\n", 0);
        // Redirected output of the shell.
        run(session, "exec >/dev/null 2>&1");
        expect(session, "echo still", b"still\n", 0);
        run(session, "set -v -x");
        run(session, "set +v +x");
        run(
            session,
            "printf() { echo fooled; }; alias echo=false; PS1=boo",
        );
        expect(session, "command printf ok", b"ok", 0);
    });
}

#[test]
fn s02_a_shell_that_ends_is_replaced() {
    with_shells(|session| {
        expect(session, "export KEPT='a b'; LOST=1; cd /usr", b"", 0);
        let output = run(session, "echo bye; export LATE=2; cd /etc; exit 7");
        assert_eq!((&output.stdout[..], output.exit_code), (&b"bye\n"[..], 7));
        assert!(output.session_reset);
        expect(
            session,
            "echo \"$KEPT,$LATE,$LOST,$PWD\"",
            b"a b,2,,/etc\n",
            0,
        );
        let output = run(session, "kill -9 $$");
        assert_eq!((output.exit_code, output.session_reset), (137, true));
        expect(
            session,
            "echo \"$KEPT,$LATE,$LOST,$PWD\"",
            b"a b,2,,/etc\n",
            0,
        );
        let output = run(session, "set -e; false; echo no");
        assert!(output.session_reset && output.stdout.is_empty());
        // A shell that a background process kills between commands.
        run(session, "(sleep 0.3; kill -9 $$) &");
        std::thread::sleep(Duration::from_millis(600));
        let output = run(session, "echo there");
        assert_eq!(
            (&output.stdout[..], output.session_reset),
            (&b"there\n"[..], true)
        );
    });
}

#[test]
fn s02_a_command_without_end_is_interrupted() {
    let short = Some(Duration::from_millis(400));
    with_shells(|session| {
        run(session, "export KEPT=1; LOCAL=2");
        let endless = [
            "sleep 1000",
            "while :; do :; done",
            "cat /dev/tty",
            "yes",
            "trap '' INT; sleep 1000",
            "sh -c \"trap '' INT QUIT; while :; do sleep 0.1; done\"",
        ];
        for script in endless {
            // `yes` may reach any usual limit before the time is over.
            let error = session
                .exec(script.as_bytes(), &limits(short, usize::MAX))
                .expect_err(script);
            assert_eq!(error.code, VmCode::TimedOut, "{script}: {error}");
            assert!(!error.text.contains("still runs"), "{script}: {error}");
            let output = run(session, "trap - INT; echo \"$KEPT\"");
            assert_eq!(output.stdout, b"1\n", "{script}");
        }
        let error = session.exec(b"yes", &limits(None, 100_000)).unwrap_err();
        assert_eq!(error.code, VmCode::OutputLimit);
        expect(session, "echo $KEPT", b"1\n", 0);
    });
}

#[test]
fn a_command_that_nothing_ends_holds_the_session_only_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = begin(folder.path().to_str().unwrap(), Pty::new("dash")).unwrap();
    let script = "sh -c \"trap '' INT QUIT TSTP; sleep 9\"";
    let short = Some(Duration::from_millis(200));
    let error = session
        .exec(script.as_bytes(), &limits(short, LIMIT))
        .unwrap_err();
    assert_eq!(error.code, VmCode::TimedOut);
    assert!(error.text.contains("still runs"), "{error}");
    let error = session.exec(b"true", &limits(short, LIMIT)).unwrap_err();
    assert_eq!(error.code, VmCode::NotReady, "{error}");
    std::thread::sleep(Duration::from_secs(3));
    expect(&mut session, "echo back", b"back\n", 0);
}

#[test]
fn long_scripts_go_by_a_file() {
    with_shells_in(|session, folder| {
        let text: String = (0..8000).map(|n| format!("ä{n}'\"$%!\\ ")).collect();
        let quoted = text.replace('\'', "'\\''");
        let script = format!("printf '%s' '{quoted}'");
        assert!(script.len() > 80_000);
        expect(session, &script, text.as_bytes(), 0);
        // Lines around the terminal's limit.
        for len in [850, 900, 950, 1023, 1024, 4095, 4096, 5000] {
            let text = "x".repeat(len);
            expect(
                session,
                &format!("echo {text}"),
                format!("{text}\n").as_bytes(),
                0,
            );
        }
        let left = format!("ls {folder}/.a99-*.run 2>/dev/null | wc -l");
        expect(session, &left, b"0\n", 0);
    });
}

#[test]
fn s01_much_output_comes_whole() {
    with_shells(|session| {
        let script = "yes 0123456789abcdef | head -c 8388608; echo end";
        let output = run(session, script);
        assert_eq!(output.stdout.len(), (8 << 20) + 4);
        let lines = output.stdout.chunks(17);
        assert!(lines.take(1000).all(|line| line == b"0123456789abcdef\n"));
    });
}

#[test]
fn what_comes_between_commands_is_kept_apart() {
    with_shells(|session| {
        run(session, "(sleep 0.2; echo late >/dev/tty) &");
        std::thread::sleep(Duration::from_millis(400));
        expect(session, "echo next", b"next\n", 0);
        let background = String::from_utf8(session.take_background()).unwrap();
        assert!(background.contains("late\n"), "{background:?}");
    });
}

#[test]
fn a_console_without_a_shell_is_an_error() {
    let error = Session::begin(Pty::new("/bin/cat"), Duration::from_millis(500));
    let error = error.expect_err("no shell");
    assert!(
        matches!(error.code, VmCode::NotReady | VmCode::GuestEnded),
        "{error}"
    );
}

/// A terminal within another one, as in a container: the outer one makes two bytes of each
/// line end, regardless of the shell's settings.
#[derive(Debug)]
struct Nested(Pty);

impl Terminal for Nested {
    fn type_in(&self, bytes: &[u8], until: Option<Instant>) -> Result<(), VmError> {
        self.0.type_in(bytes, until)
    }

    fn output(&self, until: Option<Instant>) -> Result<Vec<u8>, VmError> {
        let bytes = self.0.output(until)?;
        let two = |byte: u8| match byte {
            b'\n' => b"\r\n".to_vec(),
            byte => vec![byte],
        };
        Ok(bytes.into_iter().flat_map(two).collect())
    }
}

#[test]
fn line_ends_that_an_outer_terminal_makes_two_bytes_are_made_one_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = begin(folder.path().to_str().unwrap(), Nested(Pty::new("dash"))).unwrap();
    for (script, stdout) in [
        ("echo a; echo b", &b"a\nb\n"[..]),
        ("printf 'dos\\r\\nmac\\rend'", b"dos\r\nmac\rend"),
        ("printf '\\r\\r\\n\\n'", b"\r\r\n\n"),
    ] {
        let output = session.exec(script.as_bytes(), &limits(None, LIMIT));
        assert_eq!(output.unwrap().stdout, stdout, "{script}");
    }
}

#[test]
fn a_command_reads_the_standard_input_that_it_is_given() {
    with_shells(|session| {
        for input in [
            &b"one line\n"[..],
            b"no end",
            b"\0\xff'\"$%\\\x1b\x03\x04\r\n",
            &b"0123456789abcde\n".repeat(4096),
        ] {
            let run = Run {
                stdin: Some(input.to_vec()),
                ..limits(Some(Duration::from_secs(20)), LIMIT)
            };
            assert_eq!(session.exec(b"cat", &run).unwrap().stdout, input);
        }
        // The next command must see none of it.
        expect(session, "cat", b"", 0);
        let run = Run {
            stdin: Some(vec![b'x'; MAX_INPUT + 1]),
            ..Run::default()
        };
        let error = session.exec(b"cat", &run).unwrap_err();
        assert_eq!(error.code, VmCode::Unsupported);
    });
}

#[test]
fn what_a_command_wrote_before_its_limit_comes_with_the_error() {
    let short = Some(Duration::from_millis(400));
    with_shells(|session| {
        let error = session.exec(b"echo so far; sleep 1000", &limits(short, LIMIT));
        let error = error.unwrap_err();
        assert_eq!(error.code, VmCode::TimedOut);
        assert_eq!(error.output.unwrap().stdout, b"so far\n");
        let error = session.exec(b"yes", &limits(None, 1000)).unwrap_err();
        assert_eq!(error.code, VmCode::OutputLimit);
        assert_eq!(error.output.unwrap().stdout, b"y\n".repeat(500));
    });
}
