//! The op table: every instruction of the register machine.
//!
//! Encoding, decoding, operand lists, successors, disassembly and `docs/bytecode.md` derive from
//! this table and that of [`OperandKind`]s. An instruction is eight bytes: opcode, up to three byte
//! operands, and one 32-bit operand (little-endian). A new instruction needs a row here and an arm
//! in the machine's loop.

use super::{Function, Program};
use crate::builtins;
use std::fmt;

/// The encoding of an operand.
trait OperandType: Copy {
    /// True if the operand is one of the bytes after the opcode.
    const BYTE: bool;
    fn put(self, bytes: &mut [u8; 8], at: &mut usize);
    fn take(bytes: [u8; 8], at: &mut usize) -> Self;
    fn number(self) -> u32;
}

impl OperandType for u8 {
    const BYTE: bool = true;
    fn put(self, bytes: &mut [u8; 8], at: &mut usize) {
        bytes[*at] = self;
        *at += 1;
    }
    fn take(bytes: [u8; 8], at: &mut usize) -> u8 {
        *at += 1;
        bytes[*at - 1]
    }
    fn number(self) -> u32 {
        u32::from(self)
    }
}

impl OperandType for u32 {
    const BYTE: bool = false;
    fn put(self, bytes: &mut [u8; 8], _: &mut usize) {
        bytes[4..].copy_from_slice(&self.to_le_bytes());
    }
    fn take(bytes: [u8; 8], _: &mut usize) -> u32 {
        u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])
    }
    fn number(self) -> u32 {
        self
    }
}

macro_rules! operand_types {
    ($( $(#[doc = $doc:literal])+ $name:ident($number:ident) )*) => { $(
        $(#[doc = $doc])+
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $number);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $name {
            /// The number as an index.
            #[inline]
            #[must_use]
            pub const fn at(self) -> usize {
                self.0 as usize
            }
        }

        impl OperandType for $name {
            const BYTE: bool = <$number>::BYTE;
            fn put(self, bytes: &mut [u8; 8], at: &mut usize) {
                self.0.put(bytes, at);
            }
            fn take(bytes: [u8; 8], at: &mut usize) -> Self {
                $name(<$number>::take(bytes, at))
            }
            fn number(self) -> u32 {
                self.0.number()
            }
        }
    )* };
}

operand_types! {
    /// A register of the frame.
    Reg(u8)
    /// Number of registers in a range.
    Count(u8)
    /// 0 or 1.
    Flag(u8)
    /// A constant of the program.
    ConstIdx(u32)
    /// A literal of the program.
    LiteralIdx(u32)
    /// An argument key of the program.
    ArgIdx(u32)
    /// An object key of the program.
    KeyIdx(u32)
    /// An object shape of the program.
    ShapeIdx(u32)
    /// A dotted path of the program.
    PathIdx(u32)
    /// A slot of the frame.
    Slot(u32)
    /// An instruction of the function.
    Target(u32)
    /// A basic block of the function.
    BlockIdx(u32)
    /// A builtin function.
    BuiltinIdx(u32)
    /// A method name.
    MethodIdx(u32)
    /// A call site of the program.
    SiteIdx(u32)
    /// A function of the program.
    FunctionIdx(u32)
    /// A schema of the program.
    SchemaIdx(u32)
    /// A memo site of the program.
    MemoIdx(u32)
    /// A table of variables of the program.
    NamesIdx(u32)
    /// A plain number.
    Number(u32)
}

impl std::ops::Add<u8> for Reg {
    type Output = Reg;

    /// The register `n` positions after this one.
    fn add(self, n: u8) -> Reg {
        Reg(self.0 + n)
    }
}

/// Valid values of an operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Values below this number.
    Below(usize),
    /// A range of registers, together with the adjacent operand.
    Range,
    /// Any value.
    None,
}

