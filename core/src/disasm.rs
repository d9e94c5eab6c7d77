//! The disassembler: a program as text for people and tests.
//!
//! The output is stable: it depends on the program only. For each function it lists steps, handlers
//! and blocks with their prices in fuel, and for each instruction the operands with their meaning
//! and the source place. Program text is untrusted and printed escaped. The program may be
//! unverified: an invalid index is printed as `?`.
//!
//! There is no assembler.

use crate::builtins::{FUNCTIONS, method_name};
use crate::fuel::Fuel;
use crate::json::NodeId;
use crate::program::{
    self, Charge, ChargeKind, Const, Flag, LitOp, Op, OperandKind, Program, SourceLocation,
    TextRange,
};
use crate::text::{Text, wtf8_to_string_lossy};
use std::fmt::Write as _;

/// Most characters of program text in a comment.
const SHOWN_CHARS: usize = 40;

/// Column of comments, counted from the start of the instruction's text.
const COMMENT_COLUMN: usize = 34;

/// Printed for an invalid index.
const NOWHERE: &str = "?";

/// Disassembles a program.
#[must_use]
pub fn disassemble(program: &Program) -> String {
    listing(program).text
}

/// Disassembles a program, and keeps what each line belongs to.
#[must_use]
pub fn listing(program: &Program) -> Listing {
    let mut out = Listing::default();
    // Writing to a String cannot fail, here and below.
    let _ = write_header(program, &mut out);
    for (number, f) in program.functions.iter().enumerate() {
        out.source = None;
        if let Some(step) = f.steps.first() {
            out.at(program, step.node);
        }
        let _ = Function {
            p: program,
            f,
            charges: 0,
            places: 0,
        }
        .write(number, &mut out);
    }
    out
}

/// A disassembly with the source line and the price of each of its lines.
#[derive(Debug, Default)]
pub struct Listing {
    /// The text of [`disassemble`].
    pub text: String,
    /// For each line of the text: the line of the source, from 1, if there is one, and the default
    /// price of a charge in micro-units of fuel, or 0.
    pub lines: Vec<(Option<u32>, i64)>,
    source: Option<u32>,
    price: i64,
}

impl std::fmt::Write for Listing {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for _ in text.bytes().filter(|byte| *byte == b'\n') {
            self.lines
                .push((self.source, std::mem::take(&mut self.price)));
        }
        self.text.push_str(text);
        Ok(())
    }
}

impl Listing {
    /// What follows belongs to the source line of a node, if the program has the text.
    fn at(&mut self, p: &Program, node: NodeId) {
        let place = p.source.text_line_col(node);
        self.source = place.map(|(line, _)| line).or(self.source);
    }
}

fn write_header(p: &Program, out: &mut Listing) -> std::fmt::Result {
    write!(out, "program  ")?;
    let counts = [
        ("functions", p.functions.len()),
        ("constants", p.consts.len()),
        ("keys", p.keys.len()),
        ("shapes", p.shapes.len()),
        ("literals", p.literals.len()),
        ("arguments", p.args.len()),
        ("ops", p.ops.len()),
        ("sites", p.sites.len()),
        ("text bytes", p.text.len()),
    ];
    for (at, (what, n)) in counts.iter().enumerate() {
        write!(out, "{}{what} {n}", if at == 0 { "" } else { ", " })?;
    }
    writeln!(out)?;
    for (register, name) in p.outer.iter().enumerate() {
        writeln!(out, "outer r{register} = {}", quoted(text(p, *name)))?;
    }
    Ok(())
}

/// A function being listed, with positions in its tables.
struct Function<'a> {
    p: &'a Program,
    f: &'a program::Function,
    charges: usize,
    places: usize,
}

