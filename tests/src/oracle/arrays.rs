//! Methods of arrays (ECMA-262 §23.1.3) and sets (language section 3.6).

use super::coerce::{join, to_num, to_str};
use super::meter::{Meter, pay, pay_metered, pay_search, pay_texts};
use super::strings::Args;
use super::value::{Fail, JsStr, OVal, Res, array_index, fail, js};
use a99_core::costs::{Formula, READ, Sizes, WRITTEN, comparator_steps};
use a99_ecma::date::locale::Defaults;
use a99_ecma::text_index;
use std::cell::RefCell;
use std::rc::Rc;

/// A shared array.
pub(super) type Items = Rc<RefCell<Vec<OVal>>>;

/// Calls a builtin function as a callback.
pub(super) type Call<'a> = dyn FnMut(&mut Meter, &OVal, &[OVal]) -> Res<OVal> + 'a;

/// The longest array (ECMA-262 §10.4.2).
const MAX_LENGTH: f64 = 4_294_967_295.0;

fn callback(args: &Args<'_>) -> Res<OVal> {
    match args.get(0) {
        f if super::statics::as_function(&f).is_some() => Ok(f),
        other => fail(format!("{} is not a function", other.type_of())),
    }
}

fn flatten(items: &[OVal], depth: f64, out: &mut Vec<OVal>, limit: usize) -> Res<()> {
    if limit == 0 {
        return fail("Maximum call stack size exceeded.");
    }
    for item in items {
        match item {
            OVal::Arr(inner) if depth >= 1.0 => {
                let inner = inner.borrow().clone();
                pay(READ, Sizes::elements(inner.len()))?;
                flatten(&inner, depth - 1.0, out, limit - 1)?;
            }
            other => out.push(other.clone()),
        }
    }
    Ok(())
}

/// Sorts as text, `undefined` last (ECMA-262 §23.1.3.30).
fn sorted(m: &mut Meter, list: &[OVal], args: &Args<'_>, call: &mut Call<'_>) -> Res<Vec<OVal>> {
    let compare = match args.get(0) {
        OVal::Undef => None,
        f if super::statics::as_function(&f).is_some() => Some(f),
        _ => return fail("The comparison function must be either a function or undefined"),
    };
    let units = list.iter().map(|v| match v {
        OVal::Str(s) => s.len(),
        _ => 0,
    });
    m.charge(
        Formula::Sort,
        Sizes::elements(list.len()).in_units(units.sum()),
    )?;
    if compare.is_some() {
        let steps = Sizes::elements(comparator_steps(list.len()));
        pay_metered(READ.price(steps))?;
    }
    let holes = list.iter().filter(|v| v.is_undef()).count();
    let mut keyed: Vec<(JsStr, OVal)> = Vec::new();
    for v in list.iter().filter(|v| !v.is_undef()) {
        keyed.push((
            if compare.is_none() {
                to_str(v)?
            } else {
                js("")
            },
            v.clone(),
        ));
    }
    if compare.is_none() {
        super::meter::owe_sort(list.len(), keyed.iter().map(|(text, _)| &**text));
    }
    match compare {
        None => keyed.sort_by(|a, b| a.0.cmp(&b.0)),
        Some(f) => {
            // Insertion sort: stable, and tolerant of inconsistent comparisons.
            let mut out: Vec<(JsStr, OVal)> = Vec::new();
            for entry in keyed {
                let mut at = out.len();
                while at > 0
                    && to_num(&call(m, &f, &[out[at - 1].1.clone(), entry.1.clone()])?)? > 0.0
                {
                    at -= 1;
                }
                out.insert(at, entry);
            }
            keyed = out;
        }
    }
    let mut out: Vec<OVal> = keyed.into_iter().map(|(_, v)| v).collect();
    out.extend((0..holes).map(|_| OVal::Undef));
    Ok(out)
}

fn splice(list: &[OVal], args: &Args<'_>) -> Res<(Vec<OVal>, Vec<OVal>)> {
    let len = list.len();
    let start = text_index::clamp_relative(args.integer(0)?, len);
    let count = match args.0.len() {
        0 => 0,
        1 => len - start,
        _ => text_index::clamp(args.integer(1)?, len - start),
    };
    let removed = list[start..start + count].to_vec();
    let mut rest = list[..start].to_vec();
    rest.extend(args.0.iter().skip(2).cloned());
    rest.extend_from_slice(&list[start + count..]);
    Ok((rest, removed))
}

