//! Errors of a running guest, each with a stable code.

use super::output::Output;
use a99_sandbox_protocol::{Ending, Exited, Reason};
use std::fmt;

/// Kind of a failure; the text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VmCode {
    /// The image has not been built yet.
    NoImage,
    /// The guest was stopped before or during the request.
    Stopped,
    /// The guest ended by itself: it shut down, or its kernel died.
    GuestEnded,
    /// The emulator trapped, which is a bug of Agent99; the host is not harmed.
    EmulatorTrap,
    /// The emulator or the guest's agent broke the protocol.
    Protocol,
    /// The guest runs and does not answer, or does not end its work on request. It was stopped.
    Unresponsive,
    /// The guest did not become ready in time.
    NotReady,
    /// The command could not be started in the guest: the program does not exist, or cannot be
    /// executed. [`VmError::output`] has the exit code of shells for it, 127 or 126.
    CannotStart,
    /// The command's working directory does not exist, or cannot be entered.
    NoFolder,
    /// The command exceeded its time limit.
    TimedOut,
    /// The command exceeded its output limit.
    OutputLimit,
    /// The module cannot be loaded: it is damaged, or made by another version or for
    /// another processor.
    Module,
    /// The image's files are not safe to load: they have other owners, others may write to
    /// them, or they differ from the built files.
    UntrustedImage,
    /// A file of the image cannot be read or written.
    Io,
    /// The system has no thread or memory for another guest.
    Resources,
    /// The command was cancelled.
    Cancelled,
    /// The sandbox exceeded its lifetime.
    TimeLimit,
    /// The sandbox exceeded its limit of instructions.
    CpuLimit,
    /// A saved guest is damaged, of another version or of another image.
    Saved,
    /// An option of the sandbox is out of range.
    BadOption,
    /// A mount cannot be served.
    Mount,
    /// The sandbox's network cannot be set up.
    Network,
    /// Files could not be copied.
    Copy,
    /// A foreign image imports something that is not WASI preview1.
    UnknownImport,
    /// A foreign image cannot hold that many arguments, variables and mounts.
    InfoTooLong,
    /// A foreign image needs more memory than allowed.
    MemoryLimit,
    /// This kind of guest does not support the operation.
    Unsupported,
}

impl VmCode {
    /// Returns the code as stable text, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            VmCode::NoImage => "sandbox.no_image",
            VmCode::Stopped => "sandbox.stopped",
            VmCode::GuestEnded => "sandbox.guest_ended",
            VmCode::EmulatorTrap => "sandbox.emulator_trap",
            VmCode::Protocol => "sandbox.protocol",
            VmCode::Unresponsive => "sandbox.unresponsive",
            VmCode::NotReady => "sandbox.not_ready",
            VmCode::CannotStart => "sandbox.cannot_start",
            VmCode::NoFolder => "sandbox.no_working_directory",
            VmCode::TimedOut => "sandbox.timed_out",
            VmCode::OutputLimit => "sandbox.output_limit",
            VmCode::Module => "sandbox.module",
            VmCode::UntrustedImage => "sandbox.untrusted_image",
            VmCode::Io => "sandbox.io",
            VmCode::Resources => "sandbox.resources",
            VmCode::Cancelled => "sandbox.cancelled",
            VmCode::TimeLimit => "sandbox.time_limit",
            VmCode::CpuLimit => "sandbox.cpu_limit",
            VmCode::Saved => "sandbox.saved",
            VmCode::BadOption => "sandbox.bad_option",
            VmCode::Mount => "sandbox.mount",
            VmCode::Network => "sandbox.network",
            VmCode::Copy => "sandbox.copy",
            VmCode::UnknownImport => "sandbox.unknown_import",
            VmCode::InfoTooLong => "sandbox.info_too_long",
            VmCode::MemoryLimit => "sandbox.memory_limit",
            VmCode::Unsupported => "sandbox.unsupported",
        }
    }
}

/// Failure of an operation on a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmError {
    /// Kind of the failure.
    pub code: VmCode,
    /// Description of the failure and its subject.
    pub text: String,
    /// Output of the command up to the failure.
    pub output: Option<Box<Output>>,
}

/// Exit codes of shells for a missing command and for one that is not executable.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

impl VmError {
    /// Error of a command that did not start, with the exit code that a shell gives for it.
    pub(super) fn not_started(reason: Reason, text: String) -> Self {
        let (code, shells) = match reason {
            Reason::NotFound => (VmCode::CannotStart, NOT_FOUND),
            Reason::NotExecutable | Reason::Other => (VmCode::CannotStart, NOT_EXECUTABLE),
            Reason::Folder => return Self::new(VmCode::NoFolder, text),
        };
        Self::new(code, text).with_end(Exited {
            ending: Ending::Code(shells),
            ..Exited::default()
        })
    }

    /// Creates an error.
    pub fn new(code: VmCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            output: None,
        }
    }

    /// Adds how the command ended, for the other details of its end.
    pub fn with_end(self, exited: Exited) -> Self {
        let output = Output {
            exited,
            ..Output::default()
        };
        Self {
            output: Some(Box::new(output)),
            ..self
        }
    }

    /// Wraps a failure of the WebAssembly engine while doing `what`.
    pub fn engine(code: VmCode, what: &str, error: &wasmtime::Error) -> Self {
        Self::new(code, format!("{what}: {error:#}"))
    }

    /// Wraps a failed access to a path.
    pub fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(VmCode::Io, format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.code.name())
    }
}

impl std::error::Error for VmError {}
