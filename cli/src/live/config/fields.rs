//! Fields of a table of agents.toml. Each is read once, and errors have its position.

use crate::config::file::{Mistakes, Places};
use crate::config::{BAD_VALUE, UNKNOWN_KEY};
use crate::failure::Failure;
use a99_core::diag::{excerpt, suggest};
use serde_json::{Map, Number, Value as Json};
use std::cell::RefCell;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its byte offset.
pub(super) type At<T> = (usize, T);

/// A table with its name for messages, and its mistakes.
pub(super) struct Fields<'a, 't> {
    pub(super) table: &'a DeTable<'t>,
    /// Byte offset of the table.
    pub(super) at: usize,
    /// Prefix of its keys in messages, such as `[store]`.
    name: &'a str,
    places: &'a Places<'a>,
    wrong: &'a RefCell<Mistakes>,
}

/// Name of a type in messages, and an example value.
struct Kind(&'static str, &'static str);

impl<'a, 't> Fields<'a, 't> {
    pub(super) fn new(
        (at, table): At<&'a DeTable<'t>>,
        name: &'a str,
        places: &'a Places<'a>,
        wrong: &'a RefCell<Mistakes>,
    ) -> Fields<'a, 't> {
        Fields {
            table,
            at,
            name,
            places,
            wrong,
        }
    }

    pub(super) fn blame(&self, at: usize, text: &str, help: impl Into<String>) {
        let text = self.places.at(at, &format!("{}: {text}", self.name));
        let failure = Failure::coded(BAD_VALUE, text, help);
        self.wrong.borrow_mut().push((at, failure));
    }

