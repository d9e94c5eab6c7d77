//! JSON text arguments: used arguments are parsed into the heap, the rest is scanned and
//! skipped.

use super::args::{arg_value, check_args, host_args};
use crate::args::JsonText;
use crate::convert::BoundaryLimits;
use crate::heap::Val;
use crate::json::{self, NotRead, Place};
use crate::link::Executable;
use crate::native::{Cx, Fault};
use a99_core::program::{ArgKey, Program};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The values of the program's argument keys.
///
/// Each root is built at the point at which a tree's would be converted, so that limits and
/// errors occur in the same order.
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
            // Of repeated names the last one counts.
            root.place = Some(place);
        }
    });
    scanned.map_err(|why| refused(cx, bytes, why))?;
    if exe.input_schema.is_some() || program.args.iter().any(ArgKey::is_all) {
        return tree_args(cx, exe, bytes, limits);
    }
    let mut out = Vec::with_capacity(program.args.len());
    for key in &program.args {
        out.push(arg_value(cx, program, key, &mut |cx, name| {
            let Some(root) = asked.get(program.text(name)) else {
                return Ok(None);
            };
            // Built once, so that paths into it share its arrays.
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

/// Converts the text to a tree, for a program with an input schema, or one that uses all arguments.
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

/// The error of a run with this text.
fn refused(cx: &mut Cx<'_>, text: &[u8], why: NotRead) -> Fault {
    match why {
        NotRead::Ends(fault) => fault,
        NotRead::Bad { at, expected } => json::not_json(cx, text, at, expected),
    }
}

/// An argument that a program uses, whole or in part.
struct Root<'p> {
    name: &'p [u8],
    /// Its place in the text.
    place: Option<Place>,
    /// Its value, once built.
    val: Option<Val>,
}

/// Number of roots that are scanned linearly.
const FEW_ROOTS: usize = 16;

/// The arguments that a program uses: a linearly scanned list, as hashing a few names costs
/// more, with an index for longer lists.
#[derive(Default)]
struct Asked<'p> {
    roots: SmallVec<[Root<'p>; FEW_ROOTS]>,
    index: HashMap<&'p [u8], usize>,
    /// Length of the longest name in bytes.
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
            // Avoids hashing names longer than all known ones.
            None if !self.index.is_empty() && name.len() <= self.longest => {
                self.index.get(name).copied()
            }
            at => at,
        };
        self.roots.get_mut(at?)
    }
}
