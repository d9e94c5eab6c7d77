//! Builtin functions: namespaces and globals (language section 3.6).

use super::arrays;
use super::coerce::{bytes, to_num, to_str};
use super::json::{self, Style};
use super::meter::{Meter, pay_metered, pay_texts};
use super::strings::Args;
use super::value::{Fail, OVal, Obj, Res, array_index, fail, js, lossy, ordered_keys, to_wtf8};
use super::{dates, schemas, web};
use a99_core::builtins::{FUNCTIONS, Reads};
use a99_core::costs::{
    FEW_DIGITS, FEW_RADIX_DIGITS, Formula, JSON_LISTED, MANY_DIGITS, READ, Sizes,
};
use a99_ecma::arith::{self, Math1};
use a99_ecma::number_text::{LocaleOptions, LocaleWords};
use a99_ecma::{number_parse, number_text, uri};

/// System time in milliseconds since the epoch.
pub(super) fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |d| d.as_millis() as f64)
}

/// Calls a builtin function by its row.
pub(super) fn call(m: &mut Meter, row: u16, arguments: &[OVal]) -> Res<OVal> {
    let f = FUNCTIONS[row as usize];
    m.reads(f.cost, f.reads, None, arguments)?;
    let result = dispatch(m, f.ns, f.name, arguments)?;
    // `Array.from` paid before it made its list.
    if (f.ns, f.name) != ("Array", "from") {
        m.writes(f.cost, &result)?;
    }
    Ok(result)
}

/// A value as a function, if callable: `Date`, `Number` and `String` are namespaces too.
pub(super) fn as_function(value: &OVal) -> Option<OVal> {
    match value {
        OVal::Fn(_) => Some(value.clone()),
        OVal::Ns(n) => {
            let name = a99_core::builtins::NAMESPACES[*n as usize];
            a99_core::builtins::function("", name).map(OVal::Fn)
        }
        _ => None,
    }
}

/// Calls a callback value.
pub(super) fn call_value(m: &mut Meter, f: &OVal, args: &[OVal]) -> Res<OVal> {
    match as_function(f) {
        Some(OVal::Fn(row)) => call(m, row, args),
        _ => fail("not a function"),
    }
}

fn dispatch(m: &mut Meter, ns: &str, name: &str, arguments: &[OVal]) -> Res<OVal> {
    let args = Args(arguments);
    match ns {
        "Math" => math(name, &args),
        "JSON" if name == "parse" => json::parse(&args.text(0)?),
        "JSON" if name == "stringify" => stringify(&args),
        "console" => match name {
            "log" | "warn" | "error" | "info" | "debug" => Ok(OVal::Undef),
            _ => unknown(ns, name),
        },
        "Array" => match name {
            "isArray" => Ok(OVal::Bool(matches!(args.get(0), OVal::Arr(_)))),
            "of" => Ok(OVal::array(arguments.to_vec())),
            "items" => items(m, &args),
            "toMap" => super::maps::to_map(&args),
            "from" => arrays::from(m, &args, &mut |m, f, a| call_value(m, f, a)),
            _ => unknown(ns, name),
        },
        "Object" => object(name, &args),
        "String" if name.contains("Pattern") => super::regex_output::call(name, &args),
        "String" => string(name, &args),
        "Number" => number(name, &args),
        "Date" if name == "now" => Ok(OVal::Num(now())),
        "Date" if name == "parse" => dates::parse(&args.get(0)),
        "Date" if name == "tryParse" => dates::try_parse(&args.get(0)),
        "Date" if name == "toLocale" => web::format(&args),
        "Schema" => schema(name, &args),
        "" if matches!(name, "structuredClone" | "btoa" | "atob") => web::call(name, &args),
        "" => global(name, &args),
        _ => unknown(ns, name),
    }
}

/// The error of a function in the tables of `core` that the oracle lacks.
fn unknown(ns: &str, name: &str) -> Res<OVal> {
    fail(a99_core::builtins::unknown_member(ns, name))
}

/// `Array.items`: a list is returned unchanged, any other iterable becomes one.
fn items(m: &mut Meter, args: &Args<'_>) -> Res<OVal> {
    let value = args.get(0);
    let has_items = match &value {
        OVal::Arr(_) => return Ok(value),
        OVal::Str(_) | OVal::Set(_) => true,
        OVal::Obj(obj) => obj.get(&js("length")).is_some(),
        _ => false,
    };
    if !has_items {
        let name = match args.get(1) {
            OVal::Str(name) => lossy(&name),
            _ => "the value".to_owned(),
        };
        return fail(format!("{name} is not iterable"));
    }
    m.reads(Formula::Keys(24), Reads::First, None, args.0)?;
    let only = [value];
    arrays::from(m, &Args(&only), &mut |m, f, a| call_value(m, f, a))
}

