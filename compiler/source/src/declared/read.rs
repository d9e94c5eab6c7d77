//! Collects the classes and enums of a source.

use oxc_ast::ast::{
    AssignmentTargetPropertyIdentifier, BinaryExpression, BindingPattern, Class as ClassNode,
    ClassElement, ClassType, Expression, ExpressionStatement, Function, FunctionType,
    IdentifierReference, IfStatement, MethodDefinitionKind, MethodDefinitionType, NewExpression,
    ObjectProperty, Program, PropertyDefinitionType, PropertyKey, Statement,
    StaticMemberExpression, TSClassImplements, TSEnumDeclaration, TSInterfaceDeclaration, TSType,
    TSTypeAliasDeclaration, ThisExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::BinaryOperator;
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Method,
    Accessor,
    Field,
}

pub(super) struct Element {
    pub(super) span: Span,
    pub(super) key: Span,
    pub(super) name: String,
    pub(super) sort: Sort,
    pub(super) is_static: bool,
    pub(super) value: Option<Span>,
}

pub(super) struct Constructor {
    pub(super) span: Span,
    pub(super) params: Span,
    pub(super) count: usize,
    pub(super) has_rest: bool,
    /// Fields that parameters declare, with the modifiers before the name.
    pub(super) fields: Vec<(String, Span)>,
    /// Range within the braces.
    pub(super) body: Span,
    /// The statement `super(...)`, and its arguments.
    pub(super) call: Option<(Span, Option<Span>)>,
}

pub(super) struct Class {
    pub(super) id: Span,
    pub(super) name: String,
    pub(super) span: Span,
    /// The statement, with `export`.
    pub(super) whole: Span,
    pub(super) parent: Option<Span>,
    /// End of the name and its type parameters.
    pub(super) head: u32,
    pub(super) body: Span,
    pub(super) is_abstract: bool,
    /// Number of the scope that declares it; 1 for the top.
    pub(super) scope: usize,
    pub(super) constructor: Option<Constructor>,
    pub(super) elements: Vec<Element>,
    /// Calls of `super(...)`, in any place.
    pub(super) calls: usize,
    /// Members of `super`: the member, its name.
    pub(super) supers: Vec<(Span, String)>,
    pub(super) this: Vec<Span>,
    /// `this` in `new this(...)` of a static method, and `this.constructor` in `new`.
    pub(super) makers: Vec<Span>,
    /// `this.constructor.name` and `new.target.name`.
    pub(super) names: Vec<Span>,
    /// Statements that only matter for prototypes and stacks of errors.
    pub(super) noise: Vec<Span>,
    /// True if it has a part that is not rewritten.
    pub(super) is_odd: bool,
}

pub(super) struct Member {
    pub(super) id: Span,
    pub(super) name: String,
    pub(super) value: Result<f64, String>,
}

pub(super) struct Enum {
    pub(super) id: Span,
    pub(super) name: String,
    pub(super) span: Span,
    /// `None` if a value is not constant.
    pub(super) members: Option<Vec<Member>>,
}

#[derive(Default)]
pub(super) struct Reader {
    pub(super) classes: Vec<Class>,
    pub(super) enums: Vec<Enum>,
    /// Declarations without a body.
    pub(super) dropped: Vec<Span>,
    /// `new` of a name: the expression, and the name.
    pub(super) news: Vec<(Span, Span)>,
    /// `x instanceof Name`: the test, the value if it is a name or `this`, and the class.
    pub(super) tests: Vec<(Span, Option<Span>, Span)>,
    /// Names that are read as values, and whether they stand for their key, too.
    pub(super) values: Vec<(Span, bool)>,
    /// Names whose members are read.
    pub(super) members: Vec<(Span, String)>,
    /// Classes around, or a function in which `this` is another object.
    around: Vec<Option<usize>>,
    is_static: bool,
    scopes: Vec<usize>,
    count: usize,
    whole: Option<Span>,
}

impl Reader {
    pub(super) fn read(program: &Program<'_>) -> Reader {
        let mut reader = Reader::default();
        reader.visit_program(program);
        reader
    }

    fn class(&mut self) -> Option<&mut Class> {
        let number = self.around.last().copied().flatten()?;
        self.classes.get_mut(number)
    }