impl Function<'_> {
    fn write(&mut self, number: usize, out: &mut Listing) -> std::fmt::Result {
        let f = self.f;
        let name = quoted(self.p_const_text(f.name));
        writeln!(
            out,
            "\nfunction {number} {name}  params {}  registers {}  slots {}",
            f.params, f.registers, f.slots
        )?;
        for h in &f.handlers {
            writeln!(
                out,
                "  handler {}..{} -> {}",
                h.start,
                h.end,
                self.block_name(h.target)
            )?;
        }
        for w in &f.wraps {
            let prefix = quoted(self.p_const_text(w.prefix));
            writeln!(out, "  prefix {}..{} {prefix}", w.start, w.end)?;
        }
        let mut blocks = f.blocks.iter().enumerate().peekable();
        let mut steps = f.steps.iter().enumerate().peekable();
        for (pc, op) in (0u32..).zip(&f.code) {
            while let Some((n, b)) = blocks.next_if(|(_, b)| b.start <= pc) {
                let price = Fuel::from_micro(b.price);
                writeln!(out, "  block {n}  price {price}  ({}..{})", b.start, b.end)?;
            }
            while let Some((n, step)) = steps.next_if(|(_, s)| s.start <= pc) {
                let op = self.op_name(step.op);
                let at = pointer(self.p, step.node);
                out.at(self.p, step.node);
                let implicit = if step.implicit { " implicit" } else { "" };
                writeln!(
                    out,
                    "    step {n}  {op}{implicit}  ({}..{})  {at}",
                    step.start, step.end
                )?;
            }
            self.write_charges(pc, out)?;
            self.write_op(pc, *op, out)?;
        }
        Ok(())
    }

    fn write_charges(&mut self, pc: u32, out: &mut Listing) -> std::fmt::Result {
        while let Some(charge) = self.f.charges.get(self.charges).filter(|c| c.pc <= pc) {
            self.charges += 1;
            let what = match charge.kind {
                ChargeKind::Step => "step".to_owned(),
                ChargeKind::Nodes(n) => format!("nodes {n}"),
                ChargeKind::TextNodes(n) => format!("text nodes {n}"),
                ChargeKind::Turn => "turn".to_owned(),
                ChargeKind::TextTest => "text test".to_owned(),
                ChargeKind::TextTurn => "text turn".to_owned(),
                ChargeKind::CacheStore => "cache store".to_owned(),
            };
            let price = self.price(charge);
            if let Some(step) = self.f.steps.get(charge.step as usize) {
                out.at(self.p, step.node);
            }
            out.price = price.map_or(0, Fuel::micro);
            let price = price.map_or_else(|| NOWHERE.to_owned(), |price| price.to_string());
            writeln!(out, "    + {price}  {what}  (step {})", charge.step)?;
        }
        Ok(())
    }

    /// The default price of a charge; the program may be unverified.
    fn price(&self, charge: &Charge) -> Option<Fuel> {
        let step = self.f.steps.get(charge.step as usize);
        let exists = step.is_some_and(|s| (s.op as usize) < self.p.ops.len());
        if charge.kind == ChargeKind::Step && !exists {
            return None;
        }
        Some(Fuel::from_micro(self.p.default_price(self.f, charge)))
    }

    fn write_op(&mut self, pc: u32, op: Op, out: &mut Listing) -> std::fmt::Result {
        let mut line = mnemonic(op).to_owned();
        let mut comments = Vec::new();
        for (at, (name, kind, value)) in op.operands().iter().enumerate() {
            line.push_str(if at == 0 { " " } else { ", " });
            line.push_str(&self.operand(name, kind, value));
            comments.extend(self.meaning(op, kind, value));
        }
        if let Some(place) = self.place(pc, out) {
            comments.push(place);
        }
        if comments.is_empty() {
            return writeln!(out, "{pc:6}  {line}");
        }
        writeln!(
            out,
            "{pc:6}  {line:COMMENT_COLUMN$} ; {}",
            comments.join("  ")
        )
    }

    fn operand(&self, name: &str, kind: OperandKind, value: u32) -> String {
        let number = match kind {
            OperandKind::Target => self.block_name(value),
            _ => value.to_string(),
        };
        match kind.shown() {
            "" => format!("{name} {number}"),
            shown => shown.replace('#', &number),
        }
    }

    /// The entry that an operand names.
    fn meaning(&self, op: Op, kind: OperandKind, value: u32) -> Option<String> {
        use OperandKind as K;
        let p = self.p;
        let i = value as usize;
        let found = match kind {
            K::Const => p.consts.get(i).map(|k| constant(p, *k)),
            K::Literal => p.literals.get(i).map(|ops| literal(p, ops)),
            K::Arg => p.args.get(i).map(|arg| quoted(text(p, arg.flat))),
            K::Key => p.keys.get(i).map(|key| quoted(text(p, *key))),
            K::Shape => p.shapes.get(i).map(|shape| self.shape(shape)),
            K::Path => p.paths.get(i).map(|path| {
                path.iter().fold(String::new(), |all, part| {
                    all + "." + &shown(text(p, *part))
                })
            }),
            K::Function => FUNCTIONS.get(i).map(|f| match f.ns {
                "" => f.name.to_owned(),
                ns => format!("{ns}.{}", f.name),
            }),
            K::Method => u16::try_from(value)
                .map(method_name)
                .ok()
                .filter(|name| !name.is_empty())
                .map(|name| format!(".{name}")),
            K::Site => p.sites.get(i).map(|site| self.op_name(site.op)),
            K::Callee => p
                .functions
                .get(i)
                .map(|f| quoted(self.p_const_text(f.name))),
            K::Block => {
                let price = self.f.blocks.get(i).map(|b| Fuel::from_micro(b.price));
                price.map(|price| format!("price {price}"))
            }
            _ => return None,
        };
        // Security errors are marked.
        let security = matches!(op, Op::Throw { flag: Flag(1), .. }) && kind == K::Const;
        let found = found.unwrap_or_else(|| NOWHERE.to_owned());
        Some(if security {
            format!("security {found}")
        } else {
            found
        })
    }

    fn shape(&self, keys: &[u32]) -> String {
        let mut out = String::from("{");
        for (at, key) in keys.iter().enumerate() {
            let key = self.p.keys.get(*key as usize);
            let key = key.map_or_else(|| NOWHERE.to_owned(), |key| shown(text(self.p, *key)));
            out.push_str(if at == 0 { "" } else { ", " });
            out.push_str(&key);
            if out.len() > SHOWN_CHARS {
                out.push_str("...");
                break;
            }
        }
        out + "}"
    }

    /// The source place that begins at an instruction.
    fn place(&mut self, pc: u32, out: &mut Listing) -> Option<String> {
        let mut last: Option<SourceLocation> = None;
        while let Some(place) = self
            .f
            .places
            .get(self.places)
            .filter(|place| place.pc <= pc)
        {
            self.places += 1;
            last = Some(*place);
        }
        let place = last?;
        out.at(self.p, place.node);
        let at = pointer(self.p, place.node);
        let inner = place.inner.and_then(|(start, end)| {
            let text = self.p.source.document()?.str(place.node)?;
            text.get(start as usize..end as usize)
        });
        Some(match inner {
            Some(text) => format!("{at} {}", quoted(text)),
            None => at,
        })
    }

    fn block_name(&self, pc: u32) -> String {
        match self.f.blocks.binary_search_by_key(&pc, |b| b.start) {
            Ok(n) => format!("b{n}"),
            Err(_) => NOWHERE.to_owned(),
        }
    }

    fn op_name(&self, op: u32) -> String {
        let name = self
            .p
            .ops
            .get(op as usize)
            .map(|op| shown(text(self.p, op.name)));
        name.unwrap_or_else(|| NOWHERE.to_owned())
    }

    fn p_const_text(&self, k: u32) -> &[u8] {
        match self.p.consts.get(k as usize) {
            Some(Const::Text(r)) => text(self.p, *r),
            _ => NOWHERE.as_bytes(),
        }
    }
}

