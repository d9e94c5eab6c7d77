//! Lowers `finally`: its statements follow the `try`, and variables keep the pending exit of the
//! `try`.

use crate::control::{ends, fail};
use crate::lower::{Around, Lowerer, branch, place, set};
use crate::state::Exits;
use crate::steps::one_turn;
use crate::tree::Tree;
use crate::value::Value;
use oxc_ast::ast::{BlockStatement, TryStatement};
use oxc_span::Span;

impl<'a> Lowerer<'a> {
    pub(crate) fn finally(
        &mut self,
        statement: &'a TryStatement<'a>,
        last: &'a BlockStatement<'a>,
        out: &mut Vec<Tree>,
    ) {
        let (span, at) = (statement.span, place(statement.span));
        let (kind, value) = (self.fresh(), self.fresh());
        self.around.push(Around::Finally(Exits {
            kind: kind.clone(),
            value: value.clone(),
            used: Vec::new(),
        }));
        let mut steps = Vec::new();
        self.attempt(statement, &mut steps);
        let used = match self.around.pop() {
            Some(Around::Finally(exits)) => exits.used,
            _ => Vec::new(),
        };
        if !used.is_empty() {
            let none = Value::text("", &at);
            out.push(set(&kind, none.resolved(), &at));
            if used.contains(&"return") {
                out.push(set(&value, Tree::undefined(&at), &at));
            }
            steps = one_turn(steps, &at);
        }
        let (error, failed) = (self.fresh(), self.fresh());
        out.push(set(&failed, Tree::null(&at), &at));
        let mut keep = vec![set(&failed, Tree::ident(&error, &at), &at)];
        let held = self.errors.is_on.then(|| self.fresh());
        if let Some(held) = &held {
            let taken = self.take_error(&error, &at, &mut keep);
            keep.push(set(held, taken.resolved(), &at));
        }
        let inputs = [
            ("try", Tree::list(steps, &at)),
            ("catch", Tree::list(keep, &at)),
            ("catchParam", Tree::text(&error, &at)),
        ];
        out.push(Tree::step("try", inputs, &at));
        self.push_scope();
        self.block(&last.body, out);
        self.pop_scope();
        if last.body.last().is_some_and(ends) {
            return;
        }
        let test = Tree::binary("!==", Tree::ident(&failed, &at), Tree::null(&at), &at);
        let message = Value::ident(&failed, &at);
        let mut again = match &held {
            Some(held) => self.put_back(Value::ident(held, &at), message.clone(), &at),
            None => Vec::new(),
        };
        again.extend(fail(message, &at));
        out.push(branch(test, again, Vec::new(), &at));
        for word in used {
            let mut steps = Vec::new();
            match word {
                "return" => self.give_back(Value::ident(&value, &at), span, &mut steps),
                word => self.jump(word, span, &mut steps),
            }
            let (left, right) = (Tree::ident(&kind, &at), Tree::text(word, &at));
            let test = Tree::binary("===", left, right, &at);
            out.push(branch(test, steps, Vec::new(), &at));
        }
    }

    /// Leaves the statements before a `finally`, and the loops inside them.
    pub(crate) fn exit(&mut self, word: &'static str, at: Span, out: &mut Vec<Tree>) {
        let at = place(at);
        for around in self.around.iter_mut().rev() {
            match around {
                Around::Loop { is_left, .. } => *is_left = true,
                Around::Finally(exits) => {
                    if !exits.used.contains(&word) {
                        exits.used.push(word);
                    }
                    let how = Value::text(word, &at);
                    out.push(set(&exits.kind, how.resolved(), &at));
                    break;
                }
                _ => {}
            }
        }
        out.push(Tree::step("break", [], &at));
    }

    /// Ends the body of a loop, whose steps run in each turn.
    pub(crate) fn end_loop(&mut self, at: Span, steps: &mut Vec<Tree>) -> Option<Around<'a>> {
        let ended = self.around.pop();
        if let Some(Around::Loop { left, .. }) = &ended {
            Self::not_left(left, at, steps);
        }
        ended
    }

    /// Continues a pending jump after a loop that it ended.
    pub(crate) fn leave_further(
        &mut self,
        ended: Option<Around<'a>>,
        at: Span,
        out: &mut Vec<Tree>,
    ) {
        let Some(Around::Loop {
            is_left, crossed, ..
        }) = ended
        else {
            return;
        };
        self.go_on(crossed, at, out);
        if !is_left {
            return;
        }
        let kinds = self.around.iter().rev().filter_map(|around| match around {
            Around::Finally(exits) => Some(exits.kind.clone()),
            _ => None,
        });
        if let Some(kind) = kinds.take(1).next() {
            let at = place(at);
            let leave = vec![Tree::step("break", [], &at)];
            out.push(branch(Tree::ident(&kind, &at), leave, Vec::new(), &at));
        }
    }
}
