//! Lowers jumps out of more than the innermost loop: labelled `break` and `continue`, a `break`
//! inside a `case`, a `return` from a loop in a callback. The loops end one at a time, and a
//! generated variable records the target.

use crate::lower::{Around, Lowerer, branch, place, set};
use crate::state::{Crossing, Left};
use crate::tree::Tree;
use crate::value::Value;
use oxc_ast::ast::{LabeledStatement, Statement};
use oxc_span::Span;

impl<'a> Lowerer<'a> {
    /// Lowers a loop with a label.
    pub(crate) fn labeled(&mut self, statement: &'a LabeledStatement<'a>, out: &mut Vec<Tree>) {
        let is_loop = matches!(
            statement.body,
            Statement::WhileStatement(_)
                | Statement::DoWhileStatement(_)
                | Statement::ForStatement(_)
                | Statement::ForOfStatement(_)
                | Statement::ForInStatement(_)
        );
        if !is_loop {
            let help = match statement.body {
                Statement::ExpressionStatement(_) => {
                    "an object stands in parentheses behind `=>`, `(x) => ({ name: x })`, and \
                     begins in the line of its `return`"
                }
                _ => "put the statements into a function that returns",
            };
            return self.unsupported(statement.span, "a label before what is no loop", help);
        }
        self.label = Some(statement.label.name.as_str());
        self.statement(&statement.body, out);
        self.label = None;
    }

    /// Lowers `break` and `continue` with a label.
    pub(crate) fn jump_to(
        &mut self,
        word: &'static str,
        label: &str,
        at: Span,
        out: &mut Vec<Tree>,
    ) {
        let mut passes_finally = false;
        for index in (0..self.around.len()).rev() {
            match &self.around[index] {
                Around::Loop {
                    label: Some(name), ..
                } if *name == label => {
                    if passes_finally {
                        let help = "put the inner loop into a function that returns";
                        return self.unsupported(at, "a label beyond a `finally`", help);
                    }
                    return self.leave_to(index, word, None, at, out);
                }
                Around::Finally(_) => passes_finally = true,
                Around::Callback(..) | Around::Body => break,
                Around::Loop { .. } | Around::Switch => {}
            }
        }
        let help = "a label stands before a loop around it; in a callback, `return` ends the turn";
        self.unsupported(
            at,
            &format!("`{word} {label}` in no loop of that label"),
            help,
        );
    }

    /// Leaves the loop or callback at this index by a word, and ends the loops inside it first.
    pub(crate) fn leave_to(
        &mut self,
        target: usize,
        word: &'static str,
        value: Option<Value>,
        at: Span,
        out: &mut Vec<Tree>,
    ) {
        let Some(inner) = self.loop_within(target, self.around.len()) else {
            return self.arrive(target, word, value, at, out);
        };
        let (mut flag, mut kept) = match &self.around[target] {
            Around::Loop { left, .. } | Around::Callback(_, left) => {
                (left.flag.clone(), left.value.clone())
            }
            _ => (None, None),
        };
        let flag = flag.take().unwrap_or_else(|| self.fresh());
        if let Some(value) = value {
            let name = kept.take().unwrap_or_else(|| self.fresh());
            out.push(set(&name, value.resolved(), &place(at)));
            kept = Some(name);
        }
        out.push(set(&flag, Tree::text(word, &place(at)), &place(at)));
        out.push(Tree::step("break", [], &place(at)));
        if let Around::Loop { left, .. } | Around::Callback(_, left) = &mut self.around[target] {
            *left = Left {
                flag: Some(flag),
                value: kept,
            };
        }
        self.cross(inner, Crossing { target, word });
    }

    /// Returns the innermost loop between the target and this index.
    fn loop_within(&self, target: usize, end: usize) -> Option<usize> {
        let mut numbers = (target + 1..end).rev();
        numbers.find(|index| matches!(self.around[*index], Around::Loop { .. }))
    }

    fn cross(&mut self, index: usize, crossing: Crossing) {
        if let Around::Loop { crossed, .. } = &mut self.around[index]
            && !crossed.contains(&crossing)
        {
            crossed.push(crossing);
        }
    }

    /// Completes a jump whose target is the innermost loop or callback.
    fn arrive(
        &mut self,
        target: usize,
        word: &'static str,
        value: Option<Value>,
        at: Span,
        out: &mut Vec<Tree>,
    ) {
        let next = match &self.around[target] {
            Around::Loop { update, .. } => {
                if let (Some(update), "continue") = (*update, word) {
                    self.update_of(update, out);
                }
                word
            }
            Around::Callback(after, _) => {
                let after = after.clone();
                if let Some(value) = value {
                    self.after(&after, value, out);
                }
                "continue"
            }
            _ => return,
        };
        out.push(Tree::step(next, [], &place(at)));
    }

    /// Continues pending jumps after a loop.
    pub(crate) fn go_on(&mut self, crossed: Vec<Crossing>, span: Span, out: &mut Vec<Tree>) {
        let at = place(span);
        for crossing in crossed {
            let Crossing { target, word } = crossing;
            let (flag, value) = match &self.around[target] {
                Around::Loop { left, .. } | Around::Callback(_, left) => (&left.flag, &left.value),
                _ => continue,
            };
            let Some(flag) = flag.clone() else { continue };
            let value = value.as_ref().map(|name| Value::ident(name, &at));
            let mut steps = Vec::new();
            match self.loop_within(target, self.around.len()) {
                Some(inner) => {
                    self.cross(inner, crossing);
                    steps.push(Tree::step("break", [], &at));
                }
                None => self.arrive(target, word, value, span, &mut steps),
            }
            let test = Tree::binary("===", Tree::ident(&flag, &at), Tree::text(word, &at), &at);
            out.push(branch(test, steps, Vec::new(), &at));
        }
    }

    /// Clears the jump variable before each turn.
    pub(crate) fn not_left(left: &Left, at: Span, steps: &mut Vec<Tree>) {
        if let Some(flag) = &left.flag {
            steps.insert(0, set(flag, Tree::text("", &place(at)), &place(at)));
        }
        if let Some(value) = &left.value {
            let none = Tree::undefined(&place(at));
            steps.insert(0, set(value, none, &place(at)));
        }
    }
}

/// True if a `break` inside a statement ends the enclosing `switch` or loop.
pub(crate) fn breaks(statement: &Statement<'_>) -> bool {
    let any = |list: &[Statement<'_>]| list.iter().any(breaks);
    match statement {
        Statement::BreakStatement(end) => end.label.is_none(),
        Statement::BlockStatement(block) => any(&block.body),
        Statement::IfStatement(inner) => {
            breaks(&inner.consequent) || inner.alternate.as_ref().is_some_and(breaks)
        }
        Statement::TryStatement(inner) => {
            let handler = inner.handler.as_ref();
            any(&inner.block.body)
                || handler.is_some_and(|handler| any(&handler.body.body))
                || inner.finalizer.as_ref().is_some_and(|last| any(&last.body))
        }
        _ => false,
    }
}
