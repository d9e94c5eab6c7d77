//! Reads the expressions of a source into a model.

use super::flow::{Key, Made, Node, PLAIN};
use super::model::{Access, InstanceTest, Model, Place, Ref, Sink, TypeTest, Use, Used};
use crate::atom::code_of;
use crate::lower::Code;
use oxc_ast::ast::{
    ArrayExpressionElement, BinaryExpression, ChainElement, Expression, ObjectExpression,
    ObjectPropertyKind, PropertyKind,
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, LogicalOperator, UnaryOperator};
use std::rc::Rc;

/// Builtin functions that can be values.
const BUILTINS: &[&str] = &[
    "Number",
    "String",
    "Boolean",
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
    "encodeURIComponent",
    "decodeURIComponent",
];

impl<'a> Model<'a> {
    /// Reads an expression and returns its node.
    pub(crate) fn expr(&mut self, expr: &'a Expression<'a>, place: Place) -> Node {
        let node = self.expr_node(expr, place);
        let span = expr.span();
        self.nodes.insert((span.start, span.end), node);
        node
    }

    pub(crate) fn both(&mut self, nodes: [Node; 2]) -> Node {
        let both = self.flow.node();
        for node in nodes {
            self.flow.edge(node, both);
        }
        both
    }

    /// Reads an expression that is tested. A function there is a mistake that lowering explains.
    pub(crate) fn test(&mut self, expr: &'a Expression<'a>) -> Node {
        if code_of(expr).is_some() {
            self.foreign(expr.span());
        }
        self.expr(expr, Place::Value)
    }

