//! Small or garbage programs for the guest.

/// Load and entry address of the program.
const BASE: u64 = 0x1_0000;

/// Builds a static RISC-V program with this code (System V ABI, chapters "ELF header" and
/// "Program header"): one segment, readable, writable and executable, entered at its first
/// byte.
pub fn program(code: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 56;
    let mut bytes = Vec::from(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // An executable for RISC-V (243), version 1.
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(243u16.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    for field in [BASE + HEADERS, 64, 0] {
        bytes.extend(field.to_le_bytes());
    }
    // Flags: compressed instructions, floats of double precision.
    bytes.extend(5u32.to_le_bytes());
    for field in [64u16, 56, 1, 64, 0, 0] {
        bytes.extend(field.to_le_bytes());
    }
    // PT_LOAD, all permissions.
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(7u32.to_le_bytes());
    let len = HEADERS + code.len() as u64;
    for field in [0, BASE, BASE, len, len, 0x1000] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(code);
    bytes
}

/// Builds a program of these instructions.
pub fn of_words(words: &[u32]) -> Vec<u8> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    program(&code)
}
