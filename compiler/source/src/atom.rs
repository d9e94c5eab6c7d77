//! Lowers calls of atoms: functions of one object, whose members are the inputs.

use crate::codes;
use crate::expr::Hint;
use crate::lower::{Around, Code, Lowerer, place};
use crate::tree::{Data, Tree};
use crate::value::{Kind, Value};
use a99_core::sig::{Binding, Params};
use oxc_ast::ast::{Argument, CallExpression, Expression, ObjectPropertyKind, PropertyKey};
use oxc_span::GetSpan;
use std::borrow::Cow;

/// Ops of the tree that a source writes as a form of JavaScript, not as a call.
const FORMS: [(&str, &str); 25] = [
    ("seq", "write the statements"),
    ("if", "write `if (...) { ... }`"),
    ("while", "write `while (...) { ... }`"),
    ("forEach", "write `for (const item of items) { ... }`"),
    ("break", "write `break`"),
    ("continue", "write `continue`"),
    ("try", "write `try { ... } catch (e) { ... }`"),
    ("return", "write `return value`"),
    ("scope", "write a block: `{ ... }`"),
    ("callLocal", "call the function by its name"),
    ("map", "write `items.map((item) => ...)`"),
    ("filter", "write `items.filter((item) => ...)`"),
    ("find", "write `items.find((item) => ...)`"),
    ("reduce", "write `items.reduce((sum, item) => ..., 0)`"),
    ("callAll", "write `await Promise.all([...])`"),
    ("varSet", "write `name = value`"),
    ("constSet", "write `const name = value`"),
    (
        "varsImport",
        "take it as an argument: `function agent({ name })`",
    ),
    ("varsLet", "write `let name = value`"),
    ("varGet", "write the name"),
    ("varsExport", "write an object: `({ a, b })`"),
    ("memberSet", "write `object.key = value`"),
    ("memberDelete", "write `delete object.key`"),
    ("mathCalc", "write the formula"),
    ("Error", "write `throw new Error(message)`"),
];

/// Input that makes an atom take a computed text unchanged (D88), as calls in a source expect.
pub(crate) const AS_IT_IS: &str = "raw";

/// Returns advice for an op that a source does not call; `None` for an op that is a call.
pub fn form_of(op: &str) -> Option<&'static str> {
    FORMS
        .iter()
        .find(|(name, _)| *name == op)
        .map(|(_, help)| *help)
}