/// The operators on bits.
fn bits(name: &str, left: f64, right: f64) -> f64 {
    let (a, b) = (arith::to_int32(left), arith::to_int32(right));
    let places = arith::to_uint32(right) % 32;
    match name {
        "bitAnd" => f64::from(a & b),
        "bitOr" => f64::from(a | b),
        "bitXor" => f64::from(a ^ b),
        "shiftLeft" => f64::from(a << places),
        "shiftRight" => f64::from(a >> places),
        _ => f64::from(arith::to_uint32(left) >> places),
    }
}

fn math(name: &str, args: &Args<'_>) -> Res<OVal> {
    let all = || args.0.iter().map(to_num).collect::<Res<Vec<f64>>>();
    let n = |i: usize| to_num(&args.get(i));
    if let Some(f) = Math1::from_name(name) {
        return Ok(OVal::Num(f.eval(n(0)?)));
    }
    Ok(OVal::Num(match name {
        "pow" => {
            let base = n(0)?;
            arith::pow(base, n(1)?)
        }
        "atan2" => {
            let y = n(0)?;
            arith::atan2(y, n(1)?)
        }
        "imul" => {
            let a = n(0)?;
            arith::imul(a, n(1)?)
        }
        "bitNot" => f64::from(!arith::to_int32(n(0)?)),
        "bitAnd" | "bitOr" | "bitXor" | "shiftLeft" | "shiftRight" | "shiftRightUnsigned" => {
            let left = n(0)?;
            bits(name, left, n(1)?)
        }
        "hypot" => arith::hypot(&all()?),
        "min" => arith::min(&all()?),
        "max" => arith::max(&all()?),
        "round" => arith::js_round(n(0)?),
        "sign" => arith::sign(n(0)?),
        "clz32" => arith::clz32(n(0)?),
        "fround" => arith::fround(n(0)?),
        "random" => random(),
        _ => return unknown("Math", name),
    }))
}

/// A number in [0, 1).
pub(super) fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn stringify(args: &Args<'_>) -> Res<OVal> {
    let mut style = Style {
        paid: true,
        ..Style::default()
    };
    match args.get(1) {
        OVal::Arr(list) => {
            style.listed = list.borrow().len();
            let elements = Sizes::elements(style.listed * JSON_LISTED);
            pay_metered(READ.price(elements))?;
            let mut keys = Vec::new();
            for v in list.borrow().iter() {
                if matches!(v, OVal::Str(_) | OVal::Num(_)) {
                    let key = to_str(v)?;
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                }
            }
            style.keys = Some(keys);
        }
        OVal::Fn(_) => return fail("JSON.stringify: functions are not supported as replacer"),
        _ => {}
    }
    style.indent = match args.get(2) {
        OVal::Num(n) => vec![32; n.trunc().clamp(0.0, 10.0) as usize],
        OVal::Str(s) => s.iter().copied().take(10).collect(),
        _ => Vec::new(),
    };
    Ok(json::stringify(&args.get(0), &style)?.map_or(OVal::Undef, OVal::units))
}

/// The own enumerable members of any value, in order.
pub(super) fn members(value: &OVal) -> Res<Vec<(super::value::JsStr, OVal)>> {
    let indexed = |items: Vec<OVal>| {
        items
            .into_iter()
            .enumerate()
            .map(|(i, v)| (js(&i.to_string()), v))
            .collect()
    };
    Ok(match value {
        OVal::Undef | OVal::Null => {
            return fail(format!("{} is not an object", lossy(&to_str(value)?)));
        }
        OVal::Obj(obj) => ordered_keys(obj)
            .into_iter()
            .map(|k| (k.clone(), obj.member(&k)))
            .collect(),
        OVal::Arr(items) => indexed(items.borrow().clone()),
        OVal::Str(s) => indexed(s.iter().map(|u| OVal::units(vec![*u])).collect()),
        _ => Vec::new(),
    })
}

fn pair(entry: &OVal) -> Res<(super::value::JsStr, OVal)> {
    let OVal::Arr(items) = entry else {
        return match entry {
            OVal::Obj(o) => {
                let get = |k: &str| o.member(&js(k));
                Ok((to_str(&get("0"))?, get("1")))
            }
            _ => fail("Type error"),
        };
    };
    let items = items.borrow();
    let get = |i: usize| items.get(i).cloned().unwrap_or(OVal::Undef);
    Ok((to_str(&get(0))?, get(1)))
}

