//! Builtins: the closed sets of functions, namespaces, constants and methods that
//! expressions call (language sections 3.5 and 3.6).
//!
//! Nothing outside these tables can be called by an expression. A row says all
//! there is to say of a function or method but its code, which `vm` has: what it
//! gives, what it costs, where it may be called. The compiler's list for condition
//! texts, `docs/builtins.md` and `docs/costs.md` follow from the rows.
//!
//! ```
//! use a99_core::builtins::{METHODS, Receiver, method};
//!
//! let trim = METHODS[usize::from(method("trim").unwrap())];
//! assert_eq!(trim.on, [Receiver::Text]);
//! assert_eq!(trim.docs, "The text without white space at its ends.");
//! ```

use std::f64::consts;

mod functions;
mod gives;
mod methods;

pub use functions::{BuiltinFunction, FUNCTIONS};
pub use gives::{
    Gives, Takes, function_gives, gives, gives_new_list, may_give_undefined, method_row, mutates,
    mutates_lists, only_computes, only_reads_lists, resizes_lists, searches_lists,
};
pub use methods::{METHODS, Method};

/// Where a builtin may be called. A `mathCalc` text calls nothing (language
/// section 3.10), so that no row names it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CallContext {
    /// In expression nodes.
    Expression,
    /// In condition texts.
    Condition,
}

/// Most builtins may be called in both.
const EVERYWHERE: &[CallContext] = &[CallContext::Expression, CallContext::Condition];
/// Those that the references' grammar of conditions lacks.
const NOT_IN_CONDITIONS: &[CallContext] = &[CallContext::Expression];

/// A kind of value that has methods.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Texts.
    Text,
    /// Numbers.
    Number,
    /// Arrays.
    Array,
    /// Sets.
    Set,
    /// Dates.
    Date,
    /// Every value but null and undefined; a kind that is named beside it does
    /// it in its own way.
    Any,
}

impl Receiver {
    /// Every kind, in the order of the tables.
    pub const ALL: &[Receiver] = &[
        Receiver::Text,
        Receiver::Number,
        Receiver::Array,
        Receiver::Set,
        Receiver::Date,
        Receiver::Any,
    ];

    /// The kind in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Receiver::Text => "text",
            Receiver::Number => "number",
            Receiver::Array => "array",
            Receiver::Set => "set",
            Receiver::Date => "date",
            Receiver::Any => "any value",
        }
    }
}

/// The namespaces. `Date` and `Set` are functions, `Date` has statics too.
pub const NAMESPACES: &[&str] = &[
    "Math", "JSON", "console", "Array", "Object", "String", "Number", "Date", "Schema",
];

/// What an operation with a price for reading reads. Its width is that of
/// the values as they are given: the units of a text, the elements of an array
/// or set, the keys of an object, nothing of anything else.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The width of the first argument.
    First,
    /// The widths of the receiver, if there is one, and of all arguments.
    All,
    /// One element for each argument.
    Count,
    /// All arguments with everything in them: the widths of the values at
    /// every depth, a shared part once for each way to it.
    Deep,
}

impl Reads {
    /// The word for it in `docs/builtins.md`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reads::First => "first",
            Reads::All => "all",
            Reads::Count => "count",
            Reads::Deep => "deep",
        }
    }
}

/// The number of a function in [`FUNCTIONS`].
pub fn function(ns: &str, name: &str) -> Option<u16> {
    FUNCTIONS
        .iter()
        .position(|f| f.name == name && f.ns == ns)
        .map(|i| i as u16)
}

/// The number of a method in [`METHODS`].
pub fn method(name: &str) -> Option<u16> {
    METHODS
        .iter()
        .position(|m| m.name == name)
        .map(|i| i as u16)
}

/// First number of a name that is no row of [`METHODS`]: a function that only
/// namespaces have, such as the `max` of `Math.max(1, 2)`.
pub const STATIC_METHODS: u16 = 0x4000;

/// The names of namespace functions, each once, in the order of [`FUNCTIONS`];
/// [`STATIC_METHODS`] plus the place here is the number of such a name.
pub fn static_names() -> &'static [&'static str] {
    static NAMES: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
        let mut names = Vec::new();
        for f in FUNCTIONS.iter().filter(|f| !f.ns.is_empty()) {
            if !names.contains(&f.name) {
                names.push(f.name);
            }
        }
        names
    });
    &NAMES
}

