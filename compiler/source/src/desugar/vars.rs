//! `var`: `const` or `let` where no code can tell the difference; elsewhere a variable that is
//! declared at the start of its function.

use super::{Place, Sugar};
use crate::edits::Piece;
use oxc_ast::ast::{BindingPattern, VariableDeclaration};
use oxc_span::{GetSpan as _, Span};

impl<'a> Sugar<'_, 'a> {
    pub(super) fn var(&mut self, it: &VariableDeclaration<'a>, place: Place) {
        let bound: Vec<_> = it
            .declarations
            .iter()
            .flat_map(|one| one.id.get_binding_identifiers())
            .map(|id| (id.name.as_str(), id.span.start))
            .collect();
        let has_values = it.declarations.iter().all(|one| one.init.is_some());
        let is_each = matches!(place, Place::Each(..));
        let has_values = has_values || is_each;
        let word = Span::new(it.span.start, it.span.start + 3);
        if bound
            .iter()
            .all(|(name, at)| self.is_block_scoped(name, *at, place, has_values))
        {
            let is_set = bound.iter().any(|(_, at)| self.facts.scoping.is_set(*at));
            let text = if has_values && !is_set {
                "const"
            } else {
                "let"
            };
            return self.edits.replace(word, vec![text.into()]);
        }
        let Some(frame) = self.frames.last() else {
            return;
        };
        let can =
            frame.body.is_some() && bound.iter().all(|(name, at)| self.is_var_only(name, *at));
        if !can {
            return;
        }
        for (name, at) in &bound {
            let declarations = self.facts.declarations(*at, name);
            let is_param = declarations
                .iter()
                .any(|one| self.facts.params.contains(one));
            if let Some(frame) = self.frames.last_mut()
                && !is_param
                && frame.hoisted.iter().all(|known| known != name)
            {
                frame.hoisted.push((*name).to_owned());
            }
        }
        match place {
            Place::Each(_, body) => self.set_in_turn(it, body),
            place => self.set(it, place),
        }
    }

    /// True if `let` and `const` mean the same as `var` for a variable.
    fn is_block_scoped(&self, name: &str, at: u32, place: Place, has_value: bool) -> bool {
        let Some(variable) = self.facts.scoping.variable(at) else {
            return false;
        };
        if self.facts.declarations(at, name).len() != 1 || variable.is_caught {
            return false;
        }
        let Some(frame) = self.frames.last() else {
            return false;
        };
        if frame.at == super::facts::TOP {
            return true;
        }
        let (block, loops) = match (place, self.blocks.last()) {
            (Place::Statement, Some((_, true)) | None) => return false,
            (Place::Statement, Some((block, false))) => (*block, frame.loops),
            (Place::Head(span) | Place::Each(span, _), _) => (span, frame.loops - 1),
        };
        let is_captured = || {
            let mut places = variable.places.iter();
            places.any(|place| self.facts.owner.get(place) != Some(&frame.at))
        };
        let is_within = |place: &u32| at <= *place && *place < block.end;
        let is_per_turn = loops > 0 || !matches!(place, Place::Statement);
        variable.places.iter().all(is_within) && (!is_per_turn || has_value && !is_captured())
    }

    /// True if only `var` and parameters declare a variable.
    fn is_var_only(&self, name: &str, at: u32) -> bool {
        let declarations = self.facts.declarations(at, name);
        let facts = self.facts;
        let is_known = |one: &u32| facts.vars.contains(one) || facts.params.contains(one);
        let is_caught = facts
            .scoping
            .variable(at)
            .is_none_or(|known| known.is_caught);
        !is_caught && declarations.iter().all(is_known)
    }

    /// Writes a declaration as assignments.
    fn set(&mut self, it: &VariableDeclaration<'a>, place: Place) {
        let is_head = matches!(place, Place::Head(_));
        let with_value = it
            .declarations
            .iter()
            .filter_map(|one| Some((one, one.init.as_ref()?)));
        let mut pieces: Vec<Piece> = Vec::new();
        let mut is_single = true;
        for (one, init) in with_value {
            if !pieces.is_empty() {
                pieces.push(if is_head { ", ".into() } else { "; ".into() });
                is_single = false;
            }
            let is_name = matches!(one.id, BindingPattern::BindingIdentifier(_));
            is_single &= is_name;
            let (open, close) = if is_name { ("", "") } else { ("(", ")") };
            pieces.extend([open.into(), one.id.span().into(), " = ".into()]);
            pieces.extend([init.span().into(), close.into()]);
        }
        if !is_head {
            pieces.push(";".into());
            if !is_single {
                pieces.insert(0, "{ ".into());
                pieces.push(" }".into());
            }
        }
        self.edits.replace(it.span, pieces);
    }

    /// Sets a variable of `for (var x of list)` at the start of each turn.
    fn set_in_turn(&mut self, it: &VariableDeclaration<'a>, body: Span) {
        let [one] = &it.declarations[..] else {
            return;
        };
        let name = self.fresh("item");
        self.edits
            .replace(it.span, vec![format!("const {name}").into()]);
        let set = [
            " (".into(),
            one.id.span().into(),
            format!(" = {name});").into(),
        ];
        match self.text(body).starts_with('{') {
            true => {
                let at = Span::new(body.start + 1, body.start + 1);
                self.edits.replace(at, set.into());
            }
            false => {
                let pieces = [
                    &["{".into()],
                    &set[..],
                    &[" ".into(), Piece::Inner(body), " }".into()],
                ];
                self.edits.wrap(body, pieces.concat());
            }
        }
    }
}
