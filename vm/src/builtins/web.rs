//! Functions of browsers and Node: `structuredClone`, `btoa`, `atob`.

use super::{FunctionFn, arg, charge_text};
use crate::coerce::to_str;
use crate::convert::copy_deep;
use crate::heap::Val;
use crate::native::{Cx, Fault};
use a99_ecma::base64;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, FunctionFn)] = &[
    ("", "structuredClone", |cx, args| {
        copy_deep(cx, arg(args, 0))
    }),
    ("", "btoa", btoa),
    ("", "atob", atob),
];

fn btoa(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let s = to_str(cx, arg(args, 0))?;
    cx.heap.check(s.len_bytes().saturating_mul(2))?;
    let text = cx.read_text(s, 0..s.len_bytes(), |text, mut tick| {
        base64::btoa(text, &mut tick)
    })?;
    let Some(text) = text else {
        return Err(Fault::throw("Invalid character"));
    };
    // The text is ASCII.
    charge_text(cx, text.len())?;
    Ok(Val::Str(cx.str_units(&text, text.len())?))
}

fn atob(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let s = to_str(cx, arg(args, 0))?;
    cx.heap.check(s.len_bytes().saturating_mul(2))?;
    let text = cx.read_text(s, 0..s.len_bytes(), |text, mut tick| {
        base64::atob(text, &mut tick)
    })?;
    let Some(text) = text else {
        return Err(Fault::throw(
            "The string to be decoded is not correctly encoded.",
        ));
    };
    let units = cx.count_units(&text)?;
    charge_text(cx, units)?;
    Ok(Val::Str(cx.str_units(&text, units)?))
}

#[cfg(test)]
mod tests {
    use crate::builtins::call_function;
    use crate::builtins::testing::{Bench, message, show};
    use crate::heap::Val;

    fn called(name: &str, text: &str) -> String {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let text = cx.str(text.as_bytes()).expect("room");
        let function = a99_core::builtins::function("", name).expect("a row");
        match call_function(&mut cx, function, &[text]) {
            Ok(value) => show(&mut cx, value),
            Err(fault) => message(fault),
        }
    }

    #[test]
    fn base64_of_texts() {
        assert_eq!(called("btoa", "hé"), r#""aOk=""#);
        assert_eq!(called("atob", "aOk="), r#""hé""#);
        assert_eq!(called("btoa", "ā"), "Invalid character");
        assert!(called("atob", "a").contains("not correctly encoded"));
    }

    #[test]
    fn clones_share_nothing() {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let inner = cx.list(&[Val::Num(1.0)]).expect("room");
        let list = cx.list(&[Val::Arr(inner), Val::Arr(inner)]).expect("room");
        let function = a99_core::builtins::function("", "structuredClone").expect("a row");
        let Ok(Val::Arr(copy)) = call_function(&mut cx, function, &[Val::Arr(list)]) else {
            panic!("not a list");
        };
        let items = cx.heap.items(copy).to_vec();
        let parts = [items[0].as_ref(), items[1].as_ref()];
        assert!(parts[0] == parts[1] && parts[0] != Some(inner));
    }
}
