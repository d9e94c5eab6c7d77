//! Local checks of blocks and instructions: indexes, registers, counts and jump targets. `flow`
//! checks properties that depend on the path to an instruction.

use super::codes::{
    BAD_BLOCKS, BAD_INDEX, BAD_JUMP, BAD_OPERANDS, BAD_PRICE, BAD_REGISTER, RUNS_OFF, TOO_LARGE,
};
use super::tables::is_text;
use super::{Check, Unit};
use crate::program::ops::Limit;
use crate::program::{Count, MAX_BLOCK, Op, OperandKind, Site};

/// Registers from base that `RunCode` and `AgentRun` read: the program and its arguments.
const INLINE_OPERANDS: Count = Count(2);

/// Jump targets of instructions.
pub(super) struct Jumps {
    /// For each instruction the target block, or `u32::MAX`.
    pub(super) block_of: Vec<u32>,
}

impl Jumps {
    /// The target block of the instruction.
    pub(super) fn target(&self, pc: u32) -> Option<usize> {
        let block = *self.block_of.get(pc as usize)?;
        (block != u32::MAX).then_some(block as usize)
    }

    /// All jumps as instruction and target block.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let all = (0u32..).zip(&self.block_of);
        all.filter(|(_, block)| **block != u32::MAX)
            .map(|(pc, block)| (pc, *block as usize))
    }
}

/// Checks blocks and instructions. Relies on the tables and on the steps.
pub(super) fn check(u: &Unit<'_>) -> Result<Jumps, super::VerifyError> {
    check_frame(u)?;
    check_blocks(u)?;
    let mut jumps = Jumps {
        block_of: vec![u32::MAX; u.f.code.len()],
    };
    for (pc, op) in u.f.code.iter().enumerate() {
        if let Some(block) = check_operands(u, pc, *op)? {
            jumps.block_of[pc] = block;
        }
        check_meaning(u, pc, *op)?;
    }
    check_prices(u, &jumps)?;
    Ok(jumps)
}

fn check_frame(u: &Unit<'_>) -> Check {
    let f = u.f;
    if u32::try_from(f.code.len()).is_err() {
        return Err(u.refuse(
            TOO_LARGE,
            "the function has more than 2^32 - 1 instructions",
        ));
    }
    // The main program has no name.
    if u.index > 0 && !is_text(u.program, f.name) {
        return Err(u.refuse(BAD_INDEX, "the function's name is no text"));
    }
    if f.params > f.registers {
        return Err(u.refuse(BAD_REGISTER, "more parameters than registers"));
    }
    if u.index == 0 && usize::from(f.params) > u.program.outer.len() {
        return Err(u.refuse(BAD_OPERANDS, "nobody passes parameters to the main program"));
    }
    // A slot without an instruction that names it only wastes memory.
    if f.slots as usize > f.code.len() {
        return Err(u.refuse(TOO_LARGE, "more frame slots than instructions"));
    }
    match f.code.last() {
        Some(op) if op.is_terminal() => Ok(()),
        Some(_) => Err(u.refuse_at(RUNS_OFF, f.code.len() - 1, "the code runs off its end")),
        None => Err(u.refuse(RUNS_OFF, "the function has no code")),
    }
}

/// Checks that blocks cover the code in order, that none is too long, and that each has its own
/// `Fuel` at its head and nowhere else.
fn check_blocks(u: &Unit<'_>) -> Check {
    let mut next = 0;
    for (number, block) in u.f.blocks.iter().enumerate() {
        if block.start != next || block.end <= block.start || block.end > u.len() {
            return Err(u.refuse(
                BAD_BLOCKS,
                format!("block {number} does not follow its predecessor"),
            ));
        }
        match u.f.code[block.start as usize] {
            Op::Fuel { block } if block.at() == number => {}
            _ => {
                return Err(u.refuse_at(
                    BAD_BLOCKS,
                    block.start,
                    "the block does not start with its Fuel",
                ));
            }
        }
        if block.end - block.start > MAX_BLOCK {
            return Err(u.refuse_at(
                BAD_BLOCKS,
                block.start,
                format!("the block has more than {MAX_BLOCK} instructions"),
            ));
        }
        next = block.end;
    }
    if next != u.len() {
        return Err(u.refuse_at(BAD_BLOCKS, next, "code outside all blocks"));
    }
    let fuels =
        u.f.code
            .iter()
            .filter(|op| matches!(op, Op::Fuel { .. }))
            .count();
    if fuels != u.f.blocks.len() {
        return Err(u.refuse(BAD_BLOCKS, "Fuel inside a block"));
    }
    Ok(())
}

/// The block that starts at an instruction.
pub(super) fn block_at(u: &Unit<'_>, pc: u32) -> Option<usize> {
    u.f.blocks.binary_search_by_key(&pc, |b| b.start).ok()
}

/// Checks that each operand is inside its table, and returns the target block of a jump.
fn check_operands(u: &Unit<'_>, pc: usize, op: Op) -> Result<Option<u32>, super::VerifyError> {
    use OperandKind as K;
    let mut base = 0;
    let mut jump = None;
    for (name, kind, value) in op.operands().iter() {
        let fits = match kind.limit(u.program, u.f, value) {
            Limit::Below(limit) => (value as usize) < limit,
            Limit::None => true,
            Limit::Range if kind == K::Count => base + value <= u32::from(u.f.registers),
            Limit::Range => {
                base = value;
                true
            }
        };
        if !fits {
            return Err(operand_error(u, pc, op, name, kind, value));
        }
        if kind == K::Target {
            let Some(block) = block_at(u, value) else {
                let message = format!("jump to {value}, which heads no block");
                return Err(u.refuse_at(BAD_JUMP, pc, message));
            };
            jump = u32::try_from(block).ok();
        }
    }
    Ok(jump)
}

