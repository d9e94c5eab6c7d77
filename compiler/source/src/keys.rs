//! Lowers `for ... in`.

use crate::lower::{Around, Lowerer, branch, for_each, place};
use crate::pattern::of;
use crate::state::Iterable;
use crate::steps::not;
use crate::tree::Tree;
use crate::value::{Kind, Value};
use a99_core::builtins::{Gives, gives, resizes_lists};
use oxc_ast::ast::{BindingPattern, ForInStatement, ForStatementLeft, VariableDeclarationKind};
use oxc_span::GetSpan;

impl<'a> Lowerer<'a> {
    /// Lowers `for (const key in object)`, which iterates the keys at the start.
    pub(crate) fn for_in(&mut self, statement: &'a ForInStatement<'a>, out: &mut Vec<Tree>) {
        let label = self.label.take();
        self.check_keys(statement);
        let at = place(statement.span);
        let object = self.expr(&statement.right, out);
        let none = Value::new(Kind::Map(Vec::new()), &at);
        let object = Tree::logical("??", object.operand(), none.operand(), &at);
        let object = self.named(Value::node(object), out);
        let keys = vec![object.clone().operand()];
        let keys = of("Object", "keys", keys, &at);
        self.push_scope();
        let name = match &statement.left {
            ForStatementLeft::VariableDeclaration(declaration)
                if declaration.kind != VariableDeclarationKind::Var =>
            {
                let is_const = declaration.kind == VariableDeclarationKind::Const;
                match declaration.declarations.first().map(|one| &one.id) {
                    Some(BindingPattern::BindingIdentifier(id)) => {
                        let js = id.name.as_str();
                        let name = self.variable(js, id.span, is_const);
                        self.note_sort(js, Iterable::Text);
                        name
                    }
                    _ => self.fresh(),
                }
            }
            left => {
                let help = "declare the name: `for (const key in object)`";
                self.unsupported(left.span(), "a loop that sets a variable", help);
                self.fresh()
            }
        };
        self.around.push(Around::a_loop(label, None));
        let mut steps = self.body(&statement.body);
        let around = self.end_loop(statement.span, &mut steps);
        if may_delete(&steps) {
            // The loop skips a key that was deleted in the meantime.
            let asked = vec![object.operand(), Tree::ident(&name, &at)];
            let is_there = of("Object", "hasOwn", asked, &at);
            let next = vec![Tree::step("continue", [], &at)];
            steps.insert(0, branch(not(is_there), next, Vec::new(), &at));
        }
        out.push(for_each(keys, &name, None, steps, &at));
        self.leave_further(around, statement.span, out);
        self.pop_scope();
    }
}

/// True if a step may delete a member.
fn may_delete(steps: &[Tree]) -> bool {
    let mut found = false;
    for step in steps {
        step.walk(&mut |tree| {
            let text = |key: &str| tree.get(key).and_then(Tree::as_str);
            found |= matches!(text("op"), Some("memberDelete" | "callLocal"));
            found |= text("method")
                .is_some_and(|method| resizes_lists(method) && gives(method) != Gives::Number);
        });
    }
    found
}
