//! Builtin methods: the table of them, one row each.

use super::Reads::{self, All, Count};
use super::Receiver::{self, Any, Array, Date, Number, Set, Text};
use super::{CallContext, EVERYWHERE, NOT_IN_CONDITIONS};
use crate::costs::{BOTH, FREE, Formula, JOIN, READ, SPLIT, WRITTEN, both, read};

/// A method name.
#[derive(Copy, Clone, Debug)]
pub struct Method {
    /// The name.
    pub name: &'static str,
    /// The kinds of value that have it.
    pub on: &'static [Receiver],
    /// Proportional price in the metered model.
    pub cost: Formula,
    /// What it reads, for that price.
    pub reads: Reads,
    /// Where it may be called.
    pub places: &'static [CallContext],
    /// Whether its first argument is a function that it calls for elements.
    pub calls: bool,
    /// What it gives or does, in a sentence.
    pub docs: &'static str,
}

impl Method {
    const fn not_in_conditions(self) -> Method {
        Method {
            places: NOT_IN_CONDITIONS,
            ..self
        }
    }

    const fn calls_function(self) -> Method {
        Method {
            calls: true,
            ..self
        }
    }
}

const fn m(
    name: &'static str,
    on: &'static [Receiver],
    cost: Formula,
    reads: Reads,
    docs: &'static str,
) -> Method {
    Method {
        name,
        on,
        cost,
        reads,
        places: EVERYWHERE,
        calls: false,
        docs,
    }
}

