//! Tests of the verifier: an accepted program, every way to break it, and random damage.

mod damage;
mod lines;
mod metering;
pub(crate) mod sample;

use super::*;
use crate::program::{
    ConstIdx, Count, Flag, FunctionIdx, LitOp, MethodIdx, NamesIdx, Number, Op, Reg, Target,
};
use sample::{helper_block, sample};

/// The code with which a changed sample is refused; empty if it is accepted.
fn refusal(change: impl FnOnce(&mut Program)) -> &'static str {
    let mut program = sample();
    change(&mut program);
    check(&program).map_or_else(|e| e.code, |()| "")
}

/// Like [`refusal`], for a change of one instruction of the main program.
fn refusal_of(pc: usize, op: Op) -> &'static str {
    refusal(|p| p.functions[0].code[pc] = op)
}

#[test]
fn the_sample_is_accepted() {
    let artifact = verify(sample()).unwrap();
    let again = artifact.clone();
    assert!(Arc::ptr_eq(artifact.program(), again.program()));
}

#[test]
fn errors_name_their_place() {
    let mut program = sample();
    program.functions[1].code[1] = Op::Add {
        dst: Reg(0),
        l: Reg(9),
        r: Reg(0),
    };
    let error = verify(program).unwrap_err();
    assert_eq!(
        (error.code, error.function, error.pc),
        (codes::BAD_REGISTER, 1, Some(1))
    );
    let text = error.to_string();
    assert!(
        text.starts_with("verify.bad_register: operand l of Add"),
        "{text}"
    );
    assert!(text.ends_with("(function 1, instruction 1)"), "{text}");
    let mut program = sample();
    program.functions.clear();
    let text = verify(program).unwrap_err().to_string();
    assert_eq!(text, "verify.bad_index: there is no main program");
}

#[test]
fn text_must_be_wtf8_in_range() {
    assert_eq!(refusal(|p| p.text.push(0xFF)), codes::BAD_TEXT);
    assert_eq!(refusal(|p| p.keys[0].end = u32::MAX), codes::BAD_TEXT);
    assert_eq!(
        refusal(|p| p.keys[0].start = p.keys[0].end + 1),
        codes::BAD_TEXT
    );
    assert_eq!(refusal(|p| p.ops[0].name.end = 1 << 20), codes::BAD_TEXT);
    assert_eq!(refusal(|p| p.memos[0].body.end = 1 << 20), codes::BAD_TEXT);
    assert_eq!(refusal(|p| p.paths[0][0].end = 1 << 20), codes::BAD_TEXT);
    assert_eq!(refusal(|p| p.args[0].flat.end = 1 << 20), codes::BAD_TEXT);
    assert_eq!(
        refusal(|p| p.outer.push(crate::program::TextRange { start: 9, end: 8 })),
        codes::BAD_TEXT
    );
}

#[test]
fn keys_of_a_shape_differ() {
    assert_eq!(refusal(|p| p.shapes[0][1] = 0), codes::DUPLICATE_KEY);
    assert_eq!(refusal(|p| p.keys[1] = p.keys[0]), codes::DUPLICATE_KEY);
    assert_eq!(refusal(|p| p.shapes[0][1] = 77), codes::BAD_INDEX);
    assert_eq!(
        refusal(|p| p.shapes[0] = Box::new([0])),
        codes::BAD_OPERANDS
    );
}

#[test]
fn overlapping_keys_do_not_cost_quadratic_time() {
    let code = refusal(|p| {
        p.text.resize(1 << 16, b'x');
        let all = crate::program::TextRange {
            start: 0,
            end: 1 << 16,
        };
        p.keys.resize(1 << 12, all);
    });
    assert_eq!(code, codes::TOO_LARGE);
}

#[test]
fn operands_agree_with_their_tables() {
    let call = |n| Op::Call {
        dst: Reg(7),
        base: Reg(0),
        n: Count(n),
        callee: FunctionIdx(1),
    };
    assert_eq!(refusal_of(19, call(1)), "");
    assert_eq!(refusal_of(19, call(2)), codes::BAD_OPERANDS);
    assert_eq!(
        refusal_of(
            19,
            Op::Call {
                dst: Reg(7),
                base: Reg(0),
                n: Count(0),
                callee: FunctionIdx(0)
            }
        ),
        codes::BAD_OPERANDS
    );
    assert_eq!(
        refusal_of(
            1,
            Op::Throw {
                flag: Flag(2),
                k: ConstIdx(1)
            }
        ),
        codes::BAD_OPERANDS
    );
    assert_eq!(
        refusal_of(
            1,
            Op::Throw {
                flag: Flag(0),
                k: ConstIdx(0)
            }
        ),
        codes::BAD_OPERANDS
    );
    assert_eq!(
        refusal_of(
            2,
            Op::NewArr {
                dst: Reg(1),
                cap: Number(1 << 30)
            }
        ),
        codes::BAD_OPERANDS
    );
    assert_eq!(
        refusal_of(
            20,
            Op::RunCode {
                dst: Reg(8),
                base: Reg(0),
                n: Count(1),
                names: NamesIdx(0)
            }
        ),
        codes::BAD_OPERANDS
    );
    assert_eq!(
        refusal_of(
            6,
            Op::IterNext {
                dst: Reg(3),
                it: Reg(2),
                to: Target(11)
            }
        ),
        codes::BAD_OPERANDS
    );
    let method = |id| Op::CheckMethod {
        obj: Reg(0),
        method: MethodIdx(id),
    };
    assert_eq!(refusal_of(9, method(0x4000)), "");
    assert_eq!(refusal_of(9, method(0x7fff)), codes::BAD_INDEX);
    assert_eq!(refusal_of(9, method(1 << 20)), codes::BAD_INDEX);
    assert_eq!(refusal(|p| p.sites[0].inputs = 2), codes::BAD_OPERANDS);
    assert_eq!(refusal(|p| p.sites[0].step = 0), codes::BAD_OPERANDS);
    assert_eq!(refusal(|p| p.sites[0].step = 9), codes::BAD_OPERANDS);
    assert_eq!(refusal(|p| p.sites[0].op = 9), codes::BAD_INDEX);
}

