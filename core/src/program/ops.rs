//! The op table: every instruction of the register machine, once.
//!
//! Encoding, decoding, operand lists, successors, disassembly and
//! `docs/bytecode.md` follow from this table. An instruction is eight bytes:
//! opcode, up to three byte operands, and one 32-bit operand (little-endian).
//! Adding one is a line here and an arm in the machine's loop.

/// What an operand means; the verifier checks each kind against its table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// A register that is written.
    Write,
    /// A register that is read and must have been written.
    Read,
    /// A register that is read and written.
    ReadWrite,
    /// The first of two registers that hold an iterator: written.
    IterWrite,
    /// The first of two registers that hold an iterator: read and updated.
    Iter,
    /// The first of a range of registers that is read; [`OperandKind::Count`] says how many.
    Base,
    /// The first of a range of registers that is written (made unbound).
    BaseWrite,
    /// How many registers a range has.
    Count,
    /// A flag or small number with a meaning of its own.
    Flag,
    /// Index of a constant.
    Const,
    /// Index of a literal.
    Literal,
    /// Index of an argument key.
    Arg,
    /// Index of an object key.
    Key,
    /// Index of an object shape.
    Shape,
    /// Index of a dotted path.
    Path,
    /// Index of a frame slot.
    Slot,
    /// Index of an instruction, which must be a block head.
    Target,
    /// Index of a basic block.
    Block,
    /// Number of a builtin function.
    Function,
    /// Number of a method.
    Method,
    /// Index of a call site of an atom.
    Site,
    /// Index of a function of the program.
    Callee,
    /// Index of a schema.
    Schema,
    /// Index of a memo site.
    Memo,
    /// Index of a names table.
    Names,
    /// A plain number.
    Number,
}

macro_rules! operand_type {
    (Write) => {
        u8
    };
    (Read) => {
        u8
    };
    (ReadWrite) => {
        u8
    };
    (IterWrite) => {
        u8
    };
    (Iter) => {
        u8
    };
    (Base) => {
        u8
    };
    (BaseWrite) => {
        u8
    };
    (Count) => {
        u8
    };
    (Flag) => {
        u8
    };
    ($other:ident) => {
        u32
    };
}

/// The width of an operand in the encoding.
trait Operand: Copy {
    fn put(self, bytes: &mut [u8; 8], at: &mut usize);
    fn take(bytes: [u8; 8], at: &mut usize) -> Self;
    fn widen(self) -> u32;
}

impl Operand for u8 {
    fn put(self, bytes: &mut [u8; 8], at: &mut usize) {
        bytes[*at] = self;
        *at += 1;
    }
    fn take(bytes: [u8; 8], at: &mut usize) -> u8 {
        *at += 1;
        bytes[*at - 1]
    }
    fn widen(self) -> u32 {
        u32::from(self)
    }
}

