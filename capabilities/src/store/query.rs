//! Queries of documents: `{collection, where, orderBy, limit, cursor}`.

#[cfg(test)]
mod tests;

use super::memory::MAX_KEY_BYTES;
use super::page::page_limit;
use super::predicate::{Predicate, order as order_of};
use super::scan_meter::ScanMeter;
use crate::error::CapabilityError;
use crate::size::value_bytes;
use a99_core::diag::suggest;
use a99_core::json::{Document, Limits};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Most conditions, and most sort fields.
const MAX_TERMS: usize = 32;

/// The members of a query.
const MEMBERS: [&str; 5] = ["collection", "where", "orderBy", "limit", "cursor"];

/// A checked query. A document is the value of a text key. A collection has the documents whose
/// keys start with its name and a slash: `orders/17` is the document `17` of `orders`.
#[derive(Clone, Debug)]
pub struct Query {
    prefix: Text,
    conditions: Vec<Condition>,
    predicate: Option<Predicate>,
    order: Vec<Order>,
    limit: usize,
    after: Option<Place>,
    scanned: Option<Arc<ScanMeter>>,
}

/// Condition on a field of a document.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    field: Text,
    op: Op,
    value: Value,
}

/// Comparison operator. Nothing is converted: `"5"` is not `5`, and numbers are ordered only
/// against numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Op {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    NotIn,
    ArrayContains,
}

const OPS: [(&str, Op); 11] = [
    ("==", Op::Equal),
    ("===", Op::Equal),
    ("!=", Op::Unequal),
    ("!==", Op::Unequal),
    ("<", Op::Less),
    ("<=", Op::AtMost),
    (">", Op::Greater),
    (">=", Op::AtLeast),
    ("in", Op::In),
    ("not-in", Op::NotIn),
    ("array-contains", Op::ArrayContains),
];

#[derive(Clone, Debug, PartialEq)]
struct Order {
    field: Text,
    descending: bool,
}

/// Sort position of a row: its sort fields, and its key.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    ranks: Vec<Rank>,
    key: Text,
}

/// Sort value of a row, ordered by kind: numbers, texts, booleans, `null`, data, then missing
/// fields.
#[derive(Clone, Debug, PartialEq)]
enum Rank {
    Number(f64),
    Text(Text),
    Bool(bool),
    Null,
    Data,
    Missing,
}

impl Rank {
    fn of(value: Option<&Value>) -> Rank {
        match value {
            Some(Value::Number(n)) if !n.is_nan() => Rank::Number(n + 0.0),
            Some(Value::String(text)) => Rank::Text(text.clone()),
            Some(Value::Bool(b)) => Rank::Bool(*b),
            Some(Value::Null) => Rank::Null,
            Some(Value::Array(_) | Value::Object(_)) => Rank::Data,
            Some(Value::Number(_) | Value::Undefined) | None => Rank::Missing,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Rank::Number(_) => 0,
            Rank::Text(_) => 1,
            Rank::Bool(_) => 2,
            Rank::Null => 3,
            Rank::Data => 4,
            Rank::Missing => 5,
        }
    }

