//! Lowers calls of function values and of methods of instances: branches over the functions that
//! the value may stand for.

use crate::control::fail;
use crate::expr::Hint;
use crate::lower::{Lowerer, What, branch, place, set};
use crate::pattern::{is_missing, member_of};
use crate::tree::{Place, Tree};
use crate::value::Value;
use hashbrown::HashMap;
use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_span::Span;

/// First argument of a function after the variables that it captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    None,
    /// The object that the call names.
    This,
    /// The value whose function is called: an instance.
    Value,
}

/// A function that a value may stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arm {
    /// Number in the value.
    pub(crate) tag: usize,
    pub(crate) helper: String,
    /// Members of the value that are arguments.
    pub(crate) captures: Vec<String>,
    pub(crate) target: Target,
}

/// What a call of a value does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dispatch {
    /// The functions in the order of their numbers.
    pub(crate) arms: Vec<Arm>,
    /// Member with the number.
    pub(crate) key: String,
    /// True if the second argument is the object of the call.
    pub(crate) takes_this: bool,
    /// True if the value may be something else.
    pub(crate) is_checked: bool,
    /// True if a missing value skips the call.
    pub(crate) is_optional: bool,
    /// Member that holds the function, if the first argument is the object of the call.
    pub(crate) member: Option<String>,
    /// The callee in the source.
    pub(crate) text: String,
}

/// Facts about a rewritten source.
#[derive(Default)]
pub(crate) struct ByValue {
    /// Names under which calls of function values stand, and the functions that they call.
    pub(crate) dispatches: HashMap<String, Dispatch>,
    /// Offset of the agent's function.
    pub(crate) agent_at: Option<u32>,
}

/// A call with its arguments in variables or constants.
struct Ready<'a, 'd> {
    call: &'a CallExpression<'a>,
    dispatch: &'d Dispatch,
    value: Value,
    this: Option<Value>,
    args: Vec<Value>,
    /// List of all arguments if some are spread.
    spread: Option<Value>,
    /// Number of the function.
    tag: Value,
}

impl<'a> Lowerer<'a> {
    /// Lowers a call under the name of a dispatch.
    pub(crate) fn dispatched(
        &mut self,
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let dispatch = self.by_value.dispatches.get(name)?.clone();
        let at = place(call.span);
        let is_spread = |argument: &Argument<'a>| argument.as_expression().is_none();
        let own = 1 + usize::from(dispatch.takes_this);
        let (first, rest) = call.arguments.split_at_checked(own)?;
        let first: Vec<&'a Expression<'a>> =
            first.iter().filter_map(Argument::as_expression).collect();
        let mut done = self.exprs(&first, out);
        if let Some(member) = &dispatch.member {
            let object = done.remove(0);
            let object = self.once(object, out);
            done.push(member_of(object.clone(), Value::text(member, &at), &at));
            done.push(object);
        }
        let result = match hint {
            Hint::Drop => None,
            Hint::Set(name) if !dispatch.is_optional && self.all_give(&dispatch) => {
                Some(name.to_owned())
            }
            hint => Some(self.target(hint)),
        };
        if !dispatch.is_optional {
            let ready = self.ready(&dispatch, call, done, rest.iter().any(is_spread), out);
            let mut steps = self.arms(&ready, 0..ready.dispatch.arms.len(), result.as_deref());
            out.append(&mut steps);
        } else {
            // A missing function skips the evaluation of the arguments.
            let value = done.remove(0);
            let value = self.named(value, out);
            done.insert(0, value.clone());
            let mut steps = Vec::new();
            let ready = self.ready(
                &dispatch,
                call,
                done,
                rest.iter().any(is_spread),
                &mut steps,
            );
            let mut arms = self.arms(&ready, 0..ready.dispatch.arms.len(), result.as_deref());
            steps.append(&mut arms);
            let skip = match &result {
                Some(result) => vec![set(result, Tree::undefined(&at), &at)],
                None => Vec::new(),
            };
            let test = crate::steps::not(is_missing(value.operand(), &at));
            out.push(branch(test, steps, skip, &at));
        }
        Some(match result {
            Some(result) => Value::ident(&result, &at),
            None => Value::undefined(&at),
        })
    }

    /// True if no function of a dispatch returns `undefined`.
    fn all_give(&self, dispatch: &Dispatch) -> bool {
        dispatch.arms.iter().all(|arm| {
            let what = self.lookup(&arm.helper).map(|id| &self.bindings[id].what);
            matches!(what, Some(What::Function(function)) if self.functions[*function].gives_value)
        })
    }

