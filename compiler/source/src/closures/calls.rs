//! Reads calls into a model, with what builtins do with functions and lists.

use super::flow::{Call, Made, Node, PLAIN};
use super::model::{Calls, Declared, Model, Place, Sink, Site, Used};
use crate::atom::code_of;
use oxc_ast::ast::{Argument, CallExpression, Expression, NewExpression};
use oxc_span::GetSpan;

/// Methods that give a new list of the receiver's items.
const LISTS: &[&str] = &[
    "filter",
    "slice",
    "concat",
    "toSorted",
    "sort",
    "reverse",
    "toReversed",
    "splice",
    "toSpliced",
    "with",
    "flat",
    "fill",
    "copyWithin",
    "values",
    "keys",
    "union",
    "intersection",
    "difference",
    "symmetricDifference",
];

/// Methods that give an item of the receiver.
const ITEMS: &[&str] = &["find", "findLast", "at", "pop", "shift", "get"];

/// Methods whose arguments become items of the receiver.
const ADDS: &[&str] = &[
    "push",
    "unshift",
    "add",
    "set",
    "fill",
    "splice",
    "with",
    "toSpliced",
];

/// Methods that move items of the receiver.
const MIXES: &[&str] = &[
    "sort",
    "reverse",
    "splice",
    "shift",
    "unshift",
    "copyWithin",
    "fill",
];

/// Methods that give the receiver.
const SAME: &[&str] = &["add", "set", "sort", "reverse", "fill", "copyWithin"];

/// Methods that compare their arguments with the items.
const COMPARES: &[&str] = &["includes", "indexOf", "lastIndexOf", "has", "delete"];

/// True for a method that gives only what its callback gives.
pub(super) fn gives_results(name: &str) -> bool {
    matches!(name, "map" | "flatMap" | "reduce" | "reduceRight")
}

