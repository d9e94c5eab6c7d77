//! Builtin functions: the table of them, one row each.

use super::Reads::{self, All, Count, Deep, First};
use super::{CallContext, EVERYWHERE, NOT_IN_CONDITIONS};
use crate::costs::{BOTH, FREE, Formula, LINE, NUMERAL, PARSE, READ, STRINGIFY, both, read};

/// A builtin function: `ns.name`, or a global when `ns` is empty.
#[derive(Copy, Clone, Debug)]
pub struct BuiltinFunction {
    /// Namespace, or empty.
    pub ns: &'static str,
    /// Name within it.
    pub name: &'static str,
    /// Proportional price in the metered model.
    pub cost: Formula,
    /// What it reads, for that price.
    pub reads: Reads,
    /// Where it may be called.
    pub places: &'static [CallContext],
    /// What it gives, in a sentence.
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
    docs: &'static str,
) -> BuiltinFunction {
    BuiltinFunction {
        ns,
        name,
        cost,
        reads,
        places: EVERYWHERE,
        docs,
    }
}

/// Every builtin function. A new one goes to the end: the order numbers them in
/// bytecode. Its code stands in a file of `vm/src/builtins`.
#[rustfmt::skip]
pub static FUNCTIONS: &[BuiltinFunction] = &[
    f("Math", "abs", FREE, Count, "The number without its sign."),
    f("Math", "ceil", FREE, Count, "The smallest integer that is not below a number."),
    f("Math", "floor", FREE, Count, "The largest integer that is not above a number."),
    f("Math", "round", FREE, Count, "The nearest integer; halves round up."),
    f("Math", "trunc", FREE, Count, "The number without its fraction."),
    f("Math", "sign", FREE, Count, "1, -1, 0 or -0 for the sign of a number."),
    f("Math", "sqrt", FREE, Count, "The square root of a number."),
    f("Math", "cbrt", FREE, Count, "The cube root of a number."),
    f("Math", "pow", FREE, Count, "The first number to the power of the second."),
    f("Math", "exp", FREE, Count, "e to the power of a number."),
    f("Math", "expm1", FREE, Count, "e to the power of a number, less 1; exact for small ones."),
    f("Math", "log", FREE, Count, "The natural logarithm of a number."),
    f("Math", "log2", FREE, Count, "The logarithm of a number to base 2."),
    f("Math", "log10", FREE, Count, "The logarithm of a number to base 10."),
    f("Math", "log1p", FREE, Count, "The natural logarithm of 1 plus a number; exact for small ones."),
    f("Math", "sin", FREE, Count, "The sine of an angle in radians."),
    f("Math", "cos", FREE, Count, "The cosine of an angle in radians."),
    f("Math", "tan", FREE, Count, "The tangent of an angle in radians."),
    f("Math", "asin", FREE, Count, "The angle in radians of a sine."),
    f("Math", "acos", FREE, Count, "The angle in radians of a cosine."),
    f("Math", "atan", FREE, Count, "The angle in radians of a tangent."),
    f("Math", "atan2", FREE, Count, "The angle in radians of the point (second, first)."),
    f("Math", "sinh", FREE, Count, "The hyperbolic sine of a number."),
    f("Math", "cosh", FREE, Count, "The hyperbolic cosine of a number."),
    f("Math", "tanh", FREE, Count, "The hyperbolic tangent of a number."),
    f("Math", "asinh", FREE, Count, "The inverse hyperbolic sine of a number."),
    f("Math", "acosh", FREE, Count, "The inverse hyperbolic cosine of a number."),
    f("Math", "atanh", FREE, Count, "The inverse hyperbolic tangent of a number."),
    f("Math", "hypot", READ, Count, "The square root of the sum of the squares of all arguments."),
    f("Math", "min", READ, Count, "The smallest argument, Infinity without any."),
    f("Math", "max", READ, Count, "The largest argument, -Infinity without any."),
    f("Math", "clz32", FREE, Count, "The number of leading zero bits in the 32-bit form of a \
     number."),
    f("Math", "imul", FREE, Count, "The product of two numbers as 32-bit integers."),
    f("Math", "fround", FREE, Count, "The nearest number that fits into 32 bits."),
    f("Math", "random", FREE, Count, "A random number from 0 to 1, 1 excluded, from the random \
     capability."),
    f("JSON", "parse", PARSE, First, "The value of a JSON text."),
    f("JSON", "stringify", STRINGIFY, All, "The JSON text of a value; a replacer and an indentation may follow."),
    f("console", "log", LINE, Deep, "Writes its arguments as a line for the host."),
    f("console", "warn", LINE, Deep, "Writes its arguments as a line for the host, as a warning."),
    f("console", "error", LINE, Deep, "Writes its arguments as a line for the host, as an error; \
     the run continues."),
    f("console", "info", LINE, Deep, "Writes its arguments as a line for the host."),
    f("Array", "isArray", FREE, First, "Whether a value is an array."),
    f("Array", "from", Formula::Keys(24), First, "An array of the items of a text, array, set or \
     object with a length; a function may map them."),
    f("Array", "of", FREE, First, "An array of its arguments."),
    f("Object", "keys", Formula::Keys(6), First, "The names of an object's members."),
    f("Object", "values", Formula::Keys(4), First, "The values of an object's members."),
    f("Object", "entries", Formula::Keys(16), First, "The members of an object as arrays of name and value."),
    f("Object", "fromEntries", Formula::Keys(24), First, "An object of arrays of name and value."),
    f("Object", "assign", Formula::Keys(32), All, "The first argument with the members of all others."),
    f("Object", "hasOwn", FREE, First, "Whether an object has a member of this name."),
    f("String", "fromCharCode", FREE, First, "The text of UTF-16 units."),
    f("String", "fromCodePoint", FREE, First, "The text of code points."),
    f("Number", "isNaN", FREE, First, "Whether a value is the number NaN."),
    f("Number", "isFinite", FREE, First, "Whether a value is a finite number."),
    f("Number", "isInteger", FREE, First, "Whether a value is an integer."),
    f("Number", "isSafeInteger", FREE, First, "Whether a value is an integer to which no other \
     number rounds."),
    f("Number", "parseFloat", NUMERAL, First, "The number at the beginning of a text, NaN if the \
     text has no number there."),
    f("Number", "parseInt", NUMERAL, First, "The integer at the beginning of a text, in the given \
     base."),
    f("Date", "now", FREE, First, "The time in milliseconds since 1970, from the clock \
     capability."),
    f("Date", "parse", read(3), First, "The time of a text in milliseconds since 1970, NaN if it \
     is not a date."),
    f("Schema", "object", read(96), Deep, "The schema of an object with these members."),
    f("Schema", "array", read(96), Deep, "The schema of an array whose elements have this schema."),
    f("Schema", "record", read(96), Deep, "The schema of an object with any names, whose members \
     have this schema."),
    f("Schema", "union", read(96), Deep, "The schema of a value that has one of these schemas."),
    f("Schema", "enum", read(16), Deep, "The schema of one of these values."),
    f("Schema", "const", read(16), Deep, "The schema of exactly this value.").not_in_conditions(),
    f("Schema", "tuple", read(96), Deep, "The schema of an array with one schema for each element."),
    f("Schema", "infer", read(96), Deep, "The inferred schema of a value."),
    f("Schema", "pattern", read(12), Deep, "The schema of a text that a regular expression matches."),
    f("Schema", "email", FREE, Deep, "The schema of a mail address."),
    f("Schema", "uuid", FREE, Deep, "The schema of a UUID."),
    f("Schema", "ipv4", FREE, Deep, "The schema of an IPv4 address."),
    f("Schema", "url", FREE, Deep, "The schema of a URL."),
    f("Schema", "datetime", FREE, Deep, "The schema of a date with time."),
    f("Schema", "emoji", FREE, Deep, "The schema of an emoji."),
    f("Schema", "any", FREE, Deep, "The schema of any value."),
    f("Schema", "null", FREE, Deep, "The schema of null."),
    f("Schema", "undefined", FREE, Deep, "The schema of undefined."),
    f("Schema", "response", read(96), Deep, "The schema of a model's answer, under a name."),
    f("Schema", "fromExample", read(96), Deep, "The schema of values that look like an example."),
    f("Schema", "isValid", read(2), Deep, "Whether a value fits a schema or an example."),
    f("", "parseInt", NUMERAL, First, "The integer at the beginning of a text, in the given base."),
    f("", "parseFloat", NUMERAL, First, "The number at the beginning of a text, NaN if the text \
     has no number there."),
    f("", "isNaN", FREE, First, "Whether a value is NaN as a number."),
    f("", "isFinite", FREE, First, "Whether a value is finite as a number."),
    f("", "encodeURI", both(4), First, "A URI with its invalid characters escaped."),
    f("", "decodeURI", BOTH, First, "A URI with those escapes decoded that do not change its \
     structure."),
    f("", "encodeURIComponent", both(4), First, "A part of a URI with all special characters \
     escaped."),
    f("", "decodeURIComponent", BOTH, First, "A part of a URI with all escapes decoded."),
    f("", "filter", BOTH, Deep, "A value reduced to what a schema or an example declares."),
    f("", "Set", Formula::Keys(10), First, "A set of the items of an array or text."),
    f("", "Date", read(3), First, "A date from a text or from milliseconds since 1970; the \
     current time by default."),
    f("", "Error", READ, First, "An error with a message, as a value."),
    f("", "Number", NUMERAL, First, "A value as a number: 0 for null and the empty text, NaN for \
     other non-numbers."),
    f("", "String", BOTH, First, "A value as text."),
    f("", "Boolean", FREE, First, "Whether a value is truthy."),
    f("Date", "tryParse", read(3), First, "A date from a text or from milliseconds since 1970, \
     null if it is not a date."),
    f("Array", "items", FREE, First, "An array unchanged, or `Array.from` of a text or set; fails \
     for other values with a message that the second argument names."),
    f("console", "debug", LINE, Deep, "Writes its arguments as a line for the host, for \
     debugging."),
];
