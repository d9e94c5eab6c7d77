//! Removes sugar: forms that have a plainer equivalent in the subset, such as `var`, names of
//! function expressions, `arguments` and `f.call(null, x)`.
//!
//! Only a source that could not be lowered as it stands is rewritten, so that the programs of all
//! other sources stay the same.

mod calls;
mod facts;
mod format;
mod functions;
mod generators;
mod promises;
mod vars;
mod yields;

use crate::edits::{Changed, Edits, MAX_SOURCE, Piece};
use crate::scoping::Scoping;
use facts::Facts;
use generators::Generators;
use hashbrown::{HashMap, HashSet};
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, ArrowFunctionBody, ArrowFunctionExpression, BinaryExpression, BlockStatement,
    BreakStatement, CallExpression, ContinueStatement, DoWhileStatement, Expression,
    ExpressionStatement, ForInStatement, ForOfStatement, ForStatement, ForStatementInit,
    ForStatementLeft, Function, FunctionBody, IdentifierReference, NewExpression, Program,
    ReturnStatement, SpreadElement, Statement, StaticMemberExpression, SwitchStatement,
    VariableDeclaration, VariableDeclarationKind, VariableDeclarator, WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::BinaryOperator;
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;
use yields::Exit;

/// A function whose code is read; the first is the top of the source.
struct Frame {
    at: u32,
    /// Start of its statements.
    body: Option<u32>,
    /// Number of loops around the code that is read.
    loops: u32,
    /// Variables that it declares at its start.
    hoisted: Vec<String>,
    /// Name of the list that stands for `arguments`.
    arguments: Option<String>,
}

/// Where a declaration can be written before the code that is read.
#[derive(Clone, Copy)]
struct Spot {
    /// Number of scopes around it.
    depth: usize,
    /// Statement of a list.
    at: u32,
    /// The body of an arrow function, if it is an expression, with all that follows the arrow.
    body: Option<(Span, Span)>,
}

/// Where a declaration of variables stands.
#[derive(Clone, Copy)]
enum Place {
    Statement,
    /// The head of `for (var i = 0; ...)`, which is this loop.
    Head(Span),
    /// The head of `for (var x of list)`: the loop and its body.
    Each(Span, Span),
}

struct Sugar<'f, 'a> {
    source: &'a str,
    facts: &'f Facts<'a>,
    edits: Edits,
    appended: Vec<(Span, Vec<Piece>)>,
    taken: HashSet<&'a str>,
    made: HashSet<String>,
    /// Functions that stand behind the source, by their code.
    behind: HashMap<&'static str, String>,
    frames: Vec<Frame>,
    /// Blocks around the code, and whether they are those of a `switch`.
    blocks: Vec<(Span, bool)>,
    /// Number of scopes around the code.
    depth: usize,
    spot: Spot,
    place: Place,
    /// Name and declaration of the constant that holds the function at this offset.
    holder: Option<(u32, &'a str, u32)>,
    /// The generators of the source, if all can be rewritten.
    generators: Option<Generators>,
    exits: Vec<Exit>,
    /// True for a source with a form that cannot be rewritten.
    is_refused: bool,
}

/// Removes sugar from a source that the parser accepts; `None` if it has none.
pub(crate) fn rewrite(source: &str) -> Option<Changed> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = crate::parse(&allocator, source);
    if parsed.panicked || parsed.diagnostics.has_errors() {
        return None;
    }
    let mut facts = Facts::new(Scoping::read(&parsed.program));
    facts.visit_program(&parsed.program);
    let generators = match source.contains("yield") {
        true => Generators::read(&parsed.program, &facts),
        false => None,
    };
    let mut sugar = Sugar {
        source,
        facts: &facts,
        edits: Edits::default(),
        appended: Vec::new(),
        taken: crate::guard::names(source).ok()?.all,
        made: HashSet::new(),
        behind: HashMap::new(),
        frames: vec![Frame {
            at: facts::TOP,
            body: None,
            loops: 0,
            hoisted: Vec::new(),
            arguments: None,
        }],
        blocks: Vec::new(),
        depth: 0,
        spot: Spot {
            depth: 0,
            at: 0,
            body: None,
        },
        place: Place::Statement,
        holder: None,
        generators,
        exits: Vec::new(),
        is_refused: false,
    };
    sugar.visit_program(&parsed.program);
    if sugar.edits.is_empty() || sugar.is_refused {
        return None;
    }
    Some(sugar.edits.write(source, &sugar.appended))
}

