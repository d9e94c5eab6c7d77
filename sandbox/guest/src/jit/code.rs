//! WebAssembly encoder for the part of the binary format that translated regions need
//! (WebAssembly core specification, chapter "Binary Format").

pub(super) use a99_sandbox_abi::Value as Type;

/// Block type without parameters and results.
const EMPTY: u8 = 0x40;

/// Opcodes of instructions without immediates, and of loads and stores.
#[allow(missing_docs, reason = "the names are the mnemonics")]
pub(super) mod op {
    pub(crate) const UNREACHABLE: u8 = 0x00;
    pub(crate) const BLOCK: u8 = 0x02;
    pub(crate) const LOOP: u8 = 0x03;
    pub(crate) const IF: u8 = 0x04;
    pub(crate) const ELSE: u8 = 0x05;
    pub(crate) const END: u8 = 0x0b;
    pub(crate) const BR: u8 = 0x0c;
    pub(crate) const BR_IF: u8 = 0x0d;
    pub(crate) const BR_TABLE: u8 = 0x0e;
    pub(crate) const RETURN: u8 = 0x0f;
    pub(crate) const CALL_INDIRECT: u8 = 0x11;
    pub(crate) const RETURN_CALL_INDIRECT: u8 = 0x13;
    pub(crate) const DROP: u8 = 0x1a;
    pub(crate) const SELECT: u8 = 0x1b;
    pub(crate) const LOCAL_GET: u8 = 0x20;
    pub(crate) const LOCAL_SET: u8 = 0x21;
    pub(crate) const LOCAL_TEE: u8 = 0x22;
    pub(crate) const I32_LOAD: u8 = 0x28;
    pub(crate) const I64_LOAD: u8 = 0x29;
    pub(crate) const F64_LOAD: u8 = 0x2b;
    pub(crate) const I32_LOAD8_U: u8 = 0x2d;
    pub(crate) const I64_LOAD8_S: u8 = 0x30;
    pub(crate) const I64_LOAD8_U: u8 = 0x31;
    pub(crate) const I64_LOAD16_S: u8 = 0x32;
    pub(crate) const I64_LOAD16_U: u8 = 0x33;
    pub(crate) const I64_LOAD32_S: u8 = 0x34;
    pub(crate) const I64_LOAD32_U: u8 = 0x35;
    pub(crate) const I64_STORE: u8 = 0x37;
    pub(crate) const I32_STORE8: u8 = 0x3a;
    pub(crate) const I64_STORE8: u8 = 0x3c;
    pub(crate) const I64_STORE16: u8 = 0x3d;
    pub(crate) const I64_STORE32: u8 = 0x3e;
    pub(crate) const I32_CONST: u8 = 0x41;
    pub(crate) const I64_CONST: u8 = 0x42;
    pub(crate) const F64_CONST: u8 = 0x44;
    pub(crate) const I32_EQZ: u8 = 0x45;
    pub(crate) const I32_EQ: u8 = 0x46;
    pub(crate) const I64_EQZ: u8 = 0x50;
    pub(crate) const I64_EQ: u8 = 0x51;
    pub(crate) const I64_NE: u8 = 0x52;
    pub(crate) const I64_LT_S: u8 = 0x53;
    pub(crate) const I64_LT_U: u8 = 0x54;
    pub(crate) const I64_GT_U: u8 = 0x56;
    pub(crate) const I64_LE_S: u8 = 0x57;
    pub(crate) const I64_GE_S: u8 = 0x59;
    pub(crate) const I64_GE_U: u8 = 0x5a;
    pub(crate) const F64_EQ: u8 = 0x61;
    pub(crate) const F64_NE: u8 = 0x62;
    pub(crate) const F64_LT: u8 = 0x63;
    pub(crate) const F64_LE: u8 = 0x65;
    pub(crate) const I32_ADD: u8 = 0x6a;
    pub(crate) const I32_SUB: u8 = 0x6b;
    pub(crate) const I32_AND: u8 = 0x71;
    pub(crate) const I32_OR: u8 = 0x72;
    pub(crate) const I32_XOR: u8 = 0x73;
    pub(crate) const I32_SHL: u8 = 0x74;
    pub(crate) const I32_SHR_S: u8 = 0x75;
    pub(crate) const I32_SHR_U: u8 = 0x76;
    pub(crate) const I64_CTZ: u8 = 0x7a;
    pub(crate) const I64_ADD: u8 = 0x7c;
    pub(crate) const I64_SUB: u8 = 0x7d;
    pub(crate) const I64_MUL: u8 = 0x7e;
    pub(crate) const I64_DIV_S: u8 = 0x7f;
    pub(crate) const I64_DIV_U: u8 = 0x80;
    pub(crate) const I64_REM_S: u8 = 0x81;
    pub(crate) const I64_REM_U: u8 = 0x82;
    pub(crate) const I64_AND: u8 = 0x83;
    pub(crate) const I64_OR: u8 = 0x84;
    pub(crate) const I64_XOR: u8 = 0x85;
    pub(crate) const I64_SHL: u8 = 0x86;
    pub(crate) const I64_SHR_S: u8 = 0x87;
    pub(crate) const I64_SHR_U: u8 = 0x88;
    pub(crate) const F64_ABS: u8 = 0x99;
    pub(crate) const F64_TRUNC: u8 = 0x9d;
    pub(crate) const F64_ADD: u8 = 0xa0;
    pub(crate) const F64_SUB: u8 = 0xa1;
    pub(crate) const F64_MUL: u8 = 0xa2;
    pub(crate) const F64_DIV: u8 = 0xa3;
    pub(crate) const I32_WRAP_I64: u8 = 0xa7;
    pub(crate) const I64_EXTEND_I32_S: u8 = 0xac;
    pub(crate) const I64_EXTEND_I32_U: u8 = 0xad;
    pub(crate) const I64_TRUNC_F64_S: u8 = 0xb0;
    pub(crate) const F64_CONVERT_I64_S: u8 = 0xb9;
    pub(crate) const I64_REINTERPRET_F64: u8 = 0xbd;
    pub(crate) const F64_REINTERPRET_I64: u8 = 0xbf;
    pub(crate) const I64_EXTEND32_S: u8 = 0xc4;
}

