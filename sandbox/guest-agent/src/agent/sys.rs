//! System calls of the agent that Rust cannot check: the setup of a child before `execve`,
//! the isolation of commands, and the request that credits entropy.
#![allow(unsafe_code, reason = "system calls between fork and exec")]

use super::launch::Launch;
use super::world::{FILES_RIGHTS, ORDINARY_RIGHTS, Rights, USER};
use crate::protocol::{Identity, User};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Setter, opcode};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, getrlimit, setrlimit};
use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::io;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// Setup of a child before it executes the command.
#[derive(Debug)]
pub(super) struct ChildSetup {
    /// `cgroup.procs` of the control group to enter.
    pub group: Option<OwnedFd>,
    /// Makes standard input its controlling terminal.
    pub terminal: bool,
    /// Gives up the agent's protection from the out-of-memory killer.
    pub mortal: bool,
    /// Descriptor limit to restore, if the agent raised its own.
    pub descriptors: Option<Rlimit>,
    /// User whose rights it gets, and the rules of its Landlock domain; `None` outside a
    /// guest keeps the agent's rights.
    pub rights: Option<(User, Rc<OwnedFd>)>,
    /// Who the ordinary user is, if not that of our image.
    pub identity: Option<Rc<Identity>>,
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
        if let Some(limit) = &self.descriptors {
            setrlimit(Resource::Nofile, *limit)?;
        }
        match &self.rights {
            Some((user, rules)) => {
                restrict(rules)?;
                become_user(*user, self.identity.as_deref())
            }
            None => Ok(()),
        }
    }
}

/// Puts the caller, a separate process, into a new domain.
fn restrict(rules: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: `landlock_restrict_self(2)` takes two numbers.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
    checked(done).map(drop)
}

/// Reduces the caller to the rights of a user. The agent's children keep its rights on a
/// change of identity, so that none is ever without [`ORDINARY_RIGHTS`]; this function ends
/// that.
fn become_user(user: User, identity: Option<&Identity>) -> Result<(), Errno> {
    let (number, group, groups) = match (user, identity) {
        (User::Root, _) => (0, 0, &[][..]),
        (_, Some(identity)) => (identity.uid, identity.gid, &identity.groups[..]),
        (_, None) => (USER, USER, &[][..]),
    };
    let rights = match user {
        User::Files => Some(FILES_RIGHTS),
        _ if number == 0 => {
            // Programs that it executes get all rights that the agent left in the bounding
            // set, and lose them as administrators do.
            control(libc::PR_SET_SECUREBITS, 0, 0)?;
            None
        }
        _ => Some(ORDINARY_RIGHTS),
    };
    // SAFETY: `setgroups(2)` reads as many numbers as there are.
    let done = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    checked(done)?;
    // SAFETY: these take numbers, and affect only the caller.
    checked(unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) })?;
    // SAFETY: as above.
    checked(unsafe { libc::syscall(libc::SYS_setresuid, number, number, number) })?;
    if let Some(rights) = rights {
        set_rights(Rights::NONE, rights, rights)?;
    }
    if user == User::Files {
        keep_rights(FILES_RIGHTS)?;
    }
    Ok(())
}

/// Calls `prctl(2)` with two numbers.
fn control(option: c_int, first: u64, second: u64) -> Result<(), Errno> {
    // SAFETY: only requests that take numbers are made in this module.
    let done = unsafe { libc::syscall(libc::SYS_prctl, option, first, second, 0, 0) };
    checked(done).map(drop)
}

/// `_LINUX_CAPABILITY_VERSION_3` of `linux/capability.h`.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Sets the caller's effective, permitted and inheritable rights.
pub(super) fn set_rights(
    effective: Rights,
    permitted: Rights,
    inheritable: Rights,
) -> Result<(), Errno> {
    let header = [CAPABILITY_VERSION, 0];
    let sets = [effective, permitted, inheritable];
    let low = sets.map(|rights| rights.0 as u32);
    let high = sets.map(|rights| (rights.0 >> 32) as u32);
    let data = [low, high];
    // SAFETY: `capset(2)` reads a header of two numbers and, for this version, two
    // structures of three numbers each; both exist until it returns.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const data) };
    checked(done).map(drop)
}

