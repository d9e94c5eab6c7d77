//! Literal arrays and objects as the steps that build them.

use crate::pool::Pool;
use a99_core::json::{Document, Kind, NodeId};
use a99_core::program::{Const, LitOp};

enum Work {
    Visit(NodeId),
    Close(NodeId),
}

/// The steps that build the value of a node, children before their parent.
///
/// Texts and numbers of literals are data, seldom the same twice: they are not
/// interned, so that a large literal costs no hash table.
pub(super) fn steps(doc: &Document, node: NodeId, pool: &mut Pool) -> Box<[LitOp]> {
    let mut ops = Vec::new();
    let mut work = vec![Work::Visit(node)];
    let mut keys = Vec::new();
    while let Some(item) = work.pop() {
        let op = match item {
            Work::Visit(node) => match doc.kind(node) {
                Kind::Null => LitOp::Const(pool.constant(Const::Null).0),
                Kind::Bool(b) => LitOp::Const(pool.constant(Const::Bool(b)).0),
                Kind::Number(n) => LitOp::Const(pool.fresh(Const::Number(n)).0),
                Kind::String(text) => LitOp::Const(pool.fresh_text(text).0),
                Kind::Array | Kind::Object => {
                    work.push(Work::Close(node));
                    let from = work.len();
                    work.extend(doc.elements(node).map(Work::Visit));
                    work.extend(doc.members(node).map(|(_, value)| Work::Visit(value)));
                    work[from..].reverse();
                    continue;
                }
            },
            Work::Close(node) if doc.kind(node) == Kind::Array => {
                LitOp::Array(doc.len(node) as u32)
            }
            Work::Close(node) => {
                keys.clear();
                keys.extend(doc.members(node).map(|(key, _)| pool.key(key)));
                LitOp::Object(pool.shape(&keys).0)
            }
        };
        ops.push(op);
    }
    ops.into()
}
