//! Checks of what belongs to the whole program: text, constants, keys, shapes,
//! paths, arguments, ops, sites and names.

use super::codes::{V0001, V0002, V0004, V0008, V0014, V0015, V0016};
use super::ranges::TextIndex;
use super::{Check, refuse};
use crate::builtins::{FUNCTIONS, NAMESPACES};
use crate::json::NodeId;
use crate::program::{ArgFallback, Const, Home, Program, TextRange};
use std::collections::HashMap;

/// Set in [`ArgFallback::Builtin`] for a namespace: the rest is its number.
const NAMESPACE_BIT: u16 = 0x8000;

/// Keys are hashed, so their bytes together are limited to this multiple of
/// the text, else ranges over one long text would cost quadratic time.
const KEY_TEXT_FACTOR: usize = 4;

/// Bytes of keys that are always allowed.
const KEY_TEXT_FLOOR: usize = 1 << 16;

/// What the checks of functions need to know about tables.
pub(super) struct Facts {
    /// For each names table, the homes it needs.
    pub(super) names: Vec<Homes>,
}

/// The registers and slots that a table of variables names.
#[derive(Default)]
pub(super) struct Homes {
    /// One bit for each register.
    pub(super) registers: [u64; 4],
    /// One more than the greatest register.
    pub(super) register_end: u32,
    /// One more than the greatest slot.
    pub(super) slot_end: u64,
}

impl Homes {
    fn add(&mut self, home: Home) {
        match home {
            Home::Reg(r) => {
                self.registers[usize::from(r >> 6)] |= 1 << (r & 63);
                self.register_end = self.register_end.max(u32::from(r) + 1);
            }
            Home::Slot(s) => self.slot_end = self.slot_end.max(u64::from(s) + 1),
        }
    }
}

/// Checks all tables.
pub(super) fn check(p: &Program) -> Result<Facts, super::VerifyError> {
    check_sizes(p)?;
    let Some(texts) = TextIndex::new(&p.text) else {
        return Err(refuse(V0001, "the text is not WTF-8"));
    };
    let tables = Tables { p, texts };
    tables.check_consts()?;
    tables.check_keys()?;
    tables.check_args()?;
    tables.check_ops()?;
    let names = tables.check_names()?;
    for node in &p.literals {
        if !node_exists(p, *node) {
            return Err(refuse(
                V0015,
                format!("literal {} is no node of the source", node.0),
            ));
        }
    }
    Ok(Facts { names })
}

/// Whether the source has the node.
pub(super) fn node_exists(p: &Program, node: NodeId) -> bool {
    node == p.source.root() || p.source.parent(node).is_some()
}

/// Indexes and program counters are 32-bit numbers.
fn check_sizes(p: &Program) -> Check {
    let sizes = [
        p.text.len(),
        p.consts.len(),
        p.keys.len(),
        p.shapes.len(),
        p.paths.len(),
        p.literals.len(),
        p.args.len(),
        p.ops.len(),
        p.sites.len(),
        p.memos.len(),
        p.names.len(),
        p.schemas.len(),
        p.functions.len(),
    ];
    if sizes.iter().any(|n| u32::try_from(*n).is_err()) {
        return Err(refuse(V0016, "a table has more than 2^32 - 1 entries"));
    }
    match p.functions.first() {
        None => Err(refuse(V0002, "there is no main program")),
        Some(main) if p.outer.len() > usize::from(main.registers) => Err(refuse(
            V0002,
            "more outer variables than registers of the main program",
        )),
        Some(_) => Ok(()),
    }
}

struct Tables<'a> {
    p: &'a Program,
    texts: TextIndex,
}

