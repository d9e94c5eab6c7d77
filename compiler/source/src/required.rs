//! Finds the arguments that a program requires.

use crate::lower::Lowerer;

impl Lowerer<'_> {
    /// Returns the arguments in the pattern of an agent without types, with their offsets, except
    /// those that the source tests: a program with a test works without the argument.
    pub(crate) fn required_arguments(&self) -> Vec<(String, u32)> {
        let named = self.named_arguments.iter().filter(|(_, at)| {
            let variable = self.scoping.variable(*at);
            variable.is_some_and(|variable| !variable.is_set) && !self.scoping.is_asked(*at)
        });
        named.cloned().collect()
    }
}
