//! Generators: each becomes a function that calls another one with every value, until that returns
//! true. The body of a loop over a generator becomes the function that is called; elsewhere the
//! values are collected in a list.

use super::Sugar;
use crate::edits::Piece;
use oxc_ast::ast::{
    BreakStatement, CallExpression, ContinueStatement, Expression, ExpressionStatement,
    ForOfStatement, ForStatementLeft, Function, ReturnStatement, Statement,
};
use oxc_span::{GetSpan as _, Span};

/// Where control goes when code ends early.
pub(super) enum Exit {
    Function,
    /// A generator: the function that it calls, how, and how it gets the values.
    Generator(String, &'static str, &'static str),
    Loop,
    Switch,
    /// The body of a loop over a generator: the variable for how it ends the function around it,
    /// and whether code sets it.
    Turn(String, bool),
}

fn wait(is_async: bool) -> &'static str {
    if is_async { "await " } else { "" }
}

impl<'a> Sugar<'_, 'a> {
    pub(super) fn exiting(&mut self, exit: Exit, read: impl FnOnce(&mut Self)) -> Option<Exit> {
        self.exits.push(exit);
        read(self);
        self.exits.pop()
    }

    /// What the code of this function is, with the head of a generator rewritten.
    pub(super) fn generator(&mut self, it: &Function<'a>) -> Exit {
        let generators = self.generators.as_ref();
        let Some(is_async) = generators.and_then(|known| known.function(it.span.start)) else {
            return Exit::Function;
        };
        let emit = self.fresh("emit");
        let word = if is_async {
            "async function "
        } else {
            "function "
        };
        let name = it
            .id
            .as_ref()
            .map_or(it.params.span.start, |id| id.span.start);
        self.edits
            .replace(Span::new(it.span.start, name), vec![word.into()]);
        let comma = if it.params.items.is_empty() { "" } else { ", " };
        self.edits
            .insert(it.params.span.start + 1, format!("{emit}{comma}"));
        if let Some(types) = &it.return_type {
            self.edits.replace(types.span, Vec::new());
        }
        Exit::Generator(emit, wait(is_async), wait(it.r#async))
    }

    /// The calls of a generator: `name(emit, a, b)`.
    fn consumer(call: &CallExpression<'_>, emit: Vec<Piece>) -> Vec<Piece> {
        let mut pieces = vec![call.callee.span().into(), "(".into()];
        pieces.extend(emit);
        for one in &call.arguments {
            pieces.extend([", ".into(), one.span().into()]);
        }
        pieces.push(")".into());
        pieces
    }

    /// A generator whose values a list gets.
    pub(super) fn collected(&mut self, expr: &Expression<'a>) {
        let Some((call, is_async)) = self.generators.as_ref().and_then(|known| known.call(expr))
        else {
            return;
        };
        let (list, item) = (self.fresh("list"), self.fresh("item"));
        let (open, word) = match is_async {
            true => ("(await (async () => { ", "async "),
            false => ("((() => { ", ""),
        };
        let emit = format!("{word}({item}) => {{ {list}.push({item}) }}");
        let mut pieces: Vec<Piece> =
            vec![format!("{open}const {list} = []; {}", wait(is_async)).into()];
        pieces.extend(Self::consumer(call, vec![emit.into()]));
        pieces.push(format!("; return {list} }})())").into());
        self.edits.replace(expr.span(), pieces);
    }

    /// `yield value` and `yield* values`.
    pub(super) fn yielded(&mut self, it: &ExpressionStatement<'a>) {
        let Expression::YieldExpression(one) = &it.expression else {
            return;
        };
        let mut exits = self.exits.iter().rev();
        let Some((emit, waits, gets)) = exits.find_map(|exit| match exit {
            Exit::Generator(emit, waits, gets) => Some((emit.clone(), *waits, *gets)),
            _ => None,
        }) else {
            return;
        };
        let value = one.argument.as_ref().map(|argument| argument.span());
        // In braces, because an `else` may follow.
        let end: Piece = format!(") {{ {} }} }}", self.leave("true")).into();
        let known = self.generators.as_ref();
        let pieces = match (&one.argument, one.delegate) {
            (Some(argument), true) => match known.and_then(|known| known.call(argument)) {
                Some((call, is_async)) => {
                    let mut pieces: Vec<Piece> = vec![format!("{{ if ({}", wait(is_async)).into()];
                    pieces.extend(Self::consumer(call, vec![emit.into()]));
                    pieces.push(end);
                    pieces
                }
                None => {
                    let item = self.fresh("item");
                    let each = format!(") if ({waits}{emit}({gets}{item})");
                    let of = format!("{{ for (const {item} of ");
                    vec![of.into(), argument.span().into(), each.into(), end]
                }
            },
            _ => {
                let value = value.map_or_else(|| "undefined".into(), Piece::from);
                vec![
                    format!("{{ if ({waits}{emit}(").into(),
                    value,
                    ")".into(),
                    end,
                ]
            }
        };
        self.edits.replace(it.span, pieces);
    }

    /// Code that ends the function around it with this value.
    fn leave(&mut self, value: &str) -> String {
        for exit in self.exits.iter_mut().rev() {
            match exit {
                Exit::Turn(left, is_set) => {
                    *is_set = true;
                    return format!("{left} = {{ value: {value} }}; return true");
                }
                Exit::Function | Exit::Generator(..) => break,
                Exit::Loop | Exit::Switch => {}
            }
        }
        format!("return {value}")
    }

    pub(super) fn returned(&mut self, it: &ReturnStatement<'a>) {
        let is_owner = |exit: &&Exit| matches!(exit, Exit::Function | Exit::Generator(..));
        let is_generator = matches!(
            self.exits.iter().rev().find(is_owner),
            Some(Exit::Generator(..))
        );
        let in_turn = matches!(
            self.exits
                .iter()
                .rev()
                .find(|exit| !matches!(exit, Exit::Loop | Exit::Switch)),
            Some(Exit::Turn(..))
        );
        let value = it.argument.as_ref().map(|argument| argument.span());
        let pieces: Vec<Piece> = match (is_generator, value) {
            (false, _) if !in_turn => return,
            (true, None) if !in_turn => return,
            (true, Some(value)) => {
                let leave = self.leave("false");
                vec!["{ ".into(), value.into(), format!("; {leave} }}").into()]
            }
            (true, None) => vec![format!("{{ {} }}", self.leave("false")).into()],
            (false, None) => vec![format!("{{ {} }}", self.leave("undefined")).into()],
            (false, Some(value)) => {
                let leave = self.leave("\u{0}");
                let (before, after) = leave.split_once('\u{0}').unwrap_or_default();
                let open = format!("{{ {before}");
                vec![open.into(), value.into(), format!("{after} }}").into()]
            }
        };
        self.edits.replace(it.span, pieces);
    }

    pub(super) fn broken(&mut self, it: &BreakStatement<'a>) {
        let exit = self.exits.last();
        self.ends(
            it.span,
            it.label.is_some(),
            matches!(exit, Some(Exit::Turn(..))),
            "return true;",
        );
    }

    pub(super) fn continued(&mut self, it: &ContinueStatement<'a>) {
        let exit = self
            .exits
            .iter()
            .rev()
            .find(|exit| !matches!(exit, Exit::Switch));
        self.ends(
            it.span,
            it.label.is_some(),
            matches!(exit, Some(Exit::Turn(..))),
            "return;",
        );
    }

    fn ends(&mut self, at: Span, has_label: bool, is_turn: bool, text: &str) {
        if has_label {
            // It may leave the body of a loop over a generator.
            self.is_refused |= self.exits.iter().any(|exit| matches!(exit, Exit::Turn(..)));
        } else if is_turn {
            self.edits.replace(at, vec![text.into()]);
        }
    }

    /// Reads a loop over a generator; false for any other loop.
    pub(super) fn consumed(
        &mut self,
        it: &ForOfStatement<'a>,
        read: impl FnOnce(&mut Self),
    ) -> bool {
        let known = self.generators.as_ref();
        let Some((call, is_async)) = known.and_then(|known| known.call(&it.right)) else {
            return false;
        };
        let ForStatementLeft::VariableDeclaration(declared) = &it.left else {
            return false;
        };
        let Some(one) = declared.declarations.first() else {
            return false;
        };
        let left = self.fresh("left");
        let turn = self.exiting(Exit::Turn(left.clone(), false), read);
        let word = if is_async { "async " } else { "" };
        let is_block = matches!(it.body, Statement::BlockStatement(_));
        let (open, close) = if is_block { ("", "") } else { ("{ ", " }") };
        let emit = vec![
            format!("{word}(").into(),
            one.id.span().into(),
            format!(") => {open}").into(),
            it.body.span().into(),
            close.into(),
        ];
        let is_left = matches!(turn, Some(Exit::Turn(_, true)));
        let declared = if is_left {
            format!("let {left}; ")
        } else {
            String::new()
        };
        let mut pieces: Vec<Piece> = vec![format!("{{ {declared}{}", wait(is_async)).into()];
        pieces.extend(Self::consumer(call, emit));
        if is_left {
            let leave = self.leave(&format!("{left}.value"));
            pieces.push(format!("; if ({left}) {{ {leave} }}").into());
        }
        pieces.push(" }".into());
        self.edits.replace(it.span, pieces);
        true
    }
}
