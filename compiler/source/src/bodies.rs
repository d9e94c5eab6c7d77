//! Lowers the bodies of helpers and of the agent.

use crate::lower::{Code, Lowerer};
use crate::tree::Tree;
use oxc_ast::ast::ArrowFunctionExpression;
use oxc_span::GetSpan;

impl<'a> Lowerer<'a> {
    /// Lowers the code of a helper in the scopes that are visible now.
    pub(crate) fn function(&mut self, id: usize) {
        let Some(code) = self.functions[id].code.take() else {
            return;
        };
        let outer = std::mem::replace(&mut self.current, id);
        let around = std::mem::take(&mut self.around);
        let barrier = std::mem::take(&mut self.barrier);
        self.push_scope();
        let mut steps = Vec::new();
        let params = self.params(code, &mut steps);
        match code {
            Code::Function(function) => {
                if let Some(body) = &function.body {
                    self.block(&body.statements, &mut steps);
                }
            }
            Code::Arrow(arrow) => self.arrow_body(arrow, &mut steps),
        }
        self.pop_scope();
        self.around = around;
        self.barrier = barrier;
        self.current = outer;
        self.functions[id].params = params;
        self.functions[id].steps = steps;
    }

    pub(crate) fn arrow_body(
        &mut self,
        arrow: &'a ArrowFunctionExpression<'a>,
        out: &mut Vec<Tree>,
    ) {
        use oxc_ast::ast::ArrowFunctionBody;
        match &arrow.body {
            ArrowFunctionBody::FunctionBody(body) => self.block(&body.statements, out),
            body => {
                if let Some(value) = body.as_expression() {
                    self.return_value(Some(value), value.span(), true, out);
                }
            }
        }
    }
}
