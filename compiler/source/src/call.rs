//! Lowers calls of functions, builtins and methods, and `new`.

use crate::code::is_chain;
use crate::codes;
use crate::expr::Hint;
use crate::known::{parsed, utc};
use crate::lower::{Lowerer, What, branch, place, set};
use crate::pattern::{is_there, method, of};
use crate::state::Known;
use crate::steps::not;
use crate::tree::{Data, Place, Tree};
use crate::value::{Kind, Value};
use crate::words;
use a99_core::builtins::{self, Global, global};
use oxc_ast::ast::{Argument, CallExpression, Expression, NewExpression};
use oxc_span::{GetSpan, Span};

impl<'a> Lowerer<'a> {
    /// Returns the arguments that are expressions and refuses the others.
    pub(crate) fn arguments(&mut self, list: &'a [Argument<'a>]) -> Vec<&'a Expression<'a>> {
        let mut found = Vec::new();
        for argument in list {
            match argument.as_expression() {
                Some(expr) => found.push(expr),
                None => {
                    let help = "write the arguments one by one, or use a loop";
                    self.unsupported(argument.span(), "`...` in a call", help);
                }
            }
        }
        found
    }

    pub(crate) fn call(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        if call.optional {
            let help = "functions are always there: call it without `?.`";
            self.unsupported(call.span, "`?.()`", help);
        }
        match call.callee.get_inner_expression() {
            Expression::Identifier(id) => self.named_call(id.name.as_str(), call, hint, out),
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                if let Some(namespace) = self.free_name(member.object.get_inner_expression()) {
                    if (namespace, name) == ("Map", "groupBy") {
                        return self.map_groups(call, hint, out);
                    }
                    if namespace == "Promise" {
                        return self.promise(name, call, hint, out);
                    }
                    if matches!(global(namespace), Some(Global::Namespace(_)))
                        || namespace == "Date"
                    {
                        return self.namespace_call(namespace, name, call, hint, out);
                    }
                }
                self.method_call(&member.object, name, call, false, hint, out)
            }
            callee => {
                if let Some(code) = crate::atom::code_of(callee) {
                    return self.call_in_place(code, call, hint, out);
                }
                let help = "call functions and methods by their names";
                self.unsupported(callee.span(), "a computed callee", help);
                Value::undefined(&place(call.span))
            }
        }
    }

    /// Lowers a call in an optional chain. A missing link before it skips the call.
    pub(crate) fn optional_call(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member)
                if !call.optional && !self.is_namespace(&member.object) =>
            {
                let optional = member.optional || is_chain(&member.object);
                let name = member.property.name.as_str();
                self.method_call(&member.object, name, call, optional, hint, out)
            }
            _ => self.call(call, hint, out),
        }
    }

    /// True if an expression names a namespace of functions: `Math`, `Object`.
    fn is_namespace(&self, object: &Expression<'a>) -> bool {
        let name = self.free_name(object.get_inner_expression());
        name.is_some_and(|name| {
            matches!(global(name), Some(Global::Namespace(_))) || matches!(name, "Date" | "Promise")
        })
    }

    fn named_call(
        &mut self,
        js: &'a str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        if let Some(value) = self.dispatched(js, call, hint, out) {
            return value;
        }
        if let Some(id) = self.lookup(js) {
            return match self.bindings[id].what {
                What::Function(function) => {
                    if js == "context" && context_path(call).is_some() {
                        let message = "the function `context` hides the request context";
                        let help = "give the function another name, if that was meant";
                        self.differs(call.span, message, help);
                    }
                    if let Some(value) = self.higher_call(js, function, call, hint, out) {
                        return value;
                    }
                    self.check_arity(function, call);
                    self.check_error_call(call, function);
                    let arguments = self.spread_arguments(function, call, out);
                    self.helper_call(function, arguments, call.span, hint, out)
                }
                What::Agent => {
                    let help = "put what is repeated into a function of its own";
                    self.unsupported(call.span, "a call of the agent itself", help);
                    Value::undefined(&at)
                }
                _ => {
                    let help = "declare it with `function`, or `const name = (x) => ...`; to choose \
                                one of several by a key, call them in a `switch`";
                    self.unsupported(call.span, "a call of a variable", help);
                    Value::undefined(&at)
                }
            };
        }
        match js {
            "Number" | "String" | "Boolean" => {
                let exprs = self.arguments(&call.arguments);
                self.permit(&exprs);
                if js == "String" {
                    self.errors_as_texts(&exprs);
                }
                let mut values = self.exprs(&exprs, out);
                if js == "Number" {
                    values = self.times(&exprs, values, out);
                }
                match values.into_iter().next() {
                    Some(value) => convert(js, value, &at),
                    None if js == "Number" => Value::number(0.0, &at),
                    None if js == "String" => Value::text("", &at),
                    None => Value::bool(false, &at),
                }
            }
            "Array" => self.sized_array(&call.arguments, call.span, out),
            "Date" | "Set" | "Map" => {
                let help = format!("write `new {js}(...)`");
                self.unsupported(call.span, "this call without `new`", help);
                Value::undefined(&at)
            }
            "context" if context_path(call).is_some() => {
                let path = context_path(call).unwrap_or_default();
                let fields = [("path", Tree::text(path, &at))];
                Value::node(Tree::node("context", fields, &at))
            }
            "context" if self.ops.signature(js).is_none() => {
                let help = "write `context(\"user.id\")`: the path is a text";
                self.unsupported(call.span, "this `context`", help);
                Value::undefined(&at)
            }
            "Error" => {
                let help = "write `throw new Error(message)`";
                self.unsupported(call.span, "an error that is not thrown", help);
                Value::undefined(&at)
            }
            "isNaN" | "isFinite" => {
                let exprs = self.arguments(&call.arguments);
                self.permit(&exprs);
                let values = self.exprs(&exprs, out);
                let values = self.times(&exprs, values, out);
                Value::node(builtin(js, values, &at))
            }
            _ if builtins::function("", js).is_some() => {
                let exprs = self.arguments(&call.arguments);
                let values = self.exprs(&exprs, out);
                Value::node(builtin(js, values, &at))
            }
            _ if self.ops.signature(js).is_some() => self.atom_call(js, call, hint, out),
            _ => {
                match builtins::refused(js) {
                    Some(_) => self.not_available(js, call.callee.span()),
                    None => match words::called_help(js) {
                        Some(help) => {
                            let message = format!("there is no function `{js}`");
                            self.deny(codes::UNKNOWN_NAME, call.callee.span(), message, help);
                        }
                        None => self.unknown_name(js, call.callee.span()),
                    },
                }
                Value::undefined(&at)
            }
        }
    }

    /// Lowers a call of a helper.
    pub(crate) fn helper_call(
        &mut self,
        function: usize,
        arguments: Vec<Value>,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let current = self.current;
        self.functions[current].calls.push(function);
        self.calls.push((current, function, span));
        let name = self.functions[function].name.clone();
        let mut list = vec![Tree::new(Data::Captures(function), &at)];
        list.extend(arguments.into_iter().map(Value::resolved));
        let inputs = [
            ("name", Tree::text(&name, &at)),
            ("args", Tree::list(list, &at)),
        ];
        let step = Tree::step("callLocal", inputs, &at);
        let is_defined = self.functions[function].gives_value;
        self.result(step, is_defined, hint, out)
    }

    /// Adds a step whose result goes to a variable. A result of `undefined` binds no variable, so
    /// the variable is set to `undefined` before the step.
    pub(crate) fn result(
        &mut self,
        mut step: Tree,
        is_defined: bool,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = step.place.clone();
        let name = match hint {
            Hint::Drop => {
                out.push(step);
                return Value::undefined(&at);
            }
            Hint::Set(name) if is_defined => name.to_owned(),
            hint => self.target(hint),
        };
        if !is_defined {
            out.push(set(&name, Tree::undefined(&at), &at));
        }
        step.put("result", Tree::text(&name, &at));
        out.push(step);
        Value::ident(&name, &at)
    }

    fn namespace_call(
        &mut self,
        namespace: &'a str,
        name: &'a str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let has_spread = call.arguments.iter().any(|a| a.as_expression().is_none());
        if namespace == "JSON"
            && let Some(value) = self.json_call(name, call, hint, out)
        {
            return value;
        }
        if namespace == "Object"
            && let Some(value) = self.object_call(name, call, out)
        {
            return value;
        }
        match (namespace, name) {
            ("Math", "max" | "min") if has_spread => return self.extreme(name, call, hint, out),
            ("Array", "from") if call.arguments.len() > 1 => {
                return self.array_from(call, hint, out);
            }
            ("Object", "assign") => self.check_assign(call),
            ("Object", "groupBy") => return self.group_by(call, hint, out),
            ("Date", "UTC") => return self.utc_time(call, out),
            ("Number", "isNaN" | "isFinite" | "isInteger") => self.check_number(name, call),
            _ if builtins::function(namespace, name).is_none() => {
                self.unknown_member(namespace, name, call.callee.span());
            }
            _ => {}
        }
        let exprs = self.arguments(&call.arguments);
        if namespace == "Math" {
            self.permit(&exprs);
        }
        let mut values = self.exprs(&exprs, out);
        match (namespace, name) {
            ("Math", _) => values = self.times(&exprs, values, out),
            ("Date", "parse") if !values.is_empty() => return parsed(values.remove(0)),
            _ => {}
        }
        let values = values.into_iter().map(Value::operand).collect();
        Value::node(of(namespace, name, values, &at))
    }

    /// Refuses checks of numbers on a date, such as `Number.isNaN(date)`: they are false for each
    /// date.
    fn check_number(&mut self, name: &str, call: &'a CallExpression<'a>) {
        let date = call.arguments.first().and_then(Argument::as_expression);
        if let Some(date) = date
            && self.known(date) == Known::Date
        {
            let message = format!("`Number.{name}` is false of each date");
            let help = "write `Number.isNaN(date.getTime())`";
            self.deny(codes::BAD_CALL, call.span, message, help);
        }
    }

    /// Lowers `Array(n)` and `new Array(n)`.
    fn sized_array(
        &mut self,
        arguments: &'a [Argument<'a>],
        span: Span,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        // Several arguments, or one that is no number, are the items.
        let is_listed = match arguments {
            [] => true,
            [only] => matches!(
                only,
                Argument::StringLiteral(_) | Argument::TemplateLiteral(_)
            ),
            _ => true,
        };
        if is_listed {
            let exprs = self.arguments(arguments);
            let values = self.exprs(&exprs, out);
            return Value::new(Kind::List(values), &at);
        }
        let [
            Argument::NumericLiteral(_)
            | Argument::Identifier(_)
            | Argument::StaticMemberExpression(_)
            | Argument::BinaryExpression(_),
        ] = arguments
        else {
            self.unsupported(span, "this `Array(...)`", "write a list: `[a, b]`");
            return Value::undefined(&at);
        };
        let exprs = self.arguments(arguments);
        let values = self.exprs(&exprs, out);
        let members = values.into_iter().map(|value| (b"length".to_vec(), value));
        let size = Value::new(Kind::Map(members.collect()), &at);
        Value::node(of("Array", "from", vec![size.operand()], &at))
    }

    fn method_call(
        &mut self,
        object: &'a Expression<'a>,
        name: &'a str,
        call: &'a CallExpression<'a>,
        optional: bool,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        if let Some(value) = self.common_call(object, name, call, hint, out) {
            return value;
        }
        if optional && let Some(value) = self.optional_regex(object, name, call, hint, out) {
            return value;
        }
        if let Some(value) = self.regex_method((object, None), name, call, hint, out) {
            return value;
        }
        if crate::callback::takes_callback(name)
            && let Some(value) = self.callback_method(object, name, call, optional, hint, out)
        {
            return value;
        }
        if name == "getTimezoneOffset" && call.arguments.is_empty() {
            self.effect(object, out);
            return Value::number(0.0, &at);
        }
        self.permit(&[object]);
        if name == "valueOf" && !optional && self.has_dates {
            let value = self.expr(object, out);
            return self.time(object, value, out);
        }
        if let Some(time) = self.set_date(object, name, call, out) {
            return time;
        }
        self.check_match(object, name, call.span);
        let has_spread = call.arguments.iter().any(|a| a.as_expression().is_none());
        if matches!(name, "push" | "unshift") && has_spread && !optional {
            return self.push_all(object, name, call, out);
        }
        if let Some(value) = self.awaited_chain(call, object, name, hint, out) {
            return value;
        }
        self.check_method(name, call);
        if matches!(name, "then" | "catch" | "finally") {
            // A promise method is already refused; dropping the call drops its callbacks too.
            return self.expr(object, out);
        }
        self.check_group(name, call);
        let name = utc(name).unwrap_or(name);
        let exprs = self.arguments(&call.arguments);
        let receiver = self.chained(object, out);
        let mut done = vec![match optional {
            true => receiver,
            false => self.match_list(object, receiver),
        }];
        let mut steps = Vec::new();
        let mut arguments = self.exprs(&exprs, &mut steps);
        if optional && !steps.is_empty() {
            // A missing receiver skips the evaluation of the arguments.
            let receiver = self.named(done.remove(0), out);
            let result = self.target(hint);
            out.push(set(&result, Tree::undefined(&at), &at));
            let test = is_there(receiver.clone().operand(), &at);
            let arguments = arguments.into_iter().map(Value::operand).collect();
            let value = method(receiver.operand(), name, arguments, &at);
            steps.push(set(&result, value, &at));
            out.push(branch(test, steps, Vec::new(), &at));
            return Value::ident(&result, &at);
        }
        self.keep(&mut done, &steps, out);
        out.append(&mut steps);
        let receiver = done.remove(0).operand();
        let arguments = arguments.drain(..).map(Value::operand).collect();
        let mut node = method(receiver, name, arguments, &at);
        if optional {
            node.put("optional", Tree::bool(true, &at));
        }
        Value::node(node)
    }

    /// Lowers the receiver of a method, which may be a link of a chain.
    pub(crate) fn chained(&mut self, object: &'a Expression<'a>, out: &mut Vec<Tree>) -> Value {
        match object.get_inner_expression() {
            Expression::CallExpression(call) if is_chain(object) => {
                self.optional_call(call, Hint::None, out)
            }
            _ => self.expr(object, out),
        }
    }

    fn check_method(&mut self, name: &str, call: &'a CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression()
            && let Expression::Identifier(id) = &member.object
            && self.free_name(&member.object) == Some(id.name.as_str())
            && words::library_help(id.name.as_str()).is_some()
        {
            // A library's name is reported where lowering resolves it.
            return;
        }
        let help = match name {
            "then" => "write `const value = await ...`, and use `value` after it",
            "catch" | "finally" => "write `await` within `try { ... } catch (error) { ... }`",
            "call" | "apply" | "bind" => "call the function by its name",
            "match" | "matchAll" | "search" => {
                "write a regular expression: `text.match(/a+/)`; for texts there are includes \
                 and indexOf"
            }
            "toLocaleString" | "toLocaleDateString" | "toLocaleTimeString" => {
                match self.locale_help(name, call) {
                    None => return,
                    Some(help) => help,
                }
            }
            "delete" => return,
            "get" | "set" if self.has_maps => return,
            "get" | "set" => {
                let help = words::called_help(name).unwrap_or_default();
                let message = format!("there is no method `{name}`");
                return self.deny(codes::BAD_CALL, call.callee.span(), message, help);
            }
            "localeCompare" if call.arguments.len() == 2 => {
                let message = "`localeCompare` is the same in all locales here";
                let help = "leave the locale out: `a.localeCompare(b)`";
                return self.differs(call.span, message, help);
            }
            "localeCompare" if call.arguments.len() > 2 => {
                "the options `{ numeric: true, sensitivity: 'base' }` are there, with the locale \
                 `undefined` or `'en'`"
            }
            _ if utc(name).is_some() => return,
            _ if builtins::method(name).is_some() => return,
            _ => {
                let names = || builtins::METHODS.iter().map(|method| method.name);
                // The edit distance from `toUpper` to `toUpperCase` exceeds that of a typo.
                let longer = |like: &&str| name.len() > 3 && like.starts_with(name);
                let near = a99_core::diag::suggest(name, names());
                if self.has_method(name) {
                    let message = format!("there is no method `{name}` of what may be any value");
                    let help = "call it on a constant that holds the instance, or write a function \
                                that takes the object";
                    return self.deny(codes::BAD_CALL, call.callee.span(), message, help);
                }
                if let Some(help) = words::called_help(name) {
                    let message = format!("there is no method `{name}`");
                    return self.deny(codes::BAD_CALL, call.callee.span(), message, help);
                }
                let help = match near.or_else(|| names().find(longer).map(str::to_owned)) {
                    Some(like) => format!("did you mean `.{like}()`?"),
                    None => "docs/builtins.md lists the methods; yours are functions".to_owned(),
                };
                let message = format!("there is no method `{name}`");
                return self.deny(codes::BAD_CALL, call.callee.span(), message, help);
            }
        };
        self.unsupported(call.span, &format!("this `.{name}()`"), help);
    }

    pub(crate) fn new_expression(
        &mut self,
        new: &'a NewExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(new.span);
        let name = self.free_name(&new.callee).unwrap_or_default();
        if let Some(value) = self.new_formatter(new, out) {
            return value;
        }
        let help = match name {
            "Date" if new.arguments.len() < 8 => return self.made_date(&new.arguments, &at, out),
            "Set" if new.arguments.len() < 2 => "",
            "Array" => return self.sized_array(&new.arguments, new.span, out),
            "Object" if new.arguments.is_empty() => {
                return Value::new(Kind::Map(Vec::new()), &at);
            }
            "Date" => "give a text, a number, or parts from the year to milliseconds",
            "Map" if new.arguments.len() < 2 => {
                let exprs = self.arguments(&new.arguments);
                let values = self.exprs(&exprs, out);
                let values = values.into_iter().map(Value::operand).collect();
                return Value::node(of("Array", "toMap", values, &at));
            }
            _ if self.is_error(&new.callee) => {
                self.errors.is_wanted = true;
                "write `throw new Error(message)`, or `const error = new Error(message)`"
            }
            "Promise" if self.text_of(new.span).contains("setTimeout") => words::TIMER,
            "Promise" => "call the atoms, and wait for several with `Promise.all`",
            "RegExp" => "write a literal: `/a+/`",
            _ => {
                "only dates, sets and classes of the source are made with `new`; use plain objects and functions"
            }
        };
        if !help.is_empty() {
            self.unsupported(new.span, "this `new`", help);
            return Value::undefined(&at);
        }
        let exprs = self.arguments(&new.arguments);
        let values = self.exprs(&exprs, out);
        Value::node(builtin(name, values, &at))
    }
}

/// Returns the path that `context("path")` reads from the request context.
fn context_path<'a>(call: &'a CallExpression<'a>) -> Option<&'a str> {
    match &call.arguments[..] {
        [Argument::StringLiteral(path)] if !path.lone_surrogates => Some(path.value.as_str()),
        _ => None,
    }
}

/// Builds a call of a builtin function.
pub(crate) fn builtin(name: &str, values: Vec<Value>, at: &Place) -> Tree {
    let values = values.into_iter().map(Value::operand).collect();
    let fields = [
        ("callee", Tree::text(name, at)),
        ("arguments", Tree::list(values, at)),
    ];
    Tree::node("call", fields, at)
}

/// Builds `Number(x)`, `String(x)` or `Boolean(x)`.
pub(crate) fn convert(to: &str, value: Value, at: &Place) -> Value {
    let value = value.operand();
    Value::node(match to {
        "Number" => Tree::unary("+", value, at),
        "String" => Tree::node(
            "binary",
            [
                ("op", Tree::text("+", at)),
                ("left", Tree::text("", at)),
                ("right", value),
            ],
            at,
        ),
        _ => not(not(value)),
    })
}
