//! The closed sets of builtin functions, namespaces, constants and methods
//! (language sections 3.5 and 3.6).
//!
//! Nothing outside these tables can be called by an expression. Their order
//! numbers the functions and methods in bytecode; `vm` gives each row its
//! code, [`Formula`] its proportional price.

use crate::costs::{
    BOTH, FREE, Formula, JOIN, NUMERAL, PARSE, READ, SPLIT, STRINGIFY, WRITTEN, both, read,
};

/// A builtin function: `ns.name`, or a global when `ns` is empty.
#[derive(Copy, Clone, Debug)]
pub struct Function {
    /// Namespace, or empty.
    pub ns: &'static str,
    /// Name within it.
    pub name: &'static str,
    /// Proportional price in the metered model.
    pub cost: Formula,
}

/// A method name; which receivers have it is the VM's table.
#[derive(Copy, Clone, Debug)]
pub struct Method {
    /// The name.
    pub name: &'static str,
    /// Proportional price in the metered model.
    pub cost: Formula,
}

/// The namespaces. `Date` and `Set` are functions, `Date` has statics too.
pub const NAMESPACES: [&str; 9] = [
    "Math", "JSON", "console", "Array", "Object", "String", "Number", "Date", "Schema",
];

const fn f(ns: &'static str, name: &'static str, cost: Formula) -> Function {
    Function { ns, name, cost }
}

const fn m(name: &'static str, cost: Formula) -> Method {
    Method { name, cost }
}

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

impl Function {
    /// What the function reads.
    pub fn reads(&self) -> Reads {
        match (self.ns, self.name) {
            ("Math", _) => Reads::Count,
            ("Object", "assign") | ("JSON", "stringify") => Reads::All,
            ("Schema", _) | ("", "filter") => Reads::Deep,
            _ => Reads::First,
        }
    }
}

impl Method {
    /// What the method reads; `push` does not look at the array.
    pub fn reads(&self) -> Reads {
        match self.name {
            "push" => Reads::Count,
            _ => Reads::All,
        }
    }
}

/// Every builtin function.
#[rustfmt::skip]
pub static FUNCTIONS: [Function; 93] = [
    f("Math", "abs", FREE),
    f("Math", "ceil", FREE),
    f("Math", "floor", FREE),
    f("Math", "round", FREE),
    f("Math", "trunc", FREE),
    f("Math", "sign", FREE),
    f("Math", "sqrt", FREE),
    f("Math", "cbrt", FREE),
    f("Math", "pow", FREE),
    f("Math", "exp", FREE),
    f("Math", "expm1", FREE),
    f("Math", "log", FREE),
    f("Math", "log2", FREE),
    f("Math", "log10", FREE),
    f("Math", "log1p", FREE),
    f("Math", "sin", FREE),
    f("Math", "cos", FREE),
    f("Math", "tan", FREE),
    f("Math", "asin", FREE),
    f("Math", "acos", FREE),
    f("Math", "atan", FREE),
    f("Math", "atan2", FREE),
    f("Math", "sinh", FREE),
    f("Math", "cosh", FREE),
    f("Math", "tanh", FREE),
    f("Math", "asinh", FREE),
    f("Math", "acosh", FREE),
    f("Math", "atanh", FREE),
    f("Math", "hypot", READ),
    f("Math", "min", READ),
    f("Math", "max", READ),
    f("Math", "clz32", FREE),
    f("Math", "imul", FREE),
    f("Math", "fround", FREE),
    f("Math", "random", FREE),
    f("JSON", "parse", PARSE),
    f("JSON", "stringify", STRINGIFY),
    f("console", "log", FREE),
    f("console", "warn", FREE),
    f("console", "error", FREE),
    f("console", "info", FREE),
    f("Array", "isArray", FREE),
    f("Array", "from", Formula::Keys(24)),
    f("Array", "of", FREE),
    f("Object", "keys", Formula::Keys(6)),
    f("Object", "values", Formula::Keys(4)),
    f("Object", "entries", Formula::Keys(16)),
    f("Object", "fromEntries", Formula::Keys(24)),
    f("Object", "assign", Formula::Keys(32)),
    f("Object", "hasOwn", FREE),
    f("String", "fromCharCode", FREE),
    f("String", "fromCodePoint", FREE),
    f("Number", "isNaN", FREE),
    f("Number", "isFinite", FREE),
    f("Number", "isInteger", FREE),
    f("Number", "isSafeInteger", FREE),
    f("Number", "parseFloat", NUMERAL),
    f("Number", "parseInt", NUMERAL),
    f("Date", "now", FREE),
    f("Date", "parse", read(3)),
    f("Schema", "object", read(96)),
    f("Schema", "array", read(96)),
    f("Schema", "record", read(96)),
    f("Schema", "union", read(96)),
    f("Schema", "enum", read(16)),
    f("Schema", "const", read(16)),
    f("Schema", "tuple", read(96)),
    f("Schema", "infer", read(96)),
    f("Schema", "pattern", read(12)),
    f("Schema", "email", FREE),
    f("Schema", "uuid", FREE),
    f("Schema", "ipv4", FREE),
    f("Schema", "url", FREE),
    f("Schema", "datetime", FREE),
    f("Schema", "emoji", FREE),
    f("Schema", "any", FREE),
    f("Schema", "null", FREE),
    f("Schema", "undefined", FREE),
    f("Schema", "response", read(96)),
    f("Schema", "fromExample", read(96)),
    f("Schema", "isValid", read(2)),
    f("", "parseInt", NUMERAL),
    f("", "parseFloat", NUMERAL),
    f("", "isNaN", FREE),
    f("", "isFinite", FREE),
    f("", "encodeURI", both(4)),
    f("", "decodeURI", BOTH),
    f("", "encodeURIComponent", both(4)),
    f("", "decodeURIComponent", BOTH),
    f("", "filter", BOTH),
    f("", "Set", Formula::Keys(10)),
    f("", "Date", read(3)),
    f("", "Error", READ),
];

