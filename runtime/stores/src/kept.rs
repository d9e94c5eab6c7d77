//! Turns that ended, kept so that they can be replayed.

use crate::fault::Fault;
use crate::journal;
use crate::rows::{all, change, int, limit, one, uint};
use crate::runtime::Cx;
use crate::sql::params;
use a99_runtime_engine::{AgentKey, KeptTurn, Trigger};

/// Maximum bytes of an agent's kept turns.
const MAX_BYTES: i64 = 16 << 20;

/// Most turns from one deletion to the next, unless they are large.
const BATCH: i64 = 8;

/// Bytes of a large turn.
const LARGE: i64 = 64 << 10;

/// Bits of the number of a turn in its `id`, below the number of its agent's row: the turns of an
/// agent are beside each other, without an index, which would be a further page of each commit.
const NUMBER_BITS: u32 = 32;

/// The bytes `until` a turn are those of all turns of the agent before it, deleted ones too.
pub(crate) const TURNS: &str = "
CREATE TABLE agent_turn (
    id INTEGER PRIMARY KEY,
    until INTEGER NOT NULL,
    size INTEGER NOT NULL,
    base INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    trigger TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL
) STRICT;
";

/// The first and the last `id` of an agent's turns; none before its first commit.
fn ids(cx: &Cx<'_>, key: &AgentKey) -> Result<[i64; 2], Fault> {
    let sql = "SELECT id FROM agent_state WHERE key = ?1";
    let agent: i64 = one(cx, sql, [key.as_str()], |row| row.get(0))?.unwrap_or_default();
    let first = agent << NUMBER_BITS;
    Ok([first, first | ((1 << NUMBER_BITS) - 1)])
}

/// Keeps a turn that ended with this revision, and deletes those beyond the limits. A turn that
/// exceeds them alone is not kept.
pub(crate) fn keep(
    cx: &Cx<'_>,
    key: &AgentKey,
    turn: &KeptTurn,
    revision: u64,
) -> Result<(), Fault> {
    let size = limit(turn.state.len() + turn.record.len());
    let most = MAX_BYTES - BATCH * LARGE;
    if size > most {
        return Ok(());
    }
    let [first, end] = ids(cx, key)?;
    let sql = "SELECT id, until FROM agent_turn WHERE id BETWEEN ?1 AND ?2
               ORDER BY id DESC LIMIT 1";
    let last = one(cx, sql, [first, end], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (id, until): (i64, i64) = last.unwrap_or((first, 0));
    let (id, until) = (id + 1, until + size);
    let sql = "INSERT INTO agent_turn (id, until, size, base, revision, trigger, state, record)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let trigger = turn.trigger.to_string();
    let (base, revision) = (int(turn.base), int(revision));
    let row = params![
        id,
        until,
        size,
        base,
        revision,
        trigger,
        &*turn.state,
        turn.record
    ];
    change(cx, sql, row)?;
    // Deleting touches further pages of the file.
    let keep = i64::from(turn.keep);
    if (id - first) % (keep / 8).clamp(1, BATCH) == 0 || size > LARGE {
        let sql = "DELETE FROM agent_turn
                   WHERE id BETWEEN ?1 AND ?2 AND (id <= ?3 OR until - size < ?4)";
        change(cx, sql, params![first, end, id - keep, until - most])?;
    }
    Ok(())
}

/// The triggers of an agent's kept turns, oldest first.
pub(crate) fn triggers(cx: &Cx<'_>, key: &AgentKey) -> Result<Vec<Trigger>, Fault> {
    let sql = "SELECT trigger FROM agent_turn WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    all(cx, sql, ids(cx, key)?, |row| journal::trigger(row, 0))
}

/// The last kept turn of a trigger, and the state that it left.
pub(crate) fn find(
    cx: &Cx<'_>,
    key: &AgentKey,
    trigger: &Trigger,
) -> Result<Option<(KeptTurn, Option<String>)>, Fault> {
    let [first, end] = ids(cx, key)?;
    let sql = "SELECT id, base, revision, state, record FROM agent_turn
               WHERE id BETWEEN ?1 AND ?2 AND trigger = ?3 ORDER BY id DESC LIMIT 1";
    let found = all(cx, sql, params![first, end, trigger.to_string()], |row| {
        let turn = KeptTurn {
            trigger: trigger.clone(),
            base: uint(row.get(1)?)?,
            state: row.get::<String>(3)?.into(),
            record: row.get(4)?,
            keep: 0,
        };
        Ok((row.get::<i64>(0)?, uint(row.get(2)?)?, turn))
    })?;
    let Some((id, revision, turn)) = found.into_iter().next() else {
        return Ok(None);
    };
    if revision == turn.base {
        let after = turn.state.to_string();
        return Ok(Some((turn, Some(after))));
    }
    let sql = "SELECT state FROM agent_turn WHERE id > ?1 AND id <= ?2 AND base = ?3
               UNION ALL SELECT state FROM agent_state WHERE key = ?4 AND revision = ?3
               LIMIT 1";
    let row = params![id, end, int(revision), key.as_str()];
    let after = one(cx, sql, row, |row| row.get(0))?;
    Ok(Some((turn, after)))
}