/// The number by which bytecode calls a method: a row of [`METHODS`], or
/// [`STATIC_METHODS`] and up for names that only namespaces have. `None` for a
/// name that nothing has.
pub fn method_id(name: &str) -> Option<u16> {
    method(name).or_else(|| {
        let at = static_names().iter().position(|n| *n == name)?;
        Some(STATIC_METHODS + at as u16)
    })
}

/// The name behind a number of [`method_id`]; empty for a number it never gave.
pub fn method_name(id: u16) -> &'static str {
    match id.checked_sub(STATIC_METHODS) {
        None => METHODS.get(usize::from(id)).map_or("", |m| m.name),
        Some(at) => static_names().get(usize::from(at)).copied().unwrap_or(""),
    }
}

/// Whether any namespace has a function of this name, so that it can be
/// called as a method of that namespace.
pub fn is_static_member(name: &str) -> bool {
    FUNCTIONS.iter().any(|f| f.name == name && !f.ns.is_empty())
}

/// Whether a function of this name may be called by name in a place.
#[must_use]
pub fn is_function_in(name: &str, place: CallContext) -> bool {
    function("", name).is_some_and(|at| FUNCTIONS[usize::from(at)].places.contains(&place))
}

/// Whether a method of this name, or a function of a namespace that is called as
/// one, may be called in a place.
#[must_use]
pub fn is_method_in(name: &str, place: CallContext) -> bool {
    let here = |places: &[CallContext]| places.contains(&place);
    METHODS.iter().any(|m| m.name == name && here(m.places))
        || (FUNCTIONS.iter()).any(|f| f.name == name && !f.ns.is_empty() && here(f.places))
}

/// What an identifier means when no variable and no argument has its name.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Global {
    /// A constant.
    Constant(Constant),
    /// A namespace, by its number in [`NAMESPACES`]; `Date` is also callable.
    Namespace(u8),
    /// A global function, by its number in [`FUNCTIONS`].
    Function(u16),
    /// A name that is refused with this text.
    Refused(&'static str),
}

/// The constants among the globals.
#[derive(Copy, Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the values")]
pub enum Constant {
    Undefined,
    Null,
    Number(f64),
}

/// Looks an identifier up among the builtins (language section 3.2).
pub fn global(name: &str) -> Option<Global> {
    match name {
        "undefined" => return Some(Global::Constant(Constant::Undefined)),
        "null" => return Some(Global::Constant(Constant::Null)),
        "NaN" => return Some(Global::Constant(Constant::Number(f64::NAN))),
        "Infinity" => return Some(Global::Constant(Constant::Number(f64::INFINITY))),
        _ => {}
    }
    if let Some(ns) = NAMESPACES.iter().position(|n| *n == name) {
        return Some(Global::Namespace(ns as u8));
    }
    if let Some(f) = function("", name) {
        return Some(Global::Function(f));
    }
    refused(name).map(Global::Refused)
}

/// The names that exist elsewhere and not here, with the text they are
/// refused with (language section 3.2).
pub fn refused(name: &str) -> Option<&'static str> {
    Some(match name {
        "RegExp" => "RegExp is not available. Use string methods or the regexMatch atom.",
        "Promise" => "Promise is not needed. All operations are implicitly async.",
        "Map" => "Map is not available. Use plain objects instead.",
        "WeakSet" => "WeakSet is not available.",
        "WeakMap" => "WeakMap is not available.",
        "Symbol" => "Symbol is not available.",
        "Proxy" => "Proxy is not available.",
        "Reflect" => "Reflect is not available.",
        "Function" => "Function constructor is not available. Define functions normally.",
        "eval" => "eval is not available. Code is compiled, not evaluated.",
        "setTimeout" => "setTimeout is not available. Use the delay atom.",
        "setInterval" => "setInterval is not available. Use while loops with delay.",
        "fetch" => "fetch is not available. Use the httpFetch atom.",
        "require" => "require is not available. Atoms must be registered with the VM.",
        "import" => "import is not available. Atoms must be registered with the VM.",
        "process" => "process is not available. AsyncJS runs in a sandboxed environment.",
        "window" => "window is not available. AsyncJS runs in a sandboxed environment.",
        "document" => "document is not available. AsyncJS runs in a sandboxed environment.",
        "global" => "global is not available. AsyncJS runs in a sandboxed environment.",
        "globalThis" => "globalThis is not available. Use builtins directly.",
        _ => return None,
    })
}

