//! Builtins: the closed sets of functions, namespaces, constants and methods that expressions call
//! (language sections 3.5 and 3.6).
//!
//! An expression can call nothing outside these tables. A row holds every fact about a function or
//! method except its code, which is in `vm`: result, price, and where it may be called. The
//! compiler's list for condition texts, `docs/builtins.md` and `docs/costs.md` derive from the
//! rows.
//!
//! ```
//! use a99_core::builtins::{METHODS, Receiver, method};
//!
//! let trim = METHODS[usize::from(method("trim").unwrap())];
//! assert_eq!(trim.on, [Receiver::Text]);
//! assert_eq!(trim.docs, "The text without white space at its ends.");
//! ```

use hashbrown::HashMap;
use std::f64::consts;
use std::sync::LazyLock;

mod functions;
mod gives;
mod methods;

pub use functions::{BuiltinFunction, FUNCTIONS};
pub use gives::{
    Gives, Takes, function_gives, gives, gives_new_list, may_give_undefined, method_row, mutates,
    mutates_lists, only_computes, only_reads_lists, resizes_lists, searches_lists,
};
pub use methods::{METHODS, Method};

/// The places that call builtins. A `mathCalc` text calls nothing (language section 3.10), so no
/// row names it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CallContext {
    /// In expression nodes.
    Expression,
    /// In condition texts.
    Condition,
}

/// Most builtins may be called in both places.
const EVERYWHERE: &[CallContext] = &[CallContext::Expression, CallContext::Condition];
/// For builtins that the references' grammar of conditions lacks.
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
    /// Maps.
    Map,
    /// Every value except null and undefined. A kind listed next to it has its own behaviour.
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
        Receiver::Map,
        Receiver::Any,
    ];

    /// The kind as one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Receiver::Text => "text",
            Receiver::Number => "number",
            Receiver::Array => "array",
            Receiver::Set => "set",
            Receiver::Date => "date",
            Receiver::Map => "map",
            Receiver::Any => "any value",
        }
    }
}

/// The namespaces. `Date` and `Set` are functions; `Date` also has static functions.
pub const NAMESPACES: &[&str] = &[
    "Math", "JSON", "console", "Array", "Object", "String", "Number", "Date", "Schema",
];

/// The operands that an operation pays to read. Their width is shallow: the UTF-16 units of a text,
/// the elements of an array or set, the keys of an object, and 0 for other values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The width of the first argument.
    First,
    /// The widths of the receiver, if there is one, and of all arguments.
    All,
    /// One element for each argument.
    Count,
    /// All arguments, deeply: the widths of the values at every depth. A shared part counts once
    /// for each path to it.
    Deep,
}

impl Reads {
    /// The name in `docs/builtins.md`.
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

/// Number of a function in [`FUNCTIONS`].
pub fn function(ns: &str, name: &str) -> Option<u16> {
    static NUMBERS: LazyLock<HashMap<(&str, &str), u16>> = LazyLock::new(|| {
        let rows = FUNCTIONS.iter().zip(0..);
        rows.map(|(row, number)| ((row.ns, row.name), number))
            .collect()
    });
    // The static map, for keys that live shorter.
    let numbers: &HashMap<(&str, &str), u16> = &NUMBERS;
    numbers.get(&(ns, name)).copied()
}

/// Number of a method in [`METHODS`].
pub fn method(name: &str) -> Option<u16> {
    static NUMBERS: LazyLock<HashMap<&str, u16>> = LazyLock::new(|| {
        let rows = METHODS.iter().zip(0..);
        rows.map(|(row, number)| (row.name, number)).collect()
    });
    NUMBERS.get(name).copied()
}

/// First number of a method name without a row in [`METHODS`]: a function that only namespaces
/// have, such as `max` of `Math.max(1, 2)`.
pub const STATIC_METHODS: u16 = 0x4000;

/// Distinct names of namespace functions, in the order of [`FUNCTIONS`]. The number of a name is
/// [`STATIC_METHODS`] plus its index here.
pub fn static_names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
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

/// The number by which bytecode calls a method: a row of [`METHODS`], or at least
/// [`STATIC_METHODS`] for names that only namespaces have. `None` for an unknown name.
pub fn method_id(name: &str) -> Option<u16> {
    method(name).or_else(|| {
        let at = static_names().iter().position(|n| *n == name)?;
        Some(STATIC_METHODS + at as u16)
    })
}

/// The name behind a number of [`method_id`]; empty for an unknown number.
pub fn method_name(id: u16) -> &'static str {
    match id.checked_sub(STATIC_METHODS) {
        None => METHODS.get(usize::from(id)).map_or("", |m| m.name),
        Some(at) => static_names().get(usize::from(at)).copied().unwrap_or(""),
    }
}

/// True if a namespace has a function of this name, which can be called as its method.
pub fn is_static_member(name: &str) -> bool {
    FUNCTIONS.iter().any(|f| f.name == name && !f.ns.is_empty())
}

/// True if a global function of this name may be called in a place.
#[must_use]
pub fn is_function_in(name: &str, place: CallContext) -> bool {
    function("", name).is_some_and(|at| FUNCTIONS[usize::from(at)].places.contains(&place))
}

/// True if a method of this name, or a namespace function called as one, may be called in a place.
#[must_use]
pub fn is_method_in(name: &str, place: CallContext) -> bool {
    let here = |places: &[CallContext]| places.contains(&place);
    METHODS.iter().any(|m| m.name == name && here(m.places))
        || (FUNCTIONS.iter()).any(|f| f.name == name && !f.ns.is_empty() && here(f.places))
}

/// Meaning of an identifier that names no variable and no argument.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Global {
    /// A constant.
    Constant(Constant),
    /// A namespace, by its number in [`NAMESPACES`]; `Date` is also callable.
    Namespace(u8),
    /// A global function, by its number in [`FUNCTIONS`].
    Function(u16),
    /// A refused name, with its error text.
    Refused(&'static str),
}

/// The global constants.
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

/// Error text of a name that JavaScript has and this language refuses (language section 3.2).
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

/// Number constants of the namespaces: namespace, name, value.
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

/// Members that values have in addition to elements and own members: kind of value, name,
/// description.
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
    (Receiver::Map, "size", "The number of its entries."),
];

/// Value of a number constant of a namespace.
pub fn constant(ns: &str, name: &str) -> Option<f64> {
    let row = CONSTANTS.iter().find(|row| row.1 == name && row.0 == ns)?;
    Some(row.2)
}

/// Error text for an unknown namespace member (language section 3.6).
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

/// True if no program may bind, read or call the name (D16).
pub fn is_forbidden(name: &[u8]) -> bool {
    matches!(name, b"__proto__" | b"constructor" | b"prototype")
}

/// Error text for a forbidden name (D16).
pub fn forbidden_text(name: &str) -> String {
    format!("Security Error: Access to '{name}' is forbidden")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_found_at_its_number() {
        for (f, number) in FUNCTIONS.iter().zip(0..) {
            assert_eq!(function(f.ns, f.name), Some(number), "{}", f.full_name());
        }
        for (m, number) in METHODS.iter().zip(0..) {
            assert_eq!(method(m.name), Some(number), "{}", m.name);
        }
        assert_eq!((function("Math", "trim"), method("max")), (None, None));
    }

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