    /// Compares two ranks; missing fields come last in both directions.
    fn compare(&self, other: &Rank, descending: bool) -> Ordering {
        let missing = |rank: &Rank| matches!(rank, Rank::Missing);
        let order = match (self, other) {
            (Rank::Number(a), Rank::Number(b)) => a.total_cmp(b),
            (Rank::Text(a), Rank::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Rank::Bool(a), Rank::Bool(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        };
        match descending && !missing(self) && !missing(other) {
            true => order.reverse(),
            false => order,
        }
    }

    /// The rank as a part of a cursor.
    fn saved(&self) -> Value {
        match self {
            Rank::Number(n) => Value::Number(*n),
            Rank::Text(text) => Value::String(text.clone()),
            Rank::Bool(b) => Value::Bool(*b),
            Rank::Null => Value::Null,
            Rank::Data => Value::Array(Vec::new()),
            Rank::Missing => Value::Undefined,
        }
    }
}

impl Query {
    /// Reads a query:
    ///
    /// | member | meaning |
    /// |---|---|
    /// | `collection` | the name before the slash; by default all documents |
    /// | `where` | conditions that must all hold: a list of `{field, op, value}` or `[field, op, value]`; one of them alone; or `{field: value}` for equal members. `op` is `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not-in` or `array-contains` |
    /// | `orderBy` | a field, `{field, direction}` with `asc` or `desc`, or a list of these; then by key |
    /// | `limit` | most rows: 100, at most [`super::MAX_PAGE`] |
    /// | `cursor` | cursor of the previous answer |
    ///
    /// A field is a name, or names separated by dots.
    ///
    /// # Errors
    /// An invalid query, with the invalid value.
    pub fn of(query: &Value) -> Result<Query, CapabilityError> {
        let Some(members) = query.as_object() else {
            return Err(fail(
                "A query must be an object, such as {collection: \"orders\", where: [[\"total\", \">\", 5]]}.",
            ));
        };
        for key in members.keys().map(Text::to_string_lossy) {
            if !MEMBERS.contains(&&*key) {
                return Err(unknown("member of a query", &key, &MEMBERS));
            }
        }
        let order = orders(query.get("orderBy"))?;
        let after = match query.get("cursor") {
            None | Some(Value::Undefined | Value::Null) => None,
            Some(cursor) => Some(Place::restored(cursor, order.len()).ok_or_else(|| {
                fail("The cursor must be that of an earlier answer to the same query.")
            })?),
        };
        Ok(Query {
            prefix: prefix(query.get("collection"))?,
            conditions: conditions(query.get("where"))?,
            predicate: None,
            order,
            limit: page_limit(query.get("limit").unwrap_or(&Value::Undefined))?,
            after,
            scanned: None,
        })
    }

    /// Reads `{collection, predicate, limit}`, where the predicate is an object whose
    /// `canonical` is a condition text (D81). Its names are members of a document, which is
    /// selected if the condition holds. The answer is ordered by key; [`Query::rows`] extracts
    /// its rows.
    ///
    /// # Errors
    /// An invalid query, or a predicate with an unsupported form.
    pub fn of_predicate(query: &Value) -> Result<Query, CapabilityError> {
        let text = query.get("predicate").and_then(|p| p.get("canonical"));
        let Some(text) = text.and_then(Value::as_text) else {
            return Err(fail("A predicate is an object with a text `canonical`."));
        };
        Ok(Query {
            prefix: prefix(query.get("collection"))?,
            conditions: Vec::new(),
            predicate: Some(Predicate::of(text)?),
            order: Vec::new(),
            limit: page_limit(query.get("limit").unwrap_or(&Value::Undefined))?,
            after: None,
            scanned: None,
        })
    }

    /// Adds the counter of scanned documents, for a caller that pays for them.
    #[must_use]
    pub fn counted(self, scanned: Option<Arc<ScanMeter>>) -> Query {
        Query { scanned, ..self }
    }

    /// Most rows of the answer.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The rows of an answer, without its cursor; `limit` is the query's.
    ///
    /// # Errors
    /// The answer ended early because of its bytes: without a cursor, rows would be missing
    /// silently.
    pub fn rows(answer: Value, limit: usize) -> Result<Value, CapabilityError> {
        let Value::Object(mut members) = answer else {
            return Ok(answer);
        };
        let rows = members.remove("rows").unwrap_or(Value::Undefined);
        let count = rows.as_array().map_or(0, <[Value]>::len);
        match members.contains("cursor") && count < limit {
            true => Err(fail(
                "The rows found are too many bytes: ask for fewer with limit.",
            )),
            false => Ok(rows),
        }
    }

    fn selects(&self, document: &Value) -> bool {
        self.conditions.iter().all(|c| c.holds(document))
            && self.predicate.as_ref().is_none_or(|p| p.holds(document))
    }

    /// Prefix of the keys of all documents that the answer may have.
    #[must_use]
    pub fn prefix(&self) -> &Text {
        &self.prefix
    }

    /// Key at which a scan can start: earlier keys are not in the answer.
    #[must_use]
    pub fn first_key(&self) -> &Text {
        match &self.after {
            Some(after) if self.order.is_empty() => (&after.key).max(&self.prefix),
            _ => &self.prefix,
        }
    }

    /// Starts an answer.
    #[must_use]
    pub fn select(self) -> Selection {
        Selection {
            query: self,
            rows: Vec::new(),
            bytes: 0,
            max_bytes: usize::MAX,
            cut: None,
        }
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        let ranks = a.ranks.iter().zip(&b.ranks);
        ranks
            .zip(&self.order)
            .map(|((a, b), order)| a.compare(b, order.descending))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.key.as_bytes().cmp(b.key.as_bytes()))
    }
}

/// Answer to a query during a scan: the best rows so far, at most one more than requested.
#[derive(Debug)]
pub struct Selection {
    query: Query,
    rows: Vec<(Place, Value)>,
    /// Estimated bytes of the documents in the rows.
    bytes: usize,
    max_bytes: usize,
    /// The first row that was dropped: the answer ends before it.
    cut: Option<Place>,
}

impl Selection {
    /// Bounds the bytes of the rows, as [`value_bytes`] estimates them. If the best rows exceed
    /// the bound, the answer has fewer rows, at least one, and a cursor.
    #[must_use]
    pub fn within(mut self, max_bytes: usize) -> Selection {
        self.max_bytes = max_bytes;
        self
    }

