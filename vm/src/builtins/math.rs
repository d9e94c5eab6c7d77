//! `Math` (ECMA-262 §21.3), on a pure-Rust library with identical bits on every platform
//! (D17).

use super::{FunctionFn, arg};
use crate::coerce::to_number;
use crate::heap::Val;
use crate::native::{Cx, Fault};
use a99_ecma::arith::{self, Math1};
use smallvec::SmallVec;

macro_rules! math {
    ($($name:literal $variant:ident,)*) => {
        /// Namespace, name and code of each function.
        pub(super) const FUNCTIONS: &[(&str, &str, FunctionFn)] = &[
            $(("Math", $name, |cx, args| {
                Ok(Val::Num(Math1::$variant.eval(to_number(cx, arg(args, 0))?)))
            }),)*
            ("Math", "pow", |cx, args| two(cx, args, arith::pow)),
            ("Math", "atan2", |cx, args| two(cx, args, arith::atan2)),
            ("Math", "imul", |cx, args| two(cx, args, arith::imul)),
            ("Math", "bitAnd", |cx, args| two(cx, args, arith::bit_and)),
            ("Math", "bitOr", |cx, args| two(cx, args, arith::bit_or)),
            ("Math", "bitXor", |cx, args| two(cx, args, arith::bit_xor)),
            ("Math", "bitNot", |cx, args| {
                Ok(Val::Num(arith::bit_not(to_number(cx, arg(args, 0))?)))
            }),
            ("Math", "shiftLeft", |cx, args| two(cx, args, arith::shift_left)),
            ("Math", "shiftRight", |cx, args| two(cx, args, arith::shift_right)),
            ("Math", "shiftRightUnsigned", |cx, args| {
                two(cx, args, arith::shift_right_unsigned)
            }),
            ("Math", "min", |cx, args| many(cx, args, arith::min)),
            ("Math", "max", |cx, args| many(cx, args, arith::max)),
            ("Math", "hypot", |cx, args| many(cx, args, arith::hypot)),
            ("Math", "random", |cx, _| Ok(Val::Num(cx.random_f64()))),
        ];
    };
}

math! {
    "abs" Abs,
    "ceil" Ceil,
    "floor" Floor,
    "round" Round,
    "trunc" Trunc,
    "sign" Sign,
    "sqrt" Sqrt,
    "cbrt" Cbrt,
    "exp" Exp,
    "expm1" Expm1,
    "log" Log,
    "log2" Log2,
    "log10" Log10,
    "log1p" Log1p,
    "sin" Sin,
    "cos" Cos,
    "tan" Tan,
    "asin" Asin,
    "acos" Acos,
    "atan" Atan,
    "sinh" Sinh,
    "cosh" Cosh,
    "tanh" Tanh,
    "asinh" Asinh,
    "acosh" Acosh,
    "atanh" Atanh,
    "fround" Fround,
    "clz32" Clz32,
}

fn two(cx: &mut Cx<'_>, args: &[Val], f: fn(f64, f64) -> f64) -> Result<Val, Fault> {
    let a = to_number(cx, arg(args, 0))?;
    let b = to_number(cx, arg(args, 1))?;
    Ok(Val::Num(f(a, b)))
}

fn many(cx: &mut Cx<'_>, args: &[Val], f: fn(&[f64]) -> f64) -> Result<Val, Fault> {
    let mut numbers: SmallVec<[f64; 4]> = SmallVec::with_capacity(args.len());
    for v in args {
        numbers.push(to_number(cx, *v)?);
    }
    Ok(Val::Num(f(&numbers)))
}
