//! ELF reader: needed libraries and section offsets of a program (System V gABI, chapters 4
//! and 5), 64-bit and little-endian.

use std::ops::Range;

/// Fields of an ELF file that the image builder uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// Target machine (`e_machine`).
    pub machine: u16,
    /// Program interpreter, that is, the dynamic loader.
    pub interpreter: Option<String>,
    /// Names of needed libraries (`DT_NEEDED`).
    pub needed: Vec<String>,
}

/// `e_machine` of RISC-V.
pub const RISCV: u16 = 243;

const MAGIC: &[u8] = b"\x7fELF";
/// Class 64-bit, data little-endian.
const CLASS_AND_DATA: [u8; 2] = [2, 1];

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// Size of an entry of the dynamic section in bytes.
const DYNAMIC_ENTRY: usize = 16;

/// The used fields of a program header.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// Parses an ELF file; `None` if it is malformed or not ELF.
pub fn read(bytes: &[u8]) -> Option<Elf> {
    if !bytes.starts_with(MAGIC) || bytes.get(4..6)? != CLASS_AND_DATA {
        return None;
    }
    let mut elf = Elf {
        machine: u16_at(bytes, 18)?,
        ..Elf::default()
    };
    let segments = segments(bytes)?;
    let of_kind = |kind| segments.iter().find(|segment| segment.kind == kind);
    if let Some(segment) = of_kind(PT_INTERP) {
        elf.interpreter = Some(text_at(bytes, segment.offset)?);
    }
    let Some(dynamic) = of_kind(PT_DYNAMIC) else {
        return Some(elf);
    };
    let start = usize::try_from(dynamic.offset).ok()?;
    let end = start.checked_add(usize::try_from(dynamic.size).ok()?)?;
    let entries = bytes.get(start..end)?.chunks_exact(DYNAMIC_ENTRY);
    let entries = entries.map_while(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)));
    let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != DT_NULL).collect();
    let strings = entries.iter().find(|(tag, _)| *tag == DT_STRTAB);
    for (_, name) in entries.iter().filter(|(tag, _)| *tag == DT_NEEDED) {
        let strings = offset_of(&segments, strings?.1)?;
        elf.needed
            .push(text_at(bytes, strings.checked_add(*name)?)?);
    }
    Some(elf)
}

/// Returns the file range of a named section; `None` if it does not exist, or the file is
/// malformed.
pub fn section(bytes: &[u8], name: &str) -> Option<Range<usize>> {
    if !bytes.starts_with(MAGIC) || bytes.get(4..6)? != CLASS_AND_DATA {
        return None;
    }
    let table = usize::try_from(u64_at(bytes, 40)?).ok()?;
    let size = usize::from(u16_at(bytes, 58)?);
    let count = usize::from(u16_at(bytes, 60)?);
    let header = |index: usize| bytes.get(table.checked_add(index * size)?..);
    let names = u64_at(header(usize::from(u16_at(bytes, 62)?))?, 24)?;
    (0..count).find_map(|index| {
        let header = header(index)?;
        let offset = names.checked_add(u32_at(header, 0)?.into())?;
        if text_at(bytes, offset)? != name {
            return None;
        }
        let start = usize::try_from(u64_at(header, 24)?).ok()?;
        let end = start.checked_add(usize::try_from(u64_at(header, 32)?).ok()?)?;
        (end <= bytes.len()).then_some(start..end)
    })
}

fn segments(bytes: &[u8]) -> Option<Vec<Segment>> {
    let table = usize::try_from(u64_at(bytes, 32)?).ok()?;
    let size = usize::from(u16_at(bytes, 54)?);
    let count = usize::from(u16_at(bytes, 56)?);
    let mut segments = Vec::new();
    for index in 0..count {
        let header = bytes.get(table.checked_add(index * size)?..)?;
        segments.push(Segment {
            kind: u32_at(header, 0)?,
            offset: u64_at(header, 8)?,
            address: u64_at(header, 16)?,
            size: u64_at(header, 32)?,
        });
    }
    Some(segments)
}

/// Maps an address of the loaded program to a file offset.
fn offset_of(segments: &[Segment], address: u64) -> Option<u64> {
    segments.iter().find_map(|segment| {
        let into = address.checked_sub(segment.address)?;
        let inside = segment.kind == PT_LOAD && into < segment.size;
        inside.then(|| segment.offset.checked_add(into))?
    })
}

