//! Finds the generators of a source and the places that consume them: `for ... of`, a spread,
//! `Array.from`, `new Set`, `new Map`, `Object.fromEntries`, and `yield*`.

use super::facts::Facts;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{
    Argument, ArrowFunctionExpression, AwaitExpression, BindingPattern, CallExpression, Expression,
    ExpressionStatement, ForOfStatement, ForStatementLeft, Function, NewExpression, Program,
    SpreadElement, TryStatement, VariableDeclarationKind, VariableDeclarator, YieldExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan as _;
use oxc_syntax::scope::ScopeFlags;

/// The generators of a source, all of which can be rewritten.
pub(super) struct Generators {
    /// Names of generators by the offsets of their functions.
    names: HashMap<u32, u32>,
    /// Names of generators whose consumers wait for them.
    waiting: HashSet<u32>,
    /// Name of the generator of each call that consumes one, by the offset of the callee.
    calls: HashMap<u32, u32>,
}

impl Generators {
    /// `None` if the source has no generator, or one that cannot be rewritten.
    pub(super) fn read(program: &Program<'_>, facts: &Facts<'_>) -> Option<Generators> {
        let mut found = Names::default();
        found.visit_program(program);
        let mut reader = Reader {
            facts,
            names: found.names,
            waiting: found.waiting,
            held: HashSet::new(),
            calls: HashMap::new(),
            uses: Vec::new(),
            frames: vec![(None, true)],
            loops: Vec::new(),
            caught: 0,
            is_refused: found.is_refused,
        };
        reader.visit_program(program);
        let is_called = |name: &u32| {
            let calls = reader.calls.values().filter(|of| *of == name).count();
            let variable = facts.scoping.variable(*name);
            variable.is_some_and(|one| !one.is_set && one.places.len() == calls + 1)
        };
        if reader.is_refused || reader.names.is_empty() || !reader.names.values().all(is_called) {
            return None;
        }
        reader.spread_waits()?;
        Some(Generators {
            names: reader.names,
            waiting: reader.waiting,
            calls: reader.calls,
        })
    }

    /// Whether the function at this offset is a generator, and whether consumers wait for it.
    pub(super) fn function(&self, at: u32) -> Option<bool> {
        self.names.get(&at).map(|name| self.waiting.contains(name))
    }

    /// Whether an expression consumes a generator, and whether it waits for it.
    pub(super) fn call<'i, 'a>(
        &self,
        expr: &'i Expression<'a>,
    ) -> Option<(&'i CallExpression<'a>, bool)> {
        let Expression::CallExpression(call) = expr.get_inner_expression() else {
            return None;
        };
        let name = self.calls.get(&call.callee.span().start)?;
        Some((call, self.waiting.contains(name)))
    }
}

/// The names of generators.
#[derive(Default)]
struct Names {
    names: HashMap<u32, u32>,
    waiting: HashSet<u32>,
    is_refused: bool,
}

impl Names {
    fn add(&mut self, name: u32, code: &Function<'_>) {
        self.is_refused |= code.params.rest.is_some();
        self.names.insert(code.span.start, name);
        if code.r#async {
            self.waiting.insert(name);
        }
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        let init = it.init.as_ref().map(Expression::get_inner_expression);
        if let (BindingPattern::BindingIdentifier(id), Some(Expression::FunctionExpression(code))) =
            (&it.id, init)
            && code.generator
        {
            self.add(id.span.start, code);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if it.generator && !self.names.contains_key(&it.span.start) {
            match &it.id {
                Some(id) if it.is_declaration() => self.add(id.span.start, it),
                _ => self.is_refused = true,
            }
        }
        walk::walk_function(self, it, flags);
    }
}

/// A place that consumes a generator.
struct Use {
    generator: u32,
    /// The generator around it.
    within: Option<u32>,
    /// Whether the function around it can wait.
    can_wait: bool,
    /// Whether the place waits, or the loop's body does.
    waits: bool,
    /// Whether it hands values on to the generator around it.
    yields: bool,
}

struct Reader<'f, 'a> {
    facts: &'f Facts<'a>,
    names: HashMap<u32, u32>,
    waiting: HashSet<u32>,
    /// Statements that yield.
    held: HashSet<u32>,
    calls: HashMap<u32, u32>,
    uses: Vec<Use>,
    /// Functions around the code: the generator, and whether it can wait.
    frames: Vec<(Option<u32>, bool)>,
    /// Loops over generators around the code, by their index in `uses`.
    loops: Vec<usize>,
    /// Blocks with a `catch` around the code.
    caught: usize,
    is_refused: bool,
}

impl<'a> Reader<'_, 'a> {
    /// Notes a place that consumes a generator; returns its index.
    fn consumed(&mut self, expr: &Expression<'a>, waits: bool) -> Option<usize> {
        let Expression::CallExpression(call) = expr.get_inner_expression() else {
            return None;
        };
        let Expression::Identifier(id) = &call.callee else {
            return None;
        };
        let variable = self.facts.scoping.variable(id.span.start)?;
        let mut names = self.names.values();
        let generator = *names.find(|name| variable.places.contains(name))?;
        let is_spread = |one: &Argument<'_>| matches!(one, Argument::SpreadElement(_));
        if call.optional || call.arguments.iter().any(is_spread) {
            self.is_refused = true;
        }
        let (within, can_wait) = self.frames.last().copied().unwrap_or_default();
        self.calls.insert(id.span.start, generator);
        self.uses.push(Use {
            generator,
            within,
            can_wait,
            waits,
            yields: false,
        });
        Some(self.uses.len() - 1)
    }

    /// Notes a place that takes all values into a list, as no asynchronous generator gives them.
    fn collected(&mut self, expr: &Expression<'a>) {
        if let Some(index) = self.consumed(expr, false) {
            self.is_refused |= self.waiting.contains(&self.uses[index].generator);
        }
    }

    fn framed(&mut self, frame: (Option<u32>, bool), read: impl FnOnce(&mut Self)) {
        self.frames.push(frame);
        let loops = std::mem::take(&mut self.loops);
        let caught = std::mem::take(&mut self.caught);
        read(self);
        (self.loops, self.caught) = (loops, caught);
        self.frames.pop();
    }

    fn waits(&mut self) {
        for index in &self.loops {
            self.uses[*index].waits = true;
        }
    }

    /// Decides which generators are asynchronous: a loop that waits makes the generator so, and
    /// that makes the one around the loop so. `None` if a function would have to wait that cannot.
    fn spread_waits(&mut self) -> Option<()> {
        loop {
            let before = self.waiting.len();
            for one in &self.uses {
                let around = one.within.filter(|name| self.waiting.contains(name));
                if one.waits || one.yields && around.is_some() {
                    self.waiting.insert(one.generator);
                }
                if let (Some(within), true) = (one.within, self.waiting.contains(&one.generator)) {
                    self.waiting.insert(within);
                }
            }
            if self.waiting.len() == before {
                break;
            }
        }
        let can = |one: &Use| {
            !self.waiting.contains(&one.generator) || one.can_wait || one.within.is_some()
        };
        self.uses.iter().all(can).then_some(())
    }
}