/// Buffer of encoded instructions.
#[derive(Clone, Debug, Default)]
pub(super) struct WasmCode {
    bytes: Vec<u8>,
}

impl WasmCode {
    /// The bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends one byte, or an instruction without immediates.
    pub(super) fn op(&mut self, byte: u8) -> &mut Self {
        self.bytes.push(byte);
        self
    }

    /// Appends several of them.
    pub(super) fn ops(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// Appends an unsigned number (LEB128).
    pub(super) fn unsigned(&mut self, mut number: u32) -> &mut Self {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.op(number as u8)
    }

    /// Appends a signed number (LEB128).
    fn signed(&mut self, mut number: i64) -> &mut Self {
        loop {
            let low = number as u8 & 0x7f;
            number >>= 7;
            let is_last = number == if low & 0x40 == 0 { 0 } else { -1 };
            if is_last {
                return self.op(low);
            }
            self.bytes.push(low | 0x80);
        }
    }

    /// `i32.const`.
    pub(super) fn i32(&mut self, value: i32) -> &mut Self {
        self.op(op::I32_CONST).signed(value.into())
    }

    /// `i64.const`.
    pub(super) fn i64(&mut self, value: i64) -> &mut Self {
        self.op(op::I64_CONST).signed(value)
    }

    /// `local.get`.
    pub(super) fn get(&mut self, local: u32) -> &mut Self {
        self.op(op::LOCAL_GET).unsigned(local)
    }

    /// `local.set`.
    pub(super) fn set(&mut self, local: u32) -> &mut Self {
        self.op(op::LOCAL_SET).unsigned(local)
    }

    /// `local.tee`.
    pub(super) fn tee(&mut self, local: u32) -> &mut Self {
        self.op(op::LOCAL_TEE).unsigned(local)
    }

    /// Appends a load or store at the address on the stack plus `offset`, aligned to `1 <<
    /// align` bytes.
    pub(super) fn memory(&mut self, opcode: u8, align: u8, offset: u32) -> &mut Self {
        self.op(opcode).op(align).unsigned(offset)
    }

    /// Appends `block`, `loop` or `if`, with at most one result.
    pub(super) fn open(&mut self, opcode: u8, result: Option<Type>) -> &mut Self {
        let result = result.map_or(EMPTY, |result| result as u8);
        self.op(opcode).op(result)
    }

    /// Appends `br` or `br_if` to the label at depth `depth`.
    pub(super) fn branch(&mut self, opcode: u8, depth: u32) -> &mut Self {
        self.op(opcode).unsigned(depth)
    }

    /// Appends an indirect call of the module's type `kind`.
    pub(super) fn call_indirect(&mut self, kind: u32) -> &mut Self {
        self.op(op::CALL_INDIRECT).unsigned(kind).unsigned(0)
    }

    /// Appends an indirect tail call.
    pub(super) fn return_call_indirect(&mut self, kind: u32) -> &mut Self {
        let call = op::RETURN_CALL_INDIRECT;
        self.op(call).unsigned(kind).unsigned(0)
    }

    /// Appends bytes after their length.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn block(&mut self, bytes: &[u8]) -> &mut Self {
        self.unsigned(bytes.len() as u32);
        self.ops(bytes)
    }
}

/// Encodes a function for a code section: the locals after its parameters, as runs of one
/// type, and its body, in which the branches at `unlikely` are seldom taken. The length of
/// the function (32 bits, little-endian) comes first, its hints last: the positions of these
/// branches in it (32 bits each).
pub(super) fn function(locals: &[(u32, Type)], body: &WasmCode, unlikely: &[u32]) -> Vec<u8> {
    let mut function = WasmCode::default();
    function.ops(&[0; 4]).unsigned(locals.len() as u32);
    for (count, kind) in locals {
        function.unsigned(*count).op(*kind as u8);
    }
    let start = function.bytes.len() as u32 - 4;
    function.ops(body.bytes()).op(op::END);
    let length = function.bytes.len() as u32 - 4;
    function.bytes[..4].copy_from_slice(&length.to_le_bytes());
    for at in unlikely {
        function.ops(&(start + at).to_le_bytes());
    }
    function.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the DWARF standard, section "Variable Length Data".
    #[test]
    fn numbers() {
        let unsigned = |n| WasmCode::default().unsigned(n).bytes().to_vec();
        assert_eq!(unsigned(127), [127]);
        assert_eq!(unsigned(128), [0x80, 1]);
        assert_eq!(unsigned(12857), [0xb9, 0x64]);
        let signed = |n| WasmCode::default().signed(n).bytes().to_vec();
        assert_eq!(signed(2), [2]);
        assert_eq!(signed(-2), [0x7e]);
        assert_eq!(signed(127), [0xff, 0]);
        assert_eq!(signed(-127), [0x81, 0x7f]);
        assert_eq!(signed(-128), [0x80, 0x7f]);
        assert_eq!(signed(i64::MIN).len(), 10);
    }
}
