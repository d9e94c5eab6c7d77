//! Calls of builtins: every row of the tables of `core`, each with meaningful arguments.

use super::expr::ident;
use super::{Generator, Kind};
use a99_core::builtins::Receiver;
use serde_json::{Value as Json, json};

use Kind::{Any, Bool, List, Num, Record, Text};

/// A function: namespace, name, kinds of its arguments.
pub type FunctionRow = (&'static str, &'static str, &'static [Kind]);

/// A method: receiver, name, kinds of its arguments.
pub type MethodRow = (Receiver, &'static str, &'static [Kind]);

/// The functions that programs of the generator call.
pub const FUNCTIONS: &[FunctionRow] = &[
    ("Math", "abs", &[Num]),
    ("Math", "ceil", &[Num]),
    ("Math", "floor", &[Num]),
    ("Math", "round", &[Num]),
    ("Math", "trunc", &[Num]),
    ("Math", "sign", &[Num]),
    ("Math", "sqrt", &[Num]),
    ("Math", "cbrt", &[Num]),
    ("Math", "pow", &[Num, Num]),
    ("Math", "exp", &[Num]),
    ("Math", "expm1", &[Num]),
    ("Math", "log", &[Num]),
    ("Math", "log2", &[Num]),
    ("Math", "log10", &[Num]),
    ("Math", "log1p", &[Num]),
    ("Math", "sin", &[Num]),
    ("Math", "cos", &[Num]),
    ("Math", "tan", &[Num]),
    ("Math", "asin", &[Num]),
    ("Math", "acos", &[Num]),
    ("Math", "atan", &[Num]),
    ("Math", "atan2", &[Num, Num]),
    ("Math", "sinh", &[Num]),
    ("Math", "cosh", &[Num]),
    ("Math", "tanh", &[Num]),
    ("Math", "asinh", &[Num]),
    ("Math", "acosh", &[Num]),
    ("Math", "atanh", &[Num]),
    ("Math", "hypot", &[Num, Num, Num]),
    ("Math", "min", &[Num, Num, Num]),
    ("Math", "max", &[Num, Num, Num]),
    ("Math", "clz32", &[Num]),
    ("Math", "imul", &[Num, Num]),
    ("Math", "fround", &[Num]),
    ("JSON", "parse", &[Text]),
    ("JSON", "stringify", &[Any]),
    ("console", "log", &[Any]),
    ("console", "warn", &[Any]),
    ("console", "error", &[Any]),
    ("console", "info", &[Any]),
    ("console", "debug", &[Any]),
    ("Array", "isArray", &[Any]),
    ("Array", "from", &[List, Bool]),
    ("Array", "of", &[Any, Any]),
    ("Object", "keys", &[Record]),
    ("Object", "values", &[Record]),
    ("Object", "entries", &[Record]),
    ("Object", "fromEntries", &[List]),
    ("Object", "assign", &[Record, Record]),
    ("Object", "hasOwn", &[Record, Text]),
    ("String", "fromCharCode", &[Num, Num]),
    ("String", "fromCodePoint", &[Num, Num]),
    ("Number", "isNaN", &[Any]),
    ("Number", "isFinite", &[Any]),
    ("Number", "isInteger", &[Any]),
    ("Number", "isSafeInteger", &[Any]),
    ("Number", "parseFloat", &[Text]),
    ("Number", "parseInt", &[Text, Num]),
    ("Date", "parse", &[Text]),
    ("Schema", "email", &[]),
    ("Schema", "uuid", &[]),
    ("Schema", "ipv4", &[]),
    ("Schema", "url", &[]),
    ("Schema", "datetime", &[]),
    ("Schema", "emoji", &[]),
    ("Schema", "any", &[]),
    ("Schema", "null", &[]),
    ("", "parseInt", &[Text, Num]),
    ("", "parseFloat", &[Text]),
    ("", "isNaN", &[Any]),
    ("", "isFinite", &[Any]),
    ("", "encodeURI", &[Text]),
    ("", "decodeURI", &[Text]),
    ("", "encodeURIComponent", &[Text]),
    ("", "decodeURIComponent", &[Text]),
    ("", "filter", &[Any, Record]),
    ("", "Set", &[List]),
    ("", "Error", &[Text]),
    ("", "Number", &[Any]),
    ("", "String", &[Any]),
    ("", "Boolean", &[Any]),
    ("Date", "tryParse", &[Any]),
    ("Array", "items", &[Any]),
    ("Date", "toLocale", &[Num, Text, Record]),
    ("Math", "bitAnd", &[Num, Num]),
    ("Math", "bitOr", &[Num, Num]),
    ("Math", "bitXor", &[Num, Num]),
    ("Math", "bitNot", &[Num]),
    ("Math", "shiftLeft", &[Num, Num]),
    ("Math", "shiftRight", &[Num, Num]),
    ("Math", "shiftRightUnsigned", &[Num, Num]),
    ("Object", "is", &[Any, Any]),
    ("", "structuredClone", &[Any]),
    ("", "btoa", &[Text]),
    ("", "atob", &[Text]),
    ("Array", "toMap", &[List]),
    ("String", "findPattern", &[Text, Text, Text, Num]),
    ("String", "findPatterns", &[Text, Text, Text]),
    ("String", "replacePattern", &[Text, Text, Text, Text]),
    ("String", "splitPattern", &[Text, Text, Text, Num]),
];

/// The methods that programs of the generator call, for each kind of receiver.
pub const METHODS: &[MethodRow] = &[
    (Receiver::Text, "at", &[Num]),
    (Receiver::Array, "at", &[Num]),
    (Receiver::Text, "charAt", &[Num]),
    (Receiver::Text, "charCodeAt", &[Num]),
    (Receiver::Text, "codePointAt", &[Num]),
    (Receiver::Text, "concat", &[Text, Any]),
    (Receiver::Array, "concat", &[List, Any]),
    (Receiver::Text, "endsWith", &[Text, Num]),
    (Receiver::Text, "includes", &[Text, Num]),
    (Receiver::Array, "includes", &[Any, Num]),
    (Receiver::Text, "indexOf", &[Text, Num]),
    (Receiver::Array, "indexOf", &[Any, Num]),
    (Receiver::Text, "lastIndexOf", &[Text, Num]),
    (Receiver::Array, "lastIndexOf", &[Any, Num]),
    (Receiver::Text, "localeCompare", &[Text]),
    (Receiver::Text, "match", &[Text]),
    (Receiver::Text, "matchAll", &[Text]),
    (Receiver::Text, "normalize", &[]),
    (Receiver::Text, "padEnd", &[Num, Text]),
    (Receiver::Text, "padStart", &[Num, Text]),
    (Receiver::Text, "repeat", &[Num]),
    (Receiver::Text, "replace", &[Text, Text]),
    (Receiver::Text, "replaceAll", &[Text, Text]),
    (Receiver::Text, "search", &[Text]),
    (Receiver::Text, "slice", &[Num, Num]),
    (Receiver::Array, "slice", &[Num, Num]),
    (Receiver::Text, "split", &[Text, Num]),
    (Receiver::Text, "startsWith", &[Text, Num]),
    (Receiver::Text, "substr", &[Num, Num]),
    (Receiver::Text, "substring", &[Num, Num]),
    (Receiver::Text, "toLowerCase", &[]),
    (Receiver::Text, "toUpperCase", &[]),
    (Receiver::Text, "toLocaleLowerCase", &[]),
    (Receiver::Text, "toLocaleUpperCase", &[]),
    (Receiver::Text, "toString", &[]),
    (Receiver::Number, "toString", &[Num]),
    (Receiver::Array, "toString", &[]),
    (Receiver::Date, "getTime", &[]),
    (Receiver::Date, "getFullYear", &[]),
    (Receiver::Date, "getMonth", &[]),
    (Receiver::Date, "getDate", &[]),
    (Receiver::Date, "getDay", &[]),
    (Receiver::Date, "getHours", &[]),
    (Receiver::Date, "getMinutes", &[]),
    (Receiver::Date, "getSeconds", &[]),
    (Receiver::Date, "getMilliseconds", &[]),
    (Receiver::Date, "toISOString", &[]),
    (Receiver::Date, "toLocaleString", &[Text, Record]),
    (Receiver::Date, "toLocaleDateString", &[Text, Record]),
    (Receiver::Date, "toLocaleTimeString", &[Text, Record]),
    (Receiver::Date, "toUTCString", &[]),
    (Receiver::Date, "toDateString", &[]),
    (Receiver::Date, "toString", &[]),
    (Receiver::Any, "toString", &[]),
    (Receiver::Text, "trim", &[]),
    (Receiver::Text, "trimStart", &[]),
    (Receiver::Text, "trimEnd", &[]),
    (Receiver::Text, "trimLeft", &[]),
    (Receiver::Text, "trimRight", &[]),
    (Receiver::Text, "valueOf", &[]),
    (Receiver::Number, "valueOf", &[]),
    (Receiver::Any, "valueOf", &[]),
    (Receiver::Text, "isWellFormed", &[]),
    (Receiver::Text, "toWellFormed", &[]),
    (Receiver::Text, "anchor", &[Text]),
    (Receiver::Text, "big", &[]),
    (Receiver::Text, "blink", &[]),
    (Receiver::Text, "bold", &[]),
    (Receiver::Text, "fixed", &[]),
    (Receiver::Text, "fontcolor", &[Text]),
    (Receiver::Text, "fontsize", &[Num]),
    (Receiver::Text, "italics", &[]),
    (Receiver::Text, "link", &[Text]),
    (Receiver::Text, "small", &[]),
    (Receiver::Text, "strike", &[]),
    (Receiver::Text, "sub", &[]),
    (Receiver::Text, "sup", &[]),
    (Receiver::Array, "copyWithin", &[Num, Num, Num]),
    (Receiver::Array, "entries", &[]),
    (Receiver::Array, "every", &[Bool]),
    (Receiver::Array, "fill", &[Any, Num, Num]),
    (Receiver::Array, "filter", &[Bool]),
    (Receiver::Set, "filter", &[Bool]),
    (Receiver::Array, "find", &[Bool]),
    (Receiver::Array, "findIndex", &[Bool]),
    (Receiver::Array, "findLast", &[Bool]),
    (Receiver::Array, "findLastIndex", &[Bool]),
    (Receiver::Array, "flat", &[Num]),
    (Receiver::Array, "flatMap", &[Bool]),
    (Receiver::Array, "forEach", &[Bool]),
    (Receiver::Set, "forEach", &[Bool]),
    (Receiver::Array, "join", &[Text]),
    (Receiver::Array, "keys", &[]),
    (Receiver::Array, "map", &[Bool]),
    (Receiver::Set, "map", &[Bool]),
    (Receiver::Array, "pop", &[]),
    (Receiver::Array, "push", &[Any]),
    (Receiver::Array, "reduce", &[Bool, Any]),
    (Receiver::Array, "reduceRight", &[Bool, Any]),
    (Receiver::Array, "reverse", &[]),
    (Receiver::Array, "shift", &[]),
    (Receiver::Array, "some", &[Bool]),
    (Receiver::Array, "sort", &[]),
    (Receiver::Array, "splice", &[Num, Num, Any]),
    (Receiver::Array, "toReversed", &[]),
    (Receiver::Array, "toSorted", &[]),
    (Receiver::Array, "toSpliced", &[Num, Num, Any]),
    (Receiver::Array, "unshift", &[Any]),
    (Receiver::Array, "values", &[]),
    (Receiver::Array, "with", &[Num, Any]),
    (Receiver::Number, "toLocaleString", &[]),
    (Receiver::Any, "toLocaleString", &[]),
    (Receiver::Number, "toFixed", &[Num]),
    (Receiver::Number, "toExponential", &[Num]),
    (Receiver::Number, "toPrecision", &[Num]),
    (Receiver::Set, "add", &[Any]),
    (Receiver::Date, "add", &[Record]),
    (Receiver::Set, "remove", &[Any]),
    (Receiver::Set, "clear", &[]),
    (Receiver::Set, "has", &[Any]),
    (Receiver::Set, "toArray", &[]),
    (Receiver::Set, "union", &[List]),
    (Receiver::Set, "intersection", &[List]),
    (Receiver::Set, "diff", &[List]),
    (Receiver::Date, "diff", &[Text]),
    (Receiver::Date, "format", &[Text]),
    (Receiver::Date, "isBefore", &[Text]),
    (Receiver::Date, "isAfter", &[Text]),
    (Receiver::Set, "toJSON", &[]),
    (Receiver::Date, "toJSON", &[]),
    (Receiver::Set, "delete", &[Any]),
    (Receiver::Set, "entries", &[]),
    (Receiver::Set, "keys", &[]),
    (Receiver::Set, "values", &[]),
    (Receiver::Set, "difference", &[Any]),
    (Receiver::Set, "symmetricDifference", &[Any]),
    (Receiver::Set, "isSubsetOf", &[Any]),
    (Receiver::Set, "isSupersetOf", &[Any]),
    (Receiver::Set, "isDisjointFrom", &[Any]),
    (Receiver::Map, "get", &[Any]),
    (Receiver::Map, "set", &[Any, Any]),
    (Receiver::Map, "has", &[Any]),
    (Receiver::Map, "delete", &[Any]),
    (Receiver::Map, "clear", &[]),
    (Receiver::Map, "entries", &[]),
    (Receiver::Map, "keys", &[]),
    (Receiver::Map, "values", &[]),
    (Receiver::Map, "forEach", &[Bool]),
    (Receiver::Any, "isPrototypeOf", &[Any]),
];

/// Members that programs of the generator read.
pub const MEMBERS: &[(Receiver, &str)] = &[
    (Receiver::Text, "length"),
    (Receiver::Array, "length"),
    (Receiver::Set, "size"),
    (Receiver::Map, "size"),
    (Receiver::Date, "value"),
    (Receiver::Date, "timestamp"),
    (Receiver::Date, "year"),
    (Receiver::Date, "month"),
    (Receiver::Date, "day"),
    (Receiver::Date, "hours"),
    (Receiver::Date, "minutes"),
    (Receiver::Date, "seconds"),
    (Receiver::Date, "dayOfWeek"),
];

/// Functions on which engines need not agree: `namespace.name`, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("Math.random", "gives another number each time"),
    ("Date.now", "tells the time"),
    ("Date", "tells the time if its argument is undefined"),
    ("Schema.object", PLAINER),
    ("Schema.array", PLAINER),
    ("Schema.record", PLAINER),
    ("Schema.union", PLAINER),
    ("Schema.enum", PLAINER),
    ("Schema.const", PLAINER),
    ("Schema.tuple", PLAINER),
    ("Schema.infer", PLAINER),
    ("Schema.pattern", PLAINER),
    ("Schema.response", PLAINER),
    ("Schema.fromExample", PLAINER),
    ("Schema.isValid", PLAINER),
    ("Schema.undefined", PLAINER),
];