impl<'a> Visit<'a> for Reader<'_, 'a> {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        let generator = self.names.get(&it.span.start).copied();
        let frame = (generator, it.r#async);
        self.framed(frame, |reader| walk::walk_function(reader, it, flags));
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let frame = (None, it.r#async);
        self.framed(frame, |reader| {
            walk::walk_arrow_function_expression(reader, it);
        });
    }

    fn visit_try_statement(&mut self, it: &TryStatement<'a>) {
        let is_caught = usize::from(it.handler.is_some());
        self.caught += is_caught;
        self.visit_block_statement(&it.block);
        self.caught -= is_caught;
        if let Some(handler) = &it.handler {
            self.visit_catch_clause(handler);
        }
        if let Some(finalizer) = &it.finalizer {
            self.visit_block_statement(finalizer);
        }
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        if let Expression::YieldExpression(one) = &it.expression {
            // The `catch` of a generator gets no error of its consumer.
            self.is_refused |= self.caught > 0;
            self.held.insert(one.span.start);
        }
        walk::walk_expression_statement(self, it);
    }

    fn visit_yield_expression(&mut self, it: &YieldExpression<'a>) {
        self.is_refused |= !self.held.contains(&it.span.start);
        for index in &self.loops {
            self.uses[*index].yields = true;
        }
        if let (true, Some(argument)) = (it.delegate, &it.argument)
            && let Some(index) = self.consumed(argument, false)
        {
            let one = &mut self.uses[index];
            one.yields = true;
            let is_async = |name: &u32| self.waiting.contains(name);
            self.is_refused |=
                is_async(&one.generator) && !one.within.as_ref().is_some_and(is_async);
        }
        walk::walk_yield_expression(self, it);
    }

    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        self.waits();
        walk::walk_await_expression(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        let found = self.consumed(&it.right, it.r#await);
        if let Some(index) = found {
            let is_declared = matches!(&it.left, ForStatementLeft::VariableDeclaration(declared)
                if declared.kind != VariableDeclarationKind::Var);
            let is_async = self.waiting.contains(&self.uses[index].generator);
            // `for await` waits for the values of a plain generator.
            self.is_refused |= !is_declared || it.r#await != is_async;
        }
        self.visit_for_statement_left(&it.left);
        self.visit_expression(&it.right);
        if it.r#await {
            self.waits();
        }
        self.loops.extend(found);
        self.visit_statement(&it.body);
        self.loops
            .truncate(self.loops.len() - usize::from(found.is_some()));
    }

    fn visit_spread_element(&mut self, it: &SpreadElement<'a>) {
        self.collected(&it.argument);
        walk::walk_spread_element(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = it.callee.get_inner_expression()
            && let Some(first) = it.arguments.first().and_then(Argument::as_expression)
        {
            let is = |of: &str, name: &str| {
                member.property.name == name && self.facts.is_free(&member.object, of)
            };
            if is("Array", "from") || is("Object", "fromEntries") {
                self.collected(first);
            }
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        let mut sets = ["Set", "Map"].iter();
        if sets.any(|name| self.facts.is_free(&it.callee, name))
            && let [one] = &it.arguments[..]
            && let Some(list) = one.as_expression()
        {
            self.collected(list);
        }
        walk::walk_new_expression(self, it);
    }
}
