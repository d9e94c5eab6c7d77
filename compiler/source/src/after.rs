//! What a loop does with the value of its callback, and names that lowering makes.

use crate::lower::Lowerer;
use crate::tree::Tree;

/// Use that lowering makes of the value that a callback returns.
#[derive(Clone, Debug)]
pub(crate) enum After {
    /// Discards the value.
    Nothing,
    /// Appends the value to this list.
    Push(String),
    /// Sets this variable to the value.
    Set(String),
    /// If the value is truthy (or falsy), sets the variable to the tree and ends the loop.
    Found(bool, String, Box<Tree>),
    /// If the value is truthy, appends the tree to the list.
    Keep(String, Box<Tree>),
    /// Appends the value's text to this variable.
    Append(String),
    /// Appends the item to the list that the object holds under the value as key.
    Group(String, Box<Tree>),
    /// Appends the value to this list in the form of `Promise.allSettled`.
    Settled(String),
}

impl Lowerer<'_> {
    pub(crate) fn fresh(&mut self) -> String {
        loop {
            self.next_temp += 1;
            let name = format!("_{}", self.next_temp);
            if self.taken.insert(name.clone()) {
                self.variables.insert(name.clone());
                return name;
            }
        }
    }
}
