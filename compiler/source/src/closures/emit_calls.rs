//! Writes calls of function values, and tests of their types.

use super::emit::Emitter;
use super::model::{Calls, Model};
use crate::dispatch::{Arm, Dispatch, Target};
use crate::edits::Piece;
use crate::lower::Code;
use oxc_ast::ast::Expression;
use oxc_span::{GetSpan, Span};

impl<'a> Emitter<'_, 'a> {
    /// Registers a dispatch and returns the name that calls it.
    pub(crate) fn dispatch(&mut self, dispatch: Dispatch) -> String {
        let known = self
            .dispatches
            .iter()
            .find(|(_, known)| **known == dispatch);
        if let Some((name, _)) = known {
            return name.clone();
        }
        let name = self.fresh("$call");
        self.dispatches.insert(name.clone(), dispatch);
        name
    }

    /// What a call of one of these functions by its value does.
    pub(super) fn by_value(
        &self,
        functions: &[usize],
        node: usize,
        text: Span,
        is_optional: bool,
    ) -> Dispatch {
        let arms = functions.iter().map(|fun| {
            let symbol = self.model.funs[*fun].symbol;
            let own = symbol.map(|symbol| self.model.symbols[symbol].name.to_owned());
            let name = self.tops.get(fun).cloned().or(own);
            Arm {
                tag: *fun,
                helper: name.unwrap_or_default(),
                captures: self.captured(*fun),
                target: match self.model.takes_this(*fun) {
                    true => Target::This,
                    false => Target::None,
                },
            }
        });
        Dispatch {
            arms: arms.collect(),
            key: self.tag.clone(),
            takes_this: functions.iter().any(|fun| self.model.takes_this(*fun)),
            is_checked: functions.is_empty()
                || self.model.may_lack(node)
                || !self.model.flow.instances_in(node).is_empty(),
            is_optional,
            member: None,
            text: self.model.text_of(text).to_owned(),
        }
    }

    /// The range of a call's arguments, without the parentheses.
    pub(crate) fn args_of(&self, span: Span, after: u32) -> Option<Span> {
        let rest = self.model.text_of(Span::new(after, span.end));
        let open = rest.find('(')?;
        let args = Span::new(after + open as u32 + 1, span.end - 1);
        let is_empty = self.model.text_of(args).trim().is_empty();
        (!is_empty).then_some(args)
    }

    pub(super) fn calls(&mut self) {
        for id in 0..self.model.sites.len() {
            let site = &self.model.sites[id];
            if let Some((expr, node)) = self.model.slot_value(self.plan, id) {
                self.slot(id, expr, node);
            }
            if let Calls::New(class) = site.calls {
                self.new_call(id, class);
                continue;
            }
            let Some(call) = site.call else {
                continue;
            };
            let callee = &call.callee;
            let types = call.type_arguments.as_ref().map(|types| types.span.end);
            let after = types.unwrap_or(callee.span().end);
            let args = self.args_of(site.span, after);
            let with = |first: Vec<Piece>, args: Option<Span>| {
                let mut pieces = first;
                if let Some(args) = args {
                    if !matches!(pieces.last(), Some(Piece::New(text)) if text.ends_with('(')) {
                        pieces.push(", ".into());
                    }
                    pieces.push(args.into());
                }
                pieces.push(")".into());
                pieces
            };
            // A function that moved, by its name.
            if let Some(fun) = self.model.called(id)
                && let Some(name) = self.tops.get(&fun)
            {
                let captured = self.captured(fun).join(", ");
                let mut first = vec![format!("{name}(").into()];
                if !captured.is_empty() {
                    first.push(captured.into());
                }
                let pieces = with(first, args);
                self.edits.replace(site.span, pieces);
                continue;
            }
            if let Some(fun) = self.model.statics_of(id)
                && let Some(name) = self.tops.get(&fun)
            {
                let pieces = with(vec![format!("{name}(").into()], args);
                self.edits.replace(site.span, pieces);
                continue;
            }
            let classes = self.model.classes_of(id);
            if !classes.is_empty() {
                self.method_call(id, &classes, args, &with);
                continue;
            }
            let functions = self.model.candidates(self.plan, id);
            if functions.is_empty() && !self.model.calls_nothing(self.plan, id) {
                continue;
            }
            let node = self.model.callee_node(id);
            if let Expression::PrivateFieldExpression(member) = callee.get_inner_expression() {
                let name = self.model.sites[id].name;
                self.private(member.span, name);
            }
            let callee = callee.span();
            let mut dispatch = self.by_value(&functions, node, callee, call.optional);
            if let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression()
                && dispatch.takes_this
                && self.model.is_member_call(id)
            {
                // The object is evaluated once, for its member and for `this`.
                dispatch.member = Some(member.property.name.to_string());
                dispatch.takes_this = false;
                let name = self.dispatch(dispatch);
                let first = vec![format!("{name}(").into(), member.object.span().into()];
                self.edits.replace(site.span, with(first, args));
                continue;
            }
            if let Calls::Name(symbol) = site.calls {
                // It may be called before its value is there.
                dispatch.is_checked |= self.plan.late.contains(&symbol);
            }
            let takes_this = dispatch.takes_this;
            let name = self.dispatch(dispatch);
            let mut first = vec![format!("{name}(").into(), callee.into()];
            if takes_this {
                let object = match call.callee.get_inner_expression() {
                    Expression::StaticMemberExpression(member) => Some(member.object.span()),
                    Expression::ComputedMemberExpression(member) => Some(member.object.span()),
                    _ => None,
                };
                first.push(", ".into());
                first.push(object.map_or("undefined".into(), Piece::from));
            }
            self.edits.replace(site.span, with(first, args));
        }
    }

    /// Writes a callback that is a value as a function that calls the value.
    pub(super) fn slot(&mut self, id: usize, expr: &'a Expression<'a>, node: usize) {
        let site = &self.model.sites[id];
        let most = site.slot.map_or(0, |slot| slot.1);
        let functions = self.model.flow.functions_in(node);
        let count = functions.iter().map(|fun| {
            let params = self.model.funs[*fun].code.map(Code::params);
            params.map_or(0, |params| match params.rest {
                Some(_) => most.min(3),
                None => params.items.len(),
            })
        });
        let count = count.max().unwrap_or(0).min(most);
        let names: Vec<String> = (1..=count)
            .map(|number| format!("{}{number}", self.param))
            .collect();
        let text = expr.span();
        let dispatch = self.by_value(&functions, node, text, false);
        let name = self.dispatch(dispatch);
        let given: String = names.iter().map(|name| format!(", {name}")).collect();
        let head = format!("({}) => {name}(", names.join(", "));
        if Model::is_simple(expr) {
            let pieces = vec![head.into(), Piece::Inner(text), format!("{given})").into()];
            return self.edits.wrap(text, pieces);
        }
        // The callback is evaluated once, before the loop.
        let held = self.fresh("callback");
        self.edits
            .wrap(text, vec![format!("{head}{held}{given})").into()]);
        let waits = self.model.text_of(site.span).contains("await");
        let (start, end) = match waits {
            true => ("await (async (", ") => "),
            // A parenthesis at the start of a statement would continue the one before.
            false if self.model.starts.contains(&site.span.start) => ("!((", ") => "),
            false => ("((", ") => "),
        };
        let pieces = vec![
            format!("{start}{held}{end}").into(),
            Piece::Inner(site.span),
            ")(".into(),
            Piece::Inner(text),
            ")".into(),
        ];
        self.edits.wrap(site.span, pieces);
    }

    pub(super) fn tests(&mut self) {
        for test in &self.model.type_tests {
            let functions = self.model.flow.functions_in(test.node);
            if functions.is_empty() {
                continue;
            }
            let argument = test.argument.span();
            let is_only = self.model.flow.sets[test.node].len() == functions.len();
            let pieces = match is_only {
                true => vec!["'function'".into()],
                false => vec![
                    "(".into(),
                    argument.into(),
                    format!(".{} === undefined ? typeof ", self.tag).into(),
                    argument.into(),
                    " : 'function')".into(),
                ],
            };
            self.edits.replace(test.span, pieces);
        }
        for test in &self.model.instance_tests {
            let classes = self.model.flow.instances_in(test.node);
            let lacks = self.model.may_lack(test.node);
            let pieces = match (classes.contains(&test.class), classes.len(), lacks) {
                (false, ..) => vec!["false".into()],
                (true, 1, false) => vec!["true".into()],
                (true, 1, true) if !self.model.flow.has_objects(test.node) => {
                    vec![
                        "(typeof ".into(),
                        test.left.into(),
                        " === 'object' && ".into(),
                        test.left.into(),
                        " !== null)".into(),
                    ]
                }
                _ => vec![
                    "(".into(),
                    test.left.into(),
                    format!(")?.{} === {}", self.class_tag, test.class).into(),
                ],
            };
            self.edits.replace(test.span, pieces);
        }
    }
}
