//! Builtin functions, one table row each.

use super::Gives::{self, Bool, Date, Items, List, Number, Object, Set, Text, Texts, Unknown};
use super::Reads::{self, All, Count, Deep, First};
use super::{CallContext, EVERYWHERE, NOT_IN_CONDITIONS, Takes};
use crate::costs::{BOTH, FREE, Formula, LINE, NUMERAL, PARSE, READ, STRINGIFY, both, read};

/// A builtin function: `ns.name`, or a global when `ns` is empty.
#[derive(Copy, Clone, Debug)]
pub struct BuiltinFunction {
    /// Namespace; empty for a global.
    pub ns: &'static str,
    /// Name within the namespace.
    pub name: &'static str,
    /// Proportional price in the metered model.
    pub cost: Formula,
    /// The operands whose size the price depends on.
    pub reads: Reads,
    /// Where programs may call the function.
    pub places: &'static [CallContext],
    /// Kind of the result.
    pub gives: Gives,
    /// Argument counts, if they are known.
    pub takes: Option<Takes>,
    /// The result, described in one sentence.
    pub docs: &'static str,
}

impl BuiltinFunction {
    /// The name as programs write it: `Math.abs`, `parseInt`.
    #[must_use]
    pub fn full_name(&self) -> String {
        match self.ns {
            "" => self.name.to_owned(),
            ns => format!("{ns}.{}", self.name),
        }
    }

    const fn takes(self, least: usize, most: usize) -> BuiltinFunction {
        BuiltinFunction {
            takes: Some(Takes {
                least,
                most,
                numbers: 0,
            }),
            ..self
        }
    }

    const fn not_in_conditions(self) -> BuiltinFunction {
        BuiltinFunction {
            places: NOT_IN_CONDITIONS,
            ..self
        }
    }
}

const fn f(
    ns: &'static str,
    name: &'static str,
    cost: Formula,
    reads: Reads,
    gives: Gives,
    docs: &'static str,
) -> BuiltinFunction {
    BuiltinFunction {
        ns,
        name,
        cost,
        reads,
        places: EVERYWHERE,
        gives,
        takes: None,
        docs,
    }
}

