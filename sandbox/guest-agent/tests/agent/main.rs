//! Tests of the agent's program over a socket, with real processes and terminals.
#![cfg(target_os = "linux")]

mod host;

use host::*;

use a99_sandbox_protocol::{
    Ending, Exec, PtySize, Reason, Report, Request, Resume, Stream, WINDOW_BYTES,
};
use std::process::Command;

#[test]
fn a_command_gives_exact_bytes_and_its_code() {
    let mut host = Host::new();
    let state = host.run(&sh(r"printf '\0\377 \n'; printf 'err\r\n' >&2; exit 7"));
    assert_eq!(state.stdout, b"\0\xff \n");
    assert_eq!(state.stderr, b"err\r\n");
    assert_eq!(state.exited().ending, Ending::Code(7));
    let state = host.run(&sh("kill -TERM $$"));
    assert_eq!(state.exited().ending, Ending::Signal(15));
    // Standard input is empty.
    host.run(&Request::Exec(exec(&["cat"]))).assert("", 0);
}

#[test]
fn environment_and_directory_are_given() {
    let mut host = Host::new();
    let mut command = exec(&["sh", "-c", "echo \"$A|$PATH|$PWD\""]);
    command.env = vec![
        (b"A".to_vec(), b"1 2".to_vec()),
        (b"PATH".to_vec(), b"/bin".to_vec()),
    ];
    command.clear_env = true;
    command.cwd = Some(b"/usr".to_vec());
    host.run(&Request::Exec(command))
        .assert("1 2|/bin|/usr\n", 0);
}

#[test]
fn what_cannot_start_says_why() {
    let mut host = Host::new();
    for (request, reason, errno, part) in [
        (
            Request::Exec(exec(&["/nonexistent/x"])),
            Reason::NotFound,
            2,
            "run /nonexistent/x",
        ),
        (
            Request::Exec(exec(&["no-such-command"])),
            Reason::NotFound,
            2,
            "run no-such-command",
        ),
        (
            Request::Exec(exec(&["/etc"])),
            Reason::NotExecutable,
            13,
            "run /etc",
        ),
        (
            Request::Exec(Exec::default()),
            Reason::Other,
            0,
            "no program",
        ),
        (
            Request::Exec(Exec {
                cwd: Some(b"/nowhere".to_vec()),
                ..exec(&["true"])
            }),
            Reason::Folder,
            2,
            "directory /nowhere",
        ),
    ] {
        let state = host.run(&request);
        let (why, number, text) = state.end.expect("ended").expect_err("cannot start");
        assert_eq!((why, number), (reason, errno), "{text}");
        assert!(text.contains(part), "{text}");
    }
    host.run(&sh("echo fine")).assert("fine\n", 0);
}

#[test]
fn input_goes_through_without_loss() {
    let mut host = Host::new();
    let mut command = exec(&["cat"]);
    command.stdin = true;
    let id = host.start(&Request::Exec(command));
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
    host.feed(id, &bytes);
    let state = host.finish(id);
    assert!(
        state.stdout == bytes,
        "{} bytes of {}",
        state.stdout.len(),
        bytes.len()
    );
}

/// Also if the buffer never empties, sent bytes are freed.
#[test]
fn s2_long_streams_take_no_memory() {
    let mut host = Host::new();
    // It is slower than its writer, so that bytes are always pending.
    let mut command = exec(&["sh", "-c", "od -v >/dev/null; echo done"]);
    command.stdin = true;
    let id = host.start(&Request::Exec(command));
    host.feed(id, &vec![7; 24 << 20]);
    host.finish(id).assert("done\n", 0);
    let state = host.run(&sh("yes | head -c 100000000"));
    assert_eq!(state.stdout.len(), 100_000_000);
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.agent.id()));
    let status = status.expect("it runs");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most = most.and_then(|most| most.trim().split(' ').next()?.parse::<u64>().ok());
    let most = most.expect("kilobytes");
    assert!(most < 16 << 10, "{most} kB");
}

#[test]
fn a_command_that_reads_no_more_takes_all_input() {
    let mut host = Host::new();
    let mut command = exec(&["sh", "-c", "head -c 3; exec <&-; sleep 0.2"]);
    command.stdin = true;
    let id = host.start(&Request::Exec(command));
    host.feed(id, &vec![b'x'; 2_000_000]);
    host.finish(id).assert("xxx", 0);
}

