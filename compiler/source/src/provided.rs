//! Classes of JavaScript that stand behind a source which needs them: `RegExp` for regular
//! expressions as values, `URL` and `URLSearchParams` (D126, D127).
//!
//! They are written in the subset, and closures make functions of them. Only a source that could
//! not be lowered as it stands gets them. A literal in a place that an atom serves stays one.

use crate::closures::{self, Holds};
use crate::edits::{Changed, Edits, Piece};
use crate::quote::quoted;
use crate::scoping::Scoping;
use hashbrown::{HashMap, HashSet};
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, BinaryExpression, BindingIdentifier, BindingPattern, CallExpression, Expression,
    ForOfStatement, IdentifierReference, NewExpression, Program, RegExpFlags, RegExpLiteral,
    SpreadElement, TemplateLiteral, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::BinaryOperator;
use std::ops::Range;

const REGEXP: &str = include_str!("library/regexp.js");
const URL: &str = include_str!("library/url.js");

/// Methods of texts that take regular expressions.
pub(crate) const METHODS: [&str; 6] = [
    "match",
    "matchAll",
    "search",
    "replace",
    "replaceAll",
    "split",
];

const CLASSES: [&str; 3] = ["RegExp", "URL", "URLSearchParams"];

/// Methods of texts that convert what they are given, as those of lists do not.
const COMPARE: [&str; 6] = [
    "includes",
    "startsWith",
    "endsWith",
    "indexOf",
    "lastIndexOf",
    "concat",
];

/// The flags that regular expressions have here.
const FLAGS: [(RegExpFlags, char); 6] = [
    (RegExpFlags::G, 'g'),
    (RegExpFlags::I, 'i'),
    (RegExpFlags::M, 'm'),
    (RegExpFlags::S, 's'),
    (RegExpFlags::U, 'u'),
    (RegExpFlags::Y, 'y'),
];

/// A source with the classes that it needs at its end; `None` if it needs none.
pub(crate) fn with_classes<'a>(
    source: &'a str,
    program: &Program<'a>,
    (agent, library): (u32, Range<u32>),
) -> Option<Changed> {
    let scoping = Scoping::read(program);
    let mut uses = Uses::default();
    uses.visit_program(program);
    let free = |name: &str| {
        let first = uses.names.get(name).copied();
        first.filter(|_| !uses.declared.contains(name))
    };
    let values = uses.values(&scoping);
    let regex = values.first().map(|literal| literal.span);
    let regex = regex.or_else(|| free("RegExp"));
    let url = free("URL").or_else(|| free("URLSearchParams"));
    regex.or(url)?;
    // Only the functions that are called stand behind the source.
    let write = |edits: Edits, called: &HashSet<String>| {
        let mut appended: Vec<(Span, Vec<Piece>)> = Vec::new();
        for (at, library) in [(regex, REGEXP), (url, URL)] {
            let code = at.map(|at| (at, needed(library, called)));
            appended.extend(code.map(|(at, code)| (at, vec![code.into()])));
        }
        edits.write(source, &appended)
    };
    let mut called: HashSet<String> = HashSet::new();
    called.extend(regex.map(|_| "RegExp".to_owned()));
    let named = CLASSES.iter().filter(|name| free(name).is_some());
    called.extend(named.map(|name| (*name).to_owned()));
    let literals = || {
        let mut edits = Edits::default();
        for literal in &values {
            edits.replace(literal.span, vec![made(literal).into()]);
        }
        for name in uses.bare.iter().filter(|_| free("RegExp").is_some()) {
            edits.replace(*name, vec!["new RegExp".into()]);
        }
        edits
    };
    let first = write(literals(), &called);
    // Which methods of texts take a regular expression, and what is iterated, is known when the
    // values are.
    let allocator = Allocator::default();
    let parsed = crate::parse(&allocator, &first.text);
    if parsed.panicked || parsed.diagnostics.has_errors() {
        return None;
    }
    let of = (first.destination(agent)?, first.behind(library.start));
    let known = closures::values(&first.text, &parsed.program, of)?;
    let known = known.into_iter();
    let known = known.map(|(at, holds)| (first.origin(at), holds));
    let known: HashMap<(u32, u32), Holds<'_>> = known.collect();
    let at = |span: Span| known.get(&(span.start, span.end));
    let is_of = |span: Span, class: &str| at(span).is_some_and(|at| at.classes.contains(&class));
    let converts = |at: &&Span| CLASSES.iter().any(|class| is_of(**at, class));
    if uses.compared.iter().any(|at| converts(&at)) {
        return None;
    }
    let mut edits = literals();
    for call in uses.calls.iter().filter(|call| is_of(call.first, "RegExp")) {
        let calls = call.second.and_then(at).is_some_and(|at| at.has_functions);
        let word = if calls { "regexBy" } else { "regexOn" };
        let name = format!("{word}_{}", call.method);
        let mut pieces: Vec<Piece> = Vec::new();
        if call.is_optional {
            if !call.is_name {
                return None;
            }
            pieces.extend([
                "(".into(),
                call.object.into(),
                " === undefined || ".into(),
                call.object.into(),
                " === null ? undefined : ".into(),
            ]);
        }
        pieces.extend([
            format!("{name}(").into(),
            call.object.into(),
            ", ".into(),
            call.arguments.into(),
            if call.is_optional { "))" } else { ")" }.into(),
        ]);
        edits.replace(call.whole, pieces);
        called.insert(name);
    }
    let iterated = uses.iterated.iter();
    for at in iterated.filter(|at| is_of(**at, "URLSearchParams")) {
        let pieces = vec!["urlEntries_(".into(), Piece::Inner(*at), ")".into()];
        edits.wrap(*at, pieces);
        called.insert("urlEntries_".to_owned());
    }
    for at in uses.texts.iter().filter(converts) {
        edits.wrap(
            *at,
            vec!["(".into(), Piece::Inner(*at), ").toString()".into()],
        );
    }
    Some(write(edits, &called))
}

