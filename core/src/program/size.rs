//! Memory usage of a program.

use super::Program;
use crate::program::{Function, Scope};

/// Bytes of a table of records.
fn table<T>(records: &[T]) -> usize {
    size_of_val(records)
}

/// Bytes of lists, including the table that holds them.
fn lists<T>(lists: &[Box<[T]>]) -> usize {
    table(lists) + lists.iter().map(|list| table(list)).sum::<usize>()
}

impl Function {
    fn bytes(&self) -> usize {
        let scopes: usize = self.scopes.iter().map(|scope| table(&scope.vars)).sum();
        table(&self.code)
            + table(&self.blocks)
            + table(&self.charges)
            + table(&self.steps)
            + table::<Scope>(&self.scopes)
            + scopes
            + table(&self.handlers)
            + table(&self.wraps)
            + table(&self.places)
    }
}

impl Program {
    /// Bytes of the program's tables, code and source.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let paths: usize = self
            .args
            .iter()
            .map(|arg| arg.path.as_deref().map_or(0, table))
            .sum();
        let memos: usize = self.memos.iter().map(|memo| table(&memo.free)).sum();
        let names: usize = self.names.iter().map(|names| table(names)).sum();
        let functions: usize = self.functions.iter().map(Function::bytes).sum();
        self.text.len()
            + table(&self.consts)
            + table(&self.keys)
            + lists(&self.shapes)
            + lists(&self.paths)
            + lists(&self.literals)
            + table(&self.args)
            + paths
            + table(&self.ops)
            + table(&self.sites)
            + table(&self.memos)
            + memos
            + table(&self.names)
            + names
            + table(&self.functions)
            + functions
            + self
                .source
                .document()
                .map_or(0, |document| document.memory_bytes())
    }
}
