//! Lowers expressions.

use crate::codes;
use crate::lower::{Lowerer, What, branch, place, set};
use crate::pattern::{is_missing, member_of, of};
use crate::tree::{Data, Tree};
use crate::value::{Kind, Value, is_stable};
use a99_core::builtins::{Global, global};
use oxc_ast::ast::{
    BinaryExpression, ChainElement, ConditionalExpression, Expression, LogicalExpression,
    StringLiteral, UnaryExpression,
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

/// Maximum holes of a template and cases of a `switch`, because each adds a level of nesting.
pub(crate) const MAX_PARTS: usize = 250;

const REGEX_VALUE: &str = "a regular expression as a value";

const REGEX_HELP: &str = "use it, or a constant that is the literal, where a method takes it: \
                          `/a+/.test(text)`, `text.replace(/a+/g, \"b\")`";

/// Destination of an expression's value, if lowering knows it.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Hint<'h> {
    /// The enclosing expression.
    None,
    /// A variable that no code reads before.
    Fresh(&'h str),
    /// A variable that has a value, which the expression may read.
    Set(&'h str),
    /// Discards the value.
    Drop,
}

impl<'a> Lowerer<'a> {
    /// Lowers an expression to a value; the steps that the value needs are appended to `out`.
    pub(crate) fn expr(&mut self, expr: &'a Expression<'a>, out: &mut Vec<Tree>) -> Value {
        self.expr_to(expr, Hint::None, out)
    }

    pub(crate) fn expr_to(
        &mut self,
        expr: &'a Expression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = expr.span();
        if !self.enter(at) {
            return Value::undefined(&place(at));
        }
        let value = self.expr_within(expr, hint, out);
        self.leave();
        value
    }

    /// Lowers expressions in order of evaluation.
    pub(crate) fn exprs(
        &mut self,
        exprs: &[&'a Expression<'a>],
        out: &mut Vec<Tree>,
    ) -> Vec<Value> {
        let mut done: Vec<Value> = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let mut steps = Vec::new();
            let value = self.expr(expr, &mut steps);
            self.keep(&mut done, &steps, out);
            out.append(&mut steps);
            done.push(value);
        }
        done
    }

    /// Copies values into variables if the following steps could change them.
    pub(crate) fn keep(&mut self, done: &mut [Value], steps: &[Tree], out: &mut Vec<Tree>) {
        if steps.is_empty() {
            return;
        }
        for value in done {
            if !is_stable(value, steps) {
                let at = value.place.clone();
                let name = self.fresh();
                let kept = std::mem::replace(value, Value::ident(&name, &at));
                out.push(set(&name, kept.resolved(), &at));
            }
        }
    }

    fn expr_within(
        &mut self,
        expr: &'a Expression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(expr.span());
        match expr {
            Expression::BooleanLiteral(literal) => Value::bool(literal.value, &at),
            Expression::NullLiteral(_) => Value::new(Kind::Scalar(Data::Null), &at),
            Expression::NumericLiteral(literal) if literal.value.is_finite() => {
                Value::number(literal.value, &at)
            }
            Expression::NumericLiteral(_) => Value::ident("Infinity", &at),
            Expression::StringLiteral(literal) => Value::new(Kind::Text(text_of(literal)), &at),
            Expression::TemplateLiteral(template) => {
                self.check_holes(template);
                self.template(template, false, out)
            }
            Expression::Identifier(id) => self.name(id.name.as_str(), id.span),
            Expression::ArrayExpression(array) => self.array(array, out),
            Expression::ObjectExpression(object) => self.object(object, out),
            Expression::BinaryExpression(binary) => match self.instance(expr) {
                Some(is_one) => Value::bool(is_one, &at),
                None => self.binary(binary, out),
            },
            Expression::LogicalExpression(logical) => self.logical(logical, hint, out),
            Expression::ConditionalExpression(conditional) => {
                self.conditional(conditional, hint, out)
            }
            Expression::UnaryExpression(unary) => self.unary(unary, out),
            Expression::AwaitExpression(await_) => {
                self.awaits(&await_.argument);
                self.expr_to(&await_.argument, hint, out)
            }
            Expression::ParenthesizedExpression(inner) => {
                self.expr_to(&inner.expression, hint, out)
            }
            Expression::TSAsExpression(inner) => self.expr_to(&inner.expression, hint, out),
            Expression::TSSatisfiesExpression(inner) => {
                match self.sure_date(&inner.expression, &inner.type_annotation, out) {
                    Some(date) => date,
                    None => self.expr_to(&inner.expression, hint, out),
                }
            }
            Expression::TSNonNullExpression(inner) => self.expr_to(&inner.expression, hint, out),
            Expression::StaticMemberExpression(_) | Expression::ComputedMemberExpression(_) => {
                self.member(expr, out)
            }
            Expression::TaggedTemplateExpression(tagged) => {
                let value = self.tagged(tagged, out);
                value.unwrap_or_else(|| {
                    self.other_expression(expr);
                    Value::undefined(&at)
                })
            }
            Expression::CallExpression(call) => self.call(call, hint, out),
            Expression::ChainExpression(chain) => self.chain(&chain.expression, hint, out),
            Expression::NewExpression(new) => self.new_expression(new, out),
            Expression::AssignmentExpression(assignment) => {
                let value = self.assignment(assignment, true, out);
                value.unwrap_or_else(|| Value::undefined(&at))
            }
            Expression::UpdateExpression(update) => {
                let value = self.update(update, true, out);
                value.unwrap_or_else(|| Value::undefined(&at))
            }
            Expression::SequenceExpression(sequence) => match sequence.expressions.split_last() {
                Some((last, before)) => {
                    for expr in before {
                        self.effect(expr, out);
                    }
                    self.expr_to(last, hint, out)
                }
                None => Value::undefined(&at),
            },
            _ => {
                self.other_expression(expr);
                Value::undefined(&at)
            }
        }
    }

    fn other_expression(&mut self, expr: &Expression<'a>) {
        if let Some(help) = self.meant_order(expr) {
            return self.unsupported(expr.span(), "a function as a value", help);
        }
        let (what, help) = match expr {
            Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => (
                "a function as a value",
                "name it with `const` or `function`, or hand it to map, filter, find, some, \
                 every, reduce, sort or forEach; to choose one of several by a key, call them in \
                 a `switch`",
            ),
            Expression::ClassExpression(_) => ("`class`", "use plain objects and functions"),
            Expression::ThisExpression(_) | Expression::Super(_) => {
                ("`this`", "hand objects over as parameters")
            }
            Expression::RegExpLiteral(_) => (REGEX_VALUE, REGEX_HELP),
            Expression::BigIntLiteral(_) => ("a BigInt", "use numbers, exact up to 2 ** 53"),
            Expression::TaggedTemplateExpression(_) => {
                ("a tagged template", "call a function with the parts")
            }
            Expression::YieldExpression(_) => ("a generator", crate::words::GENERATOR),
            Expression::ImportExpression(_) => {
                ("`import`", "atoms and builtins are there without it")
            }
            Expression::PrivateInExpression(_) | Expression::PrivateFieldExpression(_) => {
                ("a private name", "use plain members")
            }
            _ => (
                "this expression",
                "use literals, names, members, operators and calls",
            ),
        };
        self.unsupported(expr.span(), what, help);
    }

    /// Resolves a name that is read as a value.
    pub(crate) fn name(&mut self, js: &str, span: Span) -> Value {
        let at = place(span);
        let Some(id) = self.lookup(js) else {
            return self.global_name(js, span);
        };
        if !self.bindings[id].is_ready {
            let message = format!("`{js}` is used before its declaration");
            self.deny(codes::BAD_BINDING, span, message, "declare it first");
        }
        match self.bindings[id].what.clone() {
            What::Variable => {
                if self.bindings[id].changes {
                    self.check_alias(js, span);
                }
                self.note_read(id);
                let name = self.bindings[id].name.clone();
                Value::ident(&name, &at)
            }
            What::Literal(mut tree) => {
                tree.place = at.clone();
                let kind = match tree.data {
                    Data::Text(text) => Kind::Text(text.into_owned()),
                    data => Kind::Scalar(data),
                };
                Value::new(kind, &at)
            }
            What::Function(_) | What::Agent => {
                let help = "call it, or hand it to map, filter, find, some, every, reduce, sort \
                            or forEach";
                self.unsupported(span, "a function as a value", help);
                Value::undefined(&at)
            }
            What::Arguments => {
                // The source is lowered again, with a variable for them.
                self.wants_all_arguments = true;
                Value::undefined(&at)
            }
            What::Regex => {
                self.unsupported(span, REGEX_VALUE, REGEX_HELP);
                Value::undefined(&at)
            }
            What::Error if let Some(value) = self.error_value_of(id, span) => value,
            What::Caught | What::Error => {
                let help = format!(
                    "write `{js}.message`, the text of the error; `last = {js}` is there for \
                     variables that are only thrown, tested and asked for `last.message`"
                );
                self.unsupported(span, "an error as a value", help);
                Value::undefined(&at)
            }
        }
    }

    fn global_name(&mut self, js: &str, span: Span) -> Value {
        let at = place(span);
        match global(js) {
            Some(Global::Constant(_)) => return Value::ident(js, &at),
            Some(Global::Refused(_)) => self.not_available(js, span),
            Some(_) => {
                let help = "call it, or hand it to a method that takes a callback";
                self.unsupported(span, "a builtin as a value", help);
            }
            None => self.unknown_name(js, span),
        }
        Value::undefined(&at)
    }

    fn binary(&mut self, binary: &'a BinaryExpression<'a>, out: &mut Vec<Tree>) -> Value {
        use BinaryOperator as B;
        self.check_dates(binary);
        let at = place(binary.span);
        let op = match binary.operator {
            B::In => {
                self.check_negated(binary);
                let mut values = self.exprs(&[&binary.left, &binary.right], out).into_iter();
                let (Some(key), Some(object)) = (values.next(), values.next()) else {
                    return Value::undefined(&at);
                };
                let arguments = vec![object.operand(), key.operand()];
                return Value::node(of("Object", "hasOwn", arguments, &at));
            }
            B::Instanceof => return self.instance_of(binary, out),
            other if crate::bits::function(other).is_some() => return self.bitwise(binary, out),
            other => other.as_str(),
        };
        let sides = [&binary.left, &binary.right];
        self.permit(&sides);
        if op == "+" {
            self.errors_as_texts(&sides);
        }
        let mut values = self.exprs(&sides, out);
        if matches!(op, "-" | "*" | "/" | "%" | "**" | "<" | "<=" | ">" | ">=") {
            values = self.times(&sides, values, out);
        }
        let (Some(right), Some(left)) = (values.pop(), values.pop()) else {
            return Value::undefined(&at);
        };
        Value::node(Tree::binary(op, left.operand(), right.operand(), &at))
    }

    fn logical(
        &mut self,
        logical: &'a LogicalExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(logical.span);
        let op = logical.operator.as_str();
        let left = self.expr(&logical.left, out);
        let mut steps = Vec::new();
        let right = self.expr(&logical.right, &mut steps);
        if steps.is_empty() {
            return Value::node(Tree::logical(op, left.operand(), right.operand(), &at));
        }
        let name = self.target(hint);
        out.push(set(&name, left.resolved(), &at));
        let value = Tree::ident(&name, &at);
        let test = match op {
            "&&" => value,
            "||" => crate::steps::not(value),
            _ => is_missing(value, &at),
        };
        steps.push(set(&name, right.resolved(), &at));
        out.push(branch(test, steps, Vec::new(), &at));
        Value::ident(&name, &at)
    }

    fn conditional(
        &mut self,
        conditional: &'a ConditionalExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(conditional.span);
        if let Some(is_one) = self.instance(&conditional.test) {
            let only = match is_one {
                true => &conditional.consequent,
                false => &conditional.alternate,
            };
            return self.expr_to(only, hint, out);
        }
        self.check_place(&conditional.test);
        let test = self.expr(&conditional.test, out);
        let (mut then, mut other) = (Vec::new(), Vec::new());
        let yes = self.expr(&conditional.consequent, &mut then);
        let no = self.expr(&conditional.alternate, &mut other);
        if then.is_empty() && other.is_empty() {
            return Value::node(Tree::conditional(
                test.operand(),
                yes.operand(),
                no.operand(),
                &at,
            ));
        }
        let name = self.target(hint);
        then.push(set(&name, yes.resolved(), &at));
        other.push(set(&name, no.resolved(), &at));
        out.push(branch(test.condition(), then, other, &at));
        Value::ident(&name, &at)
    }

    /// Picks the variable for a value that takes several steps.
    pub(crate) fn target(&mut self, hint: Hint<'_>) -> String {
        match hint {
            Hint::Fresh(name) => name.to_owned(),
            Hint::None | Hint::Set(_) | Hint::Drop => self.fresh(),
        }
    }

    fn unary(&mut self, unary: &'a UnaryExpression<'a>, out: &mut Vec<Tree>) -> Value {
        let at = place(unary.span);
        let op = match unary.operator {
            UnaryOperator::Typeof => {
                // In JavaScript, `typeof` of an undeclared name is `"undefined"`, not an error.
                let free = self.free_name(&unary.argument);
                if free.is_some_and(|name| global(name).is_none()) {
                    return Value::text("undefined", &at);
                }
                "typeof"
            }
            UnaryOperator::LogicalNot => "!",
            UnaryOperator::UnaryNegation => "-",
            UnaryOperator::UnaryPlus => "+",
            UnaryOperator::Void => {
                self.effect(&unary.argument, out);
                return Value::undefined(&at);
            }
            UnaryOperator::BitwiseNot => return self.bitwise_not(unary, out),
            UnaryOperator::Delete => {
                // A deletion that fails is an error.
                self.delete(&unary.argument, unary.span, out);
                return Value::bool(true, &at);
            }
        };
        self.permit(&[&unary.argument]);
        let value = self.expr(&unary.argument, out);
        if let (Kind::Scalar(Data::Number(number)), "-") = (&value.kind, op) {
            return Value::number(-number, &at);
        }
        let value = match op {
            "-" | "+" => self.time(&unary.argument, value, out),
            _ => value,
        };
        Value::node(Tree::unary(op, value.operand(), &at))
    }

    /// Lowers `a.b` and `a[b]`, the object first. Optional members are the same, because a member
    /// of `undefined` or `null` is `undefined` in programs.
    pub(crate) fn member(&mut self, expr: &'a Expression<'a>, out: &mut Vec<Tree>) -> Value {
        let at = place(expr.span());
        match expr {
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                self.check_settled(member);
                self.check_uncalled(member);
                if let Some(value) = self.special_member(&member.object, name, member.span) {
                    return value;
                }
                self.permit(&[&member.object]);
                let object = self.expr(&member.object, out);
                let key = Value::text(name, &place(member.property.span));
                member_of(object, key, &at)
            }
            Expression::ComputedMemberExpression(member) => {
                if let Expression::StringLiteral(name) = &member.expression
                    && let Some(value) =
                        self.special_member(&member.object, name.value.as_str(), member.span)
                {
                    return value;
                }
                let mut values = self.exprs(&[&member.object, &member.expression], out);
                match (values.pop(), values.pop()) {
                    (Some(key), Some(object)) => member_of(object, key, &at),
                    _ => Value::undefined(&at),
                }
            }
            _ => Value::undefined(&at),
        }
    }

    /// Resolves members of arguments, caught errors and namespaces, which are not values.
    fn special_member(
        &mut self,
        object: &'a Expression<'a>,
        name: &str,
        span: Span,
    ) -> Option<Value> {
        let Expression::Identifier(id) = object.get_inner_expression() else {
            return None;
        };
        let at = place(span);
        let js = id.name.as_str();
        let Some(known) = self.lookup(js) else {
            return self.namespace_member(js, name, span);
        };
        match self.bindings[known].what {
            What::Arguments => Some(self.argument(name, span)),
            What::Caught if name == "message" => {
                self.note_read(known);
                let name = self.bindings[known].name.clone();
                Some(Value::ident(&name, &at))
            }
            What::Caught if name == "op" => Some(Value::ident("errorOp", &at)),
            What::Error => Some(self.error_member(known, name, span)),
            What::Caught => {
                self.errors.is_wanted |= name != "stack";
                let help = "an error has `message`, and `op`, the atom that failed";
                self.unsupported(span, "this member of an error", help);
                Some(Value::undefined(&at))
            }
            _ => None,
        }
    }

    fn namespace_member(&mut self, namespace: &str, name: &str, span: Span) -> Option<Value> {
        let at = place(span);
        if !matches!(global(namespace), Some(Global::Namespace(_))) {
            return None;
        }
        if a99_core::builtins::constant(namespace, name).is_none() {
            self.unknown_member(namespace, name, span);
        }
        let object = Value::ident(namespace, &at);
        Some(member_of(object, Value::text(name, &at), &at))
    }

    /// Lowers an optional chain.
    fn chain(&mut self, chain: &'a ChainElement<'a>, hint: Hint<'_>, out: &mut Vec<Tree>) -> Value {
        match chain {
            ChainElement::CallExpression(call) => self.optional_call(call, hint, out),
            ChainElement::TSNonNullExpression(inner) => self.expr_to(&inner.expression, hint, out),
            ChainElement::StaticMemberExpression(member) => {
                let at = place(member.span);
                let name = member.property.name.as_str();
                if let Some(value) = self.special_member(&member.object, name, member.span) {
                    return value;
                }
                let object = self.chain_link(&member.object, out);
                let mut value = member_of(object, Value::text(name, &at), &at);
                // Access to a forbidden name fails on any object without that member, unless the
                // access is optional (D68).
                if let (Kind::Node(tree), true) = (
                    &mut value.kind,
                    a99_core::builtins::is_forbidden(name.as_bytes()),
                ) {
                    tree.put("optional", Tree::bool(true, &at));
                }
                value
            }
            ChainElement::ComputedMemberExpression(member) => {
                let at = place(member.span);
                let mut object = [self.chain_link(&member.object, out)];
                let mut steps = Vec::new();
                let key = self.expr(&member.expression, &mut steps);
                if !steps.is_empty() {
                    let help = "compute the key into a constant first";
                    self.unsupported(
                        member.expression.span(),
                        "a call as a key behind `?.`",
                        help,
                    );
                }
                self.keep(&mut object, &steps, out);
                let [object] = object;
                member_of(object, key, &at)
            }
            ChainElement::PrivateFieldExpression(member) => {
                self.unsupported(member.span, "a private name", "use plain members");
                Value::undefined(&place(member.span))
            }
        }
    }

    /// Lowers the part of a chain before a member. If it contains a call, a missing link before
    /// the call skips the rest of the chain.
    fn chain_link(&mut self, expr: &'a Expression<'a>, out: &mut Vec<Tree>) -> Value {
        match expr {
            Expression::CallExpression(call) => self.optional_call(call, Hint::None, out),
            expr => self.expr(expr, out),
        }
    }
}

/// Returns the text of a literal as WTF-8.
pub(crate) fn text_of(literal: &StringLiteral<'_>) -> Vec<u8> {
    unescape(literal.value.as_str(), literal.lone_surrogates)
}

/// Decodes the parser's escapes: it writes a lone surrogate as U+FFFD and four hexadecimal
/// digits, and U+FFFD itself as U+FFFD and `fffd`.
pub(crate) fn unescape(text: &str, lone_surrogates: bool) -> Vec<u8> {
    if !lone_surrogates {
        return text.as_bytes().to_vec();
    }
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{fffd}') {
        a99_core::text::push_wtf8(&mut out, before.as_bytes());
        let code = after
            .get(..4)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        a99_core::text::push_code_point(&mut out, code.unwrap_or(0xfffd));
        rest = after.get(4..).unwrap_or_default();
    }
    a99_core::text::push_wtf8(&mut out, rest.as_bytes());
    out
}
