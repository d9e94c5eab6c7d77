//! Which declaration each name of a source stands for, by the scoping rules of JavaScript.
//!
//! Two variables of one name have nothing in common: what one is set to, or used for, says
//! nothing about the other.

use hashbrown::HashMap;
use oxc_ast::ast::{
    AssignmentTargetPropertyIdentifier, BindingIdentifier, CatchParameter, Function, FunctionType,
    IdentifierReference, Program, SimpleAssignmentTarget, VariableDeclaration,
    VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;

/// A variable, parameter or function of a source.
#[derive(Default)]
pub(crate) struct Variable {
    /// Where its name stands, the declaration included, in the order of the source.
    pub(crate) places: Vec<u32>,
    /// Whether something sets it other than its declaration.
    pub(crate) is_set: bool,
    /// Whether it is the parameter of a `catch`.
    pub(crate) is_caught: bool,
}

/// The variables of a source.
#[derive(Default)]
pub(crate) struct Scoping {
    variables: Vec<Variable>,
    /// The variable of each place.
    at: HashMap<u32, usize>,
}

impl Scoping {
    /// Reads a syntax tree, recursing as deep as it nests.
    pub(crate) fn read(program: &Program<'_>) -> Scoping {
        let mut reader = Reader::default();
        reader.visit_program(program);
        let mut scoping = reader.scoping;
        for variable in &mut scoping.variables {
            variable.places.sort_unstable();
        }
        scoping
    }

    /// The variable whose name stands at this byte.
    pub(crate) fn variable(&self, at: u32) -> Option<&Variable> {
        self.variables.get(*self.at.get(&at)?)
    }

    /// Whether the variable that is declared here may be set elsewhere.
    pub(crate) fn is_set(&self, at: u32) -> bool {
        self.variable(at).is_none_or(|variable| variable.is_set)
    }
}

/// A name that is read or set, until the scope that declares it ends.
struct Use<'a> {
    name: &'a str,
    at: u32,
    sets: bool,
}

#[derive(Default)]
struct Scope<'a> {
    /// Whether `var` declares here.
    is_function: bool,
    names: HashMap<&'a str, usize>,
    uses: Vec<Use<'a>>,
}

#[derive(Default)]
struct Reader<'a> {
    scopes: Vec<Scope<'a>>,
    scoping: Scoping,
    /// Whether the pattern at hand is that of a `var`, or of a `catch`.
    is_var: bool,
    is_caught: bool,
    /// The name of a function that its surroundings declare.
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
                self.visit_expression(init);
            }
        }
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
