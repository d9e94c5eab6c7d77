//! What the embedder is told: answers, statuses, and the report after a run.

/// Status of [`run`](super::run): the budget is used up, or output should not wait.
pub const BUDGET: u32 = 0;
/// Status of [`run`](super::run): nothing to do until [`Report::until_ns`] or input.
pub const WAIT: u32 = 1;
/// Status of [`run`](super::run): the guest turned itself off.
pub const POWER_OFF: u32 = 2;
/// Status of [`run`](super::run): the guest asked to be restarted.
pub const RESET: u32 = 3;

/// Answer of calls that worked.
pub const OK: u32 = 0;
/// There is no machine yet, or there is one already.
pub const ERR_STATE: u32 = 1;
/// Kernel or files are not what they should be, or do not fit.
pub const ERR_LOAD: u32 = 2;
/// Not UTF-8, or longer than [`SCRATCH_BYTES`].
pub const ERR_ARGUMENT: u32 = 3;
/// Channels hold data, or file requests wait: no snapshot now.
pub const ERR_BUSY: u32 = 4;

/// Bytes of [`scratch`](super::scratch): the longest command line of Linux on RISC-V is 1024
/// bytes, and the head of a kernel `Image` 64.
pub const SCRATCH_BYTES: usize = 4096;

/// What the embedder reads after [`run`](super::run).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Report {
    /// With [`WAIT`]: the host's monotonic time, in nanoseconds, to go on at;
    /// all ones if only input can wake the guest.
    pub until_ns: u64,
    /// Instructions run since the machine was made.
    pub retired: u64,
    /// Channels that have output, by bit.
    pub output: u32,
    /// Channels whose input the guest has not taken yet, by bit.
    pub input: u32,
    /// File requests not yet answered.
    pub requests: u32,
    /// 1 while a program in the guest has the agent port open.
    pub agent_open: u32,
    /// Devices whose driver broke the rules and that are dead until the guest
    /// resets them, by bit, in the order of the table of virtio devices.
    pub broken: u32,
    /// Entries of code that lead to functions of [`ship`](super::ship).
    pub shipped: u32,
}
