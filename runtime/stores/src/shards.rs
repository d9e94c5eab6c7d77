//! Shards of a file: which of them a handle owns, and under which epochs.

use crate::fault::{Fault, fault};
use crate::rows::int;
use crate::runtime::{Cx, Reply, SqliteRuntime, locked};
use a99_runtime_engine::{AgentKey, Claim, Millis, SHARDS, Shards, StoreCode, TakeOver};
use a99_sqlite::rusqlite::params;
use a99_sqlite::{SqliteCode, SqliteError, Tx};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether its last owner closed a shard is kept for each: a released one has no owner.
pub(crate) const OWNERS: &str = "
    UPDATE shard SET owner = ''
    WHERE EXISTS (SELECT 1 FROM agent_meta WHERE name = 'is_closed' AND value = 1);
    DROP TABLE agent_meta;";

/// The shards of a handle.
#[derive(Debug)]
pub(crate) struct Owned {
    /// The epoch of each shard that the handle owns, else 0. Each write reads one.
    epochs: Vec<AtomicU64>,
    cut_off: Mutex<Shards>,
}

/// Shards that a transaction acquired, with their epochs.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    epochs: BTreeMap<u16, u64>,
    cut_off: Shards,
}

impl Owned {
    /// The ownership of a handle that opens the store.
    pub(crate) fn of(taken: &Taken) -> Owned {
        let owned = Owned {
            epochs: (0..SHARDS).map(|_| AtomicU64::new(0)).collect(),
            cut_off: Mutex::default(),
        };
        owned.put(taken);
        owned
    }

    /// The epoch of a shard; 0 if the handle does not own it.
    pub(crate) fn epoch(&self, shard: u16) -> u64 {
        let epoch = self.epochs.get(usize::from(shard));
        epoch.map_or(0, |epoch| epoch.load(Ordering::Acquire))
    }

    /// Any of the shards.
    pub(crate) fn first(&self) -> Option<u16> {
        (0..SHARDS).find(|shard| self.epoch(*shard) != 0)
    }

    pub(crate) fn shards(&self) -> Shards {
        let all = 0..SHARDS;
        all.filter(|shard| self.epoch(*shard) != 0).collect()
    }

    pub(crate) fn was_cut_off(&self) -> Shards {
        *locked(&self.cut_off)
    }

    fn put(&self, taken: &Taken) {
        let mut cut_off = locked(&self.cut_off);
        let shards: Shards = taken.epochs.keys().copied().collect();
        *cut_off = (*cut_off - shards) | taken.cut_off;
        for (shard, epoch) in &taken.epochs {
            self.set(*shard, *epoch);
        }
    }

    /// Forgets shards, and gives those that the handle owned with their epochs.
    fn drop(&self, shards: Shards) -> Vec<(u16, u64)> {
        let mut cut_off = locked(&self.cut_off);
        *cut_off = *cut_off - shards;
        let epochs = shards.iter().map(|shard| (shard, self.set(shard, 0)));
        epochs.filter(|(_, epoch)| *epoch != 0).collect()
    }

    fn set(&self, shard: u16, epoch: u64) -> u64 {
        let place = self.epochs.get(usize::from(shard));
        place.map_or(0, |place| place.swap(epoch, Ordering::AcqRel))
    }
}

/// The claim of an owner that has the file alone.
pub(crate) fn whole(now: Millis) -> Claim {
    Claim {
        shards: Shards::ALL,
        owner: format!("process {}", std::process::id()),
        until: None,
        take_over: TakeOver::Always,
        now,
    }
}

/// A row of the table of shards.
struct Row {
    epoch: u64,
    owner: String,
    until: Option<Millis>,
}

/// The rows of all shards.
fn rows(tx: &Tx<'_>) -> Result<Vec<Row>, SqliteError> {
    let mut find = tx.prepare_cached("SELECT id, epoch, owner, expires FROM shard ORDER BY id")?;
    let mut rows = find.query([])?;
    let mut found = Vec::with_capacity(usize::from(SHARDS));
    while let Some(row) = rows.next()? {
        let (id, epoch): (i64, i64) = (row.get(0)?, row.get(1)?);
        let until: Option<i64> = row.get(3)?;
        let is_next = usize::try_from(id) == Ok(found.len());
        let epoch = u64::try_from(epoch).ok().filter(|_| is_next);
        found.push(Row {
            epoch: epoch.ok_or_else(damaged)?,
            owner: row.get(2)?,
            until: until.map(|until| Millis::try_from(until).unwrap_or_default()),
        });
    }
    match found.len() == usize::from(SHARDS) {
        true => Ok(found),
        false => Err(damaged()),
    }
}

fn damaged() -> SqliteError {
    SqliteError::new(SqliteCode::Corrupt, "its shards are not those of a store")
}