impl<'a> Sugar<'_, 'a> {
    fn text(&self, at: Span) -> &'a str {
        let text = self.source.get(at.start as usize..at.end as usize);
        text.unwrap_or_default()
    }

    /// A name that the source does not contain.
    fn fresh(&mut self, base: &str) -> String {
        let mut number = 2;
        loop {
            let name = format!("{base}_{number}");
            if !self.taken.contains(name.as_str()) && self.made.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }

    /// The name of a function with this code behind the source.
    fn behind(&mut self, base: &str, code: &'static str, at: Span) -> String {
        if let Some(name) = self.behind.get(code) {
            return name.clone();
        }
        let name = self.fresh(base);
        let text = format!("function {name}{code}");
        self.appended.push((at, vec![text.into()]));
        self.behind.insert(code, name.clone());
        name
    }

    fn looped(&mut self, read: impl FnOnce(&mut Self)) {
        self.count_loops(1);
        self.exiting(Exit::Loop, read);
        self.count_loops(-1);
    }

    fn count_loops(&mut self, by: i32) {
        if let Some(frame) = self.frames.last_mut() {
            frame.loops = frame.loops.saturating_add_signed(by);
        }
    }

    fn block(&mut self, span: Span, is_switch: bool, read: impl FnOnce(&mut Self)) {
        self.blocks.push((span, is_switch));
        read(self);
        self.blocks.pop();
    }

    fn framed(&mut self, at: u32, body: Option<u32>, read: impl FnOnce(&mut Self)) {
        self.frames.push(Frame {
            at,
            body,
            loops: 0,
            hoisted: Vec::new(),
            arguments: None,
        });
        read(self);
        if let Some(frame) = self.frames.pop()
            && let Some(body) = frame.body
            && !frame.hoisted.is_empty()
        {
            let names = frame.hoisted.iter().map(|name| format!(" let {name};"));
            self.edits.insert(body, names.collect::<String>());
        }
    }
}

impl<'a> Visit<'a> for Sugar<'_, 'a> {
    fn enter_scope(&mut self, _: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        self.depth += 1;
    }

    fn leave_scope(&mut self) {
        self.depth -= 1;
    }

    fn visit_program(&mut self, it: &Program<'a>) {
        self.block(it.span, false, |sugar| walk::walk_program(sugar, it));
    }

    fn visit_statements(&mut self, it: &oxc_allocator::ArenaVec<'a, Statement<'a>>) {
        for statement in it {
            let here = Spot {
                depth: self.depth,
                at: statement.span().start,
                body: None,
            };
            let outer = std::mem::replace(&mut self.spot, here);
            self.visit_statement(statement);
            self.spot = outer;
        }
    }

    fn visit_block_statement(&mut self, it: &BlockStatement<'a>) {
        self.block(it.span, false, |sugar| {
            walk::walk_block_statement(sugar, it)
        });
    }

    fn visit_function_body(&mut self, it: &FunctionBody<'a>) {
        self.block(it.span, false, |sugar| walk::walk_function_body(sugar, it));
    }