fn mnemonic(op: Op) -> &'static str {
    program::ops::TABLE
        .get(usize::from(op.code()))
        .map_or(NOWHERE, |row| row.name)
}

/// The bytes of a range, which may be out of bounds.
fn text(p: &Program, r: TextRange) -> &[u8] {
    p.text
        .get(r.start as usize..r.end as usize)
        .unwrap_or(NOWHERE.as_bytes())
}

fn constant(p: &Program, k: Const) -> String {
    match k {
        Const::Undefined => "undefined".to_owned(),
        Const::Null => "null".to_owned(),
        Const::Bool(b) => b.to_string(),
        Const::Number(n) => format!("{n:?}"),
        Const::Text(r) => quoted(text(p, r)),
    }
}

/// Kind and size of a literal.
fn literal(p: &Program, ops: &[LitOp]) -> String {
    match ops.last() {
        Some(LitOp::Array(n)) => format!("array of {n}"),
        Some(LitOp::Object(shape)) => match p.shapes.get(*shape as usize) {
            Some(keys) => format!("object of {}", keys.len()),
            None => NOWHERE.to_owned(),
        },
        Some(LitOp::Const(k)) => p
            .consts
            .get(*k as usize)
            .map_or_else(|| NOWHERE.to_owned(), |k| constant(p, *k)),
        None => NOWHERE.to_owned(),
    }
}