fn text_at(bytes: &[u8], offset: u64) -> Option<String> {
    let text = bytes.get(usize::try_from(offset).ok()?..)?;
    let end = text.iter().position(|&byte| byte == 0)?;
    String::from_utf8(text[..end].to_vec()).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one loaded segment at 0x1000 that holds everything, a dynamic section
    /// and an interpreter.
    fn sample() -> Vec<u8> {
        let strings = b"\0libc.so.6\0libm.so.6\0";
        let interpreter = b"/lib/ld.so\0";
        let headers = 64 + 3 * 56;
        let dynamic_at = headers;
        let entries: [(u64, u64); 4] = [
            (DT_NEEDED, 1),
            (DT_STRTAB, 0x1000 + dynamic_at as u64 + 64),
            (DT_NEEDED, 11),
            (DT_NULL, 0),
        ];
        let strings_at = dynamic_at + 64;
        let interpreter_at = strings_at + strings.len();
        let total = (interpreter_at + interpreter.len()) as u64;
        let mut file = Vec::new();
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&[2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        file.extend_from_slice(&3u16.to_le_bytes());
        file.extend_from_slice(&RISCV.to_le_bytes());
        file.resize(32, 0);
        file.extend_from_slice(&64u64.to_le_bytes());
        file.resize(40, 0);
        file.extend_from_slice(&total.to_le_bytes());
        file.resize(54, 0);
        file.extend_from_slice(&56u16.to_le_bytes());
        file.extend_from_slice(&3u16.to_le_bytes());
        // Two sections: the string table of section names, which shares the interpreter's
        // name, and one whose name is the end of that.
        file.extend_from_slice(&64u16.to_le_bytes());
        file.extend_from_slice(&2u16.to_le_bytes());
        file.extend_from_slice(&0u16.to_le_bytes());
        file.resize(64, 0);
        let segments = [
            (PT_LOAD, 0, 0x1000, total),
            (PT_DYNAMIC, dynamic_at as u64, 0, 64),
            (
                PT_INTERP,
                interpreter_at as u64,
                0,
                interpreter.len() as u64,
            ),
        ];
        for (kind, offset, address, size) in segments {
            file.extend_from_slice(&kind.to_le_bytes());
            file.extend_from_slice(&0u32.to_le_bytes());
            for field in [offset, address, 0, size, size, 0] {
                file.extend_from_slice(&u64::to_le_bytes(field));
            }
        }
        for (tag, value) in entries {
            file.extend_from_slice(&tag.to_le_bytes());
            file.extend_from_slice(&value.to_le_bytes());
        }
        file.extend_from_slice(strings);
        file.extend_from_slice(interpreter);
        for (name, offset, size) in [
            (0, interpreter_at, interpreter.len()),
            (SO_AT, strings_at, strings.len()),
        ] {
            file.extend_from_slice(&u32::to_le_bytes(name));
            file.resize(file.len() + 20, 0);
            file.extend_from_slice(&(offset as u64).to_le_bytes());
            file.extend_from_slice(&(size as u64).to_le_bytes());
            file.resize(file.len() + 24, 0);
        }
        file
    }

    /// Offset of `.so` in the interpreter's name.
    const SO_AT: u32 = 7;

    #[test]
    fn sections_are_found_by_name() {
        let sample = sample();
        let strings = section(&sample, ".so").unwrap();
        assert_eq!(&sample[strings], b"\0libc.so.6\0libm.so.6\0");
        assert_eq!(section(&sample, ".text"), None);
    }

    #[test]
    fn needed_libraries_are_read() {
        let elf = read(&sample()).unwrap();
        assert_eq!(elf.machine, RISCV);
        assert_eq!(elf.interpreter.as_deref(), Some("/lib/ld.so"));
        assert_eq!(elf.needed, ["libc.so.6", "libm.so.6"]);
    }

    #[test]
    fn a_program_of_this_machine_is_read() {
        let Some(sh) = super::super::tools::in_path("sh") else {
            return;
        };
        let elf = read(&std::fs::read(sh).unwrap()).unwrap();
        if elf.interpreter.is_some() {
            assert!(
                elf.needed.iter().any(|name| name.starts_with("libc.")),
                "{elf:?}"
            );
        }
    }

    #[test]
    fn other_files_are_none() {
        assert_eq!(read(b""), None);
        assert_eq!(read(b"#!/bin/sh"), None);
        assert_eq!(read(MAGIC), None);
    }

    #[test]
    fn broken_files_do_no_harm() {
        let sample = sample();
        for length in 0..sample.len() {
            // Every truncated file must parse without a panic or a hang.
            let _ = read(&sample[..length]);
            let _ = section(&sample[..length], ".so");
        }
        for at in 0..sample.len() {
            for value in [0, 0x7f, 0xff] {
                let mut broken = sample.clone();
                broken[at] = value;
                let _ = read(&broken);
                let _ = section(&broken, ".so");
            }
        }
        assert_eq!(section(&sample[..sample.len() - 1 - 24 - 64], ".so"), None);
    }
}
