//! Backtracking matching (ECMA-262 §22.2.2), for patterns that look around or refer back to
//! groups: no linear matcher is known for them. Each step pays before it is done, and the steps
//! of a call have a limit, so that no pattern is catastrophic. Ways back are kept in lists, which
//! count as memory.

use super::captures::{Inst, NONE};
use super::fold;
use super::machine::{Halt, Machine, Units, push};
use super::parse::Look;
use super::program::holds;
use crate::native::{Fault, Reading};
use a99_core::costs::{REGEX_BACK, REGEX_WAY};

/// Work per step.
const STEP_WORK: i64 = 4;

/// Steps between two yield points.
const BATCH: u64 = 256;

/// Where a match can be tried in another way.
#[derive(Copy, Clone, Debug)]
struct Choice {
    at: u32,
    place: usize,
    /// Length of the log.
    log: usize,
    /// Whether it leaves the innermost look-around, whose body has no other way to match.
    leaves: bool,
}

/// Look-around under way.
#[derive(Copy, Clone, Debug)]
struct Sight {
    look: Look,
    place: usize,
    /// Length of the choices before it.
    choices: usize,
    behind: u32,
}

/// The lists of the backtracking matcher.
#[derive(Debug, Default)]
pub(super) struct Trail {
    choices: Vec<Choice>,
    /// Saved positions before they were set again.
    log: Vec<(u32, u32)>,
    sights: Vec<Sight>,
    /// Steps that are not paid yet.
    steps: u64,
}

