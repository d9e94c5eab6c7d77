//! Maps (decision D111): a list of entries, searched from its start.

use super::arrays::Call;
use super::meter::{Meter, pay};
use super::strings::Args;
use super::value::{OVal, Res, fail};
use a99_core::costs::{READ, Sizes, WRITTEN, read};
use std::cell::RefCell;
use std::rc::Rc;

/// The entries of a map.
pub(super) type Entries = Rc<RefCell<Vec<(OVal, OVal)>>>;

/// Names of map methods, implemented below.
pub(super) const METHODS: &str = "\
    get set has delete clear keys values entries forEach toString toLocaleString \
    hasOwnProperty isPrototypeOf propertyIsEnumerable valueOf";

/// Pays for finding a key: its text, or all entries if it is compared by identity.
fn pay_key(entries: &Entries, key: &OVal) -> Res<()> {
    match key {
        OVal::Str(s) => pay(READ, Sizes::units(s.len())),
        OVal::Arr(_) | OVal::Obj(_) | OVal::Set(_) | OVal::Date(_) | OVal::Map(_) => {
            pay(READ, Sizes::elements(entries.borrow().len()))
        }
        _ => Ok(()),
    }
}

fn find(entries: &Entries, key: &OVal) -> Res<Option<usize>> {
    pay_key(entries, key)?;
    let entries = entries.borrow();
    Ok(entries.iter().position(|(k, _)| k.same_value_zero(key)))
}

fn put(entries: &Entries, key: OVal, value: OVal) -> Res<()> {
    match find(entries, &key)? {
        Some(at) => entries.borrow_mut()[at].1 = value,
        None => {
            pay(WRITTEN, Sizes::default().out_elements(1))?;
            let key = match key {
                OVal::Num(n) => OVal::Num(n + 0.0),
                other => other,
            };
            entries.borrow_mut().push((key, value));
        }
    }
    Ok(())
}

/// The keys, whose texts are paid for.
pub(super) fn key_list(entries: &Entries) -> Res<Vec<OVal>> {
    let keys: Vec<OVal> = entries.borrow().iter().map(|(k, _)| k.clone()).collect();
    pay(READ, Sizes::elements(keys.len()))?;
    for key in &keys {
        if let OVal::Str(s) = key {
            pay(READ, Sizes::units(s.len()))?;
        }
    }
    Ok(keys)
}

/// The entries as arrays of key and value, which are paid for.
pub(super) fn entry_list(entries: &Entries) -> Res<Vec<OVal>> {
    let len = entries.borrow().len();
    pay(WRITTEN, Sizes::default().out_elements(2 * len))?;
    let keys = key_list(entries)?;
    let entries = entries.borrow();
    let pairs = keys.into_iter().zip(entries.iter());
    Ok(pairs
        .map(|(k, (_, v))| OVal::array(vec![k, v.clone()]))
        .collect())
}

/// `Array.toMap(entries)`.
pub(super) fn to_map(args: &Args<'_>) -> Res<OVal> {
    let source = args.get(0);
    let pairs = match source.is_nullish() {
        true => Vec::new(),
        false => super::arrays::iterate(&source)?,
    };
    let map: Entries = Rc::default();
    for pair in pairs {
        let part = |at: usize| match &pair {
            OVal::Arr(items) => Ok(items.borrow().get(at).cloned().unwrap_or(OVal::Undef)),
            OVal::Obj(obj) => Ok(obj.member(&super::value::js(&at.to_string()))),
            _ => fail("an entry of a Map must be a list of key and value"),
        };
        put(&map, part(0)?, part(1)?)?;
    }
    Ok(OVal::Map(map))
}

/// Calls a map method; `None` if maps have no such method.
pub(super) fn method(
    m: &mut Meter,
    entries: &Entries,
    name: &str,
    arguments: &[OVal],
    call: &mut Call<'_>,
) -> Res<Option<OVal>> {
    let args = Args(arguments);
    let this = OVal::Map(entries.clone());
    Ok(Some(match name {
        "get" => match find(entries, &args.get(0))? {
            Some(at) => entries.borrow()[at].1.clone(),
            None => OVal::Undef,
        },
        "set" => {
            put(entries, args.get(0), args.get(1))?;
            this
        }
        "has" => OVal::Bool(find(entries, &args.get(0))?.is_some()),
        "delete" => {
            let found = find(entries, &args.get(0))?;
            if let Some(at) = found {
                entries.borrow_mut().remove(at);
            }
            OVal::Bool(found.is_some())
        }
        "clear" => {
            entries.borrow_mut().clear();
            OVal::Undef
        }
        "keys" => OVal::array(key_list(entries)?),
        "values" => {
            pay(READ, Sizes::elements(entries.borrow().len()))?;
            OVal::array(entries.borrow().iter().map(|(_, v)| v.clone()).collect())
        }
        "entries" => OVal::array(entry_list(entries)?),
        "forEach" => {
            let f = args.get(0);
            if super::statics::as_function(&f).is_none() {
                return fail("Map.prototype.forEach callback must be a function");
            }
            pay(read(36), Sizes::elements(entries.borrow().len()))?;
            let keys = key_list(entries)?;
            let values: Vec<OVal> = entries.borrow().iter().map(|(_, v)| v.clone()).collect();
            for (key, value) in keys.into_iter().zip(values) {
                call(m, &f, &[value, key, this.clone()])?;
            }
            OVal::Undef
        }
        "toString" | "toLocaleString" => OVal::str("[object Object]"),
        "hasOwnProperty" | "propertyIsEnumerable" => {
            let key = args.text(0)?;
            super::meter::pay_name(&key)?;
            OVal::Bool(*key == *super::value::js("size"))
        }
        "isPrototypeOf" => OVal::Bool(false),
        "valueOf" => this,
        _ => return Ok(None),
    }))
}