    /// Adds a document to the scan, in any order.
    pub fn offer(&mut self, key: &Text, document: &Value) {
        let query = &self.query;
        if let Some(scanned) = &query.scanned {
            scanned.note(document);
        }
        if !key.as_bytes().starts_with(query.prefix.as_bytes()) || !query.selects(document) {
            return;
        }
        let ranks = query.order.iter();
        let place = Place {
            ranks: ranks.map(|o| Rank::of(field(document, &o.field))).collect(),
            key: key.clone(),
        };
        let is_after = |p: &Place| query.compare(&place, p).is_gt();
        let is_before = query.after.as_ref().is_some_and(|after| !is_after(after));
        let is_cut = |cut: &Place| query.compare(&place, cut).is_ge();
        if is_before || self.cut.as_ref().is_some_and(is_cut) {
            return;
        }
        let at = self.rows.partition_point(|(row, _)| is_after(row));
        if at <= query.limit {
            self.rows.insert(at, (place, document.clone()));
            self.bytes += value_bytes(document);
            self.shorten();
        }
    }

    /// Drops the last rows: all beyond one more than the limit, which shows that more follow,
    /// and all beyond the byte limit.
    fn shorten(&mut self) {
        loop {
            let is_too_much = self.bytes > self.max_bytes && self.rows.len() > 1;
            if !is_too_much && self.rows.len() <= self.query.limit + 1 {
                return;
            }
            let Some((place, document)) = self.rows.pop() else {
                return;
            };
            self.bytes -= value_bytes(&document);
            if is_too_much {
                self.cut = Some(place);
            }
        }
    }

    /// True if the scan can stop: the answer is full and ordered by key alone, so that no later
    /// key is in it, or the caller cannot pay for more ([`ScanMeter`]).
    #[must_use]
    pub fn is_full(&self) -> bool {
        let scanned = self.query.scanned.as_ref();
        self.query.order.is_empty() && self.has_more()
            || scanned.is_some_and(|scanned| scanned.is_too_much())
    }

    fn has_more(&self) -> bool {
        self.rows.len() > self.query.limit || self.cut.is_some()
    }

