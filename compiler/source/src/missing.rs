//! Refuses undeclared variables and unavailable globals.

use crate::atom::form_of;
use crate::codes;
use crate::lower::Lowerer;
use crate::words;
use oxc_span::Span;

impl<'a> Lowerer<'a> {
    /// Refuses a global of other systems.
    pub(crate) fn not_available(&mut self, js: &str, span: Span) {
        let why = match js {
            "setTimeout" | "setInterval" => ": a program waits only for calls",
            _ => "",
        };
        let message = format!("`{js}` is not available{why}");
        self.deny(codes::UNSUPPORTED, span, message, words::global_help(js));
    }

    /// Suggests a similar name: a visible variable, or one of these names.
    fn like(&self, js: &str, others: &[&str]) -> Option<String> {
        let known = self.scopes.iter().flat_map(|scope| scope.keys().copied());
        let known = known.chain(others.iter().copied());
        a99_core::diag::suggest(js, known).filter(|_| js.len() > 2)
    }

    /// Refuses the assignment of an undeclared name.
    pub(crate) fn unknown_target(&mut self, js: &str, span: Span) {
        let message = format!("`{js}` is not declared");
        let help = match self.like(js, &[]) {
            Some(like) => format!("did you mean `{like}`?"),
            None => format!("declare it before: `let {js}`"),
        };
        self.deny(codes::UNKNOWN_NAME, span, message, help);
    }

    pub(crate) fn unknown_name(&mut self, js: &str, span: Span) {
        if self.is_full() {
            return;
        }
        // Most forms of the tree are not functions in a source.
        let is_function = |op: &&str| *op == "callAll" || form_of(op).is_none();
        let atoms: Vec<&str> = self.ops.op_names().filter(is_function).collect();
        let like = self.like(js, &atoms);
        let help = match like {
            _ if words::library_help(js).is_some() => {
                words::library_help(js).unwrap_or_default().to_owned()
            }
            Some(like) => format!("did you mean `{like}`?"),
            None if words::is_type(js) => format!("a text stands in quotes: write `'{js}'`"),
            None if words::atom_for(js).is_some() => {
                words::atom_for(js).unwrap_or_default().to_owned()
            }
            None => "declare it, or take it as an argument: `function agent({ name })`".to_owned(),
        };
        let message = format!("`{js}` is not declared");
        self.deny(codes::UNKNOWN_NAME, span, message, help);
    }

    /// True if the source declares a method of this name; that of a class is a function by now.
    pub(crate) fn has_method(&self, name: &str) -> bool {
        let is_it = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("async ").unwrap_or(line);
            let rest = line.strip_prefix(name);
            line.ends_with('{') && rest.is_some_and(|rest| rest.starts_with('('))
        };
        self.source.contains(&format!("_{name}(")) || self.source.lines().any(is_it)
    }
}