impl Machine<'_> {
    /// [`Machine::find`] by backtracking.
    pub(super) fn find_back(
        &mut self,
        run: &mut Reading<'_>,
        text: &impl Units,
        from: usize,
        sticky: bool,
    ) -> Result<bool, Halt> {
        let mut place = from;
        loop {
            if !sticky {
                place = self.pass(run, text, place)?;
            }
            let found = self.attempt(run, text, place);
            let paid = self.pay_steps(run);
            if found? {
                paid?;
                return Ok(true);
            }
            paid?;
            if sticky || text.at(place).is_none() {
                return Ok(false);
            }
            place += 1;
        }
    }

    /// Counts steps; pays for a batch.
    #[inline]
    fn step(&mut self, run: &mut Reading<'_>, count: u64) -> Result<(), Halt> {
        self.trail.steps += count;
        match self.trail.steps >= BATCH {
            true => self.pay_steps(run),
            false => Ok(()),
        }
    }

    fn pay_steps(&mut self, run: &mut Reading<'_>) -> Result<(), Halt> {
        let steps = std::mem::take(&mut self.trail.steps);
        let ways = steps * REGEX_BACK * (1 + u64::from(self.program.ignore_case));
        run.pay_metered(ways as i64 * REGEX_WAY)?;
        run.work(steps as i64 * STEP_WORK)?;
        self.left = self.left.checked_sub(ways).ok_or(Halt::TooCostly)?;
        Ok(())
    }

    /// Matches at a place.
    fn attempt(
        &mut self,
        run: &mut Reading<'_>,
        text: &impl Units,
        start: usize,
    ) -> Result<bool, Halt> {
        let program = self.program;
        self.trail.choices.clear();
        self.trail.log.clear();
        self.trail.sights.clear();
        self.notes.fill(NONE);
        self.notes[0] = start as u32;
        let (mut at, mut place) = (0u32, start);
        loop {
            let inst = program.code[at as usize];
            let count = match inst {
                Inst::Jump(_) | Inst::Match | Inst::Seen | Inst::Enter(_) | Inst::Progress(_) => 0,
                Inst::Reset(from, to) => 1 + u64::from(to - from) / 8,
                Inst::Reference(group, _) => 1 + self.captured(group).map_or(0, |(a, b)| b - a) / 8,
                _ => 1,
            };
            self.step(run, count)?;
            at += 1;
            let goes_on = match inst {
                Inst::Unit(wanted) => {
                    let here = text.at(place).map(|unit| self.common(unit));
                    place += 1;
                    here == Some(wanted)
                }
                Inst::Set(set) => {
                    let set = &program.sets[set as usize];
                    let fits = |unit| match program.ignore_case {
                        true => set.has_folded(unit, &fold::Folded::of(unit, program.unicode)),
                        false => set.has(unit),
                    };
                    let here = text.at(place);
                    place += 1;
                    here.is_some_and(fits)
                }
                Inst::Back => match place.checked_sub(1) {
                    Some(before) => {
                        place = before;
                        true
                    }
                    None => false,
                },
                Inst::Assert(assertion) => {
                    let before = place.checked_sub(1).and_then(|before| text.at(before));
                    holds(assertion, before, text.at(place))
                }
                Inst::Split(first, second) => {
                    self.choose(run, second, place, false)?;
                    at = first;
                    true
                }
                Inst::Jump(to) => {
                    at = to;
                    true
                }
                Inst::Save(slot) => self.set(run, slot, place as u32)?,
                Inst::Reset(from, to) => {
                    for slot in from..to {
                        if self.notes[slot as usize] != NONE {
                            self.set(run, slot, NONE)?;
                        }
                    }
                    true
                }
                Inst::Enter(depth) => self.set(run, program.slots as u32 + depth, place as u32)?,
                Inst::Progress(depth) => self.notes[program.slots + depth as usize] != place as u32,
                Inst::Reference(group, behind) => match self.again(text, group, place, behind) {
                    Some(end) => {
                        place = end;
                        true
                    }
                    None => false,
                },
                Inst::Look(look, behind) => {
                    let choices = self.trail.choices.len();
                    self.choose(run, behind, place, true)?;
                    let sight = Sight {
                        look,
                        place,
                        choices,
                        behind,
                    };
                    push(run, &mut self.trail.sights, sight)?;
                    true
                }
                Inst::Seen => match self.trail.sights.pop() {
                    Some(sight) if sight.look.negated => {
                        // Groups inside are unset again.
                        if let Some(before) = self.trail.choices.get(sight.choices).copied() {
                            self.undo(before.log);
                        }
                        self.trail.choices.truncate(sight.choices);
                        false
                    }
                    Some(sight) => {
                        self.trail.choices.truncate(sight.choices);
                        (at, place) = (sight.behind, sight.place);
                        true
                    }
                    None => false,
                },
                Inst::Match => {
                    self.notes[1] = place as u32;
                    self.found.copy_from_slice(&self.notes[..program.slots]);
                    return Ok(true);
                }
            };
            if goes_on {
                continue;
            }
            // Back to the last choice.
            loop {
                let Some(choice) = self.trail.choices.pop() else {
                    return Ok(false);
                };
                self.undo(choice.log);
                (at, place) = (choice.at, choice.place);
                if !choice.leaves {
                    break;
                }
                let left = self.trail.sights.pop();
                if left.is_some_and(|sight| sight.look.negated) {
                    break;
                }
            }
        }
    }

    fn common(&self, unit: u32) -> u32 {
        match self.program.ignore_case {
            true => fold::common(unit, self.program.unicode),
            false => unit,
        }
    }

    fn choose(
        &mut self,
        run: &Reading<'_>,
        at: u32,
        place: usize,
        leaves: bool,
    ) -> Result<(), Fault> {
        let choice = Choice {
            at,
            place,
            log: self.trail.log.len(),
            leaves,
        };
        push(run, &mut self.trail.choices, choice)
    }

    /// Sets a saved position until the last choice is tried in another way.
    fn set(&mut self, run: &Reading<'_>, slot: u32, place: u32) -> Result<bool, Fault> {
        let before = std::mem::replace(&mut self.notes[slot as usize], place);
        push(run, &mut self.trail.log, (slot, before))?;
        Ok(true)
    }

    fn undo(&mut self, log: usize) {
        for (slot, before) in self.trail.log.drain(log..).rev() {
            self.notes[slot as usize] = before;
        }
    }

    /// Start and end of a group that has matched.
    fn captured(&self, group: u32) -> Option<(u64, u64)> {
        let at = 2 * group as usize;
        let (start, end) = (self.notes[at], self.notes[at + 1]);
        (start != NONE && end != NONE && start <= end).then_some((start.into(), end.into()))
    }

    /// The place behind the text of a group that stands here again. A group that has not matched
    /// stands everywhere.
    fn again(&self, text: &impl Units, group: u32, place: usize, behind: bool) -> Option<usize> {
        let Some((start, end)) = self.captured(group) else {
            return Some(place);
        };
        let (start, len) = (start as usize, (end - start) as usize);
        let (from, to) = match behind {
            true => (place.checked_sub(len)?, place.checked_sub(len)?),
            false => (place, place + len),
        };
        let alike = |n: usize| {
            let (one, other) = (text.at(start + n), text.at(from + n));
            one == other || one.map(|u| self.common(u)) == other.map(|u| self.common(u))
        };
        (0..len).all(alike).then_some(to)
    }
}
