//! Regular expressions as programs with capture groups; `machine` runs them.

use super::fold;
use super::parse::{Assertion, Greed, Node, NodeId, Parsed};
use super::program::{First, write};
use super::set::Set;
use crate::native::{Fault, Reading};

/// Position of a group that did not participate in a match.
pub(crate) const NONE: u32 = u32::MAX;

/// An instruction; execution falls through to the next one.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Inst {
    /// Consumes this unit; in upper case if case is ignored.
    Unit(u16),
    /// Consumes a unit of this set.
    Set(u32),
    /// Continues if an assertion holds.
    Assert(Assertion),
    /// Continues at the first target, and with lower priority at the second.
    Split(u32, u32),
    /// Continues at another instruction.
    Jump(u32),
    /// Saves the position in the text.
    Save(u32),
    /// Clears these saved positions.
    Reset(u32, u32),
    /// Begins an iteration that must consume a unit.
    Enter,
    /// Continues if the iteration consumed a unit.
    Progress,
    /// The pattern matches.
    Match,
}

/// A compiled pattern with capture groups.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
    pub(super) sets: Vec<Set>,
    pub(crate) ignore_case: bool,
    /// Whether states depend on an iteration's progress.
    pub(crate) has_turns: bool,
    /// The units that a match can begin with; `None` if it can be empty.
    pub(super) first: Option<First>,
    /// Number of saved positions: two for the whole match and for each group.
    pub(crate) slots: usize,
}

/// Generates a program.
struct ProgramWriter<'p, 'r, 'm> {
    parsed: &'p Parsed,
    ignore_case: bool,
    /// Whether each node can match the empty string.
    empty: Vec<bool>,
    /// The groups in each node: the first, and one past the last.
    groups: Vec<(u32, u32)>,
    code: Vec<Inst>,
    has_turns: bool,
    run: &'r mut Reading<'m>,
}

impl ProgramWriter<'_, '_, '_> {
    /// Computes the properties of all nodes that repetitions need; children come first.
    fn survey(&mut self) {
        for node in &self.parsed.nodes {
            let all = |parts: &[NodeId]| {
                let ranges = parts.iter().map(|part| self.groups[*part]);
                ranges.filter(|(from, to)| from < to).fold((0, 0), join)
            };
            let (empty, groups) = match node {
                Node::Unit(_) | Node::Set(_) => (false, (0, 0)),
                Node::Assert(_) => (true, (0, 0)),
                Node::Concat(parts) => (parts.iter().all(|p| self.empty[*p]), all(parts)),
                Node::Alt(parts) => (parts.iter().any(|p| self.empty[*p]), all(parts)),
                Node::Repeat(part, min, ..) => (*min == 0 || self.empty[*part], self.groups[*part]),
                Node::Group(part, n) => {
                    let inner = self.groups[*part];
                    (self.empty[*part], join((*n, *n + 1), inner))
                }
            };
            self.empty.push(empty);
            self.groups.push(groups);
        }
    }

    fn put(&mut self, inst: Inst) -> Result<usize, Fault> {
        write(self.run, &mut self.code, inst)
    }

    fn here(&self) -> u32 {
        self.code.len() as u32
    }

    /// A split with one branch that begins here; [`Self::ends_here`] sets the other.
    fn choice(&mut self, greed: Greed) -> Result<usize, Fault> {
        let next = self.here() + 1;
        self.put(match greed {
            Greed::Greedy => Inst::Split(next, NONE),
            Greed::Lazy => Inst::Split(NONE, next),
        })
    }

    /// Points the open target of an instruction to the next one.
    fn ends_here(&mut self, at: usize) {
        let here = self.here();
        match &mut self.code[at] {
            Inst::Split(to, _) | Inst::Jump(to) if *to == NONE => *to = here,
            Inst::Split(_, to) => *to = here,
            _ => {}
        }
    }

    /// Generates a node. Groups nest at most as deep as the pattern is long.
    fn node(&mut self, id: NodeId) -> Result<(), Fault> {
        let parsed = self.parsed;
        match &parsed.nodes[id] {
            Node::Unit(unit) => {
                let unit = match self.ignore_case {
                    true => fold::upper(*unit),
                    false => *unit,
                };
                self.put(Inst::Unit(unit))?;
            }
            Node::Set(set) => _ = self.put(Inst::Set(*set as u32))?,
            Node::Assert(assertion) => _ = self.put(Inst::Assert(*assertion))?,
            Node::Concat(parts) => {
                for part in parts {
                    self.node(*part)?;
                }
            }
            Node::Alt(parts) => self.either(parts)?,
            Node::Repeat(part, min, max, greed) => self.repeat(*part, *min, *max, *greed)?,
            Node::Group(part, n) => {
                self.put(Inst::Save(2 * n))?;
                self.node(*part)?;
                self.put(Inst::Save(2 * n + 1))?;
            }
        }
        Ok(())
    }

    fn either(&mut self, parts: &[NodeId]) -> Result<(), Fault> {
        let Some((last, others)) = parts.split_last() else {
            return Ok(());
        };
        let mut ends = Vec::with_capacity(others.len());
        for part in others {
            let choice = self.choice(Greed::Greedy)?;
            self.node(*part)?;
            ends.push(self.put(Inst::Jump(NONE))?);
            self.ends_here(choice);
        }
        self.node(*last)?;
        for end in ends {
            self.ends_here(end);
        }
        Ok(())
    }

    /// Generates an iteration of a repetition: it clears its groups, and an optional
    /// iteration must not match the empty string.
    fn turn(&mut self, part: NodeId, needed: bool) -> Result<(), Fault> {
        let (from, to) = self.groups[part];
        if from < to {
            self.put(Inst::Reset(2 * from, 2 * to))?;
        }
        let checked = !needed && self.empty[part];
        if checked {
            self.has_turns = true;
            self.put(Inst::Enter)?;
        }
        self.node(part)?;
        if checked {
            self.put(Inst::Progress)?;
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        part: NodeId,
        min: u64,
        max: Option<u64>,
        greed: Greed,
    ) -> Result<(), Fault> {
        for _ in 0..min {
            self.turn(part, true)?;
        }
        let Some(max) = max else {
            let choice = self.choice(greed)?;
            self.turn(part, false)?;
            self.put(Inst::Jump(choice as u32))?;
            self.ends_here(choice);
            return Ok(());
        };
        let mut choices = Vec::new();
        for _ in min..max {
            choices.push(self.choice(greed)?);
            self.turn(part, false)?;
        }
        for choice in choices {
            self.ends_here(choice);
        }
        Ok(())
    }
}