    fn expr_node(&mut self, expr: &'a Expression<'a>, place: Place) -> Node {
        match expr {
            Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::StringLiteral(_)
            | Expression::BigIntLiteral(_)
            | Expression::RegExpLiteral(_) => self.plain,
            Expression::TemplateLiteral(template) => {
                for part in &template.expressions {
                    let node = self.expr(part, Place::Value);
                    self.sinks.push((node, part.span(), Sink::Text));
                }
                self.plain
            }
            Expression::TaggedTemplateExpression(tagged) => {
                for part in &tagged.quasi.expressions {
                    let node = self.expr(part, Place::Value);
                    self.sinks.push((node, part.span(), Sink::Text));
                }
                self.plain
            }
            Expression::Identifier(id) => self.name(id.name.as_str(), id.span, place, false),
            Expression::ArrayExpression(array) => {
                let site = self.flow.object(Made::Items);
                let list = self.flow.holding(site);
                let mut is_spread = false;
                for (index, element) in array.elements.iter().enumerate() {
                    is_spread |= matches!(element, ArrayExpressionElement::SpreadElement(_));
                    let node = match element {
                        ArrayExpressionElement::SpreadElement(spread) => {
                            let list = self.expr(&spread.argument, Place::Value);
                            self.flow.items(list)
                        }
                        element => match element.as_expression() {
                            Some(expr) => self.expr(expr, Place::Value),
                            None => self.plain,
                        },
                    };
                    if is_spread {
                        self.flow.store_item(list, node);
                        continue;
                    }
                    let name = index.to_string();
                    let field = self.flow.field(site, &name);
                    self.flow.edge(node, field);
                    self.flow.give(site, &name);
                }
                list
            }
            Expression::ObjectExpression(object) => self.object(object),
            Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => {
                match code_of(expr) {
                    Some(code) => self.literal(code, place),
                    None => self.plain,
                }
            }
            Expression::BinaryExpression(binary) => self.binary(binary),
            Expression::LogicalExpression(logical) => {
                let left = self.test(&logical.left);
                let narrowed = self.narrowed(&logical.left);
                let outer = match logical.operator {
                    LogicalOperator::And => self.narrow(narrowed, true),
                    LogicalOperator::Or => self.narrow(narrowed, false),
                    LogicalOperator::Coalesce => self.narrowings.len(),
                };
                let right = self.expr(&logical.right, Place::Value);
                self.narrowings.truncate(outer);
                // A function is true, so that `&&` does not give it.
                let left = match logical.operator {
                    LogicalOperator::And => self.flow.only(left, false),
                    _ => left,
                };
                self.both([left, right])
            }
            Expression::ConditionalExpression(conditional) => {
                self.test(&conditional.test);
                let narrowed = self.narrowed(&conditional.test);
                let outer = self.narrow(narrowed, true);
                let yes = self.expr(&conditional.consequent, Place::Value);
                self.narrowings.truncate(outer);
                self.narrow(narrowed, false);
                let no = self.expr(&conditional.alternate, Place::Value);
                self.narrowings.truncate(outer);
                self.both([yes, no])
            }
            Expression::UnaryExpression(unary) => {
                if unary.operator == UnaryOperator::Delete {
                    self.deleted(&unary.argument);
                    return self.plain;
                }
                let node = self.expr(&unary.argument, Place::Value);
                match unary.operator {
                    UnaryOperator::Typeof => self.type_tests.push(TypeTest {
                        span: unary.span,
                        argument: &unary.argument,
                        node,
                    }),
                    UnaryOperator::LogicalNot => {
                        if code_of(&unary.argument).is_some() {
                            self.foreign(unary.span);
                        }
                    }
                    UnaryOperator::Void => {}
                    _ => self
                        .sinks
                        .push((node, unary.argument.span(), Sink::Operand)),
                }
                self.plain
            }
            Expression::UpdateExpression(update) => {
                let node = self.plain;
                self.simple_target(&update.argument, node, None);
                self.plain
            }
            Expression::AwaitExpression(inner) => self.expr(&inner.argument, Place::Value),
            Expression::ParenthesizedExpression(inner) => self.expr(&inner.expression, place),
            Expression::TSAsExpression(inner) => self.expr(&inner.expression, place),
            Expression::TSSatisfiesExpression(inner) => self.expr(&inner.expression, place),
            Expression::TSNonNullExpression(inner) => self.expr(&inner.expression, place),
            Expression::StaticMemberExpression(_)
            | Expression::ComputedMemberExpression(_)
            | Expression::PrivateFieldExpression(_) => self.member(expr, place),
            Expression::CallExpression(call) => self.call(call),
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::CallExpression(call) => {
                    let node = self.call(call);
                    self.nodes.insert((call.span.start, call.span.end), node);
                    self.flow.put(node, PLAIN);
                    node
                }
                ChainElement::TSNonNullExpression(inner) => self.expr(&inner.expression, place),
                ChainElement::StaticMemberExpression(inner) => {
                    let object = self.expr(&inner.object, Place::Value);
                    let name = inner.property.name.as_str();
                    self.static_member(
                        inner.span,
                        inner.object.span(),
                        object,
                        name,
                        inner.optional,
                    )
                }
                ChainElement::ComputedMemberExpression(inner) => {
                    let object = self.expr(&inner.object, Place::Value);
                    self.computed(object, &inner.expression)
                }
                ChainElement::PrivateFieldExpression(inner) => {
                    let object = self.expr(&inner.object, Place::Value);
                    let name = self.private_name(inner.field.span);
                    self.static_member(
                        inner.span,
                        inner.object.span(),
                        object,
                        name,
                        inner.optional,
                    )
                }
            },
            Expression::NewExpression(new) => self.new_object(new),
            Expression::AssignmentExpression(assignment) => self.assignment(assignment),
            Expression::SequenceExpression(sequence) => {
                let mut last = self.plain;
                for expr in &sequence.expressions {
                    last = self.expr(expr, Place::Value);
                }
                last
            }
            Expression::ThisExpression(this) => match self.this_of {
                Some(fun) => {
                    let symbol = self.this_symbol(fun);
                    self.refs.push(Ref {
                        symbol,
                        at: this.span,
                        fun: self.current,
                        sets: false,
                        is_short: false,
                    });
                    self.funs[fun].uses_this = true;
                    self.flow.callees[fun].this
                }
                None => {
                    self.foreign(this.span);
                    self.plain
                }
            },
            _ => {
                self.foreign(expr.span());
                self.plain
            }
        }
    }

    /// Reads a name.
    pub(crate) fn name(&mut self, name: &'a str, span: Span, place: Place, is_short: bool) -> Node {
        let Some(symbol) = self.refer(name, span, false, is_short) else {
            return match place {
                Place::Callee | Place::Definition => self.plain,
                place => self.builtin_value(name, span, place, is_short),
            };
        };
        self.uses.push(Use {
            span,
            place,
            fun: self.current,
            of: Used::Symbol(symbol),
            is_short,
        });
        let node = self.symbols[symbol].node;
        let narrowed = self
            .narrowings
            .iter()
            .rev()
            .find(|one| one.0 == symbol)
            .copied();
        match narrowed {
            Some((_, is_function)) => self.flow.only(node, is_function),
            None => node,
        }
    }

    /// Reads the name of a builtin function that gives no functions as a value.
    fn builtin_value(&mut self, name: &'a str, span: Span, place: Place, is_short: bool) -> Node {
        let is_known = BUILTINS.contains(&name)
            || name
                .strip_prefix("Math.")
                .is_some_and(|name| a99_core::builtins::function("Math", name).is_some());
        if !is_known {
            return self.plain;
        }
        let known = self.funs.iter().position(|fun| fun.builtin == Some(name));
        let fun = match known {
            Some(fun) => fun,
            None => {
                let fun = self.new_fun(None, span, 0);
                self.funs[fun].builtin = Some(name);
                let param = self.flow.node();
                self.sinks.push((param, span, Sink::Operand));
                let callee = &mut self.flow.callees[fun];
                callee.params = vec![param];
                callee.rest = Some(param);
                let result = callee.result;
                self.flow.put(result, PLAIN);
                fun
            }
        };
        self.uses.push(Use {
            span,
            place,
            fun: self.current,
            of: Used::Literal(fun),
            is_short,
        });
        if is_short {
            self.funs[fun].key = Some(span);
        }
        let site = self.flow.function_site(fun);
        self.flow.holding(site)
    }

    /// The variable whose type a test tests: whether it is a function if the test holds.
    pub(crate) fn narrowed(&self, test: &Expression<'a>) -> Option<(usize, bool)> {
        let Expression::BinaryExpression(binary) = test.get_inner_expression() else {
            return None;
        };
        let Expression::UnaryExpression(unary) = binary.left.get_inner_expression() else {
            return None;
        };
        let (Expression::Identifier(id), Expression::StringLiteral(text)) = (
            unary.argument.get_inner_expression(),
            binary.right.get_inner_expression(),
        ) else {
            return None;
        };
        let is_equal = match binary.operator {
            BinaryOperator::StrictEquality | BinaryOperator::Equality => true,
            BinaryOperator::StrictInequality | BinaryOperator::Inequality => false,
            _ => return None,
        };
        let symbol = self.lookup(id.name.as_str())?;
        let is_set = self.scoping.is_set(self.symbols[symbol].at.start);
        let is_typeof = unary.operator == UnaryOperator::Typeof && text.value == "function";
        (is_typeof && !is_set).then_some((symbol, is_equal))
    }

    /// Notes a variable's type in the code that is read next; returns the notes before.
    pub(crate) fn narrow(&mut self, narrowed: Option<(usize, bool)>, holds: bool) -> usize {
        let outer = self.narrowings.len();
        if let Some((symbol, is_function)) = narrowed {
            self.narrowings.push((symbol, is_function == holds));
        }
        outer
    }

    /// Reads a function literal.
    pub(crate) fn literal(&mut self, code: Code<'a>, place: Place) -> Node {
        let known = match place {
            Place::Definition => self.fun_at(code),
            _ => None,
        };
        if place == Place::Definition && known.is_none() && self.agent_at == Some(code.span().start)
        {
            self.body(0, code);
            return self.plain;
        }
        let fun = match known {
            Some(fun) => fun,
            None => self.new_fun(Some(code), code.span(), self.current),
        };
        if let Code::Function(function) = code
            && function.id.is_some()
        {
            // The name of a function expression is visible in it only.
            self.foreign(code.span());
        }
        if place != Place::Definition {
            self.funs[fun].whole = code.span();
        }
        self.uses.push(Use {
            span: code.span(),
            place,
            fun: self.current,
            of: Used::Literal(fun),
            is_short: false,
        });
        self.body(fun, code);
        let site = self.flow.function_site(fun);
        self.flow.holding(site)
    }

    fn object(&mut self, object: &'a ObjectExpression<'a>) -> Node {
        let site = self.flow.object(Made::Object);
        let holder = self.flow.holding(site);
        for (index, property) in object.properties.iter().enumerate() {
            match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    let node = self.expr(&spread.argument, Place::Value);
                    self.sinks.push((node, spread.argument.span(), Sink::Keys));
                    let later = object.properties[index..]
                        .iter()
                        .filter_map(|later| match later {
                            ObjectPropertyKind::ObjectProperty(later) if !later.computed => {
                                later.key.static_name().map(|name| name.to_string())
                            }
                            _ => None,
                        });
                    self.flow.copy(node, site, Rc::new(later.collect()));
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    if property.kind != PropertyKind::Init {
                        self.foreign(property.span);
                        continue;
                    }
                    let name = match property.computed {
                        true => None,
                        false => property.key.static_name().map(|name| name.to_string()),
                    };
                    if name.is_none()
                        && let Some(key) = property.key.as_expression()
                    {
                        let key_node = self.expr(key, Place::Value);
                        self.sinks.push((key_node, key.span(), Sink::Operand));
                    }
                    let value = match &property.value {
                        Expression::Identifier(id) if property.shorthand => {
                            let node = self.name(id.name.as_str(), id.span, Place::Value, true);
                            self.nodes.insert((id.span.start, id.span.end), node);
                            node
                        }
                        Expression::FunctionExpression(function) if property.method => {
                            if property.computed {
                                self.foreign(property.span);
                            }
                            let node = self.literal(Code::Function(function), Place::Value);
                            let uses = self.uses.iter_mut().rev();
                            if let Some(one) =
                                uses.into_iter().find(|one| one.span == function.span)
                            {
                                one.is_short = true;
                                one.span = property.span;
                                if let Used::Literal(fun) = one.of {
                                    self.funs[fun].key = Some(property.key.span());
                                }
                            }
                            node
                        }
                        value => self.expr(value, Place::Value),
                    };
                    match name {
                        Some(name) => {
                            let field = self.flow.field(site, &name);
                            self.flow.edge(value, field);
                            self.flow.give(site, &name);
                        }
                        None => self.flow.store(holder, Key::Any, value),
                    }
                }
            }
        }
        holder
    }

    fn binary(&mut self, binary: &'a BinaryExpression<'a>) -> Node {
        if binary.operator == BinaryOperator::Instanceof
            && let Expression::Identifier(id) = binary.right.get_inner_expression()
            && let Some(symbol) = self.lookup(id.name.as_str())
            && let super::model::Declared::Class(class) = self.symbols[symbol].declared
        {
            let node = self.expr(&binary.left, Place::Value);
            self.instance_tests.push(InstanceTest {
                span: binary.span,
                left: binary.left.span(),
                node,
                class,
            });
            return self.plain;
        }
        let left = self.expr(&binary.left, Place::Value);
        let right = self.expr(&binary.right, Place::Value);
        if binary.operator.is_equality() {
            self.equals.push((left, right, binary.span));
        } else if binary.operator == BinaryOperator::In {
            self.sinks.push((left, binary.left.span(), Sink::Operand));
            self.sinks.push((right, binary.right.span(), Sink::Keys));
        } else if binary.operator != BinaryOperator::Instanceof {
            self.sinks.push((left, binary.left.span(), Sink::Operand));
            self.sinks.push((right, binary.right.span(), Sink::Operand));
        }
        self.plain
    }

    /// Reads a member that is read.
    pub(crate) fn member(&mut self, expr: &'a Expression<'a>, place: Place) -> Node {
        match expr {
            Expression::StaticMemberExpression(member) => {
                if self.is_global_name(&member.object) {
                    let name = self.private_name(member.span);
                    return self.builtin_value(name, member.span, place, false);
                }
                let object = self.owner(&member.object);
                let name = member.property.name.as_str();
                let how = member.optional;
                self.static_member(member.span, member.object.span(), object, name, how)
            }
            Expression::PrivateFieldExpression(member) => {
                let object = self.owner(&member.object);
                let name = self.private_name(member.field.span);
                let how = member.optional;
                self.static_member(member.span, member.object.span(), object, name, how)
            }
            Expression::ComputedMemberExpression(member) => {
                let object = self.expr(&member.object, Place::Value);
                self.computed(object, &member.expression)
            }
            _ => self.plain,
        }
    }

    /// Reads the object of a member or method.
    pub(crate) fn owner(&mut self, object: &'a Expression<'a>) -> Node {
        self.owners.insert(object.span().start);
        self.expr(object, Place::Value)
    }

    /// The name of a private member with its sign.
    pub(crate) fn private_name(&self, span: Span) -> &'a str {
        let name = self.source.get(span.start as usize..span.end as usize);
        name.unwrap_or_default()
    }

    /// True for a name that the source does not declare.
    pub(crate) fn is_global_name(&self, expr: &Expression<'a>) -> bool {
        match expr.get_inner_expression() {
            Expression::Identifier(id) => self.lookup(id.name.as_str()).is_none(),
            _ => false,
        }
    }

    fn static_member(
        &mut self,
        span: Span,
        object: Span,
        target: Node,
        name: &'a str,
        is_optional: bool,
    ) -> Node {
        self.accesses.push(Access {
            span,
            object,
            target,
            name,
            is_optional,
        });
        self.flow.load(target, Key::Name(name.to_owned()))
    }

    fn computed(&mut self, object: Node, key: &'a Expression<'a>) -> Node {
        let node = self.expr(key, Place::Value);
        self.sinks.push((node, key.span(), Sink::Operand));
        match key.get_inner_expression() {
            Expression::StringLiteral(text) => {
                let name = Key::Name(text.value.to_string());
                self.flow.load(object, name)
            }
            Expression::NumericLiteral(number) if number.value.fract() == 0.0 => {
                self.flow.load(object, Key::Name(number.value.to_string()))
            }
            _ => self.flow.load(object, Key::Any),
        }
    }
}
