//! Writers of a store on a server, taken by an owner or added by one that shares the store.

use super::WRITERS;
use crate::fault::Fault;
use crate::runtime::present;
use crate::shards::{self, Owned as OwnedShards, Taken};
use crate::sql::Db;
use a99_postgres::{PostgresCode, PostgresError, Tx};
use std::ops::ControlFlow;

/// The writers of an owner.
pub(super) struct Writers {
    pub(super) epoch: i64,
    pub(super) ids: Vec<i64>,
}

impl Writers {
    /// Those that a statement gives with their epoch.
    fn of(tx: &Tx, sql: &'static str) -> Result<Writers, PostgresError> {
        let (mut epoch, mut ids) = (0, Vec::new());
        tx.query(sql, Vec::new(), |row| {
            ids.push(row.try_get(0)?);
            epoch = row.try_get(1)?;
            Ok(ControlFlow::Continue(()))
        })?;
        match ids.len() == WRITERS {
            true => Ok(Writers { epoch, ids }),
            false => Err(PostgresError::new(
                PostgresCode::Corrupt,
                "its writers are not those of a store",
            )),
        }
    }
}

/// Takes all writers and shards.
pub(super) fn take_over(tx: &Tx) -> Result<(Writers, Taken), PostgresError> {
    // The order in which other owners lock them.
    tx.execute(
        "SELECT id FROM agent_writer ORDER BY id FOR UPDATE",
        Vec::new(),
    )?;
    // Those of owners that shared the store, killed ones included.
    tx.execute("DELETE FROM agent_writer WHERE id >= 64", Vec::new())?;
    let raise = "UPDATE agent_writer SET epoch = epoch + 1, last = 0 RETURNING id, epoch";
    let writers = Writers::of(tx, raise)?;
    let now = u64::try_from(present()).unwrap_or_default();
    let mut claim = shards::whole(now);
    claim.owner = format!("{} on {}", claim.owner, host());
    let nothing = OwnedShards::of(&Taken::default());
    let taken = shards::take(&Db::Server(tx), &claim, &nothing);
    let taken = taken.map_err(|fault| match fault {
        Fault::Server(error) => error,
        _ => PostgresError::new(PostgresCode::Corrupt, shards::DAMAGED),
    })?;
    Ok((writers, taken))
}

/// Adds the writers of an owner that shares the store.
pub(super) fn add_writers(tx: &Tx) -> Result<Writers, PostgresError> {
    // One owner at a time adds some, or takes all.
    let lock = "SELECT id FROM agent_writer WHERE id = 0 FOR UPDATE";
    tx.execute(lock, Vec::new())?;
    Writers::of(
        tx,
        "INSERT INTO agent_writer
             SELECT last.id + n, last.epoch, 0
             FROM (SELECT max(id) AS id, max(epoch) AS epoch FROM agent_writer) AS last,
                  generate_series(1, 64) AS n
         RETURNING id, epoch",
    )
}

/// The name of this machine, for display only.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "this machine".to_owned(), |name| name.trim().to_owned())
}
