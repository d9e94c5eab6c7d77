//! A small program with one of everything.

use crate::costs::NODE_METERED;
use crate::json::{Document, Limits, NodeId};
use crate::program::*;
use crate::program::{
    BlockIdx, ConstIdx, Count, FunctionIdx, NamesIdx, Number, Reg, ShapeIdx, SiteIdx, Target,
};
use crate::sig::BaseCost;
use crate::value::Value;
use std::sync::Arc;

const SOURCE: &str = r#"{"op":"seq","steps":[{"op":"map","c":"i < 10"},{"op":"call"}],"lit":[1]}"#;

fn text(p: &mut Program, s: &str) -> TextRange {
    let start = p.text.len() as u32;
    p.text.extend_from_slice(s.as_bytes());
    TextRange {
        start,
        end: p.text.len() as u32,
    }
}

pub(crate) fn empty() -> Program {
    let source = Document::parse(SOURCE, &Limits::default()).expect("the source is JSON");
    Program {
        source: Arc::new(source).into(),
        ..Program::default()
    }
}

/// A loop with an iterator, an atom call that a handler protects, a helper.
pub(crate) fn sample() -> Program {
    let mut p = empty();
    let words: Vec<TextRange> = ["items", "total", "seq", "map", "call", ""]
        .map(|s| text(&mut p, s))
        .to_vec();
    p.consts = vec![
        Const::Number(10.5),
        Const::Text(words[0]),
        Const::Text(words[5]),
        Const::Null,
        Const::Bool(true),
    ];
    p.keys = vec![words[0], words[1]];
    p.shapes = vec![Box::new([0, 1])];
    p.paths = vec![Box::new([words[0], words[1]])];
    p.literals = vec![[LitOp::Const(0), LitOp::Array(1)].into()];
    p.args = vec![
        ArgKey {
            flat: words[0],
            path: Some(Box::new([words[0]])),
            fallback: ArgFallback::Const(3),
        },
        ArgKey {
            flat: words[1],
            path: None,
            fallback: ArgFallback::Builtin(0x8000),
        },
    ];
    p.ops = [(2, 100_000), (3, 1_000_000), (4, 5_000_000)]
        .map(|(name, cost)| OpRef {
            name: words[name],
            cost: BaseCost::Fixed(cost),
            needs_body: name == 4,
            signature: 1,
        })
        .to_vec();
    p.sites = vec![Site {
        op: 2,
        step: 2,
        inputs: 1,
    }];
    p.memos = vec![MemoSite {
        body: words[0],
        free: Box::new([1, 1]),
        with_program: false,
    }];
    p.names = vec![vec![(1, Location::Reg(0)), (1, Location::Reg(1))]];
    p.schemas = vec![Value::Null];
    p.functions = vec![main(&p), helper(&p)];
    p
}

fn main(p: &Program) -> Function {
    Function {
        name: 2,
        registers: 12,
        slots: 1,
        code: main_code(),
        blocks: [
            (0, 5, 0, 1_100_000 + 3 * NODE_METERED),
            (5, 7, 3, 5_000),
            (7, 11, 4, 5_000_000),
            (11, 14, 5, 0),
        ]
        .into_iter()
        .chain([(14, 18, 5, 0), (18, 22, 5, 5_000_000)])
        .map(|(start, end, charges, price)| Block {
            start,
            end,
            charges,
            price,
        })
        .collect(),
        charges: [
            (1, 0, ChargeKind::Step),
            (2, 1, ChargeKind::Step),
            (3, 1, ChargeKind::Nodes(3)),
        ]
        .into_iter()
        .chain([(6, 1, ChargeKind::Turn), (8, 2, ChargeKind::Step)])
        .chain([(19, 0, ChargeKind::CacheStore)])
        .map(|(pc, step, kind)| Charge { pc, step, kind })
        .collect(),
        steps: main_steps(p),
        scopes: vec![Scope {
            vars: vec![(1, Location::Reg(0)), (1, Location::Slot(0))],
        }],
        handlers: vec![Handler {
            start: 7,
            end: 11,
            target: 14,
        }],
        wraps: vec![Wrap {
            start: 1,
            end: 3,
            prefix: 1,
        }],
        places: main_places(p),
        ..Function::default()
    }
}

