//! Templates: texts with holes in double braces (language section 2.5).
//!
//! Most templates are constants of a program. Linking finds their holes and the key of each
//! name, so that a run only reads slots and joins parts.

use super::{Heap, KeyId, StaticShapes, Str, Val};
use a99_ecma::wtf8;
use smallvec::SmallVec;
use std::ops::Range;

/// The kind of holes in a template.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Holes {
    /// Names.
    Names,
    /// Names, or paths of names (D68).
    Paths,
}

impl Holes {
    /// Whether a byte may be part of a hole's name.
    #[inline]
    #[must_use]
    pub fn has(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || byte == b'_' || self == Holes::Paths && byte == b'.'
    }

    /// Whether the bytes are a valid name, which is never empty.
    #[must_use]
    pub fn is_named(self, name: &[u8]) -> bool {
        match self {
            Holes::Names => !name.is_empty(),
            Holes::Paths => name.split(|b| *b == b'.').all(|name| !name.is_empty()),
        }
    }

    /// The range of the next name of a hole at or after `from`.
    #[must_use]
    pub fn next(self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        let mut at = from;
        loop {
            let start = at + opening(bytes.get(at..)?)? + 2;
            let word = bytes[start..].iter().take_while(|b| self.has(**b)).count();
            let end = start + word;
            if bytes[end..].starts_with(b"}}") && self.is_named(&bytes[start..end]) {
                return Some(start..end);
            }
            // In `{{{a}}` the last two braces may open the hole.
            at = start - 1;
        }
    }
}

/// The offset of the first two opening braces.
#[must_use]
pub fn opening(bytes: &[u8]) -> Option<usize> {
    let mut braces = memchr::memchr_iter(b'{', bytes);
    braces.find(|at| bytes.get(at + 1) == Some(&b'{'))
}

/// A hole of a constant template.
#[derive(Copy, Clone, Debug)]
pub struct Hole {
    /// The text between the previous hole and this one.
    pub before: Str,
    /// The key of its name, if the program has interned it.
    pub key: Option<KeyId>,
    name: (u32, u32),
}

impl Hole {
    /// The range of its name in the template.
    #[must_use]
    pub fn name(self) -> Range<usize> {
        self.name.0 as usize..self.name.1 as usize
    }
}

/// A constant template with names as holes.
#[derive(Debug)]
pub struct Template {
    text: Str,
    /// The holes in order.
    pub holes: Box<[Hole]>,
    /// The text after the last hole.
    pub rest: Str,
}

/// Templates with more holes are parsed at each call.
const MAX_HOLES: usize = 64;

/// Longer templates are parsed at each call.
const MAX_TEXT: usize = 16 << 10;

/// Maximum number of constants scanned for holes: constants may share their text.
const MAX_TEMPLATES: usize = 256;

/// Bytes of the program's text scanned between two yield points.
const PIECE: usize = 16 << 10;

impl Template {
    fn of(text: Str, bytes: &[u8], shapes: &StaticShapes) -> Option<Template> {
        let part = |range: Range<usize>| {
            let units = wtf8::utf16_len(&bytes[range.clone()]);
            text.view(range.start, range.end, units)
        };
        let mut holes = SmallVec::<[Hole; 8]>::new();
        let mut done = 0;
        while let Some(name) = Holes::Names.next(bytes, done) {
            if holes.len() == MAX_HOLES {
                return None;
            }
            holes.push(Hole {
                before: part(done..name.start - 2),
                key: shapes.find(&bytes[name.clone()]),
                name: (name.start as u32, name.end as u32),
            });
            done = name.end + 2;
        }
        (done > 0).then(|| Template {
            text,
            holes: holes.into_vec().into(),
            rest: part(done..bytes.len()),
        })
    }
}

/// The templates among the constants of a program, ordered by their text's place.
#[derive(Debug, Default)]
pub(crate) struct Templates(Box<[Template]>);

/// Maximum number of opening braces to check in a program.
const MAX_OPENINGS: usize = 4096;

