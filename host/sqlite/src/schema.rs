//! Schema check: a file must have exactly the schema of its components. Triggers, views,
//! expressions and indexes are code that comes with a file.

use crate::connection::LAYOUT_SQL;
use crate::error::{SqliteCode, SqliteError};
use crate::task::locked;
use a99_core::diag::excerpt;
use a99_core::text::escape_for_terminal;
use rusqlite::Connection;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

/// A row of `sqlite_schema`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    kind: String,
    name: String,
    table: String,
    sql: Option<String>,
}

impl Object {
    fn is_on(&self, table: &str) -> bool {
        self.table.eq_ignore_ascii_case(table)
    }

    fn shown(&self) -> String {
        let of = |text: &str| excerpt(&escape_for_terminal(text));
        match self.kind.as_str() {
            "trigger" | "index" => {
                let (kind, name, table) = (&self.kind, of(&self.name), of(&self.table));
                format!("the {kind} \"{name}\" on \"{table}\"")
            }
            kind => format!("the {} \"{}\"", of(kind), of(&self.name)),
        }
    }
}

fn objects(connection: &Connection) -> Result<Vec<Object>, SqliteError> {
    let mut find = connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let found = find.query_map([], |row| {
        Ok(Object {
            kind: row.get(0)?,
            name: row.get(1)?,
            table: row.get(2)?,
            sql: row.get(3)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn foreign(found: &Object, why: &str) -> SqliteError {
    SqliteError::new(SqliteCode::Foreign, format!("{} {why}", found.shown()))
}

/// Cache of the objects that migrations create, by the address of the first one and their
/// number.
type Made = HashMap<(usize, usize), Arc<BTreeSet<Object>>>;

/// The schema objects that these migrations create in an empty file.
fn made(migrations: &'static [&'static str]) -> Result<Arc<BTreeSet<Object>>, SqliteError> {
    static MADE: OnceLock<Mutex<Made>> = OnceLock::new();
    let key = (migrations.as_ptr().addr(), migrations.len());
    let known = MADE.get_or_init(Mutex::default);
    if let Some(found) = locked(known).get(&key) {
        return Ok(Arc::clone(found));
    }
    let empty = Connection::open_in_memory()?;
    for sql in migrations {
        empty.execute_batch(sql)?;
    }
    let objects = Arc::new(objects(&empty)?.into_iter().collect());
    locked(known).insert(key, Arc::clone(&objects));
    Ok(objects)
}

/// True if the tables of these migrations, and all objects that act on them, match the
/// migrations.
pub(crate) fn check(
    connection: &Connection,
    migrations: &'static [&'static str],
) -> Result<(), SqliteError> {
    let made = made(migrations)?;
    let is_ours = |object: &Object| made.iter().any(|ours| ours.is_on(&object.table));
    let found: BTreeSet<Object> = objects(connection)?.into_iter().filter(is_ours).collect();
    if let Some(other) = found.difference(&made).next() {
        return Err(foreign(other, "is not as this program makes it"));
    }
    match made.difference(&found).next() {
        Some(missing) => Err(foreign(missing, "is missing")),
        None => Ok(()),
    }
}

/// Checks a file with our application id before anything but its header is used: each row of
/// its schema matches its SQL text, there are no virtual tables, and the table of components is
/// ours. [`check`] can then rely on those rows to find all objects that act on a component's
/// tables.
pub(crate) fn screen(connection: &Connection) -> Result<(), SqliteError> {
    for object in objects(connection)? {
        let Some(sql) = &object.sql else {
            // Automatic indexes of primary keys and unique columns have no SQL.
            continue;
        };
        if sql
            .get(..14)
            .is_some_and(|head| head.eq_ignore_ascii_case("CREATE VIRTUAL"))
        {
            return Err(foreign(
                &object,
                "is a virtual table, which stores have not",
            ));
        }
        let as_said = heading(sql).is_some_and(|(kind, name, table)| {
            kind == object.kind
                && name.eq_ignore_ascii_case(&object.name)
                && table.eq_ignore_ascii_case(&object.table)
        });
        if !as_said {
            return Err(foreign(&object, "is not what its text makes"));
        }
    }
    check(connection, LAYOUT_SQL)
}

/// Kind, name and table of the object that an SQL text creates, if its form is plain.
fn heading(sql: &str) -> Option<(&'static str, &str, &str)> {
    let mut words = sql
        .split(|c: char| c.is_ascii_whitespace() || c == '(')
        .filter(|word| !word.is_empty());
    let mut next = || words.next().filter(|word| is_plain(word));
    if next()? != "CREATE" {
        return None;
    }
    let kind = match next()? {
        "UNIQUE" => next().filter(|kind| *kind == "INDEX"),
        kind => Some(kind),
    }?;
    let name = unquoted(next()?);
    match kind {
        "TABLE" => Some(("table", name, name)),
        "VIEW" => Some(("view", name, name)),
        "INDEX" if next()? == "ON" => Some(("index", name, unquoted(next()?))),
        "TRIGGER" => loop {
            if next()?.eq_ignore_ascii_case("ON") {
                return Some(("trigger", name, unquoted(next()?)));
            }
        },
        _ => None,
    }
}

/// True for an identifier, a quoted one without blanks, or a list of them; comments and parts
/// of longer names are refused.
fn is_plain(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_$,".contains(c) || !c.is_ascii();
    let bare = unquoted(word);
    !bare.is_empty() && bare.chars().all(is_name)
}

fn unquoted(word: &str) -> &str {
    let pairs = [('"', '"'), ('[', ']'), ('`', '`')];
    let inner = pairs.iter().find_map(|(open, close)| {
        let inner = word.strip_prefix(*open)?.strip_suffix(*close)?;
        (!inner.is_empty()).then_some(inner)
    });
    inner.unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d9_a_heading_is_read_or_refused() {
        for (sql, expected) in [
            ("CREATE TABLE a (b)", Some(("table", "a", "a"))),
            ("CREATE TABLE \"a\"(b)", Some(("table", "a", "a"))),
            ("CREATE UNIQUE INDEX i\nON t(x)", Some(("index", "i", "t"))),
            ("CREATE VIEW v AS SELECT 1", Some(("view", "v", "v"))),
            (
                "CREATE TRIGGER g AFTER UPDATE OF x, y ON t BEGIN SELECT 1; END",
                Some(("trigger", "g", "t")),
            ),
            (
                "CREATE TRIGGER g AFTER UPDATE OF \"ON\" ON t BEGIN SELECT 1; END",
                Some(("trigger", "g", "t")),
            ),
            (
                "CREATE TRIGGER g /* ON u */ AFTER INSERT ON t BEGIN SELECT 1; END",
                None,
            ),
            (
                "CREATE TRIGGER \"g ON u\" AFTER INSERT ON t BEGIN SELECT 1; END",
                None,
            ),
            (
                "CREATE TEMP TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
                None,
            ),
            (
                "CREATE/**/TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
                None,
            ),
            (
                "CREATE TRIGGER main.g AFTER INSERT ON t BEGIN SELECT 1; END",
                None,
            ),
            ("SELECT 1", None),
            ("", None),
        ] {
            assert_eq!(heading(sql), expected, "{sql}");
        }
    }
}