    /// Refuses unknown keys.
    pub(super) fn refuse_others(&self, known: &[&'static str]) {
        for (key, _) in self.table.iter() {
            if !known.contains(&key.get_ref().as_ref()) {
                self.unknown(key.span().start, key.get_ref(), known);
            }
        }
    }

    /// Refuses an unknown key.
    pub(super) fn unknown(&self, at: usize, key: &str, known: &[&'static str]) {
        let plain = key.replace('_', "-");
        let same = known.iter().find(|name| **name == plain);
        let near = same.map(|name| (*name).to_owned());
        let help = match near.or_else(|| suggest(key, known.iter().copied())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("keys are {}", known.join(", ")),
        };
        let text = format!("{}: there is no key `{}`", self.name, excerpt(key));
        let failure = Failure::coded(UNKNOWN_KEY, self.places.at(at, &text), help);
        self.wrong.borrow_mut().push((at, failure));
    }

    /// Whether a key is missing, and no unknown key looks like a misspelling of it.
    pub(super) fn is_missing(&self, key: &str, known: &[&'static str]) -> bool {
        let mut words = self.table.iter().map(|(word, _)| word.get_ref().as_ref());
        !words.any(|word: &str| {
            let is_near = || suggest(word, std::iter::once(key)).is_some();
            word == key || !known.contains(&word) && is_near()
        })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    fn read<T>(
        &self,
        key: &str,
        kind: &Kind,
        read: impl Fn(&DeValue<'t>) -> Option<T>,
    ) -> Option<At<T>> {
        let value = self.get(key)?;
        let at = value.span().start;
        let found = read(value.get_ref());
        if found.is_none() {
            self.is_no(at, key, kind, value);
        }
        Some((at, found?))
    }

    fn is_no(&self, at: usize, key: &str, kind: &Kind, value: &Spanned<DeValue<'t>>) {
        let found = excerpt(self.places.written(value.span()));
        let text = format!("`{key}`: expected {}, found `{found}`", kind.0);
        self.blame(at, &text, format!("write it as in `{key} = {}`", kind.1));
    }

    /// A non-empty text.
    pub(super) fn text(&self, key: &str, example: &'static str) -> Option<At<String>> {
        self.read(key, &Kind("a text", example), text)
    }

    /// A text, or a list of texts.
    pub(super) fn texts(&self, key: &str, example: &'static str) -> Vec<At<String>> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let parts: Vec<&Spanned<DeValue<'t>>> = match value.get_ref() {
            DeValue::Array(parts) => parts.iter().collect(),
            _ => vec![value],
        };
        let read = parts.into_iter().filter_map(|part| {
            let at = part.span().start;
            let found = text(part.get_ref());
            if found.is_none() {
                let kind = Kind("a text or a list of texts", example);
                self.is_no(at, key, &kind, part);
            }
            Some((at, found?))
        });
        read.collect()
    }

    /// A boolean.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        let kind = Kind("true or false", "true");
        let read = self.read(key, &kind, |value| match value {
            DeValue::Boolean(flag) => Some(*flag),
            _ => None,
        });
        read.map(|(_, flag)| flag)
    }

    /// A positive integer.
    pub(super) fn count(&self, key: &str) -> Option<u32> {
        self.whole(key, &Kind("a whole number from 1", "3"), 1)
    }

    /// An integer, not negative.
    pub(super) fn count_or_none(&self, key: &str) -> Option<u32> {
        self.whole(key, &Kind("a whole number from 0", "100"), 0)
    }

    fn whole(&self, key: &str, kind: &Kind, least: u32) -> Option<u32> {
        let read = self.read(key, kind, |value| match value {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix())
                .ok()
                .filter(|n| *n >= least),
            _ => None,
        });
        read.map(|(_, count)| count)
    }

    /// A duration with its unit.
    pub(super) fn time(&self, key: &str) -> Option<At<Duration>> {
        let kind = Kind("a time, as in 500ms, 5s, 2m, 1h", "\"5s\"");
        self.read(key, &kind, |value| match value {
            DeValue::String(text) => crate::duration::time(text).ok(),
            DeValue::Integer(number) => crate::duration::time(number.as_str()).ok(),
            _ => None,
        })
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&'static str, T)]) -> Option<T> {
        let (at, found) = self.text(key, "\"...\"")?;
        let names = words.iter().map(|(name, _)| *name);
        match words.iter().find(|(name, _)| *name == found) {
            Some((_, value)) => Some(*value),
            None => {
                let list: Vec<&str> = names.clone().collect();
                let near = suggest(&found, names);
                let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                let help = format!("{near}write one of `{}`", list.join("`, `"));
                self.blame(
                    at,
                    &format!("`{key}`: there is no `{}`", excerpt(&found)),
                    help,
                );
                None
            }
        }
    }

    /// A value as JSON.
    pub(super) fn json(&self, key: &str) -> Option<At<Json>> {
        let value = self.get(key)?;
        match json(value) {
            Ok(json) => Some((value.span().start, json)),
            Err(at) => {
                let text = format!("`{key}`: a number that JSON does not have");
                self.blame(at, &text, "write a finite number");
                None
            }
        }
    }

    pub(super) fn table(&self, key: &str, example: &'static str) -> Option<At<&'a DeTable<'t>>> {
        let value = self.get(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Table(table) => Some((at, table)),
            _ => {
                self.is_no(at, key, &Kind("a table", example), value);
                None
            }
        }
    }

    pub(super) fn tables(&self, key: &str, example: &'static str) -> Vec<At<&'a DeTable<'t>>> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let DeValue::Array(parts) = value.get_ref() else {
            let kind = Kind("a list of tables", example);
            self.is_no(value.span().start, key, &kind, value);
            return Vec::new();
        };
        let tables = parts.iter().filter_map(|part| {
            let at = part.span().start;
            match part.get_ref() {
                DeValue::Table(table) => Some((at, table)),
                _ => {
                    self.is_no(at, key, &Kind("a table", example), part);
                    None
                }
            }
        });
        tables.collect()
    }
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) if !text.trim().is_empty() => Some(text.to_string()),
        _ => None,
    }
}

/// A value as JSON, or the offset of a part that JSON cannot represent. Dates become strings.
fn json(value: &Spanned<DeValue<'_>>) -> Result<Json, usize> {
    let at = value.span().start;
    Ok(match value.get_ref() {
        DeValue::String(text) => Json::String(text.to_string()),
        DeValue::Boolean(flag) => Json::Bool(*flag),
        DeValue::Datetime(time) => Json::String(time.to_string()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            Json::Number(number.map_err(|_| at)?.into())
        }
        DeValue::Float(number) => {
            let number: f64 = number.as_str().parse().map_err(|_| at)?;
            Json::Number(Number::from_f64(number).ok_or(at)?)
        }
        DeValue::Array(parts) => Json::Array(parts.iter().map(json).collect::<Result<_, _>>()?),
        DeValue::Table(table) => {
            let members = table
                .iter()
                .map(|(key, value)| Ok((key.get_ref().to_string(), json(value)?)));
            Json::Object(members.collect::<Result<Map<_, _>, usize>>()?)
        }
    })
}