/// Returns the caller's permitted rights.
pub(super) fn permitted_rights() -> Result<Rights, Errno> {
    let header = [CAPABILITY_VERSION, 0];
    let mut data = [[0u32; 3]; 2];
    // SAFETY: as for `capset(2)`; this one writes the two structures.
    let done = unsafe { libc::syscall(libc::SYS_capget, &raw const header, &raw mut data) };
    checked(done)?;
    Ok(Rights(u64::from(data[0][1]) | u64::from(data[1][1]) << 32))
}

/// Lets programs that the caller executes keep these of the inheritable rights.
pub(super) fn keep_rights(rights: Rights) -> Result<(), Errno> {
    for number in rights.numbers() {
        control(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_RAISE as u64,
            number,
        )?;
    }
    Ok(())
}

/// Bounds the rights of all programs that the caller or its children execute to these, or
/// those of the program's owner. The caller keeps its own rights under any identity.
pub(super) fn bound_rights(rights: Rights) -> Result<(), Errno> {
    control(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
    for number in (0..u64::BITS.into()).filter(|number| !rights.has(*number)) {
        match control(libc::PR_CAPBSET_DROP, number, 0) {
            // The kernel does not know this right.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    control(libc::PR_SET_SECUREBITS, NO_SETUID_FIXUP, 0)
}

/// `SECBIT_NO_SETUID_FIXUP` of `linux/securebits.h`.
const NO_SETUID_FIXUP: u64 = 1 << 2;

/// Converts the result of a raw system call.
fn checked(result: c_long) -> Result<c_long, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    let error = io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

/// `LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET` of `linux/landlock.h`.
const SCOPE_ABSTRACT_SOCKETS: u64 = 1;

/// `struct landlock_ruleset_attr` of `linux/landlock.h`.
#[repr(C)]
struct RulesetAttributes {
    handled_files: u64,
    handled_network: u64,
    scoped: u64,
}

/// Makes rules for domains that are isolated from each other: no tracing, and no access to
/// memory, descriptors or abstract sockets of another domain. Files and signals are
/// unaffected.
///
/// # Errors
/// Those of `landlock_create_ruleset(2)`.
pub(super) fn domain_rules() -> Result<OwnedFd, Errno> {
    let attributes = RulesetAttributes {
        handled_files: 0,
        handled_network: 0,
        scoped: SCOPE_ABSTRACT_SOCKETS,
    };
    let size = size_of::<RulesetAttributes>();
    // SAFETY: the call reads `size` bytes at the address, which are the attributes, in the
    // C layout; they exist until it returns.
    let made = unsafe {
        let at = &raw const attributes;
        libc::syscall(libc::SYS_landlock_create_ruleset, at, size, 0)
    };
    let number = checked(made)? as c_int;
    // SAFETY: a successful call returns a new descriptor with no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Starts the first process of a PID namespace, in which all later children of the caller
/// run too. It is a copy of the caller, which must have one thread; it runs `first` and
/// never returns from it.
///
/// # Errors
/// Those of `unshare(2)` and of `fork(2)`.
pub(super) fn fork_apart<F: FnOnce() -> Infallible>(first: F) -> Result<Pid, Errno> {
    // SAFETY: no descriptors are unshared, which is the part that may be unsafe. The caller
    // has one thread, so the copy is whole: no lock is held by a thread that it lacks.
    let process = unsafe {
        checked(libc::unshare(libc::CLONE_NEWPID).into())?;
        libc::fork()
    };
    if process == 0 {
        first();
    }
    checked(process.into())?;
    Pid::from_raw(process).ok_or(Errno::INVAL)
}

/// Waits for ever, ignoring children's deaths and holding no descriptor.
pub(super) fn reap_for_ever() -> Infallible {
    // SAFETY: these take numbers; closing all descriptors invalidates only values of this
    // process that hold one, and it uses none of them.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        // The kernel reaps the children of a process that ignores SIGCHLD.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        loop {
            libc::pause();
        }
    }
}

/// Sets user and group of files that the caller creates, without other changes of rights;
/// returns the previous ones.
pub(super) fn own_files_as((user, group): (u32, u32)) -> (u32, u32) {
    // SAFETY: these take numbers, and affect only this thread. They return the previous
    // numbers and cannot fail for a privileged caller.
    unsafe {
        let group_before = libc::syscall(libc::SYS_setfsgid, group);
        let user_before = libc::syscall(libc::SYS_setfsuid, user);
        (user_before as u32, group_before as u32)
    }
}

/// `SCHED_FLAG_RESET_ON_FORK` of `linux/sched.h`: children get the normal priority.
const RESET_ON_FORK: u64 = 1;

/// Highest priority of time-shared scheduling.
const FIRST_IN_TURN: i32 = -20;

/// `struct sched_attr` of `linux/sched/types.h`, its first version.
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Gives the caller priority over all commands, but not its children.
///
/// # Errors
/// Those of `sched_setattr(2)`.
pub(super) fn run_first() -> Result<(), Errno> {
    let attributes = SchedulingAttributes {
        size: size_of::<SchedulingAttributes>() as u32,
        flags: RESET_ON_FORK,
        nice: FIRST_IN_TURN,
        ..SchedulingAttributes::default()
    };
    // SAFETY: the call reads the attributes, which hold their own size, in the C layout;
    // they exist until it returns. Zero means the caller.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    checked(done).map(drop)
}

/// Gives every signal its default action and blocks none, once for all programs that the
/// agent starts: a program inherits ignored and blocked signals (`execve(2)`), such as
/// SIGINT from `nohup(1)` or a shell's background job. Signals that the agent handles
/// itself are at their default again in a program. SIGPIPE, which Rust ignores, is left to
/// the child.
pub(super) fn default_signals() {
    // The kernel's own structure for a signal's action, at most four words: all zeros are
    // the default. This includes the signals that the C library hides: a spawned program
    // inherits them ignored.
    let default = [0u64; 4];
    let (none, size) = (std::ptr::null_mut::<c_void>(), size_of::<u64>());
    // SAFETY: the agent has no handlers yet. The call reads the structure, which outlives
    // it; numbers that cannot be set are refused. The set is initialised by `sigemptyset`.
    unsafe {
        for signal in (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGPIPE) {
            let at = default.as_ptr();
            libc::syscall(libc::SYS_rt_sigaction, signal, at, none, size);
        }
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        if libc::sigemptyset(none.as_mut_ptr()) == 0 {
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        }
    }
}

/// Raises the caller's descriptor limit to its hard limit: a command takes up to eight of
/// the agent's, and the soft limit of 1,024 is for programs that use `select(2)`. Returns
/// the previous limit if it was lower.
pub(super) fn raise_descriptors() -> Option<Rlimit> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let raise = limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok();
    raise.then_some(limit)
}

/// Stack of a child until `execve` in bytes.
const STACK_BYTES: usize = 64 << 10;

/// Stack of the child that is starting: one at a time.
#[repr(align(16))]
struct Stack([u8; STACK_BYTES]);

static STACK: Mutex<Stack> = Mutex::new(Stack([0; STACK_BYTES]));

/// Exit code of a child that did not become the program; it is never reported.
const NOT_STARTED: c_int = 127;

/// Data of a child.
struct Child<'a> {
    launch: &'a Launch,
    /// Pointers to [`Launch::argv`], ended by null.
    argv: Vec<*const c_char>,
    /// Pointers to [`Launch::env`], ended by null.
    env: Vec<*const c_char>,
    /// Process id in its namespace.
    inner: Option<Pid>,
    /// Why it did not become the program.
    error: Option<NotStarted>,
}

