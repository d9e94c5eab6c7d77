//! Kind inference: kinds of register values, and effects of instructions on operands of known
//! kinds.

use crate::heap::Val;
use a99_core::program::{ConstIdx, Count, Op, Reg, Target};
use a99_jit::{Arith, Test};

/// The inferred kind of a register's value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Unchanged since the loop was entered.
    Kept,
    /// An unbound variable.
    Unbound,
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// A boolean.
    Flag,
    /// A number.
    Number,
    /// Different kinds on different paths.
    Mixed,
}

impl Kind {
    /// The kind of a value at the loop's entry.
    pub(crate) fn of(val: &Val) -> Kind {
        match val {
            Val::Unbound => Kind::Unbound,
            Val::Undefined => Kind::Undefined,
            Val::Null => Kind::Null,
            Val::Bool(_) => Kind::Flag,
            Val::Num(_) => Kind::Number,
            _ => Kind::Kept,
        }
    }

    /// The kind at a join of two paths.
    pub(crate) fn join(self, other: Kind) -> Kind {
        if self == other { self } else { Kind::Mixed }
    }

    /// Whether the value certainly has this kind.
    pub(crate) fn is_exact(self) -> bool {
        !matches!(self, Kind::Kept | Kind::Mixed)
    }

    /// The tag that records the kind of a register on the path taken. The tag of
    /// [`Kind::Kept`] is zero: until it is written, a register keeps its value.
    pub(crate) fn tag(self) -> f64 {
        f64::from(self as u8)
    }

    /// The kind of a tag.
    pub(crate) fn of_tag(tag: f64) -> Kind {
        const TAGGED: [Kind; 6] = [
            Kind::Kept,
            Kind::Unbound,
            Kind::Undefined,
            Kind::Null,
            Kind::Flag,
            Kind::Number,
        ];
        let is_tag = |kind: &Kind| kind.tag() == tag;
        TAGGED.into_iter().find(is_tag).unwrap_or(Kind::Kept)
    }

    fn is_nullish(self) -> bool {
        matches!(self, Kind::Unbound | Kind::Undefined | Kind::Null)
    }
}

/// The kinds of a function's registers at a point.
pub(crate) type Kinds = Box<[Kind]>;

/// The condition of a flag or a branch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Numbers { test: Test, l: Reg, r: Reg },
    Flag(Reg),
    Truthy(Reg),
}

/// The source of a register's new value.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// Another register, of the same kind.
    Copy(Reg),
    Number(f64),
    Flag(bool),
    Arith {
        op: Arith,
        l: Reg,
        r: Reg,
    },
    Neg(Reg),
    Condition {
        condition: Condition,
        negated: bool,
    },
    /// A kind with a single value.
    Nothing(Kind),
}

impl Source {
    /// The kind of the value.
    pub(crate) fn kind(self, kinds: &[Kind]) -> Kind {
        match self {
            Source::Copy(src) => kinds[src.at()],
            Source::Number(_) | Source::Arith { .. } | Source::Neg(_) => Kind::Number,
            Source::Flag(_) | Source::Condition { .. } => Kind::Flag,
            Source::Nothing(kind) => kind,
        }
    }
}

/// The effect of an instruction.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// Assigns a register.
    Set { dst: Reg, source: Source },
    /// Makes registers unbound.
    Unbind { base: Reg, n: Count },
    /// Jumps.
    Go(Target),
    /// Jumps if the condition holds, or does not hold.
    Jump {
        condition: Condition,
        negated: bool,
        to: Target,
    },
    /// As `Jump`, if the first number is not NaN; else exits to the interpreter.
    JumpUnlessNaN {
        test: Test,
        l: Reg,
        r: Reg,
        to: Target,
    },
    /// Exits to the interpreter.
    Leave,
}

/// Whether a value is truthy, or unknown.
enum Truth {
    Known(bool),
    Of(Condition),
    Unknown,
}

