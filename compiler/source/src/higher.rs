//! Specialises functions that take functions: a copy of the function for each set of function
//! arguments, in which the parameter is that function.

use crate::codes;
use crate::expr::Hint;
use crate::library;
use crate::lower::{Code, Lowerer, MAX_FINDINGS, What, place};
use crate::pattern::of;
use crate::state::Copied;
use crate::tree::Tree;
use crate::value::Value;
use oxc_ast::ast::{Argument, BindingPattern, CallExpression, Expression};
use oxc_span::Span;

/// Maximum depth of copies for calls within copies.
const MAX_COPIES: usize = 8;

/// A function that is passed as an argument.
enum Handed<'a> {
    /// An inline function.
    Code(Code<'a>),
    /// A named function, by its index.
    Known(usize),
}

impl<'a> Lowerer<'a> {
    /// Lowers a call that passes functions; `None` if no argument is a function.
    pub(crate) fn higher_call(
        &mut self,
        js: &'a str,
        function: usize,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let whole = self.functions[function].whole?;
        let mut handed = Vec::new();
        let mut others = Vec::new();
        for (index, argument) in call.arguments.iter().enumerate() {
            let param = whole.params().items.get(index).map(|param| &param.pattern);
            let is_name = matches!(param, Some(BindingPattern::BindingIdentifier(_)));
            match (self.handed(argument), argument.as_expression()) {
                (Some(code), _) if is_name => handed.push((index, code)),
                (_, Some(expr)) => others.push(expr),
                (_, None) => return None,
            }
        }
        if handed.is_empty() {
            return None;
        }
        let bound = handed
            .into_iter()
            .map(|(index, handed)| (index, self.handed_function(js, handed, call.span)));
        let copied = Copied {
            bound: bound.collect(),
            of: function,
        };
        let Some(copy) = self.copy(js, copied, whole, call.span) else {
            return Some(Value::undefined(&place(call.span)));
        };
        self.permit(&others);
        let arguments = self.exprs(&others, out);
        let arguments = self.with_rest(copy, arguments, &place(call.span));
        Some(self.helper_call(copy, arguments, call.span, hint, out))
    }

    /// Lowers `JSON.parse` with a reviver, and `JSON.stringify` with a replacer function.
    pub(crate) fn json_call(
        &mut self,
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(call.span);
        let walks = match name {
            "parse" => library::REVIVE,
            "stringify" => library::REPLACE,
            _ => return None,
        };
        let handed = self.handed(call.arguments.get(1)?)?;
        let What::Function(function) = self.bindings[self.lookup(walks)?].what else {
            return None;
        };
        let whole = self.functions[function].whole?;
        let given = [call.arguments.first()?.as_expression()?];
        let indent = call.arguments.get(2).and_then(Argument::as_expression);
        let given: Vec<_> = given.into_iter().chain(indent).collect();
        self.permit(&given);
        let mut values = self.exprs(&given, out).into_iter();
        let value = values.next()?;
        let bound = self.handed_function(walks, handed, call.span);
        let copied = Copied {
            of: function,
            bound: vec![(0, bound)],
        };
        let Some(copy) = self.copy(walks, copied, whole, call.span) else {
            return Some(Value::undefined(&at));
        };
        let value = match name {
            "parse" => Value::node(of("JSON", "parse", vec![value.operand()], &at)),
            _ => value,
        };
        let arguments = vec![Value::text("", &at), value];
        if name == "parse" {
            return Some(self.helper_call(copy, arguments, call.span, hint, out));
        }
        let walked = self.helper_call(copy, arguments, call.span, Hint::None, out);
        let indent = values
            .next()
            .map_or_else(|| Tree::undefined(&at), Value::operand);
        let arguments = vec![walked.operand(), Tree::null(&at), indent];
        Some(Value::node(of("JSON", "stringify", arguments, &at)))
    }

