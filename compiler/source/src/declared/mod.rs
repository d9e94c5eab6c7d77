//! Rewrites enums, fields that parameters declare, classes that extend others, and classes of
//! errors to forms that lowering knows, before the source is read.

mod classes;
mod enums;
mod errors;
mod read;

use crate::edits::{Changed, Edits, Piece};
use oxc_ast::ast::{
    Declaration, ExportDefaultDeclarationKind, Program, Statement, VariableDeclarationKind,
};
use oxc_span::Span;
use read::{Class, Reader};

struct Declared<'s> {
    source: &'s str,
    read: Reader,
    scoping: crate::scoping::Scoping,
    edits: Edits,
    behind: Vec<(Span, Vec<Piece>)>,
    /// Parent of each class that extends a class of the source.
    parents: Vec<Option<usize>>,
    is_changed: bool,
}

/// Rewrites a source; `None` if it has none of the forms.
pub(crate) fn rewrite(source: &str, program: &Program<'_>) -> Option<Changed> {
    // Most sources have none of the words: reading them would take 2 % of their compilation.
    let words = ["class", "enum", "declare"];
    let default = default_export(program);
    let has_words = || words.iter().any(|word| source.contains(word));
    if default.is_none() && !has_words() && !program.body.iter().any(is_overload) {
        return None;
    }
    let read = Reader::read(program);
    let has_declared = !read.classes.is_empty() || !read.enums.is_empty();
    if !has_declared && read.dropped.is_empty() && default.is_none() {
        return None;
    }
    let mut this = Declared {
        source,
        read,
        scoping: crate::scoping::Scoping::read(program),
        edits: Edits::default(),
        behind: Vec::new(),
        parents: Vec::new(),
        is_changed: false,
    };
    if let Some((export, at, word)) = default {
        this.replace(export, Vec::new());
        this.replace(Span::new(at, at), vec![word.into()]);
    }
    this.enums();
    this.classes();
    for span in std::mem::take(&mut this.read.dropped) {
        this.replace(span, Vec::new());
    }
    if !this.is_changed {
        return None;
    }
    let changed = this.edits.write(source, &this.behind);
    Some(changed)
}

/// An `export default name` of a function at the top: its range, where the function is declared,
/// and what stands there to export it.
fn default_export(program: &Program<'_>) -> Option<(Span, u32, &'static str)> {
    let (export, name) = program.body.iter().find_map(|statement| match statement {
        Statement::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultDeclarationKind::Identifier(id) => Some((export.span, id.name)),
            _ => None,
        },
        _ => None,
    })?;
    program.body.iter().find_map(|statement| match statement {
        Statement::FunctionDeclaration(function) => {
            let is_it = function.id.as_ref().is_some_and(|id| id.name == name);
            is_it.then_some((export, function.span.start, "export default "))
        }
        Statement::VariableDeclaration(variables) => match &variables.declarations[..] {
            [one] if one.id.get_identifier_name() == Some(name) => {
                one.init.as_ref().and_then(crate::atom::code_of)?;
                let is_const = variables.kind == VariableDeclarationKind::Const;
                is_const.then_some((export, variables.span.start, "export "))
            }
            _ => None,
        },
        _ => None,
    })
}

/// Whether a statement of a module declares a function without its body.
fn is_overload(statement: &Statement<'_>) -> bool {
    let function = match statement {
        Statement::FunctionDeclaration(function) => Some(function),
        Statement::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => Some(function),
            _ => None,
        },
        Statement::ExportDeclaration(export) => match &export.declaration {
            Declaration::FunctionDeclaration(function) => Some(function),
            _ => None,
        },
        _ => None,
    };
    function.is_some_and(|function| function.body.is_none())
}

impl Declared<'_> {
    fn replace(&mut self, span: Span, pieces: Vec<Piece>) {
        self.is_changed = true;
        self.edits.replace(span, pieces);
    }

    fn text(&self, span: Span) -> &str {
        let text = self.source.get(span.start as usize..span.end as usize);
        text.unwrap_or_default()
    }

    /// A name that the source does not contain.
    fn fresh(&self, base: &str) -> String {
        let mut name = base.to_owned();
        while self.source.contains(&name) {
            name.push('_');
        }
        name
    }

    /// The class that a name at this offset stands for.
    fn class_at(&self, at: u32) -> Option<usize> {
        let places = &self.scoping.variable(at)?.places;
        let is_it = |class: &Class| places.binary_search(&class.id.start).is_ok();
        self.read.classes.iter().position(is_it)
    }
}
