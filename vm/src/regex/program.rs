//! Matching by simulation of all states at once (Thompson's construction), on UTF-16 units. A
//! unit costs at most one visit of each state, for any pattern, and the run can be stopped
//! between two units.

use super::parse::{Assertion, Node, NodeId, Parsed};
use super::set::{LINE_END, Set, is_word};
use crate::heap::Oom;
use crate::native::{Fault, Reading};
use a99_ecma::wtf8;

/// Work to generate an instruction.
const WRITE_WORK: i64 = 16;

/// Work per visit of an instruction.
const LOOK_WORK: i64 = 4;

/// Units skipped between two yield points.
const SKIPPED: usize = 4 << 10;

/// An instruction; execution falls through to the next one.
#[derive(Copy, Clone, Debug)]
enum Inst {
    /// Consumes this unit.
    Unit(u32),
    /// Consumes a unit of this set.
    Set(u32),
    /// Continues if an assertion holds.
    Assert(Assertion),
    /// Continues at the next and at another instruction.
    Split(u32),
    /// Continues at another instruction.
    Jump(u32),
    /// The pattern matches.
    Match,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Program {
    code: Vec<Inst>,
    sets: Vec<Set>,
    /// Whether a match can begin only at the start.
    anchored: bool,
    /// The units that a match can begin with; `None` if it can be empty.
    first: Option<First>,
}

/// The units that a match can begin with.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct First {
    ascii: u128,
    others: bool,
}

impl First {
    /// Adds a unit.
    pub(super) fn add(&mut self, unit: u32) {
        match unit {
            0..0x80 => self.ascii |= 1 << unit,
            _ => self.others = true,
        }
    }

    /// Adds the units of a set.
    pub(super) fn add_set(&mut self, set: &Set) {
        self.ascii |= set.ascii();
        self.others |= set.has_others();
    }

    /// Whether the set may contain a unit.
    #[inline]
    pub(super) fn has(self, unit: u32) -> bool {
        match unit {
            0..0x80 => self.ascii >> unit & 1 == 1,
            _ => self.others,
        }
    }
}

/// Appends an instruction and returns its index. Counts it as work, and its memory before it
/// is allocated.
pub(super) fn write<I>(run: &mut Reading<'_>, code: &mut Vec<I>, inst: I) -> Result<usize, Fault> {
    run.work(WRITE_WORK)?;
    if code.len() == code.capacity() {
        let wanted = (2 * code.len() + 16) * size_of::<I>();
        run.heap().check(wanted)?;
        code.try_reserve(code.len() + 16)
            .map_err(|_| Oom { wanted })?;
    }
    code.push(inst);
    Ok(code.len() - 1)
}

/// Generates a program.
struct ProgramWriter<'p, 'r, 'm> {
    parsed: &'p Parsed,
    code: Vec<Inst>,
    run: &'r mut Reading<'m>,
}

impl ProgramWriter<'_, '_, '_> {
    fn put(&mut self, inst: Inst) -> Result<usize, Fault> {
        write(self.run, &mut self.code, inst)
    }

    /// Points an instruction's target to the next one.
    fn lead_here(&mut self, at: usize) {
        let here = self.code.len() as u32;
        match &mut self.code[at] {
            Inst::Split(to) | Inst::Jump(to) => *to = here,
            _ => {}
        }
    }

    /// Generates a node. Groups nest at most as deep as the pattern is long.
    fn node(&mut self, id: NodeId) -> Result<(), Fault> {
        match &self.parsed.nodes[id] {
            Node::Unit(unit) => _ = self.put(Inst::Unit(*unit))?,
            Node::Set(set) => _ = self.put(Inst::Set(*set as u32))?,
            Node::Assert(assertion) => _ = self.put(Inst::Assert(*assertion))?,
            Node::Concat(parts) => {
                for part in parts {
                    self.node(*part)?;
                }
            }
            Node::Alt(parts) => {
                let mut ends = Vec::with_capacity(parts.len());
                let last = parts.len() - 1;
                for (n, part) in parts.iter().enumerate() {
                    if n == last {
                        self.node(*part)?;
                        break;
                    }
                    let split = self.put(Inst::Split(0))?;
                    self.node(*part)?;
                    ends.push(self.put(Inst::Jump(0))?);
                    self.lead_here(split);
                }
                for end in ends {
                    self.lead_here(end);
                }
            }
            Node::Repeat(part, min, max, _) => self.repeat(*part, *min, *max)?,
            // Captures are not needed here.
            Node::Group(part, _) => self.node(*part)?,
            // The parser has refused them.
            Node::Reference(_) | Node::Look(..) => {}
        }
        Ok(())
    }

    fn repeat(&mut self, part: NodeId, min: u64, max: Option<u64>) -> Result<(), Fault> {
        for _ in 0..min {
            self.node(part)?;
        }
        let Some(max) = max else {
            let split = self.put(Inst::Split(0))?;
            self.node(part)?;
            self.put(Inst::Jump(split as u32))?;
            self.lead_here(split);
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.put(Inst::Split(0))?);
            self.node(part)?;
        }
        for split in splits {
            self.lead_here(split);
        }
        Ok(())
    }
}

