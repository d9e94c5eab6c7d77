//! Opaque members of a completion, assembled from its chunks.

use super::super::Step;
use super::super::json::map;
use a99_capabilities::ai::{Opaque, Place, is_opaque_member};
use a99_core::value::{Map, Value};

/// The opaque members to send back with the message.
#[derive(Debug, Default)]
pub(super) struct OpaqueMembers {
    members: Members,
    /// Thinking inside the content: the bytes of text before it, and its text.
    thoughts: Vec<(usize, String)>,
}

impl OpaqueMembers {
    /// Takes the opaque members of a delta.
    pub(super) fn take(&mut self, delta: &Value) {
        for (key, value) in opaque(delta) {
            join(&mut self.members, &key, value);
        }
    }

    /// Takes a piece of thinking that is part of the content.
    pub(super) fn think(&mut self, after: usize, thinking: &str) {
        match self.thoughts.last_mut() {
            Some((at, thought)) if *at == after => thought.push_str(thinking),
            _ => self.thoughts.push((after, thinking.to_owned())),
        }
    }

    /// Completes the message.
    pub(super) fn give(&mut self, out: &mut Vec<Step>) {
        for (text, thought) in std::mem::take(&mut self.thoughts) {
            let inner = map([("type", "text".into()), ("text", thought.into())]);
            let part = [
                ("type", "thinking".into()),
                ("thinking", Value::Array(vec![inner])),
            ];
            Step::opaque(
                out,
                Opaque::new(Place::Content { text, calls: 0 }, map(part)),
            );
        }
        let members = std::mem::take(&mut self.members);
        if !members.is_empty() {
            Step::opaque(out, Opaque::new(Place::Message, map_of(members)));
        }
    }
}

/// The opaque members of an object.
fn opaque(of: &Value) -> impl Iterator<Item = (String, &Value)> {
    let members = of.as_object().into_iter().flat_map(Map::iter);
    let members = members.map(|(key, value)| (key.to_string_lossy().into_owned(), value));
    members.filter(|(key, value)| !value.is_nullish() && is_opaque_member(key))
}

/// The opaque members of a tool call; those of its function are under `function`.
pub(super) fn call_members(call: &Value, function: &Value) -> Map {
    let collect = |of| {
        let mut members = Map::new();
        for (key, value) in opaque(of) {
            members.insert(key, value.clone());
        }
        members
    };
    let mut members = collect(call);
    let inner = collect(function);
    if !inner.is_empty() {
        members.insert("function", inner);
    }
    members
}

/// A member that grows with each chunk.
#[derive(Debug)]
enum GrowingMember {
    Text(String),
    List(Vec<GrowingMember>),
    Members(Members),
    Whole(Value),
}

type Members = Vec<(String, GrowingMember)>;

impl GrowingMember {
    fn of(value: &Value) -> GrowingMember {
        match value {
            Value::String(text) => GrowingMember::Text(text.to_string_lossy().into_owned()),
            Value::Array(items) => {
                let mut list = Vec::new();
                items.iter().for_each(|item| add(&mut list, item));
                GrowingMember::List(list)
            }
            Value::Object(members) => {
                let members = members.iter();
                let members = members.map(|(key, value)| {
                    (key.to_string_lossy().into_owned(), GrowingMember::of(value))
                });
                GrowingMember::Members(members.collect())
            }
            other => GrowingMember::Whole(other.clone()),
        }
    }

    fn into_value(self) -> Value {
        match self {
            GrowingMember::Text(text) => text.into(),
            GrowingMember::List(items) => {
                Value::Array(items.into_iter().map(GrowingMember::into_value).collect())
            }
            GrowingMember::Members(members) => Value::Object(map_of(members)),
            GrowingMember::Whole(value) => value,
        }
    }

    fn is_text(&self, value: Option<&Value>) -> bool {
        match self {
            GrowingMember::Text(own) => value
                .and_then(Value::as_text)
                .is_some_and(|text| text.to_string_lossy() == **own),
            GrowingMember::Whole(own) => Some(own) == value,
            _ => false,
        }
    }
}

fn map_of(members: Members) -> Map {
    let mut map = Map::new();
    for (key, value) in members {
        map.insert(key, value.into_value());
    }
    map
}

fn member<'m>(members: &'m mut Members, key: &str) -> Option<&'m mut GrowingMember> {
    let mut members = members.iter_mut();
    members.find(|(own, _)| own == key).map(|(_, value)| value)
}

/// Appends a member of a delta: texts and lists are continued.
fn join(to: &mut Members, key: &str, value: &Value) {
    match (member(to, key), value) {
        (Some(GrowingMember::Text(before)), Value::String(piece)) => {
            before.push_str(&piece.to_string_lossy());
        }
        (Some(GrowingMember::List(before)), Value::Array(items)) => {
            items.iter().for_each(|item| add(before, item));
        }
        (Some(GrowingMember::Members(before)), Value::Object(members)) => {
            for (key, value) in members.iter() {
                set(before, &key.to_string_lossy(), value);
            }
        }
        _ => set(to, key, value),
    }
}

fn set(to: &mut Members, key: &str, value: &Value) {
    match member(to, key) {
        Some(own) => *own = GrowingMember::of(value),
        None => to.push((key.to_owned(), GrowingMember::of(value))),
    }
}

/// Adds an item of a list, such as OpenRouter's `reasoning_details`. It continues the last item
/// if both have the same type and index.
fn add(list: &mut Vec<GrowingMember>, item: &Value) {
    let Some(members) = item.as_object() else {
        return list.push(GrowingMember::of(item));
    };
    let given = |key: &str| members.get(key).filter(|value| !value.is_nullish());
    let (kind, index, id) = (given("type"), given("index"), given("id"));
    if let Some(GrowingMember::Members(last)) = list.last_mut() {
        let mut same = |key: &str, value| member(last, key).is_some_and(|own| own.is_text(value));
        let is_piece =
            kind.is_some() && index.is_some() && same("type", kind) && same("index", index);
        let other_id = id.is_some()
            && matches!(member(last, "id"), Some(GrowingMember::Text(_)))
            && { !member(last, "id").is_some_and(|own| own.is_text(id)) };
        if is_piece && !other_id {
            for (key, value) in members.iter().filter(|(_, value)| !value.is_nullish()) {
                let key = key.to_string_lossy();
                match &*key {
                    "text" | "summary" | "data" => join(last, &key, value),
                    _ => set(last, &key, value),
                }
            }
            return;
        }
    }
    list.push(GrowingMember::of(item));
}
