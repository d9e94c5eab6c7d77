//! Names of function expressions, and `arguments`.

use super::{Sugar, facts::TOP};
use crate::edits::Piece;
use oxc_ast::ast::{BindingPattern, Expression, Function, FunctionType, VariableDeclarator};
use oxc_span::Span;

impl<'a> Sugar<'_, 'a> {
    /// Notes the variable that holds a function expression for good.
    pub(super) fn hold(&mut self, it: &VariableDeclarator<'a>) {
        if let (BindingPattern::BindingIdentifier(id), Some(init)) = (&it.id, &it.init)
            && let Expression::FunctionExpression(function) = init.get_inner_expression()
            && !self.facts.scoping.is_set(id.span.start)
            && self
                .facts
                .declarations(id.span.start, id.name.as_str())
                .len()
                == 1
        {
            self.holder = Some((function.span.start, id.name.as_str(), id.span.start));
        }
    }

    /// Removes the name of a function expression: its uses get the name of the constant that holds
    /// the function, or the function becomes a declaration before the statement.
    pub(super) fn function_name(&mut self, it: &Function<'a>) {
        let (FunctionType::FunctionExpression, Some(id)) = (it.r#type, &it.id) else {
            return;
        };
        let at = id.span.start;
        let Some(variable) = self.facts.scoping.variable(at) else {
            return;
        };
        let uses: Vec<u32> = variable
            .places
            .iter()
            .copied()
            .filter(|place| *place != at)
            .collect();
        if variable.is_set || self.facts.declarations(at, id.name.as_str()).len() != 1 {
            return;
        }
        let holder = self.holder.filter(|holder| holder.0 == it.span.start);
        let is_hidden = |name: &str| {
            let known = self.facts.bindings.get(name).into_iter().flatten();
            known
                .into_iter()
                .any(|one| it.span.start < *one && *one < it.span.end && *one != at)
        };
        let name = match holder {
            _ if uses.is_empty() => String::new(),
            Some((_, name, _)) if !is_hidden(name) => name.to_owned(),
            _ => {
                let is_near = self.depth == self.spot.depth;
                if !is_near || it.generator || self.facts.uses_this(it.span.start) {
                    return;
                }
                self.declare(it, id.name.as_str())
            }
        };
        for place in uses {
            let used = Span::new(place, place + id.span.size());
            let text = match self.facts.short.contains(&place) {
                true => format!("{}: {name}", id.name),
                false => name.clone(),
            };
            self.edits.replace(used, vec![text.into()]);
        }
        self.edits.replace(id.span, Vec::new());
    }

    /// Moves a function expression to a declaration before the statement; returns its name.
    fn declare(&mut self, it: &Function<'a>, base: &str) -> String {
        let name = self.fresh(base);
        let word = if it.r#async {
            "async function"
        } else {
            "function"
        };
        let types = it.type_parameters.as_ref().map(|types| types.span.start);
        let rest = Span::new(types.unwrap_or(it.params.span.start), it.span.end);
        let pieces: Vec<Piece> = vec![format!("{word} {name}").into(), rest.into(), " ".into()];
        let is_top = self.frames.last().is_some_and(|frame| frame.at == TOP);
        match self.spot.body.take() {
            Some((body, whole)) => {
                // The next such function in this body finds no place.
                self.spot.depth = usize::MAX;
                let end = [" return ".into(), body.into(), " }".into()];
                let pieces = [&[" { ".into()], &pieces[..], &end[..]].concat();
                self.edits.replace(whole, pieces);
            }
            None if is_top => self.appended.push((it.span, pieces)),
            None => {
                let before = Span::new(self.spot.at, self.spot.at);
                self.edits.replace(before, pieces);
            }
        }
        self.edits.replace(it.span, vec![name.clone().into()]);
        name
    }

    /// Gives a function that uses `arguments` one list of all of them.
    pub(super) fn arguments(&mut self, it: &Function<'a>) {
        let Some((uses, allowed)) = self.facts.arguments.get(&it.span.start) else {
            return;
        };
        let items = &it.params.items;
        let names: Option<Vec<&str>> = items
            .iter()
            .map(|item| match &item.pattern {
                BindingPattern::BindingIdentifier(id) if item.initializer.is_none() => {
                    Some(id.name.as_str())
                }
                _ => None,
            })
            .collect();
        let declared = |place: &u32| self.facts.scoping.variable(*place).is_some();
        let (Some(names), Some(body)) = (names, &it.body) else {
            return;
        };
        if uses.len() != *allowed || uses.iter().any(declared) || it.params.rest.is_some() {
            return;
        }
        let list = self.fresh("arguments");
        let first = items
            .first()
            .map_or(it.params.span.end - 1, |item| item.span.start);
        let last = items.last().map_or(first, |item| item.span.end);
        let text = format!("...{list}");
        match first == last {
            true => self.edits.insert(first, text),
            false => self
                .edits
                .replace(Span::new(first, last), vec![text.into()]),
        }
        let names = names.iter().enumerate();
        let lets = names.map(|(index, name)| format!(" let {name} = {list}[{index}];"));
        self.edits
            .insert(body.span.start + 1, lets.collect::<String>());
        if let Some(frame) = self.frames.last_mut() {
            frame.arguments = Some(list);
        }
    }
}
