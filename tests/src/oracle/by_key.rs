//! `sort`, `groupBy`, `unique` and `sum` (decision D73), by insertion and linear search.

use super::arrays::distinct;
use super::coerce::{to_num, to_str};
use super::machine::{Machine, ScopeRef};
use super::meter::{owe_sort, pay, pay_name, pay_texts};
use super::steps::Node;
use super::value::{Fail, JsStr, OVal, Obj, Res, array_index, from_wtf8, js, lossy};
use a99_core::costs::{Formula, MEMBERS, NUMERAL, READ, Sizes, WRITTEN};
use a99_core::value::Value;

const MAX_KEYS: usize = 16;

/// A path as written; `None` if absent.
type Path = Option<JsStr>;

fn literal_text(value: &Value) -> Res<Path> {
    Ok(match value {
        Value::Undefined | Value::Null => None,
        Value::String(text) => Some(from_wtf8(text.as_bytes())),
        other => Some(to_str(&super::value::from_value(other))?),
    })
}

fn descends(value: &Value, default: bool) -> Res<bool> {
    match literal_text(value)? {
        None => Ok(default),
        Some(text) if *text == *js("asc") => Ok(false),
        Some(text) if *text == *js("desc") => Ok(true),
        Some(text) => {
            let shown: String = lossy(&text).chars().take(40).collect();
            let why = format!("sort: order is 'asc' or 'desc', not '{shown}'");
            Err(Fail::new(why))
        }
    }
}

/// Paths, each with true for a descending order.
fn keys(node: Node<'_>) -> Res<Vec<(Path, bool)>> {
    let default = descends(node.get("order"), false)?;
    let one = |value: &Value| match value {
        Value::Object(_) => Ok((
            path_of(value.get("by").unwrap_or(&Value::Undefined))?,
            descends(value.get("order").unwrap_or(&Value::Undefined), default)?,
        )),
        other => Ok((path_of(other)?, default)),
    };
    match node.get("by") {
        Value::Array(list) if list.len() > MAX_KEYS => Err(Fail::new(format!(
            "sort: by has {} members, at most {MAX_KEYS} are looked at",
            list.len()
        ))),
        Value::Array(list) => list.iter().map(one).collect(),
        other => Ok(vec![one(other)?]),
    }
}

fn items(op: &str, list: &OVal) -> Res<Vec<OVal>> {
    match list {
        OVal::Arr(items) | OVal::Set(items) => Ok(items.borrow().clone()),
        other => Err(Fail::new(format!(
            "{op} wants a list of items, got {}",
            kind_of(other)
        ))),
    }
}

fn kind_of(value: &OVal) -> &'static str {
    match value {
        OVal::Null => "null",
        OVal::Arr(_) | OVal::Set(_) => "a list",
        OVal::Date(_) => "a date",
        OVal::Map(_) => "a map",
        other => other.type_of(),
    }
}

/// A path; the empty one is the item itself.
fn path_of(value: &Value) -> Res<Path> {
    Ok(literal_text(value)?.filter(|path| !path.is_empty()))
}

/// The segments of a path; pays for this number of items.
fn segments(path: &Path, items: usize) -> Res<Vec<JsStr>> {
    let mut parts = Vec::new();
    if let Some(path) = path {
        pay(READ, Sizes::units(path.len()))?;
        parts = path.split(|unit| *unit == 46).map(JsStr::from).collect();
        parts.iter().try_for_each(|part| pay_name(part))?;
    }
    pay(READ, Sizes::elements(items * parts.len() * 2))?;
    Ok(parts)
}

fn member(item: &OVal, path: &[JsStr]) -> Res<OVal> {
    let mut at = item.clone();
    for name in path {
        let index = array_index(name);
        let length = **name == *js("length");
        at = match &at {
            OVal::Obj(obj) => obj.member(name),
            OVal::Arr(list) if length => OVal::Num(list.borrow().len() as f64),
            OVal::Arr(list) => {
                let item = index.and_then(|index| list.borrow().get(index).cloned());
                item.unwrap_or(OVal::Undef)
            }
            OVal::Str(text) if length => OVal::Num(text.len() as f64),
            OVal::Str(text) => match index.and_then(|index| text.get(index)) {
                Some(unit) => OVal::units(vec![*unit]),
                None => OVal::Undef,
            },
            OVal::Date(_) if name.len() <= 16 => super::expr::member(&at, name)?,
            _ => OVal::Undef,
        };
    }
    Ok(at)
}