/// Methods where the oracle differs, and how.
pub const METHODS_LEFT_OUT: &[(Receiver, &str, &str)] = &[
    (
        Receiver::Array,
        "toLocaleString",
        "the oracle groups no digits",
    ),
    (Receiver::Any, "hasOwnProperty", KEY),
    (Receiver::Any, "propertyIsEnumerable", KEY),
];

/// Why methods that take a key are left out.
const KEY: &str = "the oracle does not pay for the text of a key that is none";

/// Why schema builders are left out; `vm/src/builtins/schemas/tests.rs` tests them.
const PLAINER: &str = "the oracle builds a plainer schema";

/// Methods whose argument is a set or a map.
const SET_OPERATIONS: &[&str] = &[
    "difference",
    "symmetricDifference",
    "isSubsetOf",
    "isSupersetOf",
    "isDisjointFrom",
];

/// Methods with callbacks, here builtin functions.
const CALLED_BACK: &[&str] = &[
    "parseFloat",
    "isNaN",
    "parseInt",
    "isFinite",
    "encodeURIComponent",
    "Set",
];

/// Dates of receivers and arguments.
const DATES: &[&str] = &[
    "2024-02-29T12:30:59Z",
    "1970-01-01",
    "2023-12-31",
    "2024-01-31T10:20:30.456Z",
];