impl<'a> Model<'a> {
    /// Reads a call and returns the node of its value.
    pub(crate) fn call(&mut self, call: &'a CallExpression<'a>) -> Node {
        let result = self.flow.node();
        let span = call.span;
        let id = self.sites.len();
        self.sites.push(Site {
            span,
            calls: Calls::Other,
            call: Some(call),
            args: &call.arguments,
            target: self.plain,
            member: None,
            name: "",
            fun: self.current,
            slot: None,
        });
        let callee = call.callee.get_inner_expression();
        match callee {
            Expression::Identifier(name) => match self.lookup(name.name.as_str()) {
                Some(symbol) => {
                    let target = self.name(name.name.as_str(), name.span, Place::Callee, false);
                    self.sites[id].calls = Calls::Name(symbol);
                    self.sites[id].target = target;
                    self.flow_call(id, target, None, result);
                }
                None => {
                    self.sites[id].calls = Calls::Global;
                    self.sites[id].name = name.name.as_str();
                    self.global_call(id, name.name.as_str(), result);
                }
            },
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                self.sites[id].name = name;
                if let Expression::Identifier(object) = member.object.get_inner_expression()
                    && self.lookup(object.name.as_str()).is_none()
                {
                    self.sites[id].calls = Calls::Namespace;
                    self.namespace_call(id, object.name.as_str(), name, result);
                } else {
                    let receiver = self.owner(&member.object);
                    self.method(id, receiver, result);
                }
            }
            Expression::PrivateFieldExpression(member) => {
                let receiver = self.owner(&member.object);
                self.sites[id].name = self.private_name(member.field.span);
                self.method(id, receiver, result);
            }
            Expression::ComputedMemberExpression(member) => {
                // The member may use `this`, as a method does.
                let receiver = self.expr(&member.object, Place::Value);
                let key = self.expr(&member.expression, Place::Value);
                self.sinks
                    .push((key, member.expression.span(), Sink::Operand));
                let target = self.flow.load(receiver, super::flow::Key::Any);
                let at = callee.span();
                self.nodes.insert((at.start, at.end), target);
                self.sites[id].target = target;
                self.flow_call(id, target, Some(receiver), result);
            }
            callee => {
                let code = code_of(callee);
                let takes = |code: crate::lower::Code<'a>| {
                    let params = code.params();
                    !params.items.is_empty() || params.rest.is_some()
                };
                let target = self.expr(callee, Place::Callee);
                if let Some(code) = code
                    && !takes(code)
                    && call.arguments.is_empty()
                    && let Some(fun) = self.fun_at(code)
                {
                    self.funs[fun].is_inline = true;
                }
                self.sites[id].target = target;
                self.flow_call(id, target, None, result);
            }
        }
        result
    }

    /// Reads the arguments of a call.
    pub(super) fn args(&mut self, id: usize) -> Vec<(Node, bool)> {
        let args = self.sites[id].args;
        let slot = self.sites[id].slot;
        let mut nodes = Vec::with_capacity(args.len());
        for (index, argument) in args.iter().enumerate() {
            let node = match argument {
                Argument::SpreadElement(spread) => {
                    (self.expr(&spread.argument, Place::Value), true)
                }
                argument => match argument.as_expression() {
                    Some(expr) => {
                        let node = self.expr(expr, Place::Argument(id, index));
                        if slot.is_some_and(|slot| slot.0 == index)
                            && let Some(code) = code_of(expr)
                            && let Some(fun) = self.fun_at(code)
                        {
                            self.funs[fun].slot = Some(id);
                        }
                        (node, false)
                    }
                    None => (self.plain, false),
                },
            };
            nodes.push(node);
        }
        nodes
    }

    fn flow_call(&mut self, id: usize, target: Node, this: Option<Node>, result: Node) {
        let args = self.args(id);
        let call = Call {
            args,
            this,
            name: String::new(),
            result,
        };
        self.flow.call(target, call);
    }

    /// Calls a callback with these values and returns the node of its results.
    pub(super) fn callback(&mut self, callback: Node, args: &[Node]) -> Node {
        let result = self.flow.node();
        let args = args.iter().map(|node| (*node, false)).collect();
        let call = Call {
            args,
            result,
            ..Call::default()
        };
        self.flow.call(callback, call);
        result
    }

    pub(super) fn sink_args(&mut self, id: usize, nodes: &[(Node, bool)], sink: Sink) {
        for (argument, (node, _)) in self.sites[id].args.iter().zip(nodes) {
            self.sinks.push((*node, argument.span(), sink));
        }
    }

    /// Reads the call of an atom or of a builtin function.
    fn global_call(&mut self, id: usize, name: &str, result: Node) {
        let known = a99_core::builtins::global(name);
        let is_builtin = known.is_some();
        let before = self.uses.len();
        let args = self.args(id);
        if matches!(known, Some(a99_core::builtins::Global::Refused(_))) {
            // Lowering says what to write for the name.
            return self.flow.put(result, PLAIN);
        }
        if is_builtin {
            self.flow.put(result, PLAIN);
            let sink = match name {
                "Boolean" => return,
                "structuredClone" => Sink::Copied,
                _ => Sink::Operand,
            };
            if name == "structuredClone"
                && let Some((node, _)) = args.first()
            {
                self.flow.edge(*node, result);
            }
            return self.sink_args(id, &args, sink);
        }
        // Functions in the argument of an atom are steps of it.
        let data = self.data;
        self.flow.edge(data, result);
        let mut steps = Vec::new();
        for index in before..self.uses.len() {
            let one = self.uses[index];
            let is_function = match one.of {
                Used::Literal(_) => true,
                Used::Symbol(symbol) => {
                    matches!(self.symbols[symbol].declared, Declared::Function(_))
                }
            };
            if is_function && one.fun == self.current && one.place == Place::Value {
                self.uses[index].place = Place::Atom;
                if let Used::Literal(fun) = one.of {
                    self.funs[fun].is_inline = true;
                    steps.push(fun);
                }
            }
        }
        for fun in steps {
            let callee = self.flow.callees[fun].clone();
            for param in callee.params {
                self.flow.edge(data, param);
            }
            self.flow.edge(callee.result, result);
        }
        let sites = self.sites[id].args.iter().zip(&args);
        let sinks: Vec<_> = sites
            .map(|(argument, (node, _))| (*node, argument.span()))
            .collect();
        for (node, at) in sinks {
            self.sinks.push((node, at, Sink::Atom));
        }
    }

    /// Reads the call of a method.
    fn method(&mut self, id: usize, receiver: Node, result: Node) {
        let name = self.sites[id].name;
        let member = self
            .flow
            .load(receiver, super::flow::Key::Name(name.to_owned()));
        self.sites[id].calls = Calls::Method;
        self.sites[id].target = receiver;
        self.sites[id].member = Some(member);
        let takes = crate::callback::takes_callback(name);
        self.sites[id].slot = match name {
            "replace" | "replaceAll" => Some((1, usize::MAX)),
            "reduce" | "reduceRight" => Some((0, 4)),
            "sort" | "toSorted" => Some((0, 2)),
            "then" | "catch" | "finally" => Some((0, 1)),
            _ if takes => Some((0, 3)),
            _ => None,
        };
        let args = self.args(id);
        let call = Call {
            args: args.clone(),
            this: Some(receiver),
            name: name.to_owned(),
            result,
        };
        self.flow.call_method(receiver, call);
        let given = self.builtin_method(id, receiver, &args);
        self.flow.builtin(receiver, given, result);
    }

    /// The value of a builtin method of this name.
    fn builtin_method(&mut self, id: usize, receiver: Node, args: &[(Node, bool)]) -> Node {
        let name = self.sites[id].name;
        let given = self.flow.node();
        let plain = self.plain;
        let item = self.flow.items(receiver);
        let first = args.first().map(|(node, _)| *node);
        if LISTS.contains(&name) {
            let all = self.flow.node();
            match name {
                "values" => {
                    let value = self.flow.values_of(receiver);
                    self.flow.edge(value, all);
                }
                "keys" => self.flow.put(all, PLAIN),
                _ => self.flow.edge(item, all),
            }
            for (node, is_spread) in args {
                let items = self.flow.items(*node);
                self.flow.edge(items, all);
                if !is_spread && name != "filter" && name != "sort" && name != "toSorted" {
                    self.flow.edge(*node, all);
                }
            }
            if name == "flat" {
                let inner = self.flow.items(item);
                self.flow.edge(inner, all);
            }
            let list = self.flow.list(all);
            self.flow.edge(list, given);
        }
        if name == "entries" {
            let value = self.flow.values_of(receiver);
            let pair = self.flow.pair(plain, value);
            let list = self.flow.list(pair);
            self.flow.edge(list, given);
        }
        if ITEMS.contains(&name) {
            let value = self.flow.values_of(receiver);
            self.flow.edge(value, given);
            self.flow.put(given, PLAIN);
        }
        if ADDS.contains(&name) {
            let skipped = usize::from(name == "set");
            for (node, is_spread) in args.iter().skip(skipped) {
                let value = match is_spread {
                    true => self.flow.items(*node),
                    false => *node,
                };
                self.flow.store_item(receiver, value);
            }
        }
        if name == "set"
            && let Some((key, _)) = args.first()
        {
            let at = self.sites[id].args[0].span();
            self.sinks.push((*key, at, Sink::Operand));
        }
        if MIXES.contains(&name) {
            self.flow.mix(receiver);
        }
        if SAME.contains(&name) {
            self.flow.edge(receiver, given);
        }
        if COMPARES.contains(&name) {
            // No list contains a new function: another method is meant.
            let written = self.sites[id].args.iter();
            let mut written = written.filter_map(|arg| arg.as_expression());
            if let Some(code) = written.find_map(|arg| code_of(arg)) {
                self.foreign(code.span());
            }
            for (node, _) in args {
                self.equals.push((item, *node, self.sites[id].span));
            }
        }
        match (name, first) {
            ("map", Some(callback)) => {
                let value = self.callback(callback, &[item, plain, receiver]);
                let list = self.flow.list(value);
                self.flow.edge(list, given);
            }
            ("flatMap", Some(callback)) => {
                let value = self.callback(callback, &[item, plain, receiver]);
                let inner = self.flow.items(value);
                self.flow.edge(value, inner);
                let list = self.flow.list(inner);
                self.flow.edge(list, given);
            }
            ("reduce" | "reduceRight", Some(callback)) => {
                let total = self.flow.node();
                match args.get(1) {
                    Some((initial, _)) => self.flow.edge(*initial, total),
                    None => self.flow.edge(item, total),
                }
                let value = self.callback(callback, &[total, item, plain, receiver]);
                self.flow.edge(value, total);
                self.flow.edge(total, given);
            }
            ("sort" | "toSorted", Some(callback)) => {
                self.callback(callback, &[item, item]);
            }
            ("replace" | "replaceAll", _) => {
                if let Some((callback, _)) = args.get(1) {
                    self.callback(*callback, &[plain, plain, plain]);
                }
                self.flow.put(given, PLAIN);
            }
            ("then" | "catch" | "finally", Some(callback)) => {
                let value = self.callback(callback, &[receiver]);
                self.flow.edge(value, given);
                self.flow.edge(receiver, given);
            }
            ("forEach", Some(callback)) => {
                let value = self.flow.values_of(receiver);
                self.callback(callback, &[value, plain, receiver]);
            }
            (_, Some(callback)) if self.sites[id].slot.is_some() => {
                self.callback(callback, &[item, plain, receiver]);
            }
            _ => {}
        }
        let is_known = [LISTS, ITEMS, ADDS, COMPARES]
            .iter()
            .any(|names| names.contains(&name))
            || self.sites[id].slot.is_some();
        if !is_known {
            self.flow.put(given, PLAIN);
            if name == "join" {
                self.sinks.push((item, self.sites[id].span, Sink::Text));
            }
            self.unknown_args.push(id);
        }
        if matches!(name, "slice" | "concat" | "at" | "with") || COMPARES.contains(&name) {
            self.flow.put(given, PLAIN);
        }
        given
    }

    pub(crate) fn new_object(&mut self, new: &'a NewExpression<'a>) -> Node {
        let result = self.flow.node();
        let id = self.sites.len();
        self.sites.push(Site {
            span: new.span,
            calls: Calls::Global,
            call: None,
            args: &new.arguments,
            target: self.plain,
            member: None,
            name: "",
            fun: self.current,
            slot: None,
        });
        let js = match new.callee.get_inner_expression() {
            Expression::Identifier(name) => name.name.as_str(),
            // A formatter.
            Expression::StaticMemberExpression(member) => match &member.object {
                Expression::Identifier(name) => name.name.as_str(),
                _ => "",
            },
            _ => "",
        };
        if js.is_empty() {
            self.foreign(new.span);
            return result;
        }
        if let Some(symbol) = self.lookup(js) {
            let Declared::Class(class) = self.symbols[symbol].declared else {
                self.foreign(new.span);
                return result;
            };
            self.sites[id].calls = Calls::New(class);
            let args = self.args(id);
            let (constructor, instance) = (
                self.classes[class].constructor,
                self.classes[class].instance,
            );
            if let Some(constructor) = constructor {
                let site = self.flow.function_site(constructor);
                let node = self.flow.holding(site);
                let ignored = self.flow.node();
                let call = Call {
                    args,
                    result: ignored,
                    ..Call::default()
                };
                self.flow.call(node, call);
            }
            self.flow.put(result, instance);
            return result;
        }
        if js == "Promise" {
            let help = match self.text_of(new.span).contains("setTimeout") {
                true => crate::words::TIMER,
                false => {
                    "a call waits where it stands: write an `async` function that returns the value"
                }
            };
            self.refuse(new.span, "`new Promise`", help);
            return result;
        }
        let args = self.args(id);
        let first = args.first().map(|(node, _)| *node);
        match js {
            "Map" | "Set" | "WeakMap" | "WeakSet" | "Array" => {
                let is_map = js.ends_with("Map");
                let made = match is_map {
                    true => Made::Map,
                    false => Made::Items,
                };
                let site = self.flow.object(made);
                let object = self.flow.holding(site);
                if let Some(first) = first {
                    let mut item = self.flow.items(first);
                    if is_map {
                        item = self.flow.load(item, super::flow::Key::Name("1".to_owned()));
                    }
                    self.flow.store_item(object, item);
                }
                self.flow.edge(object, result);
            }
            _ => {
                self.flow.put(result, PLAIN);
                let sink = match js {
                    "Error" => Sink::Thrown,
                    _ => Sink::Operand,
                };
                self.sink_args(id, &args, sink);
            }
        }
        result
    }
}