macro_rules! operand_kinds {
    ($( $kind:ident: $type:ident, |$p:pat_param, $f:pat_param, $value:pat_param| $limit:expr, $shown:literal, $meaning:literal; )*) => {
        /// Kind of an operand: its type in [`Op`], its limit, its form in a listing and its
        /// description in `docs/bytecode.md`.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum OperandKind {
            $( #[doc = concat!($meaning, ".")] $kind, )*
        }

        macro_rules! operand_type {
            $( ($kind) => { $type }; )*
        }

        impl OperandKind {
            /// Every kind.
            pub const ALL: &[OperandKind] = &[$( OperandKind::$kind ),*];

            /// Description of the kind.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $( OperandKind::$kind => $meaning, )* }
            }

            /// True if the operand takes one byte of the instruction, not four.
            #[must_use]
            pub fn is_byte(self) -> bool {
                match self { $( OperandKind::$kind => <$type as OperandType>::BYTE, )* }
            }

            /// True if the operand names a register, or the first of several.
            #[must_use]
            pub fn is_register(self) -> bool {
                match self { $( OperandKind::$kind => matches!(stringify!($type), "Reg"), )* }
            }

            /// Form in a listing, with `#` for the number; empty if the listing shows the operand
            /// by name.
            #[must_use]
            pub(crate) fn shown(self) -> &'static str {
                match self { $( OperandKind::$kind => $shown, )* }
            }

            /// Valid values in a function.
            pub(crate) fn limit(self, p: &Program, f: &Function, value: u32) -> Limit {
                match self { $( OperandKind::$kind => {
                    let ($p, $f, $value) = (p, f, value);
                    $limit
                } )* }
            }
        }
    };
}

/// The indexes of a table.
fn of<T>(table: &[T]) -> Limit {
    Limit::Below(table.len())
}

operand_kinds! {
    Write: Reg, |_, f, _| Limit::Below(f.registers.into()), "r#", "a register that is written";
    Read: Reg, |_, f, _| Limit::Below(f.registers.into()), "r#", "a register that is read";
    ReadWrite: Reg, |_, f, _| Limit::Below(f.registers.into()), "r#", "a register that is read, and may be written";
    IterWrite: Reg, |_, f, _| Limit::Below(pairs(f)), "r#", "the first of two registers that receive an iterator";
    Iter: Reg, |_, f, _| Limit::Below(pairs(f)), "r#", "the first of two registers that hold an iterator, which the instruction advances";
    Base: Reg, |_, _, _| Limit::Range, "r#..", "the first of a range of registers that are read";
    BaseWrite: Reg, |_, _, _| Limit::Range, "r#..", "the first of a range of registers that become unbound";
    Count: Count, |_, _, _| Limit::Range, "x#", "the number of registers in the range";
    Flag: Flag, |_, _, _| Limit::Below(2), "", "0 or 1";
    Const: ConstIdx, |p, _, _| of(&p.consts), "k#", "index of a constant";
    Literal: LiteralIdx, |p, _, _| of(&p.literals), "", "index of a literal of the source";
    Arg: ArgIdx, |p, _, _| of(&p.args), "", "index of an argument key";
    Key: KeyIdx, |p, _, _| of(&p.keys), "", "index of an object key";
    Shape: ShapeIdx, |p, _, _| of(&p.shapes), "", "index of an object shape";
    Path: PathIdx, |p, _, _| of(&p.paths), "", "index of a dotted path";
    Slot: Slot, |_, f, _| Limit::Below(f.slots as usize), "", "index of a frame slot";
    Target: Target, |_, f, _| of(&f.code), "-> #", "number of the first instruction of a block";
    Block: BlockIdx, |_, f, _| of(&f.blocks), "b#", "index of the block itself";
    Function: BuiltinIdx, |_, _, _| of(builtins::FUNCTIONS), "", "number of a builtin function";
    Method: MethodIdx, |_, _, value| is_method(value), "", "number of a method name";
    Site: SiteIdx, |p, _, _| of(&p.sites), "", "index of a call site of an atom";
    Callee: FunctionIdx, |p, _, _| of(&p.functions), "f#", "index of a function of the program, not the main program";
    Schema: SchemaIdx, |p, _, _| of(&p.schemas), "", "index of a schema";
    Memo: MemoIdx, |p, _, _| of(&p.memos), "", "index of a memo site";
    Names: NamesIdx, |p, _, _| of(&p.names), "", "index of a table of variables";
    Number: Number, |_, _, _| Limit::Below(u32::MAX as usize), "", "a plain number";
}

/// Number of pairs of adjacent registers.
fn pairs(f: &Function) -> usize {
    usize::from(f.registers).saturating_sub(1)
}

/// Method numbers have gaps.
fn is_method(value: u32) -> Limit {
    let known = u16::try_from(value).is_ok_and(|id| !builtins::method_name(id).is_empty());
    if known { Limit::None } else { Limit::Below(0) }
}

