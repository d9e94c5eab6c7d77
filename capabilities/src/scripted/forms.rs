//! Validation of scripts: reports content that the mocks would never read.

use super::replies::{FAILS, REPLIES};
use crate::MemoryTurn;
use crate::script::unknown_member;
use a99_core::diag::suggest;
use a99_core::value::{Map, Value};

/// The members of a scripted command's output.
const OUTPUT: [&str; 6] = ["stdout", "stderr", "exitCode", "elapsedMs", "files", FAILS];

/// Checks replies by key; each may be a list of successive replies.
pub(super) fn keyed(member: &str, table: &Map) -> Result<(), String> {
    for (key, reply) in table.iter() {
        let about = |what: String| format!("`{member}` for `{key}`: {what}");
        match reply.get(REPLIES) {
            None => single(reply).map_err(about)?,
            Some(turns) => {
                let turns = turns.as_array().filter(|turns| !turns.is_empty());
                let turns = turns.ok_or_else(|| {
                    about(format!(
                        "`{REPLIES}` must be an array with a reply at least"
                    ))
                })?;
                turns.iter().try_for_each(single).map_err(about)?;
            }
        }
    }
    Ok(())
}

/// Checks replies of an ordered list.
pub(super) fn ordered(member: &str, list: &[Value]) -> Result<(), String> {
    for (at, reply) in list.iter().enumerate() {
        let about = |what: String| format!("`{member}`, reply {}: {what}", at + 1);
        if reply.get(REPLIES).is_some() {
            return Err(about(format!(
                "`{REPLIES}` is for replies by key; write its replies into the list"
            )));
        }
        single(reply).map_err(about)?;
    }
    Ok(())
}

/// Checks one reply. A misspelt `$fails` would otherwise be returned as data.
fn single(reply: &Value) -> Result<(), String> {
    let Some(members) = reply.as_object() else {
        return Ok(());
    };
    let Some(fails) = members.get(FAILS) else {
        let near = members.keys().find_map(|key| {
            let key = key.to_string_lossy();
            // Data may have members with a dollar sign, such as `$ref`.
            let near = match &*key {
                "$reply" | "$responses" | "$sequence" | "$turns" | "$answers" => REPLIES.to_owned(),
                "$error" | "$throws" | "$throw" | "$failure" => FAILS.to_owned(),
                _ => suggest(&key, [FAILS, REPLIES].into_iter())?,
            };
            (near != *key).then(|| format!("there is no `{key}`; did you mean `{near}`?"))
        });
        return near.map_or(Ok(()), Err);
    };
    match (fails, members.len()) {
        (_, 2..) => Err(format!("`{FAILS}` stands alone")),
        (Value::String(_), _) => Ok(()),
        _ => Err(format!("`{FAILS}` must be a text")),
    }
}

/// Checks a document of a vector collection.
pub(super) fn document(document: &Value) -> Result<(), String> {
    let embedding = document.get("embedding").and_then(Value::as_array);
    let fits = |list: &[Value]| !list.is_empty() && list.iter().all(|n| n.as_f64().is_some());
    if embedding.is_some_and(fits) {
        return Ok(());
    }
    let what = "expected an `embedding`, a list of numbers";
    let others = ["vector", "embeddings", "values", "vec", "emb"];
    let other = others.iter().find(|name| document.get(name).is_some());
    Err(match other {
        Some(other) => format!("{what}; call `{other}` `embedding`"),
        None => what.to_owned(),
    })
}

/// Checks the output of a command.
pub(super) fn output(reply: &Value) -> Result<(), String> {
    let Some(members) = reply.as_object() else {
        return Err("expected an object, such as `{\"stdout\": \"...\"}`".to_owned());
    };
    for key in members.keys() {
        if OUTPUT.iter().any(|known| *key == **known) {
            continue;
        }
        let near = suggest(&key.to_string_lossy(), OUTPUT.into_iter());
        return Err(match near {
            Some(near) => format!("unknown member `{key}`; did you mean `{near}`?"),
            None => format!("unknown member `{key}`; known are {}", OUTPUT.join(", ")),
        });
    }
    if members
        .get("files")
        .is_some_and(|f| f.as_object().is_none())
    {
        return Err("`files` must be an object of texts by path".to_owned());
    }
    match members.contains(FAILS) {
        true => single(reply),
        false => Ok(()),
    }
}

/// The members of a scripted turn.
const TURN: [&str; 4] = ["state", "settings", "identity", "storage"];

/// Creates the turn of a script.
pub(super) fn turn(table: &Map) -> Result<MemoryTurn, String> {
    let mut turn = MemoryTurn::new();
    for (name, value) in table.iter() {
        let about = |what: String| format!("`turn`: {what}");
        if !TURN.iter().any(|known| *name == **known) {
            return Err(about(unknown_member(name, &TURN)));
        }
        if value.as_object().is_none() {
            return Err(about(format!("`{name}` must be an object")));
        }
        let value = value.clone();
        turn = match &*name.to_string_lossy() {
            "state" => turn.with_state(value),
            "settings" => turn.with_settings(value),
            "identity" => turn.with_identity(value),
            _ => turn.with_storage(value),
        };
    }
    Ok(turn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::value;

    fn told(check: impl Fn(&Value) -> Result<(), String>, json: &str) -> String {
        check(&value(json)).err().unwrap_or_default()
    }

    #[test]
    fn what_nothing_would_read_is_told() {
        let by_key = |v: &Value| keyed("fetch", v.as_object().expect("an object"));
        assert_eq!(
            told(by_key, r#"{"u": {"$ref": 1}, "v": {"$replies": [1]}}"#),
            ""
        );
        let near = told(by_key, r#"{"u": {"$replys": [1]}}"#);
        assert_eq!(
            near,
            "`fetch` for `u`: there is no `$replys`; did you mean `$replies`?"
        );
        assert!(told(by_key, r#"{"u": {"$fail": "x"}}"#).contains("`$fails`?"));
        assert!(told(by_key, r#"{"u": {"$reply": [1]}}"#).contains("`$replies`?"));
        assert!(told(by_key, r#"{"u": {"$error": "x"}}"#).contains("`$fails`?"));
        assert!(told(by_key, r#"{"u": {"$replies": []}}"#).contains("a reply at least"));
        assert!(told(by_key, r#"{"u": {"$replies": [{"$fails": 5}]}}"#).contains("a text"));
        assert!(told(by_key, r#"{"u": {"$fails": "x", "status": 500}}"#).contains("alone"));
        let list = |v: &Value| ordered("llm", v.as_array().expect("an array"));
        assert_eq!(told(list, r#"["a", {"$fails": "b"}, {"content": 1}]"#), "");
        assert!(told(list, r#"[1, {"$replies": [1]}]"#).starts_with("`llm`, reply 2: "));
        assert_eq!(told(output, r#"{"stdout": "x", "files": {}}"#), "");
        assert_eq!(told(output, r#"{"$fails": "x"}"#), "");
        assert!(told(output, r#"{"stdot": "x"}"#).contains("`stdout`?"));
        assert!(told(output, "5").contains("expected an object"));
        assert!(told(output, r#"{"files": []}"#).contains("`files` must be"));
    }
}