impl Operand for u32 {
    fn put(self, bytes: &mut [u8; 8], _: &mut usize) {
        bytes[4..].copy_from_slice(&self.to_le_bytes());
    }
    fn take(bytes: [u8; 8], _: &mut usize) -> u32 {
        u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])
    }
    fn widen(self) -> u32 {
        self
    }
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
        enum Code { $($name),* }

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
                match self { $( Op::$name { .. } => Code::$name as u8, )* }
            }

            /// The eight bytes of the instruction.
            #[allow(unused_mut, unused_variables, reason = "some rows have no operands")]
            pub fn encode(self) -> [u8; 8] {
                let mut bytes = [self.code(), 0, 0, 0, 0, 0, 0, 0];
                let mut at = 1;
                match self { $( Op::$name { $($field),* } => { $( Operand::put($field, &mut bytes, &mut at); )* } )* }
                bytes
            }

            /// The instruction in eight bytes; `None` for an unknown opcode
            /// or for unused bytes that are not zero.
            #[allow(unused_mut, unused_variables, reason = "some rows have no operands")]
            pub fn decode(bytes: [u8; 8]) -> Option<Op> {
                let mut at = 1;
                let op = match bytes[0] {
                    $( c if c == Code::$name as u8 => Op::$name { $($field: Operand::take(bytes, &mut at)),* }, )*
                    _ => return None,
                };
                (op.encode() == bytes).then_some(op)
            }

            /// The operands as numbers, in the order of the table.
            pub fn operands(self) -> Operands {
                let mut list = Operands { code: self.code(), values: [0; 4] };
                match self { $( Op::$name { $($field),* } => { let mut _i = 0; $( list.values[_i] = Operand::widen($field); _i += 1; )* } )* }
                list
            }

            /// Sets the jump target of the instruction, if it has one.
            pub fn set_target(&mut self, to: u32) {
                let at = TABLE[self.code() as usize].operands.iter().any(|o| o.1 == OperandKind::Target);
                if at {
                    let mut bytes = self.encode();
                    bytes[4..].copy_from_slice(&to.to_le_bytes());
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
    /// What the instruction does.
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

    /// Whether the next instruction is never reached from this one.
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
    #[doc = "dst = src if src is bound; how a name is found along its chain of scopes."]
    MovBound { dst: ReadWrite, src: Read }
    #[doc = "dst = src if src is not undefined (D12)."]
    MovDefined { dst: ReadWrite, src: Read }
    #[doc = "dst = constant."]
    LoadK { dst: Write, k: Const }
    #[doc = "dst = fresh copy of a literal array or object (D33)."]
    LoadLit { dst: Write, lit: Literal }
    #[doc = "dst = argument, or what the key stands for when there is no such argument."]
    LoadArg { dst: Write, arg: Arg }
    #[doc = "Makes n registers from base unbound: entry of a scope."]
    Unbind { base: BaseWrite, n: Count }
    #[doc = "dst = frame slot: a variable that found no register."]
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
    #[doc = "dst = (l == r), loose or exact as the run says (D6)."]
    Eq { dst: Write, l: Read, r: Read }
    #[doc = "dst = (l != r), loose or exact as the run says (D6)."]
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
    #[doc = "Jumps if l == r (D6)."]
    JEq { l: Read, r: Read, to: Target }
    #[doc = "Jumps unless l == r (D6)."]
    JNe { l: Read, r: Read, to: Target }
    #[doc = "Jumps if l === r."]
    JSEq { l: Read, r: Read, to: Target }
    #[doc = "Jumps unless l === r."]
    JSNe { l: Read, r: Read, to: Target }
    #[doc = "dst = obj.key; undefined on null and undefined (language section 3.4)."]
    Member { dst: Write, obj: Read, key: Key }
    #[doc = "dst = the member of obj that idx names."]
    Index { dst: Write, obj: Read, idx: Read }
    #[doc = "If root is neither unbound nor undefined: dst = the value at the path below it, null-safe; else dst stays (language section 1.4)."]
    Path { dst: ReadWrite, root: Read, path: Path }
    #[doc = "dst = new empty array with room for cap values."]
    NewArr { dst: Write, cap: Number }
    #[doc = "Appends src to the array in arr."]
    ArrPush { arr: Read, src: Read }
    #[doc = "dst = new object of the shape, with the n values from base."]
    NewObj { dst: Write, base: Base, n: Count, shape: Shape }
    #[doc = "dst = new object of the shape, with the values of the array in arr."]
    WideObj { dst: Write, arr: Read, shape: Shape }
    #[doc = "Fails unless obj has the method: what is checked before arguments are evaluated (language section 3.5)."]
    CheckMethod { obj: Read, method: Method }
    #[doc = "dst = method called on the register base with the n - 1 registers after it."]
    CallMethod { dst: Write, base: Base, n: Count, method: Method }
    #[doc = "dst = method called on obj with the values of the array in arr."]
    WideMethod { dst: Write, obj: Read, arr: Read, method: Method }
    #[doc = "Fails with the error for a method that no value has."]
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
    #[doc = "Starts an iteration over the array in src; fails with the constant's text if it is none."]
    IterInit { it: IterWrite, src: Read, k: Const }
    #[doc = "dst = next item, or jumps when there is none."]
    IterNext { dst: Write, it: Iter, to: Target }
    #[doc = "Ends the function with src."]
    Ret { src: Read }
    #[doc = "Fails unless src may be what an agent returns: an object, null or undefined (D30)."]
    CheckReturn { src: Read }
    #[doc = "Head of a handler: msg and op of the error that was caught."]
    Catch { msg: Write, op: Write }
    #[doc = "dst = key of a memo or cache site without one: hash of its body and the n registers from base (D25)."]
    MemoKey { dst: Write, base: Base, n: Count, memo: Memo }
    #[doc = "dst = memoized value for key and jump, or fall through."]
    MemoGet { dst: Write, key: Read, to: Target }
    #[doc = "Memoizes a copy of src for key; run-wide (D26)."]
    MemoPut { key: Read, src: Read }
    #[doc = "dst = function of the program called with the n registers from base."]
    Call { dst: Write, base: Base, n: Count, callee: Callee }
    #[doc = "dst = program in the register base run inline with the arguments in base + 1; names says which variables it sees (`runCode`)."]
    RunCode { dst: Write, base: Base, n: Count, names: Names }
    #[doc = "dst = sub-agent: a program or procedure token in base runs inline with the input in base + 1, anything else goes to the host (`agentRun`)."]
    AgentRun { dst: Write, base: Base, n: Count, site: Site }
    #[doc = "dst = src projected through a schema; src itself where it does not conform (language section 2.1, return)."]
    Project { dst: Write, src: Read, schema: Schema }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
        for op in [
            Op::Nop {},
            Op::Add {
                dst: 1,
                l: 2,
                r: 255,
            },
            Op::JLt {
                l: 3,
                r: 4,
                to: 0xdead_beef,
            },
            Op::NewObj {
                dst: 9,
                base: 8,
                n: 7,
                shape: 70_000,
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
        let mut op = Op::JFalse { src: 1, to: 0 };
        op.set_target(7);
        assert_eq!(op.target(), Some(7));
    }
}
