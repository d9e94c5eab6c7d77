//! Journal of turns: their starts, and their steps by name.

use crate::fault::{Fault, fault, unreadable};
use crate::rows::{all, change, int, one, uint, uint32};
use crate::runtime::{Cx, present};
use crate::sql::{Row, params};
use a99_runtime_engine::{AgentKey, JournalRow, JournalStatus, StepClass, StoreCode, Trigger};

/// Records the start of a turn and the number of its attempt.
pub(crate) fn start(
    cx: &Cx<'_>,
    key: &AgentKey,
    trigger: &Trigger,
    attempt: u32,
) -> Result<(), Fault> {
    let sql = "INSERT INTO agent_inflight (key, trigger, attempt, started_at)
               VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (key, trigger) DO UPDATE SET
                   attempt = excluded.attempt, started_at = excluded.started_at";
    let row = params![key.as_str(), trigger.to_string(), attempt, present()];
    change(cx, sql, row).map(drop)
}

/// Turns that started and did not end.
pub(crate) fn started(cx: &Cx<'_>, key: &AgentKey) -> Result<Vec<(Trigger, u32)>, Fault> {
    let sql = "SELECT trigger, attempt FROM agent_inflight WHERE key = ?1
               ORDER BY started_at, trigger";
    all(cx, sql, [key.as_str()], |row| {
        Ok((trigger(row, 0)?, uint32(row.get(1)?)?))
    })
}

pub(crate) fn trigger(row: &Row<'_>, at: usize) -> Result<Trigger, Fault> {
    Ok(row.text(at)?.parse()?)
}

const fn class_name(class: StepClass) -> &'static str {
    match class {
        StepClass::Read => "read",
        StepClass::Idempotent => "idempotent",
        StepClass::Unsafe => "unsafe",
    }
}

fn class(name: &str) -> Result<StepClass, Fault> {
    let all = [StepClass::Read, StepClass::Idempotent, StepClass::Unsafe];
    let class = all.into_iter().find(|class| class_name(*class) == name);
    class.ok_or_else(|| unreadable(format!("{name:?} is no class of a step")))
}

fn status(
    name: &str,
    result: Option<String>,
    error: Option<String>,
) -> Result<JournalStatus, Fault> {
    match (name, result, error) {
        ("started", None, None) => Ok(JournalStatus::Started),
        ("done", Some(result), None) => Ok(JournalStatus::Done(result)),
        ("failed", Some(code), Some(error)) => Ok(JournalStatus::Failed(code, error)),
        _ => Err(unreadable(format!("{name:?} is no status of a step"))),
    }
}

/// The steps of a turn, in the order of their starts.
pub(crate) fn steps(
    cx: &Cx<'_>,
    key: &AgentKey,
    trigger: &Trigger,
) -> Result<Vec<JournalRow>, Fault> {
    let sql = "SELECT name, class, body, status, result, error FROM agent_journal
               WHERE key = ?1 AND trigger = ?2 ORDER BY id";
    all(cx, sql, [key.as_str(), &trigger.to_string()], |row| {
        Ok(JournalRow {
            trigger: trigger.clone(),
            name: row.get(0)?,
            class: class(row.text(1)?)?,
            body: row.get::<i64>(2)?.cast_unsigned(),
            status: status(row.text(3)?, row.get(4)?, row.get(5)?)?,
        })
    })
}

/// Records a step.
///
/// # Errors
/// [`StoreCode::ChangedBody`] if the name belongs to a different step, or the step ended
/// differently.
pub(crate) fn record(cx: &Cx<'_>, key: &AgentKey, step: &JournalRow) -> Result<(), Fault> {
    let (status, result, error) = match &step.status {
        JournalStatus::Started => ("started", None, None),
        JournalStatus::Done(result) => ("done", Some(result), None),
        JournalStatus::Failed(code, error) => ("failed", Some(code), Some(error)),
    };
    let most = cx.shared.options.limits.max_blob_bytes;
    if result.is_some_and(|result| result.len() > most) {
        let message = format!("the step {:?} gave more than {most} bytes", step.name);
        return Err(fault(StoreCode::TooLarge, message));
    }
    let sql = "INSERT INTO agent_journal (key, trigger, name, class, body, status, result, error)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT (key, trigger, name) DO UPDATE SET
                   status = excluded.status, result = excluded.result, error = excluded.error
               WHERE agent_journal.class = excluded.class AND agent_journal.body = excluded.body
                   AND (agent_journal.status <> 'done' OR excluded.status = 'done'
                       AND agent_journal.result = excluded.result)";
    let trigger = step.trigger.to_string();
    cx.check_name("step", &step.name)?;
    let row = params![
        key.as_str(),
        trigger,
        step.name,
        class_name(step.class),
        step.body.cast_signed(),
        status,
        result,
        error,
    ];
    if change(cx, sql, row)? == 1 {
        return Ok(());
    }
    let find = "SELECT status FROM agent_journal WHERE key = ?1 AND trigger = ?2 AND name = ?3";
    let keys = [key.as_str(), &trigger, &step.name];
    let found: Option<String> = one(cx, find, keys, |row| row.get(0))?;
    let what = match found.as_deref() {
        Some("done") => "is done, or was asked for something else",
        _ => "was asked for something else",
    };
    let message = format!("the step {:?} of {trigger} of {key} {what}", step.name);
    Err(fault(StoreCode::ChangedBody, message))
}

/// Discards starts and steps of turns that handle events, and gives the number of turns.
pub(crate) fn discard_events(cx: &Cx<'_>, key: &AgentKey) -> Result<u64, Fault> {
    let key = key.as_str();
    let count = "SELECT count(*) FROM (
                     SELECT trigger FROM agent_inflight WHERE key = ?1 UNION
                     SELECT trigger FROM agent_journal WHERE key = ?1) AS turns
                 WHERE trigger LIKE 'event:%'";
    let count: Option<i64> = one(cx, count, [key], |row| row.get(0))?;
    for sql in [
        "DELETE FROM agent_inflight WHERE key = ?1 AND trigger LIKE 'event:%'",
        "DELETE FROM agent_journal WHERE key = ?1 AND trigger LIKE 'event:%'",
    ] {
        change(cx, sql, [key])?;
    }
    uint(count.unwrap_or_default())
}

/// How often an operator set the agent's progress.
pub(crate) const REPLAYS: &str =
    "ALTER TABLE agent_state ADD COLUMN replays INTEGER NOT NULL DEFAULT 0";

/// Archives the states from before a migration.
pub(crate) fn back_up(
    cx: &Cx<'_>,
    key: &AgentKey,
    backups: &[(u32, String)],
    now: u64,
) -> Result<(), Fault> {
    for (version, state) in backups {
        let sql = "INSERT INTO agent_state_backup (key, version, at, state)
                   VALUES (?1, ?2, ?3, ?4)";
        change(cx, sql, params![key.as_str(), version, int(now), state])?;
    }
    Ok(())
}
