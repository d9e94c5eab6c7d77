//! Boots a kernel with an initial file system; this terminal is its console.
//!
//! `cargo run --profile bench -p a99-sandbox-guest --example boot -- IMAGE CPIO [CMDLINE]`
//!
//! Ends when the guest turns itself off, or when standard input ends and the guest is idle.
//! At the end it prints the guest's speed on standard error. For experiments and profiling;
//! the sandbox has its own host.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use a99_sandbox_guest::host::Host;
use a99_sandbox_guest::machine::{Machine, MachineConfig, Status};
use std::collections::hash_map::RandomState;
use std::error::Error;
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

/// Instructions between two polls of the terminal: about 3 ms.
const BUDGET: u64 = 1_000_000;

/// Maximum sleep between polls.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Clocks of this process. Its randomness is only good enough to boot.
struct Process {
    start: Instant,
}

impl Host for Process {
    fn monotonic_ns(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn wall_ns(&mut self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    }

    fn random(&mut self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            let number = RandomState::new().build_hasher().finish();
            chunk.copy_from_slice(&number.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Reads standard input in a thread.
fn terminal() -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buf = [0; 4096];
        while let Ok(count @ 1..) = std::io::stdin().read(&mut buf) {
            if sender.send(buf[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: boot IMAGE CPIO [CMDLINE]";
    let image = std::fs::read(arguments.next().ok_or(usage)?)?;
    let initrd = std::fs::read(arguments.next().ok_or(usage)?)?;
    let cmdline = arguments.next().unwrap_or("console=hvc0".to_owned());
    let start = Instant::now();
    let mut machine = Machine::new(&MachineConfig::default(), Process { start });
    machine.load_kernel(&image, &initrd, &cmdline)?;
    let input = terminal();
    let mut session = Session {
        pending: Vec::new(),
        open: true,
        busy: Duration::ZERO,
    };
    while session.step(&mut machine, &input)? {}
    let instructions = machine.cpu.retired();
    let seconds = session.busy.as_secs_f64();
    let mips = instructions as f64 / seconds / 1e6;
    eprintln!("\n{instructions} instructions in {seconds:.3} s: {mips:.0} MIPS");
    Ok(())
}

/// State between the terminal and the guest.
struct Session {
    /// Input that the guest has not taken.
    pending: Vec<u8>,
    /// Whether more input may come.
    open: bool,
    /// Time spent in the machine.
    busy: Duration,
}

impl Session {
    /// Runs the guest for a while; `false` at the end.
    fn step(
        &mut self,
        machine: &mut Machine<Process>,
        input: &Receiver<Vec<u8>>,
    ) -> Result<bool, Box<dyn Error>> {
        match input.try_recv() {
            Ok(bytes) => self.pending.extend(bytes),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => self.open = false,
        }
        let taken = machine.bus.channels.console.input.push(&self.pending);
        self.pending.drain(..taken);
        let begin = Instant::now();
        let status = machine.run(BUDGET);
        self.busy += begin.elapsed();
        let output = &mut machine.bus.channels.console.output;
        let mut stdout = std::io::stdout().lock();
        while !output.is_empty() {
            stdout.write_all(output.front())?;
            let count = output.front().len();
            output.consume(count);
        }
        stdout.flush()?;
        match status {
            Status::Budget => Ok(true),
            Status::PowerOff | Status::Reset => Ok(false),
            Status::Wait { until_ns } => {
                let now_ns = machine.bus.host.monotonic_ns();
                let wait = until_ns.map(|ns| Duration::from_nanos(ns.saturating_sub(now_ns)));
                Ok(self.wait(input, wait.unwrap_or(MAX_WAIT).min(MAX_WAIT)))
            }
        }
    }

    /// Sleeps until input comes or the time is over; `false` when input can never come.
    fn wait(&mut self, input: &Receiver<Vec<u8>>, timeout: Duration) -> bool {
        match input.recv_timeout(timeout) {
            Ok(bytes) => self.pending.extend(bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if self.open => self.open = false,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(timeout),
        }
        true
    }
}
