//! Checks of code ranges: steps, handlers, prefixes, places and scopes. Also checks that a step is
//! entered only at its head, where it is charged.

use super::code::{Jumps, block_at};
use super::codes::{
    BAD_HANDLERS, BAD_INDEX, BAD_PLACE, BAD_PRICE, BAD_REGISTER, BAD_STEPS, UNCHARGED_STEP,
};
use super::ranges::first_holder;
use super::tables::is_text;
use super::{Check, Unit, VerifyError};
use crate::program::{ChargeKind, Location, Op, Step};

/// [`Step::value`] of a step without a value, and [`Step::parent`] of an outermost step.
const NO_REGISTER: u8 = u8::MAX;
const NO_STEP: u32 = u32::MAX;

/// Most `Fuel`s between a step's first instruction and the one with its charge: its own head, and
/// that of a loop it begins with.
const MAX_HEADS: u32 = 2;

/// Error handlers by instruction.
pub(super) struct Handlers {
    /// For each instruction the block that handles its errors, or `u32::MAX`; empty without
    /// handlers.
    pub(super) block_of: Vec<u32>,
}

/// Checks that steps are in preorder, properly nested, and refer to existing entries.
pub(super) fn check_steps(u: &Unit<'_>) -> Check {
    let mut open: Vec<u32> = Vec::new();
    let mut last_start = 0;
    for (number, step) in (0u32..).zip(&u.f.steps) {
        if step.start >= step.end || step.end > u.len() || step.start < last_start {
            return Err(u.refuse(BAD_STEPS, format!("step {number} has an impossible range")));
        }
        last_start = step.start;
        while open
            .last()
            .is_some_and(|top| u.f.steps[*top as usize].end <= step.start)
        {
            open.pop();
        }
        let parent = open.last().copied().unwrap_or(NO_STEP);
        let fits = parent == NO_STEP || step.end <= u.f.steps[parent as usize].end;
        if step.parent != parent || !fits {
            return Err(u.refuse(BAD_STEPS, format!("step {number} is not inside its parent")));
        }
        open.push(number);
        check_step_names(u, number, step)?;
    }
    Ok(())
}

fn check_step_names(u: &Unit<'_>, number: u32, step: &Step) -> Check {
    if step.op as usize >= u.program.ops.len() {
        return Err(u.refuse(BAD_INDEX, format!("step {number} names op {}", step.op)));
    }
    if step.scope as usize >= u.f.scopes.len() {
        return Err(u.refuse(
            BAD_INDEX,
            format!("step {number} names scope {}", step.scope),
        ));
    }
    if step.value != NO_REGISTER && step.value >= u.f.registers {
        return Err(u.refuse(
            BAD_REGISTER,
            format!("step {number} has its value in r{}", step.value),
        ));
    }
    Ok(())
}

/// Checks all other ranges. Requires checked steps, blocks and instructions.
pub(super) fn check(u: &Unit<'_>, jumps: &Jumps) -> Result<Handlers, VerifyError> {
    check_scopes(u)?;
    check_places(u)?;
    check_wraps(u)?;
    let heads = check_handlers(u)?;
    check_handler_entries(u, jumps, &heads)?;
    check_nesting(u)?;
    check_charged_steps(u)?;
    check_step_entries(u, jumps)?;
    if u.f.handlers.is_empty() {
        return Ok(Handlers {
            block_of: Vec::new(),
        });
    }
    let ranges = u.f.handlers.iter().map(|h| (h.start, h.end));
    let mut block_of = first_holder(u.f.code.len(), ranges);
    for at in &mut block_of {
        if *at != u32::MAX {
            *at = heads.target_block[*at as usize];
        }
    }
    Ok(Handlers { block_of })
}

