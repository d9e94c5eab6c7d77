//! What a source declares and uses, as far as the removal of sugar needs it.

use super::format::{Format, format_of};
use crate::scoping::Scoping;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{
    ArrowFunctionExpression, BindingIdentifier, BindingPattern, CallExpression,
    ComputedMemberExpression, Expression, ForOfStatement, FormalParameters, Function, FunctionType,
    IdentifierReference, ObjectProperty, SpreadElement, StaticMemberExpression, ThisExpression,
    VariableDeclaration, VariableDeclarationKind, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan as _;
use oxc_syntax::scope::ScopeFlags;

/// Function that stands for the top of a source.
pub(super) const TOP: u32 = u32::MAX;

/// Functions are known by their offset, and names by theirs.
pub(super) struct Facts<'a> {
    pub(super) scoping: Scoping,
    /// Function in which each name stands.
    pub(super) owner: HashMap<u32, u32>,
    /// Declarations of each name.
    pub(super) bindings: HashMap<&'a str, Vec<u32>>,
    /// Declarations by `var`, and by parameters.
    pub(super) vars: HashSet<u32>,
    pub(super) params: HashSet<u32>,
    /// Declarations of functions: name and function.
    functions: HashMap<u32, u32>,
    /// Names that stand for their key, too.
    pub(super) short: HashSet<u32>,
    /// Functions that use `this`.
    this: HashSet<u32>,
    /// Uses of `arguments` in each function, and how many of them a list can serve.
    pub(super) arguments: HashMap<u32, (Vec<u32>, usize)>,
    /// Constants that hold a formatter: name and what it does.
    formats: HashMap<u32, Format>,
    /// Names of which the member is read that a formatter has.
    format_uses: HashSet<u32>,
    is_var: bool,
    is_const: bool,
    current: u32,
    /// Function whose `this` and `arguments` are visible.
    own: u32,
}

impl Facts<'_> {
    pub(super) fn new(scoping: Scoping) -> Self {
        Facts {
            scoping,
            owner: HashMap::new(),
            bindings: HashMap::new(),
            vars: HashSet::new(),
            params: HashSet::new(),
            functions: HashMap::new(),
            short: HashSet::new(),
            this: HashSet::new(),
            arguments: HashMap::new(),
            formats: HashMap::new(),
            format_uses: HashSet::new(),
            is_var: false,
            is_const: false,
            current: TOP,
            own: TOP,
        }
    }

    /// True for a name that the source does not declare.
    pub(super) fn is_free(&self, expr: &Expression<'_>, name: &str) -> bool {
        matches!(expr.get_inner_expression(), Expression::Identifier(id)
            if id.name == name && self.scoping.variable(id.span.start).is_none())
    }

    /// Declarations of the variable at this offset.
    pub(super) fn declarations(&self, at: u32, name: &str) -> Vec<u32> {
        let all = self.bindings.get(name).into_iter().flatten().copied();
        let places = self.scoping.variable(at).map(|known| &known.places);
        all.filter(|one| places.is_some_and(|places| places.contains(one)))
            .collect()
    }

    /// True for the name of a function without `this` that is never set.
    pub(super) fn is_function(&self, expr: &Expression<'_>) -> bool {
        let Expression::Identifier(id) = expr.get_inner_expression() else {
            return false;
        };
        let Some([only]) = self
            .declarations(id.span.start, id.name.as_str())
            .first_chunk::<1>()
            .copied()
        else {
            return false;
        };
        let function = self.functions.get(&only);
        !self.scoping.is_set(only) && function.is_some_and(|at| !self.this.contains(at))
    }

    pub(super) fn uses_this(&self, function: u32) -> bool {
        self.this.contains(&function)
    }

    /// The formatter that a declaration declares, if only its method is used.
    pub(super) fn format_at(&self, at: u32) -> Option<Format> {
        let format = *self.formats.get(&at)?;
        let mut uses = self.scoping.variable(at)?.places.iter();
        let is_use = |place: &u32| *place == at || self.format_uses.contains(place);
        uses.all(is_use).then_some(format)
    }

    /// The formatter that an expression gives.
    pub(super) fn format(&self, expr: &Expression<'_>) -> Option<Format> {
        match expr.get_inner_expression() {
            Expression::Identifier(id) => {
                let at = self.scoping.variable(id.span.start)?.places.first()?;
                self.format_at(*at)
            }
            expr => format_of(expr, &|expr, name| self.is_free(expr, name)),
        }
    }

    fn allow_arguments(&mut self, expr: &Expression<'_>) {
        if matches!(expr.get_inner_expression(), Expression::Identifier(id) if id.name == "arguments")
        {
            self.arguments.entry(self.own).or_default().1 += 1;
        }
    }
}