/// Every builtin function. New rows go to the end, because bytecode numbers functions by this
/// order. The code of each is in a file of `vm/src/builtins`.
#[rustfmt::skip]
pub static FUNCTIONS: &[BuiltinFunction] = &[
    f("Math", "abs", FREE, Count, Number, "The number without its sign.").takes(1, 1),
    f("Math", "ceil", FREE, Count, Number, "The smallest integer that is not below a number.").takes(1, 1),
    f("Math", "floor", FREE, Count, Number, "The largest integer that is not above a number.").takes(1, 1),
    f("Math", "round", FREE, Count, Number, "The nearest integer; halves round up.").takes(1, 1),
    f("Math", "trunc", FREE, Count, Number, "The number without its fraction.").takes(1, 1),
    f("Math", "sign", FREE, Count, Number, "1, -1, 0 or -0 for the sign of a number.").takes(1, 1),
    f("Math", "sqrt", FREE, Count, Number, "The square root of a number.").takes(1, 1),
    f("Math", "cbrt", FREE, Count, Number, "The cube root of a number.").takes(1, 1),
    f("Math", "pow", FREE, Count, Number, "The first number to the power of the second.").takes(2, 2),
    f("Math", "exp", FREE, Count, Number, "e to the power of a number.").takes(1, 1),
    f("Math", "expm1", FREE, Count, Number, "e to the power of a number, less 1; exact for small ones."),
    f("Math", "log", FREE, Count, Number, "The natural logarithm of a number.").takes(1, 1),
    f("Math", "log2", FREE, Count, Number, "The logarithm of a number to base 2.").takes(1, 1),
    f("Math", "log10", FREE, Count, Number, "The logarithm of a number to base 10.").takes(1, 1),
    f("Math", "log1p", FREE, Count, Number, "The natural logarithm of 1 plus a number; exact for small ones."),
    f("Math", "sin", FREE, Count, Number, "The sine of an angle in radians.").takes(1, 1),
    f("Math", "cos", FREE, Count, Number, "The cosine of an angle in radians.").takes(1, 1),
    f("Math", "tan", FREE, Count, Number, "The tangent of an angle in radians.").takes(1, 1),
    f("Math", "asin", FREE, Count, Number, "The angle in radians of a sine."),
    f("Math", "acos", FREE, Count, Number, "The angle in radians of a cosine."),
    f("Math", "atan", FREE, Count, Number, "The angle in radians of a tangent."),
    f("Math", "atan2", FREE, Count, Number, "The angle in radians of the point (second, first).").takes(2, 2),
    f("Math", "sinh", FREE, Count, Number, "The hyperbolic sine of a number."),
    f("Math", "cosh", FREE, Count, Number, "The hyperbolic cosine of a number."),
    f("Math", "tanh", FREE, Count, Number, "The hyperbolic tangent of a number."),
    f("Math", "asinh", FREE, Count, Number, "The inverse hyperbolic sine of a number."),
    f("Math", "acosh", FREE, Count, Number, "The inverse hyperbolic cosine of a number."),
    f("Math", "atanh", FREE, Count, Number, "The inverse hyperbolic tangent of a number."),
    f("Math", "hypot", READ, Count, Number, "The square root of the sum of the squares of all arguments."),
    f("Math", "min", READ, Count, Number, "The smallest argument, Infinity without any."),
    f("Math", "max", READ, Count, Number, "The largest argument, -Infinity without any."),
    f("Math", "clz32", FREE, Count, Number, "The number of leading zero bits in the 32-bit form of a number."),
    f("Math", "imul", FREE, Count, Number, "The product of two numbers as 32-bit integers.").takes(2, 2),
    f("Math", "fround", FREE, Count, Number, "The nearest number that fits into 32 bits."),
    f("Math", "random", FREE, Count, Number, "A random number from 0 to 1, 1 excluded, from the random capability.").takes(0, 0),
    f("JSON", "parse", PARSE, First, Unknown, "The value of a JSON text.").takes(1, 2),
    f("JSON", "stringify", STRINGIFY, All, Text, "The JSON text of a value; a replacer and an indentation may follow.").takes(1, 3),
    f("console", "log", LINE, Deep, Unknown, "Writes its arguments as a line for the host."),
    f("console", "warn", LINE, Deep, Unknown, "Writes its arguments as a line for the host, as a warning."),
    f("console", "error", LINE, Deep, Unknown, "Writes its arguments as a line for the host, as an error; the run continues."),
    f("console", "info", LINE, Deep, Unknown, "Writes its arguments as a line for the host."),
    f("Array", "isArray", FREE, First, Bool, "Whether a value is an array.").takes(1, 1),
    f("Array", "from", Formula::Keys(24), First, List, "An array of the items of a text, array, set or object with a length; a function may map them.").takes(1, 2),
    f("Array", "of", FREE, First, List, "An array of its arguments."),
    f("Object", "keys", Formula::Keys(6), First, Texts, "The names of an object's members.").takes(1, 1),
    f("Object", "values", Formula::Keys(4), First, List, "The values of an object's members.").takes(1, 1),
    f("Object", "entries", Formula::Keys(16), First, List, "The members of an object as arrays of name and value.").takes(1, 1),
    f("Object", "fromEntries", Formula::Keys(24), First, Object, "An object of arrays of name and value.").takes(1, 1),
    f("Object", "assign", Formula::Keys(32), All, Object, "The first argument with the members of all others."),
    f("Object", "hasOwn", FREE, First, Bool, "Whether an object has a member of this name.").takes(2, 2),
    f("String", "fromCharCode", FREE, First, Text, "The text of UTF-16 units."),
    f("String", "fromCodePoint", FREE, First, Text, "The text of code points."),
    f("Number", "isNaN", FREE, First, Bool, "Whether a value is the number NaN.").takes(1, 1),
    f("Number", "isFinite", FREE, First, Bool, "Whether a value is a finite number.").takes(1, 1),
    f("Number", "isInteger", FREE, First, Bool, "Whether a value is an integer.").takes(1, 1),
    f("Number", "isSafeInteger", FREE, First, Bool, "Whether a value is an integer to which no other number rounds.").takes(1, 1),
    f("Number", "parseFloat", NUMERAL, First, Number, "The number at the beginning of a text, NaN if the text has no number there.").takes(1, 1),
    f("Number", "parseInt", NUMERAL, First, Number, "The integer at the beginning of a text, in the given base."),
    f("Date", "now", FREE, First, Number, "The time in milliseconds since 1970, from the clock capability.").takes(0, 0),
    f("Date", "parse", read(3), First, Date, "A date of a text or of milliseconds since 1970, invalid if it is not one.").takes(1, 1),
    f("Schema", "object", read(96), Deep, Unknown, "The schema of an object with these members."),
    f("Schema", "array", read(96), Deep, Unknown, "The schema of an array whose elements have this schema."),
    f("Schema", "record", read(96), Deep, Unknown, "The schema of an object with any names, whose members have this schema."),
    f("Schema", "union", read(96), Deep, Unknown, "The schema of a value that has one of these schemas."),
    f("Schema", "enum", read(16), Deep, Unknown, "The schema of one of these values."),
    f("Schema", "const", read(16), Deep, Unknown, "The schema of exactly this value.").not_in_conditions(),
    f("Schema", "tuple", read(96), Deep, Unknown, "The schema of an array with one schema for each element."),
    f("Schema", "infer", read(96), Deep, Unknown, "The inferred schema of a value."),
    f("Schema", "pattern", read(12), Deep, Unknown, "The schema of a text that a regular expression matches."),
    f("Schema", "email", FREE, Deep, Unknown, "The schema of a mail address."),
    f("Schema", "uuid", FREE, Deep, Unknown, "The schema of a UUID."),
    f("Schema", "ipv4", FREE, Deep, Unknown, "The schema of an IPv4 address."),
    f("Schema", "url", FREE, Deep, Unknown, "The schema of a URL."),
    f("Schema", "datetime", FREE, Deep, Unknown, "The schema of a date with time."),
    f("Schema", "emoji", FREE, Deep, Unknown, "The schema of an emoji."),
    f("Schema", "any", FREE, Deep, Unknown, "The schema of any value."),
    f("Schema", "null", FREE, Deep, Unknown, "The schema of null."),
    f("Schema", "undefined", FREE, Deep, Unknown, "The schema of undefined."),
    f("Schema", "response", read(96), Deep, Unknown, "The schema of a model's answer, under a name."),
    f("Schema", "fromExample", read(96), Deep, Unknown, "The schema of values that look like an example."),
    f("Schema", "isValid", read(2), Deep, Bool, "Whether a value fits a schema or an example."),
    f("", "parseInt", NUMERAL, First, Number, "The integer at the beginning of a text, in the given base.").takes(1, 2),
    f("", "parseFloat", NUMERAL, First, Number, "The number at the beginning of a text, NaN if the text has no number there.").takes(1, 1),
    f("", "isNaN", FREE, First, Bool, "Whether a value is NaN as a number.").takes(1, 1),
    f("", "isFinite", FREE, First, Bool, "Whether a value is finite as a number.").takes(1, 1),
    f("", "encodeURI", both(4), First, Text, "A URI with its invalid characters escaped.").takes(1, 1),
    f("", "decodeURI", BOTH, First, Text, "A URI with those escapes decoded that do not change its structure.").takes(1, 1),
    f("", "encodeURIComponent", both(4), First, Text, "A part of a URI with all special characters escaped.").takes(1, 1),
    f("", "decodeURIComponent", BOTH, First, Text, "A part of a URI with all escapes decoded.").takes(1, 1),
    f("", "filter", BOTH, Deep, Unknown, "A value reduced to what a schema or an example declares."),
    f("", "Set", Formula::Keys(10), First, Set, "A set of the items of an array or text.").takes(0, 1),
    f("", "Date", read(3), First, Date, "A date from a text or from milliseconds since 1970; the current time by default.").takes(0, 1),
    f("", "Error", READ, First, Unknown, "Fails with a message, as `throw` does.").takes(0, 1),
    f("", "Number", NUMERAL, First, Number, "A value as a number: 0 for null and the empty text, NaN for other non-numbers.").takes(1, 1),
    f("", "String", BOTH, First, Text, "A value as text.").takes(1, 1),
    f("", "Boolean", FREE, First, Bool, "Whether a value is truthy.").takes(1, 1),
    f("Date", "tryParse", read(3), First, Unknown, "A date from a text or from milliseconds since 1970, null if it is not a date.").takes(1, 1),
    f("Array", "items", FREE, First, Items, "An array unchanged, or `Array.from` of a text or set; fails for other values with a message that the second argument names."),
    f("console", "debug", LINE, Deep, Unknown, "Writes its arguments as a line for the host, for debugging."),
    f("Date", "toLocale", BOTH, First, Text, "A date, or milliseconds since 1970, in en-US with options, as `Intl.DateTimeFormat` formats it.").takes(1, 3),
    f("Math", "bitAnd", FREE, Count, Number, "The bits that both numbers have as 32-bit integers: `a & b`.").takes(2, 2),
    f("Math", "bitOr", FREE, Count, Number, "The bits that either number has as a 32-bit integer: `a | b`.").takes(2, 2),
    f("Math", "bitXor", FREE, Count, Number, "The bits in which two numbers differ as 32-bit integers: `a ^ b`.").takes(2, 2),
    f("Math", "bitNot", FREE, Count, Number, "The 32-bit integer with all bits inverted: `~a`.").takes(1, 1),
    f("Math", "shiftLeft", FREE, Count, Number, "A 32-bit integer, shifted left by the low five bits of the second: `a << b`.").takes(2, 2),
    f("Math", "shiftRight", FREE, Count, Number, "A 32-bit integer, shifted right with its sign: `a >> b`.").takes(2, 2),
    f("Math", "shiftRightUnsigned", FREE, Count, Number, "An unsigned 32-bit integer, shifted right: `a >>> b`.").takes(2, 2),
    f("Object", "is", FREE, First, Bool, "Whether two values are the same: as `===`, but NaN is NaN and 0 is not -0.").takes(2, 2),
    f("", "structuredClone", FREE, First, Unknown, "A copy that shares no list, set, object or date with the value.").takes(1, 1),
    f("", "btoa", both(4), First, Text, "The base64 text of a text whose units are bytes.").takes(1, 1),
    f("", "atob", BOTH, First, Text, "The text whose units are the bytes of a base64 text.").takes(1, 1),
    f("Array", "toMap", Formula::Keys(24), First, Unknown, "A map of arrays of key and value, or a copy of a map.").takes(0, 1),
    f("String", "findPattern", FREE, Count, Unknown, "The first match in a text of a regular expression, given by pattern and flags, from an index on: `match`, `index`, `groups` and `named`; null without one.").takes(2, 4),
    f("String", "findPatterns", FREE, Count, List, "All matches in a text of a regular expression, given by pattern and flags.").takes(2, 3),
    f("String", "replacePattern", FREE, Count, Text, "A text with the first match of a regular expression replaced, or with the flag `g` all matches: text, pattern, flags, replacement.").takes(4, 4),
    f("String", "splitPattern", FREE, Count, Texts, "The parts of a text between the matches of a regular expression and the groups: text, pattern, flags, maximum number.").takes(2, 4),
];
