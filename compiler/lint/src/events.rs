//! The events of lowering, each passed to the rule of its name.

use super::{Lint, Rules, explains_unused};
use a99_compiler::ir::Ir;
use a99_compiler::pass::{Pass, ToolNode, View};
use a99_compiler::vars::VarId;
use a99_core::json::NodeId;
use a99_core::sig::AtomSig;

macro_rules! rules {
    ($($event:ident($($arg:ident: $kind:ty),*);)*) => {
        impl<'a> Pass<'a> for Lint<'a> {
            fn on_finding(&mut self, code: &str) {
                self.misses |= explains_unused(code);
            }

            fn on_end(&mut self, view: View<'_, 'a>) {
                Rules { view, lint: self }.on_end();
            }

            fn leaves(&mut self, view: View<'_, 'a>, step: NodeId) -> bool {
                Rules { view, lint: self }.lint_leaves(step)
            }

            $(fn $event(&mut self, view: View<'_, 'a>, $($arg: $kind),*) {
                Rules { view, lint: self }.$event($($arg),*);
            })*
        }
    };
}

rules! {
    on_program();
    on_program_end();
    on_function_end();
    on_parameter(name: &[u8], node: NodeId);
    on_open_body(steps: &[NodeId]);
    on_close_body();
    on_try(by: i32);
    on_enter_loop();
    on_leave_loop();
    on_enter_items(name: &'a [u8]);
    on_leave_items();
    on_choose(name: &'a [u8], step: Option<NodeId>);
    on_step(step: NodeId, op: &str, sig: &AtomSig);
    on_faulty_step(step: NodeId);
    on_inputs(call: NodeId, op: &str);
    on_literals(call: NodeId, op: &str);
    on_start(step: NodeId, condition: &Ir<'a>);
    on_loop(step: NodeId, condition: &Ir<'a>);
    on_item(step: NodeId, condition: &Ir<'a>);
    on_tools(step: NodeId, tools: &[ToolNode<'a>]);
    on_condition(root: &Ir<'a>);
    on_expr(root: &Ir<'a>);
    on_node(node: NodeId);
    on_method(name: &[u8], args: &[Ir<'a>]);
    on_text(node: NodeId, text: &[u8]);
    on_data(node: NodeId);
    on_literal(node: NodeId);
    on_short_text(node: NodeId, is_data: bool);
    on_may_bind(name: &[u8], node: NodeId);
    on_not_free(name: &[u8], node: NodeId);
    on_bound_result(step: NodeId, name: &[u8], node: NodeId, may_be_undefined: bool);
    on_wrote(name: &[u8], node: NodeId, value: Option<NodeId>);
    on_constant(id: VarId);
    on_expect_writes(id: VarId, writes: u32);
    on_holds_value(name: &[u8], value: Option<NodeId>);
    on_holds_argument(name: &[u8], path: &[u8]);
    on_holds_item(name: &[u8], step: NodeId);
    on_holds_initial(name: &[u8], step: NodeId);
    on_caught(name: &[u8]);
    on_tool_input(name: &[u8], tool: NodeId);
    on_round(name: &[u8]);
    on_read(chain: &[VarId]);
    on_read_all();
    on_argument(path: &[u8]);
    on_not_visible(name: &[u8]);
    on_not_yet(name: &[u8]);
    on_unbound(name: &[u8]);
    on_return_in_body(step: NodeId);
    on_returned_value(value: NodeId);
    on_returned(schema: NodeId, name: &[u8]);
    on_arity(step: NodeId, name: &str, given: usize, wanted: usize);
    on_helper_call(step: NodeId, name: &'a [u8]);
}
