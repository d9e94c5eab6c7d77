//! `random` and `uuid` (language section 2.7), from the run's source of randomness.

use crate::def::{Adjust, Kind, native, opt};
use a99_capabilities::uuid_v4;
use a99_core::costs::{MICRO, Sizes, WRITTEN};
use a99_core::sig::{Effect, Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::coerce::{to_integer, to_number};
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "random",
            "A random number from min (0) up to max (1), an integer, or text in base 36.",
            MICRO,
            &[
                opt("min", Kind::Number, "The smallest number.").default("0"),
                opt("max", Kind::Number, "Upper bound, which is excluded.").default("1"),
                opt(
                    "format",
                    Kind::Text,
                    "`integer` for a number that is rounded down, `base36` for a text of digits \
                     and lower-case letters, `float` for a number with a fraction.",
                )
                .values(&["float", "integer", "base36"])
                .default("\"float\""),
                opt(
                    "length",
                    Kind::Number,
                    "Characters of a `base36` text, from 0 to 65536.",
                )
                .whole(0.0, 65_536.0)
                .default("10"),
            ],
            random,
        )
        .listed(ShortPrompts::Source)
        .gives(Gives::always(JsonKinds::ANY))
        .metered(WRITTEN)
        .effect(Effect::Read),
        native("uuid", "A random UUID (version 4).", MICRO, &[], uuid)
            .listed(ShortPrompts::Source)
            .gives(Gives::always(JsonKinds::STRING))
            .effect(Effect::Read),
    ]
}

/// Most characters of one text: the limit of a Web Crypto call, which bounded the reference.
const MAX_LENGTH: f64 = 65_536.0;

/// Default number of characters of a text.
const DEFAULT_LENGTH: f64 = 10.0;

/// Every format except `base36` yields a number, and every other except `integer` a fraction.
fn random(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let is = |cx: &Cx<'_>, name: &[u8]| matches!(args[2], Val::Str(s) if cx.bytes(s) == name);
    if is(cx, b"base36") {
        return base36(cx, args[3]);
    }
    let min = number_or(cx, args[0], 0.0)?;
    let max = number_or(cx, args[1], 1.0)?;
    let mut bytes = [0; 4];
    cx.random(&mut bytes);
    let unit = f64::from(u32::from_le_bytes(bytes)) / 4_294_967_296.0;
    let value = unit * (max - min) + min;
    Ok(Val::Num(if is(cx, b"integer") {
        value.floor()
    } else {
        value
    }))
}

fn number_or(cx: &mut Cx<'_>, v: Val, default: f64) -> Result<f64, Fault> {
    if v.is_nullish() {
        Ok(default)
    } else {
        to_number(cx, v)
    }
}

fn base36(cx: &mut Cx<'_>, length: Val) -> Result<Val, Fault> {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let length = if length.is_nullish() {
        DEFAULT_LENGTH
    } else {
        to_integer(cx, length)?
    };
    if !(0.0..=MAX_LENGTH).contains(&length) {
        return Err(Fault::throw(format!(
            "random: length must be from 0 to {MAX_LENGTH}"
        )));
    }
    let mut text = vec![0; length as usize];
    cx.charge(WRITTEN, Sizes::default().out_units(text.len()))?;
    cx.random(&mut text);
    text.iter_mut()
        .for_each(|b| *b = DIGITS[usize::from(*b % 36)]);
    cx.str(&text)
}

fn uuid(cx: &mut Cx<'_>, _: &mut Scope<'_>, _: &[Val]) -> Result<Val, Fault> {
    let mut bytes = [0; 16];
    cx.random(&mut bytes);
    cx.str(uuid_v4(bytes).as_bytes())
}

#[cfg(test)]
mod tests {
    use crate::testing::{fails, run};

    #[test]
    fn numbers_lie_in_their_range() {
        assert_eq!(run("random", "[5, 5]"), "5");
        assert_eq!(run("random", r#"[2.5, 2.5, "integer"]"#), "2");
        assert_eq!(run("random", r#"[5, 5, "weird"]"#), "5");
        for _ in 0..50 {
            let n: f64 = run("random", r#"[10, 20, "integer"]"#).parse().unwrap();
            assert!((10.0..20.0).contains(&n) && n.fract() == 0.0);
            let f: f64 = run("random", "[]").parse().unwrap();
            assert!((0.0..1.0).contains(&f));
        }
    }

    #[test]
    fn texts_have_their_length() {
        assert_eq!(run("random", r#"[null, null, "base36", 0]"#), r#""""#);
        assert_eq!(run("random", r#"[null, null, "base36"]"#).len(), 12);
        let text = run("random", r#"[null, null, "base36", 24]"#);
        assert!(
            text[1..25]
                .bytes()
                .all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        );
        assert!(fails("random", r#"[null, null, "base36", 1e9]"#).contains("from 0 to 65536"));
        assert!(fails("random", r#"[null, null, "base36", -1]"#).contains("from 0 to 65536"));
    }

    #[test]
    fn uuids_are_version_four() {
        let text = run("uuid", "[]");
        assert_eq!((text.len(), &text[15..16]), (38, "4"));
    }
}