impl Tables<'_> {
    fn text(&self, r: TextRange, what: &str) -> Check {
        if self.texts.holds(&self.p.text, r) {
            return Ok(());
        }
        let TextRange { start, end } = r;
        Err(refuse(
            V0001,
            format!("{what} is bytes {start}..{end}, which are no text"),
        ))
    }

    fn texts(&self, ranges: &[TextRange], what: &str) -> Check {
        ranges.iter().try_for_each(|r| self.text(*r, what))
    }

    fn const_text(&self, k: u32, what: &str) -> Check {
        if is_text(self.p, k) {
            return Ok(());
        }
        Err(refuse(
            V0002,
            format!("{what} is constant {k}, which is no text"),
        ))
    }

    fn check_consts(&self) -> Check {
        for k in &self.p.consts {
            if let Const::Text(r) = k {
                self.text(*r, "a constant")?;
            }
        }
        self.texts(&self.p.outer, "an outer name")?;
        self.p
            .paths
            .iter()
            .try_for_each(|path| self.texts(path, "a path segment"))
    }

    /// Keys are texts, and each shape has different ones.
    fn check_keys(&self) -> Check {
        self.texts(&self.p.keys, "a key")?;
        let bytes: usize = self.p.keys.iter().map(|r| (r.end - r.start) as usize).sum();
        if bytes > KEY_TEXT_FLOOR + KEY_TEXT_FACTOR * self.p.text.len() {
            return Err(refuse(V0016, "keys overlap too much"));
        }
        // Two numbers may name the same text: the first one stands for both.
        let mut first: HashMap<&[u8], usize> = HashMap::with_capacity(self.p.keys.len());
        let same: Vec<usize> = self
            .p
            .keys
            .iter()
            .enumerate()
            .map(|(i, r)| *first.entry(self.p.text(*r)).or_insert(i))
            .collect();
        let mut used_by = vec![usize::MAX; same.len()];
        for (number, shape) in self.p.shapes.iter().enumerate() {
            for key in shape {
                let Some(key) = same.get(*key as usize) else {
                    return Err(refuse(V0002, format!("shape {number} names key {key}")));
                };
                if std::mem::replace(&mut used_by[*key], number) == number {
                    return Err(refuse(V0014, format!("shape {number} has a key twice")));
                }
            }
        }
        Ok(())
    }

    fn check_args(&self) -> Check {
        for (number, arg) in self.p.args.iter().enumerate() {
            self.text(arg.flat, "an argument key")?;
            self.texts(
                arg.path.as_deref().unwrap_or_default(),
                "a segment of an argument",
            )?;
            let exists = match arg.fallback {
                ArgFallback::Undefined | ArgFallback::Unbound => true,
                ArgFallback::Builtin(n) if n & NAMESPACE_BIT != 0 => {
                    usize::from(n & !NAMESPACE_BIT) < NAMESPACES.len()
                }
                ArgFallback::Builtin(n) => usize::from(n) < FUNCTIONS.len(),
                ArgFallback::Const(k) => (k as usize) < self.p.consts.len(),
            };
            if !exists {
                return Err(refuse(
                    V0002,
                    format!("argument {number} falls back to nothing"),
                ));
            }
        }
        Ok(())
    }

    fn check_ops(&self) -> Check {
        for (number, op) in self.p.ops.iter().enumerate() {
            self.text(op.name, "the name of an op")?;
            if op.cost.fixed() < 0 {
                return Err(refuse(V0008, format!("op {number} has a negative price")));
            }
        }
        for (number, site) in self.p.sites.iter().enumerate() {
            if site.op as usize >= self.p.ops.len() {
                return Err(refuse(V0002, format!("site {number} calls op {}", site.op)));
            }
        }
        for memo in &self.p.memos {
            self.text(memo.body, "the body of a memo site")?;
            for name in &memo.free {
                self.const_text(*name, "a free variable of a memo site")?;
            }
            if u8::try_from(memo.free.len()).is_err() {
                return Err(refuse(
                    V0004,
                    "a memo site has more than 255 free variables",
                ));
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<Vec<Homes>, super::VerifyError> {
        self.p.names.iter().map(|table| self.homes(table)).collect()
    }

    fn homes(&self, table: &[(u32, Home)]) -> Result<Homes, super::VerifyError> {
        let mut homes = Homes::default();
        for (name, home) in table {
            self.const_text(*name, "the name of a variable")?;
            homes.add(*home);
        }
        Ok(homes)
    }
}

/// Whether the constant exists and is text.
pub(super) fn is_text(p: &Program, k: u32) -> bool {
    matches!(p.consts.get(k as usize), Some(Const::Text(_)))
}