#[test]
fn an_output_that_nobody_takes_blocks_no_other() {
    let mut host = Host::new();
    let yes = host.start(&Request::Exec(exec(&["yes"])));
    host.starved.push(yes);
    while host.commands[&yes].stdout.len() < WINDOW_BYTES as usize {
        host.step();
    }
    host.run(&sh("echo on; echo other >&2")).assert("on\n", 0);
    host.script("echo session").assert("session\n", 0);
    assert_eq!(host.commands[&yes].stdout.len(), WINDOW_BYTES as usize);
    // With credit it continues where it stopped.
    host.send(yes, &Request::Credit(Stream::Stdout, 5));
    while host.commands[&yes].stdout.len() < WINDOW_BYTES as usize + 5 {
        host.step();
    }
    host.send(yes, &Request::Kill);
    host.send(yes, &Request::Credit(Stream::Stdout, 1 << 20));
    let state = host.finish(yes);
    assert_eq!(state.exited().ending, Ending::Signal(9));
    assert!(state.stdout.chunks(2).all(|line| line.starts_with(b"y")));
}

#[test]
fn commands_run_side_by_side() {
    let mut host = Host::new();
    let slow = host.start(&sh("sleep 0.3; echo slow"));
    host.run(&sh("echo fast")).assert("fast\n", 0);
    assert!(host.commands[&slow].end.is_none());
    host.finish(slow).assert("slow\n", 0);
}

#[test]
fn more_commands_run_than_the_soft_limit_has_descriptors_for() {
    let few = "ulimit -Sn 100; exec \"$0\" --stdin";
    let mut host = Host::of(Command::new("sh").args(["-c", few, AGENT]));
    let mut waiting = exec(&["sh", "-c", "read _; ulimit -n"]);
    waiting.stdin = true;
    let waiting = Request::Exec(waiting);
    let ids: Vec<u64> = (0..100).map(|_| host.start(&waiting)).collect();
    host.run(&sh("ulimit -n")).assert("100\n", 0);
    host.script("ulimit -n").assert("100\n", 0);
    for id in ids {
        host.feed(id, b"go\n");
        host.finish(id).assert("100\n", 0);
    }
}

#[test]
fn a_background_child_delays_no_end() {
    let mut host = Host::new();
    host.run(&sh("sleep 100 & echo main")).assert("main\n", 0);
    host.run(&sh("setsid sleep 3 & echo main"))
        .assert("main\n", 0);
}

#[test]
fn signals_and_kill_reach_the_group() {
    let mut host = Host::new();
    let id = host.start(&sh(
        "trap 'echo caught; exit 3' INT; echo ready; sleep 100 & wait",
    ));
    while host.commands[&id].stdout != b"ready\n" {
        host.step();
    }
    host.send(id, &Request::Signal(2));
    host.finish(id).assert("ready\ncaught\n", 3);
    let id = host.start(&sh("sleep 100; echo never"));
    host.send(id, &Request::Kill);
    assert_eq!(host.finish(id).exited().ending, Ending::Signal(9));
}

#[test]
fn a_command_inherits_no_ignored_signal() {
    // `nohup` and a shell's background jobs do this to their children.
    let ignoring = "trap '' HUP INT QUIT TERM USR1; exec \"$0\" --stdin";
    let mut host = Host::of(Command::new("sh").args(["-c", ignoring, AGENT]));
    let status = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
    host.run(&sh(status)).assert(none, 0);
    host.script(status).assert(none, 0);
    let id = host.start(&sh("kill -INT $$; echo survived"));
    assert_eq!(host.finish(id).exited().ending, Ending::Signal(2));
}

#[test]
fn a_terminal_is_one() {
    let mut host = Host::new();
    let mut command = exec(&[
        "sh",
        "-c",
        "test -t 0 && test -t 2 && stty size; read x; echo got $x; cat; stty size",
    ]);
    command.pty = Some(PtySize {
        rows: 30,
        cols: 100,
    });
    let id = host.start(&Request::Exec(command));
    while !host.commands[&id].stdout.ends_with(b"30 100\r\n") {
        host.step();
    }
    host.send(id, &Request::Resize(PtySize { rows: 5, cols: 6 }));
    host.send(id, &Request::Stdin(b"abc\n".to_vec()));
    while !host.commands[&id].stdout.ends_with(b"got abc\r\n") {
        host.step();
    }
    host.send(id, &Request::StdinEnd);
    host.finish(id)
        .assert("30 100\r\nabc\r\ngot abc\r\n5 6\r\n", 0);
}

