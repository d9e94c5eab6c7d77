//! What functions and methods give and take, as far as their names tell.

use super::{FUNCTIONS, METHODS, Method, Receiver, function, method};

/// What a function or method gives, whatever it is called on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A number.
    Number,
    /// The index of something, -1 where there is none.
    Index,
    /// A boolean.
    Bool,
    /// A text.
    Text,
    /// A list of its own.
    List,
    /// A list of texts.
    Texts,
    /// A list of items of the receiver.
    Items,
    /// An item of the receiver, `undefined` where there is none.
    Item,
    /// A part of the receiver: a text or a list of its items.
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
    /// A value that the name does not tell.
    Unknown,
}

impl Gives {
    /// Whether it is a number.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Gives::Number | Gives::Index)
    }

    /// Whether it is a list, or a text where the receiver is one.
    #[must_use]
    pub const fn is_list(self) -> bool {
        use Gives::{Items, Joined, List, Part, Texts};
        matches!(self, List | Texts | Items | Part | Joined)
    }

    /// Whether it is a text, number, boolean or list.
    #[must_use]
    pub const fn is_data(self) -> bool {
        self.is_number() || self.is_list() || matches!(self, Gives::Bool | Gives::Text)
    }
}

/// How many arguments a function or method takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Takes {
    /// The fewest.
    pub least: usize,
    /// The most; further ones are ignored.
    pub most: usize,
    /// How many of the first are numbers.
    pub numbers: usize,
}

/// The row of a method.
pub fn method_row(name: &str) -> Option<&'static Method> {
    Some(&METHODS[usize::from(method(name)?)])
}

/// What a method gives.
pub fn gives(name: &str) -> Gives {
    method_row(name).map_or(Gives::Unknown, |row| row.gives)
}

/// What a function gives; the namespace is empty for a global one.
pub fn function_gives(ns: &str, name: &str) -> Gives {
    function(ns, name).map_or(Gives::Unknown, |at| FUNCTIONS[usize::from(at)].gives)
}

/// Whether a method changes what it is called on.
pub fn mutates(name: &str) -> bool {
    method_row(name).is_some_and(|row| row.mutates)
}

/// Whether a method changes lists.
pub fn mutates_lists(name: &str) -> bool {
    method_row(name).is_some_and(|row| row.mutates && row.on.contains(&Receiver::Array))
}

/// Whether a method takes items from lists or puts items into them.
pub fn resizes_lists(name: &str) -> bool {
    mutates_lists(name) && (matches!(gives(name), Gives::Number | Gives::Item) || name == "splice")
}

/// Whether a method looks for its argument in a list.
pub fn searches_lists(name: &str) -> bool {
    method_row(name).is_some_and(|row| row.searches && row.on.contains(&Receiver::Array))
}

/// Whether a method is called for its value only: it changes nothing, and its function, if it
/// takes one, only chooses.
pub fn only_computes(name: &str) -> bool {
    method_row(name).is_some_and(|row| {
        let computes = row.gives.is_data() || row.gives == Gives::Item;
        !row.mutates && computes && (!row.calls || row.gives == Gives::Items)
    })
}

/// Whether a list keeps its items in a call of this method, and nothing else gets hold of it.
pub fn only_reads_lists(name: &str) -> bool {
    let of_lists = |on: &[Receiver]| on.contains(&Receiver::Array) || on.contains(&Receiver::Any);
    method_row(name)
        .is_some_and(|row| of_lists(row.on) && !row.mutates && row.gives != Gives::Itself)
}

/// Whether a method, or a function of a namespace that is called as one, gives a list that
/// nothing else has.
pub fn gives_new_list(name: &str) -> bool {
    let functions = || FUNCTIONS.iter().filter(|f| f.name == name);
    method_row(name).is_some_and(|row| row.gives.is_list() && !row.mutates)
        || functions().any(|f| matches!(f.gives, Gives::List | Gives::Texts))
}

/// Whether a method may give `undefined`, or `parse` of `JSON`, which gives what its function
/// gives.
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
