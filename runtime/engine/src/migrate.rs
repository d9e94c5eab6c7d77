//! Migrations of state: chains of steps from each version to the next.

use serde_json::Value;
use std::fmt;

/// A migration from one version of a state to the next.
#[derive(Clone, Copy)]
pub struct Migration {
    /// The version that it reads; the result has the next one.
    pub from: u32,
    /// The conversion.
    pub step: fn(Value) -> Result<Value, String>,
}

impl fmt::Debug for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Migration({} -> {})", self.from, self.from + 1)
    }
}

/// Why a state cannot be used. The row stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateError {
    /// A later version of the agent wrote the state.
    Newer {
        /// The row's version.
        found: u32,
        /// The agent's.
        known: u32,
    },
    /// No migration continues from the version of the state.
    NoStep {
        /// From this version.
        from: u32,
        /// The agent's.
        known: u32,
    },
    /// A migration failed.
    Failed {
        /// From this version.
        from: u32,
        /// What it said.
        message: String,
    },
    /// The stored state, or the result of a migration, does not have the agent's type of state.
    Unreadable {
        /// Of this version.
        version: u32,
        /// What is wrong with it.
        message: String,
    },
}

impl StateError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            StateError::Newer { .. } => "state.newer",
            StateError::NoStep { .. } => "state.no_migration",
            StateError::Failed { .. } => "state.migration_failed",
            StateError::Unreadable { .. } => "state.unreadable",
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Newer { found, known } => write!(
                f,
                "the state has version {found}; this agent knows those up to {known}: start the version that wrote it"
            ),
            StateError::NoStep { from, known } => write!(
                f,
                "the state has version {from} and the agent {known}: no migration begins at {from}"
            ),
            StateError::Failed { from, message } => {
                write!(f, "the migration from version {from} failed: {message}")
            }
            StateError::Unreadable { version, message } => {
                write!(
                    f,
                    "the state of version {version} cannot be read: {message}"
                )
            }
        }
    }
}

impl std::error::Error for StateError {}

/// The result of a chain: the newest state, and the earlier ones, each with its version, oldest
/// first.
#[derive(Clone, Debug, PartialEq)]
pub struct Migrated {
    /// The state of the wanted version.
    pub state: Value,
    /// The states before each step.
    pub backups: Vec<(u32, Value)>,
}

/// Migrates a state from version `found` to `known`, step by step.
///
/// # Errors
/// A newer state, a missing step, a failing step. The input is then unchanged.
pub fn migrate(
    state: Value,
    found: u32,
    known: u32,
    chain: &[Migration],
) -> Result<Migrated, StateError> {
    if found > known {
        return Err(StateError::Newer { found, known });
    }
    let mut migrated = Migrated {
        state,
        backups: Vec::new(),
    };
    for from in found..known {
        let step = chain.iter().find(|migration| migration.from == from);
        let step = step.ok_or(StateError::NoStep { from, known })?;
        let before = migrated.state.clone();
        migrated.state =
            (step.step)(migrated.state).map_err(|message| StateError::Failed { from, message })?;
        if !migrated.state.is_object() {
            return Err(StateError::Unreadable {
                version: from + 1,
                message: "the migration gave no object".to_owned(),
            });
        }
        migrated.backups.push((from, before));
    }
    Ok(migrated)
}

#[cfg(test)]
mod tests {
    use super::{Migration, StateError, migrate};
    use serde_json::{Value, json};

    fn renamed(mut state: Value) -> Result<Value, String> {
        let n = state["n"].take();
        n.is_number()
            .then(|| json!({"count": n}))
            .ok_or_else(|| "n is no number".into())
    }

    fn doubled(state: Value) -> Result<Value, String> {
        let count = state["count"].as_i64().ok_or("no count")?;
        Ok(json!({"count": count * 2}))
    }

    const CHAIN: &[Migration] = &[
        Migration {
            from: 1,
            step: renamed,
        },
        Migration {
            from: 2,
            step: doubled,
        },
    ];

    #[test]
    fn chains_go_a_step_at_a_time_and_keep_what_was() {
        let migrated = migrate(json!({"n": 4}), 1, 3, CHAIN).expect("a chain");
        assert_eq!(migrated.state, json!({"count": 8}));
        assert_eq!(
            migrated.backups,
            [(1, json!({"n": 4})), (2, json!({"count": 4}))]
        );
        assert_eq!(
            migrate(json!({"x": 1}), 3, 3, CHAIN).expect("none").backups,
            []
        );
    }

    #[test]
    fn states_that_cannot_be_led_are_refused() {
        let refused =
            |state, found, known| migrate(state, found, known, CHAIN).expect_err("refused");
        assert_eq!(
            refused(json!({}), 4, 3),
            StateError::Newer { found: 4, known: 3 }
        );
        assert_eq!(refused(json!({"n": 1}), 1, 4).code(), "state.no_migration");
        assert_eq!(
            refused(json!({"n": "x"}), 1, 3).code(),
            "state.migration_failed"
        );
    }
}