#[test]
fn control_c_interrupts_what_runs_on_a_terminal() {
    let mut host = Host::new();
    let mut command = exec(&["cat"]);
    command.pty = Some(PtySize { rows: 24, cols: 80 });
    let id = host.start(&Request::Exec(command));
    host.send(id, &Request::Stdin(b"a\n".to_vec()));
    while host.commands[&id].stdout != b"a\r\na\r\n" {
        host.step();
    }
    host.send(id, &Request::Stdin(b"\x03".to_vec()));
    assert_eq!(host.finish(id).exited().ending, Ending::Signal(2));
}

#[test]
fn the_session_keeps_its_state() {
    let mut host = Host::new();
    host.script("export A='x  y'; B=2; cd /usr; f() { echo f$1; }; alias echo='echo alias'")
        .assert("", 0);
    let state = host.script("echo \"$A|$B|$PWD\"; f 1; (exit 4)");
    assert_eq!(state.exited().ending, Ending::Code(4));
    assert!(state.text().contains("x  y|2|/usr\n"), "{state:?}");
    assert!(!state.exited().session_reset);
    let state = host.script("printf a; printf b >&2; cat; printf c");
    state.assert("ac", 0);
    assert_eq!(state.stderr, b"b");
    // So do its arguments: scripts do not run inside a function.
    host.script("set -- one 'two words'").assert("", 0);
    host.script("shift; printf '%s|' $# \"$@\" $?")
        .assert("1|two words|0|", 0);
}

#[test]
fn a_broken_script_harms_only_itself() {
    let mut host = Host::new();
    host.script("K=kept").assert("", 0);
    for (text, stdout) in [
        ("echo 'open quote", ""),
        ("echo before\nif true; then", "before\n"),
        ("echo \"$(", ""),
        ("return 2; echo never", ""),
        ("break 3; continue; echo on; false", "on\n"),
        ("exec >/dev/null; echo lost; false", ""),
        ("read x; echo \"<$x>\"; false", "<>\n"),
        ("cat <<EOF; false\nheredoc\nEOF", "heredoc\n"),
        ("${unset_variable?is not set}", ""),
        ("printf 'S0\\0\\0'; false", "S0\0\0"),
        (
            "printf() { false; }; export() { false; }; command() { false; }; unset -f printf export command; false",
            "",
        ),
    ] {
        let state = host.script(text);
        assert_eq!(state.text(), stdout, "{text}");
        assert_ne!(state.exited().ending, Ending::Code(0), "{text}");
        assert!(!state.exited().session_reset, "{text}");
    }
    host.script("echo $K").assert("kept\n", 0);
}

#[test]
fn an_error_in_a_subshell_ends_the_subshell() {
    let mut host = Host::new();
    host.script("K=kept").assert("", 0);
    for (text, stdout) in [
        ("( : ${none?such}; echo in ); echo $?", "2\n"),
        ("echo | : ${none?such}; echo $?", "2\n"),
        ("echo | ( echo in | : ${none?such} ); echo $?", "2\n"),
        ("( : ${none?such} ) & wait $!; echo $?", "2\n"),
        ("f() { : ${none?such}; }; echo \"$(f)\" on", " on\n"),
        (
            "( . /no/such/file ); echo $?; ( eval if ); echo $?",
            "2\n2\n",
        ),
        ("( exec </no/such/file ) || echo $(( $? > 0 ))", "1\n"),
        ("readonly OPTIND; ( getopts a x -a ); echo $?", "2\n"),
        ("( set -u; true; echo $none ); echo $?", "2\n"),
        ("( trap 'echo out; exit 0' EXIT; : ${none?such} )", "out\n"),
    ] {
        let state = host.script(text);
        state.assert(stdout, 0);
        assert!(!state.exited().session_reset, "{text}");
        // None of them answers for the shell, or takes its next line.
        for _ in 0..3 {
            host.script("echo $K").assert("kept\n", 0);
        }
    }
}