/// Order of two values for sorting.
fn behind(a: &OVal, b: &OVal, descending: bool) -> std::cmp::Ordering {
    let missing = |v: &OVal| match v {
        OVal::Num(n) => n.is_nan(),
        other => other.is_nullish(),
    };
    let kind = |v: &OVal| match v {
        OVal::Num(_) => 0,
        OVal::Str(_) => 1,
        OVal::Bool(_) => 2,
        OVal::Date(_) => 3,
        _ => 4,
    };
    if missing(a) || missing(b) {
        return missing(a).cmp(&missing(b));
    }
    let order = match (a, b) {
        (OVal::Num(a), OVal::Num(b)) => a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal),
        (OVal::Date(a), OVal::Date(b)) => a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal),
        (OVal::Str(a), OVal::Str(b)) => a.cmp(b),
        (OVal::Bool(a), OVal::Bool(b)) => a.cmp(b),
        _ => kind(a).cmp(&kind(b)),
    };
    if descending { order.reverse() } else { order }
}

fn sort(list: &OVal, keys: &[(Path, bool)]) -> Res<OVal> {
    let items = items("sort", list)?;
    let mut paths = Vec::new();
    for (path, _) in keys {
        paths.push(segments(path, items.len())?);
    }
    pay(Formula::Sort, Sizes::elements(items.len() * keys.len()))?;
    pay(WRITTEN, Sizes::default().out_elements(items.len()))?;
    let mut sorted: Vec<(Vec<OVal>, OVal)> = Vec::new();
    for item in &items {
        let mut values = Vec::new();
        for path in &paths {
            let value = member(item, path)?;
            if let OVal::Str(text) = &value {
                pay(READ, Sizes::units(text.len()))?;
                owe_sort(items.len(), std::iter::once(&**text));
            }
            values.push(value);
        }
        let at = sorted.partition_point(|(others, _)| {
            let orders = others.iter().zip(&values).zip(keys);
            let mut orders = orders.map(|((a, b), (_, desc))| behind(a, b, *desc));
            orders
                .find(|order| order.is_ne())
                .is_none_or(std::cmp::Ordering::is_lt)
        });
        sorted.insert(at, (values, item.clone()));
    }
    super::meter::settle()?;
    Ok(OVal::array(
        sorted.into_iter().map(|(_, item)| item).collect(),
    ))
}

fn group_by(list: &OVal, path: &Path) -> Res<OVal> {
    let items = items("groupBy", list)?;
    let path = segments(path, items.len())?;
    pay(MEMBERS, Sizes::elements(items.len()))?;
    let mut groups: Vec<(JsStr, Vec<OVal>)> = Vec::new();
    for item in items {
        let name = to_str(&member(&item, &path)?)?;
        pay(READ, Sizes::units(name.len()))?;
        pay_name(&name)?;
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(item),
            None => groups.push((name, vec![item])),
        }
    }
    super::meter::settle()?;
    let groups = groups
        .into_iter()
        .map(|(name, group)| (name, OVal::array(group)));
    Ok(OVal::object(Obj::from_iter(groups)))
}

fn unique(list: &OVal, path: &Path) -> Res<OVal> {
    let items = items("unique", list)?;
    let path = segments(path, items.len())?;
    pay(Formula::Keys(10), Sizes::elements(items.len()))?;
    let (mut seen, mut kept): (Vec<OVal>, Vec<OVal>) = (Vec::new(), Vec::new());
    for item in items {
        let value = member(&item, &path)?;
        pay_texts(std::slice::from_ref(&value))?;
        let before = seen.len();
        seen.push(value);
        seen = distinct(seen);
        if seen.len() > before {
            kept.push(item);
        }
    }
    pay(WRITTEN, Sizes::default().out_elements(kept.len()))?;
    Ok(OVal::array(kept))
}

fn sum(list: &OVal, path: &Path) -> Res<OVal> {
    let items = items("sum", list)?;
    let path = segments(path, items.len())?;
    pay(READ, Sizes::elements(items.len()))?;
    let mut total = 0.0;
    for (at, item) in items.iter().enumerate() {
        let refuse = |what: &str| Fail::new(format!("sum: item {at} is {what}, no number"));
        total += match member(item, &path)? {
            OVal::Undef | OVal::Null => continue,
            OVal::Num(n) => n,
            text @ OVal::Str(_) => {
                let units = super::meter::size(&text).0;
                pay(NUMERAL, Sizes::units(units as usize))?;
                let n = to_num(&text)?;
                if n.is_nan() {
                    return Err(refuse("a text"));
                }
                n
            }
            other => return Err(refuse(kind_of(&other))),
        };
    }
    Ok(OVal::Num(total))
}

impl Machine<'_> {
    pub(super) fn by_key_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let list = self.input(node, "items", scope)?;
        if op == "sort" {
            return sort(&list, &keys(node)?);
        }
        let path = path_of(node.get("by"))?;
        match op {
            "groupBy" => group_by(&list, &path),
            "unique" => unique(&list, &path),
            _ => sum(&list, &path),
        }
    }
}