/// The callback methods.
fn visiting(
    m: &mut Meter,
    this: &OVal,
    list: &[OVal],
    name: &str,
    args: &Args<'_>,
    call: &mut Call<'_>,
) -> Res<Option<OVal>> {
    let backwards = matches!(name, "findLast" | "findLastIndex" | "reduceRight");
    let mut order: Vec<usize> = (0..list.len()).collect();
    if backwards {
        order.reverse();
    }
    if matches!(name, "reduce" | "reduceRight") {
        let f = callback(args)?;
        let mut order = order.into_iter();
        let mut acc = match (args.0.get(1), order.len()) {
            (Some(initial), _) => initial.clone(),
            (None, 0) => return fail("reduce of empty array with no initial value"),
            (None, _) => order.next().map_or(OVal::Undef, |i| list[i].clone()),
        };
        for i in order {
            acc = call(
                m,
                &f,
                &[acc, list[i].clone(), OVal::Num(i as f64), this.clone()],
            )?;
        }
        return Ok(Some(acc));
    }
    if !matches!(
        name,
        "map"
            | "filter"
            | "forEach"
            | "some"
            | "every"
            | "flatMap"
            | "find"
            | "findIndex"
            | "findLast"
            | "findLastIndex"
    ) {
        return Ok(None);
    }
    let f = callback(args)?;
    let mut out = Vec::new();
    for i in order {
        let item = list[i].clone();
        let r = call(m, &f, &[item.clone(), OVal::Num(i as f64), this.clone()])?;
        match name {
            "map" => out.push(r),
            "flatMap" => match r {
                OVal::Arr(inner) => out.extend(inner.borrow().iter().cloned()),
                other => out.push(other),
            },
            "filter" if r.truthy() => out.push(item),
            "some" if r.truthy() => return Ok(Some(OVal::Bool(true))),
            "every" if !r.truthy() => return Ok(Some(OVal::Bool(false))),
            "find" | "findLast" if r.truthy() => return Ok(Some(item)),
            "findIndex" | "findLastIndex" if r.truthy() => {
                return Ok(Some(OVal::Num(i as f64)));
            }
            _ => {}
        }
    }
    Ok(Some(match name {
        "map" | "filter" | "flatMap" => OVal::array(out),
        "some" => OVal::Bool(false),
        "every" => OVal::Bool(true),
        "findIndex" | "findLastIndex" => OVal::Num(-1.0),
        _ => OVal::Undef,
    }))
}

/// Names of array methods, implemented below.
pub(super) const METHODS: &str = "\
    at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat \
    flatMap forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight \
    reverse shift slice some sort splice toReversed toSorted toSpliced unshift values with \
    toString toLocaleString valueOf hasOwnProperty isPrototypeOf propertyIsEnumerable";