    fn add(&mut self, class: &ClassNode<'_>) {
        let Some(id) = &class.id else {
            return;
        };
        let mut is_odd = !class.decorators.is_empty();
        let mut elements = Vec::new();
        let mut constructor = None;
        for element in &class.body.body {
            match element {
                ClassElement::MethodDefinition(method) => {
                    let is_bare = method.value.body.is_none()
                        || method.r#type == MethodDefinitionType::TSAbstractMethodDefinition;
                    if is_bare {
                        self.dropped.push(method.span);
                        continue;
                    }
                    if method.kind == MethodDefinitionKind::Constructor {
                        constructor = read_constructor(&method.value, method.span);
                        is_odd |= constructor.is_none();
                        continue;
                    }
                    let Some(name) = name_of(&method.key).filter(|_| !method.computed) else {
                        is_odd = true;
                        continue;
                    };
                    let sort = match method.kind {
                        MethodDefinitionKind::Method => Sort::Method,
                        _ => Sort::Accessor,
                    };
                    elements.push(Element {
                        span: method.span,
                        key: method.key.span(),
                        name,
                        sort,
                        is_static: method.r#static,
                        value: None,
                    });
                }
                ClassElement::PropertyDefinition(field) => {
                    let is_bare = field.declare
                        || field.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition;
                    if is_bare {
                        self.dropped.push(field.span);
                        continue;
                    }
                    let Some(name) = name_of(&field.key).filter(|_| !field.computed) else {
                        is_odd = true;
                        continue;
                    };
                    elements.push(Element {
                        span: field.span,
                        key: field.key.span(),
                        name,
                        sort: Sort::Field,
                        is_static: field.r#static,
                        value: field.value.as_ref().map(|value| value.span()),
                    });
                }
                _ => is_odd = true,
            }
        }
        let parent = class
            .heritage
            .as_ref()
            .map(|parent| parent.expression.span());
        let types = class.type_parameters.as_ref();
        let whole = self.whole.filter(|whole| whole.end >= class.span.end);
        self.classes.push(Class {
            id: id.span,
            name: id.name.to_string(),
            span: class.span,
            whole: whole.unwrap_or(class.span),
            parent,
            head: types.map_or(id.span.end, |types| types.span.end),
            body: class.body.span,
            is_abstract: class.r#abstract,
            scope: self.scopes.last().copied().unwrap_or_default(),
            constructor,
            elements,
            calls: 0,
            supers: Vec::new(),
            this: Vec::new(),
            makers: Vec::new(),
            names: Vec::new(),
            noise: Vec::new(),
            is_odd,
        });
    }
}

/// True for `Error.captureStackTrace` and `Object.setPrototypeOf`.
fn is_of_stacks(expr: &Expression<'_>) -> bool {
    let Expression::StaticMemberExpression(member) = expr.get_inner_expression() else {
        return false;
    };
    let Expression::Identifier(id) = &member.object else {
        return false;
    };
    let parts = (id.name.as_str(), member.property.name.as_str());
    matches!(
        parts,
        ("Error", "captureStackTrace") | ("Object", "setPrototypeOf")
    )
}

fn name_of(key: &PropertyKey<'_>) -> Option<String> {
    match key {
        PropertyKey::PrivateIdentifier(id) => Some(format!("#{}", id.name)),
        PropertyKey::StaticIdentifier(id) => Some(id.name.to_string()),
        _ => None,
    }
}

fn read_constructor(function: &Function<'_>, span: Span) -> Option<Constructor> {
    let body = function.body.as_ref()?;
    let mut fields = Vec::new();
    for param in &function.params.items {
        if param.accessibility.is_some() || param.readonly {
            let BindingPattern::BindingIdentifier(id) = &param.pattern else {
                return None;
            };
            fields.push((
                id.name.to_string(),
                Span::new(param.span.start, id.span.start),
            ));
        }
    }
    let call = body.statements.iter().find_map(|statement| {
        let Statement::ExpressionStatement(statement) = statement else {
            return None;
        };
        let Expression::CallExpression(call) = &statement.expression else {
            return None;
        };
        if !matches!(call.callee, Expression::Super(_)) {
            return None;
        }
        let first = call.arguments.first().map(|first| first.span().start);
        let last = call.arguments.last().map(|last| last.span().end);
        let args = first.zip(last).map(|(start, end)| Span::new(start, end));
        Some((statement.span, args))
    });
    Some(Constructor {
        span,
        params: function.params.span,
        count: function.params.items.len(),
        has_rest: function.params.rest.is_some(),
        fields,
        body: Span::new(body.span.start + 1, body.span.end.saturating_sub(1)),
        call,
    })
}

impl<'a> Visit<'a> for Reader {
    fn enter_scope(&mut self, _: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        self.count += 1;
        self.scopes.push(self.count);
    }

    fn leave_scope(&mut self) {
        self.scopes.pop();
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        if matches!(it, Statement::ExportDeclaration(_)) {
            self.whole = Some(it.span());
        }
        walk::walk_statement(self, it);
        if matches!(it, Statement::ExportDeclaration(_)) {
            self.whole = None;
        }
    }