#[test]
fn steps_nest() {
    assert_eq!(
        refusal(|p| p.functions[0].steps[1].parent = 1),
        codes::BAD_STEPS
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps[2].parent = 0),
        codes::BAD_STEPS
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps[2].end = 20),
        codes::BAD_STEPS
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps[2].end = 8),
        codes::BAD_STEPS
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps[0].end = 99),
        codes::BAD_STEPS
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps.swap(1, 2)),
        codes::BAD_STEPS
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps[0].op = 99),
        codes::BAD_INDEX
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps[0].scope = 99),
        codes::BAD_INDEX
    );
    assert_eq!(
        refusal(|p| p.functions[0].steps[0].value = 99),
        codes::BAD_REGISTER
    );
}

#[test]
fn handlers_nest_and_catch() {
    assert_eq!(
        refusal(|p| p.functions[0].handlers[0].target = 11),
        codes::BAD_HANDLERS
    );
    assert_eq!(
        refusal(|p| p.functions[0].handlers[0].end = 99),
        codes::BAD_HANDLERS
    );
    assert_eq!(
        refusal(|p| p.functions[0].handlers[0].end = 16),
        codes::BAD_HANDLERS
    );
    assert_eq!(
        refusal_of(
            9,
            Op::Catch {
                msg: Reg(6),
                op: Reg(7)
            }
        ),
        codes::BAD_HANDLERS
    );
    assert_eq!(
        refusal_of(
            15,
            Op::Mov {
                dst: Reg(7),
                src: Reg(0)
            }
        ),
        codes::BAD_HANDLERS
    );
    assert_eq!(
        refusal_of(13, Op::Jmp { to: Target(14) }),
        codes::BAD_HANDLERS
    );
    assert_eq!(
        refusal_of(
            13,
            Op::JTrue {
                src: Reg(0),
                to: Target(18)
            }
        ),
        codes::BAD_HANDLERS
    );
    let outer = crate::program::Handler {
        start: 2,
        end: 12,
        target: 14,
    };
    assert_eq!(
        refusal(|p| p.functions[0].handlers.insert(0, outer)),
        codes::BAD_HANDLERS
    );
    let halfway = crate::program::Handler {
        start: 2,
        end: 8,
        target: 14,
    };
    assert_eq!(
        refusal(|p| p.functions[0].handlers.push(halfway)),
        codes::BAD_HANDLERS
    );
}

#[test]
fn places_and_locations_exist() {
    assert_eq!(
        refusal(|p| p.functions[0].places[0].pc = 99),
        codes::BAD_PLACE
    );
    let literal = |ops: &[LitOp]| refusal(|p| p.literals[0] = ops.into());
    assert_eq!(literal(&[LitOp::Const(9999)]), codes::BAD_INDEX);
    assert_eq!(literal(&[LitOp::Object(9999)]), codes::BAD_INDEX);
    assert_eq!(literal(&[LitOp::Array(1)]), codes::BAD_LITERAL);
    assert_eq!(literal(&[]), codes::BAD_LITERAL);
    assert_eq!(
        literal(&[LitOp::Const(0), LitOp::Const(0)]),
        codes::BAD_LITERAL
    );
    let reg = |r| crate::program::Location::Reg(r);
    assert_eq!(
        refusal(|p| p.functions[0].scopes[0].vars[0].1 = reg(200)),
        codes::BAD_REGISTER
    );
    let slot = crate::program::Location::Slot(7);
    assert_eq!(
        refusal(|p| p.functions[0].scopes[0].vars[0].1 = slot),
        codes::BAD_INDEX
    );
    assert_eq!(refusal(|p| p.names[0][0].1 = reg(200)), codes::BAD_OPERANDS);
    assert_eq!(
        refusal(|p| p.names[0][0].1 = reg(10)),
        codes::UNWRITTEN_REGISTER
    );
    assert_eq!(
        refusal(|p| p.functions[0].wraps[0].end = 99),
        codes::BAD_STEPS
    );
    assert_eq!(
        refusal(|p| p.functions[0].wraps[0].prefix = 0),
        codes::BAD_INDEX
    );
    assert_eq!(
        refusal(|p| p.functions[0].slots = 1 << 31),
        codes::TOO_LARGE
    );
}

#[test]
fn unreachable_code_needs_no_state_but_valid_operands() {
    let dead = |l| {
        refusal(|p| {
            let f = &mut p.functions[1];
            f.code.insert(
                3,
                Op::Add {
                    dst: Reg(1),
                    l: Reg(l),
                    r: Reg(1),
                },
            );
            f.code.insert(4, Op::Ret { src: Reg(1) });
            f.blocks[0].end = 5;
        })
    };
    assert_eq!(dead(1), "");
    assert_eq!(dead(40), codes::BAD_REGISTER);
    assert_eq!(helper_block(0).start, 0);
}