#[test]
fn a_shell_that_ends_is_replaced() {
    let mut host = Host::new();
    host.script("export A=\"it's\"; cd /usr/bin").assert("", 0);
    for (text, ending) in [
        ("echo out; export B=2; cd /usr; exit 3", Ending::Code(3)),
        ("set -e; echo out; false; echo never", Ending::Code(1)),
        ("echo out; kill -9 $$", Ending::Signal(9)),
        ("exec echo out", Ending::Code(0)),
    ] {
        let state = host.script(text);
        assert_eq!(state.text(), "out\n", "{text}");
        assert_eq!(state.exited().ending, ending, "{text}");
        assert!(state.exited().session_reset, "{text}");
        let state = host.script("echo \"$A|$B|$PWD\"");
        state.assert("it's|2|/usr\n", 0);
        assert!(!state.exited().session_reset);
    }
}

#[test]
fn a_script_can_be_killed_and_signalled() {
    let mut host = Host::new();
    host.script("cd /usr").assert("", 0);
    let id = host.start(&script("echo begun; while :; do :; done"));
    while host.commands[&id].stdout != b"begun\n" {
        host.step();
    }
    host.send(id, &Request::Kill);
    let exited = host.finish(id).exited();
    assert_eq!(
        (exited.ending, exited.session_reset),
        (Ending::Signal(9), true)
    );
    host.script("pwd").assert("/usr\n", 0);
}

#[test]
fn scripts_run_one_at_a_time() {
    let mut host = Host::new();
    let id = host.start(&script("sleep 0.2; echo first"));
    let state = host.script("echo second");
    let (_, _, text) = state.end.expect("ended").expect_err("busy");
    assert!(text.contains("another script"), "{text}");
    host.finish(id).assert("first\n", 0);
}

#[test]
fn output_of_background_jobs_stays_with_its_script() {
    let mut host = Host::new();
    host.script("{ sleep 0.2; echo late; echo done >/dev/null; } & echo now")
        .assert("now\n", 0);
    host.script("sleep 0.4; echo next; jobs >/dev/null; wait; echo $?")
        .assert("next\n0\n", 0);
}

#[test]
fn much_output_of_a_script_arrives_whole() {
    let mut host = Host::new();
    let state = host.script("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done");
    let expected: String = (0..20000).map(|n| format!("{n}\n")).collect();
    state.assert(&expected, 0);
    let long = format!("echo {}", "x".repeat(500_000));
    assert_eq!(host.script(&long).stdout.len(), 500_001);
}

#[test]
fn it_ends_with_the_host() {
    let mut host = Host::new();
    host.script("echo hi").assert("hi\n", 0);
    host.stream
        .shutdown(std::net::Shutdown::Write)
        .expect("shutdown");
    assert!(host.agent.wait().expect("it ends").success());
}

#[test]
fn a_restored_guest_ends_what_ran_and_keeps_its_session() {
    let mut host = Host::new();
    host.script("export KEPT=yes").assert("", 0);
    let running = [
        host.start(&script("echo on; sleep 1000")),
        host.start(&Request::Exec(exec(&["sleep", "1000"]))),
    ];
    // Both run: one reported its process, the other produced output.
    assert_ne!(host.step(), host.step());
    let resume = Resume {
        env: vec![(b"GIVEN".to_vec(), b"it's".to_vec())],
        interrupt: true,
        ..Resume::default()
    };
    host.send(0, &Request::Resume(Box::new(resume)));
    let resumed = Report::Resumed {
        failure: None,
        interrupted: 2,
    };
    assert_eq!(host.report(), (0, resumed));
    let state = host.script("echo $KEPT $GIVEN");
    state.assert("yes it's\n", 0);
    assert!(state.exited().session_reset);
    assert!(!host.script("echo $KEPT").exited().session_reset);
    host.run(&sh("echo $GIVEN")).assert("it's\n", 0);
    // Ended commands are not reported.
    assert!(running.iter().all(|id| host.commands[id].end.is_none()));
    host.send(0, &Request::Drain);
    assert_eq!(host.report(), (0, Report::Drained));
}
