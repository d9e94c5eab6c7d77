//! JSON Schema with the rules of the references' schema library (language section 2.9):
//! validation, projection, and schemas from examples.

use super::meter::owe;
use super::value::{JsStr, OVal, Obj, js, lossy, ordered_keys};
use a99_core::costs::{
    READ, SCHEMA_ALLOWED, SCHEMA_NODE, SCHEMA_READ, SCHEMA_REQUIRED, Sizes, WRITTEN,
};
use std::rc::Rc;

/// Arrays longer than this are checked by sampling.
const FULL_CHECK: usize = 97;

fn get(schema: &OVal, key: &str) -> Option<OVal> {
    match schema {
        OVal::Obj(o) => o.get(&js(key)).filter(|v| !v.is_undef()),
        _ => None,
    }
}

fn text(value: Option<OVal>) -> Option<String> {
    match value {
        Some(OVal::Str(s)) => Some(lossy(&s)),
        _ => None,
    }
}

fn number(value: Option<OVal>) -> Option<f64> {
    match value {
        Some(OVal::Num(n)) => Some(n),
        _ => None,
    }
}

/// Owes for reading a schema: its parts, and the names of its properties.
pub(super) fn owe_reading(schema: &OVal) {
    owe(SCHEMA_READ);
    for (key, each) in [("enum", SCHEMA_ALLOWED), ("required", SCHEMA_REQUIRED)] {
        if let Some(OVal::Arr(list)) = get(schema, key) {
            owe(READ.price(Sizes::elements(list.borrow().len() * each)));
        }
    }
    if let Some(OVal::Obj(properties)) = get(schema, "properties") {
        for (key, inner) in properties.iter() {
            owe(READ.price(Sizes::elements(1).in_units(key.len())));
            owe_reading(&inner);
        }
    }
    for key in ["anyOf", "items", "additionalProperties"] {
        match get(schema, key) {
            Some(OVal::Arr(list)) if key != "additionalProperties" => {
                list.borrow().iter().for_each(owe_reading);
            }
            Some(OVal::Bool(true)) if key == "additionalProperties" => {}
            Some(inner) if inner.truthy() && key != "anyOf" => owe_reading(&inner),
            _ => {}
        }
    }
}

/// Owes for the names that an object is asked for, and their units.
fn owe_names(schema: &OVal, required: bool) {
    let (mut names, mut units) = (0, 0);
    if let Some(OVal::Arr(list)) = get(schema, "required") {
        for key in list.borrow().iter() {
            if let OVal::Str(key) = key {
                names += usize::from(required);
                units += key.len();
            }
        }
    }
    if let Some(OVal::Obj(properties)) = get(schema, "properties") {
        names += properties.len();
        units += properties.keys().map(|key| key.len()).sum::<usize>();
    }
    owe(READ.price(Sizes::elements(names).in_units(units)));
}

fn owe_text(s: &JsStr, schema: &OVal) {
    const READING: [&str; 4] = ["enum", "minLength", "maxLength", "pattern"];
    let format = text(get(schema, "format"));
    if READING.iter().any(|key| get(schema, key).is_some())
        || format.is_some_and(|format| FORMATS.contains(&format.as_str()))
    {
        owe(READ.price(Sizes::units(s.len())));
    }
}

/// The first error of `value`, as `path: message`. Its price is owed.
pub(super) fn validate(value: &OVal, schema: &OVal, path: &str) -> Result<(), String> {
    owe(SCHEMA_NODE);
    let here = |why: &str| {
        Err(format!(
            "{}: {why}",
            if path.is_empty() { "root" } else { path }
        ))
    };
    if let Some(OVal::Arr(options)) = get(schema, "anyOf") {
        let hit = options
            .borrow()
            .iter()
            .any(|s| validate(value, s, path).is_ok());
        return if hit { Ok(()) } else { here("Union mismatch") };
    }
    if let Some(expected) = get(schema, "const") {
        // Identity, which never holds for data in a schema.
        return match value.strict_eq(&expected) {
            true => Ok(()),
            false => here("Const mismatch"),
        };
    }
    let given = get(schema, "type");
    let kind = match &given {
        Some(OVal::Arr(list)) => text(list.borrow().first().cloned()),
        other => text(other.clone()),
    };
    if value.is_nullish() {
        let wants_undefined = get(schema, "x-tjs-undefined").is_some_and(|v| v.truthy());
        let fits = match (&given, kind.as_deref()) {
            (Some(OVal::Arr(list)), _) => {
                let list = list.borrow();
                list.iter()
                    .any(|t| text(Some(t.clone())).as_deref() == Some("null"))
            }
            (_, Some("null")) => wants_undefined == value.is_undef(),
            (_, kind) => kind.is_none(),
        };
        if fits {
            return Ok(());
        }
        let word = if value.is_undef() {
            "undefined"
        } else {
            "null"
        };
        return here(&format!("Expected value, got {word}"));
    }
    if let OVal::Str(s) = value {
        owe_text(s, schema);
    }
    if let Some(OVal::Arr(list)) = get(schema, "enum")
        && !list.borrow().iter().any(|v| v.strict_eq(value))
    {
        return here("Enum mismatch");
    }
    let kind = kind.as_deref().unwrap_or_default();
    let fits = match (kind, value) {
        ("", _) => true,
        ("integer", OVal::Num(n)) => n.is_finite() && n.fract() == 0.0,
        ("array", OVal::Arr(_)) => true,
        ("object", OVal::Obj(_) | OVal::Set(_) | OVal::Date(_) | OVal::Map(_)) => true,
        ("string", OVal::Str(_)) | ("number", OVal::Num(_)) | ("boolean", OVal::Bool(_)) => true,
        _ => false,
    };
    if !fits {
        return here(&format!("Expected {kind}"));
    }
    match value {
        OVal::Num(n) => bounds(*n, schema).or_else(here)?,
        OVal::Str(s) => string_rules(s, schema).or_else(|why| here(&why))?,
        _ => {}
    }
    match (kind, value) {
        ("array", OVal::Arr(items)) => array_rules(&items.borrow(), schema, path),
        ("object", OVal::Obj(obj)) => object_rules(obj, schema, path),
        ("object", _) => object_rules(&Rc::new(Obj::new()), schema, path),
        _ => Ok(()),
    }
}

