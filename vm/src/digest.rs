//! Digests of values, the keys of memoized results (D25).

use crate::convert::temp;
use crate::heap::{Str, Val};
use crate::json::{Replacer, Style, Writer};
use crate::native::{Cx, Fault};
use a99_core::text::hex;
use sha2::{Digest, Sha256};

/// Appends a canonical text: two values share it only if no program can distinguish them,
/// apart from identity.
///
/// The text is JSON with additions: `undefined`, `NaN`, the infinities and `-0`, `Set[...]`,
/// `Date(ms)` and `builtin(n)`. Members keep enumeration order, which programs can see (D37),
/// so they are not sorted.
///
/// # Errors
/// A cycle or more than 512 levels; fuel (elements and units, as
/// `JSON.stringify`) and memory.
pub fn canonical_json(cx: &mut Cx<'_>, v: Val, out: &mut Vec<u8>) -> Result<(), Fault> {
    let style = Style {
        gap: b"",
        replacer: Replacer::None,
        listed: 0,
        canonical: true,
    };
    let mut writer = Writer::new(cx, style);
    writer.run(v)?;
    let text = writer.finish()?;
    Ok(temp::extend(cx.heap, out, text.bytes())?)
}

/// Bytes hashed between two yield points.
const SLICE: usize = 8 << 10;

/// Units of work per hashed byte.
const WORK_FOR_BYTE: i64 = 4;

/// SHA-256 as 64 lower-case hexadecimal digits.
///
/// # Errors
/// A stop.
pub fn sha256_hex(cx: &mut Cx<'_>, data: &[u8]) -> Result<String, Fault> {
    let mut hasher = Sha256::new();
    for slice in data.chunks(SLICE) {
        cx.work(slice.len() as i64 * WORK_FOR_BYTE)?;
        hasher.update(slice);
    }
    Ok(hex(&hasher.finalize()))
}

/// SHA-256 of a text in the heap, as 64 lower-case hexadecimal digits.
///
/// # Errors
/// A stop.
pub(crate) fn sha256_hex_of(cx: &mut Cx<'_>, text: Str) -> Result<String, Fault> {
    let mut hasher = Sha256::new();
    let mut at = 0;
    while at < text.len_bytes() {
        let end = (at + SLICE).min(text.len_bytes());
        cx.work((end - at) as i64 * WORK_FOR_BYTE)?;
        hasher.update(&cx.bytes(text)[at..end]);
        at = end;
    }
    Ok(hex(&hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::Bench;
    use crate::json;

    fn canonical(bench: &mut Bench, v: Val) -> String {
        let mut out = Vec::new();
        canonical_json(&mut bench.cx(), v, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_that_differ_have_different_texts() {
        let mut bench = Bench::default();
        let set = Val::Set(bench.heap.alloc_set(&[Val::Null]).unwrap());
        let date = Val::Date(bench.heap.alloc_date(5.0).unwrap());
        let items = [
            Val::Undefined,
            Val::Null,
            Val::Num(-0.0),
            Val::Num(0.0),
            Val::Num(f64::NAN),
            set,
            date,
        ];
        let list = Val::Arr(bench.heap.alloc_arr(&items).unwrap());
        assert_eq!(
            canonical(&mut bench, list),
            "[undefined,null,-0,0,NaN,Set[null],Date(5.0)]"
        );
        let v = json::parse(&mut bench.cx(), br#"{"b":1,"a":[2]}"#).unwrap();
        assert_eq!(canonical(&mut bench, v), r#"{"b":1,"a":[2]}"#);
        assert_eq!(canonical(&mut bench, Val::Undefined), "undefined");
    }

    #[test]
    fn sha256_of_the_standard() {
        let mut bench = Bench::default();
        let mut of = |data: &[u8]| sha256_hex(&mut bench.cx(), data).unwrap();
        assert_eq!(
            of(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            of(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
