//! Resolves each name of a source to its declaration by the scoping rules of JavaScript.
//!
//! Facts are per variable: assignments and uses of one variable do not affect another variable
//! with the same name.

use a99_core::builtins::only_reads_lists;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{
    Argument, AssignmentExpression, AssignmentTargetPropertyIdentifier, BinaryExpression,
    BindingIdentifier, CallExpression, CatchParameter, ComputedMemberExpression,
    ConditionalExpression, Expression, ExpressionStatement, ForOfStatement, Function, FunctionType,
    IdentifierReference, IfStatement, LogicalExpression, Program, SimpleAssignmentTarget,
    SpreadElement, StaticMemberExpression, SwitchStatement, UnaryExpression, VariableDeclaration,
    VariableDeclarationKind, WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::operator::UnaryOperator;
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;

/// A variable, parameter or function of a source.
#[derive(Default)]
pub(crate) struct Variable {
    /// Offsets of the name, its declaration included, in the order of the source.
    pub(crate) places: Vec<u32>,
    /// True if code other than the declaration sets it.
    pub(crate) is_set: bool,
    /// True for the parameter of a `catch`.
    pub(crate) is_caught: bool,
}

/// Variables of a source and the facts about their uses.
#[derive(Default)]
pub(crate) struct Scoping {
    variables: Vec<Variable>,
    /// Variable of each offset.
    at: HashMap<u32, usize>,
    /// Offsets of names at which a list is only read.
    read: HashSet<u32>,
    /// Offsets of names whose value or presence the source tests.
    asked: HashSet<u32>,
}

impl Scoping {
    /// Resolves the names of a syntax tree; the recursion is as deep as the tree.
    pub(crate) fn read(program: &Program<'_>) -> Scoping {
        let mut reader = Reader::default();
        reader.visit_program(program);
        let mut scoping = reader.scoping;
        for variable in &mut scoping.variables {
            variable.places.sort_unstable();
        }
        scoping
    }

    /// Returns the variable whose name is at this offset.
    pub(crate) fn variable(&self, at: u32) -> Option<&Variable> {
        self.variables.get(*self.at.get(&at)?)
    }

    /// True if one variable alone has this name.
    pub(crate) fn is_only(&self, source: &str, name: &str) -> bool {
        let is_it = |variable: &&Variable| {
            let at = variable.places.first().map(|at| *at as usize);
            let text = at.and_then(|at| source.get(at..)).unwrap_or_default();
            let rest = text.strip_prefix(name);
            rest.is_some_and(|rest| {
                !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
            })
        };
        self.variables.iter().filter(is_it).count() == 1
    }

    /// True if the source tests the variable that is declared here: in a condition, a comparison,
    /// a default, or a check by a function.
    pub(crate) fn is_asked(&self, at: u32) -> bool {
        self.variable(at).is_none_or(|variable| {
            let mut places = variable.places.iter();
            places.any(|place| self.asked.contains(place))
        })
    }

    /// True if no code changes the list in the variable that is declared here, or passes it on.
    pub(crate) fn is_only_read(&self, at: u32) -> bool {
        self.variable(at).is_some_and(|variable| {
            let mut others = variable.places.iter().filter(|place| **place != at);
            others.all(|place| self.read.contains(place))
        })
    }

    /// True if code other than the declaration may set the variable that is declared here.
    pub(crate) fn is_set(&self, at: u32) -> bool {
        self.variable(at).is_none_or(|variable| variable.is_set)
    }
}

/// A name that is read or set, pending until the scope that declares it ends.
struct Use<'a> {
    name: &'a str,
    at: u32,
    sets: bool,
}

#[derive(Default)]
struct Scope<'a> {
    /// True for a scope in which `var` declares.
    is_function: bool,
    names: HashMap<&'a str, usize>,
    uses: Vec<Use<'a>>,
}

#[derive(Default)]
struct Reader<'a> {
    scopes: Vec<Scope<'a>>,
    scoping: Scoping,
    /// True while visiting the pattern of a `var`, or of a `catch`.
    is_var: bool,
    is_caught: bool,
    /// Name of a function declaration, which the enclosing scope declares.
    declared: Option<u32>,
}

impl<'a> Reader<'a> {
    fn declare(&mut self, id: &BindingIdentifier<'a>) {
        let scopes = self.scopes.iter_mut().rev();
        let mut scopes = scopes.skip_while(|scope| self.is_var && !scope.is_function);
        let Some(scope) = scopes.next() else {
            return;
        };
        let variables = &mut self.scoping.variables;
        let number = *scope.names.entry(id.name.as_str()).or_insert_with(|| {
            variables.push(Variable::default());
            variables.len() - 1
        });
        variables[number].places.push(id.span.start);
        variables[number].is_caught |= self.is_caught;
        self.scoping.at.insert(id.span.start, number);
    }

    /// Records a test of a name. If the value has an alias, that may test it, too.
    fn ask(&mut self, expr: &Expression<'a>) {
        if let Expression::Identifier(id) = expr.get_inner_expression() {
            self.scoping.asked.insert(id.span.start);
        }
    }

