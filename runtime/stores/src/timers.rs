//! Timers of agents: set and removed with turns, each occurrence taken once.

use crate::fault::{Fault, fault};
use crate::rows::{agent_key, change, int, json, limit, one, readable, uint};
use crate::runtime::Cx;
use crate::sql::{Row, params};
use a99_runtime_engine::{AgentKey, Millis, StoreCode, TimerChange, TimerRow};

/// The hop count of the turn that set the timer.
pub(crate) const HOPS: &str = "ALTER TABLE agent_timers ADD COLUMN hops INTEGER NOT NULL DEFAULT 1";

/// The time to which a relative timer refers.
pub(crate) const SET_AT: &str = "ALTER TABLE agent_timers ADD COLUMN set_at INTEGER";

/// Takes an occurrence: removes the timer or sets its next occurrence. Gives whether it was
/// still there.
pub(crate) fn take(
    cx: &Cx<'_>,
    key: &AgentKey,
    name: &str,
    due: Millis,
    again: Option<Millis>,
) -> Result<bool, Fault> {
    let (key, due) = (key.as_str(), int(due));
    let claimed = match again {
        None => change(
            cx,
            "DELETE FROM agent_timers WHERE key = ?1 AND name = ?2 AND due = ?3",
            params![key, name, due],
        )?,
        Some(again) => change(
            cx,
            "UPDATE agent_timers SET due = ?4 WHERE key = ?1 AND name = ?2 AND due = ?3",
            params![key, name, due, int(again)],
        )?,
    };
    Ok(claimed == 1)
}

/// Sets and removes timers, in order.
///
/// # Errors
/// [`StoreCode::TooLarge`] if the agent then has too many.
pub(crate) fn change_all(
    cx: &Cx<'_>,
    key: &AgentKey,
    changes: &[TimerChange],
) -> Result<(), Fault> {
    let text = key.as_str();
    for timer in changes {
        match timer {
            TimerChange::Remove(name) => {
                let sql = "DELETE FROM agent_timers WHERE key = ?1 AND name = ?2";
                change(cx, sql, params![text, name])?;
            }
            TimerChange::Set(timer) => {
                cx.check_name("timer", &timer.name)?;
                let payload = json("payload of the timer", &timer.payload)?;
                let most = cx.shared.options.limits.max_inline_bytes;
                if payload.len() > most {
                    let bytes = payload.len();
                    let message = format!(
                        "the timer {:?} of {key} has a payload of {bytes} bytes of at most {most}",
                        timer.name
                    );
                    return Err(fault(StoreCode::TooLarge, message));
                }
                let sql = "INSERT INTO agent_timers
                               (key, name, due, cron, zone, payload, hops, set_at)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                           ON CONFLICT (key, name) DO UPDATE SET due = excluded.due, cron = excluded.cron,
                               zone = excluded.zone, payload = excluded.payload,
                               hops = excluded.hops, set_at = excluded.set_at";
                let (due, set_at) = (int(timer.due), timer.set_at.map(int));
                let row = params![
                    text, timer.name, due, timer.cron, timer.zone, payload, timer.hops, set_at
                ];
                change(cx, sql, row)?;
            }
        }
    }
    let has_new = |timer: &TimerChange| matches!(timer, TimerChange::Set(_));
    if changes.iter().any(has_new) {
        let sql = "SELECT count(*) FROM agent_timers WHERE key = ?1";
        let count: Option<i64> = one(cx, sql, [text], |row| row.get(0))?;
        let most = cx.shared.options.limits.max_timers;
        if count.unwrap_or_default() > limit(most) {
            let message = format!("{key} would have more than {most} timers");
            return Err(fault(StoreCode::TooLarge, message));
        }
    }
    Ok(())
}

pub(crate) fn timer(row: &Row<'_>) -> Result<TimerRow, Fault> {
    Ok(TimerRow {
        name: row.get(1)?,
        due: uint(row.get(2)?)?,
        cron: row.get(3)?,
        zone: row.get(4)?,
        payload: serde_json::from_str(row.text(5)?)?,
        hops: row.get(6)?,
        set_at: row.get::<Option<i64>>(7)?.map(uint).transpose()?,
    })
}

/// Timers due at a time, earliest first.
pub(crate) fn due(
    cx: &Cx<'_>,
    until: Millis,
    most: usize,
) -> Result<Vec<(AgentKey, TimerRow)>, Fault> {
    let sql = "SELECT key, name, due, cron, zone, payload, hops, set_at FROM agent_timers
               WHERE due <= ?1 ORDER BY due, key, name LIMIT ?2";
    readable(cx, sql, params![int(until), limit(most)], |row| {
        Ok((agent_key(row, 0)?, timer(row)?))
    })
}

/// All readable timers of an agent, by name.
pub(crate) fn of_agent(cx: &Cx<'_>, key: &AgentKey) -> Result<Vec<TimerRow>, Fault> {
    let sql = "SELECT key, name, due, cron, zone, payload, hops, set_at FROM agent_timers
               WHERE key = ?1 ORDER BY name";
    readable(cx, sql, [key.as_str()], timer)
}

/// The earliest due time.
pub(crate) fn next_due(cx: &Cx<'_>) -> Result<Option<Millis>, Fault> {
    let due: Option<Option<i64>> =
        one(cx, "SELECT min(due) FROM agent_timers", params![], |row| {
            row.get(0)
        })?;
    due.flatten().map(uint).transpose()
}