fn bounds(n: f64, schema: &OVal) -> Result<(), &'static str> {
    if !n.is_finite() {
        return Err("Expected finite number");
    }
    if number(get(schema, "minimum")).is_some_and(|m| n < m) {
        return Err("Value < min");
    }
    if number(get(schema, "maximum")).is_some_and(|m| n > m) {
        return Err("Value > max");
    }
    if number(get(schema, "multipleOf")).is_some_and(|m| a99_ecma::arith::fmod(n, m) != 0.0) {
        return Err("Value not step");
    }
    Ok(())
}

fn string_rules(s: &JsStr, schema: &OVal) -> Result<(), String> {
    if number(get(schema, "minLength")).is_some_and(|m| (s.len() as f64) < m) {
        return Err("Len < min".into());
    }
    if number(get(schema, "maxLength")).is_some_and(|m| (s.len() as f64) > m) {
        return Err("Len > max".into());
    }
    let plain = lossy(s);
    if let Some(pattern) = text(get(schema, "pattern"))
        && (super::pattern::pay_match(&js(&pattern), s.len()).is_err()
            || super::regex::is_match(&js(&pattern), s) != Ok(true))
    {
        return Err("Pattern mismatch".into());
    }
    match text(get(schema, "format")) {
        Some(format) if !format_ok(&format, &plain) => Err("Format invalid".into()),
        _ => Ok(()),
    }
}

/// Supported formats.
const FORMATS: [&str; 6] = ["email", "uuid", "uri", "ipv4", "date-time", "emoji"];

