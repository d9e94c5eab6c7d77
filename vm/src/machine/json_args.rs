//! Arguments of a run that are JSON text: what the program asks for is read into the heap,
//! the rest is looked through and left.

use super::args::{arg_value, check_args, host_args};
use crate::args::JsonText;
use crate::convert::BoundaryLimits;
use crate::heap::Val;
use crate::json::{self, NotRead, Place};
use crate::link::Executable;
use crate::native::{Cx, Fault};
use a99_core::program::Program;
use smallvec::SmallVec;
use std::collections::HashMap;

/// What the program's argument keys stand for.
///
/// Each root is built where a tree's would be converted, so that limits are met and errors
/// found in the same order.
#[inline(never)]
pub(super) fn text_args(
    cx: &mut Cx<'_>,
    exe: &Executable,
    text: &JsonText,
    limits: &BoundaryLimits,
) -> Result<Vec<Val>, Fault> {
    let program = exe.program();
    let bytes = text.as_bytes();
    let mut asked = Asked::default();
    asked.fill(program);
    let longest = asked.longest;
    let scanned = json::scan(cx, bytes, text.is_utf8(), longest, |name, place| {
        if let Some(root) = asked.get(name) {
            // Of those of the same name the last one counts.
            root.place = Some(place);
        }
    });
    scanned.map_err(|why| refused(cx, bytes, why))?;
    if exe.input_schema.is_some() {
        return tree_args(cx, exe, bytes, limits);
    }
    let mut out = Vec::with_capacity(program.args.len());
    for key in &program.args {
        out.push(arg_value(cx, program, key, &mut |cx, name| {
            let Some(root) = asked.get(program.text(name)) else {
                return Ok(None);
            };
            // Built once, so that paths into it see the same arrays.
            if root.val.is_none()
                && let Some(place) = &root.place
            {
                root.val = Some(json::from_text(cx, bytes, place, limits)?);
            }
            Ok(root.val)
        })?);
    }
    Ok(out)
}

/// The same by a tree, which is compared with what the program says its arguments are.
#[cold]
fn tree_args(
    cx: &mut Cx<'_>,
    exe: &Executable,
    text: &[u8],
    limits: &BoundaryLimits,
) -> Result<Vec<Val>, Fault> {
    let tree = json::tree(cx, text).map_err(|why| refused(cx, text, why))?;
    let args =
        check_args(cx, exe, &tree).and_then(|()| host_args(cx, exe.program(), &tree, limits));
    let (heap, mut clock) = cx.split();
    let disposed = heap.discard(vec![tree], &mut clock);
    args.and_then(|args| disposed.map(|()| args))
}

/// Why a run with this text does not begin.
fn refused(cx: &mut Cx<'_>, text: &[u8], why: NotRead) -> Fault {
    match why {
        NotRead::Ends(fault) => fault,
        NotRead::Bad { at, expected } => json::not_json(cx, text, at, expected),
    }
}

/// An argument that a program asks for, whole or a part of it.
struct Root<'p> {
    name: &'p [u8],
    /// Where it lies in the text.
    place: Option<Place>,
    /// What was built of it.
    val: Option<Val>,
}

/// How many are looked through.
const FEW_ROOTS: usize = 16;

/// The arguments that a program asks for: a list that is looked through, as hashing a few
/// names costs more than that, with an index of those that are more.
#[derive(Default)]
struct Asked<'p> {
    roots: SmallVec<[Root<'p>; FEW_ROOTS]>,
    index: HashMap<&'p [u8], usize>,
    /// Bytes of the longest name.
    longest: usize,
}

impl<'p> Asked<'p> {
    fn fill(&mut self, program: &'p Program) {
        for key in &program.args {
            let root = key.path.as_deref().and_then(<[_]>::first);
            for name in std::iter::once(&key.flat).chain(root) {
                self.add(program.text(*name));
            }
        }
    }

    fn add(&mut self, name: &'p [u8]) {
        if self.get(name).is_some() {
            return;
        }
        self.longest = self.longest.max(name.len());
        if self.roots.len() >= FEW_ROOTS {
            self.index.insert(name, self.roots.len());
        }
        self.roots.push(Root {
            name,
            place: None,
            val: None,
        });
    }

    #[inline]
    fn get(&mut self, name: &[u8]) -> Option<&mut Root<'p>> {
        let few = self.roots.iter().take(FEW_ROOTS);
        // Most names differ in their first byte or their length.
        let is_it = |root: &Root<'p>| root.name.first() == name.first() && root.name == name;
        let at = few.clone().position(is_it);
        let at = match at {
            // A longer name, whose hash would take its time, is none of them.
            None if !self.index.is_empty() && name.len() <= self.longest => {
                self.index.get(name).copied()
            }
            at => at,
        };
        self.roots.get_mut(at?)
    }
}
