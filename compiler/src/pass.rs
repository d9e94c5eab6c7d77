//! Passes that watch a program being lowered: what they see and when.
//!
//! A pass reads a [`View`] at each [event](Pass) and reports warnings. It changes neither the
//! code nor the state of lowering, so that a program is the same with and without one.

use crate::expr;
use crate::ir::Ir;
pub use crate::limits::Facts;
pub use crate::lower::{Calling, ToolNode};
use crate::lower::{Lower, Shared};
use crate::vars::{VarId, Vars};
use a99_core::diag::Diagnostic;
use a99_core::json::{Document, NodeId};
use a99_core::sig::AtomSig;

/// A constructor of passes: [`compile_with_pass`](crate::compile_with_pass) makes one for each
/// program.
pub type NewPass = for<'a> fn(&'a Document) -> Box<dyn Pass<'a> + 'a>;

/// What a pass sees of lowering.
#[derive(Copy, Clone)]
pub struct View<'v, 'a> {
    /// The program.
    pub doc: &'a Document,
    /// Facts about its parts.
    pub facts: &'a Facts,
    /// The variables of the function that is lowered.
    pub vars: &'v Vars<'a>,
    /// Names that the enclosing handlers bind their errors to.
    pub caught: &'v [&'a [u8]],
    /// Whether the place is inside of a loop.
    pub in_loop: bool,
    /// Whether the function is a helper.
    pub in_helper: bool,
    /// The node that is lowered, and the place in its text.
    pub at: Option<(NodeId, Option<(u32, u32)>)>,
    /// The innermost scope.
    scope: Option<u32>,
    shared: &'v Shared<'a>,
}

impl<'v, 'a> View<'v, 'a> {
    fn of(lower: &'v Lower<'_, 'a>) -> View<'v, 'a> {
        View {
            doc: lower.s.doc,
            facts: lower.s.facts,
            vars: &lower.vars,
            caught: &lower.caught,
            in_loop: lower.loops > 0,
            in_helper: lower.in_helper,
            at: lower.e.at,
            scope: lower.scopes.last().copied(),
            shared: lower.s,
        }
    }

    /// Whether the program's root has `a99: 4`.
    #[must_use]
    pub fn is_version_4(&self) -> bool {
        self.shared.version_4
    }

    /// Whether names inside literals are resolved (D13).
    #[must_use]
    pub fn has_deep_names(&self) -> bool {
        self.shared.deep_names
    }

    /// Whether the program sees variables of a caller.
    #[must_use]
    pub fn has_outer(&self) -> bool {
        !self.shared.options.outer.is_empty()
    }

    /// Whether the program is rejected already.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.shared.diags.has_errors()
    }

    /// Whether the host's atom rejects this literal.
    #[must_use]
    pub fn is_wrong_literal(&self, node: NodeId) -> bool {
        self.shared.wrong_literals.contains(&node)
    }

    /// The signature of an op.
    #[must_use]
    pub fn signature(&self, op: &str) -> Option<&'a AtomSig> {
        self.shared.signature(op)
    }

    /// The variable that a name is bound to in the innermost scope.
    #[must_use]
    pub fn own_variable(&self, name: &[u8]) -> Option<VarId> {
        self.vars.in_scope(name, self.scope?)
    }

    /// Whether a node reads an argument.
    #[must_use]
    pub fn is_arg(&self, node: NodeId) -> bool {
        self.shared.is_arg(node)
    }

    /// Whether a node reads the request context (D75).
    #[must_use]
    pub fn is_context(&self, node: NodeId) -> bool {
        self.shared.is_context(node)
    }

    /// Whether a node in a value position is an expression.
    #[must_use]
    pub fn is_expr(&self, node: NodeId) -> bool {
        self.shared.is_expr(node)
    }

    /// Whether a literal contains nodes to resolve (D13).
    #[must_use]
    pub fn has_nested(&self, node: NodeId) -> bool {
        self.shared.has_nested(node)
    }

    /// Whether a node is an object literal rather than a node to resolve.
    #[must_use]
    pub fn is_literal_object(&self, node: NodeId) -> bool {
        self.shared.is_literal_object(node)
    }

    /// Whether a string in a value position always evaluates to itself.
    #[must_use]
    pub fn is_plain_text(&self, text: &[u8]) -> bool {
        self.vars.is_plain_text(text)
    }

    /// Parses a condition, or a formula of version 4.
    ///
    /// # Errors
    /// The errors of the text.
    pub fn parse_text(&self, text: &str) -> Result<expr::Expr, expr::ParseErrors> {
        self.shared.parse_text(text)
    }

    /// The holes of a template's text.
    #[must_use]
    pub fn holes<'t>(&self, text: &'t [u8]) -> Vec<&'t [u8]> {
        self.shared.holes(text)
    }

    /// The nearest of these names, if the program's budget of comparisons allows a search.
    pub fn nearest<'n>(&self, name: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
        self.shared.nearest(name, names)
    }

    /// Takes the budget to list this many names and compare one with them; returns whether it
    /// sufficed. Ask before a list is built: one for each finding would be quadratic.
    #[must_use]
    pub fn affords(&self, names: usize) -> bool {
        self.shared.affords(names)
    }

    /// The text at a place, if it is short: the excerpt of a finding.
    #[must_use]
    pub fn written_at(&self, node: NodeId, inner: Option<(u32, u32)>) -> String {
        self.shared.written_at(node, inner)
    }

    /// A warning about a node.
    #[must_use]
    pub fn warn(&self, code: &'static str, node: NodeId, message: String) -> Diagnostic {
        self.shared.warn(code, node, message)
    }

    /// Adds a finding to those of the compiler.
    pub fn report(&self, finding: Diagnostic) {
        self.shared.keep(finding);
    }
}

