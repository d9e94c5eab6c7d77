//! Damaged programs: a program that the verifier accepts must run.

use super::{ENGINE, little};
use a99_core::program::{Op, Program};
use a99_core::value::Value;
use a99_core::verify::verify;
use agent99::Capabilities;

/// Compiles a program, damages it by the bytes (four for each place), and runs it if the
/// verifier accepts it.
///
/// # Panics
/// If any step panics.
pub(super) fn damaged(program: &Value, damage: &[u8]) {
    let Ok(agent) = ENGINE.compile_value(program) else {
        return;
    };
    let mut program = Program::clone(agent.artifact().program());
    for piece in damage.chunks_exact(4) {
        one(&mut program, piece);
    }
    let _ = a99_core::disasm::disassemble(&program);
    let Ok(artifact) = verify(program) else {
        return;
    };
    let Ok(agent) = ENGINE.link(&artifact) else {
        return;
    };
    little(&agent, Capabilities::none());
}

fn one(p: &mut Program, piece: &[u8]) {
    let (what, place, byte, word) = (piece[0], usize::from(piece[1]), piece[2], piece[3]);
    let at = place % p.functions.len().max(1);
    let Some(f) = p.functions.get_mut(at) else {
        return;
    };
    let pc = (place + 256 * usize::from(word & 3)) % f.code.len().max(1);
    match what % 12 {
        0..=4 => {
            let Some(op) = f.code.get_mut(pc) else { return };
            let mut bytes = op.encode();
            bytes[usize::from(word) % 8] = byte;
            if let Some(other) = Op::decode(bytes) {
                *op = other;
            }
        }
        5 if !f.code.is_empty() => {
            let other = usize::from(byte) % f.code.len();
            f.code.swap(pc, other);
        }
        6 => {
            let n = usize::from(byte) % f.blocks.len().max(1);
            if let Some(b) = f.blocks.get_mut(n) {
                *[&mut b.start, &mut b.end, &mut b.charges][place % 3] = u32::from(word);
            }
        }
        7 => {
            let n = usize::from(byte) % f.charges.len().max(1);
            if let Some(c) = f.charges.get_mut(n) {
                *[&mut c.pc, &mut c.step][place % 2] = u32::from(word);
            }
        }
        8 => {
            let n = usize::from(byte) % f.handlers.len().max(1);
            if let Some(h) = f.handlers.get_mut(n) {
                *[&mut h.start, &mut h.end, &mut h.target][place % 3] = u32::from(word);
            }
        }
        9 => {
            let n = usize::from(byte) % f.steps.len().max(1);
            if let Some(s) = f.steps.get_mut(n) {
                *[&mut s.parent, &mut s.start, &mut s.end, &mut s.op][place % 4] = u32::from(word);
            }
        }
        10 => f.registers = byte,
        _ => {
            if let Some(k) = p.consts.len().checked_sub(1 + usize::from(byte) % 4) {
                p.consts.truncate(k);
            }
        }
    }
}
