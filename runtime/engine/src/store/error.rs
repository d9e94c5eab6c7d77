//! Errors of stores.

use std::fmt;

/// What kind of fault a store has.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreCode {
    /// Another owner has the shard. Nothing was written, and later writes are refused.
    Fenced,
    /// The state changed after it was read. Nothing was written.
    Conflict,
    /// The key already holds other content. Nothing was written.
    ChangedBody,
    /// A state, a payload or the number of timers exceeds its limit. Nothing was written.
    TooLarge,
    /// The requested item does not exist.
    NotFound,
    /// The disk is full, busy or broken. Nothing was written; a retry may succeed.
    Unavailable,
    /// The write may have succeeded or not: read before you do anything else.
    InDoubt,
    /// The stored data is damaged, or from a later version of this program.
    Unreadable,
    /// An argument is invalid: SQL, a name, a path.
    Input,
    /// A constraint of a table is violated. The statement changed nothing.
    Constraint,
    /// The work exceeded its limit of time, steps or memory, or the caller stopped waiting.
    Interrupted,
    /// Another process has the store open.
    Locked,
    /// The store's file is not the one that was last opened: it was copied, moved to another
    /// disk, or restored.
    Copied,
}

impl StoreCode {
    const ALL: [StoreCode; 13] = [
        StoreCode::Fenced,
        StoreCode::Conflict,
        StoreCode::ChangedBody,
        StoreCode::TooLarge,
        StoreCode::NotFound,
        StoreCode::Unavailable,
        StoreCode::InDoubt,
        StoreCode::Unreadable,
        StoreCode::Input,
        StoreCode::Constraint,
        StoreCode::Interrupted,
        StoreCode::Locked,
        StoreCode::Copied,
    ];

    /// The code of a text.
    #[must_use]
    pub fn of(name: &str) -> Option<StoreCode> {
        StoreCode::ALL.into_iter().find(|code| code.name() == name)
    }

    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StoreCode::Fenced => "store.fenced",
            StoreCode::Conflict => "store.conflict",
            StoreCode::ChangedBody => "store.changed_body",
            StoreCode::TooLarge => "store.too_large",
            StoreCode::NotFound => "store.not_found",
            StoreCode::Unavailable => "store.unavailable",
            StoreCode::InDoubt => "store.in_doubt",
            StoreCode::Unreadable => "store.unreadable",
            StoreCode::Input => "store.input",
            StoreCode::Constraint => "store.constraint",
            StoreCode::Interrupted => "store.interrupted",
            StoreCode::Locked => "store.locked",
            StoreCode::Copied => "store.copied",
        }
    }
}

/// An error of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    code: StoreCode,
    message: String,
}

impl StoreError {
    /// An error with a code and a message.
    pub fn new(code: StoreCode, message: impl Into<String>) -> StoreError {
        StoreError {
            code,
            message: message.into(),
        }
    }

    /// The kind of the error.
    #[must_use]
    pub const fn code(&self) -> StoreCode {
        self.code
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}