impl<'a> Lowerer<'a> {
    pub(crate) fn atom_call(
        &mut self,
        op: &'a str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        if op == "callAll" {
            return self.call_all(call, hint, out);
        }
        if op == "llmToolLoop" {
            return self.tool_loop(call, hint, out);
        }
        if let Some(help) = form_of(op) {
            self.unsupported(call.span, &format!("the form `{op}` as a call"), help);
            return Value::undefined(&at);
        }
        let defined = self.ops.signature(op).is_some_and(|sig| sig.gives.defined);
        match self.atom_step(op, call, out) {
            Some(step) => self.result(step, defined, hint, out),
            None => Value::undefined(&at),
        }
    }

    /// Builds the step of an atom's call, without `result`.
    pub(crate) fn atom_step(
        &mut self,
        op: &'a str,
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Tree> {
        let at = place(call.span);
        let sig = self.ops.signature(op);
        let first = sig.and_then(|sig| sig.inputs.iter().find(|input| input.required));
        let first = first.map_or("input".to_owned(), |input| input.name.to_string());
        let help = || match (op, &call.arguments[..]) {
            ("len", [_]) => "write `xs.length`, or `await len({ list: xs })`".to_owned(),
            _ => format!("write `await {op}({{ {first}: value }})`"),
        };
        let properties: &[ObjectPropertyKind<'a>] = match &call.arguments[..] {
            [] => &[],
            [Argument::ObjectExpression(object)] => &object.properties,
            _ => {
                let message = format!("`{op}` takes one object, written where it is called");
                self.deny(codes::BAD_CALL, call.span, message, help());
                return None;
            }
        };
        let mut step = Tree::step(op.to_owned(), [], &at);
        let properties: Vec<&'a ObjectPropertyKind<'a>> = properties.iter().collect();
        let keys = self.put_inputs(op, &properties, &mut step, out);
        self.missing_inputs(op, &keys, call);
        Some(step)
    }

    /// Adds the inputs of a call to a step and returns their names.
    pub(crate) fn put_inputs(
        &mut self,
        op: &str,
        properties: &[&'a ObjectPropertyKind<'a>],
        step: &mut Tree,
        out: &mut Vec<Tree>,
    ) -> Vec<&'a str> {
        let mut keys: Vec<&'a str> = Vec::new();
        let mut values: Vec<(Value, Binding)> = Vec::new();
        for property in properties {
            let Some((key, expr)) = self.input(op, property) else {
                continue;
            };
            if keys.contains(&key) {
                let message = format!("`{key}` is given twice");
                self.deny(codes::BAD_CALL, property.span(), message, "drop one");
                continue;
            }
            let Some(binding) = self.binding(op, key, property) else {
                continue;
            };
            let mut steps = Vec::new();
            let value = match (op, key, code_of(expr)) {
                ("memoize" | "cache", "steps", Some(code)) => self.own_steps(code),
                _ => self.expr(expr, &mut steps),
            };
            let value = self.fitting(op, key, value, binding, expr);
            let mut before: Vec<Value> = values.iter().map(|(value, _)| value.clone()).collect();
            self.keep(&mut before, &steps, out);
            for (kept, (value, _)) in before.into_iter().zip(&mut values) {
                *value = kept;
            }
            out.append(&mut steps);
            keys.push(key);
            values.push((value, binding));
        }
        let is_computed = |(value, binding): &(Value, Binding)| {
            *binding == Binding::TextOrValue && !value.is_constant()
        };
        let sig = self.ops.signature(op);
        let as_it_is = sig.is_some_and(|sig| sig.inputs.iter().any(|input| input.name == AS_IT_IS));
        let as_it_is = as_it_is && !keys.contains(&AS_IT_IS) && values.iter().any(is_computed);
        for (key, (value, binding)) in keys.iter().zip(values) {
            step.put_owned(Cow::Owned(key.as_bytes().to_vec()), bound(value, binding));
        }
        if let (true, Some(first)) = (as_it_is, properties.first()) {
            step.put(AS_IT_IS, Tree::bool(true, &place(first.span())));
        }
        keys
    }

    /// Returns the name and the value of an input.
    pub(crate) fn input(
        &mut self,
        op: &str,
        property: &'a ObjectPropertyKind<'a>,
    ) -> Option<(&'a str, &'a Expression<'a>)> {
        let help = format!("write the inputs of `{op}` one by one");
        let ObjectPropertyKind::ObjectProperty(property) = property else {
            self.unsupported(property.span(), "`...` in the inputs of an atom", help);
            return None;
        };
        let key = match &property.key {
            PropertyKey::StaticIdentifier(id) => id.name.as_str(),
            PropertyKey::StringLiteral(text) => text.value.as_str(),
            _ => {
                self.unsupported(property.span, "a computed name of an input", help);
                return None;
            }
        };
        if matches!(key, "op" | "result" | "resultConst") {
            let message = format!("`{key}` is no input");
            let help = "the value of the call is the result: `const name = await ...`";
            self.deny(codes::BAD_CALL, property.span, message, help);
            return None;
        }
        Some((key, &property.value))
    }

    /// Returns the way in which an atom resolves an input.
    pub(crate) fn binding(
        &mut self,
        op: &str,
        key: &str,
        property: &ObjectPropertyKind<'a>,
    ) -> Option<Binding> {
        let signature = self.ops.signature(op)?;
        if let Some(input) = signature.inputs.iter().find(|input| input.name == key) {
            return Some(input.binding);
        }
        let known: Vec<String> = signature
            .inputs
            .iter()
            .map(|i| i.name.to_string())
            .collect();
        if matches!(signature.params, Params::Open) {
            return Some(Binding::Value);
        }
        let like = a99_core::diag::suggest(key, known.iter().map(String::as_str));
        let help = match like {
            Some(like) => format!("did you mean `{like}`?"),
            None => format!("it takes {}", known.join(", ")),
        };
        let message = format!("`{op}` has no input `{key}`");
        self.deny(codes::BAD_CALL, property.span(), message, help);
        None
    }

    pub(crate) fn missing_inputs(&mut self, op: &str, keys: &[&str], call: &CallExpression<'a>) {
        let Some(signature) = self.ops.signature(op) else {
            return;
        };
        let missing = signature
            .inputs
            .iter()
            .find(|input| input.required && !keys.contains(&&*input.name));
        if let Some(input) = missing {
            let message = format!("`{op}` needs the input `{}`", input.name);
            let help = format!("write `{op}({{ {}: ... }})`", input.name);
            self.deny(codes::BAD_CALL, call.span, message, help);
        }
    }

    /// Refuses a computed value for an input that the atom takes literally.
    fn fitting(
        &mut self,
        op: &str,
        key: &str,
        value: Value,
        binding: Binding,
        expr: &'a Expression<'a>,
    ) -> Value {
        let is_steps = matches!(&value.kind, Kind::Node(tree) if tree.tag().is_none());
        if binding == Binding::Literal && !value.is_constant() && !is_steps {
            let message = format!("`{key}` of `{op}` is taken as it is written");
            let help = "write a literal there";
            self.deny(codes::BAD_CALL, expr.span(), message, help);
        }
        self.spelled(op, key, value)
    }

    /// Corrects the spelling of a text that matches one of an input's values except for hyphens,
    /// underscores and case: `sha256` becomes `SHA-256`. Only inputs with `any_case` allow this.
    fn spelled(&self, op: &str, key: &str, value: Value) -> Value {
        let Kind::Text(text) = &value.kind else {
            return value;
        };
        let sig = self.ops.signature(op);
        let input = sig.and_then(|sig| sig.inputs.iter().find(|input| input.name == key));
        let Some(input) = input.filter(|input| input.any_case) else {
            return value;
        };
        let plain = |text: &[u8]| -> Vec<u8> {
            let bytes = text.iter().filter(|byte| !b"-_".contains(byte));
            bytes.map(u8::to_ascii_lowercase).collect()
        };
        let is_this = |known: &str| plain(known.as_bytes()) == plain(text);
        match input.values.iter().find(|known| is_this(known)) {
            Some(known) => Value::text(known, &value.place),
            None => value,
        }
    }

    /// Lowers the steps of `memoize` and `cache`, which have a separate scope.
    fn own_steps(&mut self, code: Code<'a>) -> Value {
        let at = place(match code {
            Code::Arrow(arrow) => arrow.span,
            Code::Function(function) => function.span,
        });
        if let Some(param) = code.params().items.first() {
            self.unsupported(
                param.span,
                "a parameter of these steps",
                "use what is in sight",
            );
        }
        let around = std::mem::replace(&mut self.around, vec![Around::Body]);
        let barrier = std::mem::replace(&mut self.barrier, self.scopes.len());
        self.push_scope();
        let mut steps = Vec::new();
        match code {
            Code::Arrow(arrow) => self.arrow_body(arrow, &mut steps),
            Code::Function(function) => {
                if let Some(body) = &function.body {
                    self.block(&body.statements, &mut steps);
                }
            }
        }
        self.pop_scope();
        self.barrier = barrier;
        self.around = around;
        Value::node(Tree::list(steps, &at))
    }
}

