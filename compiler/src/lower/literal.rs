//! Literal arrays and objects as the steps that build them.

use crate::pool::Pool;
use a99_core::costs::data_nodes;
use a99_core::json::{Document, Kind, NodeId};
use a99_core::program::{Const, LitOp};
use a99_core::value::Value;

enum Work {
    Visit(NodeId),
    Close(NodeId),
}

/// The steps that build the value of a node, children before their parent.
///
/// Texts and numbers of literals rarely repeat: they are not interned, so that a large literal
/// needs no hash table.
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

/// Nodes to charge for a literal that the compiler generates.
pub(super) fn nodes_of(value: &Value) -> usize {
    let mut nodes = 0;
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => {
                nodes += data_nodes(false, items.len());
                todo.extend(items);
            }
            Value::Object(map) => {
                nodes += data_nodes(true, map.len());
                todo.extend(map.values());
            }
            _ => {}
        }
    }
    nodes
}

/// The steps that build a generated value, children before their parent.
pub(super) fn steps_of(value: &Value, pool: &mut Pool) -> Box<[LitOp]> {
    let mut ops = Vec::new();
    let mut work = vec![(value, false)];
    while let Some((value, is_made)) = work.pop() {
        let op = match value {
            Value::Undefined => LitOp::Const(pool.constant(Const::Undefined).0),
            Value::Null => LitOp::Const(pool.constant(Const::Null).0),
            Value::Bool(b) => LitOp::Const(pool.constant(Const::Bool(*b)).0),
            Value::Number(n) => LitOp::Const(pool.fresh(Const::Number(*n)).0),
            Value::String(text) => LitOp::Const(pool.fresh_text(text.as_bytes()).0),
            Value::Array(items) if is_made => LitOp::Array(items.len() as u32),
            Value::Object(map) if is_made => {
                let keys: Vec<_> = map.keys().map(|key| pool.key(key.as_bytes())).collect();
                LitOp::Object(pool.shape(&keys).0)
            }
            Value::Array(items) => {
                work.push((value, true));
                work.extend(items.iter().rev().map(|item| (item, false)));
                continue;
            }
            Value::Object(map) => {
                work.push((value, true));
                let from = work.len();
                work.extend(map.values().map(|member| (member, false)));
                work[from..].reverse();
                continue;
            }
        };
        ops.push(op);
    }
    ops.into()
}
