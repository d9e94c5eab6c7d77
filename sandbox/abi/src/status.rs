//! Statuses of a run, and answers of fallible calls.

use std::fmt;

/// Why [`RUN`](super::functions::RUN) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// The budget is used up, or output is urgent.
    Budget = 0,
    /// The guest is idle until [`RunReport::until_ns`](super::RunReport::until_ns) or
    /// input.
    Wait = 1,
    /// The guest turned itself off, or no guest was booted.
    PowerOff = 2,
    /// The guest asked for a restart.
    Reset = 3,
}

impl Status {
    /// All statuses, by number.
    pub const ALL: [Self; 4] = [Self::Budget, Self::Wait, Self::PowerOff, Self::Reset];

    /// Returns the status with that number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

/// Result of a fallible call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Answer {
    /// The call succeeded.
    Done = 0,
    /// The machine does not exist yet, or exists already.
    State = 1,
    /// Kernel or files are invalid, or do not fit.
    Load = 2,
    /// The argument is out of range, not UTF-8, or longer than
    /// [`SCRATCH_BYTES`](super::SCRATCH_BYTES).
    Argument = 3,
    /// Channels hold data, or file requests are pending: a snapshot is not possible now.
    Busy = 4,
}

impl Answer {
    /// All answers, by number.
    pub const ALL: [Self; 5] = [
        Self::Done,
        Self::State,
        Self::Load,
        Self::Argument,
        Self::Busy,
    ];

    /// Returns the answer with that number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::State => "there is no machine, or one already",
            Self::Load => "kernel or files are not what they should be, or do not fit",
            Self::Argument => "the argument is no text, or too long",
            Self::Busy => "something is half done",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back() {
        for (number, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, number);
            assert_eq!(Status::from_number(number as u32), Some(status));
        }
        assert_eq!(Status::from_number(4), None);
        for (number, answer) in Answer::ALL.into_iter().enumerate() {
            assert_eq!(answer as usize, number);
            assert_eq!(Answer::from_number(number as u32), Some(answer));
        }
        assert_eq!(Answer::from_number(5), None);
    }
}
