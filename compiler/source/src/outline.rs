//! Outline of a snippet: what an interactive session needs to know before it compiles one.

use crate::{SHALLOW, guard};
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    AssignmentOperator, AssignmentTarget, BindingPattern, Declaration, Expression, Statement,
    VariableDeclaration,
};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan as _, SourceType};

/// The top level of a snippet of the source form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Whether it is one expression, so that it has a value.
    pub is_expression: bool,
    /// Whether its end is missing: a bracket or a template is open.
    pub is_open: bool,
    /// The name that an expression `name = value` assigns.
    pub assigned: Option<String>,
    /// The variables that its statements declare.
    pub variables: Vec<String>,
    /// The functions and classes that it declares, with the text of the declaration.
    pub functions: Vec<(String, String)>,
}

/// Reads a snippet. A snippet that cannot be parsed has an empty outline, and its compiler reports
/// why.
///
/// ```
/// let outline = a99_source::outline("let a = 1, b = 2");
/// assert_eq!(outline.variables, ["a", "b"]);
/// assert!(a99_source::outline("1 + 1").is_expression);
/// assert!(a99_source::outline("[1, 2].map((n) => {").is_open);
/// ```
#[must_use]
pub fn outline(text: &str) -> Outline {
    if guard::names(text).is_ok_and(|words| words.nesting > SHALLOW) {
        return Outline::default();
    }
    // A statement cannot begin with the brackets of an object literal, and an expression can.
    let wrapped = format!("({text}\n)");
    parsed(&wrapped, |statements, _| match statements {
        [Statement::ExpressionStatement(one)] if !is_declaration(&one.expression) => {
            Some(Outline {
                is_expression: true,
                assigned: assigned(&one.expression),
                ..Outline::default()
            })
        }
        _ => None,
    })
    .ok()
    .flatten()
    .unwrap_or_else(|| match parsed(text, of_statements) {
        Ok(outline) => outline,
        Err(is_open) => Outline {
            is_open,
            ..Outline::default()
        },
    })
}

/// Parses a text. The error is whether the text ends too early.
fn parsed<T>(text: &str, read: impl Fn(&[Statement<'_>], &str) -> T) -> Result<T, bool> {
    let allocator = Allocator::default();
    let options = ParseOptions {
        preserve_parens: false,
        enable_ident_hashes: false,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(&allocator, text, SourceType::ts())
        .with_options(options)
        .parse();
    if !parsed.panicked && !parsed.diagnostics.has_errors() {
        return Ok(read(&parsed.program.body, text));
    }
    let end = text.trim_end().len();
    let errors = parsed.diagnostics.errors();
    let places = errors.flat_map(|found| found.labels.first().map(|at| at.offset() + at.len()));
    let is_at_end = places.into_iter().any(|place| place as usize >= end);
    Err(is_at_end && is_unclosed(text))
}

/// Whether more brackets open than close; quoted brackets count too, because a wrong guess only
/// asks for one more line.
fn is_unclosed(text: &str) -> bool {
    let depth = text.bytes().fold(0_i64, |depth, byte| match byte {
        b'(' | b'[' | b'{' => depth + 1,
        b')' | b']' | b'}' => depth - 1,
        _ => depth,
    });
    let ticks = text.bytes().filter(|byte| *byte == b'`').count();
    depth > 0 || ticks % 2 == 1
}

/// Whether an expression is a declaration if no brackets stand around it.
fn is_declaration(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::FunctionExpression(function) => function.id.is_some(),
        Expression::ClassExpression(class) => class.id.is_some(),
        _ => false,
    }
}

fn assigned(expression: &Expression<'_>) -> Option<String> {
    match expression {
        Expression::AssignmentExpression(set)
            if set.operator == AssignmentOperator::Assign
                && let AssignmentTarget::AssignmentTargetIdentifier(name) = &set.left =>
        {
            Some(name.name.to_string())
        }
        _ => None,
    }
}

fn of_statements(statements: &[Statement<'_>], text: &str) -> Outline {
    let mut outline = Outline::default();
    for statement in statements {
        let span = statement.span();
        let written = text.get(span.start as usize..span.end as usize);
        match statement.as_declaration() {
            Some(Declaration::FunctionDeclaration(function)) => {
                let name = function.id.iter().map(|id| id.name.to_string());
                outline.add_functions(name, written);
            }
            Some(Declaration::ClassDeclaration(class)) => {
                let name = class.id.iter().map(|id| id.name.to_string());
                outline.add_functions(name, written);
            }
            Some(Declaration::VariableDeclaration(list)) if declares_functions(list) => {
                let names = list.declarations.iter();
                let names = names.flat_map(|one| names_of(&one.id));
                outline.add_functions(names, written);
            }
            Some(Declaration::VariableDeclaration(list)) => {
                let names = list.declarations.iter();
                outline
                    .variables
                    .extend(names.flat_map(|one| names_of(&one.id)));
            }
            _ => {}
        }
    }
    outline
}

impl Outline {
    fn add_functions(&mut self, names: impl Iterator<Item = String>, written: Option<&str>) {
        let text = written.unwrap_or_default();
        self.functions
            .extend(names.map(|name| (name, text.to_owned())));
    }
}

/// Whether a declaration holds nothing but functions.
fn declares_functions(list: &VariableDeclaration<'_>) -> bool {
    list.declarations.iter().all(|one| {
        matches!(
            one.init,
            Some(
                Expression::ArrowFunctionExpression(_)
                    | Expression::FunctionExpression(_)
                    | Expression::ClassExpression(_)
            )
        )
    })
}

/// The names that a pattern binds. Recursion is bounded by [`SHALLOW`].
fn names_of(pattern: &BindingPattern<'_>) -> Vec<String> {
    let names = pattern.get_binding_identifiers().into_iter();
    names.map(|id| id.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::outline;

    #[test]
    fn snippets() {
        let set = outline("total = 1 + 2");
        assert!(set.is_expression && set.assigned.as_deref() == Some("total"));
        for text in [
            "{ a: 1 }",
            "await hash({ value: 'x' })",
            "f(1)",
            "x++",
            "a\n.b()",
        ] {
            let one = outline(text);
            assert!(one.is_expression && one.assigned.is_none(), "{text}");
        }
        let both = outline("const { a, b: [c] } = o; for (const d of a) { c.push(d) }");
        assert_eq!(
            (both.is_expression, both.variables),
            (false, vec!["a".into(), "c".into()])
        );
        let functions = outline("function f(x) { return x }\nconst g = (y) => y");
        let texts = ["function f(x) { return x }", "const g = (y) => y"];
        assert_eq!(
            functions
                .functions
                .iter()
                .map(|(_, text)| text)
                .collect::<Vec<_>>(),
            texts
        );
        for text in ["if (a) {", "f(1,", "`a", "const o = {\n  a: 1,"] {
            assert!(outline(text).is_open, "{text}");
        }
        for text in ["1 +* 2", "a)", ""] {
            assert_eq!(outline(text), Default::default(), "{text}");
        }
    }
}