/// Calls an array method; `None` if arrays have no such method.
pub(super) fn method(
    m: &mut Meter,
    items: &Items,
    name: &str,
    arguments: &[OVal],
    call: &mut Call<'_>,
) -> Res<Option<OVal>> {
    let args = Args(arguments);
    let this = OVal::Arr(items.clone());
    let list = items.borrow().clone();
    let len = list.len();
    let at = |found: Option<usize>| OVal::Num(found.map_or(-1.0, |i| i as f64));
    if let Some(value) = visiting(m, &this, &list, name, &args, call)? {
        return Ok(Some(value));
    }
    Ok(Some(match name {
        "at" => text_index::at(args.integer(0)?, len).map_or(OVal::Undef, |i| list[i].clone()),
        "concat" => {
            let mut out = list;
            for v in arguments {
                match v {
                    OVal::Arr(more) => out.extend(more.borrow().iter().cloned()),
                    other => out.push(other.clone()),
                }
            }
            OVal::array(out)
        }
        "copyWithin" => {
            let to = text_index::clamp_relative(args.integer(0)?, len);
            let range = text_index::slice_range(args.integer(1)?, args.optional(2)?, len);
            let count = range.len().min(len - to);
            for i in 0..count {
                items.borrow_mut()[to + i] = list[range.start + i].clone();
            }
            this
        }
        "entries" => OVal::array(
            list.into_iter()
                .enumerate()
                .map(|(i, v)| OVal::array(vec![OVal::Num(i as f64), v]))
                .collect(),
        ),
        "keys" => OVal::array((0..len).map(|i| OVal::Num(i as f64)).collect()),
        "values" => OVal::array(list),
        "fill" => {
            let range = text_index::slice_range(args.integer(1)?, args.optional(2)?, len);
            for i in range {
                items.borrow_mut()[i] = args.get(0);
            }
            this
        }
        "flat" => {
            let depth = args.integer_or(0, 1.0)?;
            let mut out = Vec::new();
            flatten(&list, depth, &mut out, 4_096)?;
            OVal::array(out)
        }
        "includes" => {
            let from = text_index::clamp_relative(args.integer(1)?, len);
            pay_search(&list, &args.get(0))?;
            OVal::Bool(list[from..].iter().any(|v| v.same_value_zero(&args.get(0))))
        }
        "indexOf" => {
            let from = text_index::clamp_relative(args.integer(1)?, len);
            pay_search(&list, &args.get(0))?;
            at((from..len).find(|&i| list[i].strict_eq(&args.get(0))))
        }
        "lastIndexOf" => {
            let from = if arguments.len() > 1 {
                args.integer(1)?
            } else {
                -1.0
            };
            let end = if from < 0.0 {
                len as f64 + from + 1.0
            } else {
                from + 1.0
            };
            let end = text_index::clamp(end, len);
            pay_search(&list, &args.get(0))?;
            at((0..end).rev().find(|&i| list[i].strict_eq(&args.get(0))))
        }
        "join" => {
            let sep = if args.get(0).is_undef() {
                js(",")
            } else {
                args.text(0)?
            };
            OVal::Str(join(items, &sep)?)
        }
        "toString" => OVal::Str(join(items, &js(","))?),
        "toLocaleString" => {
            let options = super::statics::locale_options(arguments)?;
            let shown = |value: &OVal| match value {
                OVal::Num(n) => Ok(OVal::str(&a99_ecma::number_text::to_locale_text(
                    *n, &options,
                ))),
                OVal::Date(ms) => super::web::date_text(**ms, arguments, Defaults::All),
                other => Ok(other.clone()),
            };
            let texts = items.borrow().iter().map(shown).collect::<Res<_>>()?;
            OVal::Str(join(&Rc::new(RefCell::new(texts)), &js(","))?)
        }
        "pop" => items.borrow_mut().pop().unwrap_or(OVal::Undef),
        "push" => {
            items.borrow_mut().extend(arguments.iter().cloned());
            OVal::Num((len + arguments.len()) as f64)
        }
        "shift" => {
            if len == 0 {
                OVal::Undef
            } else {
                items.borrow_mut().remove(0)
            }
        }
        "unshift" => {
            let all: Vec<OVal> = arguments.iter().cloned().chain(list).collect();
            *items.borrow_mut() = all;
            OVal::Num((len + arguments.len()) as f64)
        }
        "reverse" => {
            items.borrow_mut().reverse();
            this
        }
        "toReversed" => OVal::array(list.into_iter().rev().collect()),
        "slice" => {
            let range = text_index::slice_range(args.integer(0)?, args.optional(1)?, len);
            OVal::array(list[range].to_vec())
        }
        "sort" => {
            let out = sorted(m, &list, &args, call)?;
            *items.borrow_mut() = out;
            this
        }
        "toSorted" => OVal::array(sorted(m, &list, &args, call)?),
        "splice" => {
            let (rest, removed) = splice(&list, &args)?;
            *items.borrow_mut() = rest;
            OVal::array(removed)
        }
        "toSpliced" => OVal::array(splice(&list, &args)?.0),
        "with" => {
            let i = text_index::at(args.integer(0)?, len)
                .ok_or_else(|| Fail::new("Array index out of range"))?;
            let mut out = list;
            out[i] = args.get(1);
            OVal::array(out)
        }
        "hasOwnProperty" | "propertyIsEnumerable" => {
            let key = args.text(0)?;
            super::meter::pay_name(&key)?;
            let own = array_index(&key).is_some_and(|i| i < len);
            OVal::Bool(own || (name == "hasOwnProperty" && *key == *js("length")))
        }
        "isPrototypeOf" => OVal::Bool(false),
        "valueOf" => this,
        _ => return Ok(None),
    }))
}