    /// The answer: `rows` of `{key, value}`, and a `cursor` if more rows follow.
    #[must_use]
    pub fn answer(mut self) -> Value {
        let more = self.has_more();
        self.rows.truncate(self.query.limit);
        let cursor = self.rows.last().filter(|_| more).map(|(p, _)| p.saved());
        let rows = self.rows.into_iter().map(|(place, document)| {
            let members = [("key", Value::String(place.key)), ("value", document)];
            Value::Object(members.into_iter().collect())
        });
        let mut answer = Map::new();
        answer.insert("rows", Value::Array(rows.collect()));
        if let Some(cursor) = cursor {
            answer.insert("cursor", cursor);
        }
        Value::Object(answer)
    }
}

impl Place {
    /// The position as a cursor's text: a list of the key and a list for each field, empty for
    /// a missing one.
    fn saved(&self) -> Value {
        let ranks = self.ranks.iter().map(|rank| match rank {
            Rank::Missing => Value::Array(Vec::new()),
            rank => Value::Array(vec![rank.saved()]),
        });
        let mut parts = vec![Value::String(self.key.clone())];
        parts.extend(ranks);
        let mut json = Vec::new();
        Value::Array(parts).write_json(&mut json);
        Value::String(Text::from_wtf8(json))
    }

    fn restored(cursor: &Value, fields: usize) -> Option<Place> {
        let text = cursor.as_text()?;
        let document = Document::parse(text.as_bytes(), &Limits::default()).ok()?;
        let parts = document.to_value(document.root());
        let (Value::String(key), ranks) = parts.as_array()?.split_first()? else {
            return None;
        };
        let ranks: Option<Vec<Rank>> = ranks
            .iter()
            .map(|rank| match rank.as_array()? {
                [] => Some(Rank::Missing),
                [value] => Some(Rank::of(Some(value))),
                _ => None,
            })
            .collect();
        let ranks = ranks.filter(|ranks| ranks.len() == fields)?;
        Some(Place {
            ranks,
            key: key.clone(),
        })
    }
}

impl Condition {
    fn holds(&self, document: &Value) -> bool {
        let found = field(document, &self.field).unwrap_or(&Value::Undefined);
        let listed =
            |list: &Value, item: &Value| list.as_array().is_some_and(|items| items.contains(item));
        let order = || order_of(found, &self.value);
        match self.op {
            Op::Equal => *found == self.value,
            Op::Unequal => *found != self.value,
            Op::Less => order().is_some_and(Ordering::is_lt),
            Op::AtMost => order().is_some_and(Ordering::is_le),
            Op::Greater => order().is_some_and(Ordering::is_gt),
            Op::AtLeast => order().is_some_and(Ordering::is_ge),
            Op::In => listed(&self.value, found),
            Op::NotIn => !listed(&self.value, found),
            Op::ArrayContains => listed(found, &self.value),
        }
    }
}

/// A field of a document by its name, or by names separated by dots.
fn field<'a>(document: &'a Value, path: &Text) -> Option<&'a Value> {
    let own = |value: &'a Value, name: &[u8]| value.as_object()?.get_bytes(name);
    own(document, path.as_bytes()).or_else(|| {
        let mut names = path.as_bytes().split(|b| *b == b'.');
        names.try_fold(document, own)
    })
}

fn prefix(collection: Option<&Value>) -> Result<Text, CapabilityError> {
    match collection {
        None | Some(Value::Undefined | Value::Null) => Ok(Text::default()),
        Some(Value::String(name)) if name.len_bytes() < MAX_KEY_BYTES && !name.is_empty() => {
            Ok(Text::from_wtf8([name.as_bytes(), b"/"].concat()))
        }
        Some(_) => Err(fail(
            "The collection of a query must be a name, such as \"orders\".",
        )),
    }
}

const CONDITION_FORM: &str = "`where` must be a list of conditions, such as [\"total\", \">\", 5] \
     or {field: \"total\", op: \">\", value: 5}.";

