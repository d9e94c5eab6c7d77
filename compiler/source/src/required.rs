//! Arguments that a program takes for given.

use crate::lower::Lowerer;

impl Lowerer<'_> {
    /// The names of arguments in the pattern of an agent without types, with their places, but
    /// for those that are tested somewhere: a program that does so can do without them.
    pub(crate) fn required_arguments(&self) -> Vec<(String, u32)> {
        let named = self.named_arguments.iter().filter(|(_, at)| {
            let variable = self.scoping.variable(*at);
            variable.is_some_and(|variable| !variable.is_set) && !self.scoping.is_asked(*at)
        });
        named.cloned().collect()
    }
}
