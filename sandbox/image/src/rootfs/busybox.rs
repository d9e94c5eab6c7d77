//! Busybox: its program without unwind tables, and a link for each of its commands.
//!
//! A static program registers its unwind tables when it starts, and unregisters them when
//! it ends. Since GCC 13 both read the tables from end to end (`get_pc_range` in
//! `unwind-dw2-fde.c`), a quarter of the run of a command such as `echo`. Busybox never
//! unwinds: it is C and has no threads. With empty tables, registering does nothing.
//!
//! The names are read from the program itself: it keeps them as a sorted table of
//! zero-terminated texts, which begins with `[` and `[[`. Its shell searches that table
//! before files, so commands that other programs replace are renamed in it.

use super::super::cpio::{Content, Node, Tree};
use super::super::elf;
use super::super::error::ImageError;
use super::{tools, unexpected};
use std::ops::Range;

/// Path of the program in the image.
const PROGRAM: &str = "usr/bin/busybox";

/// Section of its unwind tables.
const UNWIND_TABLES: &str = ".eh_frame";

/// Section of its instructions.
const INSTRUCTIONS: &str = ".text";

/// `li REGISTER, 767` (RISC-V, I-type): Debian's program compares characters with this
/// limit (`CONFIG_LAST_SUPPORTED_WCHAR`) and shows `?` for those above. It is replaced by
/// `lui REGISTER, 0x110`, a number above all of Unicode.
const LAST_SHOWN: u32 = 0x2ff0_0013;
const ALL_SHOWN: u32 = 0x0011_0037;
const REGISTER: u32 = 0x1f << 7;

/// Start of the table of names.
const TABLE_START: &[u8] = b"[\0[[\0";

/// Misleading commands: a guest has no packages to install.
const LEFT_OUT: [&str; 5] = ["busybox", "dpkg", "dpkg-deb", "rpm", "ssl_client"];

/// Commands that identify the expected busybox.
const EXPECTED: [&str; 7] = ["ash", "ip", "mount", "setsid", "sh", "udhcpc", "zcat"];

/// Removes the unwind tables and replaced commands from the program, and adds a link for
/// each command that no package provides.
pub(super) fn add(tree: &mut Tree) -> Result<(), ImageError> {
    let Some(Node::File(mode, content)) = tree.get(PROGRAM) else {
        return Err(unexpected("busybox-static", "it has no usr/bin/busybox"));
    };
    let (mode, mut program) = (*mode, content.read()?.to_vec());
    let names = names(&program)?;
    for name in tools::TAKEN.iter().chain(&tools::ON_DISK) {
        hide(&mut program, &names, name)?;
    }
    if let Some(tables) = elf::section(&program, UNWIND_TABLES) {
        program[tables].fill(0);
    }
    if let Some(instructions) = elf::section(&program, INSTRUCTIONS) {
        show_all_characters(&mut program[instructions])?;
    }
    tree.put(PROGRAM, Node::File(mode, Content::Bytes(program)));
    for (name, _) in names
        .iter()
        .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
    {
        let path = format!("usr/bin/{name}");
        if tree.get(&path).is_none() {
            tree.put(path, Node::Link("busybox".to_owned()));
        }
    }
    Ok(())
}

/// Lets names in every script be shown unchanged.
fn show_all_characters(instructions: &mut [u8]) -> Result<(), ImageError> {
    let mut found = false;
    // Instructions begin at even addresses.
    for at in (0..instructions.len().saturating_sub(3)).step_by(2) {
        let Some(place) = instructions[at..].first_chunk_mut() else {
            break;
        };
        let instruction = u32::from_le_bytes(*place);
        if instruction & !REGISTER == LAST_SHOWN {
            *place = (ALL_SHOWN | instruction & REGISTER).to_le_bytes();
            found = true;
        }
    }
    found.then_some(()).ok_or_else(|| {
        unexpected(
            "busybox-static",
            "the last character that it shows was not found",
        )
    })
}

/// Renames a command to a later name that keeps the sort order, by which names are looked
/// up.
fn hide(program: &mut [u8], names: &[Name], wanted: &str) -> Result<(), ImageError> {
    let failed = || unexpected("busybox-static", format!("its `{wanted}` cannot be hidden"));
    let at = names.iter().position(|(name, _)| name == wanted);
    let at = at.ok_or_else(failed)?;
    let range = names[at].1.clone();
    let last = range.end.checked_sub(1).ok_or_else(failed)?;
    program[last] += 1;
    let follows = names.get(at + 1).map(|(name, _)| name.as_bytes());
    let is_free = follows.is_none_or(|next| &program[range] < next);
    is_free.then_some(()).ok_or_else(failed)
}

/// A command, and the position of its name in the program.
type Name = (String, Range<usize>);

