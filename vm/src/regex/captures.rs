//! Regular expressions as programs with capture groups; `machine` runs them.

use super::fold::{self, Folded};
use super::parse::{Assertion, Flags, Greed, Look, Node, NodeId, Parsed};
use super::program::{First, write};
use super::set::Set;
use crate::native::{Fault, Reading};

/// Position of a group that did not participate in a match.
pub(crate) const NONE: u32 = u32::MAX;

/// An instruction; execution falls through to the next one.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Inst {
    /// Consumes this unit; its common form if case is ignored.
    Unit(u32),
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
    /// Begins an iteration that must consume a unit; its nesting depth.
    Enter(u32),
    /// Continues if that iteration consumed a unit.
    Progress(u32),
    /// Goes back by a unit.
    Back,
    /// Consumes the text of a group; backwards if the flag is set.
    Reference(u32, bool),
    /// Begins to look around; looking around ends before the target.
    Look(Look, u32),
    /// Looking around has matched.
    Seen,
    /// The pattern matches.
    Match,
}

/// A compiled pattern with capture groups.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
    pub(super) sets: Vec<Set>,
    pub(crate) ignore_case: bool,
    pub(super) unicode: bool,
    /// Whether matching takes backtracking.
    pub(super) backtracks: bool,
    /// Whether states depend on an iteration's progress.
    pub(crate) has_turns: bool,
    /// The units that a match can begin with; `None` if it can be empty.
    pub(super) first: Option<First>,
    /// Number of saved positions: two for the whole match and for each group.
    pub(crate) slots: usize,
    /// Depth of iterations that must consume a unit.
    pub(super) depth: u32,
}

/// Generates a program.
struct ProgramWriter<'p, 'r, 'm> {
    parsed: &'p Parsed,
    flags: Flags,
    /// Whether the text is matched backwards here.
    behind: bool,
    /// The depth of iterations here, and the largest.
    depth: (u32, u32),
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
                Node::Assert(_) | Node::Reference(_) => (true, (0, 0)),
                Node::Look(part, _) => (true, self.groups[*part]),
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
            Inst::Split(to, _) | Inst::Jump(to) | Inst::Look(_, to) if *to == NONE => *to = here,
            Inst::Split(_, to) => *to = here,
            _ => {}
        }
    }

    /// Generates a node. Groups nest at most as deep as the pattern is long.
    fn node(&mut self, id: NodeId) -> Result<(), Fault> {
        let parsed = self.parsed;
        match &parsed.nodes[id] {
            Node::Unit(unit) => self.unit(Inst::Unit(match self.flags.ignore_case {
                true => fold::common(*unit, self.flags.unicode),
                false => *unit,
            }))?,
            Node::Set(set) => self.unit(Inst::Set(*set as u32))?,
            Node::Assert(assertion) => _ = self.put(Inst::Assert(*assertion))?,
            Node::Concat(parts) => {
                for n in 0..parts.len() {
                    let n = if self.behind { parts.len() - 1 - n } else { n };
                    self.node(parts[n])?;
                }
            }
            Node::Alt(parts) => self.either(parts)?,
            Node::Repeat(part, min, max, greed) => self.repeat(*part, *min, *max, *greed)?,
            Node::Group(part, n) => {
                let behind = u32::from(self.behind);
                self.put(Inst::Save(2 * n + behind))?;
                self.node(*part)?;
                self.put(Inst::Save(2 * n + 1 - behind))?;
            }
            Node::Reference(n) => _ = self.put(Inst::Reference(*n, self.behind))?,
            Node::Look(part, look) => {
                let outside = std::mem::replace(&mut self.behind, look.behind);
                let start = self.put(Inst::Look(*look, NONE))?;
                self.node(*part)?;
                self.put(Inst::Seen)?;
                self.ends_here(start);
                self.behind = outside;
            }
        }
        Ok(())
    }

    /// Generates what consumes a unit. Backwards that is the unit before.
    fn unit(&mut self, inst: Inst) -> Result<(), Fault> {
        if self.behind {
            self.put(Inst::Back)?;
        }
        self.put(inst)?;
        if self.behind {
            self.put(Inst::Back)?;
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
            self.put(Inst::Enter(self.depth.0))?;
            self.depth.0 += 1;
            self.depth.1 = self.depth.1.max(self.depth.0);
        }
        self.node(part)?;
        if checked {
            self.depth.0 -= 1;
            self.put(Inst::Progress(self.depth.0))?;
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
        flags: Flags,
    ) -> Result<Program, Fault> {
        let mut writer = ProgramWriter {
            parsed: &parsed,
            flags,
            behind: false,
            depth: (0, 0),
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
        let (code, has_turns, depth) = (writer.code, writer.has_turns, writer.depth.1);
        let mut program = Program {
            code,
            sets: parsed.sets,
            ignore_case: flags.ignore_case,
            unicode: flags.unicode,
            backtracks: parsed.backtracks,
            has_turns,
            depth,
            first: None,
            slots: 2 * (parsed.groups as usize + 1),
        };
        program.first = program.begins();
        Ok(program)
    }

    /// Whether the text is matched by code points.
    pub(crate) fn unicode(&self) -> bool {
        self.unicode
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
                        first.add(u32::from((unit as u8).to_ascii_lowercase()));
                        // A letter of ASCII may be alike to one beyond.
                        if self.unicode && Folded::of(unit, true).iter().any(|unit| *unit >= 0x80) {
                            first.add(0x80);
                        }
                    }
                }
                Inst::Unit(unit) => first.add(unit),
                Inst::Set(set) => first.add_set(&self.sets[set as usize]),
                Inst::Split(a, b) => todo.extend([a as usize, b as usize]),
                Inst::Jump(to) => todo.push(to as usize),
                Inst::Match | Inst::Reference(..) => return None,
                Inst::Look(_, behind) => todo.push(behind as usize),
                _ => todo.push(at + 1),
            }
        }
        Some(first)
    }
}
