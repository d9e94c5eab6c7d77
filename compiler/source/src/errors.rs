//! Lowers errors as objects: `name`, `code`, `cause` and other members of what is thrown.
//!
//! An error of the machine has a message only. If a source asks for more, the program keeps one
//! object, the box: a `throw` puts what it throws into the box before it fails, and a `catch`
//! takes it from there. Helpers get the box as they get other variables that they read. A source
//! is lowered without the box first, so that programs without such forms stay as they are.

use crate::control::fail;
use crate::expr::Hint;
use crate::lower::{Binding, BindingId, Lowerer, What, place, set};
use crate::pattern::{member_of, method, of};
use crate::tree::{Place, Tree};
use crate::value::{Kind, Value};
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{
    Argument, CallExpression, Expression, ObjectExpression, ObjectPropertyKind, PropertyKey,
};
use oxc_span::{GetSpan, Span};
use std::cell::RefCell;

/// Builtins whose errors have a class, how their messages start, and the class.
const BUILTINS: [(&str, &str, &str); 2] = [
    ("JSON.parse", "JSON Parse error: ", "SyntaxError"),
    ("decodeURI", "URI error", "URIError"),
];

/// Name of the box in the scopes; no source can use it.
const BOX: &str = "#thrown";

/// What lowering knows about errors as objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors {
    /// True if the program has the box.
    pub(crate) is_on: bool,
    /// True if a form needs the box.
    pub(crate) is_wanted: bool,
    /// True if the source throws objects that are no errors.
    pub(crate) throws_objects: bool,
    /// True if the source sets the `name` of an error.
    pub(crate) sets_names: bool,
    /// Offsets of names of errors that are read as texts.
    texts: HashSet<u32>,
    /// Offsets of names of errors whose members are set.
    objects: HashSet<u32>,
    /// Offsets of calls that make an error where one may stand.
    pub(crate) made: HashSet<u32>,
    /// Whether each function makes an error and returns it.
    pub(crate) makers: RefCell<HashMap<usize, bool>>,
}

impl Errors {
    /// What the second lowering of a source starts from.
    pub(crate) fn again(&self) -> Errors {
        Errors {
            is_on: true,
            is_wanted: true,
            throws_objects: self.throws_objects,
            sets_names: self.sets_names,
            ..Errors::default()
        }
    }
}

fn members(list: Vec<(&str, Value)>, at: &Place) -> Value {
    let list = list.into_iter();
    let list = list.map(|(key, value)| (key.as_bytes().to_vec(), value));
    Value::new(Kind::Map(list.collect()), at)
}

impl<'a> Lowerer<'a> {
    /// Declares the box at the start of the program.
    pub(crate) fn declare_box(&mut self, at: &Place, out: &mut Vec<Tree>) {
        if !self.errors.is_on {
            return;
        }
        let name = self.fresh();
        self.variables.insert(name.clone());
        out.push(set(&name, members(Vec::new(), at).resolved(), at));
        self.bindings.push(Binding {
            name,
            what: What::Variable,
            is_const: true,
            owner: 0,
            at: 0,
            is_ready: true,
            known: crate::known::Known::Nothing,
            sort: crate::iterable::Iterable::Unknown,
            changes: false,
        });
        let id = self.bindings.len() - 1;
        if let Some(top) = self.scopes.first_mut() {
            top.insert(BOX, id);
        }
    }

    fn the_box(&mut self, at: &Place) -> Value {
        match self.lookup(BOX) {
            Some(id) => {
                self.note_read(id);
                let name = self.bindings[id].name.clone();
                Value::ident(&name, at)
            }
            None => Value::undefined(at),
        }
    }

    fn in_box(&mut self, key: &str, at: &Place) -> Value {
        let object = self.the_box(at);
        member_of(object, Value::text(key, at), at)
    }

    fn put(&mut self, key: &str, value: Value, at: &Place) -> Tree {
        let inputs = [
            ("object", self.the_box(at).resolved()),
            // A variable may have the name of the key.
            ("key", Value::text(key, at).resolved()),
            ("value", value.resolved()),
        ];
        Tree::step("memberSet", inputs, at)
    }

    /// True if an expression names an error that is an object.
    pub(crate) fn error_named(&self, expr: &Expression<'a>) -> Option<BindingId> {
        let Expression::Identifier(id) = expr.get_inner_expression() else {
            return None;
        };
        let id = self.lookup(id.name.as_str())?;
        matches!(self.bindings[id].what, What::Error).then_some(id)
    }

