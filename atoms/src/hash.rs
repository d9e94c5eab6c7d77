//! `hash` (language section 2.7): SHA digests of text, or of the JSON text of other values.

use crate::def::{Adjust, Kind, native, opt, req};
use a99_core::costs::{DIGEST, MICRO, Sizes};
use a99_core::sig::{Binding, ShortPrompts};
use a99_core::sig::{Gives, JsonKinds};
use a99_core::text::{hex, wtf8_to_string_lossy};
use a99_vm::atom::{AtomDef, Scope};
use a99_vm::coerce::{to_str, truthy};
use a99_vm::heap::{Str, Val};
use a99_vm::json::{Replacer, stringify};
use a99_vm::native::{Cx, Fault};
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, Sha384, Sha512};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        native(
            "hash",
            "A hexadecimal digest of a text or value: SHA-1, SHA-256 (default), SHA-384 or SHA-512.",
            MICRO,
            &[
                req(
                    "value",
                    Kind::Any,
                    "What to digest: a text is digested as it is written and names no variable; \
                     anything else is resolved and digested as its JSON text.",
                )
                .bound(Binding::TextOrValue),
                opt("algorithm", Kind::Text, "The hash function.")
                    .values_any_case(&["SHA-1", "SHA-256", "SHA-384", "SHA-512"])
                    .default("\"SHA-256\""),
                opt(
                    "raw",
                    Kind::Bool,
                    "Whether a text that is resolved is digested as it is, too, without quotes.",
                )
                .default("false"),
            ],
            hash,
        ).listed(ShortPrompts::Source)
        .gives(Gives::always(JsonKinds::STRING))
        .metered(DIGEST),
    ]
}

/// Bytes hashed between two polls of the host.
const SLICE: usize = 16 << 10;

/// Units of work per hashed byte.
const WORK_FOR_BYTE: i64 = 4;

/// `undefined` is hashed as the empty text.
fn hash(cx: &mut Cx<'_>, _: &mut Scope<'_>, args: &[Val]) -> Result<Val, Fault> {
    let algorithm = match args[1] {
        v if !truthy(cx.heap, v) => None,
        v => Some(to_str(cx, v)?),
    };
    let text = match args[0] {
        Val::Str(text) => {
            cx.charge(DIGEST, Sizes::units(text.units()))?;
            text
        }
        // A resolved value is hashed as JSON, even if it is a text (unless `raw` is true), and
        // `undefined` as the empty text. Writing the JSON charges for it.
        other => {
            let value = match other {
                Val::Arr(list) => cx
                    .heap
                    .items(list)
                    .first()
                    .copied()
                    .unwrap_or(Val::Undefined),
                other => other,
            };
            if let (Val::Str(text), true) = (value, truthy(cx.heap, args[2])) {
                cx.charge(DIGEST, Sizes::units(text.units()))?;
                return digested(cx, text, algorithm);
            }
            let text = stringify(cx, value, Replacer::None, b"")?.unwrap_or(Str::EMPTY);
            cx.charge(DIGEST, Sizes::units(text.units()))?;
            text
        }
    };
    digested(cx, text, algorithm)
}

/// Hashes a text with the algorithm of this name.
fn digested(cx: &mut Cx<'_>, text: Str, algorithm: Option<Str>) -> Result<Val, Fault> {
    let name = algorithm.map_or(b"SHA-256".to_vec(), |s| {
        // Algorithm names are shorter than the cut.
        let name = cx.bytes(s);
        name[..name.len().min(16)].to_ascii_uppercase()
    });
    let digest = match name.as_slice() {
        b"SHA-1" => digest::<Sha1>(cx, text)?,
        b"SHA-256" => digest::<Sha256>(cx, text)?,
        b"SHA-384" => digest::<Sha384>(cx, text)?,
        b"SHA-512" => digest::<Sha512>(cx, text)?,
        _ => return Err(Fault::throw("Unrecognized algorithm name")),
    };
    cx.str(hex(&digest).as_bytes())
}

/// Hashes the UTF-8 of a text, with lone surrogates as U+FFFD (D36).
fn digest<D: Digest>(cx: &mut Cx<'_>, text: Str) -> Result<Vec<u8>, Fault> {
    let mut hasher = D::new();
    let mut at = 0;
    while at < text.len_bytes() {
        let bytes = &cx.bytes(text)[at..];
        let mut end = SLICE.min(bytes.len());
        // A slice ends between two code points.
        while end < bytes.len() && bytes[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        hasher.update(wtf8_to_string_lossy(&bytes[..end]).as_bytes());
        cx.work(end as i64 * WORK_FOR_BYTE)?;
        at += end;
    }
    Ok(hasher.finalize().to_vec())
}

#[cfg(test)]
mod tests {
    use crate::testing::{fails, run};

    const ABC: &str = r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#;

    #[test]
    fn text_and_values() {
        assert_eq!(run("hash", r#"["abc"]"#), ABC);
        assert_eq!(run("hash", r#"["abc", "sha-256"]"#), ABC);
        assert_eq!(run("hash", r#"["abc", ""]"#), ABC);
        let object = r#""7029b031d01ea65d6cca48b26b509cd4912b3f3f76bcf21934072f8c41e5c473""#;
        assert_eq!(run("hash", r#"[{"b":1,"a":[2]}]"#), object);
        let nothing = r#""e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#;
        assert_eq!(run("hash", "[]"), nothing);
        // A resolved text arrives in a list.
        let quoted = r#""6cc43f858fbb763301637b5af970e2a46b46f461f27e5a0f41e009c59b827b25""#;
        assert_eq!(run("hash", r#"[["abc"]]"#), quoted);
        assert_eq!(run("hash", r#"[["abc"], null, false]"#), quoted);
        assert_eq!(run("hash", r#"[["abc"], "SHA-256", true]"#), ABC);
        assert_eq!(run("hash", r#"[[{"b":1,"a":[2]}], null, true]"#), object);
        assert_eq!(run("hash", r#"[[], null, true]"#), nothing);
    }

    #[test]
    fn other_algorithms() {
        let sha1 = r#""a9993e364706816aba3e25717850c26c9cd0d89d""#;
        assert_eq!(run("hash", r#"["abc", "SHA-1"]"#), sha1);
        assert_eq!(run("hash", r#"["", "SHA-384"]"#).len(), 96 + 2);
        assert_eq!(run("hash", r#"["", "SHA-512"]"#).len(), 128 + 2);
        assert_eq!(
            fails("hash", r#"["x", "MD5"]"#),
            "Unrecognized algorithm name"
        );
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        assert_eq!(
            run("hash", r#"["a\ud800b"]"#),
            run("hash", r#"["a\ufffdb"]"#)
        );
        assert_eq!(run("hash", r#"["\ud83d\udc4d"]"#), run("hash", r#"["👍"]"#));
    }
}
