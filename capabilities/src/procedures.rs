//! Stored procedures: programs that programs store under a token (language section 2.7).
//!
//! The reference has one unbounded global table. Here the host grants a table with limits of
//! count, size and time.

use crate::error::CapabilityError;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
use crate::random::SystemRandom;
use crate::random::{Random, uuid_v4};
use crate::script::lock;
use crate::size::value_bytes;
use a99_core::value::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Bounds of a table of procedures.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ProcedureLimits {
    /// Most procedures that have not expired.
    pub max_count: usize,
    /// Most bytes of all procedures, as estimated.
    pub max_bytes: usize,
    /// Longest time to live, in milliseconds.
    pub max_ttl_ms: f64,
}

impl Default for ProcedureLimits {
    /// 1,000 procedures, 16 MiB (a quarter of the default heap ceiling of one run), 24 hours
    /// (the default time to live of a cache entry).
    fn default() -> Self {
        ProcedureLimits {
            max_count: 1_000,
            max_bytes: 16 << 20,
            max_ttl_ms: 86_400_000.0,
        }
    }
}

/// Reason why a token has no procedure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProcedureMiss {
    /// The token was never given, or the procedure was released.
    NotFound,
    /// The procedure expired.
    Expired,
}

impl ProcedureMiss {
    /// The text that programs see for this token.
    #[must_use]
    pub fn message(self, token: &str) -> String {
        match self {
            ProcedureMiss::NotFound => format!("Procedure not found: {token}"),
            ProcedureMiss::Expired => format!("Procedure expired: {token}"),
        }
    }
}

/// A table of procedures. `now_ms` is the caller's time in milliseconds since the Unix epoch.
pub trait Procedures: Send + Sync {
    /// Stores a program for `ttl_ms` milliseconds (within the table's limits); returns its
    /// token, `proc_` and a UUID.
    fn store(&self, ast: Value, ttl_ms: f64, now_ms: f64) -> Result<String, CapabilityError>;
    /// The program of a token.
    fn get(&self, token: &str, now_ms: f64) -> Result<Value, ProcedureMiss>;
    /// Deletes a program; returns whether it existed.
    fn release(&self, token: &str) -> bool;
    /// Deletes expired programs; returns their number.
    fn clear_expired(&self, now_ms: f64) -> usize;
}

struct Procedure {
    ast: Value,
    bytes: usize,
    expires_ms: f64,
}

#[derive(Default)]
struct Table {
    entries: HashMap<String, Procedure>,
    bytes: usize,
}

impl Table {
    fn remove(&mut self, token: &str) -> bool {
        match self.entries.remove(token) {
            Some(old) => {
                self.bytes -= old.bytes;
                true
            }
            None => false,
        }
    }

    fn sweep(&mut self, now_ms: f64) -> usize {
        let before = self.entries.len();
        let bytes = &mut self.bytes;
        self.entries.retain(|_, p| {
            let keep = now_ms < p.expires_ms;
            if !keep {
                *bytes -= p.bytes;
            }
            keep
        });
        before - self.entries.len()
    }
}

/// A table in memory.
pub struct MemoryProcedures {
    table: Mutex<Table>,
    limits: ProcedureLimits,
    random: Arc<dyn Random>,
}

impl fmt::Debug for MemoryProcedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryProcedures")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Default for MemoryProcedures {
    fn default() -> Self {
        MemoryProcedures::new(ProcedureLimits::default())
    }
}

impl MemoryProcedures {
    /// An empty table with tokens from the operating system's randomness, which is missing on
    /// `wasm32-unknown-unknown`.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    #[must_use]
    pub fn new(limits: ProcedureLimits) -> MemoryProcedures {
        MemoryProcedures::with_random(limits, Arc::new(SystemRandom))
    }

    /// An empty table with tokens from this source.
    #[must_use]
    pub fn with_random(limits: ProcedureLimits, random: Arc<dyn Random>) -> MemoryProcedures {
        MemoryProcedures {
            table: Mutex::default(),
            limits,
            random,
        }
    }