/// Line and column of a node, if the source was generated from another text.
fn origin(p: &Program, node: NodeId) -> String {
    match p.source.line_col(node) {
        Some((line, column)) => format!(" {line}:{column}"),
        None => String::new(),
    }
}

/// The pointer to a node. The root is printed as `/`, which could otherwise only be a member with
/// an empty name.
fn pointer(p: &Program, node: NodeId) -> String {
    match p.source.pointer(node) {
        None => String::new(),
        Some(root) if root.is_empty() => "/".to_owned(),
        Some(pointer) => format!("{}{}", shown(pointer.as_bytes()), origin(p, node)),
    }
}

/// Escapes and cuts untrusted text.
fn shown(bytes: &[u8]) -> String {
    let lossy = wtf8_to_string_lossy(bytes);
    let mut out: String = lossy.chars().take(SHOWN_CHARS).collect();
    if lossy.chars().nth(SHOWN_CHARS).is_some() {
        out.push_str("...");
    }
    crate::text::escape_for_terminal(&out)
}

/// Quotes, escapes and cuts untrusted text.
fn quoted(bytes: &[u8]) -> String {
    let lossy = wtf8_to_string_lossy(bytes);
    let cut: String = lossy.chars().take(SHOWN_CHARS).collect();
    let more = if lossy.chars().nth(SHOWN_CHARS).is_some() {
        "..."
    } else {
        ""
    };
    format!("{:?}{more}", Text::from(cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{ConstIdx, Reg, Target};
    use crate::verify::tests::sample::{empty, sample};

    #[test]
    fn the_sample_is_listed() {
        let text = disassemble(&sample());
        let expected = include_str!("verify/tests/sample.txt");
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn hostile_text_is_escaped_and_cut() {
        let mut p = empty();
        p.text = b"\x1b[31m\xE2\x80\xAEabc".to_vec();
        p.outer = vec![TextRange {
            start: 0,
            end: p.text.len() as u32,
        }];
        let text = disassemble(&p);
        assert!(
            text.contains(r#"outer r0 = "\u{1b}[31m\u{202e}abc""#),
            "{text}"
        );
        assert_eq!(quoted(&[b'x'; 50]), format!("\"{}\"...", "x".repeat(40)));
    }

    #[test]
    fn indexes_that_lead_nowhere_are_shown() {
        let mut p = sample();
        p.functions[0].code[1] = Op::LoadK {
            dst: Reg(0),
            k: ConstIdx(99),
        };
        p.functions[0].code[10] = Op::Jmp { to: Target(6) };
        p.functions[0].charges[0].step = 99;
        p.functions[0].steps[1].op = 99;
        let text = disassemble(&p);
        assert!(text.contains("LoadK r0, k99"), "{text}");
        assert!(text.contains("Jmp -> ?"), "{text}");
        assert!(text.contains("+ ?  step"), "{text}");
        assert!(text.contains("step 1  ?"), "{text}");
    }
}