fn operand_error(
    u: &Unit<'_>,
    pc: usize,
    op: Op,
    name: &str,
    kind: OperandKind,
    value: u32,
) -> super::VerifyError {
    use OperandKind as K;
    let code = match kind {
        K::Count => BAD_REGISTER,
        _ if kind.is_register() => BAD_REGISTER,
        K::Target => BAD_JUMP,
        K::Flag => BAD_OPERANDS,
        _ => BAD_INDEX,
    };
    let message = format!("operand {name} of {op:?} is out of range: {value}");
    u.refuse_at(code, pc, message)
}

/// Checks that operands agree with each other and with the entries they name. Requires valid
/// indexes.
fn check_meaning(u: &Unit<'_>, pc: usize, op: Op) -> Check {
    let p = u.program;
    let agree = match op {
        Op::NewObj { n, shape, .. } => n.at() == p.shapes[shape.at()].len(),
        // Capacity announces later instructions and must not request extra memory.
        Op::NewArr { cap, .. } => cap.0 <= u.len(),
        Op::CallMethod { n, .. } => n.0 >= 1,
        Op::MemoKey { n, memo, .. } => n.at() == p.memos[memo.at()].free.len(),
        Op::Call { n, callee, .. } => callee.0 > 0 && n.0 == p.functions[callee.at()].params,
        Op::IterNext { dst, it, .. } => dst != it && dst.at() != it.at() + 1,
        Op::Throw { k, .. } | Op::ThrowUnbound { k, .. } | Op::IterInit { k, .. } => {
            is_text(p, k.0)
        }
        Op::BadMethod { name, .. } | Op::CheckConst { name, .. } | Op::CheckFree { name, .. } => {
            is_text(p, name.0)
        }
        Op::RunCode { n, names, .. } => {
            let locations = &u.facts.names[names.at()];
            n == INLINE_OPERANDS
                && locations.register_end <= u32::from(u.f.registers)
                && locations.slot_end <= u64::from(u.f.slots)
        }
        Op::CallAtom { n, site, .. } | Op::PrepareCall { n, site, .. } => {
            return check_site(u, pc, n, &p.sites[site.at()]);
        }
        Op::AgentRun {
            n: INLINE_OPERANDS,
            site,
            ..
        } => {
            return check_site(u, pc, INLINE_OPERANDS, &p.sites[site.at()]);
        }
        Op::AgentRun { .. } => false,
        _ => true,
    };
    if agree {
        return Ok(());
    }
    Err(u.refuse_at(
        BAD_OPERANDS,
        pc,
        format!("operands of {op:?} contradict what they name"),
    ))
}

/// True for an op that no step can name.
fn is_internal(u: &Unit<'_>, op: u32) -> bool {
    let name = u
        .program
        .ops
        .get(op as usize)
        .map(|op| u.program.text(op.name));
    name.is_some_and(|name| name.contains(&b':') || name == b"transpileCode")
}

/// Checks that a call of an atom is inside the step that pays for it.
fn check_site(u: &Unit<'_>, pc: usize, n: Count, site: &Site) -> Check {
    let pays = u.f.steps.get(site.step as usize).is_some_and(|step| {
        // A form may call an internal atom on behalf of its own step.
        let own = step.op == site.op || is_internal(u, site.op);
        own && (step.start as usize..step.end as usize).contains(&pc)
    });
    if pays && n.0 == site.inputs {
        return Ok(());
    }
    Err(u.refuse_at(BAD_OPERANDS, pc, "the call site does not fit the call"))
}

/// Checks that prices are the sums of the charges, and that no charge pays for code that a jump
/// inside the block skips.
fn check_prices(u: &Unit<'_>, jumps: &Jumps) -> Check {
    let mut at = 0;
    for (number, block) in u.f.blocks.iter().enumerate() {
        if block.charges as usize != at {
            return Err(u.refuse(
                BAD_PRICE,
                format!("block {number} has the wrong first charge"),
            ));
        }
        let leaves = |pc: &u32| u.f.code[*pc as usize].is_terminal() || jumps.target(*pc).is_some();
        let exit = (block.start..block.end).find(leaves).unwrap_or(u32::MAX);
        let mut price = 0i64;
        while let Some(charge) = u.f.charges.get(at).filter(|c| c.pc < block.end) {
            if charge.pc < block.start || charge.step as usize >= u.f.steps.len() {
                return Err(u.refuse_at(BAD_PRICE, charge.pc, "a charge is misplaced"));
            }
            if charge.pc > exit {
                return Err(u.refuse_at(
                    BAD_PRICE,
                    charge.pc,
                    "a charge behind a jump of its block",
                ));
            }
            price = price.saturating_add(u.program.default_price(u.f, charge));
            at += 1;
        }
        if price != block.price {
            let message = format!("block {number} claims {} and costs {price}", block.price);
            return Err(u.refuse_at(BAD_PRICE, block.start, message));
        }
    }
    if at != u.f.charges.len() {
        return Err(u.refuse(BAD_PRICE, "a charge outside the code"));
    }
    let sorted = u.f.charges.windows(2).all(|w| w[0].pc <= w[1].pc);
    if sorted {
        Ok(())
    } else {
        Err(u.refuse(BAD_PRICE, "charges are not in order of the code"))
    }
}
