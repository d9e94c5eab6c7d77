//! Machines of images start and end without leaks.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::alone::alone;
use crate::common::{IMAGE, Network, run, start};
use a99_sandbox::c2w::{Machine, Mount, Options};
use a99_sandbox::vm::VmCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn cycle(host: &std::path::Path, with_shell: bool) {
    let mount = Mount {
        guest: "/m".to_owned(),
        host: host.to_owned(),
        ..Mount::default()
    };
    let options = Options {
        mounts: vec![mount],
        network: Some(Box::new(Network::default())),
        ..Options::default()
    };
    if with_shell {
        let machine = start(options);
        assert_eq!(run(&machine, "echo hi").stdout, b"hi\n");
    } else {
        let machine = Machine::interactive(&IMAGE, options, Box::new(|_, _| {})).unwrap();
        machine.stop();
        assert_eq!(machine.ended().unwrap().code, VmCode::Stopped);
    }
}

#[test]
fn s10_a_thousand_machines_leave_nothing() {
    if !alone(module_path!(), "s10_a_thousand_machines_leave_nothing") {
        return;
    }
    let host = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        cycle(host.path(), false);
    }
    cycle(host.path(), true);
    let before = (count("/proc/self/task"), count("/proc/self/fd"));
    let memory = resident();
    for _ in 0..1000 {
        cycle(host.path(), false);
    }
    for _ in 0..10 {
        cycle(host.path(), true);
    }
    assert_eq!((count("/proc/self/task"), count("/proc/self/fd")), before);
    let grown = resident().saturating_sub(memory);
    assert!(grown < 8 << 20, "{grown} bytes more");

    // Stopped during a command, from another thread: here, because the duration counts.
    let machine = Arc::new(start(Options::default()));
    let theirs = Arc::clone(&machine);
    let waiting = std::thread::spawn(move || theirs.exec("sleep 1000", &crate::common::limits()));
    let queued = Arc::clone(&machine);
    let queued = std::thread::spawn(move || queued.exec("true", &crate::common::limits()));
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    machine.stop();
    machine.stop();
    assert!(began.elapsed() < Duration::from_secs(2));
    for exec in [waiting, queued] {
        match exec.join().unwrap() {
            // The command finished first.
            Ok(output) => assert_eq!(output.exit_code, 0),
            Err(error) => assert_eq!(error.code, VmCode::Stopped),
        }
    }
    assert_eq!(
        machine
            .exec("true", &crate::common::limits())
            .unwrap_err()
            .code,
        VmCode::Stopped
    );
    assert_eq!((count("/proc/self/task"), count("/proc/self/fd")), before);
}
