//! The stack of a run between two turns, for profilers.

use super::Run;
use crate::machine::CodePlace;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Frames of a sample at most, the innermost: deep recursion would make samples dear.
const MAX_FRAMES: usize = 64;

/// A function under way and the step that it is at. Two frames are equal if they are at the same
/// step of the same program.
#[derive(Clone)]
pub struct StackFrame(CodePlace);

impl StackFrame {
    fn key(&self) -> (usize, u32, Option<u32>) {
        let program = Arc::as_ptr(self.0.executable()) as usize;
        (program, self.0.function(), self.0.step())
    }

    /// The helper's name; `None` for the body of a program.
    #[must_use]
    pub fn helper(&self) -> Option<String> {
        self.0.helper()
    }

    /// The op of the step.
    #[must_use]
    pub fn op(&self) -> Option<String> {
        self.0.op()
    }

    /// JSON pointer of the step, as in an error.
    #[must_use]
    pub fn pointer(&self) -> Option<String> {
        self.0.pointer()
    }

    /// Line and column of the step in the text that was compiled, from 1.
    #[must_use]
    pub fn line_col(&self) -> Option<(u32, u32)> {
        self.0.line_col()
    }
}

impl PartialEq for StackFrame {
    fn eq(&self, other: &StackFrame) -> bool {
        self.key() == other.key()
    }
}

impl Eq for StackFrame {}

impl Hash for StackFrame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl std::fmt::Debug for StackFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StackFrame").field(&self.key()).finish()
    }
}

impl Run {
    /// The functions under way, outermost first, at most 64 of the innermost; none after the end.
    #[must_use]
    pub fn stack(&self) -> Vec<StackFrame> {
        let session = self.session.as_ref();
        let places = session.map_or_else(Vec::new, |session| session.machine.places(MAX_FRAMES));
        places.into_iter().map(StackFrame).collect()
    }
}
