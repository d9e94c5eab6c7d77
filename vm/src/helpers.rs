//! Helpers of a program for its inline programs: which ones an inline program needs, and what
//! compiling them costs.
//!
//! An inline program can call the helpers of its caller. Compiling all of them each time
//! would cost as much as the whole program, so only those that it reaches are compiled with
//! it.

use crate::native::{Cx, Fault};
use a99_core::costs::{COMPILE_ELEMENT, COMPILE_UNIT};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::program::Program;
use a99_core::value::{Map, Value};
use a99_ecma::wtf8;
use std::collections::HashMap;

/// Size of a part of a program; determines the cost of compiling it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Elements of arrays and members of objects.
    pub elements: usize,
    /// UTF-16 units of texts that are values.
    pub units: usize,
}

impl Extent {
    fn add(&mut self, other: Extent) {
        self.elements = self.elements.saturating_add(other.elements);
        self.units = self.units.saturating_add(other.units);
    }

    /// The cost of compiling the part, in the metered model.
    pub(crate) fn price(self) -> i64 {
        let part = |n: usize, price| i64::try_from(n).unwrap_or(i64::MAX).saturating_mul(price);
        part(self.elements, COMPILE_ELEMENT).saturating_add(part(self.units, COMPILE_UNIT))
    }
}

/// Work to read or build a value.
const VALUE_WORK: i64 = 64;

/// The helpers that a part of a program calls.
#[derive(Debug, Default)]
enum Calls {
    #[default]
    None,
    Some(Vec<u32>),
    /// Possibly any: a name is computed.
    All,
}

impl Calls {
    fn add(&mut self, helper: u32) {
        match self {
            Calls::None => *self = Calls::Some(vec![helper]),
            Calls::Some(list) => list.push(helper),
            Calls::All => {}
        }
    }
}

#[derive(Debug)]
struct Helper {
    name: Box<[u8]>,
    node: NodeId,
    extent: Extent,
    calls: Calls,
}

/// The helpers of a program.
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    /// The helpers of a program without a source.
    own: Option<Document>,
    list: Vec<Helper>,
    by_name: HashMap<Box<[u8]>, u32>,
}

impl Helpers {
    /// Scans the helpers of a program once.
    pub(crate) fn new(program: &Program) -> Helpers {
        let mut helpers = Helpers {
            own: program.helpers.as_ref().map(Document::from_value),
            ..Helpers::default()
        };
        let own = helpers.own.take();
        if let Some((document, node)) = document_of(own.as_ref(), program) {
            for (number, (name, node)) in (0u32..).zip(document.members(node)) {
                helpers.by_name.insert(name.into(), number);
                helpers.list.push(Helper {
                    name: name.into(),
                    node,
                    extent: Extent::default(),
                    calls: Calls::None,
                });
            }
            for at in 0..helpers.list.len() {
                let found = helpers.look_through(document, helpers.list[at].node);
                (helpers.list[at].extent, helpers.list[at].calls) = found;
            }
        }
        helpers.own = own;
        helpers
    }

    /// The extent of a part of a document, and the helpers it calls.
    fn look_through(&self, document: &Document, node: NodeId) -> (Extent, Calls) {
        let mut extent = Extent::default();
        let mut calls = Calls::None;
        let mut work = vec![node];
        while let Some(node) = work.pop() {
            match document.kind(node) {
                Kind::String(text) => extent.units += wtf8::utf16_len(text),
                Kind::Array => {
                    extent.elements += document.len(node);
                    work.extend(document.elements(node));
                }
                Kind::Object => {
                    extent.elements += document.len(node);
                    let (mut calls_local, mut name) = (false, None);
                    for (key, value) in document.members(node) {
                        match key {
                            b"op" => calls_local = document.str(value) == Some(b"callLocal"),
                            b"name" => name = Some(document.str(value)),
                            _ => {}
                        }
                        work.push(value);
                    }
                    if calls_local {
                        self.note(&mut calls, name.flatten());
                    }
                }
                _ => {}
            }
        }
        (extent, calls)
    }

