//! A Pike VM: matching with captures in linear time. It runs all threads at once, each with
//! the positions of its groups, in the priority of a backtracking matcher.
//!
//! Of two threads in the same state the first wins, so a unit costs at most two visits of
//! each state. Two, because JavaScript refuses an iteration of a repetition that matched the
//! empty string (ECMA-262 §22.2.2.3.1): whether a thread consumed a unit since its iteration
//! began is part of its state.

use super::back::Trail;
use super::captures::{Inst, NONE, Program};
use super::fold::{self, Folded};
use super::program::holds;
use crate::heap::Oom;
use crate::native::{Fault, Reading};
use a99_core::costs::UNIT;

/// Work per visit of an instruction.
const LOOK_WORK: i64 = 4;

/// Units skipped between two yield points.
const SKIPPED: usize = 4 << 10;

/// The units of a text, or its code points.
pub(crate) trait Units {
    /// The unit at a position.
    fn at(&self, place: usize) -> Option<u32>;
}

impl Units for &[u8] {
    #[inline]
    fn at(&self, place: usize) -> Option<u32> {
        self.get(place).map(|byte| u32::from(*byte))
    }
}

impl Units for Vec<u16> {
    #[inline]
    fn at(&self, place: usize) -> Option<u32> {
        self.get(place).map(|unit| u32::from(*unit))
    }
}

/// Code points, for the flag `u`.
impl Units for Vec<u32> {
    #[inline]
    fn at(&self, place: usize) -> Option<u32> {
        self.get(place).copied()
    }
}

/// A pending task of the state exploration.
#[derive(Copy, Clone, Debug)]
enum Frame {
    /// Visit an instruction; the flag is set if the iteration consumed a unit.
    Look(u32, bool),
    /// Restore a saved position.
    Restore(u32, u32),
}

/// A unit with its derived properties.
#[derive(Copy, Clone)]
struct Here {
    place: usize,
    before: Option<u32>,
    unit: Option<u32>,
    /// Its common form, if case is ignored.
    common: u32,
    alike: Folded,
}

/// Active threads: their states, and their saved positions.
#[derive(Debug, Default)]
struct Ways {
    states: Vec<(u32, bool)>,
    notes: Vec<u32>,
}

/// The state shared by all searches of a text.
pub(crate) struct Machine<'p> {
    pub(super) program: &'p Program,
    /// Price of a unit that is not skipped, in micro-units.
    price: i64,
    /// Weight of a unit, and the work left.
    weight: u64,
    pub(super) left: u64,
    now: Ways,
    next: Ways,
    /// The last step at which each state was visited.
    seen: Vec<u32>,
    step: u32,
    todo: Vec<Frame>,
    /// Saved positions of the current thread.
    pub(super) notes: Vec<u32>,
    /// Ways back of the backtracking matcher.
    pub(super) trail: Trail,
    /// Saved positions of the best match.
    pub(crate) found: Vec<u32>,
    looks: i64,
}

/// Why a search ended early.
pub(crate) enum Halt {
    /// A fault of the run or the instruction.
    Fault(Fault),
    /// The work limit is reached.
    TooCostly,
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Halt {
        Halt::Fault(fault)
    }
}