/// Declares [`Pass`], and for each event the method of lowering that passes it on.
macro_rules! events {
    ($($(#[$about:meta])* $event:ident($($arg:ident: $kind:ty),*);)*) => {
        /// Events of lowering, in the order of the code; each does nothing by default.
        pub trait Pass<'a> {
            /// The compiler reports a finding with this code.
            fn on_finding(&mut self, code: &str) {
                let _ = code;
            }

            /// All functions are lowered; no variable is visible.
            fn on_end(&mut self, view: View<'_, 'a>) {
                let _ = view;
            }

            /// Whether control surely never continues after a step, whose branches all leave.
            fn leaves(&mut self, view: View<'_, 'a>, step: NodeId) -> bool {
                let _ = (view, step);
                false
            }

            $($(#[$about])*
            fn $event(&mut self, view: View<'_, 'a>, $($arg: $kind),*) {
                let _ = (view, $($arg),*);
            })*
        }

        impl<'a> Lower<'_, 'a> {
            $($(#[$about])*
            #[inline]
            pub(crate) fn $event(&mut self, $($arg: $kind),*) {
                if let Some(mut pass) = self.s.pass.take() {
                    pass.$event(View::of(self), $($arg),*);
                    self.s.pass = Some(pass);
                }
            })*
        }
    };
}

events! {
    /// Lowering of the program begins.
    on_program();
    /// The steps of the program end.
    on_program_end();
    /// A function ends, the program or a helper; its variables go out of scope.
    on_function_end();
    /// A helper has this parameter.
    on_parameter(name: &[u8], node: NodeId);

    /// A list of steps begins.
    on_open_body(steps: &[NodeId]);
    /// The list ends.
    on_close_body();
    /// A body begins (+1) or ends (-1) that control may leave at any step.
    on_try(by: i32);
    /// The steps of a `while` begin.
    on_enter_loop();
    /// They end.
    on_leave_loop();
    /// The steps for each item begin; the item has this name.
    on_enter_items(name: &'a [u8]);
    /// They end.
    on_leave_items();
    /// A condition about each item of this step begins, where the item is no variable yet; or,
    /// without a step, ends.
    on_choose(name: &'a [u8], step: Option<NodeId>);

    /// A step with this op and signature begins.
    on_step(step: NodeId, op: &str, sig: &AtomSig);
    /// A step is no call of a known op; correct, it might bind names.
    on_faulty_step(step: NodeId);
    /// A call of a list is made with its inputs.
    on_inputs(call: NodeId, op: &str);
    /// The literals among the inputs of such a call are known.
    on_literals(call: NodeId, op: &str);
    /// The condition of a branch or loop is read.
    on_start(step: NodeId, condition: &Ir<'a>);
    /// A `while` has this condition.
    on_loop(step: NodeId, condition: &Ir<'a>);
    /// A step about items has this condition.
    on_item(step: NodeId, condition: &Ir<'a>);
    /// A loop has these tools.
    on_tools(step: NodeId, tools: &[ToolNode<'a>]);

    /// A condition is read.
    on_condition(root: &Ir<'a>);
    /// An expression is read.
    on_expr(root: &Ir<'a>);
    /// An expression node is met, before it is read.
    on_node(node: NodeId);
    /// An expression calls a method.
    on_method(name: &[u8], args: &[Ir<'a>]);
    /// A text stands in a value position.
    on_text(node: NodeId, text: &[u8]);
    /// A list or object of data stands in a value position.
    on_data(node: NodeId);
    /// A list or object whose members are evaluated stands in a value position.
    on_literal(node: NodeId);
    /// The same, about expression texts in it.
    on_short_text(node: NodeId, is_data: bool);

    /// A name is about to be bound.
    on_may_bind(name: &[u8], node: NodeId);
    /// `constSet` is about to bind a name.
    on_not_free(name: &[u8], node: NodeId);
    /// A step bound its result.
    on_bound_result(step: NodeId, name: &[u8], node: NodeId, may_be_undefined: bool);
    /// `varSet` bound a name to this value.
    on_wrote(name: &[u8], node: NodeId, value: Option<NodeId>);
    /// A variable became a constant.
    on_constant(id: VarId);
    /// A variable is declared; `writes` steps of its scope bind it.
    on_expect_writes(id: VarId, writes: u32);
    /// A name holds this value.
    on_holds_value(name: &[u8], value: Option<NodeId>);
    /// A name holds an argument.
    on_holds_argument(name: &[u8], path: &[u8]);
    /// A name holds an item of this step.
    on_holds_item(name: &[u8], step: NodeId);
    /// A name holds the accumulator of this step.
    on_holds_initial(name: &[u8], step: NodeId);
    /// A handler binds its error to this name.
    on_caught(name: &[u8]);
    /// A name holds the input of a tool.
    on_tool_input(name: &[u8], tool: NodeId);
    /// A name holds what a round of a tool loop gave.
    on_round(name: &[u8]);

    /// Variables are read: those that a name may mean.
    on_read(chain: &[VarId]);
    /// All visible variables may be read.
    on_read_all();
    /// An argument is read.
    on_argument(path: &[u8]);
    /// A name is read where no variable is visible.
    on_not_visible(name: &[u8]);
    /// A name is read in the scope that binds it.
    on_not_yet(name: &[u8]);
    /// A name is read that no variable surely gives.
    on_unbound(name: &[u8]);

    /// A `return` stands in the body of a step about items.
    on_return_in_body(step: NodeId);
    /// A `return` gives this value.
    on_returned_value(value: NodeId);
    /// A `return` gives this variable, by its schema.
    on_returned(schema: NodeId, name: &[u8]);
    /// A step calls a helper with `given` arguments of `wanted`.
    on_arity(step: NodeId, name: &str, given: usize, wanted: usize);
    /// The same, of a helper that exists.
    on_helper_call(step: NodeId, name: &'a [u8]);
}

impl<'a> Lower<'_, 'a> {
    /// Whether a pass watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.s.pass.is_some()
    }

    /// Whether the pass knows that control never continues after a step.
    pub(crate) fn leaves(&mut self, step: NodeId) -> bool {
        let Some(mut pass) = self.s.pass.take() else {
            return false;
        };
        let leaves = pass.leaves(View::of(self), step);
        self.s.pass = Some(pass);
        leaves
    }
}

impl Shared<'_> {
    /// Passes on that all functions are lowered.
    pub(crate) fn on_end(&mut self) {
        let Some(mut pass) = self.pass.take() else {
            return;
        };
        let view = View {
            doc: self.doc,
            facts: self.facts,
            vars: &Vars::default(),
            caught: &[],
            in_loop: false,
            in_helper: false,
            at: None,
            scope: None,
            shared: self,
        };
        pass.on_end(view);
    }
}