    fn visit_class(&mut self, it: &ClassNode<'a>) {
        let outer = self.classes.len();
        if it.r#type == ClassType::ClassDeclaration && !it.declare {
            self.add(it);
        }
        if it.declare {
            self.dropped.push(it.span);
            return;
        }
        let number = (self.classes.len() > outer).then_some(outer);
        self.around.push(number);
        // What the class extends is no value.
        self.enter_scope(ScopeFlags::empty(), &Cell::new(None));
        if let Some(parent) = &it.heritage
            && !matches!(parent.expression, Expression::Identifier(_))
        {
            self.visit_expression(&parent.expression);
        }
        self.visit_class_body(&it.body);
        self.leave_scope();
        self.around.pop();
    }

    fn visit_method_definition(&mut self, it: &oxc_ast::ast::MethodDefinition<'a>) {
        if it.computed {
            self.visit_property_key(&it.key);
        }
        let outer = std::mem::replace(&mut self.is_static, it.r#static);
        walk::walk_function(self, &it.value, ScopeFlags::Function);
        self.is_static = outer;
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if it.r#type == FunctionType::TSDeclareFunction || it.declare {
            let whole = self.whole.filter(|whole| whole.end >= it.span.end);
            self.dropped.push(whole.unwrap_or(it.span));
            return;
        }
        self.around.push(None);
        walk::walk_function(self, it, flags);
        self.around.pop();
    }

    fn visit_this_expression(&mut self, it: &ThisExpression) {
        if let Some(class) = self.class() {
            class.this.push(it.span);
        }
    }

    fn visit_call_expression(&mut self, it: &oxc_ast::ast::CallExpression<'a>) {
        if matches!(it.callee, Expression::Super(_))
            && let Some(class) = self.class()
        {
            class.calls += 1;
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        if let Expression::CallExpression(call) = it.expression.get_inner_expression()
            && is_of_stacks(&call.callee)
            && let Some(class) = self.class()
        {
            class.noise.push(it.span);
        }
        walk::walk_expression_statement(self, it);
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        if is_of_stacks(&it.test)
            && it.alternate.is_none()
            && let Some(class) = self.class()
        {
            class.noise.push(it.span);
        }
        walk::walk_if_statement(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        let name = it.property.name.to_string();
        let is_class = match &it.object {
            Expression::StaticMemberExpression(inner) => {
                matches!(inner.object, Expression::ThisExpression(_))
                    && inner.property.name == "constructor"
            }
            Expression::NewTarget(_) => true,
            _ => false,
        };
        if name == "name"
            && is_class
            && let Some(class) = self.class()
        {
            class.names.push(it.span);
        }
        match &it.object {
            Expression::Super(_) => {
                if let Some(class) = self.class() {
                    class.supers.push((it.span, name));
                }
            }
            Expression::Identifier(id) => self.members.push((id.span, name)),
            _ => walk::walk_static_member_expression(self, it),
        }
    }

    fn visit_computed_member_expression(
        &mut self,
        it: &oxc_ast::ast::ComputedMemberExpression<'a>,
    ) {
        if matches!(it.object, Expression::Super(_))
            && let Some(class) = self.class()
        {
            class.is_odd = true;
        }
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        let is_own = match &it.callee {
            Expression::ThisExpression(_) => self.is_static,
            Expression::StaticMemberExpression(member) => {
                let is_this = matches!(member.object, Expression::ThisExpression(_));
                is_this && member.property.name == "constructor" && !self.is_static
            }
            _ => false,
        };
        if is_own && let Some(class) = self.class() {
            class.makers.push(it.callee.span());
        }
        match &it.callee {
            Expression::Identifier(id) => self.news.push((it.span, id.span)),
            callee => self.visit_expression(callee),
        }
        self.visit_arguments(&it.arguments);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        if it.operator == BinaryOperator::Instanceof
            && let Expression::Identifier(class) = &it.right
        {
            let left = match it.left.get_inner_expression() {
                Expression::Identifier(_) | Expression::ThisExpression(_) => Some(it.left.span()),
                _ => None,
            };
            self.tests.push((it.span, left, class.span));
            return self.visit_expression(&it.left);
        }
        walk::walk_binary_expression(self, it);
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if it.shorthand
            && let Expression::Identifier(id) = &it.value
        {
            return self.values.push((id.span, true));
        }
        walk::walk_object_property(self, it);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.values.push((it.span, false));
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        it: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        self.values.push((it.binding.span, true));
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        match it.declare {
            true => self.dropped.push(it.span),
            false => self.enums.push(super::enums::read(it)),
        }
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_ts_interface_declaration(&mut self, _: &TSInterfaceDeclaration<'a>) {}

    fn visit_ts_type_alias_declaration(&mut self, _: &TSTypeAliasDeclaration<'a>) {}
}
