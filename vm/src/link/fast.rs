//! Fast code: the instructions of a function in the form of the fast loop.
//!
//! Each instruction of the function has one at the same index. [`FastOp::Other`] stands for
//! instructions without an arm in the loop. Certain pairs are fused (superinstructions): the
//! first one does the work of both and continues after the second, which saves a dispatch and
//! a round trip through memory. The second one keeps its index and its own form. So an index
//! means the same in both forms, and a run can resume in the middle of a pair.
//!
//! The pairs are those that are frequent in programs, or in their loops; some fuse three
//! instructions.

use crate::heap::{KeyId, StaticShapes, Val};
use a99_core::builtins::is_forbidden;
use a99_core::program::{
    ArgIdx, BlockIdx, ConstIdx, Count, Function, FunctionIdx, LiteralIdx, Op, PathIdx, Program,
    Reg, ShapeIdx, SiteIdx, Target,
};

macro_rules! fast_ops {
    (
        alone { $( $name:ident { $($field:ident : $kind:ty),* } )* }
        pairs { $( $(#[$attr:meta])+ $pair:ident { $($operand:ident : $type:ty),* } )* }
    ) => {
        /// An instruction of the fast loop.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(crate) enum FastOp {
            /// Executed by [`Machine::execute`](crate::machine::Machine::execute).
            Other,
            $( $name { $($field: $kind),* }, )*
            $( $(#[$attr])+ $pair { $($operand: $type),* }, )*
        }

        /// A single instruction.
        fn alone(op: Op) -> FastOp {
            match op {
                $( Op::$name { $($field,)* .. } => FastOp::$name { $($field),* }, )*
                _ => FastOp::Other,
            }
        }
    };
}

fast_ops! {
    alone {
        Nop {}
        Fuel { block: BlockIdx }
        Mov { dst: Reg, src: Reg }
        MovBound { dst: Reg, src: Reg }
        MovDefined { dst: Reg, src: Reg }
        LoadK { dst: Reg, k: ConstIdx }
        LoadLit { dst: Reg, lit: LiteralIdx }
        LoadArg { dst: Reg, arg: ArgIdx }
        Unbind { base: Reg, n: Count }
        CheckReturn { src: Reg }
        Add { dst: Reg, l: Reg, r: Reg }
        Sub { dst: Reg, l: Reg, r: Reg }
        Mul { dst: Reg, l: Reg, r: Reg }
        Div { dst: Reg, l: Reg, r: Reg }
        Rem { dst: Reg, l: Reg, r: Reg }
        Not { dst: Reg, src: Reg }
        SEq { dst: Reg, l: Reg, r: Reg }
        SNe { dst: Reg, l: Reg, r: Reg }
        Lt { dst: Reg, l: Reg, r: Reg }
        Le { dst: Reg, l: Reg, r: Reg }
        Gt { dst: Reg, l: Reg, r: Reg }
        Ge { dst: Reg, l: Reg, r: Reg }
        Jmp { to: Target }
        JTrue { src: Reg, to: Target }
        JFalse { src: Reg, to: Target }
        JNullish { src: Reg, to: Target }
        JPresent { src: Reg, to: Target }
        JLt { l: Reg, r: Reg, to: Target }
        JNLt { l: Reg, r: Reg, to: Target }
        JLe { l: Reg, r: Reg, to: Target }
        JNLe { l: Reg, r: Reg, to: Target }
        JSEq { l: Reg, r: Reg, to: Target }
        JSNe { l: Reg, r: Reg, to: Target }
        JEq { l: Reg, r: Reg, to: Target }
        JNe { l: Reg, r: Reg, to: Target }
        Index { dst: Reg, obj: Reg, idx: Reg }
        OwnIndex { dst: Reg, obj: Reg, idx: Reg }
        NewObj { dst: Reg, base: Reg, n: Count, shape: ShapeIdx }
        ArrPush { arr: Reg, src: Reg }
        IterNext { dst: Reg, it: Reg, to: Target }
        CallAtom { dst: Reg, base: Reg, n: Count, site: SiteIdx }
        Call { dst: Reg, base: Reg, callee: FunctionIdx }
        Ret { src: Reg }
    }
    pairs {
        #[doc = "`Member`, or `Path` of one name which is a key of the program."]
        Member { dst: Reg, obj: Reg, key: KeyId }
        #[cfg(feature = "jit")]
        #[doc = "`Fuel` of a block that heads a loop, which may be compiled."]
        LoopHead { number: u16, block: BlockIdx }
        #[doc = "`Unbind`, `IterNext`: the head of a loop over items."]
        UnbindIterNext { base: Reg, n: Count, dst: Reg, it: Reg, to: u16 }
        #[doc = "`Mov`, `JPresent` of the copy."]
        MovJPresent { dst: Reg, src: Reg, to: u16 }
        #[doc = "`Fuel`, `Nop`, `Unbind`: how functions begin."]
        Enter { base: Reg, n: Count, block: BlockIdx }
        #[doc = "`Nop`, `Unbind`."]
        NopUnbind { base: Reg, n: Count }
        #[doc = "`Mov`, `Mov`."]
        MovMov { dst: Reg, src: Reg, then: Reg, from: Reg }
        #[doc = "`LoadK`, `MovBound`: a variable, or the constant."]
        BoundOrK { dst: Reg, src: Reg, k: ConstIdx }
        #[doc = "`LoadArg`, `MovBound`: a variable, or the argument."]
        BoundOrArg { dst: Reg, src: Reg, arg: ArgIdx }
        #[doc = "`LoadK` of a number, `Add`."]
        AddK { at: Reg, dst: Reg, l: Reg, k: ConstIdx }
        #[doc = "`LoadK` of a number, `Sub`."]
        SubK { at: Reg, dst: Reg, l: Reg, k: ConstIdx }
        #[doc = "`LoadK` of a number, `Mul`."]
        MulK { at: Reg, dst: Reg, l: Reg, k: ConstIdx }
        #[doc = "`LoadK` of a number, `JLt`."]
        JLtK { at: Reg, l: Reg, k: u16, to: u16 }
        #[doc = "`LoadK` of a number, `JNLt`."]
        JNLtK { at: Reg, l: Reg, k: u16, to: u16 }
        #[doc = "`LoadK` of a number, `JLe`."]
        JLeK { at: Reg, l: Reg, k: u16, to: u16 }
        #[doc = "`LoadK` of a number, `JNLe`."]
        JNLeK { at: Reg, l: Reg, k: u16, to: u16 }
        #[doc = "`Mul`, `Add` of something and the product."]
        MulAdd { at: Reg, l: Reg, r: Reg, dst: Reg, to: Reg }
        #[doc = "`Rem`, `Add` of something and the remainder."]
        RemAdd { at: Reg, l: Reg, r: Reg, dst: Reg, to: Reg }
        #[doc = "`Mul`, `Rem` of the product, `Add` of something and the remainder: three at once."]
        MulRemAdd { at: Reg, l: Reg, r: Reg, m: Reg, dst: Reg, to: Reg }
        #[doc = "`Add`, `JLt`: the end of a loop that counts."]
        AddJLt { dst: Reg, l: Reg, r: Reg, x: Reg, y: Reg, to: u16 }
        #[doc = "`Add`, `JLe`."]
        AddJLe { dst: Reg, l: Reg, r: Reg, x: Reg, y: Reg, to: u16 }
    }
}

const _: () = assert!(size_of::<FastOp>() == 8);

impl FastOp {
    /// Whether a block begins here.
    #[inline]
    pub(crate) fn is_head(&self) -> bool {
        match self {
            FastOp::Fuel { .. } | FastOp::Enter { .. } => true,
            #[cfg(feature = "jit")]
            FastOp::LoopHead { .. } => true,
            _ => false,
        }
    }
}

/// The longest name that is interned at link time.
const MAX_NAME: usize = 64;

/// Generates fast code for the functions of a program.
pub(crate) struct FastCode<'p> {
    consts: &'p [Val],
    keys: &'p [KeyId],
    /// The key of each path with a single name.
    paths: Vec<Option<KeyId>>,
}

impl<'p> FastCode<'p> {
    /// `consts`, `keys` and `shapes` are those of the linked program; `work` gets each path
    /// before it is read.
    pub(crate) fn new<E>(
        program: &Program,
        consts: &'p [Val],
        keys: &'p [KeyId],
        shapes: &StaticShapes,
        work: impl Fn() -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut paths = Vec::with_capacity(program.paths.len());
        for path in &program.paths {
            work()?;
            let name = match **path {
                [name] => program.text(name),
                _ => b"",
            };
            let is_one = (1..=MAX_NAME).contains(&name.len()) && !is_forbidden(name);
            paths.push(is_one.then(|| shapes.find(name)).flatten());
        }
        Ok(FastCode {
            consts,
            keys,
            paths,
        })
    }

    pub(crate) fn of(&self, function: &Function) -> Box<[FastOp]> {
        let code = &function.code;
        let op = |(at, op): (usize, &Op)| {
            let both = || pair(*op, *code.get(at + 1)?, self.consts);
            let fused = match op {
                Op::Fuel { .. } | Op::Mul { .. } => three(&code[at..]).or_else(both),
                _ => both(),
            };
            fused.unwrap_or_else(|| match *op {
                Op::Member { dst, obj, key } => FastOp::Member {
                    dst,
                    obj,
                    key: self.keys[key.at()],
                },
                Op::Path { dst, root, path } => self.path(dst, root, path),
                op => alone(op),
            })
        };
        code.iter().enumerate().map(op).collect()
    }

    fn path(&self, dst: Reg, root: Reg, path: PathIdx) -> FastOp {
        match self.paths[path.at()] {
            Some(key) => FastOp::Member {
                dst,
                obj: root,
                key,
            },
            None => FastOp::Other,
        }
    }
}

/// Fuses three instructions.
fn three(code: &[Op]) -> Option<FastOp> {
    if let [Op::Fuel { block }, Op::Nop {}, Op::Unbind { base, n }, ..] = *code {
        return Some(FastOp::Enter { base, n, block });
    }
    let [Op::Mul { dst: at, l, r }, rem @ Op::Rem { .. }, add, ..] = *code else {
        return None;
    };
    match (rem, pair(rem, add, &[])) {
        (
            Op::Rem {
                dst,
                l: product,
                r: m,
            },
            Some(FastOp::RemAdd { dst: sum, to, .. }),
        ) if dst == at && product == at && m != at => Some(FastOp::MulRemAdd {
            at,
            l,
            r,
            m,
            dst: sum,
            to,
        }),
        _ => None,
    }
}

/// Fuses two instructions. No pair continues in another block than its second instruction
/// alone would.
fn pair(first: Op, second: Op, consts: &[Val]) -> Option<FastOp> {
    let pair = match (first, second) {
        (Op::Nop {}, Op::Unbind { base, n }) => FastOp::NopUnbind { base, n },
        (
            Op::Mov { dst, src },
            Op::Mov {
                dst: then,
                src: from,
            },
        ) => FastOp::MovMov {
            dst,
            src,
            then,
            from,
        },
        (Op::Unbind { base, n }, Op::IterNext { dst, it, to }) => {
            let to = u16::try_from(to.0).ok()?;
            FastOp::UnbindIterNext {
                base,
                n,
                dst,
                it,
                to,
            }
        }
        (Op::Mov { dst, src }, Op::JPresent { src: same, to }) if same == dst => {
            let to = u16::try_from(to.0).ok()?;
            FastOp::MovJPresent { dst, src, to }
        }
        (Op::LoadArg { dst, arg }, Op::MovBound { dst: same, src }) if same == dst => {
            FastOp::BoundOrArg { dst, src, arg }
        }
        (Op::LoadK { dst, k }, Op::MovBound { dst: same, src }) if same == dst => {
            FastOp::BoundOrK { dst, src, k }
        }
        (Op::LoadK { dst: at, k }, second) => {
            let Val::Num(_) = consts.get(k.at())? else {
                return None;
            };
            return with_number(at, k, second);
        }
        (
            Op::Mul { dst: at, l, r },
            Op::Add {
                dst,
                l: to,
                r: same,
            },
        ) if same == at && to != at => FastOp::MulAdd { at, l, r, dst, to },
        (
            Op::Rem { dst: at, l, r },
            Op::Add {
                dst,
                l: to,
                r: same,
            },
        ) if same == at && to != at => FastOp::RemAdd { at, l, r, dst, to },
        (Op::Add { dst, l, r }, Op::JLt { l: x, r: y, to }) => {
            let to = u16::try_from(to.0).ok()?;
            FastOp::AddJLt {
                dst,
                l,
                r,
                x,
                y,
                to,
            }
        }
        (Op::Add { dst, l, r }, Op::JLe { l: x, r: y, to }) => {
            let to = u16::try_from(to.0).ok()?;
            FastOp::AddJLe {
                dst,
                l,
                r,
                x,
                y,
                to,
            }
        }
        _ => return None,
    };
    Some(pair)
}

/// Fuses a constant number with an instruction whose right operand it is.
fn with_number(at: Reg, k: ConstIdx, second: Op) -> Option<FastOp> {
    macro_rules! arith {
        ($name:ident, $dst:ident, $l:ident, $r:ident) => {{
            let is_right = $r == at && $l != at;
            is_right.then_some(FastOp::$name {
                at,
                dst: $dst,
                l: $l,
                k,
            })
        }};
    }
    macro_rules! jump {
        ($name:ident, $l:ident, $r:ident, $to:ident) => {{
            let (k, to) = (u16::try_from(k.0).ok()?, u16::try_from($to.0).ok()?);
            let is_right = $r == at && $l != at;
            is_right.then_some(FastOp::$name { at, l: $l, k, to })
        }};
    }
    match second {
        Op::Add { dst, l, r } => arith!(AddK, dst, l, r),
        Op::Sub { dst, l, r } => arith!(SubK, dst, l, r),
        Op::Mul { dst, l, r } => arith!(MulK, dst, l, r),
        Op::JLt { l, r, to } => jump!(JLtK, l, r, to),
        Op::JNLt { l, r, to } => jump!(JNLtK, l, r, to),
        Op::JLe { l, r, to } => jump!(JLeK, l, r, to),
        Op::JNLe { l, r, to } => jump!(JNLeK, l, r, to),
        _ => None,
    }
}
