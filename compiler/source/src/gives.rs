//! What methods give, whatever they are called on: one row each, from which follows what a
//! loop goes over, what is a number or a date, and what is surely a value.

/// What a method gives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    Number,
    Bool,
    Text,
    /// A list.
    List,
    /// A list of items of the receiver.
    Items,
    /// An item of the receiver, `undefined` where there is none.
    Item,
    /// A part of the receiver: a text or a list of its items.
    Part,
    /// What the receiver is, with other items.
    Joined,
    /// Nothing that the name tells.
    Untold,
}

use Gives::{Bool, Item, Items, Joined, List, Number, Part, Text, Untold};

/// The methods of `a99_core::builtins::METHODS`, by what they give.
const METHODS: [(Gives, &[&str]); 9] = [
    (
        Number,
        &[
            "charCodeAt",
            "codePointAt",
            "findIndex",
            "findLastIndex",
            "getDate",
            "getDay",
            "getFullYear",
            "getHours",
            "getMilliseconds",
            "getMinutes",
            "getMonth",
            "getSeconds",
            "getTime",
            "indexOf",
            "lastIndexOf",
            "localeCompare",
            "push",
            "search",
            "unshift",
        ],
    ),
    (
        Bool,
        &[
            "endsWith",
            "every",
            "has",
            "hasOwnProperty",
            "includes",
            "isAfter",
            "isBefore",
            "isPrototypeOf",
            "isWellFormed",
            "propertyIsEnumerable",
            "some",
            "startsWith",
        ],
    ),
    (
        Text,
        &[
            "anchor",
            "big",
            "blink",
            "bold",
            "charAt",
            "fixed",
            "fontcolor",
            "fontsize",
            "format",
            "italics",
            "join",
            "link",
            "normalize",
            "padEnd",
            "padStart",
            "repeat",
            "replace",
            "replaceAll",
            "small",
            "strike",
            "sub",
            "substr",
            "substring",
            "sup",
            "toExponential",
            "toFixed",
            "toISOString",
            "toLocaleLowerCase",
            "toLocaleString",
            "toLocaleUpperCase",
            "toLowerCase",
            "toPrecision",
            "toString",
            "toUpperCase",
            "toWellFormed",
            "trim",
            "trimEnd",
            "trimLeft",
            "trimRight",
            "trimStart",
        ],
    ),
    (
        List,
        &[
            "copyWithin",
            "entries",
            "fill",
            "flat",
            "flatMap",
            "keys",
            "map",
            "matchAll",
            "split",
            "toArray",
            "toSpliced",
            "values",
            "with",
        ],
    ),
    (
        Items,
        &[
            "filter",
            "reverse",
            "sort",
            "splice",
            "toReversed",
            "toSorted",
        ],
    ),
    (Item, &["at", "find", "findLast", "pop", "shift"]),
    (Part, &["slice"]),
    (Joined, &["concat"]),
    (
        Untold,
        &[
            "add",
            "clear",
            "diff",
            "forEach",
            "intersection",
            "match",
            "reduce",
            "reduceRight",
            "remove",
            "toJSON",
            "union",
            "valueOf",
        ],
    ),
];

/// What a method of this name gives.
pub(crate) fn gives(method: &str) -> Gives {
    let row = METHODS.iter().find(|(_, names)| names.contains(&method));
    row.map_or(Untold, |(gives, _)| *gives)
}

#[cfg(test)]
mod tests {
    use super::{METHODS, gives};
    use a99_core::builtins;
    use std::collections::BTreeSet;

    #[test]
    fn each_method_has_one_row() {
        let told: Vec<&str> = METHODS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let rows: BTreeSet<&str> = told.iter().copied().collect();
        assert_eq!(
            rows.len(),
            told.len(),
            "a method has two rows of `METHODS` here"
        );
        let known: BTreeSet<&str> = builtins::METHODS.iter().map(|method| method.name).collect();
        let missing: Vec<_> = known.difference(&rows).collect();
        assert!(
            missing.is_empty(),
            "give {missing:?} a row in compiler/source/src/gives.rs"
        );
        let gone: Vec<_> = rows.difference(&known).collect();
        assert!(
            gone.is_empty(),
            "no methods of core/src/builtins/methods.rs: {gone:?}"
        );
    }

    #[test]
    fn what_may_be_undefined_is_no_value_for_sure() {
        for method in crate::value::MAYBE.iter().filter(|name| **name != "parse") {
            let gives = gives(method);
            let is_told = matches!(gives, super::Item | super::Untold) || *method == "codePointAt";
            assert!(
                is_told,
                "{method} of MAYBE in compiler/source/src/value.rs gives {gives:?}"
            );
        }
    }
}
