//! Check of a store: the file, the hash chains of its logs, and the agents' progress.

use crate::fault::{Fault, fault, of_file};
use crate::log;
use crate::rows::{Hash, agent_key, all, change, uint};
use crate::runtime::{Cx, Reply, SqliteRuntime};
use crate::sql::params;
use a99_runtime_engine::StoreCode;
use a99_sqlite::Durability;

impl SqliteRuntime {
    /// Checks the whole file for damage, for dense sequence numbers and matching hashes in each
    /// log, and that no agent's progress passes the end of its log.
    ///
    /// Errors: [`StoreCode::Unreadable`] with the first fault, and those of reading.
    #[must_use = "it is done when its future is"]
    pub fn check(&self) -> Reply<'_, ()> {
        let file = self.database().map(|database| database.check());
        let logs = self.read(check);
        Box::pin(async move {
            if let Some(file) = file {
                file.await.map_err(|error| of_file(&error))?;
            }
            logs.await
        })
    }

    /// Flushes: waits for earlier requests, and in [`Durability::Relaxed`] also for the disk.
    pub(crate) fn flushed(&self) -> Reply<'_, ()> {
        match (self.database(), self.shared().options.durability) {
            (Some(database), Durability::Relaxed) => {
                let copied = database.checkpoint();
                Box::pin(async move { copied.await.map_err(|error| of_file(&error)) })
            }
            (Some(_), Durability::Process | Durability::Power) => self.write(|_| Ok(())),
            // A server acknowledges what is on its disk.
            (None, _) => Box::pin(std::future::ready(Ok(()))),
        }
    }
}

fn check(cx: &Cx<'_>) -> Result<(), Fault> {
    let sql = "SELECT name, head, hash FROM channel ORDER BY id";
    let heads = all(cx, sql, params![], |row| {
        Ok((
            row.get::<String>(0)?,
            uint(row.get(1)?)?,
            row.get::<Hash>(2)?,
        ))
    })?;
    for (name, head, hash) in heads {
        if log::chain(cx, &name)? != (head, hash) {
            let message = format!("the log of the channel {name} does not end in its head {head}");
            return Err(fault(StoreCode::Unreadable, message));
        }
    }
    if !cx.shared.options.has_channels {
        return Ok(());
    }
    let sql = "SELECT key, checkpoint FROM agent_state";
    let done = all(cx, sql, params![], |row| {
        Ok((agent_key(row, 0)?, uint(row.get(1)?)?))
    })?;
    done.iter()
        .try_for_each(|(key, done)| log::check_done(cx, key, *done))
}

/// Records a clean shutdown.
pub(crate) fn closed(cx: &Cx<'_>) -> Result<usize, Fault> {
    cx.own(0)?;
    let sql = "UPDATE agent_meta SET value = 1 WHERE name = 'is_closed'";
    change(cx, sql, params![])
}