/// The name of a member as a value.
pub(super) fn listed(name: super::value::JsStr) -> Res<OVal> {
    super::meter::pay_name(&name)?;
    Ok(OVal::Str(name))
}

fn object(name: &str, args: &Args<'_>) -> Res<OVal> {
    let list = |f: fn((super::value::JsStr, OVal)) -> Res<OVal>| -> Res<OVal> {
        let items: Res<_> = members(&args.get(0))?.into_iter().map(f).collect();
        Ok(OVal::array(items?))
    };
    match name {
        "keys" => list(|(k, _)| listed(k)),
        "values" => list(|(_, v)| Ok(v)),
        "entries" => list(|(k, v)| Ok(OVal::array(vec![listed(k)?, v]))),
        "fromEntries" => {
            let out = Obj::new();
            for entry in arrays::iterate(&args.get(0))? {
                let (k, v) = pair(&entry)?;
                super::meter::pay_name(&k)?;
                out.insert(k, v);
            }
            Ok(OVal::object(out))
        }
        "assign" => {
            let out = Obj::new();
            for source in args.0.iter().filter(|v| !v.is_nullish()) {
                out.extend(members(source)?);
            }
            Ok(OVal::object(out))
        }
        "is" => Ok(OVal::Bool(match (args.get(0), args.get(1)) {
            (OVal::Num(a), OVal::Num(b)) => {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            }
            (a, b) => {
                if let (OVal::Str(a), OVal::Str(b)) = (&a, &b) {
                    super::meter::owe_compare(a, b, true);
                    super::meter::settle()?;
                }
                a.strict_eq(&b)
            }
        })),
        "hasOwn" => {
            // ECMA-262 §20.1.2.13: the object first, then the name.
            if args.get(0).is_nullish() {
                return fail("undefined is not an object");
            }
            let key = args.text(1)?;
            super::meter::pay_name(&key)?;
            Ok(OVal::Bool(match args.get(0) {
                OVal::Obj(o) => o.contains_key(&key),
                OVal::Arr(a) => has_index(&key, a.borrow().len()),
                OVal::Str(s) => has_index(&key, s.len()),
                _ => false,
            }))
        }
        _ => unknown("Object", name),
    }
}

fn has_index(key: &[u16], len: usize) -> bool {
    *key == *js("length") || array_index(key).is_some_and(|i| i < len)
}

/// Refuses the three forbidden names as keys of new objects (decision D16).
pub(super) fn refuse_forbidden(key: &[u16]) -> Res<()> {
    let name = lossy(key);
    if a99_core::builtins::is_forbidden(name.as_bytes()) {
        return Err(Fail::forbidden(&name));
    }
    Ok(())
}

fn string(name: &str, args: &Args<'_>) -> Res<OVal> {
    if !matches!(name, "fromCharCode" | "fromCodePoint") {
        return unknown("String", name);
    }
    let mut out = Vec::new();
    for v in args.0 {
        let n = to_num(v)?;
        if name == "fromCharCode" {
            out.push(arith::to_uint32(n) as u16);
        } else {
            if n.trunc() != n || !(0.0..=1_114_111.0).contains(&n) {
                return fail("Arguments contain a value that is out of range of code points");
            }
            match char::from_u32(n as u32) {
                Some(c) => out.extend_from_slice(c.encode_utf16(&mut [0; 2])),
                None => out.push(n as u16),
            }
        }
    }
    Ok(OVal::units(out))
}

fn number(name: &str, args: &Args<'_>) -> Res<OVal> {
    let own = match args.get(0) {
        OVal::Num(n) => Some(n),
        _ => None,
    };
    let whole = |n: f64| n.is_finite() && n.trunc() == n;
    Ok(OVal::Bool(match name {
        "isNaN" => own.is_some_and(f64::is_nan),
        "isFinite" => own.is_some_and(f64::is_finite),
        "isInteger" => own.is_some_and(whole),
        "isSafeInteger" => own.is_some_and(|n| whole(n) && n.abs() <= 9_007_199_254_740_991.0),
        "parseInt" | "parseFloat" => return global(name, args),
        _ => return unknown("Number", name),
    }))
}

