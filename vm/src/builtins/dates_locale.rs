//! Dates as text for people, in the one locale en-US (D114).

use super::{arg, charge_text};
use crate::coerce::{to_number, to_str, truthy};
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::DATE_TEXT;
use a99_ecma::date;
use a99_ecma::date::locale::{
    DateOptions, Defaults, OPTIONS, REFUSED, to_date_string, to_utc_string,
};

type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;
type Method = fn(&mut Cx<'_>, Ref, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, Code)] = &[("Date", "toLocale", format)];

/// Code of each method.
pub(super) const METHODS: &[(&str, Method)] = &[
    ("toLocaleString", |cx, r, args| {
        shown(cx, r, args, Defaults::All)
    }),
    ("toLocaleDateString", |cx, r, args| {
        shown(cx, r, args, Defaults::Date)
    }),
    ("toLocaleTimeString", |cx, r, args| {
        shown(cx, r, args, Defaults::Time)
    }),
    ("toUTCString", |cx, r, _| {
        let text = to_utc_string(cx.heap.date_ms(r));
        paid(cx, text)
    }),
    ("toDateString", |cx, r, _| {
        let text = to_date_string(cx.heap.date_ms(r));
        paid(cx, text)
    }),
];

/// Maximum bytes of an option to read.
const WORD: usize = 64;

/// The options at an argument, if it is an object.
pub(super) fn options(
    cx: &mut Cx<'_>,
    given: Val,
    defaults: Defaults,
) -> Result<DateOptions, Fault> {
    cx.pay_metered(DATE_TEXT)?;
    let given = match given {
        Val::Obj(given) => Some(given),
        Val::Null => {
            return Err(Fault::throw("Cannot convert undefined or null to object"));
        }
        _ => None,
    };
    let member = |cx: &Cx<'_>, name: &str| {
        let value = cx.heap.get_text(given?, name.as_bytes());
        value.filter(|value| !value.is_undefined())
    };
    if let Some(name) = REFUSED.iter().find(|name| member(cx, name).is_some()) {
        return Err(Fault::throw(format!("the option {name} is not supported")));
    }
    let mut words: [Option<String>; OPTIONS.len()] = Default::default();
    for (word, name) in words.iter_mut().zip(OPTIONS) {
        let Some(value) = member(cx, name) else {
            continue;
        };
        *word = Some(match name {
            "hour12" => truthy(cx.heap, value).to_string(),
            _ => {
                let text = to_str(cx, value)?;
                let bytes = cx.bytes(text);
                String::from_utf8_lossy(&bytes[..bytes.len().min(WORD)]).into_owned()
            }
        });
    }
    let get = |name: &str| {
        let at = OPTIONS.iter().position(|known| *known == name)?;
        words[at].clone()
    };
    DateOptions::new(defaults, get).map_err(Fault::throw)
}

/// The text of a time value, before it is paid for.
pub(super) fn text_of(ms: f64, options: &DateOptions) -> String {
    let text = options.text(ms);
    text.unwrap_or_else(|| "Invalid Date".to_owned())
}

fn shown(cx: &mut Cx<'_>, r: Ref, args: &[Val], defaults: Defaults) -> Result<Val, Fault> {
    let options = options(cx, arg(args, 1), defaults)?;
    let text = text_of(cx.heap.date_ms(r), &options);
    paid(cx, Some(text))
}

/// `Date.toLocale(date, locale, options)`: `format` of `Intl.DateTimeFormat`.
fn format(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let options = options(cx, arg(args, 2), Defaults::Format)?;
    let ms = match arg(args, 0) {
        Val::Date(r) => cx.heap.date_ms(r),
        value if value.is_undefined() => date::time_clip(cx.now_ms()),
        value => date::time_clip(to_number(cx, value)?),
    };
    match options.text(ms) {
        None => Err(Fault::throw("Invalid time value")),
        text => paid(cx, text),
    }
}

/// Returns a text, all ASCII, after paying for it.
fn paid(cx: &mut Cx<'_>, text: Option<String>) -> Result<Val, Fault> {
    let text = text.unwrap_or_else(|| "Invalid Date".to_owned());
    charge_text(cx, text.len())?;
    cx.str(text.as_bytes())
}