fn format_ok(format: &str, s: &str) -> bool {
    let re = |p: &str| super::regex::is_match(&js(p), &js(s)) == Ok(true);
    match format {
        "email" => re(r"^[^\s@]+@[^\s@]+\.[^\s@]+$"),
        "uuid" => {
            re(r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$")
        }
        "uri" => re(r"^[a-zA-Z][a-zA-Z0-9+.\-]*:\S+$"),
        "ipv4" => {
            let parts: Vec<&str> = s.split('.').collect();
            parts.len() == 4
                && parts.iter().all(|p| {
                    !p.is_empty()
                        && p.len() <= 3
                        && p.bytes().all(|b| b.is_ascii_digit())
                        && p.parse::<u16>().is_ok_and(|n| n < 256)
                })
        }
        "date-time" => a99_ecma::date::parse(s.as_bytes()).is_some(),
        "emoji" => re(r"^\p{Extended_Pictographic}+$"),
        _ => true,
    }
}

fn array_rules(items: &[OVal], schema: &OVal, path: &str) -> Result<(), String> {
    let here = |why: &str| {
        Err(format!(
            "{}: {why}",
            if path.is_empty() { "root" } else { path }
        ))
    };
    if get(schema, "items").is_none() {
        // Without a schema of its items a list is not checked.
        return Ok(());
    }
    let len = items.len() as f64;
    if number(get(schema, "minItems")).is_some_and(|m| len < m) {
        return here("Array too short");
    }
    if number(get(schema, "maxItems")).is_some_and(|m| len > m) {
        return here("Array too long");
    }
    let child = |i: usize| {
        if path.is_empty() {
            i.to_string()
        } else {
            format!("{path}.{i}")
        }
    };
    match get(schema, "items") {
        Some(OVal::Arr(tuple)) => {
            for (i, s) in tuple.borrow().iter().enumerate() {
                validate(items.get(i).unwrap_or(&OVal::Undef), s, &child(i))?;
            }
            Ok(())
        }
        Some(each) => {
            let stride = if items.len() > FULL_CHECK {
                items.len() / FULL_CHECK
            } else {
                1
            };
            let last = items.len().checked_sub(1);
            let picks = (0..items.len())
                .step_by(stride.max(1))
                .chain(last.filter(|last| last % stride.max(1) != 0));
            for i in picks {
                validate(&items[i], &each, &child(i))?;
            }
            Ok(())
        }
        None => Ok(()),
    }
}

fn object_rules(obj: &Rc<Obj>, schema: &OVal, path: &str) -> Result<(), String> {
    let here = |why: String| {
        Err(format!(
            "{}: {why}",
            if path.is_empty() { "root" } else { path }
        ))
    };
    let child = |k: &[u16]| match path {
        "" => lossy(k),
        _ => format!("{path}.{}", lossy(k)),
    };
    if number(get(schema, "minProperties")).is_some_and(|m| (obj.len() as f64) < m) {
        return here("Too few props".into());
    }
    owe_names(schema, true);
    if let Some(OVal::Arr(required)) = get(schema, "required") {
        for key in required.borrow().iter() {
            if let OVal::Str(k) = key
                && obj.member(k).is_undef()
            {
                return here(format!("Missing {}", lossy(k)));
            }
        }
    }
    if let Some(OVal::Obj(properties)) = get(schema, "properties") {
        for key in ordered_keys(&properties) {
            if let Some(value) = obj.get(&key) {
                validate(&value, &properties.member(&key), &child(&key))?;
            }
        }
    }
    if let Some(extra @ OVal::Obj(_)) = get(schema, "additionalProperties") {
        let properties = match get(schema, "properties") {
            Some(OVal::Obj(p)) => Some(p),
            _ => None,
        };
        let looks_up = properties.is_some();
        let declared = properties.unwrap_or_else(|| Rc::new(Obj::new()));
        for key in ordered_keys(obj) {
            let units = if looks_up { key.len() } else { 0 };
            owe(READ.price(Sizes::elements(1).in_units(units)));
            if !declared.contains_key(&key) {
                validate(&obj.member(&key), &extra, &child(&key))?;
            }
        }
    }
    Ok(())
}

/// Validates, then keeps only the declared properties.
pub(super) fn filter(value: &OVal, schema: &OVal) -> Result<OVal, String> {
    validate(value, schema, "")?;
    Ok(project(value, schema))
}

fn project(value: &OVal, schema: &OVal) -> OVal {
    owe(SCHEMA_NODE);
    match (value, text(get(schema, "type")).as_deref()) {
        (OVal::Obj(obj), Some("object")) => match get(schema, "properties") {
            Some(OVal::Obj(properties)) => {
                owe_names(schema, false);
                let kept: Obj = ordered_keys(&properties)
                    .into_iter()
                    .filter_map(|k| {
                        let kept = project(&obj.get(&k)?, &properties.member(&k));
                        Some((k, kept))
                    })
                    .collect();
                owe(WRITTEN.price(Sizes::default().out_elements(kept.len())));
                OVal::object(kept)
            }
            _ => value.clone(),
        },
        (OVal::Arr(items), Some("array")) => match get(schema, "items") {
            Some(OVal::Arr(tuple)) => {
                let tuple = tuple.borrow();
                let items = items.borrow();
                let n = items.len().min(tuple.len());
                owe(WRITTEN.price(Sizes::default().out_elements(n)));
                OVal::array(
                    tuple
                        .iter()
                        .zip(items.iter())
                        .map(|(s, v)| project(v, s))
                        .collect(),
                )
            }
            Some(each) => {
                let items = items.borrow();
                owe(WRITTEN.price(Sizes::default().out_elements(items.len())));
                OVal::array(items.iter().map(|v| project(v, &each)).collect())
            }
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn node(kind: &str) -> Obj {
    Obj::from([(js("type"), OVal::str(kind))])
}

/// Infers the schema of an example (`filter`, language section 3.6).
pub(super) fn from_example(example: &OVal) -> OVal {
    if get(example, "type").is_some_and(|t| matches!(t, OVal::Str(_))) {
        return example.clone();
    }
    if let Some(inner @ OVal::Obj(_)) = get(example, "schema") {
        return inner;
    }
    OVal::object(match example {
        OVal::Null => node("null"),
        OVal::Str(_) => node("string"),
        OVal::Bool(_) => node("boolean"),
        OVal::Num(n) if n.fract() == 0.0 && n.is_finite() => node("integer"),
        OVal::Num(_) => node("number"),
        OVal::Arr(items) => {
            let schema = node("array");
            let each = items.borrow().first().map(from_example);
            if let Some(each) = each {
                schema.insert(js("items"), each);
            }
            schema
        }
        OVal::Obj(obj) => {
            let keys = ordered_keys(obj);
            let schema = node("object");
            let properties = keys
                .iter()
                .map(|k| (k.clone(), from_example(&obj.member(k))))
                .collect();
            schema.insert(js("properties"), OVal::object(properties));
            schema.insert(
                js("required"),
                OVal::array(keys.into_iter().map(OVal::Str).collect()),
            );
            schema.insert(js("additionalProperties"), OVal::Bool(false));
            schema
        }
        _ => Obj::new(),
    })
}

/// A schema of the program as a guest value.
pub(super) fn of_json(schema: &a99_core::value::Value) -> OVal {
    super::value::from_value(schema)
}