impl Templates {
    /// Finds the templates; `work` gets the number of bytes scanned.
    pub(crate) fn of<E>(
        consts: &[Val],
        statics: &[u8],
        shapes: &StaticShapes,
        work: impl Fn(usize) -> Result<(), E>,
    ) -> Result<Templates, E> {
        // Possible starts of holes in the text of all constants, which is scanned once.
        let mut openings = SmallVec::<[usize; 16]>::new();
        for (n, piece) in statics.chunks(PIECE).enumerate() {
            work(1 + piece.len() / 64)?;
            let braces = memchr::memchr_iter(b'{', piece).map(|at| n * PIECE + at);
            let openings_here = braces.filter(|at| statics.get(at + 1) == Some(&b'{'));
            openings.extend(openings_here.take(MAX_OPENINGS - openings.len()));
        }
        let mut found = SmallVec::<[Template; 4]>::new();
        let mut tried = 0;
        for constant in consts {
            let Val::Str(text) = *constant else { continue };
            let start = text.offset() as usize;
            let range = start..start + text.len_bytes();
            let first = openings.partition_point(|at| *at < start);
            let may_be = openings.get(first).is_some_and(|at| range.contains(at));
            if may_be && range.len() <= MAX_TEXT && tried < MAX_TEMPLATES {
                tried += 1;
                work(1 + text.len_bytes() / 8)?;
                found.extend(Template::of(text, &statics[range], shapes));
            }
        }
        found.sort_unstable_by_key(|template| place(template.text));
        Ok(Templates(found.into_vec().into()))
    }

    fn find(&self, text: Str) -> Option<&Template> {
        let found = self.0.binary_search_by_key(&place(text), |t| place(t.text));
        self.0.get(found.ok()?)
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let holes = self.0.iter().map(|template| size_of_val(&*template.holes));
        size_of_val(&*self.0) + holes.sum::<usize>()
    }
}

fn place(text: Str) -> (u32, usize) {
    (text.offset(), text.len_bytes())
}

impl Heap {
    /// The parsed template of a constant text.
    #[inline]
    #[must_use]
    pub fn template(&self, text: Str) -> Option<&Template> {
        match text.is_static() {
            true => self.shapes.statics.templates.find(text),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &[u8], names: &[&[u8]]) -> Option<Template> {
        let mut shapes = StaticShapes::default();
        for name in names {
            shapes.key(name);
        }
        let units = wtf8::utf16_len(text) as u32;
        Template::of(Str::in_statics(0, text.len() as u32, units), text, &shapes)
    }

    #[test]
    fn parts_and_names_are_found() {
        let text = "¿{{a}}{{b}} {{{a}}}".as_bytes();
        let template = template(text, &[b"a"]).expect("it has holes");
        let names = template.holes.iter().map(|hole| &text[hole.name()]);
        assert!(names.eq([&b"a"[..], b"b", b"a"]));
        let keys = template.holes.iter().map(|hole| hole.key.is_some());
        assert!(keys.eq([true, false, true]));
        let before = template.holes.iter().map(|hole| {
            let at = hole.before.offset() as usize;
            &text[at..at + hole.before.len_bytes()]
        });
        assert!(before.eq(["¿".as_bytes(), b"", b" {"]));
        assert_eq!(template.holes[0].before.units(), 1);
        assert_eq!((template.rest.len_bytes(), template.rest.units()), (1, 1));
    }

    #[test]
    fn what_has_no_hole_or_too_many_is_none() {
        assert!(template(b"{a} {{ a }} {{a", &[b"a"]).is_none());
        assert!(template(&b"{{a}}".repeat(MAX_HOLES), &[b"a"]).is_some());
        assert!(template(&b"{{a}}".repeat(MAX_HOLES + 1), &[b"a"]).is_none());
    }

    #[test]
    fn a_part_of_a_template_is_another_text() {
        let text = b"{{a}}{{b}}";
        let shapes = StaticShapes::default();
        let whole = Str::in_statics(0, 10, 10);
        let work = |_| Ok::<(), ()>(());
        let templates = Templates::of(&[Val::Str(whole)], text, &shapes, work).expect("no end");
        assert!(templates.find(whole).is_some());
        assert!(templates.find(whole.view(0, 5, 5)).is_none());
        assert!(templates.find(whole.view(5, 10, 5)).is_none());
    }
}