impl<'p> Machine<'p> {
    /// # Errors
    /// Memory.
    pub(crate) fn new(
        run: &Reading<'_>,
        program: &'p Program,
        (price, weight, most): (i64, u64, u64),
    ) -> Result<Machine<'p>, Fault> {
        let states = program.code.len() * if program.has_turns { 2 } else { 1 };
        run.heap().check(states * size_of::<u32>())?;
        Ok(Machine {
            program,
            price,
            weight,
            left: most,
            now: Ways::default(),
            next: Ways::default(),
            seen: vec![0; states],
            step: 0,
            todo: Vec::new(),
            notes: vec![NONE; program.slots + program.depth as usize],
            trail: Trail::default(),
            found: vec![NONE; program.slots],
            looks: 0,
        })
    }

    /// Finds the first match that begins at or after `from`, or just there with the flag `y`,
    /// and saves its positions.
    ///
    /// # Errors
    /// Fuel, memory, a stop; the work limit.
    pub(crate) fn find(
        &mut self,
        run: &mut Reading<'_>,
        text: &impl Units,
        from: usize,
        sticky: bool,
    ) -> Result<bool, Halt> {
        if self.program.backtracks {
            return self.find_back(run, text, from, sticky);
        }
        self.now.states.clear();
        self.now.notes.clear();
        let mut place = from;
        let mut found = false;
        loop {
            if self.now.states.is_empty() {
                if found || sticky && place > from {
                    return Ok(found);
                }
                if !sticky {
                    place = self.pass(run, text, place)?;
                }
            }
            let unit = text.at(place);
            if unit.is_some() {
                self.left = self.left.checked_sub(self.weight).ok_or(Halt::TooCostly)?;
                run.pay_metered(self.price)?;
            }
            let begin = !found && (!sticky || place == from);
            found |= self.advance(run, text, place, begin)?;
            run.work(std::mem::take(&mut self.looks) * LOOK_WORK)?;
            if unit.is_none() {
                return Ok(found);
            }
            std::mem::swap(&mut self.now, &mut self.next);
            self.next.states.clear();
            self.next.notes.clear();
            place += 1;
        }
    }

    /// Skips units at which no match can begin.
    pub(super) fn pass(
        &mut self,
        run: &mut Reading<'_>,
        text: &impl Units,
        from: usize,
    ) -> Result<usize, Halt> {
        let Some(first) = self.program.first else {
            return Ok(from);
        };
        let mut place = from;
        loop {
            let part = place;
            while place - part < SKIPPED
                && let Some(unit) = text.at(place)
                && !first.has(unit)
            {
                place += 1;
            }
            let passed = place - part;
            self.left = self
                .left
                .checked_sub(passed as u64)
                .ok_or(Halt::TooCostly)?;
            run.pay_metered(passed as i64 * UNIT)?;
            run.work(passed as i64)?;
            if passed < SKIPPED {
                return Ok(place);
            }
        }
    }

    /// Advances all threads past a unit, and starts a new thread if `begin` is set.
    fn advance(
        &mut self,
        run: &mut Reading<'_>,
        text: &impl Units,
        place: usize,
        begin: bool,
    ) -> Result<bool, Fault> {
        let unit = text.at(place);
        let code = unit.unwrap_or(0);
        let (folds, unicode) = (self.program.ignore_case, self.program.unicode);
        let here = Here {
            place,
            before: place.checked_sub(1).and_then(|before| text.at(before)),
            unit,
            common: if folds {
                fold::common(code, unicode)
            } else {
                code
            },
            alike: match folds {
                true => Folded::of(code, unicode),
                false => Folded::only(code),
            },
        };
        self.step += 1;
        let slots = self.program.slots;
        for way in 0..self.now.states.len() {
            let from = way * slots;
            self.notes[..slots].copy_from_slice(&self.now.notes[from..from + slots]);
            let (at, took) = self.now.states[way];
            if self.explore(run, (at, took), &here)? {
                return Ok(true);
            }
        }
        if !begin {
            return Ok(false);
        }
        self.notes.fill(NONE);
        self.notes[0] = place as u32;
        self.explore(run, (0, false), &here)
    }

    /// Explores a state to all states that consume the unit. Returns whether the pattern
    /// matches, which ends all threads of lower priority.
    fn explore(
        &mut self,
        run: &mut Reading<'_>,
        from: (u32, bool),
        here: &Here,
    ) -> Result<bool, Fault> {
        let program = self.program;
        self.todo.push(Frame::Look(from.0, from.1));
        while let Some(frame) = self.todo.pop() {
            let (mut at, mut took) = match frame {
                Frame::Look(at, took) => (at, took),
                Frame::Restore(slot, place) => {
                    self.notes[slot as usize] = place;
                    continue;
                }
            };
            loop {
                let state = match program.has_turns {
                    true => 2 * at as usize + usize::from(took),
                    false => at as usize,
                };
                if std::mem::replace(&mut self.seen[state], self.step) == self.step {
                    break;
                }
                self.looks += 1;
                match program.code[at as usize] {
                    Inst::Unit(wanted) => {
                        if here.unit.is_some() && here.common == wanted {
                            self.take(run, at + 1)?;
                        }
                        break;
                    }
                    Inst::Set(set) => {
                        let set = &program.sets[set as usize];
                        let has = |unit| match program.ignore_case {
                            true => set.has_folded(unit, &here.alike),
                            false => set.has(unit),
                        };
                        if here.unit.is_some_and(has) {
                            self.take(run, at + 1)?;
                        }
                        break;
                    }
                    Inst::Assert(assertion) => {
                        if !holds(assertion, here.before, here.unit) {
                            break;
                        }
                        at += 1;
                    }
                    Inst::Split(first, second) => {
                        push(run, &mut self.todo, Frame::Look(second, took))?;
                        at = first;
                    }
                    Inst::Jump(to) => at = to,
                    Inst::Save(slot) => {
                        self.note(run, slot, here.place as u32)?;
                        at += 1;
                    }
                    Inst::Reset(from, to) => {
                        self.looks += i64::from(to - from);
                        for slot in from..to {
                            if self.notes[slot as usize] != NONE {
                                self.note(run, slot, NONE)?;
                            }
                        }
                        at += 1;
                    }
                    Inst::Enter(_) => {
                        took = false;
                        at += 1;
                    }
                    Inst::Progress(_) => {
                        if !took {
                            break;
                        }
                        at += 1;
                    }
                    // Programs with these backtrack.
                    Inst::Back | Inst::Reference(..) | Inst::Look(..) | Inst::Seen => break,
                    Inst::Match => {
                        self.notes[1] = here.place as u32;
                        self.found.copy_from_slice(&self.notes[..program.slots]);
                        self.todo.clear();
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Saves a position until the states reachable from here are explored.
    #[inline]
    fn note(&mut self, run: &Reading<'_>, slot: u32, place: u32) -> Result<(), Fault> {
        let before = std::mem::replace(&mut self.notes[slot as usize], place);
        push(run, &mut self.todo, Frame::Restore(slot, before))
    }

    /// Adds the current thread to those that consume the unit.
    #[inline]
    fn take(&mut self, run: &Reading<'_>, at: u32) -> Result<(), Fault> {
        let slots = self.program.slots;
        self.looks += slots as i64 / 8;
        push(run, &mut self.next.states, (at, true))?;
        if self.next.notes.capacity() - self.next.notes.len() < slots {
            let wanted = 2 * (self.next.notes.len() + slots) * size_of::<u32>();
            // Both lists of threads grow alike.
            run.heap().check(2 * wanted)?;
            let more = self.next.notes.len() + slots;
            self.next
                .notes
                .try_reserve(more)
                .map_err(|_| Oom { wanted })?;
        }
        self.next.notes.extend_from_slice(&self.notes[..slots]);
        Ok(())
    }
}

/// Appends to a list outside the heap.
#[inline]
pub(super) fn push<T>(run: &Reading<'_>, list: &mut Vec<T>, item: T) -> Result<(), Fault> {
    if list.len() == list.capacity() {
        grow(run, list)?;
    }
    list.push(item);
    Ok(())
}

#[cold]
fn grow<T>(run: &Reading<'_>, list: &mut Vec<T>) -> Result<(), Fault> {
    let more = list.len().max(16);
    let wanted = (list.len() + more) * size_of::<T>();
    run.heap().check(wanted)?;
    list.try_reserve_exact(more).map_err(|_| Oom { wanted })?;
    Ok(())
}
