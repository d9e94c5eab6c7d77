//! `Date` values (decision D34, language section 3.6): UTC only.

use super::coerce::{to_num, to_str};
use super::meter::pay;
use super::value::{Fail, OVal, Res, fail, js, lossy, to_wtf8};
use a99_core::costs::{Sizes, WRITTEN};
use a99_ecma::date;
use a99_ecma::date::locale::{Defaults, to_date_string, to_utc_string};

/// The ISO text of a time, `None` for the invalid date.
pub(super) fn iso(ms: f64) -> Option<String> {
    (!date::time_clip(ms).is_nan()).then(|| date::to_iso(ms))
}

fn text_of(ms: f64) -> Res<String> {
    iso(ms).ok_or_else(|| Fail::new("Invalid Date"))
}

/// Time of an argument of `Date`, `diff` and the like; NaN if invalid.
fn time_of(value: &OVal) -> Res<f64> {
    Ok(match value {
        OVal::Str(s) => date::parse(&to_wtf8(s)).unwrap_or(f64::NAN),
        OVal::Date(ms) => date::parse(text_of(**ms)?.as_bytes()).unwrap_or(f64::NAN),
        OVal::Undef => f64::NAN,
        OVal::Null | OVal::Bool(_) | OVal::Num(_) => date::time_clip(to_num(value)?),
        other => date::parse(&to_wtf8(&to_str(other)?)).unwrap_or(f64::NAN),
    })
}

/// `Date(init)`; by default the present.
pub(super) fn construct(init: &OVal, now: f64) -> Res<OVal> {
    if init.is_undef() {
        return Ok(OVal::date(now));
    }
    let ms = time_of(init)?;
    if ms.is_nan() {
        return fail(format!("Invalid date: {}", lossy(&to_str(init)?)));
    }
    Ok(OVal::date(ms))
}

/// `Date.parse(text)`: a date, possibly invalid.
pub(super) fn parse(text: &OVal) -> Res<OVal> {
    Ok(OVal::date(time_of(text)?))
}

/// `Date.tryParse(value)`: null for an invalid date.
pub(super) fn try_parse(value: &OVal) -> Res<OVal> {
    let ms = match value {
        OVal::Str(_) | OVal::Num(_) => time_of(value)?,
        OVal::Date(ms) => **ms,
        OVal::Undef | OVal::Null | OVal::Bool(_) => return Ok(OVal::Null),
        other => time_of(other)?,
    };
    Ok(if ms.is_nan() {
        OVal::Null
    } else {
        OVal::date(ms)
    })
}

/// A member of a date.
pub(super) fn member(ms: f64, name: &str) -> Res<Option<OVal>> {
    let f = date::fields(ms);
    Ok(Some(OVal::Num(match name {
        "value" => {
            let text = iso(ms).ok_or_else(|| Fail::new("Invalid Date"))?;
            return Ok(Some(OVal::str(&text)));
        }
        "timestamp" => date::time_clip(ms),
        "year" => f.year,
        "month" => f.month,
        "day" => f.day,
        "hours" => f.hours,
        "minutes" => f.minutes,
        "seconds" => f.seconds,
        "dayOfWeek" => f.weekday,
        _ => return Ok(None),
    })))
}

fn other_time(value: Option<&OVal>) -> Res<f64> {
    match value {
        None | Some(OVal::Undef) => Ok(f64::NAN),
        Some(OVal::Null) => fail("null is not an object (evaluating 'other.timestamp')"),
        // An object with a time stamp counts as a date.
        Some(OVal::Obj(obj)) if obj.member(&js("timestamp")).truthy() => {
            to_num(&obj.member(&js("timestamp")))
        }
        Some(value) => time_of(value),
    }
}

/// `now + more` as a number, with the language's `+`.
fn plus(now: f64, more: &OVal) -> Res<f64> {
    let mut price = |units: usize| pay(WRITTEN, Sizes::default().out_units(units));
    let sum = super::coerce::binary("+", &OVal::Num(now), more, false, &mut price)?;
    to_num(&sum.unwrap_or(OVal::Undef))
}