/// Every method name.
#[rustfmt::skip]
pub static METHODS: [Method; 99] = [
    m("at", FREE),
    m("charAt", FREE),
    m("charCodeAt", FREE),
    m("codePointAt", FREE),
    m("concat", BOTH),
    m("endsWith", READ),
    m("includes", READ),
    m("indexOf", READ),
    m("lastIndexOf", READ),
    m("localeCompare", READ),
    m("match", both(2)),
    m("matchAll", Formula::Keys(12)),
    m("normalize", BOTH),
    m("padEnd", WRITTEN),
    m("padStart", WRITTEN),
    m("repeat", WRITTEN),
    m("replace", both(2)),
    m("replaceAll", both(8)),
    m("search", READ),
    m("slice", WRITTEN),
    m("split", SPLIT),
    m("startsWith", READ),
    m("substr", WRITTEN),
    m("substring", WRITTEN),
    m("toLowerCase", both(2)),
    m("toUpperCase", both(2)),
    m("toLocaleLowerCase", both(2)),
    m("toLocaleUpperCase", both(2)),
    m("toString", BOTH),
    m("trim", read(2)),
    m("trimStart", read(2)),
    m("trimEnd", read(2)),
    m("trimLeft", read(2)),
    m("trimRight", read(2)),
    m("valueOf", FREE),
    m("isWellFormed", READ),
    m("toWellFormed", BOTH),
    m("anchor", BOTH),
    m("big", BOTH),
    m("blink", BOTH),
    m("bold", BOTH),
    m("fixed", BOTH),
    m("fontcolor", BOTH),
    m("fontsize", BOTH),
    m("italics", BOTH),
    m("link", BOTH),
    m("small", BOTH),
    m("strike", BOTH),
    m("sub", BOTH),
    m("sup", BOTH),
    m("copyWithin", READ),
    m("entries", both(6)),
    m("every", read(36)),
    m("fill", READ),
    m("filter", both(36)),
    m("find", read(36)),
    m("findIndex", read(36)),
    m("findLast", read(36)),
    m("findLastIndex", read(36)),
    m("flat", both(3)),
    m("flatMap", both(36)),
    m("forEach", read(36)),
    m("join", JOIN),
    m("keys", WRITTEN),
    m("map", both(36)),
    m("pop", FREE),
    m("push", READ),
    m("reduce", read(36)),
    m("reduceRight", read(36)),
    m("reverse", READ),
    m("shift", READ),
    m("some", read(36)),
    m("sort", Formula::Sort),
    m("splice", BOTH),
    m("toReversed", BOTH),
    m("toSorted", Formula::Sort),
    m("toSpliced", BOTH),
    m("unshift", both(2)),
    m("values", WRITTEN),
    m("with", BOTH),
    m("toLocaleString", both(20)),
    m("toFixed", FREE),
    m("toExponential", FREE),
    m("toPrecision", FREE),
    m("add", READ),
    m("remove", READ),
    m("clear", FREE),
    m("has", READ),
    m("toArray", BOTH),
    m("union", both(16)),
    m("intersection", both(16)),
    m("diff", both(16)),
    m("format", BOTH),
    m("isBefore", read(3)),
    m("isAfter", read(3)),
    m("toJSON", BOTH),
    m("hasOwnProperty", FREE),
    m("isPrototypeOf", FREE),
    m("propertyIsEnumerable", FREE),
];

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

/// The number constants of a namespace.
pub fn constant(ns: &str, name: &str) -> Option<f64> {
    use std::f64::consts;
    Some(match (ns, name) {
        ("Math", "PI") => consts::PI,
        ("Math", "E") => consts::E,
        ("Math", "LN2") => consts::LN_2,
        ("Math", "LN10") => consts::LN_10,
        ("Math", "LOG2E") => consts::LOG2_E,
        ("Math", "LOG10E") => consts::LOG10_E,
        ("Math", "SQRT2") => consts::SQRT_2,
        ("Math", "SQRT1_2") => consts::FRAC_1_SQRT_2,
        ("Number", "MAX_VALUE") => f64::MAX,
        ("Number", "MIN_VALUE") => 5e-324,
        ("Number", "MAX_SAFE_INTEGER") => 9_007_199_254_740_991.0,
        ("Number", "MIN_SAFE_INTEGER") => -9_007_199_254_740_991.0,
        ("Number", "POSITIVE_INFINITY") => f64::INFINITY,
        ("Number", "NEGATIVE_INFINITY") => f64::NEG_INFINITY,
        ("Number", "NaN") => f64::NAN,
        ("Number", "EPSILON") => f64::EPSILON,
        _ => return None,
    })
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

/// The three names that no program may bind, read or call (D16).
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
        for m in &METHODS {
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
