//! Checks of program-wide tables: text, constants, keys, shapes, paths, arguments, ops, sites and
//! names.

use super::codes::{
    BAD_INDEX, BAD_LITERAL, BAD_OPERANDS, BAD_PRICE, BAD_TEXT, DUPLICATE_KEY, TOO_LARGE,
};
use super::ranges::TextIndex;
use super::{Check, refuse};
use crate::builtins::{FUNCTIONS, NAMESPACES};
use crate::program::{ArgFallback, Const, LitOp, Location, Program, TextRange};
use hashbrown::HashMap;

/// Flag of [`ArgFallback::Builtin`] for a namespace; the other bits are its number.
const NAMESPACE_BIT: u16 = 0x8000;

/// Linking and starting a run read the bytes of every name, so the total length of all ranges is
/// limited. Otherwise many ranges over one long text would cost quadratic time. A compiler interns
/// text: each text occurs once among the constants and once among the keys. The limit is the sum of
/// this multiple of the text,
const TEXT_FACTOR: usize = 4;

/// this many bytes for each segment of a path or an argument, which often repeat,
const SEGMENT_BYTES: usize = 64;

/// and this constant.
const TEXT_FLOOR: usize = 1 << 16;

/// Facts about tables for the checks of functions.
pub(super) struct Facts {
    /// For each names table, its registers and slots.
    pub(super) names: Vec<Locations>,
}

/// The registers and slots in a table of variables.
#[derive(Default)]
pub(super) struct Locations {
    /// One bit for each register.
    pub(super) registers: [u64; 4],
    /// One more than the greatest register.
    pub(super) register_end: u32,
    /// One more than the greatest slot.
    pub(super) slot_end: u64,
}

impl Locations {
    fn add(&mut self, location: Location) {
        match location {
            Location::Reg(r) => {
                self.registers[usize::from(r >> 6)] |= 1 << (r & 63);
                self.register_end = self.register_end.max(u32::from(r) + 1);
            }
            Location::Slot(s) => self.slot_end = self.slot_end.max(u64::from(s) + 1),
        }
    }
}

/// Checks all tables.
pub(super) fn check(p: &Program) -> Result<Facts, super::VerifyError> {
    check_sizes(p)?;
    let Some(texts) = TextIndex::new(&p.text) else {
        return Err(refuse(BAD_TEXT, "the text is not WTF-8"));
    };
    let tables = Tables { p, texts };
    tables.check_consts()?;
    tables.check_args()?;
    tables.check_ops()?;
    tables.texts(&p.keys, "a key")?;
    tables.check_overlap()?;
    tables.check_keys()?;
    let names = tables.check_names()?;
    for (number, steps) in p.literals.iter().enumerate() {
        check_literal(p, number, steps)?;
    }
    Ok(Facts { names })
}

/// Checks that the build steps of a literal leave one value and never underflow the stack.
fn check_literal(p: &Program, number: usize, steps: &[LitOp]) -> Check {
    let mut held = 0usize;
    for step in steps {
        let popped = match *step {
            LitOp::Const(k) if (k as usize) < p.consts.len() => Some(0),
            LitOp::Array(n) => Some(n as usize),
            LitOp::Object(shape) => p.shapes.get(shape as usize).map(|keys| keys.len()),
            LitOp::Const(_) => None,
        };
        let Some(popped) = popped else {
            return Err(refuse(BAD_INDEX, format!("literal {number}: {step:?}")));
        };
        let Some(left) = held.checked_sub(popped) else {
            let message = format!("literal {number} takes more values than it made");
            return Err(refuse(BAD_LITERAL, message));
        };
        held = left + 1;
    }
    if held == 1 {
        return Ok(());
    }
    Err(refuse(
        BAD_LITERAL,
        format!("literal {number} leaves {held} values"),
    ))
}

/// Checks that indexes and program counters fit 32 bits.
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
        return Err(refuse(TOO_LARGE, "a table has more than 2^32 - 1 entries"));
    }
    match p.functions.first() {
        None => Err(refuse(BAD_INDEX, "there is no main program")),
        Some(main) if p.outer.len() > usize::from(main.registers) => Err(refuse(
            BAD_INDEX,
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
            BAD_TEXT,
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
            BAD_INDEX,
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

    /// Checks that each shape has distinct keys. Requires checked bounds.
    fn check_keys(&self) -> Check {
        // Two numbers may name the same text; the first stands for both.
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
                    return Err(refuse(BAD_INDEX, format!("shape {number} names key {key}")));
                };
                if std::mem::replace(&mut used_by[*key], number) == number {
                    return Err(refuse(
                        DUPLICATE_KEY,
                        format!("shape {number} has a key twice"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that ranges do not overlap so much that reading each costs more than the program is
    /// long. Requires checked bounds.
    fn check_overlap(&self) -> Check {
        let p = self.p;
        let consts = p.consts.iter().filter_map(|k| match k {
            Const::Text(r) => Some(r),
            _ => None,
        });
        let single = consts
            .chain(&p.keys)
            .chain(&p.outer)
            .chain(p.ops.iter().map(|op| &op.name))
            .chain(p.memos.iter().map(|memo| &memo.body));
        let args = p.args.iter().flat_map(|arg| {
            let path = arg.path.as_deref().unwrap_or_default();
            path.iter().chain([&arg.flat])
        });
        let segments = p.paths.iter().flat_map(|path| path.iter()).chain(args);
        let mut room = TEXT_FLOOR + TEXT_FACTOR * p.text.len();
        let mut bytes = 0usize;
        for r in single {
            bytes = bytes.saturating_add((r.end - r.start) as usize);
        }
        for r in segments {
            room += SEGMENT_BYTES;
            bytes = bytes.saturating_add((r.end - r.start) as usize);
        }
        if bytes > room {
            return Err(refuse(TOO_LARGE, "texts overlap too much"));
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
                    BAD_INDEX,
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
                return Err(refuse(
                    BAD_PRICE,
                    format!("op {number} has a negative price"),
                ));
            }
        }
        for (number, site) in self.p.sites.iter().enumerate() {
            if site.op as usize >= self.p.ops.len() {
                return Err(refuse(
                    BAD_INDEX,
                    format!("site {number} calls op {}", site.op),
                ));
            }
        }
        for memo in &self.p.memos {
            self.text(memo.body, "the body of a memo site")?;
            for name in &memo.free {
                self.const_text(*name, "a free variable of a memo site")?;
            }
            if u8::try_from(memo.free.len()).is_err() {
                return Err(refuse(
                    BAD_OPERANDS,
                    "a memo site has more than 255 free variables",
                ));
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<Vec<Locations>, super::VerifyError> {
        self.p
            .names
            .iter()
            .map(|table| self.locations(table))
            .collect()
    }

    fn locations(&self, table: &[(u32, Location)]) -> Result<Locations, super::VerifyError> {
        let mut locations = Locations::default();
        for (name, location) in table {
            self.const_text(*name, "the name of a variable")?;
            locations.add(*location);
        }
        Ok(locations)
    }
}

/// True if the constant exists and is a text.
pub(super) fn is_text(p: &Program, k: u32) -> bool {
    matches!(p.consts.get(k as usize), Some(Const::Text(_)))
}