/// Returns the members of the argument object; an empty slice for other arguments.
pub(crate) fn properties_of<'a>(call: &'a CallExpression<'a>) -> &'a [ObjectPropertyKind<'a>] {
    match &call.arguments[..] {
        [Argument::ObjectExpression(object)] => &object.properties,
        _ => &[],
    }
}

/// Returns the code if an expression is a function.
pub(crate) fn code_of<'a>(expr: &'a Expression<'a>) -> Option<Code<'a>> {
    match expr.get_inner_expression() {
        Expression::ArrowFunctionExpression(arrow) => Some(Code::Arrow(arrow)),
        Expression::FunctionExpression(function) => Some(Code::Function(function)),
        _ => None,
    }
}

/// Converts a value to an input of this kind.
pub(crate) fn bound(value: Value, binding: Binding) -> Tree {
    let at = value.place.clone();
    match (binding, value.kind) {
        (Binding::Vars | Binding::TemplateVars { .. }, Kind::Map(members)) => {
            let members = members.into_iter();
            let members = members.map(|(key, value)| (Cow::Owned(key), value.resolved()));
            Tree::new(Data::Map(members.collect()), &at)
        }
        (Binding::Literal | Binding::TextOrValue, kind) => {
            let value = Value::new(kind, &at);
            match value.is_constant() {
                true => value.clone().literal().unwrap_or_else(|| Tree::null(&at)),
                // The name of a variable would be read as a literal text.
                false => match value.clone().resolved() {
                    tree if tree.as_str().is_some() => value.operand(),
                    tree => tree,
                },
            }
        }
        (_, kind) => Value::new(kind, &at).resolved(),
    }
}