/// The effect of an instruction on operands of these kinds. Instructions without a compiled
/// form exit to the interpreter.
pub(crate) fn effect(op: Op, kinds: &[Kind], consts: &[Val]) -> Effect {
    let kind = |reg: Reg| kinds[reg.at()];
    let are_numbers = |l, r| kind(l) == Kind::Number && kind(r) == Kind::Number;
    let set = |dst, source| Effect::Set { dst, source };
    let copy = |dst: Reg, src: Reg| match kind(src) {
        Kind::Kept | Kind::Mixed => Effect::Leave,
        _ if dst == src => Effect::None,
        Kind::Number | Kind::Flag => set(dst, Source::Copy(src)),
        one => set(dst, Source::Nothing(one)),
    };
    let arith = |op, dst, l, r| match are_numbers(l, r) {
        true => set(dst, Source::Arith { op, l, r }),
        false => Effect::Leave,
    };
    let test = |test, dst, l, r| match are_numbers(l, r) {
        true => {
            let condition = Condition::Numbers { test, l, r };
            let negated = false;
            set(dst, Source::Condition { condition, negated })
        }
        false => Effect::Leave,
    };
    let jump = |test, negated, l, r, to| match are_numbers(l, r) {
        true => Effect::Jump {
            condition: Condition::Numbers { test, l, r },
            negated,
            to,
        },
        false => Effect::Leave,
    };
    let jump_unless_nan = |test, l, r, to| match are_numbers(l, r) {
        true => Effect::JumpUnlessNaN { test, l, r, to },
        false => Effect::Leave,
    };
    let truth = |src: Reg| match kind(src) {
        Kind::Number => Truth::Of(Condition::Truthy(src)),
        Kind::Flag => Truth::Of(Condition::Flag(src)),
        Kind::Unbound | Kind::Undefined | Kind::Null => Truth::Known(false),
        Kind::Kept | Kind::Mixed => Truth::Unknown,
    };
    let nullish = |src: Reg| match kind(src).is_exact() {
        true => Truth::Known(kind(src).is_nullish()),
        false => Truth::Unknown,
    };
    let jump_if = |truth, negated, to| match truth {
        Truth::Of(condition) => Effect::Jump {
            condition,
            negated,
            to,
        },
        Truth::Known(truth) if truth != negated => Effect::Go(to),
        Truth::Known(_) => Effect::None,
        Truth::Unknown => Effect::Leave,
    };
    match op {
        Op::Nop {} => Effect::None,
        Op::Mov { dst, src } => copy(dst, src),
        Op::MovBound { src, .. } if kind(src) == Kind::Unbound => Effect::None,
        Op::MovDefined { src, .. } if matches!(kind(src), Kind::Unbound | Kind::Undefined) => {
            Effect::None
        }
        Op::MovBound { dst, src } | Op::MovDefined { dst, src } => copy(dst, src),
        Op::LoadK { dst, k } => match consts.get(k.at()) {
            Some(Val::Num(n)) => set(dst, Source::Number(*n)),
            Some(Val::Bool(b)) => set(dst, Source::Flag(*b)),
            Some(Val::Undefined) => set(dst, Source::Nothing(Kind::Undefined)),
            Some(Val::Null) => set(dst, Source::Nothing(Kind::Null)),
            _ => Effect::Leave,
        },
        Op::Unbind { base, n } => Effect::Unbind { base, n },
        Op::Add { dst, l, r } => arith(Arith::Add, dst, l, r),
        Op::Sub { dst, l, r } => arith(Arith::Sub, dst, l, r),
        Op::Mul { dst, l, r } => arith(Arith::Mul, dst, l, r),
        Op::Div { dst, l, r } => arith(Arith::Div, dst, l, r),
        Op::Rem { dst, l, r } => arith(Arith::Rem, dst, l, r),
        Op::Neg { dst, src } if kind(src) == Kind::Number => set(dst, Source::Neg(src)),
        Op::Plus { dst, src } if kind(src) == Kind::Number => copy(dst, src),
        Op::Not { dst, src } => match truth(src) {
            Truth::Of(condition) => {
                let negated = true;
                set(dst, Source::Condition { condition, negated })
            }
            Truth::Known(truth) => set(dst, Source::Flag(!truth)),
            Truth::Unknown => Effect::Leave,
        },
        Op::SEq { dst, l, r } => test(Test::Eq, dst, l, r),
        Op::SNe { dst, l, r } => test(Test::Ne, dst, l, r),
        Op::Lt { dst, l, r } => test(Test::Lt, dst, l, r),
        Op::Le { dst, l, r } => test(Test::Le, dst, l, r),
        Op::Gt { dst, l, r } => test(Test::Gt, dst, l, r),
        Op::Ge { dst, l, r } => test(Test::Ge, dst, l, r),
        Op::Jmp { to } => Effect::Go(to),
        Op::JTrue { src, to } => jump_if(truth(src), false, to),
        Op::JFalse { src, to } => jump_if(truth(src), true, to),
        Op::JNullish { src, to } => jump_if(nullish(src), false, to),
        Op::JPresent { src, to } => jump_if(nullish(src), true, to),
        Op::JLt { l, r, to } => jump(Test::Lt, false, l, r, to),
        Op::JNLt { l, r, to } => jump(Test::Lt, true, l, r, to),
        Op::JLe { l, r, to } => jump(Test::Le, false, l, r, to),
        Op::JNLe { l, r, to } => jump(Test::Le, true, l, r, to),
        Op::JSEq { l, r, to } => jump(Test::Eq, false, l, r, to),
        Op::JSNe { l, r, to } => jump(Test::Ne, false, l, r, to),
        Op::JEq { l, r, to } => jump_unless_nan(Test::Eq, l, r, to),
        Op::JNe { l, r, to } => jump_unless_nan(Test::Ne, l, r, to),
        _ => Effect::Leave,
    }
}

/// Whether an instruction has a compiled form; all compiled forms work on numbers.
pub(crate) fn has_form(op: Op) -> bool {
    const NUMBERS: [Kind; 1 << u8::BITS] = [Kind::Number; 1 << u8::BITS];
    const CONSTANT: [Val; 1] = [Val::Num(0.0)];
    let op = match op {
        // Only for some constants.
        Op::LoadK { dst, .. } => Op::LoadK {
            dst,
            k: ConstIdx(0),
        },
        op => op,
    };
    effect(op, &NUMBERS, &CONSTANT) != Effect::Leave
}

/// Applies an effect to the kinds.
pub(crate) fn apply(effect: Effect, kinds: &mut [Kind]) {
    match effect {
        Effect::Set { dst, source } => kinds[dst.at()] = source.kind(kinds),
        Effect::Unbind { base, n } => {
            kinds[base.at()..base.at() + n.at()].fill(Kind::Unbound);
        }
        Effect::None
        | Effect::Go(_)
        | Effect::Jump { .. }
        | Effect::JumpUnlessNaN { .. }
        | Effect::Leave => {}
    }
}
