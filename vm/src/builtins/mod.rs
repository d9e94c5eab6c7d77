//! The builtin functions, namespaces and methods of the language (language
//! sections 3.5 to 3.7): a closed set, called by number.
//!
//! [`a99_core::builtins`] numbers the names; each row has its code here. A [`Val::Builtin`]
//! is either a function (its number in [`FUNCTIONS`]) or a namespace ([`NAMESPACE_BIT`] plus
//! its number in [`NAMESPACES`]). Reads of a row are charged here before its code runs
//! (`charge_reads`). The code charges its writes, as soon as their size is known and before
//! it builds them.
//!
//! No other value is callable: members of objects are data (D16), and builtin functions do
//! not leave the run (D35).

mod arrays;
pub mod by_key;
mod collate;
mod console;
mod dates;
mod dates_locale;
mod globals;
mod html;
mod maps;
mod math;
pub mod members;
mod numbers;
mod objects;
mod patterns;
pub mod regex_find;
mod regex_template;
mod schemas;
mod sets;
mod strings;
mod strings_case;
mod strings_cut;
mod strings_find;
mod strings_replace;
mod strings_search;
mod web;

pub(crate) use dates::field as date_field;
pub(crate) use strings_cut::unit_at;

use crate::heap::builtin::{NAMESPACE_BIT, is_callable, namespace_name};
use crate::heap::{Ref, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::builtins::{
    FUNCTIONS, METHODS, NAMESPACES, Reads, STATIC_METHODS, constant, is_forbidden, method,
    method_id, method_name, static_names, unknown_member,
};
use a99_core::costs::{Formula, Sizes, WRITTEN};
use std::sync::LazyLock;

/// Code of a function.
type FunctionFn = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;
/// Code of a string method.
type StrFn = fn(&mut Cx<'_>, Str, &[Val]) -> Result<Val, Fault>;
/// Code of a number method.
type NumFn = fn(&mut Cx<'_>, f64, &[Val]) -> Result<Val, Fault>;
/// Code of a method of an array, a set, a date or a map.
type RefFn = fn(&mut Cx<'_>, Ref, &[Val]) -> Result<Val, Fault>;
/// Code of a method that every kind of value has.
type AnyFn = fn(&mut Cx<'_>, Val, &[Val]) -> Result<Val, Fault>;

/// The code of each numbered method per kind of receiver; rows are those of [`METHODS`], then
/// those of [`static_names`].
struct Tables {
    functions: Vec<Option<FunctionFn>>,
    strings: Vec<Option<StrFn>>,
    numbers: Vec<Option<NumFn>>,
    arrays: Vec<Option<RefFn>>,
    sets: Vec<Option<RefFn>>,
    dates: Vec<Option<RefFn>>,
    maps: Vec<Option<RefFn>>,
    any: Vec<Option<AnyFn>>,
    statics: Vec<[Option<u16>; NAMESPACES.len()]>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables {
    functions: functions(),
    strings: methods(
        &[
            strings::METHODS,
            strings_search::METHODS,
            strings_replace::METHODS,
            strings_case::METHODS,
            html::METHODS,
        ]
        .concat(),
    ),
    numbers: methods(numbers::METHODS),
    arrays: methods(arrays::METHODS),
    sets: methods(sets::METHODS),
    dates: methods(&[dates::METHODS, dates_locale::METHODS].concat()),
    maps: methods(maps::METHODS),
    any: methods(globals::ANY_METHODS),
    statics: statics(),
});

/// Places code by method number. `tests::every_row_has_code` reports names without a row.
fn methods<F: Copy>(list: &[(&str, F)]) -> Vec<Option<F>> {
    let mut table = vec![None; METHODS.len()];
    for (name, code) in list {
        if let Some(at) = method(name) {
            table[usize::from(at)] = Some(*code);
        }
    }
    table
}

fn functions() -> Vec<Option<FunctionFn>> {
    let lists = [
        math::FUNCTIONS,
        globals::FUNCTIONS,
        crate::json::FUNCTIONS,
        objects::FUNCTIONS,
        sets::FUNCTIONS,
        maps::FUNCTIONS,
        dates::FUNCTIONS,
        dates_locale::FUNCTIONS,
        schemas::FUNCTIONS,
        web::FUNCTIONS,
        patterns::FUNCTIONS,
    ];
    let mut table = vec![None; FUNCTIONS.len()];
    for (ns, name, code) in lists.concat() {
        if let Some(at) = a99_core::builtins::function(ns, name) {
            table[usize::from(at)] = Some(code);
        }
    }
    table
}

fn statics() -> Vec<[Option<u16>; NAMESPACES.len()]> {
    let names = METHODS
        .iter()
        .map(|m| m.name)
        .chain(static_names().iter().copied());
    names
        .map(|name| std::array::from_fn(|ns| a99_core::builtins::function(NAMESPACES[ns], name)))
        .collect()
}

/// Calls function `f` of [`FUNCTIONS`].
///
/// # Errors
/// Those of the function.
pub fn call_function(cx: &mut Cx<'_>, f: u16, args: &[Val]) -> Result<Val, Fault> {
    match TABLES.functions.get(usize::from(f)) {
        Some(Some(code)) => {
            let row = &FUNCTIONS[usize::from(f)];
            if row.cost.reads() {
                charge_reads(cx, row.cost, row.reads, None, args)?;
            }
            code(cx, args)
        }
        _ => Err(not_a_function(
            FUNCTIONS.get(usize::from(f)).map_or("", |f| f.name),
        )),
    }
}

/// Calls a value as a callback (D35): only builtin functions are callable.
///
/// # Errors
/// A `TypeError` message for other values, and those of the function.
pub fn call_builtin_value(cx: &mut Cx<'_>, f: Val, args: &[Val]) -> Result<Val, Fault> {
    match f {
        Val::Builtin(n) if n & NAMESPACE_BIT == 0 => call_function(cx, n, args),
        Val::Builtin(n) if is_callable(n) => {
            let name = namespace_name(n).unwrap_or_default();
            let function = a99_core::builtins::function("", name).unwrap_or(u16::MAX);
            call_function(cx, function, args)
        }
        other => Err(not_callable(cx, other)),
    }
}

#[cold]
fn not_callable(cx: &mut Cx<'_>, f: Val) -> Fault {
    let shown = match f {
        Val::Str(s) if s.units() <= 40 => {
            format!("\"{}\"", String::from_utf8_lossy(cx.bytes(s)))
        }
        other => globals::shown(other),
    };
    Fault::throw(format!("{shown} is not a function"))
}

#[cold]
fn not_a_function(name: &str) -> Fault {
    Fault::throw(format!("'{name}' is not a function"))
}

/// The first checks of a method call: a forbidden name, then a nullish receiver.
fn refuse_receiver(recv: Val, name: &str) -> Option<Fault> {
    if is_forbidden(name.as_bytes()) {
        return Some(Fault::forbidden(name));
    }
    let kind = match recv {
        Val::Null => "null",
        Val::Undefined | Val::Unbound => "undefined",
        _ => return None,
    };
    Some(Fault::throw(format!(
        "Cannot call method '{name}' on {kind}"
    )))
}

/// The checks of a method call before its arguments are evaluated (language section 3.5).
///
/// # Errors
/// The reference's messages: a nullish receiver, a receiver without this method, an unknown
/// member of a namespace.
pub fn check_method(cx: &mut Cx<'_>, recv: Val, method: u16) -> Result<(), Fault> {
    if find(cx, recv, method) {
        Ok(())
    } else {
        Err(unknown_method(cx, recv, method_name(method)))
    }
}

/// Whether `recv` has the method.
fn find(cx: &Cx<'_>, recv: Val, method: u16) -> bool {
    let t = &*TABLES;
    let at = usize::from(method);
    let has = match recv {
        Val::Builtin(n) => return static_function(n, method).is_some(),
        Val::Unbound | Val::Undefined | Val::Null => return false,
        // An own member of the program's object is data, whatever its name.
        Val::Obj(r)
            if cx
                .heap
                .get_text(r, method_name(method).as_bytes())
                .is_some() =>
        {
            return false;
        }
        Val::Obj(_) | Val::Bool(_) => false,
        Val::Str(_) => has_row(&t.strings, at),
        Val::Num(_) => has_row(&t.numbers, at),
        Val::Arr(_) => has_row(&t.arrays, at),
        Val::Set(_) => has_row(&t.sets, at),
        Val::Date(_) => has_row(&t.dates, at),
        Val::Map(_) => has_row(&t.maps, at),
    };
    has || has_row(&t.any, at)
}

fn has_row<F>(table: &[Option<F>], at: usize) -> bool {
    table.get(at).is_some_and(Option::is_some)
}

/// The function that a method call on a namespace refers to.
fn static_function(builtin: u16, method: u16) -> Option<u16> {
    if builtin & NAMESPACE_BIT == 0 {
        return None;
    }
    let row = match method.checked_sub(STATIC_METHODS) {
        None => usize::from(method),
        Some(at) => METHODS.len() + usize::from(at),
    };
    *TABLES
        .statics
        .get(row)?
        .get(usize::from(builtin & !NAMESPACE_BIT))?
}

/// The error of a call to a method that the receiver does not have.
#[cold]
pub fn unknown_method(cx: &mut Cx<'_>, recv: Val, name: &str) -> Fault {
    if let Some(fault) = refuse_receiver(recv, name) {
        return fault;
    }
    if let Val::Builtin(n) = recv
        && let Some(ns) = namespace_name(n)
        && constant(ns, name).is_none()
        && !method_id(name).is_some_and(|m| find(cx, recv, m))
    {
        return Fault::throw(unknown_member(ns, name));
    }
    not_a_function(name)
}

/// Calls a method by number; see [`a99_core::builtins::method_id`].
///
/// # Errors
/// Those of [`check_method`] and of the method.
pub fn call_method(cx: &mut Cx<'_>, recv: Val, method: u16, args: &[Val]) -> Result<Val, Fault> {
    let t = &*TABLES;
    let at = usize::from(method);
    if let Some(row) = METHODS.get(at)
        && row.cost.reads()
        && !matches!(recv, Val::Builtin(_))
        && find(cx, recv, method)
    {
        charge_reads(cx, row.cost, row.reads, Some(recv), args)?;
    }
    match recv {
        Val::Str(s) => {
            if let Some(Some(code)) = t.strings.get(at) {
                return code(cx, s, args);
            }
        }
        Val::Num(n) => {
            if let Some(Some(code)) = t.numbers.get(at) {
                return code(cx, n, args);
            }
        }
        Val::Arr(r) | Val::Set(r) | Val::Date(r) | Val::Map(r) => {
            let table = match recv {
                Val::Arr(_) => &t.arrays,
                Val::Set(_) => &t.sets,
                Val::Map(_) => &t.maps,
                _ => &t.dates,
            };
            if let Some(Some(code)) = table.get(at) {
                return code(cx, r, args);
            }
        }
        Val::Builtin(n) => {
            return match static_function(n, method) {
                Some(f) => call_function(cx, f, args),
                None => Err(unknown_method(cx, recv, method_name(method))),
            };
        }
        _ => {}
    }
    if find(cx, recv, method)
        && let Some(Some(code)) = t.any.get(at)
    {
        return code(cx, recv, args);
    }
    Err(unknown_method(cx, recv, method_name(method)))
}

/// Pays for the reads of a builtin before it starts (D18). Its code pays only for its writes,
/// and for the sizes it computes itself.
pub(crate) fn charge_reads(
    cx: &mut Cx<'_>,
    cost: Formula,
    what: Reads,
    recv: Option<Val>,
    args: &[Val],
) -> Result<(), Fault> {
    let widths = |cx: &Cx<'_>, vals: &[Val]| {
        let mut sizes = Sizes::default();
        for val in recv.iter().chain(vals) {
            let (units, elements) = width(cx, *val);
            sizes.in_units = sizes.in_units.saturating_add(units as u64);
            sizes.in_elements = sizes.in_elements.saturating_add(elements as u64);
        }
        sizes
    };
    let sizes = match what {
        Reads::First => widths(cx, &args[..args.len().min(1)]),
        Reads::All => widths(cx, args),
        Reads::Count => Sizes::elements(args.len()),
        Reads::Deep => {
            for arg in args {
                crate::convert::charge_read(cx, *arg, cost)?;
            }
            return Ok(());
        }
    };
    cx.charge(cost, sizes)
}

/// Pays for the answer of an atom that the machine prices.
pub(crate) fn charge_answer(cx: &mut Cx<'_>, cost: Formula, answer: Val) -> Result<(), Fault> {
    let (units, elements) = width(cx, answer);
    let sizes = Sizes::default().out_units(units);
    cx.charge(cost, sizes.out_elements(elements))
}

/// Units and elements of a value, without nested ones.
fn width(cx: &Cx<'_>, v: Val) -> (usize, usize) {
    match v {
        Val::Str(s) => (s.units(), 0),
        Val::Arr(r) | Val::Set(r) | Val::Obj(r) => (0, cx.heap.len(r)),
        _ => (0, 0),
    }
}

/// Pays for text before it is built.
pub(crate) fn charge_text(cx: &mut Cx<'_>, units: usize) -> Result<(), Fault> {
    cx.charge(WRITTEN, Sizes::default().out_units(units))
}

/// Pays for an array, set or object before it is built.
pub(crate) fn charge_list(cx: &mut Cx<'_>, elements: usize) -> Result<(), Fault> {
    cx.charge(WRITTEN, Sizes::default().out_elements(elements))
}

/// The argument at `at`, or `undefined`.
pub(crate) fn arg(args: &[Val], at: usize) -> Val {
    args.get(at).copied().unwrap_or(Val::Undefined)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