fn global(name: &str, args: &Args<'_>) -> Res<OVal> {
    let coded = |r: Result<Vec<u8>, uri::UriError>| match r {
        Ok(out) => Ok(bytes(&out)),
        Err(e) => fail(e.message()),
    };
    match name {
        "parseInt" => {
            let text = args.text(0)?;
            Ok(OVal::Num(number_parse::parse_int(
                &to_wtf8(&text),
                to_num(&args.get(1)).map(|r| if r.is_nan() { 0.0 } else { r })?,
            )))
        }
        "parseFloat" => Ok(OVal::Num(number_parse::parse_float(&to_wtf8(
            &args.text(0)?,
        )))),
        "isNaN" => Ok(OVal::Bool(to_num(&args.get(0))?.is_nan())),
        "isFinite" => Ok(OVal::Bool(to_num(&args.get(0))?.is_finite())),
        "encodeURI" => coded(uri::encode_uri(&to_wtf8(&args.text(0)?))),
        "encodeURIComponent" => coded(uri::encode_uri_component(&to_wtf8(&args.text(0)?))),
        "decodeURI" => coded(uri::decode_uri(&to_wtf8(&args.text(0)?)).map(|c| c.into_owned())),
        "decodeURIComponent" => {
            coded(uri::decode_uri_component(&to_wtf8(&args.text(0)?)).map(|c| c.into_owned()))
        }
        "filter" => {
            let schema = schemas::from_example(&args.get(1));
            schemas::owe_reading(&schema);
            let kept = schemas::filter(&args.get(0), &schema);
            super::meter::settle()?;
            kept.map_err(Fail::new)
        }
        "Set" => match args.get(0) {
            OVal::Undef | OVal::Null => Ok(OVal::set(Vec::new())),
            v => {
                let items = arrays::iterate(&v)?;
                pay_texts(&items)?;
                Ok(OVal::set(arrays::distinct(items)))
            }
        },
        "Date" => dates::construct(&args.get(0), now()),
        "Number" if args.0.is_empty() => Ok(OVal::Num(0.0)),
        "Number" => Ok(OVal::Num(to_num(&args.get(0))?)),
        "String" if args.0.is_empty() => Ok(OVal::str("")),
        "String" => Ok(OVal::Str(to_str(&args.get(0))?)),
        "Boolean" => Ok(OVal::Bool(args.get(0).truthy())),
        "Error" => {
            let text = match args.get(0) {
                OVal::Str(s) => s,
                _ => js("Error"),
            };
            Err(Fail {
                code: a99_core::error::ErrorCode::Program,
                message: text,
                op: Some("Error".into()),
            })
        }
        _ => fail(format!("Unknown function: {name}")),
    }
}

fn schema(name: &str, args: &Args<'_>) -> Res<OVal> {
    let node = |members: Vec<(&str, OVal)>| {
        OVal::object(members.into_iter().map(|(k, v)| (js(k), v)).collect())
    };
    let kind = |t: &str| ("type", OVal::str(t));
    let format = |f: &str| {
        node(vec![
            ("type", OVal::str("string")),
            ("format", OVal::str(f)),
        ])
    };
    Ok(match name {
        "object" => {
            let properties = args.get(0);
            let keys = members(&properties)?
                .into_iter()
                .map(|(k, _)| OVal::Str(k))
                .collect();
            node(vec![
                kind("object"),
                ("properties", properties),
                ("required", OVal::array(keys)),
                ("additionalProperties", OVal::Bool(false)),
            ])
        }
        "array" => node(vec![kind("array"), ("items", args.get(0))]),
        "record" => node(vec![kind("object"), ("additionalProperties", args.get(0))]),
        "union" => node(vec![("anyOf", args.get(0))]),
        "enum" => node(vec![("enum", args.get(0))]),
        "const" => node(vec![("const", args.get(0))]),
        "tuple" => node(vec![kind("array"), ("items", args.get(0))]),
        "infer" | "fromExample" => schemas::from_example(&args.get(0)),
        "pattern" => node(vec![kind("string"), ("pattern", args.get(0))]),
        "email" | "uuid" | "ipv4" | "emoji" => format(name),
        "url" => format("uri"),
        "datetime" => format("date-time"),
        "null" => node(vec![kind("null")]),
        "response" => {
            let schema = schemas::from_example(&args.get(1));
            let inner = node(vec![
                ("name", args.get(0)),
                ("strict", OVal::Bool(true)),
                ("schema", schema),
            ]);
            node(vec![kind("json_schema"), ("json_schema", inner)])
        }
        "isValid" => {
            let schema = schemas::from_example(&args.get(1));
            schemas::owe_reading(&schema);
            let valid = schemas::validate(&args.get(0), &schema, "");
            super::meter::settle()?;
            OVal::Bool(valid.is_ok())
        }
        "any" | "undefined" => OVal::object(Obj::new()),
        _ => return unknown("Schema", name),
    })
}

