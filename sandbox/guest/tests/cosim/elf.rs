//! ELF writer: a static program with one segment.

use a99_sandbox_guest::RAM_BASE;
use std::fs::{File, Permissions, set_permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Offset of the segment in the file, and its alignment.
const PAGE: u64 = 4096;

/// Writes `image` as a RISC-V program that is loaded and entered at
/// [`RAM_BASE`] (System V ABI, chapters "ELF header" and "Program header").
pub fn write(file: &Path, image: &[u8]) {
    let mut bytes = Vec::from(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let half = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
    let wide = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
    // An executable for RISC-V, version 1.
    half(&mut bytes, 2);
    half(&mut bytes, 243);
    word(&mut bytes, 1);
    wide(&mut bytes, RAM_BASE);
    // One program header after this header; no sections. Flags: C, double floats.
    wide(&mut bytes, 64);
    wide(&mut bytes, 0);
    word(&mut bytes, 5);
    for size in [64, 56, 1, 64, 0, 0] {
        half(&mut bytes, size);
    }
    // PT_LOAD, all permissions.
    word(&mut bytes, 1);
    word(&mut bytes, 7);
    let len = image.len() as u64;
    for field in [PAGE, RAM_BASE, RAM_BASE, len, len, PAGE] {
        wide(&mut bytes, field);
    }
    bytes.resize(PAGE as usize, 0);
    let mut out = File::create(file).expect("a file to write");
    out.write_all(&bytes).expect("a file to write");
    out.write_all(image).expect("a file to write");
    set_permissions(file, Permissions::from_mode(0o700)).expect("our file");
}
