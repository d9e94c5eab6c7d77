//! Tests of blocks: continuations, ends and links.

use super::*;
use crate::ram::RAM_BASE;

/// Decodes a block of page 0 from words at offsets.
fn block(words: &[(u64, u32)], offset: usize) -> (DecodedCode, u32, Vec<Inst>) {
    let mut ram = Ram::new(2 * PAGE_SIZE);
    for (at, word) in words {
        ram.write_u32(RAM_BASE + at, *word);
    }
    let mut code = DecodedCode::new(ram.size());
    let number = code.build(&ram, 0, offset);
    let slots = code.line(number)[usize::from(first(number))..].to_vec();
    (code, number, slots)
}

const ADDI: u32 = 0x0015_0513;
const JUMP_TO_16: u32 = 0x00c0_006f;
const CALL_TO_32: u32 = 0x0100_00ef;
const BACK_TO_0: u32 = 0xfc05_0ee3;
const RETURN: u32 = 0x0000_8067;

#[test]
fn goes_on_at_jumps_and_behind_branches() {
    let words = [
        (0, ADDI),
        (4, JUMP_TO_16),
        (16, CALL_TO_32),
        (32, ADDI),
        (36, BACK_TO_0),
        (40, RETURN),
    ];
    let (code, number, slots) = block(&words, 0);
    let ops: Vec<Op> = slots.iter().map(|inst| inst.op).collect();
    let expected = [
        Op::Addi,
        Op::AuipcSum,
        Op::Addi,
        Op::Beq,
        Op::End,
        Op::Jalr,
        Op::End,
    ];
    assert_eq!(ops[..7], expected);
    assert_eq!(slots[1].imm, 20);
    assert_eq!(slots[3].imm, 0);
    // The link back is unknown before it is taken.
    assert_eq!(slots[4], exit(NONE, 5, 40));
    assert_eq!(slots[6], exit(CROSS, 6, 44));
    let jalr = code.location(number, first(number) + 5);
    let expected = InstLocation {
        distance: 40,
        length: 4,
        before: 5,
    };
    assert_eq!(jalr, expected);
}

#[test]
fn places_keep_what_they_are_given() {
    for (distance, length, before) in [(-4096, 4, 70), (-2, 2, 0), (0, 4, 1), (4094, 2, 63)] {
        let location = InstLocation {
            distance,
            length,
            before,
        };
        assert_eq!(InstLocation::unpack(location.pack()), location);
    }
}

#[test]
fn exits_lead_to_blocks_that_are_there() {
    let mut ram = Ram::new(PAGE_SIZE);
    for (at, word) in [(0, ADDI), (4, ADDI), (36, BACK_TO_0), (40, RETURN)] {
        ram.write_u32(RAM_BASE + at, word);
    }
    let mut code = DecodedCode::new(ram.size());
    let head = code.build(&ram, 0, 0);
    let after = code.build(&ram, 0, 40);
    let branch = code.build(&ram, 0, 36);
    let slots = &code.line(branch)[usize::from(first(branch))..];
    assert_eq!(slots[1], exit(head, 1, 4));
    assert_eq!(slots[2], exit(after, 1, 4));
    code.link(slot(branch, first(branch) + 1), NONE);
    let slots = &code.line(branch)[usize::from(first(branch))..];
    assert_eq!(slots[1].imm as u32, NONE);
}