    fn handed(&self, argument: &'a Argument<'a>) -> Option<Handed<'a>> {
        let expr = argument.as_expression()?.get_inner_expression();
        if let Some(code) = crate::atom::code_of(expr) {
            return Some(Handed::Code(code));
        }
        let Expression::Identifier(id) = expr else {
            return None;
        };
        match self.bindings[self.lookup(id.name.as_str())?].what {
            What::Function(function) => Some(Handed::Known(function)),
            _ => None,
        }
    }

    fn handed_function(&mut self, js: &str, handed: Handed<'a>, at: Span) -> usize {
        match handed {
            Handed::Known(function) => function,
            Handed::Code(code) => {
                let gives_value = self.gives_value(code);
                let name = format!("{js}_callback");
                let function = self.add_function(&name, code, at, gives_value);
                self.functions[function].is_made = true;
                self.function(function);
                function
            }
        }
    }

    /// Returns the copy of a function for its function arguments, with visible scopes of the
    /// original. `None`, with an error, if there are too many copies.
    fn copy(&mut self, js: &str, copied: Copied, whole: Code<'a>, at: Span) -> Option<usize> {
        let known = self.functions.iter();
        let mut known = known.map(|function| function.copied.as_ref());
        if let Some(copy) = known.position(|other| other == Some(&copied)) {
            return Some(copy);
        }
        let of = copied.of;
        self.functions[of].has_copies = true;
        if self.copies >= MAX_COPIES {
            let help = "hand the same function on, by its name";
            let message = "functions that are made for each call within nest too deep";
            self.deny(codes::TOO_DEEP, at, message, help);
            return None;
        }
        let gives_value = self.functions[of].gives_value;
        let handed = copied.bound.len();
        let count = self.functions.len();
        let copy = self.add_function(js, whole, at, gives_value);
        if self.functions.len() == count {
            return None;
        }
        let place_of = self.functions[of].place.clone();
        let function = &mut self.functions[copy];
        function.arity = function.arity.saturating_sub(handed);
        function.copied = Some(copied);
        function.is_made = true;
        function.place = place_of;
        // The copy sees the scopes of the original's declaration, not those of the call.
        let depth = self.scopes.iter().rposition(|scope| {
            let id = scope.get(js);
            id.is_some_and(|id| matches!(self.bindings[*id].what, What::Function(f) if f == of))
        });
        let hidden = self.scopes.split_off(depth.map_or(1, |depth| depth + 1));
        self.copies += 1;
        self.function(copy);
        self.copies -= 1;
        self.scopes.extend(hidden);
        Some(copy)
    }

    /// Returns the function that a parameter of the current function is bound to.
    pub(crate) fn bound_param(&self, index: usize) -> Option<usize> {
        let copied = self.functions[self.current].copied.as_ref()?;
        let mut bound = copied.bound.iter();
        bound.find(|(at, _)| *at == index).map(|(_, f)| *f)
    }

    /// Drops functions that only their copies replace, with the findings in them.
    pub(crate) fn drop_copied(&mut self) {
        let count = self.functions.len();
        let mut is_live = vec![false; count];
        let mut todo = vec![0];
        while let Some(id) = todo.pop() {
            if !std::mem::replace(&mut is_live[id], true) {
                todo.extend(&self.functions[id].calls);
                // A function of the source stays a helper, called or not, unless copies replace
                // it.
                let written = (1..count).filter(|other| {
                    let function = &self.functions[*other];
                    function.parent == id && !function.is_made && !function.has_copies
                });
                todo.extend(written);
            }
        }
        for (function, is_live) in self.functions.iter_mut().zip(is_live) {
            if !is_live {
                function.is_dropped = true;
                function.calls.clear();
                function.reads.clear();
            }
        }
        let functions = &self.functions;
        self.calls
            .retain(|(caller, _, _)| !functions[*caller].is_dropped);
        if self.found.len() >= MAX_FINDINGS {
            // The full list may have dropped findings of functions that stay.
            return;
        }
        let found = std::mem::take(&mut self.found);
        let places = std::mem::take(&mut self.found_in);
        for (one, place) in found.into_iter().zip(places) {
            let same = |other: &a99_core::diag::Diagnostic| {
                other.span == one.span && other.message == one.message
            };
            if !self.functions[place].is_dropped && !self.found.iter().any(same) {
                self.found.push(one);
                self.found_in.push(place);
            }
        }
    }

    /// Refuses copies whose variables shadow a capture of a function argument.
    pub(crate) fn check_copies(&mut self, captures: &[Vec<usize>]) {
        for (id, captured) in captures.iter().enumerate() {
            if self.functions[id].copied.is_none() {
                continue;
            }
            let own = self.bindings.iter().find(|own| {
                let hides = |id: &usize| self.bindings[*id].name == own.name;
                own.owner == id
                    && matches!(own.what, What::Variable | What::Caught | What::Error)
                    && captured.iter().any(hides)
            });
            let hidden = own.map(|own| (own.name.clone(), own.at));
            if let Some((name, at)) = hidden {
                let message =
                    format!("`{name}` hides a variable that a function handed over reads");
                let help = "give one of them another name";
                let span = Span::new(at, at + 1);
                self.deny(codes::BAD_BINDING, span, message, help);
            }
        }
    }
}