    fn is_caught(&self, expr: &Expression<'a>) -> bool {
        let Expression::Identifier(id) = expr.get_inner_expression() else {
            return false;
        };
        let id = self.lookup(id.name.as_str());
        id.is_some_and(|id| matches!(self.bindings[id].what, What::Caught | What::Error))
    }

    /// Reads these expressions as texts if they name errors: `Error: message`.
    pub(crate) fn errors_as_texts(&mut self, exprs: &[&'a Expression<'a>]) {
        for expr in exprs {
            if self.is_caught(expr) {
                self.errors.is_wanted = true;
                let at = expr.get_inner_expression().span().start;
                self.errors.texts.insert(at);
            }
        }
    }

    /// Allows that members of these errors are set.
    pub(crate) fn error_object(&mut self, expr: &'a Expression<'a>, key: &str) {
        if self.is_caught(expr) {
            self.errors.is_wanted = true;
            self.errors.sets_names |= key == "name";
            let at = expr.get_inner_expression().span().start;
            self.errors.objects.insert(at);
        }
    }

    /// Lowers the name of an error that is an object; `None` where errors are no values.
    pub(crate) fn error_value_of(&mut self, id: BindingId, span: Span) -> Option<Value> {
        let at = place(span);
        let object = Value::ident(&self.bindings[id].name.clone(), &at);
        if self.errors.objects.contains(&span.start) {
            self.note_read(id);
            return Some(object);
        }
        if !self.errors.texts.contains(&span.start) {
            return None;
        }
        self.note_read(id);
        if self.errors.throws_objects {
            let help = "write `.message` of it: the source throws objects that are no errors";
            self.unsupported(span, "the text of what is thrown", help);
        }
        let part = |key: &str| member_of(object.clone(), Value::text(key, &at), &at).operand();
        let empty = || Tree::text("", &at);
        let name = Tree::binary("+", part("name"), Tree::text(": ", &at), &at);
        let both = Tree::binary("+", name, part("message"), &at);
        let no_message = Tree::binary("===", part("message"), empty(), &at);
        let text = Tree::conditional(no_message, part("name"), both, &at);
        let no_name = Tree::binary("===", part("name"), empty(), &at);
        Some(Value::node(Tree::conditional(
            no_name,
            part("message"),
            text,
            &at,
        )))
    }

    /// Lowers a member of an error that is an object.
    pub(crate) fn error_member(&mut self, id: BindingId, name: &str, span: Span) -> Value {
        let at = place(span);
        if matches!(name, "stack" | "toString") {
            let help = "an error has `message`, `name`, `cause`, the members that you set, and \
                        `op`, the atom that failed";
            self.unsupported(span, "this member of an error", help);
        }
        self.note_read(id);
        let object = Value::ident(&self.bindings[id].name.clone(), &at);
        member_of(object, Value::text(name, &at), &at)
    }