/// A process that started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    /// Process id in the agent's namespace.
    pub process: Pid,
    /// Process id in the namespace of commands.
    pub inner: Pid,
}

/// Why a program did not start.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotStarted {
    /// The process could not be created or set up.
    Setup(Errno),
    /// The working directory could not be entered.
    Folder(Errno),
    /// The program could not be executed.
    Program(Errno),
}

impl NotStarted {
    /// Returns the error of the failed system call.
    pub(super) fn errno(self) -> Errno {
        match self {
            Self::Setup(error) | Self::Folder(error) | Self::Program(error) => error,
        }
    }
}

impl From<Errno> for NotStarted {
    fn from(error: Errno) -> Self {
        Self::Setup(error)
    }
}

/// Starts a program.
///
/// # Errors
/// Those of `clone(2)`, of the setup, of `chdir(2)` and of `execve(2)`.
pub(super) fn spawn(launch: &Launch) -> Result<Started, NotStarted> {
    let pointers = |texts: &[CString]| {
        let texts = texts.iter().map(|text| text.as_ptr());
        texts.chain([std::ptr::null()]).collect()
    };
    let mut child = Child {
        launch,
        argv: pointers(&launch.argv),
        env: pointers(&launch.env),
        inner: None,
        error: None,
    };
    let mut stack = STACK.lock().unwrap_or_else(PoisonError::into_inner);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let top = stack.0.as_mut_ptr_range().end.cast::<c_void>();
    let argument = (&raw mut child).cast::<c_void>();
    // SAFETY: this works like `posix_spawn(3)`. The child runs `run_child` on a separate
    // stack, 16-byte aligned, which is locked until the call returns. Because of
    // CLONE_VFORK that is when the child has executed the program or ended, so `child` and
    // all that it refers to outlive its use. The agent has one thread, which waits
    // meanwhile: no other thread touches the shared memory.
    let process = unsafe { libc::clone(run_child, top, flags, argument) };
    drop(stack);
    let Some(process) = Pid::from_raw(process).filter(|_| process > 0) else {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN).into());
    };
    match child.error {
        None => Ok(Started {
            process,
            inner: child.inner.unwrap_or(process),
        }),
        Some(error) => {
            // The child has ended, and its error is known.
            let _ = rustix::process::waitpid(Some(process), WaitOptions::empty());
            Err(error)
        }
    }
}

