//! Builtin methods, one table row each.

use super::Gives::{self, Bool, Index, Item, Items, Itself, Joined, List, Part, Texts, Unknown};
use super::Reads::{self, All, Count};
use super::Receiver::{self, Any, Array, Date, Map, Number, Set, Text};
use super::{CallContext, EVERYWHERE, NOT_IN_CONDITIONS, Takes};
use crate::costs::{BOTH, FREE, Formula, JOIN, READ, SPLIT, WRITTEN, both, read};

/// A builtin method.
#[derive(Copy, Clone, Debug)]
pub struct Method {
    /// Name of the method.
    pub name: &'static str,
    /// The kinds of value that have the method.
    pub on: &'static [Receiver],
    /// Proportional price in the metered model.
    pub cost: Formula,
    /// The operands whose size the price depends on.
    pub reads: Reads,
    /// Where programs may call the method.
    pub places: &'static [CallContext],
    /// Kind of the result.
    pub gives: Gives,
    /// Argument counts, if they are known.
    pub takes: Option<Takes>,
    /// True if the method changes its receiver.
    pub mutates: bool,
    /// True if the method searches a text for its first argument, where other languages accept
    /// patterns.
    pub searches: bool,
    /// True if the method may return `undefined`.
    pub maybe_undefined: bool,
    /// True if the first argument is a function that the method calls for elements.
    pub calls: bool,
    /// The result or the effect, described in one sentence.
    pub docs: &'static str,
}

impl Method {
    const fn not_in_conditions(self) -> Method {
        Method {
            places: NOT_IN_CONDITIONS,
            ..self
        }
    }

    /// Sets the argument counts; the first `numbers` arguments are numbers.
    const fn takes(self, least: usize, most: usize, numbers: usize) -> Method {
        Method {
            takes: Some(Takes {
                least,
                most,
                numbers,
            }),
            ..self
        }
    }

    const fn mutates(self) -> Method {
        Method {
            mutates: true,
            ..self
        }
    }

    const fn searches(self) -> Method {
        Method {
            searches: true,
            ..self
        }
    }