fn names(program: &[u8]) -> Result<Vec<Name>, ImageError> {
    let windows = program.windows(TABLE_START.len());
    let starts = windows
        .enumerate()
        .filter(|(_, bytes)| *bytes == TABLE_START);
    for (start, _) in starts {
        let names = table(program, start);
        let has = |wanted: &&str| names.iter().any(|(name, _)| name == wanted);
        if EXPECTED.iter().all(has) {
            return Ok(names);
        }
    }
    Err(unexpected(
        "busybox-static",
        "its table of commands was not found",
    ))
}

/// Collects names while they ascend; the next text is not a name.
fn table(program: &[u8], start: usize) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    let mut at = start;
    for name in program[start..].split(|&byte| byte == 0) {
        let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        let ascends = names.last().is_none_or(|(last, _)| last.as_bytes() < name);
        if !is_name || name.contains(&b'/') || !ascends {
            break;
        }
        let end = at + name.len();
        names.push((String::from_utf8_lossy(name).into_owned(), at..end));
        at = end + 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::super::cpio::Content;
    use super::*;

    fn program(names: &[&str]) -> Vec<u8> {
        // A usage text that looks like the start of the table.
        let mut bytes = b"\x7fELF\0[\0[[\0 EXPRESSION ]]\0".to_vec();
        for name in names {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(b"/var/log/wtmp\0zzz\0");
        bytes
    }

    const NAMES: [&str; 20] = [
        "[",
        "[[",
        "ash",
        "busybox",
        "df",
        "head",
        "ip",
        "less",
        "mount",
        "rpm",
        "seq",
        "setsid",
        "sh",
        "ssl_client",
        "udhcpc",
        "unzip",
        "wc",
        "wget",
        "yes",
        "zcat",
    ];

    #[test]
    fn commands_become_links_unless_there_is_a_program() {
        let mut tree = Tree::default();
        let file = |bytes| Node::File(0o755, Content::Bytes(bytes));
        tree.put(PROGRAM, file(program(&NAMES)));
        tree.put("usr/bin/ip", file(b"real".to_vec()));
        add(&mut tree).unwrap();
        assert_eq!(
            tree.get("usr/bin/sh"),
            Some(&Node::Link("busybox".to_owned()))
        );
        assert_eq!(tree.get("usr/bin/ip"), Some(&file(b"real".to_vec())));
        assert_eq!(tree.get("usr/bin/rpm"), None);
        assert_eq!(tree.get("usr/bin/zzz"), None);
        // Replaced commands must be gone from the table.
        let Some(Node::File(0o755, Content::Bytes(program))) = tree.get(PROGRAM) else {
            panic!("no program");
        };
        let left: Vec<String> = names(program)
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let mut expected: Vec<String> = NAMES.map(str::to_owned).to_vec();
        for (hidden, name) in [
            (4, "dg"),
            (5, "heae"),
            (7, "lest"),
            (10, "ser"),
            (13, "ssl_clienu"),
            (15, "unziq"),
            (16, "wd"),
            (17, "wgeu"),
            (18, "yet"),
        ] {
            expected[hidden] = name.to_owned();
        }
        assert_eq!(left, expected);
    }

    #[test]
    fn s7_characters_of_all_scripts_are_shown() {
        // c.nop; li a4, 767; bltu a4, a5, .+8; li s10, 767; lbu a5, 767(a5)
        let code: [u16; 9] = [
            0x0001, 0x0713, 0x2ff0, 0x6463, 0x00f7, 0x0d13, 0x2ff0, 0xc783, 0x2ff7,
        ];
        let bytes =
            |code: &[u16]| -> Vec<u8> { code.iter().flat_map(|half| half.to_le_bytes()).collect() };
        let mut program = bytes(&code);
        show_all_characters(&mut program).unwrap();
        // lui a4, 0x110 and lui s10, 0x110; the rest is unchanged.
        let expected = [
            0x0001, 0x0737, 0x0011, 0x6463, 0x00f7, 0x0d37, 0x0011, 0xc783, 0x2ff7,
        ];
        assert_eq!(program, bytes(&expected));
        assert!(show_all_characters(&mut bytes(&expected)).is_err());
    }

    #[test]
    fn a_name_without_room_behind_it_is_refused() {
        let mut bytes = b"[\0[[\0seq\0ser\0".to_vec();
        let names = table(&bytes, 0);
        assert_eq!(names[2], ("seq".to_owned(), 5..8));
        assert!(hide(&mut bytes, &names, "seq").is_err());
        assert!(hide(&mut bytes, &names, "wc").is_err());
    }

    #[test]
    fn another_program_is_refused() {
        assert!(names(&program(&NAMES[..5])).is_err());
        assert!(names(b"").is_err());
        assert!(add(&mut Tree::default()).is_err());
    }
}