/// Runs the child in the agent's memory. It must not allocate, lock or panic.
extern "C" fn run_child(argument: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes its `Child`, which exists until this function ends or the
    // program replaces it, and uses it only afterwards.
    let child = unsafe { &mut *argument.cast::<Child<'_>>() };
    child.error = Some(match child.prepare() {
        Ok(()) => NotStarted::Program(child.execute()),
        Err(error) => error,
    });
    NOT_STARTED
}

impl Child<'_> {
    /// Connects the child's streams and runs its setup before `execve`.
    fn prepare(&mut self) -> Result<(), NotStarted> {
        self.inner = Some(rustix::process::getpid());
        let [stdin, stdout, stderr] = &self.launch.stdio;
        rustix::stdio::dup2_stdin(stdin)?;
        rustix::stdio::dup2_stdout(stdout)?;
        rustix::stdio::dup2_stderr(stderr)?;
        if let Some((fd, number)) = &self.launch.more {
            // SAFETY: this makes a descriptor of the child alone, whose table is a copy of
            // the agent's; the child has no other descriptor with that number.
            checked(unsafe { libc::dup2(fd.as_raw_fd(), *number) }.into())?;
        }
        self.launch.setup.run()?;
        if let Some(cwd) = &self.launch.cwd {
            rustix::process::chdir(cwd.as_c_str()).map_err(NotStarted::Folder)?;
        }
        // SAFETY: this sets the default action of a signal in the child alone, whose table
        // of actions is separate (no CLONE_SIGHAND). Rust programs ignore SIGPIPE; other
        // programs must not inherit that.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        Ok(())
    }

    /// Executes the program; returns only on failure. The order of errors is that of
    /// `execvp(3)`.
    fn execute(&mut self) -> Errno {
        let mut denied = None;
        let mut last = Errno::NOENT;
        for path in &self.launch.paths {
            last = execute(path, &self.argv[1..], &self.env);
            if last == Errno::NOEXEC {
                // A script without a `#!` line becomes the shell's argument.
                self.argv[1] = path.as_ptr();
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

/// Calls `execve(2)`; returns only on failure.
fn execute(path: &CStr, argv: &[*const c_char], env: &[*const c_char]) -> Errno {
    // SAFETY: `path` ends with a zero, and so do the texts to which the two lists point;
    // `spawn` ended both with null, and the texts belong to the `Launch` that it borrows.
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
/// Those of `random(4)`; `EPERM` without the right to do it.
pub(super) fn add_entropy(device: &OwnedFd, bytes: &[u8; ENTROPY_BYTES]) -> Result<(), Errno> {
    let info = RandPoolInfo {
        entropy_bits: 8 * ENTROPY_BYTES as i32,
        buffer_bytes: ENTROPY_BYTES as i32,
        buffer: *bytes,
    };
    // SAFETY: the request reads a `rand_pool_info`: two ints and as many bytes as the
    // second of them states, all of which are in `info`, which has the C layout and exists
    // until the call returns. It writes nothing.
    unsafe {
        let request = Setter::<RNDADDENTROPY, RandPoolInfo>::new(info);
        rustix::ioctl::ioctl(device, request)
    }
}