macro_rules! op_table {
    ($( $(#[doc = $doc:literal])+ $name:ident { $($field:ident : $kind:ident),* } )*) => {
        /// An instruction.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the operand kinds in the table say what fields mean")]
        pub enum Op {
            $( $(#[doc = $doc])+ $name { $($field: operand_type!($kind)),* }, )*
        }

        #[repr(u8)]
        #[allow(clippy::enum_variant_names, reason = "the table's mnemonics")]
        enum Opcode { $($name),* }

        /// The rows of the table, in opcode order.
        pub const TABLE: &[OpInfo] = &[
            $( OpInfo {
                name: stringify!($name),
                doc: concat!($($doc),+),
                operands: &[ $( (stringify!($field), OperandKind::$kind) ),* ],
            }, )*
        ];

        impl Op {
            /// The number of the instruction in [`TABLE`].
            pub fn code(self) -> u8 {
                match self { $( Op::$name { .. } => Opcode::$name as u8, )* }
            }

            /// Encodes the instruction in eight bytes.
            #[allow(unused_mut, unused_variables, reason = "some rows have no operands")]
            pub fn encode(self) -> [u8; 8] {
                let mut bytes = [self.code(), 0, 0, 0, 0, 0, 0, 0];
                let mut at = 1;
                match self { $( Op::$name { $($field),* } => { $( OperandType::put($field, &mut bytes, &mut at); )* } )* }
                bytes
            }

            /// Decodes an instruction from eight bytes; `None` for an unknown opcode or non-zero
            /// unused bytes.
            #[allow(unused_mut, unused_variables, reason = "some rows have no operands")]
            pub fn decode(bytes: [u8; 8]) -> Option<Op> {
                let mut at = 1;
                let op = match bytes[0] {
                    $( c if c == Opcode::$name as u8 => Op::$name { $($field: OperandType::take(bytes, &mut at)),* }, )*
                    _ => return None,
                };
                (op.encode() == bytes).then_some(op)
            }

            /// The operands as numbers, in the order of the table.
            pub fn operands(self) -> Operands {
                let mut list = Operands { code: self.code(), values: [0; 4] };
                match self { $( Op::$name { $($field),* } => { let mut _i = 0; $( list.values[_i] = OperandType::number($field); _i += 1; )* } )* }
                list
            }

            /// Sets the jump target of the instruction, if it has one.
            pub fn set_target(&mut self, to: Target) {
                if self.jumps() {
                    let mut bytes = self.encode();
                    to.put(&mut bytes, &mut 0);
                    if let Some(op) = Op::decode(bytes) {
                        *self = op;
                    }
                }
            }
        }
    };
}

/// A row of the op table.
#[derive(Debug)]
pub struct OpInfo {
    /// Mnemonic.
    pub name: &'static str,
    /// Description of the instruction.
    pub doc: &'static str,
    /// Names and kinds of its operands.
    pub operands: &'static [(&'static str, OperandKind)],
}

/// The operands of one instruction.
#[derive(Copy, Clone, Debug)]
pub struct Operands {
    code: u8,
    values: [u32; 4],
}

impl Operands {
    /// Name, kind and value of each operand.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, OperandKind, u32)> + '_ {
        let row = TABLE[self.code as usize].operands;
        row.iter()
            .zip(self.values)
            .map(|((name, kind), value)| (*name, *kind, value))
    }
}

const _: () = assert!(size_of::<Op>() == 8);

impl Op {
    /// The jump target, if the instruction has one.
    pub fn target(self) -> Option<u32> {
        self.operands()
            .iter()
            .find(|o| o.1 == OperandKind::Target)
            .map(|o| o.2)
    }

    /// True if the instruction may continue elsewhere than at the next one.
    #[inline]
    pub fn jumps(self) -> bool {
        const JUMPS: [bool; TABLE.len()] = {
            let mut jumps = [false; TABLE.len()];
            let mut row = 0;
            while row < TABLE.len() {
                let mut at = 0;
                while at < TABLE[row].operands.len() {
                    jumps[row] |= matches!(TABLE[row].operands[at].1, OperandKind::Target);
                    at += 1;
                }
                row += 1;
            }
            jumps
        };
        JUMPS[self.code() as usize]
    }

    /// True if execution never continues at the next instruction.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Op::Jmp { .. } | Op::Ret { .. } | Op::Throw { .. } | Op::BadMethod { .. }
        )
    }
}