    const fn maybe_undefined(self) -> Method {
        Method {
            maybe_undefined: true,
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
    gives: Gives,
    docs: &'static str,
) -> Method {
    Method {
        name,
        on,
        cost,
        reads,
        gives,
        takes: None,
        mutates: false,
        searches: false,
        maybe_undefined: matches!(gives, Item),
        places: EVERYWHERE,
        calls: false,
        docs,
    }
}

/// Every builtin method. New rows go to the end, because bytecode numbers methods by this order.
/// The code of each is in a file of `vm/src/builtins`.
#[rustfmt::skip]
pub static METHODS: &[Method] = &[
    m("at", &[Text, Array], FREE, All, Item, "The element at an index; one below zero counts from the end.").takes(0, 1, 1),
    m("charAt", &[Text], FREE, All, Gives::Text, "The unit at an index, an empty text beyond the end.").takes(0, 1, 1),
    m("charCodeAt", &[Text], FREE, All, Gives::Number, "The number of the UTF-16 unit at an index.").takes(0, 1, 1),
    m("codePointAt", &[Text], FREE, All, Gives::Number, "The number of the code point at an index.").takes(0, 1, 1).maybe_undefined(),
    m("concat", &[Text, Array], BOTH, All, Joined, "The receiver followed by all arguments."),
    m("endsWith", &[Text], READ, All, Bool, "Whether the text ends with another.").takes(1, 2, 0).searches(),
    m("includes", &[Text, Array], READ, All, Bool, "Whether the receiver holds a value or text.").takes(1, 2, 0).searches(),
    m("indexOf", &[Text, Array], READ, All, Index, "The first index of a value or text, -1 if it is missing.").takes(1, 2, 0).searches(),
    m("lastIndexOf", &[Text, Array], READ, All, Index, "The last index of a value or text, -1 if it is missing.").takes(1, 2, 0).searches(),
    m("localeCompare", &[Text], READ, All, Gives::Number, "-1, 0 or 1: the order of two texts in a sorted list for people.").takes(1, 3, 0),
    m("match", &[Text], both(2), All, Unknown, "The first occurrence of a text and its index, null if it is missing.").searches(),
    m("matchAll", &[Text], Formula::Keys(12), All, List, "All occurrences of a text.").searches(),
    m("normalize", &[Text], BOTH, All, Gives::Text, "The text in a Unicode normalization form, by default NFC."),
    m("padEnd", &[Text], WRITTEN, All, Gives::Text, "The text filled up at its end to a length.").takes(1, 2, 1),
    m("padStart", &[Text], WRITTEN, All, Gives::Text, "The text filled up at its start to a length.").takes(1, 2, 1),
    m("repeat", &[Text], WRITTEN, All, Gives::Text, "The text, repeated the given number of times.").takes(1, 1, 1),
    m("replace", &[Text], both(2), All, Gives::Text, "The text with the first occurrence of another replaced.").takes(2, 2, 0).searches(),
    m("replaceAll", &[Text], both(8), All, Gives::Text, "The text with all occurrences of another replaced.").takes(2, 2, 0).searches(),
    m("search", &[Text], READ, All, Index, "The first index of a text, -1 if it is missing.").searches(),
    m("slice", &[Text, Array], WRITTEN, All, Part, "The part between two indexes; those below zero count from the end.").takes(0, 2, 2),
    m("split", &[Text], SPLIT, All, Texts, "The parts between the occurrences of a separator.").takes(1, 2, 0).searches(),
    m("startsWith", &[Text], READ, All, Bool, "Whether the text starts with another.").takes(1, 2, 0).searches(),
    m("substr", &[Text], WRITTEN, All, Gives::Text, "The given number of units from an index on."),
    m("substring", &[Text], WRITTEN, All, Gives::Text, "The part between two indexes, in either order.").takes(0, 2, 2),
    m("toLowerCase", &[Text], both(2), All, Gives::Text, "The text in lower case.").takes(0, 0, 0),
    m("toUpperCase", &[Text], both(2), All, Gives::Text, "The text in upper case.").takes(0, 0, 0),
    m("toLocaleLowerCase", &[Text], both(2), All, Gives::Text, "The text in lower case; the same in every locale."),
    m("toLocaleUpperCase", &[Text], both(2), All, Gives::Text, "The text in upper case; the same in every locale."),
    m("toString", &[Text, Number, Array, Date, Any], BOTH, All, Gives::Text, "The receiver as text; a number in the given base."),
    m("trim", &[Text], read(2), All, Gives::Text, "The text without white space at its ends.").takes(0, 0, 0),
    m("trimStart", &[Text], read(2), All, Gives::Text, "The text without white space at its start.").takes(0, 0, 0),
    m("trimEnd", &[Text], read(2), All, Gives::Text, "The text without white space at its end.").takes(0, 0, 0),
    m("trimLeft", &[Text], read(2), All, Gives::Text, "The same as trimStart."),
    m("trimRight", &[Text], read(2), All, Gives::Text, "The same as trimEnd."),
    m("valueOf", &[Text, Number, Any], FREE, All, Itself, "The receiver itself.").maybe_undefined(),
    m("isWellFormed", &[Text], READ, All, Bool, "Whether the text has no lone surrogates."),
    m("toWellFormed", &[Text], BOTH, All, Gives::Text, "The text with lone surrogates replaced."),
    m("anchor", &[Text], BOTH, All, Gives::Text, "The text in an HTML `a` element with a name.").not_in_conditions(),
    m("big", &[Text], BOTH, All, Gives::Text, "The text in an HTML `big` element.").not_in_conditions(),
    m("blink", &[Text], BOTH, All, Gives::Text, "The text in an HTML `blink` element.").not_in_conditions(),
    m("bold", &[Text], BOTH, All, Gives::Text, "The text in an HTML `b` element.").not_in_conditions(),
    m("fixed", &[Text], BOTH, All, Gives::Text, "The text in an HTML `tt` element.").not_in_conditions(),
    m("fontcolor", &[Text], BOTH, All, Gives::Text, "The text in an HTML `font` element with a colour.").not_in_conditions(),
    m("fontsize", &[Text], BOTH, All, Gives::Text, "The text in an HTML `font` element with a size.").not_in_conditions(),
    m("italics", &[Text], BOTH, All, Gives::Text, "The text in an HTML `i` element.").not_in_conditions(),
    m("link", &[Text], BOTH, All, Gives::Text, "The text in an HTML `a` element with an address.").not_in_conditions(),
    m("small", &[Text], BOTH, All, Gives::Text, "The text in an HTML `small` element.").not_in_conditions(),
    m("strike", &[Text], BOTH, All, Gives::Text, "The text in an HTML `strike` element.").not_in_conditions(),
    m("sub", &[Text], BOTH, All, Gives::Text, "The text in an HTML `sub` element.").not_in_conditions(),
    m("sup", &[Text], BOTH, All, Gives::Text, "The text in an HTML `sup` element.").not_in_conditions(),
    m("copyWithin", &[Array], READ, All, List, "Copies a part of the array over another part of it.").mutates(),
    m("entries", &[Array, Set, Map], both(6), All, List, "Arrays of index and element, of a set's member twice, or of key and value."),
    m("every", &[Array], read(36), All, Bool, "Whether a function gives true for every element.").calls_function(),
    m("fill", &[Array], READ, All, List, "Puts a value into a part of the array.").mutates(),
    m("filter", &[Array, Set], both(36), All, Items, "The elements for which a function gives true.").calls_function(),
    m("find", &[Array], read(36), All, Item, "The first element for which a function gives true.").calls_function(),
    m("findIndex", &[Array], read(36), All, Index, "The index of the first element for which a function gives true.").calls_function(),
    m("findLast", &[Array], read(36), All, Item, "The last element for which a function gives true.").calls_function(),
    m("findLastIndex", &[Array], read(36), All, Index, "The index of the last element for which a function gives true.").calls_function(),
    m("flat", &[Array], both(3), All, List, "The elements, with nested arrays flattened to a depth.").takes(0, 1, 0),
    m("flatMap", &[Array], both(36), All, List, "The results of a function for each element, with arrays flattened.").calls_function(),
    m("forEach", &[Array, Set, Map], read(36), All, Unknown, "Calls a function for each element.").calls_function(),
    m("join", &[Array], JOIN, All, Gives::Text, "The elements as one text with a separator.").takes(0, 1, 0),
    m("keys", &[Array, Set, Map], WRITTEN, All, List, "The indexes of the array, the members of the set, the keys of the map."),
    m("map", &[Array, Set], both(36), All, List, "The results of a function for each element.").calls_function(),
    m("pop", &[Array], FREE, All, Item, "Removes the last element and returns it.").takes(0, 0, 0).mutates(),
    m("push", &[Array], READ, Count, Gives::Number, "Appends elements and returns the new length.").mutates(),
    m("reduce", &[Array], read(36), All, Unknown, "A value that a function accumulates over the elements.").calls_function(),
    m("reduceRight", &[Array], read(36), All, Unknown, "A value that a function accumulates over the elements, from the last to the first.").calls_function(),
    m("reverse", &[Array], READ, All, Items, "Reverses the order of the elements.").takes(0, 0, 0).mutates(),
    m("shift", &[Array], READ, All, Item, "Removes the first element and returns it.").takes(0, 0, 0).mutates(),
    m("some", &[Array], read(36), All, Bool, "Whether a function gives true for an element.").calls_function(),
    m("sort", &[Array], Formula::Sort, All, Items, "Sorts the array by text, or by a function.").calls_function().mutates(),
    m("splice", &[Array], BOTH, All, Items, "Removes a part of the array, inserts elements there, and returns the part.").mutates(),
    m("toReversed", &[Array], BOTH, All, Items, "A copy in reverse order.").takes(0, 0, 0),
    m("toSorted", &[Array], Formula::Sort, All, Items, "A copy that is sorted by text, or by a function.").calls_function(),
    m("toSpliced", &[Array], BOTH, All, List, "A copy with a part replaced by elements."),
    m("unshift", &[Array], both(2), All, Gives::Number, "Inserts elements at the front and returns the new length.").mutates(),
    m("values", &[Array, Set, Map], WRITTEN, All, List, "The elements, members or values as a new array."),
    m("with", &[Array], BOTH, All, List, "A copy with the element at an index replaced."),
    m("toLocaleString", &[Number, Array, Date, Any], both(20), All, Gives::Text, "The receiver as text for people; the same in every locale."),
    m("toFixed", &[Number], FREE, All, Gives::Text, "The number with the given number of decimals.").takes(0, 1, 1),
    m("toExponential", &[Number], FREE, All, Gives::Text, "The number with an exponent of ten."),
    m("toPrecision", &[Number], FREE, All, Gives::Text, "The number with the given number of digits.").takes(0, 1, 1),
    m("add", &[Set, Date], READ, All, Unknown, "The set with a member; the date moved by years, months, days and smaller units.").mutates(),
    m("remove", &[Set], READ, All, Unknown, "The set without a member.").mutates(),
    m("clear", &[Set, Map], FREE, All, Unknown, "Removes all members.").takes(0, 0, 0).mutates(),
    m("has", &[Set, Map], READ, All, Bool, "Whether a value is a member, or a key of the map.").takes(1, 1, 0),
    m("toArray", &[Set], BOTH, All, List, "The members as an array.").takes(0, 0, 0),
    m("union", &[Set], both(16), All, Gives::Set, "The members of either set."),
    m("intersection", &[Set], both(16), All, Gives::Set, "The members of both sets."),
    m("diff", &[Set, Date], both(16), All, Unknown, "The members that another set lacks; the time between two dates."),
    m("format", &[Date], BOTH, All, Gives::Text, "The date, formatted by a pattern."),
    m("isBefore", &[Date], read(3), All, Bool, "Whether the date is before another."),
    m("isAfter", &[Date], read(3), All, Bool, "Whether the date is after another."),
    m("toJSON", &[Set, Date], BOTH, All, Unknown, "The JSON value of the receiver.").not_in_conditions(),
    m("hasOwnProperty", &[Any], FREE, All, Bool, "Whether the receiver has a member of this name.").not_in_conditions(),
    m("isPrototypeOf", &[Any], FREE, All, Bool, "Always false: there are no prototypes.").not_in_conditions(),
    m("propertyIsEnumerable", &[Any], FREE, All, Bool, "The same as hasOwnProperty.").not_in_conditions(),
    m("getTime", &[Date], FREE, All, Gives::Number, "The date in milliseconds since 1970.").takes(0, 0, 0),
    m("getFullYear", &[Date], FREE, All, Gives::Number, "The year; all parts are in UTC.").takes(0, 0, 0),
    m("getMonth", &[Date], FREE, All, Gives::Number, "The month, 0 for January.").takes(0, 0, 0),
    m("getDate", &[Date], FREE, All, Gives::Number, "The day of the month, from 1 on.").takes(0, 0, 0),
    m("getDay", &[Date], FREE, All, Gives::Number, "The day of the week, 0 for Sunday.").takes(0, 0, 0),
    m("getHours", &[Date], FREE, All, Gives::Number, "The hour."),
    m("getMinutes", &[Date], FREE, All, Gives::Number, "The minute."),
    m("getSeconds", &[Date], FREE, All, Gives::Number, "The second."),
    m("getMilliseconds", &[Date], FREE, All, Gives::Number, "The millisecond."),
    m("toISOString", &[Date], BOTH, All, Gives::Text, "The date as text, the same as toString.").takes(0, 0, 0),
    m("toLocaleDateString", &[Date], BOTH, All, Gives::Text, "The date in en-US, with options for fields and time zone.").takes(0, 2, 0),
    m("toLocaleTimeString", &[Date], BOTH, All, Gives::Text, "The time in en-US, with options for fields and time zone.").takes(0, 2, 0),
    m("toUTCString", &[Date], BOTH, All, Gives::Text, "The date as in `Fri, 05 Jan 2024 09:05:09 GMT`.").takes(0, 0, 0),
    m("toDateString", &[Date], BOTH, All, Gives::Text, "The date as in `Fri Jan 05 2024`.").takes(0, 0, 0),
    m("get", &[Map], READ, Count, Unknown, "The value of a key, or undefined.").takes(1, 1, 0).maybe_undefined(),
    m("set", &[Map], READ, Count, Unknown, "The map with a value under a key.").takes(2, 2, 0).mutates(),
    m("delete", &[Set, Map], READ, All, Bool, "Removes a member or a key and returns whether it was there.").takes(1, 1, 0).mutates(),
    m("difference", &[Set], both(16), All, Gives::Set, "The members that another set lacks.").takes(1, 1, 0),
    m("symmetricDifference", &[Set], both(16), All, Gives::Set, "The members of exactly one of both sets.").takes(1, 1, 0),
    m("isSubsetOf", &[Set], read(16), All, Bool, "Whether another set has all members.").takes(1, 1, 0),
    m("isSupersetOf", &[Set], read(16), All, Bool, "Whether the set has all members of another.").takes(1, 1, 0),
    m("isDisjointFrom", &[Set], read(16), All, Bool, "Whether another set has none of the members.").takes(1, 1, 0),
];
