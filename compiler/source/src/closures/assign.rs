//! Reads assignments and patterns into a model.

use super::flow::{Key, Made, Node};
use super::model::{Access, Declared, Model, Place, Sink, Store};
use hashbrown::HashMap;
use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, AssignmentTargetMaybeDefault, AssignmentTargetProperty,
    BindingPattern, Expression, ForStatementLeft, SimpleAssignmentTarget, Statement,
    VariableDeclaration, VariableDeclarationKind,
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::AssignmentOperator;
use std::rc::Rc;

impl<'a> Model<'a> {
    /// Reads a member that is deleted: from then on it is missing.
    pub(super) fn deleted(&mut self, expr: &'a Expression<'a>) {
        let plain = self.plain;
        match expr.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                let object = self.owner(&member.object);
                let key = Key::Name(member.property.name.to_string());
                self.flow.store(object, key, plain);
            }
            Expression::ComputedMemberExpression(member) => {
                let object = self.expr(&member.object, Place::Value);
                self.expr(&member.expression, Place::Value);
                self.flow.store(object, Key::Any, plain);
            }
            other => {
                self.expr(other, Place::Value);
            }
        }
    }

    pub(super) fn assignment(&mut self, assignment: &'a AssignmentExpression<'a>) -> Node {
        let right = self.expr(&assignment.right, Place::Value);
        let is_plain = assignment.operator == AssignmentOperator::Assign;
        let whole = is_plain.then(|| (assignment.span, assignment.right.span()));
        if !is_plain && !assignment.operator.is_logical() {
            self.sinks
                .push((right, assignment.right.span(), Sink::Operand));
            let node = self.plain;
            self.assign(&assignment.left, node, None);
            return self.plain;
        }
        self.assign(&assignment.left, right, whole);
        if is_plain {
            return right;
        }
        // The old value stays if the operator does not assign.
        let old = match &assignment.left {
            AssignmentTarget::AssignmentTargetIdentifier(id) => {
                let symbol = self.lookup(id.name.as_str());
                symbol.map(|symbol| self.symbols[symbol].node)
            }
            AssignmentTarget::StaticMemberExpression(member) => {
                let span = member.object.span();
                let object = self.nodes.get(&(span.start, span.end)).copied();
                let key = Key::Name(member.property.name.to_string());
                object.map(|object| self.flow.load(object, key))
            }
            AssignmentTarget::ComputedMemberExpression(member) => {
                let span = member.object.span();
                let object = self.nodes.get(&(span.start, span.end)).copied();
                object.map(|object| self.flow.load(object, Key::Any))
            }
            _ => None,
        };
        let old = old.unwrap_or(self.plain);
        self.both([old, right])
    }

    /// Adds the flow of a value to an assignment's target.
    pub(crate) fn assign(
        &mut self,
        target: &'a AssignmentTarget<'a>,
        value: Node,
        whole: Option<(Span, Span)>,
    ) {
        match target {
            AssignmentTarget::ArrayAssignmentTarget(array) => {
                for (index, element) in array.elements.iter().enumerate() {
                    if let Some(element) = element {
                        let item = self.position(value, index);
                        self.assign_default(element, item);
                    }
                }
                if let Some(rest) = &array.rest {
                    let item = self.flow.items(value);
                    let list = self.flow.list(item);
                    self.assign(&rest.target, list, None);
                }
            }
            AssignmentTarget::ObjectAssignmentTarget(object) => {
                for property in &object.properties {
                    match property {
                        AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(property) => {
                            let id = &property.binding;
                            let key = Key::Name(id.name.to_string());
                            self.pattern_access(id.span, value, &key);
                            let member = self.flow.load(value, key);
                            if let Some(init) = &property.init {
                                let default = self.expr(init, Place::Value);
                                self.flow.edge(default, member);
                            }
                            if let Some(symbol) = self.refer(id.name.as_str(), id.span, true, true)
                            {
                                let node = self.symbols[symbol].node;
                                self.flow.edge(member, node);
                            }
                        }
                        AssignmentTargetProperty::AssignmentTargetPropertyProperty(property) => {
                            let key = match property.name.static_name() {
                                Some(name) if !property.computed => Key::Name(name.to_string()),
                                _ => {
                                    if let Some(key) = property.name.as_expression() {
                                        self.expr(key, Place::Value);
                                    }
                                    Key::Any
                                }
                            };
                            self.pattern_access(property.name.span(), value, &key);
                            let member = self.flow.load(value, key);
                            self.assign_default(&property.binding, member);
                        }
                    }
                }
                if let Some(rest) = &object.rest {
                    let site = self.flow.object(Made::Object);
                    let named = object
                        .properties
                        .iter()
                        .filter_map(|property| match property {
                            AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(
                                property,
                            ) => Some(property.binding.name.to_string()),
                            AssignmentTargetProperty::AssignmentTargetPropertyProperty(
                                property,
                            ) => property.name.static_name().map(|name| name.to_string()),
                        });
                    let named = Rc::new(named.collect());
                    self.sinks.push((value, object.span, Sink::Keys));
                    self.flow.copy(value, site, named);
                    let node = self.flow.holding(site);
                    self.assign(&rest.target, node, None);
                }
            }
            target => {
                if let Some(simple) = target.as_simple_assignment_target() {
                    self.simple_target(simple, value, whole);
                }
            }
        }
    }

    pub(super) fn assign_default(
        &mut self,
        target: &'a AssignmentTargetMaybeDefault<'a>,
        value: Node,
    ) {
        match target {
            AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(inner) => {
                let default = self.expr(&inner.init, Place::Value);
                let both = self.both([value, default]);
                self.assign(&inner.binding, both, None);
            }
            target => {
                if let Some(target) = target.as_assignment_target() {
                    self.assign(target, value, None);
                }
            }
        }
    }

    pub(super) fn simple_target(
        &mut self,
        target: &'a SimpleAssignmentTarget<'a>,
        value: Node,
        whole: Option<(Span, Span)>,
    ) {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => {
                if let Some(symbol) = self.refer(id.name.as_str(), id.span, true, false) {
                    let node = self.symbols[symbol].node;
                    self.flow.edge(value, node);
                }
            }
            SimpleAssignmentTarget::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                self.store_to(member.span, &member.object, name, value, whole);
            }
            SimpleAssignmentTarget::PrivateFieldExpression(member) => {
                let name = self.private_name(member.field.span);
                self.store_to(member.span, &member.object, name, value, whole);
            }
            SimpleAssignmentTarget::ComputedMemberExpression(member) => {
                let object = self.expr(&member.object, Place::Value);
                let key = self.expr(&member.expression, Place::Value);
                self.sinks
                    .push((key, member.expression.span(), Sink::Operand));
                self.flow.store(object, Key::Any, value);
                self.flow.store_item(object, value);
            }
            SimpleAssignmentTarget::TSAsExpression(_)
            | SimpleAssignmentTarget::TSSatisfiesExpression(_)
            | SimpleAssignmentTarget::TSNonNullExpression(_)
            | SimpleAssignmentTarget::TSTypeAssertion(_) => self.foreign(target.span()),
        }
    }

    pub(super) fn store_to(
        &mut self,
        span: Span,
        object: &'a Expression<'a>,
        name: &'a str,
        value: Node,
        whole: Option<(Span, Span)>,
    ) {
        let target = self.owner(object);
        self.stores.push(Store {
            whole,
            member: span,
            object: object.span(),
            target,
            name,
            is_plain: whole.is_some(),
        });
        self.flow.store(target, Key::Name(name.to_owned()), value);
    }

    /// The item at a position of what a pattern takes apart.
    pub(crate) fn position(&mut self, value: Node, index: usize) -> Node {
        let item = self.flow.load(value, Key::Name(index.to_string()));
        let pairs = self.flow.map_pairs(value);
        self.flow.edge(pairs, item);
        item
    }

    /// Records a member that a pattern reads: a pattern calls no getter.
    pub(crate) fn pattern_access(&mut self, span: Span, target: Node, key: &Key) {
        if let Key::Name(_) = key {
            let name = self.source.get(span.start as usize..span.end as usize);
            self.accesses.push(Access {
                span: Span::new(span.start, span.start),
                object: span,
                target,
                name: name.unwrap_or_default(),
                is_optional: false,
            });
        }
    }

    /// Adds the flow of a value into the names of a pattern.
    pub(crate) fn bind(&mut self, pattern: &'a BindingPattern<'a>, value: Node) {
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                if let Some(symbol) = self.declared.get(&id.span.start).copied() {
                    let node = self.symbols[symbol].node;
                    self.flow.edge(value, node);
                }
            }
            BindingPattern::ObjectPattern(object) => {
                for property in &object.properties {
                    let key = match property.key.static_name() {
                        Some(name) if !property.computed => Key::Name(name.to_string()),
                        _ => {
                            if let Some(key) = property.key.as_expression() {
                                self.expr(key, Place::Value);
                            }
                            Key::Any
                        }
                    };
                    self.pattern_access(property.key.span(), value, &key);
                    let member = self.flow.load(value, key);
                    self.bind(&property.value, member);
                }
                if let Some(rest) = &object.rest {
                    let site = self.flow.object(Made::Object);
                    let named = object.properties.iter();
                    let named = named.filter_map(|property| property.key.static_name());
                    let named = named.map(|name| name.to_string()).collect();
                    self.sinks.push((value, object.span, Sink::Keys));
                    self.flow.copy(value, site, Rc::new(named));
                    let node = self.flow.holding(site);
                    self.bind(&rest.argument, node);
                }
            }
            BindingPattern::ArrayPattern(array) => {
                for (index, element) in array.elements.iter().enumerate() {
                    if let Some(element) = element {
                        let item = self.position(value, index);
                        self.bind(element, item);
                    }
                }
                if let Some(rest) = &array.rest {
                    let item = self.flow.items(value);
                    let list = self.flow.list(item);
                    self.bind(&rest.argument, list);
                }
            }
            BindingPattern::AssignmentPattern(inner) => {
                let default = self.expr(&inner.right, Place::Value);
                let both = self.flow.node();
                self.flow.edge(value, both);
                self.flow.edge(default, both);
                self.bind(&inner.left, both);
            }
        }
    }

    pub(super) fn head(&mut self, variables: &'a VariableDeclaration<'a>, declared: Declared) {
        let is_const = variables.kind == VariableDeclarationKind::Const;
        if variables.kind == VariableDeclarationKind::Var {
            self.foreign(variables.span);
        }
        for one in &variables.declarations {
            self.pattern_names(&one.id, declared, is_const);
        }
    }

    pub(super) fn each(
        &mut self,
        left: &'a ForStatementLeft<'a>,
        item: Node,
        body: &'a Statement<'a>,
    ) {
        self.scopes.push(HashMap::new());
        match left {
            ForStatementLeft::VariableDeclaration(variables) => {
                self.head(variables, Declared::Each(body.span()));
                if let Some(one) = variables.declarations.first() {
                    self.bind(&one.id, item);
                }
            }
            left => {
                if let Some(target) = left.as_assignment_target() {
                    self.assign(target, item, None);
                }
            }
        }
        self.scoped(&[body]);
        self.scopes.pop();
    }
}