    /// The name of the class if an expression is `new Error(...)`, or a call of it.
    fn class_of(&self, expr: &'a Expression<'a>) -> Option<(&'a str, &'a [Argument<'a>])> {
        let (callee, arguments) = match expr.get_inner_expression() {
            Expression::NewExpression(new) => (&new.callee, &new.arguments),
            Expression::CallExpression(call) => (&call.callee, &call.arguments),
            _ => return None,
        };
        let class = self.free_name(callee)?;
        self.is_error(callee).then_some((class, &arguments[..]))
    }

    /// Matches `Object.assign(new Error(message), others)`.
    fn assigned(&self, expr: &'a Expression<'a>) -> Option<&'a CallExpression<'a>> {
        let Expression::CallExpression(call) = expr.get_inner_expression() else {
            return None;
        };
        let Expression::StaticMemberExpression(member) = &call.callee else {
            return None;
        };
        let first = call.arguments.first().and_then(Argument::as_expression)?;
        let is_assign = self.free_name(&member.object) == Some("Object")
            && member.property.name == "assign"
            && self.class_of(first).is_some();
        is_assign.then_some(call)
    }

    /// True if an expression makes an error.
    pub(crate) fn makes_error(&self, expr: &'a Expression<'a>) -> bool {
        self.makes_new_error(expr) || self.error_call(expr).is_some()
    }

    /// True if an expression makes an error without a call of a function of the source.
    pub(crate) fn makes_new_error(&self, expr: &'a Expression<'a>) -> bool {
        self.class_of(expr).is_some() || self.assigned(expr).is_some()
    }

    /// Lowers `new Error(message, { cause })` to an object; `None` for any other expression.
    pub(crate) fn error_made(
        &mut self,
        expr: &'a Expression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(expr.span());
        if let Some((class, arguments)) = self.class_of(expr) {
            return Some(self.new_error(class, arguments, &at, out));
        }
        if let Some(call) = self.error_call(expr) {
            return Some(self.error_from_call(call, expr, out));
        }
        let call = self.assigned(expr)?;
        let (first, others) = call.arguments.split_first()?;
        let base = self.error_made(first.as_expression()?, out)?;
        let mut all = vec![base];
        for other in others {
            let Some(other) = other.as_expression() else {
                let help = "write the members into one object";
                self.unsupported(call.span, "`...` in a call", help);
                continue;
            };
            if let Expression::ObjectExpression(object) = other.get_inner_expression() {
                self.errors.sets_names |= has_key(object, "name");
            }
            let mut steps = Vec::new();
            let value = self.expr(other, &mut steps);
            self.keep(&mut all, &steps, out);
            out.append(&mut steps);
            all.push(value);
        }
        let all = all.into_iter().map(Value::operand).collect();
        Some(Value::node(of("Object", "assign", all, &at)))
    }

    fn new_error(
        &mut self,
        class: &str,
        arguments: &'a [Argument<'a>],
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> Value {
        let mut exprs = arguments.iter().map(Argument::as_expression);
        let mut message = match exprs.next() {
            None => Value::text("", at),
            Some(None) => {
                self.unsupported(
                    Span::new(at.start, at.end),
                    "`...` in a call",
                    "write the message",
                );
                Value::text("", at)
            }
            Some(Some(expr)) => {
                self.errors_as_texts(&[expr]);
                let value = self.expr(expr, out);
                let inner = expr.get_inner_expression();
                match inner {
                    Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => value,
                    _ => Value::node(Tree::binary("+", Tree::text("", at), value.operand(), at)),
                }
            }
        };
        let mut cause = None;
        if let Some(Some(options)) = exprs.next() {
            match options.get_inner_expression() {
                Expression::ObjectExpression(object) => {
                    if let Some(expr) = only_cause(object) {
                        let mut steps = Vec::new();
                        let value = match self.error_named(expr) {
                            Some(id) => {
                                self.note_read(id);
                                Value::ident(&self.bindings[id].name.clone(), at)
                            }
                            None => match self.error_made(expr, &mut steps) {
                                Some(value) => value,
                                None => self.expr(expr, &mut steps),
                            },
                        };
                        let mut done = [message];
                        self.keep(&mut done, &steps, out);
                        out.append(&mut steps);
                        [message] = done;
                        cause = Some(value);
                    } else {
                        self.bad_options(options.span());
                    }
                }
                other => self.bad_options(other.span()),
            }
        }
        let mut list = vec![("name", Value::text(class, at)), ("message", message)];
        if let Some(cause) = cause {
            list.push(("cause", cause));
        }
        members(list, at)
    }

    fn bad_options(&mut self, span: Span) {
        let help = "write `new Error(message, { cause: error })`; for other members, \
                    `Object.assign(new Error(message), { code })`";
        self.unsupported(span, "an Error with these options", help);
    }

    /// Lowers a `throw` of an object; false if what is thrown is only a text.
    pub(crate) fn throw_object(
        &mut self,
        value: &'a Expression<'a>,
        at: &Place,
        out: &mut Vec<Tree>,
    ) -> bool {
        let inner = value.get_inner_expression();
        let is_plain = matches!(inner, Expression::ObjectExpression(_));
        if is_plain {
            self.errors.throws_objects = true;
        }
        let is_simple = match self.class_of(value) {
            Some((class, arguments)) => {
                arguments.len() < 2 && (class == "Error" || !self.errors.is_on)
            }
            None => !is_plain && !self.makes_error(value) && self.error_named(inner).is_none(),
        };
        let kept = match inner {
            Expression::Identifier(id) if self.errors.is_on => self.kept_object(id.name.as_str()),
            _ => None,
        };
        if is_simple && kept.is_none() {
            return false;
        }
        self.errors.is_wanted = true;
        let object = if let Some(name) = kept {
            Value::ident(&name, at)
        } else if let Some(id) = self.error_named(inner) {
            self.note_read(id);
            Value::ident(&self.bindings[id].name.clone(), at)
        } else {
            let made = match self.error_made(value, out) {
                Some(made) => made,
                None => self.expr_to(value, Hint::None, out),
            };
            self.named(made, out)
        };
        let mut message = member_of(object.clone(), Value::text("message", at), at);
        if self.errors.throws_objects {
            let text = of("JSON", "stringify", vec![object.clone().operand()], at);
            message = Value::node(Tree::logical("??", message.operand(), text, at));
        }
        let message = self.named(message, out);
        self.needs_member_atoms("memberSet", Span::new(at.start, at.end));
        let steps = [
            self.put("value", object, at),
            self.put("message", message.clone(), at),
        ];
        out.extend(steps);
        out.extend(fail(message, at));
        true
    }

    /// Takes the object of a caught error from the box, or makes one of its message.
    pub(crate) fn take_error(&mut self, message: &str, at: &Place, out: &mut Vec<Tree>) -> Value {
        let text = || Value::ident(message, at);
        let error = self.fresh();
        let mut name = Tree::text("Error", at);
        for (call, start, class) in BUILTINS {
            if self.source.contains(call) {
                let start = Tree::text(start, at);
                let test = method(text().operand(), "startsWith", vec![start], at);
                name = Tree::conditional(test, Tree::text(class, at), name, at);
            }
        }
        let made = members(
            vec![
                ("name", Value::node(name)),
                ("message", text()),
                ("op", Value::ident("errorOp", at)),
            ],
            at,
        );
        let held = self.in_box("value", at).operand();
        let same = Tree::binary(
            "===",
            self.in_box("message", at).operand(),
            text().operand(),
            at,
        );
        let there = Tree::binary("!==", held.clone(), Tree::undefined(at), at);
        let test = Tree::logical("&&", there, same, at);
        let chosen = Tree::conditional(test, held, made.operand(), at);
        out.push(set(&error, chosen, at));
        let clear = self.put("value", Value::undefined(at), at);
        out.push(clear);
        Value::ident(&error, at)
    }

    /// Puts an error back into the box, before it is thrown again.
    pub(crate) fn put_back(&mut self, error: Value, message: Value, at: &Place) -> Vec<Tree> {
        vec![
            self.put("value", error, at),
            self.put("message", message, at),
        ]
    }

    /// Lowers `x instanceof TypeError` of an error that is an object.
    pub(crate) fn error_instance(
        &mut self,
        left: &'a Expression<'a>,
        class: &str,
        span: Span,
    ) -> Option<Value> {
        if class == "Error" || !crate::words::ERRORS.contains(&class) || !self.is_caught(left) {
            return None;
        }
        self.errors.is_wanted = true;
        let id = self.error_named(left)?;
        if self.errors.sets_names || self.errors.throws_objects {
            return None;
        }
        let at = place(span);
        let name = self.error_member(id, "name", span);
        Some(Value::node(Tree::binary(
            "===",
            name.operand(),
            Tree::text(class, &at),
            &at,
        )))
    }

    /// Declares `const e = new Error(...)` and `const e = caught` as errors; false for others.
    pub(crate) fn error_constant(
        &mut self,
        js: &'a str,
        init: &'a Expression<'a>,
        span: Span,
        out: &mut Vec<Tree>,
    ) -> bool {
        let at = place(init.span());
        let mut init = init.get_inner_expression();
        if let Expression::ConditionalExpression(conditional) = init
            && self.instance(&conditional.test) == Some(true)
        {
            init = conditional.consequent.get_inner_expression();
            self.errors.is_wanted |= self.is_caught(init);
        }
        self.errors.is_wanted |= matches!(init, Expression::Identifier(_)) && self.is_caught(init);
        if !self.is_caught(init) && !self.makes_error(init) {
            return false;
        }
        if !self.errors.is_on {
            return false;
        }
        let value = match self.error_named(init) {
            Some(id) => {
                self.note_read(id);
                Some(Value::ident(&self.bindings[id].name.clone(), &at))
            }
            None => self.error_made(init, out),
        };
        let Some(value) = value else { return false };
        let id = self.declare(js, span, What::Error, true);
        self.bindings[id].is_ready = true;
        let name = self.bindings[id].name.clone();
        out.push(set(&name, value.resolved(), &at));
        true
    }
}

fn has_key(object: &ObjectExpression<'_>, key: &str) -> bool {
    object.properties.iter().any(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) => {
            property.computed || property.key.static_name().as_deref() == Some(key)
        }
        ObjectPropertyKind::SpreadProperty(_) => true,
    })
}

/// The cause, if an object has no other member.
fn only_cause<'a>(object: &'a ObjectExpression<'a>) -> Option<&'a Expression<'a>> {
    let [ObjectPropertyKind::ObjectProperty(property)] = &object.properties[..] else {
        return None;
    };
    let is_cause = matches!(&property.key, PropertyKey::StaticIdentifier(id) if id.name == "cause");
    (is_cause && !property.computed).then_some(&property.value)
}