    fn token(&self) -> String {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        format!("proc_{}", uuid_v4(bytes))
    }
}

impl Procedures for MemoryProcedures {
    fn store(&self, ast: Value, ttl_ms: f64, now_ms: f64) -> Result<String, CapabilityError> {
        // NaN and negative times count as zero.
        let ttl_ms = if ttl_ms > 0.0 {
            ttl_ms.min(self.limits.max_ttl_ms)
        } else {
            0.0
        };
        let bytes = value_bytes(&ast);
        let mut table = lock(&self.table);
        let full = |t: &Table| {
            t.entries.len() >= self.limits.max_count
                || t.bytes.saturating_add(bytes) > self.limits.max_bytes
        };
        if full(&table) {
            table.sweep(now_ms);
        }
        if full(&table) {
            return Err(CapabilityError::new("Procedure store is full"));
        }
        let token = self.token();
        table.remove(&token);
        table.bytes += bytes;
        table.entries.insert(
            token.clone(),
            Procedure {
                ast,
                bytes,
                expires_ms: now_ms + ttl_ms,
            },
        );
        Ok(token)
    }

    fn get(&self, token: &str, now_ms: f64) -> Result<Value, ProcedureMiss> {
        let mut table = lock(&self.table);
        let Some(found) = table.entries.get(token) else {
            return Err(ProcedureMiss::NotFound);
        };
        if now_ms < found.expires_ms {
            return Ok(found.ast.clone());
        }
        table.remove(token);
        Err(ProcedureMiss::Expired)
    }

    fn release(&self, token: &str) -> bool {
        lock(&self.table).remove(token)
    }

    fn clear_expired(&self, now_ms: f64) -> usize {
        lock(&self.table).sweep(now_ms)
    }
}

/// Conformance suite of [`Procedures`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::{ProcedureMiss, Procedures};
    use crate::error::{SuiteResult, ensure, expect};
    use a99_core::value::{Map, Value};

    /// Stores, reads, expires and releases procedures.
    pub fn conformance(table: &dyn Procedures) -> SuiteResult {
        let ast = Value::Object([("op", "seq")].into_iter().collect::<Map>());
        let store = |ttl| expect(table.store(ast.clone(), ttl, 1_000.0), "a program is kept");
        let (a, b) = (store(500.0)?, store(500.0)?);
        ensure(
            a.starts_with("proc_") && a != b,
            "tokens start with proc_ and differ",
        )?;
        ensure(
            table.get(&a, 1_499.0) == Ok(ast.clone()),
            "a token gives its program",
        )?;
        let late = table.get(&a, 1_500.0);
        ensure(late == Err(ProcedureMiss::Expired), "a program expires")?;
        ensure(
            table.release(&b) && !table.release(&b),
            "a program is released once",
        )?;
        ensure(
            table.get(&b, 1_000.0) == Err(ProcedureMiss::NotFound),
            "and then unknown",
        )?;
        for ttl in [f64::NAN, -1.0, 0.0] {
            let dead = store(ttl)?;
            ensure(table.get(&dead, 1_000.0).is_err(), "no time is no life")?;
        }
        store(1.0)?;
        table.clear_expired(1_000.5);
        ensure(
            table.clear_expired(1_001.0) == 1,
            "sweeping counts what it removes",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRandom;

    #[test]
    fn memory_procedures_conform() {
        suite::conformance(&MemoryProcedures::default()).unwrap();
    }

    #[test]
    fn bounds_hold_and_expiry_makes_room() {
        let limits = ProcedureLimits {
            max_count: 2,
            max_ttl_ms: 10.0,
            ..Default::default()
        };
        let table = MemoryProcedures::with_random(limits, Arc::new(SeededRandom::new(1)));
        let store = |now| table.store(Value::Null, f64::INFINITY, now);
        store(0.0).unwrap();
        store(0.0).unwrap();
        assert_eq!(store(0.0).unwrap_err().message, "Procedure store is full");
        store(10.0).unwrap();
        let huge = Value::from("x".repeat(limits.max_bytes));
        assert!(table.store(huge, 1.0, 100.0).is_err());
    }
}