op_table! {
    #[doc = "Does nothing; carries charges where no other instruction can."]
    Nop {}
    #[doc = "Block head: pays the block's price in one subtraction and is the yield point."]
    Fuel { block: Block }
    #[doc = "dst = src."]
    Mov { dst: Write, src: Read }
    #[doc = "dst = src if src is bound; resolves a name along its scope chain."]
    MovBound { dst: ReadWrite, src: Read }
    #[doc = "dst = src if src is not undefined."]
    MovDefined { dst: ReadWrite, src: Read }
    #[doc = "dst = constant."]
    LoadK { dst: Write, k: Const }
    #[doc = "dst = fresh copy of a literal array or object."]
    LoadLit { dst: Write, lit: Literal }
    #[doc = "dst = argument, or the fallback of its key if the argument is missing."]
    LoadArg { dst: Write, arg: Arg }
    #[doc = "Makes n registers from base unbound, at the entry of a scope."]
    Unbind { base: BaseWrite, n: Count }
    #[doc = "dst = frame slot; slots hold variables without a register."]
    SlotLoad { dst: Write, slot: Slot }
    #[doc = "frame slot = src."]
    SlotStore { src: Read, slot: Slot }
    #[doc = "dst = l + r with ECMAScript coercions; text pays for its length."]
    Add { dst: Write, l: Read, r: Read }
    #[doc = "dst = l - r."]
    Sub { dst: Write, l: Read, r: Read }
    #[doc = "dst = l * r."]
    Mul { dst: Write, l: Read, r: Read }
    #[doc = "dst = l / r."]
    Div { dst: Write, l: Read, r: Read }
    #[doc = "dst = l % r, sign of the dividend."]
    Rem { dst: Write, l: Read, r: Read }
    #[doc = "dst = l ** r."]
    Pow { dst: Write, l: Read, r: Read }
    #[doc = "dst = -src."]
    Neg { dst: Write, src: Read }
    #[doc = "dst = +src: conversion to a number."]
    Plus { dst: Write, src: Read }
    #[doc = "dst = !src."]
    Not { dst: Write, src: Read }
    #[doc = "dst = typeof src."]
    Typeof { dst: Write, src: Read }
    #[doc = "dst = (l == r), loose or exact, as the run sets it."]
    Eq { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l != r), loose or exact, as the run sets it."]
    Ne { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l === r)."]
    SEq { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l !== r)."]
    SNe { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l < r)."]
    Lt { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l <= r)."]
    Le { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l > r)."]
    Gt { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l >= r)."]
    Ge { dst: Write, l: Read, r: Read }
    #[doc = "Jumps."]
    Jmp { to: Target }
    #[doc = "Jumps if src is truthy."]
    JTrue { src: Read, to: Target }
    #[doc = "Jumps if src is falsy."]
    JFalse { src: Read, to: Target }
    #[doc = "Jumps if src is null or undefined."]
    JNullish { src: Read, to: Target }
    #[doc = "Jumps if src is neither null nor undefined."]
    JPresent { src: Read, to: Target }
    #[doc = "Jumps if l < r."]
    JLt { l: Read, r: Read, to: Target }
    #[doc = "Jumps unless l < r."]
    JNLt { l: Read, r: Read, to: Target }
    #[doc = "Jumps if l <= r."]
    JLe { l: Read, r: Read, to: Target }
    #[doc = "Jumps unless l <= r."]
    JNLe { l: Read, r: Read, to: Target }
    #[doc = "Jumps if l == r."]
    JEq { l: Read, r: Read, to: Target }
    #[doc = "Jumps unless l == r."]
    JNe { l: Read, r: Read, to: Target }
    #[doc = "Jumps if l === r."]
    JSEq { l: Read, r: Read, to: Target }
    #[doc = "Jumps unless l === r."]
    JSNe { l: Read, r: Read, to: Target }
    #[doc = "dst = obj.key; undefined on null and undefined (language section 3.4)."]
    Member { dst: Write, obj: Read, key: Key }
    #[doc = "dst = the member of obj named by idx."]
    Index { dst: Write, obj: Read, idx: Read }
    #[doc = "If root is neither unbound nor undefined: dst = the value at the path below root, null-safe; else dst keeps its value (language section 1.4)."]
    Path { dst: ReadWrite, root: Read, path: Path }
    #[doc = "dst = obj.key if obj has that own member; else an error, because the name is refused."]
    OwnMember { dst: Write, obj: Read, key: Key }
    #[doc = "Like Index, but any key is data: undefined if obj has no such member."]
    OwnIndex { dst: Write, obj: Read, idx: Read }
    #[doc = "dst = the value at the path below root, null-safe; a refused name is read if an object has that own member, else an error."]
    OwnPath { dst: Write, root: Read, path: Path }
    #[doc = "Sets the member of obj that key names."]
    PutMember { obj: Read, key: Read, src: Read }
    #[doc = "dst = new empty array with room for cap values."]
    NewArr { dst: Write, cap: Number }
    #[doc = "Appends src to the array in arr."]
    ArrPush { arr: Read, src: Read }
    #[doc = "dst = new object of the shape, with the n values from base."]
    NewObj { dst: Write, base: Base, n: Count, shape: Shape }
    #[doc = "dst = new object of the shape, with the values of the array in arr."]
    WideObj { dst: Write, arr: Read, shape: Shape }
    #[doc = "Fails unless obj has the method; runs before the arguments are evaluated (language section 3.5)."]
    CheckMethod { obj: Read, method: Method }
    #[doc = "dst = method called on the register base with the n - 1 registers after it."]
    CallMethod { dst: Write, base: Base, n: Count, method: Method }
    #[doc = "dst = method called on obj with the values of the array in arr."]
    WideMethod { dst: Write, obj: Read, arr: Read, method: Method }
    #[doc = "Fails with the error for an unknown method."]
    BadMethod { obj: Read, name: Const }
    #[doc = "dst = builtin function called with the n registers from base."]
    CallFn { dst: Write, base: Base, n: Count, function: Function }
    #[doc = "dst = builtin function called with the values of the array in arr."]
    WideFn { dst: Write, arr: Read, function: Function }
    #[doc = "dst = atom called with the n registers from base."]
    CallAtom { dst: Write, base: Base, n: Count, site: Site }
    #[doc = "Raises a catchable error with the text of a constant; flag 1: a security error."]
    Throw { flag: Flag, k: Const }
    #[doc = "Raises the error of a constant if src is unbound."]
    ThrowUnbound { src: Read, k: Const }
    #[doc = "Fails with `Cannot reassign const variable` if the flag register is true."]
    CheckConst { flag: Read, name: Const }
    #[doc = "Fails with `Cannot redeclare variable` if src is bound."]
    CheckFree { src: Read, name: Const }
    #[doc = "Starts an iteration over the array in src; fails with the constant's text if src is not an array."]
    IterInit { it: IterWrite, src: Read, k: Const }
    #[doc = "dst = next item; jumps after the last item."]
    IterNext { dst: Write, it: Iter, to: Target }
    #[doc = "Ends the function with src."]
    Ret { src: Read }
    #[doc = "Fails unless src is a valid result of an agent: an object, null or undefined."]
    CheckReturn { src: Read }
    #[doc = "Head of a handler: msg and op of the caught error."]
    Catch { msg: Write, op: Write }
    #[doc = "dst = key of a memo or cache site without a key: hash of its body and the n registers from base."]
    MemoKey { dst: Write, base: Base, n: Count, memo: Memo }
    #[doc = "If key has a memoized value: dst = that value, and jumps."]
    MemoGet { dst: Write, key: Read, to: Target }
    #[doc = "Memoizes a copy of src for key; run-wide."]
    MemoPut { key: Read, src: Read }
    #[doc = "dst = function of the program called with the n registers from base."]
    Call { dst: Write, base: Base, n: Count, callee: Callee }
    #[doc = "dst = program in the register base run inline with the arguments in base + 1; names lists its visible variables (`runCode`)."]
    RunCode { dst: Write, base: Base, n: Count, names: Names }
    #[doc = "dst = sub-agent: a program or procedure token in base runs inline with the input in base + 1, anything else goes to the host (`agentRun`)."]
    AgentRun { dst: Write, base: Base, n: Count, site: Site }
    #[doc = "dst = src projected through a schema; src itself if it does not conform (language section 2.1, return)."]
    Project { dst: Write, src: Read, schema: Schema }
    #[doc = "Prepares a call for `CallAll`, with the n registers from base: for an async atom dst = the number of the prepared call; any other is called at once and dst = `{value}` (`callAll`)."]
    PrepareCall { dst: Write, base: Base, n: Count, site: Site }
    #[doc = "dst = the list in arr, with the number of each prepared call replaced by its answer; at most limit calls run at once (`callAll`)."]
    CallAll { dst: Write, arr: Read, limit: Read }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
        for op in [
            Op::Nop {},
            Op::Add {
                dst: Reg(1),
                l: Reg(2),
                r: Reg(255),
            },
            Op::JLt {
                l: Reg(3),
                r: Reg(4),
                to: Target(0xdead_beef),
            },
            Op::NewObj {
                dst: Reg(9),
                base: Reg(8),
                n: Count(7),
                shape: ShapeIdx(70_000),
            },
        ] {
            assert_eq!(Op::decode(op.encode()), Some(op));
        }
    }

    #[test]
    fn unknown_and_dirty_bytes_are_refused() {
        assert_eq!(Op::decode([255, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Op::decode([0, 1, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn targets_are_patched() {
        let mut op = Op::JFalse {
            src: Reg(1),
            to: Target(0),
        };
        op.set_target(Target(7));
        assert_eq!(op.target(), Some(7));
    }
}
