//! Arguments of a run that are JSON text: what the program asks for is read into the heap,
//! the rest is looked through and left.

use super::args::{FEW_ROOTS, check_args, host_args, root_args};
use crate::args::JsonText;
use crate::convert::BoundaryLimits;
use crate::json::{self, NotRead, Place};
use crate::link::Executable;
use crate::native::{Cx, Fault};
use a99_core::json::{Document, Limits};
use a99_core::program::Program;
use a99_core::value::Value;
use smallvec::SmallVec;
use std::collections::HashMap;

/// What the program's argument keys stand for.
///
/// Each root is built where a tree's would be converted, so that limits are met and errors
/// found in the same order.
pub(super) fn text_args(
    cx: &mut Cx<'_>,
    exe: &Executable,
    text: &JsonText,
    limits: &BoundaryLimits,
) -> Result<Vec<crate::heap::Val>, Fault> {
    let program = exe.program();
    let (bytes, is_utf8) = (text.as_bytes(), text.is_utf8());
    let mut asked = Asked::of(program);
    let longest = asked.longest;
    let scanned = json::scan(cx, bytes, is_utf8, longest, |name, place| {
        asked.found(name, place);
    });
    match scanned {
        Ok(()) => {}
        Err(NotRead::Ends(fault)) => return Err(fault),
        Err(NotRead::Bad { at, expected }) => {
            return Err(json::not_json(cx, bytes, at, expected));
        }
    }
    if exe.input_schema.is_some() {
        return tree_args(cx, exe, bytes, limits);
    }
    root_args(cx, program, |cx, name| match asked.place(name) {
        Some(place) => json::from_text(cx, bytes, place, limits).map(Some),
        None => Ok(None),
    })
}

/// The same by a tree, which is compared with what the program says its arguments are.
#[cold]
fn tree_args(
    cx: &mut Cx<'_>,
    exe: &Executable,
    text: &[u8],
    limits: &BoundaryLimits,
) -> Result<Vec<crate::heap::Val>, Fault> {
    let document = Document::parse(text, &Limits::default());
    let document = document.map_err(|found| json::not_read(&found))?;
    let tree: Value = document.to_value(document.root());
    drop(document);
    let args =
        check_args(cx, exe, &tree).and_then(|()| host_args(cx, exe.program(), &tree, limits));
    let (heap, mut clock) = cx.split();
    let disposed = heap.discard(vec![tree], &mut clock);
    args.and_then(|args| disposed.map(|()| args))
}

/// The names that a program asks for, with the places that they were found at.
#[derive(Default)]
struct Asked<'p> {
    few: SmallVec<[(&'p [u8], Option<Place>); FEW_ROOTS]>,
    many: HashMap<&'p [u8], Option<Place>>,
    /// Bytes of the longest of them.
    longest: usize,
}

impl<'p> Asked<'p> {
    fn of(program: &'p Program) -> Asked<'p> {
        let mut asked = Asked::default();
        for key in &program.args {
            let root = key.path.as_deref().and_then(<[_]>::first);
            for name in std::iter::once(&key.flat).chain(root) {
                asked.add(program.text(*name));
            }
        }
        asked
    }

    fn add(&mut self, name: &'p [u8]) {
        if self.get(name).is_some() {
            return;
        }
        self.longest = self.longest.max(name.len());
        if self.few.len() < FEW_ROOTS {
            self.few.push((name, None));
        } else {
            self.many.insert(name, None);
        }
    }

    #[inline]
    fn get(&mut self, name: &[u8]) -> Option<&mut Option<Place>> {
        let known = self.few.iter_mut().find(|(known, _)| *known == name);
        known
            .map(|(_, place)| place)
            .or_else(|| self.many.get_mut(name))
    }

    /// Notes where a member lies; the last one of a name counts.
    #[inline]
    fn found(&mut self, name: &[u8], place: Place) {
        if let Some(known) = self.get(name) {
            *known = Some(place);
        }
    }

    fn place(&mut self, name: &[u8]) -> Option<&Place> {
        self.get(name)?.as_ref()
    }
}