fn main_code() -> Vec<Op> {
    vec![
        Op::Fuel { block: BlockIdx(0) },
        Op::LoadK {
            dst: Reg(0),
            k: ConstIdx(0),
        },
        Op::NewArr {
            dst: Reg(1),
            cap: Number(1),
        },
        Op::ArrPush {
            arr: Reg(1),
            src: Reg(0),
        },
        Op::IterInit {
            it: Reg(2),
            src: Reg(1),
            k: ConstIdx(1),
        },
        Op::Fuel { block: BlockIdx(1) },
        Op::IterNext {
            dst: Reg(4),
            it: Reg(2),
            to: Target(11),
        },
        Op::Fuel { block: BlockIdx(2) },
        Op::CallAtom {
            dst: Reg(5),
            base: Reg(4),
            n: Count(1),
            site: SiteIdx(0),
        },
        Op::Unbind {
            base: Reg(6),
            n: Count(2),
        },
        Op::Jmp { to: Target(5) },
        Op::Fuel { block: BlockIdx(3) },
        Op::NewObj {
            dst: Reg(6),
            base: Reg(0),
            n: Count(2),
            shape: ShapeIdx(0),
        },
        Op::Jmp { to: Target(18) },
        Op::Fuel { block: BlockIdx(4) },
        Op::Catch {
            msg: Reg(7),
            op: Reg(8),
        },
        Op::Mov {
            dst: Reg(6),
            src: Reg(7),
        },
        Op::Jmp { to: Target(18) },
        Op::Fuel { block: BlockIdx(5) },
        Op::Call {
            dst: Reg(7),
            base: Reg(0),
            n: Count(1),
            callee: FunctionIdx(1),
        },
        Op::RunCode {
            dst: Reg(8),
            base: Reg(0),
            n: Count(2),
            names: NamesIdx(0),
        },
        Op::Ret { src: Reg(6) },
    ]
}

fn main_steps(p: &Program) -> Vec<Step> {
    let source = p.source.document().expect("a source");
    let steps = source.get(NodeId(0), "steps").expect("a member");
    [
        (u32::MAX, 0, 22, 0, NodeId(0)),
        (0, 2, 18, 1, steps),
        (1, 8, 10, 2, steps),
    ]
    .map(|(parent, start, end, op, node)| Step {
        parent,
        start,
        end,
        op,
        node,
        implicit: op == 1,
        scope: 0,
        value: if op == 0 { 255 } else { 5 },
    })
    .to_vec()
}

fn main_places(p: &Program) -> Vec<SourceLocation> {
    let source = p.source.document().expect("a source");
    let steps = source.get(NodeId(0), "steps").expect("a member");
    let map = source.element(steps, 0).expect("an element");
    let condition = source.get(map, "c").expect("a member");
    vec![
        SourceLocation {
            pc: 1,
            node: NodeId(0),
            inner: None,
        },
        SourceLocation {
            pc: 3,
            node: condition,
            inner: Some((0, 6)),
        },
        SourceLocation {
            pc: 8,
            node: map,
            inner: None,
        },
    ]
}

pub(crate) fn helper_block(price: i64) -> Block {
    Block {
        start: 0,
        end: 3,
        charges: 0,
        price,
    }
}

fn helper(p: &Program) -> Function {
    Function {
        name: 1,
        params: 1,
        registers: 2,
        code: vec![
            Op::Fuel { block: BlockIdx(0) },
            Op::Add {
                dst: Reg(1),
                l: Reg(0),
                r: Reg(0),
            },
            Op::Ret { src: Reg(1) },
        ],
        blocks: vec![helper_block(100_000)],
        charges: vec![Charge {
            pc: 1,
            step: 0,
            kind: ChargeKind::Step,
        }],
        steps: vec![Step {
            parent: u32::MAX,
            end: 3,
            ..main_steps(p)[0]
        }],
        scopes: vec![Scope::default()],
        ..Function::default()
    }
}