/// The parts of a library that these names need.
fn needed(library: &str, called: &HashSet<String>) -> String {
    // A part begins with `class` or `function` at the start of a line.
    let mut parts: Vec<String> = Vec::new();
    for line in library.lines() {
        let begins = line.starts_with("class ") || line.starts_with("function ");
        match parts.last_mut().filter(|_| !begins) {
            Some(part) => part.push_str(&format!("\n{line}")),
            None => parts.push(format!("\n{line}")),
        }
    }
    let name = |part: &String| {
        let mut words = part.split([' ', '(', '{']);
        words.nth(1).unwrap_or_default().to_owned()
    };
    let mut kept: HashSet<String> = called.clone();
    loop {
        let before = kept.len();
        for part in &parts {
            if kept.contains(&name(part)) {
                let others = parts.iter().map(&name);
                kept.extend(others.filter(|other| part.contains(&format!("{other}("))));
            }
        }
        if kept.len() == before {
            break;
        }
    }
    parts
        .into_iter()
        .filter(|part| kept.contains(&name(part)))
        .collect()
}

/// The expression that makes the value of a literal.
fn made(literal: &Literal<'_>) -> String {
    let mut text = b"new RegExp(".to_vec();
    quoted(literal.pattern.as_bytes(), &mut text);
    let flags = FLAGS
        .iter()
        .filter(|(flag, _)| literal.flags.contains(*flag));
    let flags: String = flags.map(|(_, c)| c).collect();
    text.extend(format!(", '{flags}')").bytes());
    String::from_utf8_lossy(&text).into_owned()
}

struct Literal<'a> {
    span: Span,
    pattern: &'a str,
    flags: RegExpFlags,
    /// The constant that it is the value of.
    constant: Option<u32>,
}

/// A call of a method of texts.
struct CallInfo {
    whole: Span,
    object: Span,
    arguments: Span,
    first: Span,
    second: Option<Span>,
    method: String,
    is_optional: bool,
    is_name: bool,
}

/// What a source does with regular expressions.
#[derive(Default)]
struct Uses<'a> {
    literals: Vec<Literal<'a>>,
    /// Starts of literals that an atom serves.
    served: HashSet<u32>,
    /// Starts of names that an atom serves if they are constants with other flags than these.
    names_served: HashMap<u32, RegExpFlags>,
    /// Constants by the start of their literal.
    constants: HashMap<u32, u32>,
    calls: Vec<CallInfo>,
    /// What is iterated.
    iterated: Vec<Span>,
    /// What becomes text.
    texts: Vec<Span>,
    /// What a method of a text or of a list compares or adds: a text method would make a text of
    /// it without a word.
    compared: Vec<Span>,
    /// `RegExp` in calls without `new`.
    bare: Vec<Span>,
    names: HashMap<String, Span>,
    declared: HashSet<String>,
}

impl<'a> Uses<'a> {
    /// The literals that have to be values.
    fn values(&self, scoping: &Scoping) -> Vec<&Literal<'a>> {
        let is_served = |literal: &Literal<'a>| match literal.constant {
            None => self.served.contains(&literal.span.start),
            Some(at) => scoping.variable(at).is_some_and(|variable| {
                let mut places = variable.places.iter().filter(|place| **place != at);
                places.all(|place| {
                    let barred = self.names_served.get(place);
                    barred.is_some_and(|barred| !literal.flags.intersects(*barred))
                })
            }),
        };
        let known = FLAGS
            .iter()
            .fold(RegExpFlags::empty(), |all, (flag, _)| all | *flag);
        let literals = self.literals.iter();
        let literals = literals.filter(|literal| known.contains(literal.flags));
        literals.filter(|literal| !is_served(literal)).collect()
    }
}

