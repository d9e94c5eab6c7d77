//! Result and argument kinds of functions and methods, as far as their names determine them.

use super::{FUNCTIONS, METHODS, Method, Receiver, function, method};

/// Kind of the result of a function or method, for any receiver.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A number.
    Number,
    /// The index of an item; -1 if it is not found.
    Index,
    /// A boolean.
    Bool,
    /// A text.
    Text,
    /// A new list.
    List,
    /// A list of texts.
    Texts,
    /// A list of the receiver's items.
    Items,
    /// An item of the receiver, or `undefined`.
    Item,
    /// A part of the receiver: a text, or a list of its items.
    Part,
    /// A value of the receiver's kind with other items.
    Joined,
    /// The receiver.
    Itself,
    /// An object.
    Object,
    /// A date.
    Date,
    /// A set.
    Set,
    /// A value whose kind the name does not determine.
    Unknown,
}

impl Gives {
    /// True if the result is a number.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Gives::Number | Gives::Index)
    }

    /// True if the result is a list, or a text for a text receiver.
    #[must_use]
    pub const fn is_list(self) -> bool {
        use Gives::{Items, Joined, List, Part, Texts};
        matches!(self, List | Texts | Items | Part | Joined)
    }

    /// True if the result is a text, number, boolean or list.
    #[must_use]
    pub const fn is_data(self) -> bool {
        self.is_number() || self.is_list() || matches!(self, Gives::Bool | Gives::Text)
    }
}

/// Argument counts of a function or method.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Takes {
    /// The fewest arguments.
    pub least: usize,
    /// The most arguments; further ones are ignored.
    pub most: usize,
    /// How many of the first arguments are numbers.
    pub numbers: usize,
}

/// The table row of a method.
pub fn method_row(name: &str) -> Option<&'static Method> {
    Some(&METHODS[usize::from(method(name)?)])
}

/// Kind of a method's result.
pub fn gives(name: &str) -> Gives {
    method_row(name).map_or(Gives::Unknown, |row| row.gives)
}

/// Kind of a function's result; the namespace is empty for a global function.
pub fn function_gives(ns: &str, name: &str) -> Gives {
    function(ns, name).map_or(Gives::Unknown, |at| FUNCTIONS[usize::from(at)].gives)
}

/// True if a method changes its receiver.
pub fn mutates(name: &str) -> bool {
    method_row(name).is_some_and(|row| row.mutates)
}

/// True if a method changes lists.
pub fn mutates_lists(name: &str) -> bool {
    method_row(name).is_some_and(|row| row.mutates && row.on.contains(&Receiver::Array))
}

/// True if a method adds items to lists or removes them.
pub fn resizes_lists(name: &str) -> bool {
    mutates_lists(name) && (matches!(gives(name), Gives::Number | Gives::Item) || name == "splice")
}

/// True if a method searches a list for its argument.
pub fn searches_lists(name: &str) -> bool {
    method_row(name).is_some_and(|row| row.searches && row.on.contains(&Receiver::Array))
}

/// True if a method is called only for its result: it changes nothing, and a callback only selects
/// items.
pub fn only_computes(name: &str) -> bool {
    method_row(name).is_some_and(|row| {
        let computes = row.gives.is_data() || row.gives == Gives::Item;
        !row.mutates && computes && (!row.calls || row.gives == Gives::Items)
    })
}

/// True if a method leaves a list's items in place and returns no alias of the list.
pub fn only_reads_lists(name: &str) -> bool {
    let of_lists = |on: &[Receiver]| on.contains(&Receiver::Array) || on.contains(&Receiver::Any);
    method_row(name)
        .is_some_and(|row| of_lists(row.on) && !row.mutates && row.gives != Gives::Itself)
}

/// True if a method, or a namespace function called as one, returns a list without other
/// references.
pub fn gives_new_list(name: &str) -> bool {
    let functions = || FUNCTIONS.iter().filter(|f| f.name == name);
    method_row(name).is_some_and(|row| row.gives.is_list() && !row.mutates)
        || functions().any(|f| matches!(f.gives, Gives::List | Gives::Texts))
}

/// True if a method may return `undefined`. So may `JSON.parse`, which returns its function's
/// result.
pub fn may_give_undefined(name: &str) -> bool {
    name == "parse" || method_row(name).is_some_and(|row| row.maybe_undefined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methods(is: fn(&str) -> bool) -> Vec<&'static str> {
        let names = METHODS.iter().map(|row| row.name);
        names.filter(|name| is(name)).collect()
    }

    #[test]
    fn facts_follow_from_rows() {
        let resizes = ["pop", "push", "shift", "splice", "unshift"];
        assert_eq!(methods(resizes_lists), resizes);
        let searches = ["includes", "indexOf", "lastIndexOf"];
        assert_eq!(methods(searches_lists), searches);
        for name in methods(mutates_lists) {
            assert!(!only_reads_lists(name) && !only_computes(name), "{name}");
            assert!(!gives_new_list(name), "{name}");
        }
        assert!(!only_reads_lists("valueOf") && only_reads_lists("findLastIndex"));
        assert!(only_computes("filter") && !only_computes("map") && only_computes("normalize"));
        assert!(gives_new_list("from") && !gives_new_list("items"));
    }
}