fn conditions(terms: Option<&Value>) -> Result<Vec<Condition>, CapabilityError> {
    let list = match terms {
        None | Some(Value::Undefined | Value::Null) => return Ok(Vec::new()),
        // A single condition without a list around it.
        Some(Value::Array(parts)) if matches!(parts.first(), Some(Value::String(_))) => {
            return condition(parts).map(|one| vec![one]);
        }
        Some(Value::Object(map)) if map.contains("op") => {
            return described(map).map(|one| vec![one]);
        }
        Some(Value::Array(list)) => list.iter().map(of_list).collect::<Result<Vec<_>, _>>()?,
        Some(Value::Object(map)) => map.iter().map(equal_member).collect(),
        Some(_) => return Err(fail(CONDITION_FORM)),
    };
    match list.len() > MAX_TERMS {
        true => Err(fail(&format!(
            "A query has at most {MAX_TERMS} conditions."
        ))),
        false => Ok(list),
    }
}

fn of_list(term: &Value) -> Result<Condition, CapabilityError> {
    match term {
        Value::Array(parts) => condition(parts),
        Value::Object(map) => described(map),
        _ => Err(fail(CONDITION_FORM)),
    }
}

fn equal_member((field, value): (&Text, &Value)) -> Condition {
    Condition {
        field: field.clone(),
        op: Op::Equal,
        value: value.clone(),
    }
}

/// A condition as `{field, op, value}`.
fn described(map: &Map) -> Result<Condition, CapabilityError> {
    const MEMBERS: [&str; 3] = ["field", "op", "value"];
    for key in map.keys().map(Text::to_string_lossy) {
        if !MEMBERS.contains(&&*key) {
            return Err(unknown("member of a condition", &key, &MEMBERS));
        }
    }
    condition(&MEMBERS.map(|m| map.get(m).cloned().unwrap_or(Value::Undefined)))
}

/// A condition as a field, an operator and a value.
fn condition(parts: &[Value]) -> Result<Condition, CapabilityError> {
    let [Value::String(field), Value::String(op), value] = parts else {
        return Err(fail(CONDITION_FORM));
    };
    let name = op.to_string_lossy();
    let Some((_, op)) = OPS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = OPS.iter().map(|(known, _)| *known).collect();
        return Err(unknown("operator of a condition", &name, &known));
    };
    if matches!(op, Op::In | Op::NotIn) && value.as_array().is_none() {
        return Err(fail(&format!("`{name}` compares with a list of values.")));
    }
    Ok(Condition {
        field: field.clone(),
        op: *op,
        value: value.clone(),
    })
}

fn orders(terms: Option<&Value>) -> Result<Vec<Order>, CapabilityError> {
    match terms {
        None | Some(Value::Undefined | Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_TERMS => list.iter().map(order).collect(),
        Some(Value::Array(_)) => Err(fail(&format!(
            "A query is ordered by at most {MAX_TERMS} fields."
        ))),
        Some(one) => order(one).map(|one| vec![one]),
    }
}

fn order(term: &Value) -> Result<Order, CapabilityError> {
    let form =
        "`orderBy` must be a field or {field: \"total\", direction: \"desc\"}, or a list of these.";
    let (field, direction) = match term {
        Value::String(field) => (field, None),
        Value::Object(map) => match map.get("field") {
            Some(Value::String(field)) => (field, map.get("direction")),
            _ => return Err(fail(form)),
        },
        _ => return Err(fail(form)),
    };
    let descending = match direction {
        None | Some(Value::Undefined | Value::Null) => false,
        Some(direction) => match direction.as_str() {
            Some("asc") => false,
            Some("desc") => true,
            _ => return Err(fail("The direction of `orderBy` is \"asc\" or \"desc\".")),
        },
    };
    Ok(Order {
        field: field.clone(),
        descending,
    })
}

fn unknown(what: &str, name: &str, known: &[&str]) -> CapabilityError {
    fail(&match suggest(name, known.iter().copied()) {
        Some(near) => format!("There is no {what} `{name}`; did you mean `{near}`?"),
        None => format!(
            "There is no {what} `{name}`; there are {}.",
            known.join(", ")
        ),
    })
}

fn fail(text: &str) -> CapabilityError {
    CapabilityError::new(text)
}