/// The number constants of the namespaces: namespace, name, value.
pub static CONSTANTS: &[(&str, &str, f64)] = &[
    ("Math", "PI", consts::PI),
    ("Math", "E", consts::E),
    ("Math", "LN2", consts::LN_2),
    ("Math", "LN10", consts::LN_10),
    ("Math", "LOG2E", consts::LOG2_E),
    ("Math", "LOG10E", consts::LOG10_E),
    ("Math", "SQRT2", consts::SQRT_2),
    ("Math", "SQRT1_2", consts::FRAC_1_SQRT_2),
    ("Number", "MAX_VALUE", f64::MAX),
    ("Number", "MIN_VALUE", 5e-324),
    ("Number", "MAX_SAFE_INTEGER", 9_007_199_254_740_991.0),
    ("Number", "MIN_SAFE_INTEGER", -9_007_199_254_740_991.0),
    ("Number", "POSITIVE_INFINITY", f64::INFINITY),
    ("Number", "NEGATIVE_INFINITY", f64::NEG_INFINITY),
    ("Number", "NaN", f64::NAN),
    ("Number", "EPSILON", f64::EPSILON),
];

/// The members that values have beside elements and those of their own: kind of
/// value, name, what it is.
#[rustfmt::skip]
pub static MEMBERS: &[(Receiver, &str, &str)] = &[
    (Receiver::Text, "length", "The number of its UTF-16 units."),
    (Receiver::Array, "length", "The number of its elements."),
    (Receiver::Set, "size", "The number of its members."),
    (Receiver::Date, "value", "The date as ISO 8601 text."),
    (Receiver::Date, "timestamp", "Milliseconds since 1970."),
    (Receiver::Date, "year", "The year."),
    (Receiver::Date, "month", "The month, from 1."),
    (Receiver::Date, "day", "The day of the month, from 1."),
    (Receiver::Date, "hours", "The hour of the day."),
    (Receiver::Date, "minutes", "The minute of the hour."),
    (Receiver::Date, "seconds", "The second of the minute."),
    (Receiver::Date, "dayOfWeek", "The day of the week, 0 for Sunday."),
];

/// A number constant of a namespace.
pub fn constant(ns: &str, name: &str) -> Option<f64> {
    let row = CONSTANTS.iter().find(|row| row.1 == name && row.0 == ns)?;
    Some(row.2)
}

/// The error text of a namespace member that does not exist (language section 3.6).
pub fn unknown_member(ns: &str, name: &str) -> String {
    let hint = match (ns, name) {
        ("console", "table") => "Use console.log with JSON.stringify for structured data.",
        ("console", "dir") => "Use console.log instead.",
        ("console", "trace") => "Stack traces are not available in AsyncJS.",
        ("Array" | "Object", "prototype") | ("Object", "getPrototypeOf") => {
            "Prototype access is not allowed."
        }
        ("Object", "create") => "Use object literals instead.",
        ("Object", "defineProperty") => "Property descriptors are not supported.",
        ("Object", "setPrototypeOf") => "Prototype modification is not allowed.",
        _ => {
            return format!(
                "{ns}.{name} is not supported in AsyncJS. Check docs for available {ns} methods."
            );
        }
    };
    format!("{ns}.{name} is not available. {hint}")
}

/// The names that no program may bind, read or call (D16).
pub fn is_forbidden(name: &[u8]) -> bool {
    matches!(name, b"__proto__" | b"constructor" | b"prototype")
}

/// The text of the error for a forbidden name (D16).
pub fn forbidden_text(name: &str) -> String {
    format!("Security Error: Access to '{name}' is forbidden")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_numbers_and_names_agree() {
        for m in METHODS {
            assert_eq!(method_id(m.name).map(method_name), Some(m.name));
            assert!(method_id(m.name) < Some(STATIC_METHODS));
        }
        for f in FUNCTIONS.iter().filter(|f| !f.ns.is_empty()) {
            assert_eq!(method_id(f.name).map(method_name), Some(f.name));
        }
        assert!(method_id("max") >= Some(STATIC_METHODS));
        assert_eq!(method_id("shout"), None);
        assert_eq!(method_name(u16::MAX), "");
    }
}