/// Names of number methods, implemented below.
pub(super) const NUMBER_METHODS: &str = "\
    toFixed toExponential toPrecision toString toLocaleString valueOf hasOwnProperty \
    isPrototypeOf propertyIsEnumerable";

/// A method of a number or boolean.
pub(super) fn number_method(value: &OVal, name: &str, arguments: &[OVal]) -> Res<Option<OVal>> {
    let args = Args(arguments);
    let out = |r: Result<String, a99_ecma::RangeError>| match r {
        Ok(text) => Ok(Some(OVal::str(&text))),
        Err(e) => fail(e.message()),
    };
    match (value, name) {
        (_, "valueOf") => Ok(Some(value.clone())),
        (OVal::Num(n), "toString") => match args.optional(0)? {
            None => Ok(Some(OVal::Str(to_str(value)?))),
            Some(radix) => {
                let text = number_text::to_radix(*n, radix);
                if text.as_ref().is_ok_and(|t| t.len() > FEW_RADIX_DIGITS) {
                    pay_metered(MANY_DIGITS)?;
                }
                out(text)
            }
        },
        (_, "toString") => Ok(Some(OVal::Str(to_str(value)?))),
        (OVal::Num(n), "toFixed" | "toExponential" | "toPrecision") => {
            let digits = args.optional(0)?;
            if digits.is_some_and(|digits| digits > FEW_DIGITS as f64) {
                pay_metered(MANY_DIGITS)?;
            }
            out(match name {
                "toFixed" => number_text::to_fixed(*n, digits.unwrap_or(0.0)),
                "toExponential" => number_text::to_exponential(*n, digits),
                _ => number_text::to_precision(*n, digits),
            })
        }
        (OVal::Num(n), "toLocaleString") => {
            let options = locale_options(arguments)?;
            Ok(Some(OVal::str(&number_text::to_locale_text(*n, &options))))
        }
        (OVal::Bool(_), "toLocaleString") => Ok(Some(OVal::Str(to_str(value)?))),
        (_, "hasOwnProperty" | "isPrototypeOf" | "propertyIsEnumerable") => {
            Ok(Some(OVal::Bool(false)))
        }
        _ => Ok(None),
    }
}

/// Options of number formatting after a locale, if an object.
pub(super) fn locale_options(arguments: &[OVal]) -> Res<LocaleOptions> {
    let Some(OVal::Obj(given)) = arguments.get(1) else {
        return Ok(LocaleOptions::default());
    };
    let member = |key: &str| match given.get(&js(key)) {
        None | Some(OVal::Undef) => None,
        Some(value) => Some(value),
    };
    let word = |key: &str| {
        let text = member(key).map(|value| to_str(&value)).transpose();
        text.map(|text| text.map(|text| lossy(&text)))
    };
    let number = |key: &str| member(key).map(|value| to_num(&value)).transpose();
    let (style, currency) = (word("style")?, word("currency")?);
    let words = LocaleWords {
        style: style.as_deref(),
        currency: currency.as_deref(),
        min_fraction: number("minimumFractionDigits")?,
        max_fraction: number("maximumFractionDigits")?,
        grouping: member("useGrouping").map(|value| value.truthy()),
    };
    LocaleOptions::new(words).or_else(|error| fail(error.message()))
}

/// Names of methods of booleans and objects, implemented above and below.
pub(super) const OBJECT_METHODS: &str = "\
    toString toLocaleString valueOf hasOwnProperty isPrototypeOf propertyIsEnumerable";

/// A method of a plain object: the read-only ones of `Object.prototype`.
pub(super) fn object_method(
    obj: &std::rc::Rc<Obj>,
    name: &str,
    arguments: &[OVal],
) -> Res<Option<OVal>> {
    let args = Args(arguments);
    Ok(Some(match name {
        "hasOwnProperty" | "propertyIsEnumerable" => {
            let key = args.text(0)?;
            super::meter::pay_name(&key)?;
            OVal::Bool(obj.contains_key(&key))
        }
        "toString" | "toLocaleString" => OVal::str("[object Object]"),
        "isPrototypeOf" => OVal::Bool(false),
        "valueOf" => OVal::Obj(obj.clone()),
        _ => return Ok(None),
    }))
}
