//! Functions that make an error and return it. Their calls stand where `new Error(...)` may.

use crate::lower::{BindingId, Code, Lowerer, What, place};
use crate::tree::Tree;
use crate::value::Value;
use oxc_ast::ast::{
    BindingPattern, CallExpression, Expression, Statement, VariableDeclarationKind,
};
use oxc_span::GetSpan as _;

/// Maximum functions that call each other to make an error.
const MAX_DEPTH: usize = 8;

impl<'a> Lowerer<'a> {
    /// The call if an expression calls a function that makes an error.
    pub(crate) fn error_call(&self, expr: &'a Expression<'a>) -> Option<&'a CallExpression<'a>> {
        self.error_call_within(expr, MAX_DEPTH)
    }

    fn error_call_within(
        &self,
        expr: &'a Expression<'a>,
        depth: usize,
    ) -> Option<&'a CallExpression<'a>> {
        let Expression::CallExpression(call) = expr.get_inner_expression() else {
            return None;
        };
        let Expression::Identifier(id) = &call.callee else {
            return None;
        };
        let binding = self.lookup(id.name.as_str())?;
        let What::Function(function) = self.bindings[binding].what else {
            return None;
        };
        self.is_maker(function, binding, depth).then_some(call)
    }

    /// True if a function returns new errors only, and all places of its name call it.
    fn is_maker(&self, function: usize, binding: BindingId, depth: usize) -> bool {
        let known = self.errors.makers.borrow().get(&function).copied();
        if let Some(known) = known {
            return known;
        }
        self.errors.makers.borrow_mut().insert(function, false);
        let code = self.functions[function].whole;
        let is_maker = code.is_some_and(|code| self.makes_errors(code, depth))
            && self.is_only_called(self.bindings[binding].at);
        self.errors.makers.borrow_mut().insert(function, is_maker);
        is_maker
    }

    /// True if a function makes an error and returns it.
    fn gives_error(&self, function: usize) -> bool {
        let is_it = |binding: &crate::lower::Binding| matches!(binding.what, What::Function(one) if one == function);
        let code = self.functions[function].whole;
        code.is_some_and(|code| self.makes_errors(code, MAX_DEPTH))
            && self
                .bindings
                .iter()
                .position(is_it)
                .is_some_and(|binding| self.is_maker(function, binding, MAX_DEPTH))
    }

    fn makes_errors(&self, code: Code<'a>, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let is_plain = match code {
            Code::Function(function) => !function.r#async && !function.generator,
            Code::Arrow(arrow) => !arrow.r#async,
        };
        let makes = |expr: &'a Expression<'a>| {
            self.makes_new_error(expr) || self.error_call_within(expr, depth).is_some()
        };
        if !is_plain {
            return false;
        }
        if let Some(only) = crate::code::only_expression(code) {
            return makes(only);
        }
        let body = crate::code::statements(code);
        let returned = crate::defined::returned(body);
        let holds = |name: &str| {
            body.iter().any(|statement| {
                let Statement::VariableDeclaration(variables) = statement else {
                    return false;
                };
                variables.kind == VariableDeclarationKind::Const
                    && variables.declarations.iter().any(|one| {
                        matches!(&one.id, BindingPattern::BindingIdentifier(id) if id.name == name)
                            && one.init.as_ref().is_some_and(makes)
                    })
            })
        };
        let is_error = |end: &Option<&'a Expression<'a>>| match end {
            Some(Expression::Identifier(id)) => holds(id.name.as_str()),
            Some(expr) => makes(expr),
            None => false,
        };
        !returned.is_empty() && crate::code::ends(body) && returned.iter().all(is_error)
    }

    /// True if all other places of the name that is declared here call it.
    fn is_only_called(&self, at: u32) -> bool {
        let name = self.source.get(at as usize..).unwrap_or_default();
        let end = name.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$'));
        let length = end.unwrap_or(name.len());
        self.scoping.variable(at).is_some_and(|variable| {
            let mut others = variable.places.iter().filter(|place| **place != at);
            others.all(|place| {
                let behind = self.source.get(*place as usize + length..);
                behind.is_some_and(|behind| behind.trim_start().starts_with('('))
            })
        })
    }

    /// Lowers a call of a function that makes an error.
    pub(crate) fn error_from_call(
        &mut self,
        call: &'a CallExpression<'a>,
        expr: &'a Expression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        self.errors.is_wanted = true;
        self.errors.made.insert(call.span.start);
        for (index, argument) in call.arguments.iter().enumerate() {
            if let Some(argument) = argument.as_expression()
                && self.takes_cause(call, index)
            {
                self.error_object(argument, "");
            }
        }
        self.expr(expr, out)
    }

    /// True if the parameter at this position is only the cause of the error, so that it may be an
    /// error.
    fn takes_cause(&self, call: &'a CallExpression<'a>, index: usize) -> bool {
        let Expression::Identifier(id) = &call.callee else {
            return false;
        };
        let function = self
            .lookup(id.name.as_str())
            .map(|id| &self.bindings[id].what);
        let Some(What::Function(function)) = function else {
            return false;
        };
        let param = self.functions[*function]
            .whole
            .and_then(|code| code.params().items.get(index));
        let Some(BindingPattern::BindingIdentifier(id)) = param.map(|param| &param.pattern) else {
            return false;
        };
        let name = id.name.as_str();
        let at = id.span.start;
        self.scoping.variable(at).is_some_and(|variable| {
            let mut others = variable.places.iter().filter(|place| **place != at);
            others.all(|place| {
                let place = *place as usize;
                let (before, behind) = (
                    self.source.get(..place),
                    self.source.get(place + name.len()..),
                );
                let (before, behind) = (
                    before.unwrap_or_default().trim_end(),
                    behind.unwrap_or_default().trim_start(),
                );
                let is_short = name == "cause" && before.ends_with('{') && behind.starts_with('}');
                let is_set = before
                    .strip_suffix('=')
                    .is_some_and(|before| before.trim_end().ends_with(".cause"));
                is_short
                    || is_set
                    || before.ends_with("cause:")
                    || behind.starts_with('.')
                    || behind.starts_with("?.")
            })
        })
    }

    /// Refuses a call of a function that makes an error where errors are no values.
    pub(crate) fn check_error_call(&mut self, call: &'a CallExpression<'a>, function: usize) {
        if self.errors.is_on
            && !self.errors.made.contains(&call.span.start)
            && self.gives_error(function)
        {
            let help = "throw it, or keep it in a constant that is thrown: `const error = make()`";
            self.unsupported(call.span, "an error as a value", help);
        }
    }

    /// Lowers the error that a function returns; `None` for other values.
    pub(crate) fn returned_error(
        &mut self,
        value: &'a Expression<'a>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        if !self.gives_error(self.current) {
            return None;
        }
        self.errors.is_wanted = true;
        if let Some(id) = self.error_named(value) {
            self.note_read(id);
            return Some(Value::ident(
                &self.bindings[id].name.clone(),
                &place(value.span()),
            ));
        }
        self.error_made(value, out)
    }
}