/// The items that `Set`, `Array.from` and the like iterate over.
pub(super) fn iterate(value: &OVal) -> Res<Vec<OVal>> {
    match value {
        OVal::Arr(items) | OVal::Set(items) => Ok(items.borrow().clone()),
        OVal::Str(s) => Ok(super::strings::characters(s)),
        OVal::Map(entries) => super::maps::entry_list(entries),
        OVal::Undef | OVal::Null => fail(format!(
            "{} is not iterable",
            super::value::lossy(&to_str(value)?)
        )),
        _ => fail("Type error"),
    }
}

/// Keeps the first of equal values (SameValueZero); negative zero becomes zero.
pub(super) fn distinct(values: Vec<OVal>) -> Vec<OVal> {
    let mut out: Vec<OVal> = Vec::new();
    for v in values {
        let v = match v {
            OVal::Num(n) => OVal::Num(n + 0.0),
            other => other,
        };
        if !out.iter().any(|o| o.same_value_zero(&v)) {
            out.push(v);
        }
    }
    out
}

/// `Array.from(value, f)`.
pub(super) fn from(m: &mut Meter, args: &Args<'_>, call: &mut Call<'_>) -> Res<OVal> {
    let f = match args.get(1) {
        OVal::Undef => None,
        f if super::statics::as_function(&f).is_some() => Some(f),
        _ => {
            return fail(
                "Array.from requires that the second argument, when present, be a function",
            );
        }
    };
    let list = match args.get(0) {
        OVal::Obj(obj) => {
            let n = obj
                .get(&js("length"))
                .map_or(Ok(f64::NAN), |n| to_num(&n))?;
            let n = if n.is_nan() { 0.0 } else { n.trunc().max(0.0) };
            m.charge(WRITTEN, Sizes::default().out_elements(n as usize))?;
            if n > MAX_LENGTH {
                return fail("Array size is not a small enough positive integer.");
            }
            let item = |i: usize| obj.member(&js(&i.to_string()));
            (0..n as usize).map(item).collect()
        }
        v @ (OVal::Arr(_) | OVal::Set(_) | OVal::Map(_) | OVal::Str(_)) => {
            let list = iterate(&v)?;
            m.charge(WRITTEN, Sizes::default().out_elements(list.len()))?;
            list
        }
        OVal::Undef => return fail("undefined is not an object"),
        OVal::Null => return fail("null is not an object"),
        _ => Vec::new(),
    };
    let Some(f) = f else {
        return Ok(OVal::array(list));
    };
    let each = list.iter().enumerate();
    let out: Res<Vec<OVal>> = each
        .map(|(i, v)| call(m, &f, &[v.clone(), OVal::Num(i as f64)]))
        .collect();
    Ok(OVal::array(out?))
}

fn operand(value: &OVal) -> Res<Vec<OVal>> {
    match value {
        OVal::Set(items) | OVal::Arr(items) => Ok(items.borrow().clone()),
        OVal::Undef | OVal::Null => Ok(Vec::new()),
        other => iterate(other),
    }
}

/// Names of set methods, implemented below.
pub(super) const SET_METHODS: &str = "\
    add remove clear has toArray union intersection diff map filter forEach toString toJSON \
    delete keys values entries difference symmetricDifference isSubsetOf isSupersetOf \
    isDisjointFrom";