impl<'a> Visit<'a> for Facts<'a> {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let (FunctionType::FunctionDeclaration, Some(id)) = (it.r#type, &it.id) {
            self.functions.insert(id.span.start, it.span.start);
        }
        let current = std::mem::replace(&mut self.current, it.span.start);
        let own = std::mem::replace(&mut self.own, it.span.start);
        walk::walk_function(self, it, flags);
        (self.current, self.own) = (current, own);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let current = std::mem::replace(&mut self.current, it.span.start);
        walk::walk_arrow_function_expression(self, it);
        self.current = current;
    }

    fn visit_formal_parameters(&mut self, it: &FormalParameters<'a>) {
        let patterns = it.items.iter().map(|item| &item.pattern);
        let patterns = patterns.chain(it.rest.iter().map(|rest| &rest.rest.argument));
        for id in patterns.flat_map(BindingPattern::get_binding_identifiers) {
            self.params.insert(id.span.start);
        }
        walk::walk_formal_parameters(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        self.is_var = it.kind == VariableDeclarationKind::Var;
        self.is_const = it.kind == VariableDeclarationKind::Const;
        walk::walk_variable_declaration(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if self.is_var {
            let names = it.id.get_binding_identifiers().into_iter();
            self.vars.extend(names.map(|id| id.span.start));
        }
        if let (BindingPattern::BindingIdentifier(id), Some(init)) = (&it.id, &it.init) {
            let init = init.get_inner_expression();
            if crate::atom::code_of(init).is_some() {
                self.functions.insert(id.span.start, init.span().start);
            }
            let is_free = |expr: &Expression<'_>, name: &str| self.is_free(expr, name);
            if let (true, Some(format)) = (self.is_const, format_of(init, &is_free)) {
                self.formats.insert(id.span.start, format);
            }
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.owner.insert(it.span.start, self.current);
        let known = self.bindings.entry(it.name.as_str()).or_default();
        known.push(it.span.start);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.owner.insert(it.span.start, self.current);
        if it.name == "arguments" {
            let uses = self.arguments.entry(self.own).or_default();
            uses.0.push(it.span.start);
        }
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if it.shorthand {
            self.short.insert(it.span.start);
        }
        walk::walk_object_property(self, it);
    }

    fn visit_this_expression(&mut self, _: &ThisExpression) {
        self.this.insert(self.own);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if let Expression::Identifier(id) = it.object.get_inner_expression() {
            match it.property.name.as_str() {
                "length" => self.allow_arguments(&it.object),
                "compare" | "format" => {
                    self.format_uses.insert(id.span.start);
                }
                _ => {}
            }
        }
        walk::walk_static_member_expression(self, it);
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        self.allow_arguments(&it.object);
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_spread_element(&mut self, it: &SpreadElement<'a>) {
        self.allow_arguments(&it.argument);
        walk::walk_spread_element(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.allow_arguments(&it.right);
        walk::walk_for_of_statement(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = it.callee.get_inner_expression() {
            let index = match member.property.name.as_str() {
                // `Array.from(arguments)`, `Array.prototype.slice.call(arguments)`.
                "from" | "call" => 0,
                "apply" => 1,
                _ => usize::MAX,
            };
            if let Some(given) = it.arguments.get(index).and_then(|one| one.as_expression()) {
                self.allow_arguments(given);
            }
        }
        walk::walk_call_expression(self, it);
    }
}