fn check_scopes(u: &Unit<'_>) -> Check {
    for (name, location) in u.f.scopes.iter().flat_map(|s| &s.vars) {
        if !is_text(u.program, *name) {
            return Err(u.refuse(BAD_INDEX, "the name of a variable is no text"));
        }
        match *location {
            Location::Reg(r) if r >= u.f.registers => {
                return Err(u.refuse(BAD_REGISTER, format!("a variable in r{r}")));
            }
            Location::Slot(s) if s >= u.f.slots => {
                return Err(u.refuse(BAD_INDEX, format!("a variable in slot {s}")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_places(u: &Unit<'_>) -> Check {
    if u.f.places.windows(2).any(|w| w[0].pc > w[1].pc) {
        return Err(u.refuse(BAD_PLACE, "places are not in order of the code"));
    }
    if let Some(place) = u.f.places.iter().find(|place| place.pc >= u.len()) {
        return Err(u.refuse_at(BAD_PLACE, place.pc, "a place outside the code"));
    }
    Ok(())
}

fn check_wraps(u: &Unit<'_>) -> Check {
    for wrap in &u.f.wraps {
        if wrap.start >= wrap.end || wrap.end > u.len() {
            return Err(u.refuse(BAD_STEPS, "a prefixed range outside the code"));
        }
        if !is_text(u.program, wrap.prefix) {
            return Err(u.refuse(BAD_INDEX, "a prefix that is no text"));
        }
    }
    Ok(())
}

/// The blocks that handlers begin with.
struct Heads {
    /// For each handler its first block.
    target_block: Vec<u32>,
    /// For each block, whether a handler begins with it.
    is_head: Vec<bool>,
}

/// Checks that handlers are inside the code, and that their blocks begin with `Catch`, which occurs
/// nowhere else.
fn check_handlers(u: &Unit<'_>) -> Result<Heads, VerifyError> {
    let mut heads = Heads {
        target_block: Vec::new(),
        is_head: vec![false; u.f.blocks.len()],
    };
    for (number, h) in u.f.handlers.iter().enumerate() {
        let block = block_at(u, h.target);
        let outside = h.start >= h.end || h.end > u.len() || (h.start..h.end).contains(&h.target);
        let (Some(block), false) = (block, outside) else {
            return Err(u.refuse(
                BAD_HANDLERS,
                format!("handler {number} has an impossible range or target"),
            ));
        };
        let second = u.f.blocks[block].start as usize + 1;
        let catches =
            second < u.f.blocks[block].end as usize && matches!(u.f.code[second], Op::Catch { .. });
        if !catches {
            return Err(u.refuse_at(
                BAD_HANDLERS,
                h.target,
                "a handler does not begin with Catch",
            ));
        }
        heads
            .target_block
            .push(u32::try_from(block).unwrap_or(u32::MAX));
        heads.is_head[block] = true;
    }
    let catches =
        u.f.code
            .iter()
            .filter(|op| matches!(op, Op::Catch { .. }))
            .count();
    if catches != heads.is_head.iter().filter(|h| **h).count() {
        return Err(u.refuse(BAD_HANDLERS, "Catch outside the head of a handler"));
    }
    Ok(heads)
}

/// Checks that only errors enter a handler, so `Catch` always finds one.
fn check_handler_entries(u: &Unit<'_>, jumps: &Jumps, heads: &Heads) -> Check {
    if u.f.handlers.is_empty() {
        return Ok(());
    }
    for (block, _) in
        u.f.blocks
            .iter()
            .zip(&heads.is_head)
            .filter(|(_, head)| **head)
    {
        let before = block.start.checked_sub(1).map(|pc| u.f.code[pc as usize]);
        if !before.is_some_and(Op::is_terminal) {
            return Err(u.refuse_at(BAD_HANDLERS, block.start, "code runs into a handler"));
        }
    }
    match jumps.iter().find(|(_, block)| heads.is_head[*block]) {
        Some((pc, _)) => Err(u.refuse_at(BAD_HANDLERS, pc, "a jump into a handler")),
        None => Ok(()),
    }
}

/// Checks that handlers do not overlap partially, and that inner ones come first.
fn check_nesting(u: &Unit<'_>) -> Check {
    let mut order: Vec<usize> = (0..u.f.handlers.len()).collect();
    let key = |i: usize| {
        (
            u.f.handlers[i].start,
            u32::MAX - u.f.handlers[i].end,
            usize::MAX - i,
        )
    };
    order.sort_unstable_by_key(|i| key(*i));
    let mut open: Vec<usize> = Vec::new();
    for number in order {
        let h = u.f.handlers[number];
        while open
            .last()
            .is_some_and(|top| u.f.handlers[*top].end <= h.start)
        {
            open.pop();
        }
        if open
            .last()
            .is_some_and(|top| u.f.handlers[*top].end < h.end || *top < number)
        {
            return Err(u.refuse(
                BAD_HANDLERS,
                format!("handler {number} is not nested in its outer one"),
            ));
        }
        open.push(number);
    }
    Ok(())
}

/// Checks that a step is charged at its head and at most once, and that a step that calls an atom
/// is charged.
fn check_charged_steps(u: &Unit<'_>) -> Check {
    let mut charged = vec![false; u.f.steps.len()];
    for charge in u.f.charges.iter().filter(|c| c.kind == ChargeKind::Step) {
        let start = u.f.steps[charge.step as usize].start;
        let heads = charge.pc.checked_sub(start).is_some_and(|n| n <= MAX_HEADS)
            && (start..charge.pc).all(|pc| matches!(u.f.code[pc as usize], Op::Fuel { .. }));
        if !heads || std::mem::replace(&mut charged[charge.step as usize], true) {
            let message = format!("step {} is not charged once and at its head", charge.step);
            return Err(u.refuse_at(BAD_PRICE, charge.pc, message));
        }
    }
    for (pc, op) in u.f.code.iter().enumerate() {
        let (Op::CallAtom { site, .. } | Op::PrepareCall { site, .. } | Op::AgentRun { site, .. }) =
            *op
        else {
            continue;
        };
        if !charged[u.program.sites[site.at()].step as usize] {
            return Err(u.refuse_at(UNCHARGED_STEP, pc, "the step that calls is never charged"));
        }
    }
    Ok(())
}

/// For each step the innermost enclosing step that begins earlier.
fn earlier_steps(steps: &[Step]) -> Vec<u32> {
    let mut earlier: Vec<u32> = Vec::with_capacity(steps.len());
    for step in steps {
        earlier.push(match steps.get(step.parent as usize) {
            Some(parent) if parent.start == step.start => earlier[step.parent as usize],
            _ => step.parent,
        });
    }
    earlier
}

/// Checks that jumps and errors enter a step at its first instruction only. Fall-through always
/// does.
fn check_step_entries(u: &Unit<'_>, jumps: &Jumps) -> Check {
    let steps = &u.f.steps;
    let earlier = earlier_steps(steps);
    // Steps are in preorder, so in reverse order the innermost step comes first.
    let ranges = steps.iter().rev().map(|s| (s.start, s.end));
    let from_last = first_holder(u.f.code.len(), ranges);
    let innermost = |pc: u32| {
        let n = from_last[pc as usize];
        (n != u32::MAX).then(|| steps.len() - 1 - n as usize)
    };
    let enters_at_head = |from: (u32, u32), to: u32| {
        let Some(step) = innermost(to) else {
            return true;
        };
        let around = if steps[step].start == to {
            earlier[step]
        } else {
            step as u32
        };
        steps
            .get(around as usize)
            .is_none_or(|s| s.start <= from.0 && from.1 <= s.end)
    };
    for (pc, block) in jumps.iter() {
        if !enters_at_head((pc, pc + 1), u.f.blocks[block].start) {
            return Err(u.refuse_at(UNCHARGED_STEP, pc, "a jump into the middle of a step"));
        }
    }
    for h in &u.f.handlers {
        if !enters_at_head((h.start, h.end), h.target) {
            return Err(u.refuse_at(
                UNCHARGED_STEP,
                h.target,
                "a handler in the middle of a step",
            ));
        }
    }
    Ok(())
}