/// Every method name. A new one goes to the end: the order numbers them in
/// bytecode. Its code stands in a file of `vm/src/builtins`.
#[rustfmt::skip]
pub static METHODS: &[Method] = &[
    m("at", &[Text, Array], FREE, All, "The element at an index; one below zero counts from the end."),
    m("charAt", &[Text], FREE, All, "The unit at an index, an empty text beyond the end."),
    m("charCodeAt", &[Text], FREE, All, "The number of the UTF-16 unit at an index."),
    m("codePointAt", &[Text], FREE, All, "The number of the code point at an index."),
    m("concat", &[Text, Array], BOTH, All, "The receiver followed by all arguments."),
    m("endsWith", &[Text], READ, All, "Whether the text ends with another."),
    m("includes", &[Text, Array], READ, All, "Whether the receiver holds a value or text."),
    m("indexOf", &[Text, Array], READ, All, "The first index of a value or text, -1 if it is \
     missing."),
    m("lastIndexOf", &[Text, Array], READ, All, "The last index of a value or text, -1 if it is \
     missing."),
    m("localeCompare", &[Text], READ, All, "-1, 0 or 1: the order of two texts in a sorted list \
     for people."),
    m("match", &[Text], both(2), All, "The first occurrence of a text and its index, null if it \
     is missing."),
    m("matchAll", &[Text], Formula::Keys(12), All, "All occurrences of a text."),
    m("normalize", &[Text], BOTH, All, "The text in a Unicode normalization form, by default NFC."),
    m("padEnd", &[Text], WRITTEN, All, "The text filled up at its end to a length."),
    m("padStart", &[Text], WRITTEN, All, "The text filled up at its start to a length."),
    m("repeat", &[Text], WRITTEN, All, "The text, repeated the given number of times."),
    m("replace", &[Text], both(2), All, "The text with the first occurrence of another replaced."),
    m("replaceAll", &[Text], both(8), All, "The text with all occurrences of another replaced."),
    m("search", &[Text], READ, All, "The first index of a text, -1 if it is missing."),
    m("slice", &[Text, Array], WRITTEN, All, "The part between two indexes; those below zero count from the end."),
    m("split", &[Text], SPLIT, All, "The parts between the occurrences of a separator."),
    m("startsWith", &[Text], READ, All, "Whether the text starts with another."),
    m("substr", &[Text], WRITTEN, All, "The given number of units from an index on."),
    m("substring", &[Text], WRITTEN, All, "The part between two indexes, in either order."),
    m("toLowerCase", &[Text], both(2), All, "The text in lower case."),
    m("toUpperCase", &[Text], both(2), All, "The text in upper case."),
    m("toLocaleLowerCase", &[Text], both(2), All, "The text in lower case; the same in every locale."),
    m("toLocaleUpperCase", &[Text], both(2), All, "The text in upper case; the same in every locale."),
    m("toString", &[Text, Number, Array, Date, Any], BOTH, All, "The receiver as text; a number \
     in the given base."),
    m("trim", &[Text], read(2), All, "The text without white space at its ends."),
    m("trimStart", &[Text], read(2), All, "The text without white space at its start."),
    m("trimEnd", &[Text], read(2), All, "The text without white space at its end."),
    m("trimLeft", &[Text], read(2), All, "The same as trimStart."),
    m("trimRight", &[Text], read(2), All, "The same as trimEnd."),
    m("valueOf", &[Text, Number, Any], FREE, All, "The receiver itself."),
    m("isWellFormed", &[Text], READ, All, "Whether the text has no lone surrogates."),
    m("toWellFormed", &[Text], BOTH, All, "The text with lone surrogates replaced."),
    m("anchor", &[Text], BOTH, All, "The text in an HTML `a` element with a name.").not_in_conditions(),
    m("big", &[Text], BOTH, All, "The text in an HTML `big` element.").not_in_conditions(),
    m("blink", &[Text], BOTH, All, "The text in an HTML `blink` element.").not_in_conditions(),
    m("bold", &[Text], BOTH, All, "The text in an HTML `b` element.").not_in_conditions(),
    m("fixed", &[Text], BOTH, All, "The text in an HTML `tt` element.").not_in_conditions(),
    m("fontcolor", &[Text], BOTH, All, "The text in an HTML `font` element with a colour.").not_in_conditions(),
    m("fontsize", &[Text], BOTH, All, "The text in an HTML `font` element with a size.").not_in_conditions(),
    m("italics", &[Text], BOTH, All, "The text in an HTML `i` element.").not_in_conditions(),
    m("link", &[Text], BOTH, All, "The text in an HTML `a` element with an address.").not_in_conditions(),
    m("small", &[Text], BOTH, All, "The text in an HTML `small` element.").not_in_conditions(),
    m("strike", &[Text], BOTH, All, "The text in an HTML `strike` element.").not_in_conditions(),
    m("sub", &[Text], BOTH, All, "The text in an HTML `sub` element.").not_in_conditions(),
    m("sup", &[Text], BOTH, All, "The text in an HTML `sup` element.").not_in_conditions(),
    m("copyWithin", &[Array], READ, All, "Copies a part of the array over another part of it."),
    m("entries", &[Array], both(6), All, "Arrays of index and element."),
    m("every", &[Array], read(36), All, "Whether a function gives true for every element.").calls_function(),
    m("fill", &[Array], READ, All, "Puts a value into a part of the array."),
    m("filter", &[Array, Set], both(36), All, "The elements for which a function gives true.").calls_function(),
    m("find", &[Array], read(36), All, "The first element for which a function gives true.").calls_function(),
    m("findIndex", &[Array], read(36), All, "The index of the first element for which a function gives true.").calls_function(),
    m("findLast", &[Array], read(36), All, "The last element for which a function gives true.").calls_function(),
    m("findLastIndex", &[Array], read(36), All, "The index of the last element for which a function gives true.").calls_function(),
    m("flat", &[Array], both(3), All, "The elements, with nested arrays flattened to a depth."),
    m("flatMap", &[Array], both(36), All, "The results of a function for each element, with \
     arrays flattened.").calls_function(),
    m("forEach", &[Array, Set], read(36), All, "Calls a function for each element.").calls_function(),
    m("join", &[Array], JOIN, All, "The elements as one text with a separator."),
    m("keys", &[Array], WRITTEN, All, "The indexes of the array."),
    m("map", &[Array, Set], both(36), All, "The results of a function for each \
     element.").calls_function(),
    m("pop", &[Array], FREE, All, "Removes the last element and returns it."),
    m("push", &[Array], READ, Count, "Appends elements and returns the new length."),
    m("reduce", &[Array], read(36), All, "A value that a function accumulates over the \
     elements.").calls_function(),
    m("reduceRight", &[Array], read(36), All, "A value that a function accumulates over the \
     elements, from the last to the first.").calls_function(),
    m("reverse", &[Array], READ, All, "Reverses the order of the elements."),
    m("shift", &[Array], READ, All, "Removes the first element and returns it."),
    m("some", &[Array], read(36), All, "Whether a function gives true for an element.").calls_function(),
    m("sort", &[Array], Formula::Sort, All, "Sorts the array by text, or by a function.").calls_function(),
    m("splice", &[Array], BOTH, All, "Removes a part of the array, inserts elements there, and \
     returns the part."),
    m("toReversed", &[Array], BOTH, All, "A copy in reverse order."),
    m("toSorted", &[Array], Formula::Sort, All, "A copy that is sorted by text, or by a function.").calls_function(),
    m("toSpliced", &[Array], BOTH, All, "A copy with a part replaced by elements."),
    m("unshift", &[Array], both(2), All, "Inserts elements at the front and returns the new \
     length."),
    m("values", &[Array], WRITTEN, All, "A copy of the array."),
    m("with", &[Array], BOTH, All, "A copy with the element at an index replaced."),
    m("toLocaleString", &[Number, Array, Any], both(20), All, "The receiver as text for people; \
     the same in every locale."),
    m("toFixed", &[Number], FREE, All, "The number with the given number of decimals."),
    m("toExponential", &[Number], FREE, All, "The number with an exponent of ten."),
    m("toPrecision", &[Number], FREE, All, "The number with the given number of digits."),
    m("add", &[Set, Date], READ, All, "The set with a member; the date moved by years, months, \
     days and smaller units."),
    m("remove", &[Set], READ, All, "The set without a member."),
    m("clear", &[Set], FREE, All, "Removes all members."),
    m("has", &[Set], READ, All, "Whether a value is a member."),
    m("toArray", &[Set], BOTH, All, "The members as an array."),
    m("union", &[Set], both(16), All, "The members of either set."),
    m("intersection", &[Set], both(16), All, "The members of both sets."),
    m("diff", &[Set, Date], both(16), All, "The members that another set lacks; the time between two dates."),
    m("format", &[Date], BOTH, All, "The date, formatted by a pattern."),
    m("isBefore", &[Date], read(3), All, "Whether the date is before another."),
    m("isAfter", &[Date], read(3), All, "Whether the date is after another."),
    m("toJSON", &[Set, Date], BOTH, All, "The JSON value of the receiver.").not_in_conditions(),
    m("hasOwnProperty", &[Any], FREE, All, "Whether the receiver has a member of this name.").not_in_conditions(),
    m("isPrototypeOf", &[Any], FREE, All, "Always false: there are no prototypes.").not_in_conditions(),
    m("propertyIsEnumerable", &[Any], FREE, All, "The same as hasOwnProperty.").not_in_conditions(),
    m("getTime", &[Date], FREE, All, "The date in milliseconds since 1970."),
    m("getFullYear", &[Date], FREE, All, "The year; all parts are in UTC."),
    m("getMonth", &[Date], FREE, All, "The month, 0 for January."),
    m("getDate", &[Date], FREE, All, "The day of the month, from 1 on."),
    m("getDay", &[Date], FREE, All, "The day of the week, 0 for Sunday."),
    m("getHours", &[Date], FREE, All, "The hour."),
    m("getMinutes", &[Date], FREE, All, "The minute."),
    m("getSeconds", &[Date], FREE, All, "The second."),
    m("getMilliseconds", &[Date], FREE, All, "The millisecond."),
    m("toISOString", &[Date], BOTH, All, "The date as text, the same as toString."),
];