/// The smallest range that contains both; the first may be empty.
fn join(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    match (a.0 < a.1, b.0 < b.1) {
        (false, _) => b,
        (_, false) => a,
        _ => (a.0.min(b.0), a.1.max(b.1)),
    }
}

impl Program {
    /// Compiles a pattern; the caller has checked its size.
    ///
    /// # Errors
    /// Memory; a stop.
    pub(crate) fn compile(
        run: &mut Reading<'_>,
        parsed: Parsed,
        ignore_case: bool,
    ) -> Result<Program, Fault> {
        let mut writer = ProgramWriter {
            parsed: &parsed,
            ignore_case,
            empty: Vec::with_capacity(parsed.nodes.len()),
            groups: Vec::with_capacity(parsed.nodes.len()),
            code: Vec::new(),
            has_turns: false,
            run,
        };
        writer.survey();
        if let Some(whole) = parsed.nodes.len().checked_sub(1) {
            writer.node(whole)?;
        }
        writer.put(Inst::Match)?;
        let (code, has_turns) = (writer.code, writer.has_turns);
        let mut program = Program {
            code,
            sets: parsed.sets,
            ignore_case,
            has_turns,
            first: None,
            slots: 2 * (parsed.groups as usize + 1),
        };
        program.first = program.begins();
        Ok(program)
    }

    /// Number of instructions.
    pub(crate) fn len(&self) -> usize {
        self.code.len()
    }

    /// The units that a match can begin with, regardless of assertions.
    fn begins(&self) -> Option<First> {
        let mut first = First::default();
        let mut seen = vec![false; self.code.len()];
        let mut todo = vec![0];
        while let Some(at) = todo.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match self.code[at] {
                Inst::Unit(unit @ 0..0x80) => {
                    first.add(unit);
                    if self.ignore_case {
                        first.add(u16::from((unit as u8).to_ascii_lowercase()));
                    }
                }
                Inst::Unit(unit) => first.add(unit),
                Inst::Set(set) => first.add_set(&self.sets[set as usize]),
                Inst::Split(a, b) => todo.extend([a as usize, b as usize]),
                Inst::Jump(to) => todo.push(to as usize),
                Inst::Match => return None,
                _ => todo.push(at + 1),
            }
        }
        Some(first)
    }
}
