//! Agents with private tables: programs that keep rows beside their state.

use super::said;
use crate::harness::{Sandbox, a99};
use crate::hosted::Hosted;

const PROGRAM: &str = "async function agent({ event, state }) {
  if (event.type !== 'message' || event.sender.type === 'agent') {
    return { handled: false }
  }
  const text = event.content
  await agentSetState({ state: { count: (state.count ?? 0) + 1 } })
  const done = await agentStorageRun({
    sql: 'INSERT INTO notes (text) VALUES (?)',
    params: [text],
  })
  const count = await agentStorageGet({ sql: 'SELECT count(*) AS n FROM notes' })
  if (text.startsWith('SELECT')) {
    let answer = ''
    try {
      const rows = await agentStorageQuery({ sql: text })
      answer = JSON.stringify(rows)
    } catch (error) {
      answer = error.message
    }
    await agentSend({ content: answer })
  } else {
    await agentSend({ content: `${done.changes} ${done.lastInsertRowId} of ${count.n}` })
  }
  if (text === 'fail') {
    throw new Error('no')
  }
}
";

const CONFIG: &str = "[[agent]]
name = \"notes\"
program = \"notes.ajs\"
channel = \"c\"
migrations = [\"1.sql\"]
retry = { attempts = 1 }
fuel = 2000
";

#[test]
fn a_program_keeps_rows_with_its_state() {
    let folder = Sandbox::new("agent-tables");
    let config = folder.file("agents.toml", CONFIG);
    folder.file("notes.ajs", PROGRAM);
    folder.file(
        "1.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)",
    );
    let place = ["--config", config.as_str()];
    let send = |text: &str| {
        let done = a99(
            &[&["agent", "send", "c", text, "--wait"], &place[..]].concat(),
            b"",
        );
        (done.code, done.err)
    };
    let mut host = Hosted::start(&place);
    assert_eq!(send("one").0, 0);
    // A turn that becomes a dead letter rolls back its changes of tables.
    let (code, told) = send("fail");
    assert!(code == 1 && told.contains("error[cli.given_up]"), "{told}");
    assert_eq!(send("two").0, 0);
    host.kill();
    host = Hosted::start(&place);
    assert_eq!(send("three").0, 0);
    for text in [
        "SELECT id, text FROM notes WHERE id < 3",
        "SELECT record FROM a99_turn",
        "SELECT random() AS n",
        "SELECT missing FROM notes",
        "SELECT 9007199254740993 AS n",
        "SELECT zeroblob(1e9) AS b",
    ] {
        let (code, told) = send(text);
        assert_eq!(code, 0, "{text}: {told}");
    }
    // A turn's fuel bounds the rows that its statements scan.
    let endless = "SELECT max(x) FROM (WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL \
                   SELECT x + 1 FROM n) SELECT x FROM n)";
    let (code, told) = send(endless);
    assert_eq!(code, 1, "{told}");
    let shown = a99(
        &[&["agent", "inspect", "notes", "--json"], &place[..]].concat(),
        b"",
    )
    .json();
    assert_eq!(shown["state"]["count"], 9, "{shown}");
    host.end();
    let said = said(&place, "c", "notes");
    assert_eq!(&said[..3], ["1 1 of 1", "1 2 of 2", "1 3 of 3"], "{said:?}");
    assert_eq!(said[3], r#"[{"id":1,"text":"one"},{"id":2,"text":"two"}]"#);
    for (at, text) in [
        (4, "store.input: a99_turn is the runtime's"),
        (5, "store.input: random may give something else"),
        (6, "store.input: no such column: missing"),
        (7, "CAST(n AS TEXT)"),
        (8, "store.too_large"),
    ] {
        assert!(said[at].contains(text), "{at}: {said:?}");
    }
    assert_eq!(said.len(), 9, "{said:?}");
}

#[test]
fn what_is_wrong_with_tables_is_told_at_its_place() {
    let folder = Sandbox::new("agent-tables-wrong");
    folder.file("notes.ajs", PROGRAM);
    folder.file(
        "1.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)",
    );
    for (lines, told) in [
        ("tables = true\nconcurrency = 4", "one turn at a time"),
        ("tables = false", "it has no tables"),
        ("tables = 3", "expected true or false"),
    ] {
        let config = folder.file("agents.toml", &format!("{CONFIG}{lines}\n"));
        let host = a99(&["agent", "host", "--config", &config], b"");
        assert!(
            host.code == 2 && host.err.contains(told),
            "{lines}: {host:?}"
        );
    }
    let missing = CONFIG.replace("1.sql", "2.sql");
    let config = folder.file("agents.toml", &missing);
    let host = a99(&["agent", "host", "--config", &config], b"");
    assert!(host.code == 2 && host.err.contains("2.sql"), "{host:?}");
    // Without tables the atoms are missing, as without a capability.
    let none = CONFIG.replace("migrations = [\"1.sql\"]\n", "");
    let config = folder.file("agents.toml", &none);
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let sent = a99(
        &[&["agent", "send", "c", "x", "--wait"], &place[..]].concat(),
        b"",
    );
    assert_eq!(sent.code, 1, "{sent:?}");
    let shown = a99(
        &[&["agent", "inspect", "notes", "--json"], &place[..]].concat(),
        b"",
    )
    .json();
    let shown = shown.to_string();
    assert!(
        shown.contains("Capability 'agentTurn.storage' missing"),
        "{shown}"
    );
    host.end();
}