    fn visit_switch_statement(&mut self, it: &SwitchStatement<'a>) {
        self.block(it.span, true, |sugar| {
            sugar.exiting(Exit::Switch, |sugar| walk::walk_switch_statement(sugar, it));
        });
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.looped(|sugar| walk::walk_while_statement(sugar, it));
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.looped(|sugar| walk::walk_do_while_statement(sugar, it));
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        if matches!(it.init, Some(ForStatementInit::VariableDeclaration(_))) {
            self.place = Place::Head(it.span);
        }
        self.looped(|sugar| walk::walk_for_statement(sugar, it));
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        if matches!(it.left, ForStatementLeft::VariableDeclaration(_)) {
            self.place = Place::Each(it.span, it.body.span());
        }
        self.count_loops(1);
        if !self.consumed(it, |sugar| walk::walk_for_of_statement(sugar, it)) {
            self.exiting(Exit::Loop, |sugar| walk::walk_for_of_statement(sugar, it));
        }
        self.count_loops(-1);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        if matches!(it.left, ForStatementLeft::VariableDeclaration(_)) {
            self.place = Place::Each(it.span, it.body.span());
        }
        self.looped(|sugar| walk::walk_for_in_statement(sugar, it));
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        let place = std::mem::replace(&mut self.place, Place::Statement);
        if it.kind == VariableDeclarationKind::Var {
            self.var(it, place);
        }
        self.formatter(it);
        walk::walk_variable_declaration(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        self.hold(it);
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.function_name(it);
        let body = it.body.as_ref().map(|body| body.span.start + 1);
        self.framed(it.span.start, body, |sugar| {
            sugar.arguments(it);
            let exit = sugar.generator(it);
            sugar.exiting(exit, |sugar| walk::walk_function(sugar, it, flags));
        });
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let is_block = matches!(it.body, ArrowFunctionBody::FunctionBody(_));
        let body = is_block.then(|| it.body.span().start + 1);
        let list = self.frames.last().and_then(|frame| frame.arguments.clone());
        let mut spot = self.spot;
        if !is_block {
            let head = it.return_type.as_ref().map_or(it.params.span, |ty| ty.span);
            let between = self.text(Span::new(head.end, it.body.span().start));
            let arrow = between.find("=>").map_or(0, |at| at as u32 + 2);
            let whole = Span::new(head.end + arrow, it.span.end);
            spot.depth = self.depth + 1;
            spot.body = Some((it.body.span(), whole));
        }
        let outer = std::mem::replace(&mut self.spot, spot);
        self.framed(it.span.start, body, |sugar| {
            if let Some(frame) = sugar.frames.last_mut() {
                frame.arguments = list;
            }
            let read = |sugar: &mut Self| walk::walk_arrow_function_expression(sugar, it);
            sugar.exiting(Exit::Function, read);
        });
        self.spot = outer;
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        let list = self.frames.last().and_then(|frame| frame.arguments.clone());
        if let (Some(list), "arguments") = (list, it.name.as_str()) {
            self.edits.replace(it.span, vec![list.into()]);
        }
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.yielded(it);
        walk::walk_expression_statement(self, it);
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        self.returned(it);
        walk::walk_return_statement(self, it);
    }

    fn visit_break_statement(&mut self, it: &BreakStatement<'a>) {
        self.broken(it);
    }

    fn visit_continue_statement(&mut self, it: &ContinueStatement<'a>) {
        self.continued(it);
    }

    fn visit_spread_element(&mut self, it: &SpreadElement<'a>) {
        self.collected(&it.argument);
        walk::walk_spread_element(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(_) = &it.callee
            && let Some(first) = it.arguments.first().and_then(Argument::as_expression)
        {
            self.collected(first);
        }
        self.call(it);
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        if let [one] = &it.arguments[..]
            && let Some(list) = one.as_expression()
        {
            self.collected(list);
        }
        self.promise(it);
        walk::walk_new_expression(self, it);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        if it.operator == BinaryOperator::Instanceof && self.facts.is_free(&it.right, "Function") {
            let left = it.left.span().into();
            let pieces = vec!["(typeof (".into(), left, ") === 'function')".into()];
            self.edits.replace(it.span, pieces);
        }
        walk::walk_binary_expression(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        self.member(it);
        walk::walk_static_member_expression(self, it);
    }
}