    /// The extent of a value and the helpers it calls, with yield points.
    fn look_through_value(&self, cx: &mut Cx<'_>, value: &Value) -> Result<(Extent, Calls), Fault> {
        let mut extent = Extent::default();
        let mut calls = Calls::None;
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            cx.work(VALUE_WORK)?;
            match value {
                Value::String(text) => extent.units += wtf8::utf16_len(text.as_bytes()),
                Value::Array(items) => {
                    extent.elements += items.len();
                    work.extend(items);
                }
                Value::Object(map) => {
                    let members = || map.iter().filter(|(_, value)| !value.is_undefined());
                    extent.elements += members().count();
                    if text_of(map, b"op") == Some(b"callLocal") {
                        self.note(&mut calls, text_of(map, b"name"));
                    }
                    work.extend(members().map(|(_, value)| value));
                }
                _ => {}
            }
        }
        Ok((extent, calls))
    }

    fn note(&self, calls: &mut Calls, name: Option<&[u8]>) {
        match name {
            None => *calls = Calls::All,
            Some(name) => {
                if let Some(helper) = self.by_name.get(name) {
                    calls.add(*helper);
                }
            }
        }
    }

    /// The helpers that an inline program needs, in order, and its total extent with them.
    ///
    /// # Errors
    /// A stop.
    pub(crate) fn needed_by(
        &self,
        cx: &mut Cx<'_>,
        program: &Value,
    ) -> Result<(Vec<u32>, Extent), Fault> {
        let (mut extent, calls) = self.look_through_value(cx, program)?;
        let mut needed = vec![false; 0];
        let mut found = Vec::new();
        let mut work = vec![&calls];
        while let Some(calls) = work.pop() {
            let mut need = |helper: u32| {
                if needed.is_empty() {
                    needed = vec![false; self.list.len()];
                }
                if !std::mem::replace(&mut needed[helper as usize], true) {
                    found.push(helper);
                    work.push(&self.list[helper as usize].calls);
                    extent.add(self.list[helper as usize].extent);
                    extent.elements += 1;
                }
            };
            match calls {
                Calls::None => {}
                Calls::Some(list) => list.iter().copied().for_each(&mut need),
                Calls::All => (0u32..).zip(&self.list).for_each(|(n, _)| need(n)),
            }
        }
        found.sort_unstable();
        Ok((found, extent))
    }

    /// These helpers as the value of the root's `helpers`.
    ///
    /// # Errors
    /// A stop.
    pub(crate) fn value(
        &self,
        cx: &mut Cx<'_>,
        program: &Program,
        needed: &[u32],
    ) -> Result<Option<Value>, Fault> {
        let Some((document, _)) = document_of(self.own.as_ref(), program) else {
            return Ok(None);
        };
        if needed.is_empty() {
            return Ok(None);
        }
        let mut map = Map::with_capacity(needed.len());
        for helper in needed {
            let Some(helper) = self.list.get(*helper as usize) else {
                return Ok(None);
            };
            // The value of one helper is bounded by its source. If the run must stop, the
            // caller drops all helpers built so far.
            let name = a99_core::text::Text::from_wtf8(helper.name.to_vec());
            match cx.work(helper.extent.elements as i64 * VALUE_WORK) {
                Ok(()) => map.insert(name, document.to_value(helper.node)),
                Err(fault) => return Err(cx.abandon(Value::Object(map), fault)),
            };
        }
        Ok(Some(Value::Object(map)))
    }
}

/// The document that has the helpers: a separate one, or the source.
fn document_of<'a>(
    own: Option<&'a Document>,
    program: &'a Program,
) -> Option<(&'a Document, NodeId)> {
    if let Some(own) = own {
        return Some((own, own.root()));
    }
    let document = program.source.document()?;
    let node = document.get(document.root(), "helpers")?;
    Some((document, node))
}

fn text_of<'a>(map: &'a Map, key: &[u8]) -> Option<&'a [u8]> {
    match map.get_bytes(key) {
        Some(Value::String(text)) => Some(text.as_bytes()),
        _ => None,
    }
}
