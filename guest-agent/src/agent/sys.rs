//! The agent's system calls that Rust cannot check: what runs in a child before
//! it is its program, and the request that credits entropy.
#![allow(unsafe_code)]

use super::launch::Launch;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Setter, opcode};
use rustix::process::{Pid, WaitOptions};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::sync::{Mutex, PoisonError};

/// What a child does before it becomes the command.
#[derive(Debug)]
pub(super) struct ChildSetup {
    /// `cgroup.procs` of the control group that it enters.
    pub group: Option<OwnedFd>,
    /// Make standard input its controlling terminal.
    pub terminal: bool,
    /// Give up the agent's protection from the out-of-memory killer.
    pub mortal: bool,
}

impl ChildSetup {
    /// Runs in the child. Only system calls: memory may be in any state.
    fn run(&self) -> Result<(), Errno> {
        if let Some(group) = &self.group {
            rustix::io::write(group, b"0")?;
        }
        rustix::process::setsid()?;
        if self.terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        if self.mortal {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::open(c"/proc/self/oom_score_adj", flags, Mode::empty())?;
            rustix::io::write(file, b"0")?;
        }
        Ok(())
    }
}

/// Bytes of a child's stack until it is the program.
const STACK_BYTES: usize = 64 << 10;

/// The stack of the child that starts: one at a time.
#[repr(align(16))]
struct Stack([u8; STACK_BYTES]);

static STACK: Mutex<Stack> = Mutex::new(Stack([0; STACK_BYTES]));

/// Exit code of a child that did not become the program; nobody sees it.
const NOT_STARTED: c_int = 127;

/// What a child works with.
struct Child<'a> {
    launch: &'a Launch,
    /// Pointers to [`Launch::argv`], ended by null.
    argv: Vec<*const c_char>,
    /// Pointers to [`Launch::env`], ended by null.
    env: Vec<*const c_char>,
    /// Why it did not become the program.
    error: Option<Errno>,
}

/// Starts a program.
///
/// # Errors
/// Those of `clone(2)`, of the setup, and of `execve(2)`.
pub(super) fn spawn(launch: &Launch) -> Result<Pid, Errno> {
    let pointers = |texts: &[CString]| {
        let texts = texts.iter().map(|text| text.as_ptr());
        texts.chain([std::ptr::null()]).collect()
    };
    let mut child = Child {
        launch,
        argv: pointers(&launch.argv),
        env: pointers(&launch.env),
        error: None,
    };
    let mut stack = STACK.lock().unwrap_or_else(PoisonError::into_inner);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let top = stack.0.as_mut_ptr_range().end.cast::<c_void>();
    let argument = (&raw mut child).cast::<c_void>();
    // SAFETY: as `posix_spawn(3)` does it. The child runs `run_child` on a
    // stack of its own, 16-byte aligned, which is locked until the call
    // returns; because of CLONE_VFORK that is when the child has executed the
    // program or ended, so `child` and all that it refers to outlive its use.
    // The agent has one thread, which waits meanwhile: nobody else touches the
    // shared memory.
    let process = unsafe { libc::clone(run_child, top, flags, argument) };
    drop(stack);
    let Some(process) = Pid::from_raw(process).filter(|_| process > 0) else {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN));
    };
    match child.error {
        None => Ok(process),
        Some(error) => {
            // It has ended; what there is to know is known.
            let _ = rustix::process::waitpid(Some(process), WaitOptions::empty());
            Err(error)
        }
    }
}

