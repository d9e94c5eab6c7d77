//! Shards of a file: which of them a handle owns, and under which epochs.

use crate::fault::{Fault, fault, unreadable};
use crate::rows::{int, one, uint};
use crate::runtime::{Cx, Reply, SqliteRuntime, locked};
use crate::sql::{Db, params};
use a99_runtime_engine::{AgentKey, Claim, Fence, Millis, SHARDS, Shards, StoreCode, TakeOver};
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

    /// Forgets all shards, when the handle is closed.
    pub(crate) fn end(&self) -> Vec<(u16, u64)> {
        self.drop(Shards::ALL)
    }

    fn set(&self, shard: u16, epoch: u64) -> u64 {
        let place = self.epochs.get(usize::from(shard));
        place.map_or(0, |place| place.swap(epoch, Ordering::AcqRel))
    }
}

/// The claim of an owner that has the store alone.
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

/// The rows of all shards, which stay as they are until the transaction ends.
fn rows(db: &Db<'_>) -> Result<Vec<Row>, Fault> {
    let sql = "SELECT id, epoch, owner, expires FROM shard ORDER BY id /*FOR UPDATE*/";
    let mut found = Vec::with_capacity(usize::from(SHARDS));
    db.each(sql, params![], |row| {
        let (id, until): (i64, Option<i64>) = (row.get(0)?, row.get(3)?);
        if usize::try_from(id) != Ok(found.len()) {
            return Err(damaged());
        }
        found.push(Row {
            epoch: uint(row.get(1)?)?,
            owner: row.get(2)?,
            until: until.map(|until| Millis::try_from(until).unwrap_or_default()),
        });
        Ok(())
    })?;
    match found.len() == usize::from(SHARDS) {
        true => Ok(found),
        false => Err(damaged()),
    }
}

/// What a table of shards is that cannot be read.
pub(crate) const DAMAGED: &str = "its shards are not those of a store";

fn damaged() -> Fault {
    unreadable(DAMAGED)
}

/// Acquires the shards of a claim that it may take from their owners or that `owned` has.
pub(crate) fn take(db: &Db<'_>, claim: &Claim, owned: &Owned) -> Result<Taken, Fault> {
    let (mut taken, mut shards) = (Taken::default(), Shards::NONE);
    for (shard, row) in (0..).zip(rows(db)?) {
        let is_own = row.epoch != 0 && owned.epoch(shard) == row.epoch;
        let may_take = is_own || claim.takes_from(&row.owner, row.until);
        if !may_take || !claim.shards.contains(shard) {
            continue;
        }
        shards.insert(shard);
        taken.epochs.insert(shard, row.epoch + 1);
        let was_cut_off = match is_own {
            true => owned.was_cut_off().contains(shard),
            false => !row.owner.is_empty(),
        };
        if was_cut_off {
            taken.cut_off.insert(shard);
        }
    }
    let raise = "UPDATE shard SET epoch = epoch + 1, owner = ?3, expires = ?4
                 WHERE id >= ?1 AND id <= ?2";
    let (until, mut raised) = (claim.until.map(int), 0);
    for (first, last) in shards.ranges() {
        raised += db.execute(raise, params![first, last, claim.owner, until])?;
    }
    match raised == taken.epochs.len() {
        true => Ok(taken),
        false => Err(damaged()),
    }
}

/// Records that shards have no owner, unless a later one has them. Gives their number.
fn free(cx: &Cx<'_>, owned: &[(u16, u64)]) -> Result<usize, Fault> {
    if owned.is_empty() {
        return Ok(0);
    }
    let rows = rows(&cx.db)?;
    let is_own = |shard: u16, epoch: u64| {
        let row = rows.get(usize::from(shard));
        row.is_some_and(|row| row.epoch == epoch)
    };
    let own = owned.iter().filter(|(shard, epoch)| is_own(*shard, *epoch));
    let own: Shards = own.map(|(shard, _)| *shard).collect();
    for (first, last) in own.ranges() {
        let sql = "UPDATE shard SET owner = '', expires = NULL WHERE id >= ?1 AND id <= ?2";
        cx.db.execute(sql, params![first, last])?;
    }
    Ok(own.len())
}

