//! Lowers one turn of a callback: its parameter names and its value.

use crate::call::{builtin, convert};
use crate::code::only_expression;
use crate::expr::Hint;
use crate::known::parsed;
use crate::lower::{Lowerer, place, set};
use crate::pattern::of;
use crate::state::{Callback, Known};
use crate::tree::Tree;
use crate::value::{Kind, Value};
use oxc_ast::ast::{BindingPattern, FormalParameters};
use oxc_span::Span;

/// A callback in the loop that runs it, with its parameter names.
pub(crate) struct Turn<'a> {
    pub(crate) callback: Callback<'a>,
    /// Names of the item, its index, and the list, as far as the callback takes them.
    pub(crate) names: Vec<String>,
    /// Names of the arguments that the callback gets.
    pub(crate) given: Vec<String>,
    /// Steps before the callback that destructure its parameters.
    pub(crate) steps: Vec<Tree>,
    /// Names of the list that the loop iterates.
    pub(crate) lists: Vec<String>,
    pub(crate) at: Span,
}

impl<'a> Lowerer<'a> {
    /// Opens the scope of a callback that gets `given` arguments.
    pub(crate) fn turn(&mut self, callback: Callback<'a>, given: usize, at: Span) -> Turn<'a> {
        let (method, item) = std::mem::replace(&mut self.given, ("", Known::Nothing));
        self.push_scope();
        let mut turn = Turn {
            callback,
            names: Vec::new(),
            given: Vec::new(),
            steps: Vec::new(),
            lists: Vec::new(),
            at,
        };
        match callback {
            Callback::Code(code) => {
                let items = match method {
                    "sort" | "toSorted" => 0..2,
                    "reduce" => 1..2,
                    _ => 0..1,
                };
                let known = |index| match items.contains(&index) {
                    true => item,
                    false => Known::Nothing,
                };
                self.turn_params(&mut turn, code.params(), given, known);
                for (index, param) in code.params().items.iter().enumerate() {
                    if let BindingPattern::BindingIdentifier(id) = &param.pattern {
                        let js = id.name.as_str();
                        match items.contains(&index) && item != Known::Nothing {
                            true => self.note_known(js, item),
                            false => self.note_known_type(js, param.type_annotation.as_deref()),
                        }
                    }
                }
            }
            Callback::Helper(function) => {
                let wanted = match self.functions[function].has_rest {
                    true => given,
                    false => self.functions[function].arity.min(given),
                };
                turn.names = (0..wanted).map(|_| self.fresh()).collect();
            }
            Callback::Builtin(namespace, name) => {
                // Only these functions read more than the first argument.
                let wanted = match (namespace, name) {
                    ("Math", _) | ("Array" | "Object", _) => given,
                    (_, "parseInt") | ("JSON", _) => 2,
                    _ => 1,
                };
                turn.names = (0..wanted.min(given)).map(|_| self.fresh()).collect();
            }
        }
        turn.given = turn.names.clone();
        turn
    }

    fn turn_params(
        &mut self,
        turn: &mut Turn<'a>,
        params: &'a FormalParameters<'a>,
        given: usize,
        known: impl Fn(usize) -> Known,
    ) {
        for (index, param) in params.items.iter().enumerate() {
            if index >= given {
                let help = "the method hands over less: name what it needs in a constant";
                self.unsupported(param.span, "this parameter of a callback", help);
                continue;
            }
            let at = place(param.span);
            let (name, pattern) = match &param.pattern {
                BindingPattern::BindingIdentifier(id) => {
                    (self.variable(id.name.as_str(), id.span, false), None)
                }
                pattern => (self.fresh(), Some(pattern)),
            };
            let mut steps = Vec::new();
            if let Some(default) = &param.initializer {
                self.default(&name, default, &at, &mut steps);
            }
            if let Some(pattern) = pattern {
                let value = (Value::ident(&name, &at), known(index));
                self.bind_known(pattern, value, false, &mut steps);
            }
            turn.steps.append(&mut steps);
            turn.names.push(name);
        }
        if let Some(rest) = &params.rest {
            let at = place(rest.span);
            let first = turn.names.len();
            turn.names.extend((first..given).map(|_| self.fresh()));
            let rest_of = turn.names[first..].iter();
            let rest_of = rest_of.map(|name| Value::ident(name, &at)).collect();
            let value = Value::new(Kind::List(rest_of), &at);
            let mut steps = Vec::new();
            self.bind_pattern(&rest.rest.argument, value, false, &mut steps);
            turn.steps.append(&mut steps);
        }
    }

    /// Returns the items of a loop. If the callback names the list, a variable holds it, and the
    /// name refers to the variable in each turn.
    pub(crate) fn listed(
        &mut self,
        items: Value,
        turn: &mut Turn<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        if let Kind::Node(tree) = &items.kind {
            turn.lists.extend(tree.ident_name().map(str::to_owned));
        }
        if turn.names.len() < 3 {
            return items;
        }
        let at = items.place.clone();
        let list = self.fresh();
        out.push(set(&list, items.resolved(), &at));
        let name = turn.names[2].clone();
        if let Callback::Code(_) = turn.callback {
            turn.steps
                .insert(0, set(&name, Tree::ident(&list, &at), &at));
            turn.lists.push(name);
        } else {
            let given = turn.given.iter_mut().filter(|given| **given == name);
            given.for_each(|given| given.clone_from(&list));
        }
        Value::ident(&list, &at)
    }

    /// Returns the variable of the item or of its index. It differs from the parameter if the
    /// callback sets the parameter.
    pub(crate) fn kept(&mut self, turn: &mut Turn<'a>, index: usize) -> String {
        while turn.names.len() <= index {
            turn.names.push(self.fresh());
        }
        if let Callback::Code(code) = turn.callback
            && let Some(param) = code.params().items.get(index)
            && let BindingPattern::BindingIdentifier(id) = &param.pattern
            && (param.initializer.is_some() || self.scoping.is_set(id.span.start))
        {
            let at = place(id.span);
            let item = self.fresh();
            let param = std::mem::replace(&mut turn.names[index], item.clone());
            let given = set(&param, Tree::ident(&item, &at), &at);
            turn.steps.insert(0, given);
        }
        turn.names[index].clone()
    }

    /// Lowers a callback of one expression to its value and steps; `None` if it has statements.
    pub(crate) fn turn_value(&mut self, turn: &Turn<'a>, out: &mut Vec<Tree>) -> Option<Value> {
        let at = place(turn.at);
        let names = turn.given.clone();
        let given = || {
            names
                .iter()
                .map(|name| Value::ident(name, &at))
                .collect::<Vec<_>>()
        };
        match turn.callback {
            Callback::Code(code) => {
                let expr = only_expression(code)?;
                self.awaits(expr);
                Some(self.expr(expr, out))
            }
            Callback::Helper(function) => {
                let arguments = self.with_rest(function, given(), &at);
                Some(self.helper_call(function, arguments, turn.at, Hint::None, out))
            }
            Callback::Builtin("", to @ ("Number" | "String" | "Boolean")) => {
                let first = given().into_iter().next();
                first.map(|value| convert(to, value, &at))
            }
            Callback::Builtin("", name) => Some(Value::node(builtin(name, given(), &at))),
            Callback::Builtin("Date", "parse") => given().into_iter().next().map(parsed),
            Callback::Builtin(namespace, name) => {
                let arguments = given().into_iter().map(Value::operand).collect();
                Some(Value::node(of(namespace, name, arguments, &at)))
            }
        }
    }
}