    /// Evaluates the arguments of a call once.
    fn ready<'d>(
        &mut self,
        dispatch: &'d Dispatch,
        call: &'a CallExpression<'a>,
        mut done: Vec<Value>,
        has_spread: bool,
        out: &mut Vec<Tree>,
    ) -> Ready<'a, 'd> {
        let at = place(call.span);
        let own = 1 + usize::from(dispatch.takes_this);
        let rest = call.arguments.get(own..).unwrap_or_default();
        let is_single = dispatch.arms.len() == 1;
        let mut spread = None;
        let mut steps = Vec::new();
        let mut args = Vec::new();
        if has_spread {
            let elements = rest.iter().filter_map(|argument| match argument {
                Argument::SpreadElement(spread) => Some((&spread.argument, true)),
                argument => Some((argument.as_expression()?, false)),
            });
            let elements: Vec<(&'a Expression<'a>, bool)> = elements.collect();
            let all = self.elements(&elements, &at, &mut steps);
            spread = Some(self.named(all, &mut steps));
        } else {
            let exprs: Vec<&'a Expression<'a>> =
                rest.iter().filter_map(Argument::as_expression).collect();
            self.permit(&exprs);
            args = self.exprs(&exprs, &mut steps);
        }
        self.keep(&mut done, &steps, out);
        out.append(&mut steps);
        if !is_single {
            // Each branch has the arguments, so that they are evaluated before.
            args = args.into_iter().map(|arg| self.once(arg, out)).collect();
        }
        let mut done = done.into_iter();
        let value = done.next().unwrap_or_else(|| Value::undefined(&at));
        let value = match is_single && !dispatch.is_checked && dispatch.arms[0].captures.len() < 2 {
            true => value,
            false => self.once(value, out),
        };
        let this = done.next().map(|this| self.once(this, out));
        let mut tag = Value::undefined(&at);
        if dispatch.arms.len() > 1 || (dispatch.is_checked && !self.is_instance(dispatch)) {
            tag = member_of(value.clone(), Value::text(&dispatch.key, &at), &at);
            if dispatch.arms.len() > 2 {
                tag = self.once(tag, out);
            }
        }
        Ready {
            call,
            dispatch,
            value,
            this,
            args,
            spread,
            tag,
        }
    }

    /// True if a call calls a method of the one class that the value may have.
    fn is_instance(&self, dispatch: &Dispatch) -> bool {
        dispatch.arms.iter().all(|arm| arm.target == Target::Value) && dispatch.arms.len() == 1
    }

    /// Keeps a value in a variable unless it is one, or a constant.
    fn once(&mut self, value: Value, out: &mut Vec<Tree>) -> Value {
        match value.is_scalar() {
            true => value,
            false => self.named(value, out),
        }
    }

    /// Builds the steps that call one of the functions in this range.
    fn arms(
        &mut self,
        ready: &Ready<'a, '_>,
        range: std::ops::Range<usize>,
        result: Option<&str>,
    ) -> Vec<Tree> {
        let at = place(ready.call.span);
        let dispatch = ready.dispatch;
        let Some(arm) = dispatch.arms.get(range.start) else {
            return self.no_function(ready, &at);
        };
        let number = |tag: usize| Value::number(tag as f64, &at).operand();
        if range.len() > 1 {
            let middle = range.start + range.len() / 2;
            let pivot = &dispatch.arms[middle];
            let low = self.arms(ready, range.start..middle, result);
            let high = self.arms(ready, middle..range.end, result);
            let op = match range.len() {
                2 if !dispatch.is_checked => "===",
                _ => "<",
            };
            let (op, with) = match op {
                "===" => ("===", arm.tag),
                _ => ("<", pivot.tag),
            };
            let test = Tree::binary(op, ready.tag.clone().operand(), number(with), &at);
            return vec![branch(test, low, high, &at)];
        }
        let call = self.arm(ready, arm, result);
        if !dispatch.is_checked {
            return call;
        }
        let none = self.no_function(ready, &at);
        if self.is_instance(dispatch) {
            let test = is_missing(ready.value.clone().operand(), &at);
            let mut steps = vec![branch(test, none, Vec::new(), &at)];
            steps.extend(call);
            return steps;
        }
        let test = Tree::binary("===", ready.tag.clone().operand(), number(arm.tag), &at);
        vec![branch(test, call, none, &at)]
    }

    fn no_function(&self, ready: &Ready<'a, '_>, at: &Place) -> Vec<Tree> {
        let text = &ready.dispatch.text;
        let message = match text.len() <= 80 && !text.contains('\n') {
            true => format!("{text} is not a function"),
            false => "the value is not a function".to_owned(),
        };
        fail(Value::text(&message, at), at)
    }

    /// Builds the call of one function.
    fn arm(&mut self, ready: &Ready<'a, '_>, arm: &Arm, result: Option<&str>) -> Vec<Tree> {
        let at = place(ready.call.span);
        let mut steps = Vec::new();
        let function = self
            .lookup(&arm.helper)
            .map(|id| self.bindings[id].what.clone());
        let Some(What::Function(function)) = function else {
            let span = Span::new(ready.call.span.start, ready.call.span.end);
            self.unsupported(span, "a call of this function", "call it by its name");
            return steps;
        };
        let member = |name: &String| member_of(ready.value.clone(), Value::text(name, &at), &at);
        let mut args: Vec<Value> = arm.captures.iter().map(member).collect();
        match arm.target {
            Target::None => {}
            Target::This => args.extend(ready.this.clone()),
            Target::Value => args.push(ready.value.clone()),
        }
        match &ready.spread {
            None => args.extend(ready.args.iter().cloned()),
            Some(all) => {
                let (arity, has_rest) = (
                    self.functions[function].arity,
                    self.functions[function].has_rest,
                );
                let own = arity.saturating_sub(args.len());
                let item =
                    |index: usize| member_of(all.clone(), Value::number(index as f64, &at), &at);
                args.extend((0..own).map(item));
                if has_rest {
                    let start = vec![Tree::number(own as f64, &at)];
                    let list = all.clone().operand();
                    args.push(Value::node(crate::pattern::method(
                        list, "slice", start, &at,
                    )));
                }
            }
        }
        if ready.spread.is_none() {
            let has_rest = self.functions[function].has_rest;
            if !has_rest {
                // Arguments beyond the parameters are evaluated and dropped.
                let arity = self.functions[function].arity;
                for more in args.split_off(arity.min(args.len())) {
                    crate::effect::done(more, &at, &mut steps);
                }
            }
            args = self.with_rest(function, args, &at);
        }
        let hint = match result {
            Some(result) => Hint::Fresh(result),
            None => Hint::Drop,
        };
        self.helper_call(function, args, ready.call.span, hint, &mut steps);
        steps
    }
}