impl Program {
    /// Compiles a pattern; the caller has checked its size.
    ///
    /// # Errors
    /// Memory; a stop.
    pub(super) fn compile(run: &mut Reading<'_>, parsed: Parsed) -> Result<Program, Fault> {
        let mut writer = ProgramWriter {
            parsed: &parsed,
            code: Vec::new(),
            run,
        };
        if let Some(whole) = parsed.nodes.len().checked_sub(1) {
            writer.node(whole)?;
        }
        writer.put(Inst::Match)?;
        let code = writer.code;
        let mut program = Program {
            code,
            sets: parsed.sets,
            anchored: false,
            first: None,
        };
        let (first, empty) = program.begins(true);
        program.first = (!empty).then_some(first);
        let (inside, empty) = program.begins(false);
        program.anchored = !empty && inside.ascii == 0 && !inside.others;
        Ok(program)
    }

    /// Number of instructions.
    pub(super) fn len(&self) -> usize {
        self.code.len()
    }

    /// The units that a match can begin with, and whether it can be empty; at the start of a
    /// text or after it.
    fn begins(&self, at_start: bool) -> (First, bool) {
        let mut first = First::default();
        let mut seen = vec![false; self.code.len()];
        let mut todo = vec![0];
        while let Some(at) = todo.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match self.code[at] {
                Inst::Unit(unit) => first.add(unit),
                Inst::Set(set) => first.add_set(&self.sets[set as usize]),
                Inst::Assert(Assertion::Start) if !at_start => {}
                Inst::Assert(_) => todo.push(at + 1),
                Inst::Split(to) => todo.extend([to as usize, at + 1]),
                Inst::Jump(to) => todo.push(to as usize),
                Inst::Match => return (first, true),
            }
        }
        (first, false)
    }

    /// Whether the pattern matches anywhere in a text.
    ///
    /// # Errors
    /// Memory; a stop.
    pub(super) fn search(&self, run: &mut Reading<'_>, text: &[u8]) -> Result<bool, Fault> {
        match text.is_ascii() {
            true => self.step(run, text.iter().map(|byte| u32::from(*byte))),
            false => self.step(run, wtf8::units(text).map(u32::from)),
        }
    }

    fn step(
        &self,
        run: &mut Reading<'_>,
        mut units: impl Iterator<Item = u32>,
    ) -> Result<bool, Fault> {
        let n = self.code.len();
        let wanted = n * 4 * size_of::<u32>();
        run.heap().check(wanted)?;
        // The last step at which each instruction was visited.
        let mut seen = vec![0u32; n];
        let (mut now, mut next): (Vec<u32>, Vec<u32>) = (vec![0], Vec::new());
        let mut todo: Vec<u32> = Vec::new();
        let mut before = None;
        let mut step = 0;
        loop {
            let mut unit = units.next();
            if now.is_empty() {
                if self.anchored {
                    return Ok(false);
                }
                // Without active states, skip units at which no match can begin.
                if let Some(first) = self.first {
                    let mut passed = 0;
                    while let Some(here) = unit.filter(|here| !first.has(*here)) {
                        before = Some(here);
                        unit = units.next();
                        passed += 1;
                        if passed == SKIPPED {
                            run.work(passed as i64)?;
                            passed = 0;
                        }
                    }
                    run.work(passed as i64)?;
                }
                now.push(0);
            } else if step > 0 && !self.anchored {
                now.push(0);
            }
            step += 1;
            let mut looks = 0;
            for at in now.drain(..) {
                todo.push(at);
                while let Some(at) = todo.pop() {
                    let at = at as usize;
                    if std::mem::replace(&mut seen[at], step) == step {
                        continue;
                    }
                    looks += 1;
                    let follows = at as u32 + 1;
                    match self.code[at] {
                        Inst::Unit(wanted) => {
                            if unit == Some(wanted) {
                                next.push(follows);
                            }
                        }
                        Inst::Set(set) => {
                            if unit.is_some_and(|unit| self.sets[set as usize].has(unit)) {
                                next.push(follows);
                            }
                        }
                        Inst::Assert(assertion) => {
                            if holds(assertion, before, unit) {
                                todo.push(follows);
                            }
                        }
                        Inst::Split(to) => todo.extend([to, follows]),
                        Inst::Jump(to) => todo.push(to),
                        Inst::Match => return Ok(true),
                    }
                }
            }
            run.work(looks * LOOK_WORK)?;
            if unit.is_none() {
                return Ok(false);
            }
            before = unit;
            std::mem::swap(&mut now, &mut next);
        }
    }
}

/// Whether an assertion holds between two units.
pub(super) fn holds(assertion: Assertion, before: Option<u32>, after: Option<u32>) -> bool {
    let is_word = |unit: Option<u32>, folds| unit.is_some_and(|unit| is_word(unit, folds));
    match assertion {
        Assertion::Start => before.is_none(),
        Assertion::End => after.is_none(),
        Assertion::Border { wanted, folds } => {
            (is_word(before, folds) != is_word(after, folds)) == wanted
        }
        Assertion::LineStart => before.is_none_or(ends_line),
        Assertion::LineEnd => after.is_none_or(ends_line),
    }
}

fn ends_line(unit: u32) -> bool {
    LINE_END
        .iter()
        .any(|(from, to)| (*from..=*to).contains(&unit))
}