/// Acquires the shards of a claim that it may take from their owners or that `owned` has.
pub(crate) fn take(tx: &Tx<'_>, claim: &Claim, owned: &Owned) -> Result<Taken, SqliteError> {
    let mut taken = Taken::default();
    let mut raise =
        tx.prepare_cached("UPDATE shard SET epoch = ?2, owner = ?3, expires = ?4 WHERE id = ?1")?;
    for (shard, row) in (0..).zip(rows(tx)?) {
        let is_own = row.epoch != 0 && owned.epoch(shard) == row.epoch;
        let may_take = is_own || claim.takes_from(&row.owner, row.until);
        if !may_take || !claim.shards.contains(shard) {
            continue;
        }
        let epoch = row.epoch + 1;
        let row_of = params![shard, int(epoch), claim.owner, claim.until.map(int)];
        if raise.execute(row_of)? != 1 {
            return Err(damaged());
        }
        taken.epochs.insert(shard, epoch);
        let was_cut_off = match is_own {
            true => owned.was_cut_off().contains(shard),
            false => !row.owner.is_empty(),
        };
        if was_cut_off {
            taken.cut_off.insert(shard);
        }
    }
    Ok(taken)
}

/// Records that shards have no owner, unless a later one has them.
fn free(tx: &Tx<'_>, shards: &[(u16, u64)]) -> Result<usize, Fault> {
    let sql = "UPDATE shard SET owner = '', expires = NULL WHERE id = ?1 AND epoch = ?2";
    let mut free = tx.prepare_cached(sql)?;
    let mut freed = 0;
    for (shard, epoch) in shards {
        freed += free.execute(params![shard, int(*epoch)])?;
    }
    Ok(freed)
}

/// Frees the shards of a handle that is closed.
///
/// # Errors
/// [`StoreCode::Fenced`] if others have all of them.
pub(crate) fn close(cx: &Cx<'_>) -> Result<usize, Fault> {
    let owned = cx.shared.owned.drop(Shards::ALL);
    match free(cx, &owned)? {
        0 if !owned.is_empty() => Err(fault(StoreCode::Fenced, "another owner has the store")),
        freed => Ok(freed),
    }
}

impl Cx<'_> {
    /// Whether the handle lists what belongs to an agent: a reader lists everything.
    pub(crate) fn lists(&self, key: &AgentKey) -> bool {
        self.shared.is_reader || self.shared.owned.epoch(key.shard()) != 0
    }

    /// Fails if the handle does not own the file, for writes that belong to no agent. Owners that
    /// share it may all make them.
    ///
    /// # Errors
    /// [`StoreCode::Fenced`]
    pub(crate) fn own_any(&self) -> Result<(), Fault> {
        match self.shared.options.is_shared {
            true => Ok(()),
            false => self
                .own(self.shared.owned.first().unwrap_or_default())
                .map(drop),
        }
    }
}

impl SqliteRuntime {
    pub(crate) fn acquire_shards(&self, claim: Claim) -> Reply<'_, Shards> {
        let taking = self.write_now(move |cx| {
            if claim.owner.is_empty() {
                return Err(fault(StoreCode::Input, "an owner of shards has a name"));
            }
            Ok(take(cx, &claim, &cx.shared.owned)?)
        });
        Box::pin(async move {
            let taken = taking.answer().await?;
            self.shared().owned.put(&taken);
            let shards = taken.epochs.into_keys().collect();
            self.know_tables(shards, taken.cut_off).await?;
            Ok(shards)
        })
    }

    pub(crate) fn renew_shards(&self, until: Millis) -> Reply<'_, Shards> {
        let renewing = self.write_now(move |cx| {
            let mut lost = Shards::NONE;
            let mut renew = cx.prepare_cached("UPDATE shard SET expires = ?2 WHERE id = ?1")?;
            for (shard, row) in (0..).zip(rows(cx)?) {
                match cx.shared.owned.epoch(shard) {
                    0 => {}
                    mine if mine == row.epoch => {
                        renew.execute(params![shard, int(until)])?;
                    }
                    _ => lost.insert(shard),
                }
            }
            Ok(lost)
        });
        Box::pin(async move {
            let lost = renewing.answer().await?;
            self.forget_shards(lost);
            Ok(lost)
        })
    }

    pub(crate) fn release_shards(&self, shards: Shards) -> Reply<'_, ()> {
        let owned = self.forget_shards(shards);
        self.write(move |cx| free(cx, &owned).map(drop))
    }

    /// Ends the ownership of shards as far as this handle knows.
    fn forget_shards(&self, shards: Shards) -> Vec<(u16, u64)> {
        let owned = self.shared().owned.drop(shards);
        self.tables_of().leave(shards);
        owned
    }
}
