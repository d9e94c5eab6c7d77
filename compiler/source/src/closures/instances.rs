//! Writes classes as functions: one that makes an instance, and one for each method.

use super::emit::{Emitter, inside};
use crate::dispatch::{Arm, Dispatch, Target};
use crate::edits::Piece;
use oxc_ast::ast::{ClassElement, Expression, PropertyKey};
use oxc_span::{GetSpan, Span};

impl<'a> Emitter<'_, 'a> {
    pub(crate) fn new_call(&mut self, id: usize, class: usize) {
        let site = &self.model.sites[id];
        let name = self.maker(class);
        let last = site.args.last().map(|last| last.span().end);
        let name_end = self.model.text_of(site.span).find('(');
        let args = match (last, name_end) {
            (Some(_), Some(at)) => {
                let after = site.span.start + at as u32;
                self.args_of(site.span, after)
            }
            _ => None,
        };
        let mut pieces: Vec<Piece> = vec![format!("{name}(").into()];
        if let Some(args) = args {
            pieces.push(args.into());
        }
        pieces.push(")".into());
        self.edits.replace(site.span, pieces);
    }

    /// Name of the function that makes instances.
    fn maker(&self, class: usize) -> String {
        let class = &self.model.classes[class];
        let fun = class.constructor.unwrap_or(class.fields);
        self.tops.get(&fun).cloned().unwrap_or_default()
    }

    /// What a call of a method of one of these classes does.
    pub(crate) fn by_class(
        &self,
        classes: &[usize],
        functions: &[usize],
        node: usize,
        text: Span,
        is_optional: bool,
    ) -> Dispatch {
        let arms = classes.iter().zip(functions).map(|(class, fun)| Arm {
            tag: *class,
            helper: self.tops.get(fun).cloned().unwrap_or_default(),
            captures: Vec::new(),
            target: Target::Value,
        });
        Dispatch {
            arms: arms.collect(),
            key: self.class_tag.clone(),
            takes_this: false,
            is_checked: self.model.may_lack(node),
            is_optional,
            member: None,
            text: self.model.text_of(text).to_owned(),
        }
    }

    pub(crate) fn method_call(
        &mut self,
        id: usize,
        classes: &[usize],
        args: Option<Span>,
        with: &dyn Fn(Vec<Piece>, Option<Span>) -> Vec<Piece>,
    ) {
        let site = &self.model.sites[id];
        let Some(call) = site.call else {
            return;
        };
        let methods = classes.iter().map(|class| {
            let members = &self.model.flow.classes[*class];
            members.methods.get(site.name).copied().unwrap_or_default()
        });
        let methods: Vec<usize> = methods.collect();
        let (object, is_optional) = match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => (member.object.span(), member.optional),
            Expression::PrivateFieldExpression(member) => (member.object.span(), member.optional),
            _ => return,
        };
        let dispatch = self.by_class(
            classes,
            &methods,
            site.target,
            call.callee.span(),
            is_optional,
        );
        let name = match (&dispatch.arms[..], dispatch.is_checked) {
            ([only], false) => only.helper.clone(),
            _ => self.dispatch(dispatch),
        };
        let first = vec![format!("{name}(").into(), object.into()];
        self.edits.replace(site.span, with(first, args));
    }

    /// Getters, setters and private members.
    pub(crate) fn members(&mut self) {
        for access in &self.model.accesses {
            let classes = self.model.flow.instances_in(access.target);
            let getters: Option<Vec<usize>> = classes
                .iter()
                .map(|class| {
                    self.model.flow.classes[*class]
                        .getters
                        .get(access.name)
                        .copied()
                })
                .collect();
            match getters.filter(|getters| !getters.is_empty() && !access.span.is_empty()) {
                Some(getters) => {
                    let dispatch = self.by_class(
                        &classes,
                        &getters,
                        access.target,
                        access.span,
                        access.is_optional,
                    );
                    let name = match (&dispatch.arms[..], dispatch.is_checked) {
                        ([only], false) => only.helper.clone(),
                        _ => self.dispatch(dispatch),
                    };
                    let pieces = vec![format!("{name}(").into(), access.object.into(), ")".into()];
                    self.edits.replace(access.span, pieces);
                }
                None if access.name.starts_with('#') => self.private(access.span, access.name),
                None => {}
            }
        }
        for store in &self.model.stores {
            let classes = self.model.flow.instances_in(store.target);
            let setter = classes
                .first()
                .and_then(|class| self.model.flow.classes[*class].setters.get(store.name));
            let setter = setter.and_then(|setter| self.tops.get(setter));
            match (setter, store.whole) {
                (Some(setter), Some((whole, value))) => {
                    let pieces = vec![
                        format!("{setter}(").into(),
                        store.object.into(),
                        ", ".into(),
                        value.into(),
                        ")".into(),
                    ];
                    self.edits.replace(whole, pieces);
                }
                _ if store.name.starts_with('#') => self.private(store.member, store.name),
                // Only lists have a `length` of which the items depend.
                _ if store.name == "length" && self.model.is_instance(store.target) => {
                    let name = Span::new(store.object.end, store.member.end);
                    self.edits.replace(name, vec!["['length']".into()]);
                }
                _ => {}
            }
        }
    }

    pub(super) fn private(&mut self, member: Span, name: &str) {
        let start = member.end - name.len() as u32;
        let text = private_key(name);
        self.edits
            .replace(Span::new(start, member.end), vec![text.into()]);
    }

    pub(crate) fn class(&mut self, number: usize) {
        let class = &self.model.classes[number];
        let name = self.maker(number);
        let this = self.model.this_symbols.get(&class.fields);
        let this = this.map_or("self".to_owned(), |symbol| self.names[*symbol].clone());
        let uses_this = self.model.funs[class.fields].uses_this;
        let mut parts: Vec<Piece> = Vec::new();
        let mut statics: Vec<Piece> = Vec::new();
        let mut later: Vec<Piece> = Vec::new();
        if self.plan.tagged.contains(&number) {
            parts.push(format!("{}: {number}, ", self.class_tag).into());
        }
        for element in &class.node.body.body {
            let ClassElement::PropertyDefinition(property) = element else {
                continue;
            };
            let key = match &property.key {
                PropertyKey::PrivateIdentifier(id) => private_key(self.model.text_of(id.span)),
                key => self.model.text_of(key.span()).to_owned(),
            };
            let to = match (property.r#static, uses_this) {
                (true, _) => &mut statics,
                (false, true) => &mut later,
                (false, false) => &mut parts,
            };
            let (before, after) = match !property.r#static && uses_this {
                true => (format!(" {this}.{key} = ("), "); "),
                false => (format!("{key}: ("), "), "),
            };
            to.push(before.into());
            match &property.value {
                Some(value) => to.push(value.span().into()),
                None => to.push("undefined".into()),
            }
            to.push(after.into());
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut body: Option<Span> = None;
        let mut word = "function";
        let mut params: Option<Span> = None;
        for element in &class.node.body.body {
            if let ClassElement::MethodDefinition(method) = element
                && class
                    .constructor
                    .is_some_and(|fun| self.model.funs[fun].span == method.value.span)
            {
                params = Some(inside(method.value.params.span));
                body = method.value.body.as_ref().map(|body| inside(body.span));
                if method.value.r#async {
                    word = "async function";
                }
            }
        }
        pieces.push(format!("{word} {name}(").into());
        if let Some(params) = params {
            pieces.push(params.into());
        }
        pieces.push(format!(") {{ const {this} = {{ ").into());
        pieces.append(&mut parts);
        pieces.push("};".into());
        pieces.append(&mut later);
        if let Some(fun) = class.constructor {
            pieces.push(self.take_prologue(fun).into());
            for (at, of, _) in &self.model.returns {
                if *of == fun {
                    self.edits
                        .replace(*at, vec![format!("return {this};").into()]);
                }
            }
        }
        if let Some(body) = body {
            pieces.push(body.into());
        }
        pieces.push(format!("\n return {this} }}").into());
        self.appended.push((class.whole, pieces));
        let declared = match statics.is_empty() {
            true => vec![";".into()],
            false => {
                let mut all: Vec<Piece> = vec![format!("const {} = {{ ", class.name).into()];
                all.append(&mut statics);
                all.push("};".into());
                all
            }
        };
        self.edits.replace(class.whole, declared);
    }
}

/// Key of a private member in the object.
fn private_key(name: &str) -> String {
    name.replacen('#', "$", 1)
}