/// The child, in the agent's memory. Nothing here allocates, locks or panics.
extern "C" fn run_child(argument: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes its `Child`, which lives until this function ends
    // or the program takes its place, and uses it only afterwards.
    let child = unsafe { &mut *argument.cast::<Child<'_>>() };
    child.error = Some(match child.prepare() {
        Ok(()) => child.execute(),
        Err(error) => error,
    });
    NOT_STARTED
}

impl Child<'_> {
    /// Connects the child and does what it must do before it is the program.
    fn prepare(&self) -> Result<(), Errno> {
        let [stdin, stdout, stderr] = &self.launch.stdio;
        rustix::stdio::dup2_stdin(stdin)?;
        rustix::stdio::dup2_stdout(stdout)?;
        rustix::stdio::dup2_stderr(stderr)?;
        self.launch.setup.run()?;
        if let Some(cwd) = &self.launch.cwd {
            rustix::process::chdir(cwd.as_c_str())?;
        }
        default_signals();
        Ok(())
    }

    /// Becomes the program; returns only if it cannot. The order of errors is
    /// that of `execvp(3)`.
    fn execute(&mut self) -> Errno {
        let mut denied = None;
        let mut last = Errno::NOENT;
        for place in &self.launch.places {
            last = execute(place, &self.argv[1..], &self.env);
            if last == Errno::NOEXEC {
                // A script without a `#!` line: the shell's argument.
                self.argv[1] = place.as_ptr();
                return execute(&self.launch.argv[0], &self.argv, &self.env);
            }
            match last {
                Errno::ACCESS => denied = Some(last),
                Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::NODEV | Errno::TIMEDOUT => {}
                error => return error,
            }
        }
        denied.unwrap_or(last)
    }
}

/// Gives every signal its default action and blocks none: a program inherits
/// what is ignored and what is blocked (`execve(2)`), as SIGPIPE by Rust's
/// start-up and SIGINT by `nohup(1)` or a shell's background.
fn default_signals() {
    /// Signals of Linux; two of them are the C library's, which refuses to
    /// touch them.
    const SIGNALS: c_int = 64;
    /// Bytes of the kernel's set of signals.
    const SET_BYTES: usize = 8;
    // Longer than the kernel's `struct sigaction` on any machine; all zero it
    // asks for the default action, no flags, no blocked signals.
    let action = [0usize; 8];
    let none = [0u8; SET_BYTES];
    // SAFETY: all changes concern the child alone, whose table of actions is
    // its own (no CLONE_SIGHAND), as its mask is. The kernel reads the two
    // buffers and writes nothing.
    unsafe {
        for signal in 1..=SIGNALS {
            let no_old = std::ptr::null_mut::<c_void>();
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                action.as_ptr(),
                no_old,
                SET_BYTES,
            );
        }
        let no_old = std::ptr::null_mut::<c_void>();
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            none.as_ptr(),
            no_old,
            SET_BYTES,
        );
    }
}

/// `execve(2)`; returns only if it fails.
fn execute(path: &CStr, argv: &[*const c_char], env: &[*const c_char]) -> Errno {
    // SAFETY: `path` ends with a zero, and so do the texts to which the two
    // lists point; `spawn` ended both with null, and the texts belong to the
    // `Launch` that it borrows.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::NOEXEC)
}

/// Bytes of entropy in one request.
pub(super) const ENTROPY_BYTES: usize = 64;

/// `struct rand_pool_info` of `linux/random.h` with a buffer of fixed size.
#[repr(C)]
struct RandPoolInfo {
    entropy_bits: i32,
    buffer_bytes: i32,
    buffer: [u8; ENTROPY_BYTES],
}

/// `RNDADDENTROPY`, `_IOW('R', 0x03, int[2])` (random(4)).
const RNDADDENTROPY: rustix::ioctl::Opcode = opcode::write::<[i32; 2]>(b'R', 0x03);

/// Mixes `bytes` into the kernel's generator and credits them in full.
///
/// # Errors
/// Those of `random(4)`; without the right to do it `EPERM`.
pub(super) fn add_entropy(device: &OwnedFd, bytes: &[u8; ENTROPY_BYTES]) -> Result<(), Errno> {
    let info = RandPoolInfo {
        entropy_bits: 8 * ENTROPY_BYTES as i32,
        buffer_bytes: ENTROPY_BYTES as i32,
        buffer: *bytes,
    };
    // SAFETY: the request reads a `rand_pool_info`: two ints and as many bytes
    // as the second of them says, all of which are in `info`, which has the C
    // layout and lives until the call returns. It writes nothing.
    unsafe {
        let request = Setter::<RNDADDENTROPY, RandPoolInfo>::new(info);
        rustix::ioctl::ioctl(device, request)
    }
}