    /// Records a name whose list is only read.
    fn reads(&mut self, expr: &Expression<'a>) {
        if let Expression::Identifier(id) = expr.get_inner_expression() {
            self.scoping.read.insert(id.span.start);
        }
    }

    /// Records the receiver of a call of these methods as only read.
    fn reads_by(&mut self, call: &CallExpression<'a>, methods: impl Fn(&str) -> bool) {
        if let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression()
            && methods(member.property.name.as_str())
        {
            self.reads(&member.object);
        }
    }

    fn uses(&mut self, id: &IdentifierReference<'a>, sets: bool) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.uses.push(Use {
                name: id.name.as_str(),
                at: id.span.start,
                sets,
            });
        }
    }
}

impl<'a> Visit<'a> for Reader<'a> {
    fn enter_scope(&mut self, flags: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        self.scopes.push(Scope {
            is_function: flags.intersects(ScopeFlags::Function | ScopeFlags::Top),
            ..Scope::default()
        });
    }

    fn leave_scope(&mut self) {
        let Some(scope) = self.scopes.pop() else {
            return;
        };
        for one in scope.uses {
            if let Some(number) = scope.names.get(one.name) {
                let variable = &mut self.scoping.variables[*number];
                variable.places.push(one.at);
                variable.is_set |= one.sets;
                self.scoping.at.insert(one.at, *number);
            } else if let Some(outer) = self.scopes.last_mut() {
                outer.uses.push(one);
            }
        }
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let (FunctionType::FunctionDeclaration, Some(id)) = (it.r#type, &it.id) {
            self.declare(id);
            self.declared = Some(id.span.start);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        if self.declared != Some(it.span.start) {
            self.declare(it);
        }
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        for one in &it.declarations {
            let is_var = it.kind == VariableDeclarationKind::Var;
            let outer = std::mem::replace(&mut self.is_var, is_var);
            self.visit_binding_pattern(&one.id);
            self.is_var = outer;
            if let Some(init) = &one.init {
                self.ask(init);
                self.visit_expression(init);
            }
        }
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.reads(&it.right);
        walk::walk_for_of_statement(self, it);
    }

    fn visit_spread_element(&mut self, it: &SpreadElement<'a>) {
        self.reads(&it.argument);
        walk::walk_spread_element(self, it);
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        if let Expression::CallExpression(call) = &it.expression {
            self.reads_by(call, |name| matches!(name, "sort" | "reverse"));
        }
        walk::walk_expression_statement(self, it);
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.ask(&it.test);
        walk::walk_if_statement(self, it);
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.ask(&it.test);
        walk::walk_while_statement(self, it);
    }

    fn visit_switch_statement(&mut self, it: &SwitchStatement<'a>) {
        self.ask(&it.discriminant);
        walk::walk_switch_statement(self, it);
    }

    fn visit_conditional_expression(&mut self, it: &ConditionalExpression<'a>) {
        self.ask(&it.test);
        walk::walk_conditional_expression(self, it);
    }

    fn visit_logical_expression(&mut self, it: &LogicalExpression<'a>) {
        self.ask(&it.left);
        self.ask(&it.right);
        walk::walk_logical_expression(self, it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if matches!(
            it.operator,
            UnaryOperator::LogicalNot | UnaryOperator::Typeof
        ) {
            self.ask(&it.argument);
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        if it.operator.is_equality() || it.operator.is_in() || it.operator.is_instance_of() {
            self.ask(&it.left);
            self.ask(&it.right);
        }
        walk::walk_binary_expression(self, it);
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        self.ask(&it.right);
        walk::walk_assignment_expression(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if it.optional {
            self.ask(&it.object);
        }
        if it.property.name == "length" {
            self.reads(&it.object);
        }
        walk::walk_static_member_expression(self, it);
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if it.optional {
            self.ask(&it.object);
        }
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        let name = match it.callee.get_inner_expression() {
            Expression::Identifier(id) => id.name.as_str(),
            Expression::StaticMemberExpression(member) => member.property.name.as_str(),
            _ => "",
        };
        let asks = name
            .strip_prefix("is")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase()));
        if asks || name == "Boolean" {
            for argument in it.arguments.iter().filter_map(Argument::as_expression) {
                self.ask(argument);
            }
        }
        self.reads_by(it, only_reads_lists);
        walk::walk_call_expression(self, it);
    }

    fn visit_catch_parameter(&mut self, it: &CatchParameter<'a>) {
        self.is_caught = true;
        walk::walk_catch_parameter(self, it);
        self.is_caught = false;
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.uses(it, false);
    }

    fn visit_simple_assignment_target(&mut self, it: &SimpleAssignmentTarget<'a>) {
        match it {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => self.uses(id, true),
            other => walk::walk_simple_assignment_target(self, other),
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        it: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        self.uses(&it.binding, true);
        if let Some(init) = &it.init {
            self.visit_expression(init);
        }
    }
}