/// Calls a set method; `None` if sets have no such method.
pub(super) fn set_method(
    m: &mut Meter,
    items: &Items,
    name: &str,
    arguments: &[OVal],
    call: &mut Call<'_>,
) -> Res<Option<OVal>> {
    let args = Args(arguments);
    let this = OVal::Set(items.clone());
    let list = items.borrow().clone();
    let has = |list: &[OVal], v: &OVal| list.iter().any(|o| o.same_value_zero(v));
    Ok(Some(match name {
        "add" => {
            pay_search(&list, &args.get(0))?;
            if !has(&list, &args.get(0)) {
                items.borrow_mut().push(args.get(0));
            }
            this
        }
        "remove" => {
            pay_search(&list, &args.get(0))?;
            items
                .borrow_mut()
                .retain(|o| !o.same_value_zero(&args.get(0)));
            this
        }
        "clear" => {
            items.borrow_mut().clear();
            this
        }
        "has" => {
            pay_search(&list, &args.get(0))?;
            OVal::Bool(has(&list, &args.get(0)))
        }
        "delete" => {
            pay_search(&list, &args.get(0))?;
            let found = has(&list, &args.get(0));
            items
                .borrow_mut()
                .retain(|o| !o.same_value_zero(&args.get(0)));
            OVal::Bool(found)
        }
        "entries" => {
            let pairs = list.iter().map(|v| OVal::array(vec![v.clone(), v.clone()]));
            OVal::array(pairs.collect())
        }
        "difference" | "symmetricDifference" | "isSubsetOf" | "isSupersetOf" | "isDisjointFrom" => {
            let other = match args.get(0) {
                OVal::Set(items) => items.borrow().clone(),
                OVal::Map(entries) => super::maps::key_list(&entries)?,
                _ => return fail("a set operation needs a set: new Set(list)"),
            };
            let pick = |from: &[OVal], of: &[OVal], wanted: bool| -> Res<Vec<OVal>> {
                pay_texts(of).and_then(|()| pay_texts(from))?;
                let kept = from.iter().filter(|v| has(of, v) == wanted);
                Ok(kept.cloned().collect())
            };
            match name {
                "difference" => OVal::set(distinct(pick(&list, &other, false)?)),
                "symmetricDifference" => {
                    let mut kept = pick(&list, &other, false)?;
                    kept.extend(pick(&other, &list, false)?);
                    OVal::set(distinct(kept))
                }
                "isSubsetOf" => OVal::Bool(pick(&list, &other, false)?.is_empty()),
                "isSupersetOf" => OVal::Bool(pick(&other, &list, false)?.is_empty()),
                _ => OVal::Bool(pick(&list, &other, true)?.is_empty()),
            }
        }
        "toArray" | "toJSON" | "keys" | "values" => OVal::array(list),
        "union" => {
            let all: Vec<OVal> = list.into_iter().chain(operand(&args.get(0))?).collect();
            pay_texts(&all)?;
            OVal::set(distinct(all))
        }
        "intersection" | "diff" => {
            let other = args.get(0);
            let wanted = name == "intersection";
            let mut kept = Vec::new();
            match &other {
                // A text contains the parts that it includes.
                OVal::Str(text) => {
                    for v in list {
                        let part = to_str(&v)?;
                        pay(READ, Sizes::units(text.len() + part.len()))?;
                        let found =
                            part.is_empty() || text.windows(part.len()).any(|w| *w == *part);
                        if found == wanted {
                            kept.push(v);
                        }
                    }
                }
                OVal::Set(_) | OVal::Arr(_) | OVal::Undef | OVal::Null => {
                    let other = operand(&other)?;
                    pay_texts(&other).and_then(|()| pay_texts(&list))?;
                    kept = list;
                    kept.retain(|v| has(&other, v) == wanted);
                }
                // Any other value has no items: asking for one is an error.
                OVal::Obj(obj) if obj.get(&js("toArray")).is_some_and(|v| !v.is_nullish()) => {
                    return fail("'toArray' is not a function");
                }
                _ if list.is_empty() => {}
                _ => return fail("'includes' is not a function"),
            }
            OVal::set(distinct(kept))
        }
        "map" | "filter" => {
            match visiting(m, &OVal::array(list.clone()), &list, name, &args, call)? {
                Some(OVal::Arr(out)) => {
                    let out = out.borrow().clone();
                    if name == "map" {
                        pay_texts(&out)?;
                    }
                    OVal::set(distinct(out))
                }
                _ => OVal::Undef,
            }
        }
        "forEach" => {
            visiting(m, &OVal::array(list.clone()), &list, name, &args, call)?;
            OVal::Undef
        }
        "toString" => OVal::str("[object Object]"),
        _ => return Ok(None),
    }))
}
