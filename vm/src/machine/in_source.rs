//! Error messages in terms of the source form: the step or call that a form was lowered to
//! has no name there.

use super::Machine;
use crate::heap::Val;
use a99_core::diag::excerpt;
use a99_core::json::{Document, NodeId};
use a99_core::program::{Op, Program};
use a99_core::text::wtf8_to_string_lossy;

/// Placeholder for a value without a short text.
const NAMELESS: &str = "the value";

/// Maximum bytes of a key to show.
const KEY_BYTES: usize = 40;

impl Machine {
    /// Message and advice of an uncaught error in terms of the source, if the form was
    /// lowered to the failed step.
    pub(super) fn said_in_source(&self, message: &[u8]) -> Option<(String, Option<String>)> {
        let sets = message.starts_with(b"memberSet");
        let is_type_error = message == b"Type error";
        if !sets && !is_type_error && !message.starts_with(b"memberDelete") {
            return None;
        }
        let frame = self.frame();
        let (_, program, f) = self.program_of(frame);
        let doc = self.of_source(program)?;
        match *f.code.get(frame.pc as usize)? {
            Op::CallAtom { base, site, .. } if !is_type_error => {
                let site = program.sites.get(site.at())?;
                let step = f.steps.get(site.step as usize)?.node;
                let (object, key) = (self.register(base), self.register(base + 1));
                Some(self.member_error(doc, step, sets, (object, key)))
            }
            Op::CallMethod { .. } | Op::CallFn { .. } if is_type_error => {
                let node = Program::place_at(f, frame.pc)?.node;
                let text = match doc.element(doc.get(node, "arguments")?, 0) {
                    Some(first) => doc.origin_text(first).unwrap_or(NAMELESS),
                    None => "undefined",
                };
                Some((format!("{text} is not iterable"), None))
            }
            _ => None,
        }
    }

    /// The error of `object.key = value` or `delete object.key` on an unsuitable value.
    fn member_error(
        &self,
        doc: &Document,
        step: NodeId,
        sets: bool,
        (object, key): (Val, Val),
    ) -> (String, Option<String>) {
        let text = doc.get(step, "object").and_then(|at| doc.origin_text(at));
        let text = text.filter(|text| doc.origin_part(step).map(str::trim) != Some(text));
        let name = text.map_or(NAMELESS.to_owned(), |text| format!("`{text}`"));
        let verb = if sets { "set" } else { "delete" };
        let key = match key {
            Val::Str(s) => {
                let bytes = self.heap.bytes(s);
                let key = wtf8_to_string_lossy(&bytes[..bytes.len().min(KEY_BYTES)]);
                excerpt(&key)
            }
            Val::Num(n) => a99_ecma::number_text::number_to_string(n),
            Val::Bool(b) => b.to_string(),
            key => {
                let key = self.described(key);
                return (
                    format!("cannot {verb} a member of {name}: its key is {key}"),
                    None,
                );
            }
        };
        let found = self.described(object);
        let message = format!("cannot {verb} `{key}` of {name}, which is {found}");
        let is_index = key.bytes().all(|byte| byte.is_ascii_digit());
        let advice = match (object, text) {
            (Val::Arr(_), Some(list)) if is_index && sets => {
                Some(format!("did you mean `{list}.push(...)`?"))
            }
            (Val::Arr(_), Some(list)) if is_index => {
                Some(format!("did you mean `{list}.splice({key}, 1)`?"))
            }
            (Val::Arr(_), _) => Some("a list has items by their index, an object by names".into()),
            _ => None,
        };
        (message, advice)
    }
}