/// Calls the setter of each given part, from years to milliseconds.
fn add(start: f64, parts: Option<&OVal>) -> Res<f64> {
    let part = |name: &str| -> Res<OVal> {
        let found = match parts {
            Some(OVal::Obj(obj)) => obj.get(&js(name)),
            Some(OVal::Date(other)) => member(**other, name)?,
            Some(OVal::Null) => return fail("null is not an object"),
            _ => None,
        };
        Ok(found.filter(OVal::truthy).unwrap_or(OVal::Undef))
    };
    let names = [
        "years", "months", "days", "hours", "minutes", "seconds", "ms",
    ];
    let mut t = start;
    for (i, name) in names.into_iter().enumerate() {
        let amount = part(name)?;
        if amount.is_undef() {
            continue;
        }
        let f = date::fields(t);
        let mut now = [
            f.year,
            f.month - 1.0,
            f.day,
            f.hours,
            f.minutes,
            f.seconds,
            f.ms,
        ];
        now[i] = plus(now[i], &amount)?;
        t = date::from_fields(now[0], now[1], now[2], now[3], now[4], now[5], now[6]);
    }
    Ok(t)
}

fn format(ms: f64, form: Option<&OVal>) -> Res<OVal> {
    let form = match form {
        None | Some(OVal::Undef) => js("ISO"),
        Some(OVal::Str(form)) => form.clone(),
        Some(OVal::Null) => return fail("Cannot call method 'replace' on null"),
        Some(_) => return fail("'replace' is not a function"),
    };
    let form = lossy(&form);
    let text = || iso(ms).ok_or_else(|| Fail::new("Invalid Date"));
    let f = date::fields(ms);
    Ok(OVal::str(&match form.as_str() {
        "ISO" => text()?,
        "date" => text()?.split('T').next().unwrap_or_default().to_owned(),
        "time" => {
            let text = text()?;
            let time = text.split('T').nth(1).unwrap_or_default();
            time.split('.').next().unwrap_or_default().to_owned()
        }
        _ => {
            let two = |n: f64| format!("{n:02}");
            form.replacen("YYYY", &f.year.to_string(), 1)
                .replacen("MM", &two(f.month), 1)
                .replacen("DD", &two(f.day), 1)
                .replacen("HH", &two(f.hours), 1)
                .replacen("mm", &two(f.minutes), 1)
                .replacen("ss", &two(f.seconds), 1)
        }
    }))
}

/// Names of date methods, implemented below.
pub(super) const METHODS: &str = "\
    add diff format isBefore isAfter toString toJSON getTime getFullYear getMonth getDate getDay \
    getHours getMinutes getSeconds getMilliseconds toISOString toLocaleString toLocaleDateString \
    toLocaleTimeString toUTCString toDateString";

/// A method of a date; `None` if it does not exist.
pub(super) fn method(ms: f64, name: &str, args: &[OVal]) -> Res<Option<OVal>> {
    Ok(Some(match name {
        "add" => OVal::date(add(ms, args.first())?),
        "diff" => {
            let difference = ms - other_time(args.first())?;
            let unit = match args.get(1) {
                Some(OVal::Str(unit)) => unit.clone(),
                _ => js("ms"),
            };
            OVal::Num(match lossy(&unit).as_str() {
                "seconds" => difference / 1e3,
                "minutes" => difference / 6e4,
                "hours" => difference / 36e5,
                "days" => difference / 864e5,
                _ => difference,
            })
        }
        "format" => format(ms, args.first())?,
        "isBefore" => OVal::Bool(ms < other_time(args.first())?),
        "isAfter" => OVal::Bool(ms > other_time(args.first())?),
        "getTime" => OVal::Num(ms),
        "getFullYear" => OVal::Num(date::fields(ms).year),
        "getMonth" => OVal::Num(date::fields(ms).month - 1.0),
        "getDate" => OVal::Num(date::fields(ms).day),
        "getDay" => OVal::Num(date::fields(ms).weekday),
        "getHours" => OVal::Num(date::fields(ms).hours),
        "getMinutes" => OVal::Num(date::fields(ms).minutes),
        "getSeconds" => OVal::Num(date::fields(ms).seconds),
        "getMilliseconds" => OVal::Num(date::fields(ms).ms),
        "toString" | "toJSON" | "toISOString" => {
            OVal::str(&iso(ms).ok_or_else(|| Fail::new("Invalid Date"))?)
        }
        "toLocaleString" => super::web::date_text(ms, args, Defaults::All)?,
        "toLocaleDateString" => super::web::date_text(ms, args, Defaults::Date)?,
        "toLocaleTimeString" => super::web::date_text(ms, args, Defaults::Time)?,
        "toUTCString" => OVal::str(&to_utc_string(ms).unwrap_or("Invalid Date".to_owned())),
        "toDateString" => OVal::str(&to_date_string(ms).unwrap_or("Invalid Date".to_owned())),
        _ => return Ok(None),
    }))
}