impl<'a> Visit<'a> for Uses<'a> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() {
            let method = member.property.name.as_str();
            let state = RegExpFlags::G | RegExpFlags::Y;
            let subject = match method {
                "test" | "exec" => Some((member.object.get_inner_expression(), state)),
                _ if METHODS.contains(&method) => {
                    let first = call.arguments.first().and_then(Argument::as_expression);
                    first.map(|first| (first.get_inner_expression(), RegExpFlags::Y))
                }
                _ => None,
            };
            match subject {
                Some((Expression::RegExpLiteral(literal), barred)) => {
                    let stays = method == "exec" || METHODS.contains(&method);
                    let barred = if stays { barred - state } else { barred };
                    if !literal.regex.flags.intersects(barred) {
                        self.served.insert(literal.span.start);
                    }
                }
                Some((Expression::Identifier(name), barred)) => {
                    self.names_served.insert(name.span.start, barred);
                }
                _ => {}
            }
            if COMPARE.contains(&method) {
                let arguments = call.arguments.iter();
                self.compared
                    .extend(arguments.map(|argument| argument.span()));
            }
            if METHODS.contains(&method)
                && let (Some(first), Some(last)) = (call.arguments.first(), call.arguments.last())
            {
                self.calls.push(CallInfo {
                    whole: call.span,
                    object: member.object.span(),
                    arguments: Span::new(first.span().start, last.span().end),
                    first: first.span(),
                    second: call.arguments.get(1).map(|second| second.span()),
                    method: method.to_owned(),
                    is_optional: member.optional || call.optional,
                    is_name: matches!(member.object, Expression::Identifier(_)),
                });
            }
        }
        if let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression()
            && let Expression::Identifier(object) = &member.object
            && matches!(
                (object.name.as_str(), member.property.name.as_str()),
                ("Object", "fromEntries") | ("Array", "from")
            )
        {
            self.iterated
                .extend(call.arguments.first().map(|first| first.span()));
        }
        if let Expression::Identifier(id) = &call.callee {
            let first = call.arguments.first().map(|first| first.span());
            match id.name.as_str() {
                "String" => self.texts.extend(first),
                "RegExp" => self.bare.push(id.span),
                _ => {}
            }
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        if matches!(&new.callee, Expression::Identifier(id) if matches!(id.name.as_str(), "Map" | "Set" | "URLSearchParams"))
        {
            self.iterated
                .extend(new.arguments.first().map(|first| first.span()));
        }
        walk::walk_new_expression(self, new);
    }

    fn visit_template_literal(&mut self, text: &TemplateLiteral<'a>) {
        self.texts
            .extend(text.expressions.iter().map(|part| part.span()));
        walk::walk_template_literal(self, text);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        if binary.operator == BinaryOperator::Addition {
            self.texts.extend([binary.left.span(), binary.right.span()]);
        }
        walk::walk_binary_expression(self, binary);
    }

    fn visit_spread_element(&mut self, spread: &SpreadElement<'a>) {
        self.iterated.push(spread.argument.span());
        walk::walk_spread_element(self, spread);
    }

    fn visit_for_of_statement(&mut self, each: &ForOfStatement<'a>) {
        self.iterated.push(each.right.span());
        walk::walk_for_of_statement(self, each);
    }

    fn visit_variable_declarator(&mut self, one: &VariableDeclarator<'a>) {
        if let (BindingPattern::BindingIdentifier(id), Some(Expression::RegExpLiteral(literal))) =
            (&one.id, &one.init)
        {
            self.constants.insert(literal.span.start, id.span.start);
        }
        if let (BindingPattern::ArrayPattern(_), Some(init)) = (&one.id, &one.init) {
            self.iterated.push(init.span());
        }
        walk::walk_variable_declarator(self, one);
    }

    fn visit_reg_exp_literal(&mut self, literal: &RegExpLiteral<'a>) {
        self.literals.push(Literal {
            span: literal.span,
            pattern: literal.regex.pattern.text.as_str(),
            flags: literal.regex.flags,
            constant: self.constants.get(&literal.span.start).copied(),
        });
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        self.names.entry(name.name.to_string()).or_insert(name.span);
    }

    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        self.declared.insert(name.name.to_string());
    }
}