impl Generator<'_> {
    /// A call of any builtin, or a member of a value.
    pub(super) fn builtin(&mut self) -> Json {
        match self.choices.below(8) {
            0..=2 => {
                let (ns, name, kinds) = *self.pick(FUNCTIONS);
                let arguments = self.arguments_of(kinds);
                match ns {
                    "" => json!({"$expr": "call", "callee": name, "arguments": arguments}),
                    ns => self.call_static(ns, name, arguments),
                }
            }
            7 => {
                let (receiver, name) = *self.pick(MEMBERS);
                json!({"$expr": "member", "object": self.receiver(receiver), "property": name})
            }
            _ => {
                let (receiver, name, kinds) = *self.pick(METHODS);
                let object = self.receiver(receiver);
                let arguments = match SET_OPERATIONS.contains(&name) {
                    true => {
                        let other = *self.pick(&[Receiver::Set, Receiver::Map]);
                        vec![self.receiver(other)]
                    }
                    false => self.arguments_of(kinds),
                };
                let call = json!({"$expr": "methodCall", "object": object, "method": name,
                                  "arguments": arguments});
                match receiver {
                    // The result as text: results cannot hold sets and dates.
                    Receiver::Set | Receiver::Date | Receiver::Map => {
                        self.call_static("JSON", "stringify", vec![call])
                    }
                    _ => call,
                }
            }
        }
    }

    /// A prefix of the arguments.
    fn arguments_of(&mut self, kinds: &[Kind]) -> Vec<Json> {
        let n = kinds.len() - usize::from(!kinds.is_empty() && self.choices.one_in(4));
        kinds[..n].iter().map(|kind| self.argument(*kind)).collect()
    }

    fn argument(&mut self, kind: Kind) -> Json {
        match kind {
            // For rows that take a function.
            Bool => ident(CALLED_BACK[self.choices.below(CALLED_BACK.len())]),
            kind => self.expr(kind),
        }
    }

    fn receiver(&mut self, receiver: Receiver) -> Json {
        match receiver {
            Receiver::Text => self.expr(Text),
            Receiver::Number => self.expr(Num),
            Receiver::Array => self.expr(List),
            Receiver::Set => {
                json!({"$expr": "call", "callee": "Set", "arguments": [self.expr(List)]})
            }
            Receiver::Map => {
                let size = self.choices.below(4);
                let entries: Vec<Json> = (0..size)
                    .map(|_| {
                        let kinds = [*self.pick(&[Num, Text, List, Record, Bool]), Any];
                        let parts = kinds.map(|kind| self.expr(kind));
                        json!({"$expr": "array", "elements": parts})
                    })
                    .collect();
                let entries = json!({"$expr": "array", "elements": entries});
                self.call_static("Array", "toMap", vec![entries])
            }
            Receiver::Date => {
                let start = *self.pick(DATES);
                json!({"$expr": "call", "callee": "Date",
                       "arguments": [{"$expr": "literal", "value": start}]})
            }
            Receiver::Any => {
                let kind = *self.pick(&[Record, Num, Text, List, Record]);
                self.expr(kind)
            }
        }
    }
}
