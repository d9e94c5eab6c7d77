//! Rewrites a class of errors to a function that makes an error.

use super::Declared;
use super::read::Sort;
use crate::edits::Piece;
use oxc_span::Span;

/// What a class of errors extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Builtin,
    Class(usize),
}

impl Declared<'_> {
    /// What each class extends, if it is a class of errors.
    pub(super) fn error_classes(&self) -> Vec<Option<Root>> {
        let classes = &self.read.classes;
        let mut found: Vec<Option<Root>> = vec![None; classes.len()];
        // A class is declared behind the one that it extends.
        for (number, class) in classes.iter().enumerate() {
            let Some(parent) = class.parent else {
                continue;
            };
            let root = match self.class_at(parent.start) {
                Some(other) => found[other].map(|_| Root::Class(other)),
                None if self.scoping.variable(parent.start).is_some() => None,
                None => crate::words::ERRORS
                    .contains(&self.text(parent))
                    .then_some(Root::Builtin),
            };
            let is_field = |one: &super::read::Element| {
                one.sort == Sort::Field && !one.is_static && !one.name.starts_with('#')
            };
            let constructor = class.constructor.as_ref();
            let calls = constructor.map_or(0, |_| 1);
            let is_name = |at: &Span| {
                self.text(Span::new(0, at.start))
                    .trim_end()
                    .ends_with("this.name =")
            };
            let is_near = match root {
                Some(Root::Class(other)) => classes[other].scope == class.scope,
                _ => true,
            };
            let can = is_near
                && class.names.iter().all(is_name)
                && !class.is_odd
                && class.elements.iter().all(is_field)
                && class.supers.is_empty()
                && class.calls == calls
                && constructor.is_none_or(|one| one.call.is_some());
            found[number] = root.filter(|_| can);
        }
        found
    }

    /// The member that marks errors of a class.
    pub(super) fn mark(&self, class: usize) -> String {
        self.fresh(&format!("is${}", self.read.classes[class].name))
    }

    pub(super) fn errors(&mut self, roots: &[Option<Root>]) {
        let this = self.fresh("self");
        for (number, root) in roots.iter().enumerate() {
            let Some(root) = root else {
                continue;
            };
            let class = &self.read.classes[number];
            let (all, noise) = (class.this.clone(), class.noise.clone());
            let (names, name) = (class.names.clone(), format!("'{}'", class.name));
            for at in all {
                self.replace(at, vec![this.clone().into()]);
            }
            for at in noise {
                self.replace(at, Vec::new());
            }
            for at in names {
                self.replace(at, vec![name.clone().into()]);
            }
            let class = &self.read.classes[number];
            let made = match root {
                Root::Builtin => class.parent.map_or("Error", |at| self.text(at)),
                Root::Class(other) => self.read.classes[*other].name.as_str(),
            };
            let made = match root {
                Root::Builtin => format!("const {this} = new {made}("),
                Root::Class(_) => format!("const {this} = {made}("),
            };
            let mut pieces: Vec<Piece> = vec!["function ".into(), class.id.into()];
            let mut before = Span::new(0, 0);
            let mut rest = Span::new(0, 0);
            let mut args = None;
            match &class.constructor {
                Some(constructor) => {
                    pieces.push(constructor.params.into());
                    if let Some((call, given)) = constructor.call {
                        before = Span::new(constructor.body.start, call.start);
                        rest = Span::new(call.end, constructor.body.end);
                        args = given.map(Piece::Old);
                    }
                }
                None => {
                    let (params, names) = self.default_constructor_of_error(number, roots);
                    pieces.push(format!("({params})").into());
                    args = Some(names.into());
                }
            }
            pieces.push(" {".into());
            pieces.push(before.into());
            pieces.push(made.into());
            pieces.extend(args);
            pieces.push(format!("); {this}.{} = true;", self.mark(number)).into());
            // A constructor above that reads the name of the class means this one.
            let mut above = root;
            while let Root::Class(other) = above {
                let other = *other;
                if !self.read.classes[other].names.is_empty() {
                    pieces.push(format!(" {this}.name = {name};").into());
                    break;
                }
                let Some(next) = &roots[other] else {
                    break;
                };
                above = next;
            }
            pieces.extend(self.fields(class, &this));
            pieces.push(rest.into());
            pieces.push(format!("; return {this} }}").into());
            let (whole, id, class_scope) = (class.whole, class.id, class.scope);
            self.drop_modifiers(number);
            match class_scope {
                // A function that is declared at the top could be the agent.
                1 => {
                    self.replace(whole, Vec::new());
                    self.behind.push((id, pieces));
                }
                _ => self.replace(whole, pieces),
            }
        }
        for (span, callee) in &self.read.news.clone() {
            if self
                .class_at(callee.start)
                .is_some_and(|class| roots[class].is_some())
            {
                self.replace(Span::new(span.start, callee.start), Vec::new());
            }
        }
    }

    /// Parameters of a class of errors without a constructor.
    fn default_constructor_of_error(
        &self,
        number: usize,
        roots: &[Option<Root>],
    ) -> (String, String) {
        let mut at = number;
        loop {
            if let Some(one) = &self.read.classes[at].constructor {
                let names: Vec<String> = (0..one.count).map(|n| format!("value{n}")).collect();
                return (names.join(", "), names.join(", "));
            }
            match roots[at] {
                Some(Root::Class(other)) => at = other,
                _ => return ("message = \"\"".to_owned(), "message".to_owned()),
            }
        }
    }
}