/// Frees the shards of a handle that is closed.
///
/// # Errors
/// [`StoreCode::Fenced`] if others have all of them.
pub(crate) fn close(cx: &Cx<'_>, owned: &[(u16, u64)]) -> Result<usize, Fault> {
    match free(cx, owned)? {
        0 if !owned.is_empty() => Err(fault(StoreCode::Fenced, "another owner has the store")),
        freed => Ok(freed),
    }
}

impl Cx<'_> {
    /// Fails if this handle does not own a shard, or a later owner has it.
    ///
    /// # Errors
    /// [`StoreCode::Fenced`]
    pub(crate) fn own(&self, shard: u16) -> Result<u64, Fault> {
        let mine = self.shared.owned.epoch(shard);
        if mine == 0 {
            return Err(fault(
                StoreCode::Fenced,
                format!("the shard {shard} is not this owner's"),
            ));
        }
        let find = match (self.is_admitted, self.shared.options.is_shared) {
            (true, false) => return Ok(mine),
            // Who acquires the shard waits for the end of this transaction.
            (true, true) => "SELECT epoch FROM shard WHERE id = ?1 /*FOR SHARE*/",
            (false, _) => "SELECT epoch FROM shard WHERE id = ?1",
        };
        let found = one(self, find, [shard], |row| row.get(0))?;
        let found = uint(found.ok_or_else(|| unreadable("a shard is gone"))?)?;
        match mine {
            mine if mine == found => Ok(mine),
            mine => Err(fault(
                StoreCode::Fenced,
                format!("another owner has the shard {shard}: its epoch is {found}, not {mine}"),
            )),
        }
    }

    /// Fails if another owner has the agent's shard, or the activation began under another epoch.
    ///
    /// # Errors
    /// [`StoreCode::Fenced`]
    pub(crate) fn guard(&self, fence: &Fence) -> Result<(), Fault> {
        let mine = self.own(fence.key.shard())?;
        match fence.epoch.0 == mine {
            true => Ok(()),
            false => Err(fault(
                StoreCode::Fenced,
                format!(
                    "{} was read under epoch {}; now it is {mine}",
                    fence.key, fence.epoch
                ),
            )),
        }
    }

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
        let taking = self.write(move |cx| {
            if claim.owner.is_empty() {
                return Err(fault(StoreCode::Input, "an owner of shards has a name"));
            }
            take(&cx.db, &claim, &cx.shared.owned)
        });
        Box::pin(async move {
            let taken = taking.await?;
            self.shared().owned.put(&taken);
            let shards = taken.epochs.into_keys().collect();
            self.know_tables(shards, taken.cut_off).await?;
            Ok(shards)
        })
    }

    pub(crate) fn renew_shards(&self, until: Millis) -> Reply<'_, Shards> {
        let renewing = self.write(move |cx| {
            let (mut own, mut lost) = (Shards::NONE, Shards::NONE);
            for (shard, row) in (0..).zip(rows(&cx.db)?) {
                match cx.shared.owned.epoch(shard) {
                    0 => {}
                    mine if mine == row.epoch => own.insert(shard),
                    _ => lost.insert(shard),
                }
            }
            for (first, last) in own.ranges() {
                let sql = "UPDATE shard SET expires = ?3 WHERE id >= ?1 AND id <= ?2";
                cx.db.execute(sql, params![first, last, int(until)])?;
            }
            Ok(lost)
        });
        Box::pin(async move {
            let lost = renewing.await?;
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
        if let Some(files) = self.tables_of() {
            files.leave(shards);
        }
        owned
    }
}
