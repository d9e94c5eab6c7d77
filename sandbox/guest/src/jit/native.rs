//! Translation on the host: what an embedder that compiles code for its guests calls.
//!
//! The result depends on nothing but the arguments, so the embedder may keep it, and give it
//! to any guest with the same layout and code.

use super::code::WasmCode;
use super::context::ContextLayout;
use super::emit::{self, OptLevel};
use super::region::Region;
use super::{MAX_FUNCTION, structure};
use crate::ram::PAGE_SIZE;
use a99_sandbox_abi::{LAYOUT_WORDS, MAX_ENTRIES, NEXT_BYTES, TYPES};

/// Bytes of a page and the start of the next one.
const WITH_NEXT: usize = PAGE_SIZE + NEXT_BYTES;

/// Module and names of the imports of every translated module.
const IMPORT_MODULE: &str = "a99";
/// Import name of the emulator's linear memory.
const IMPORT_MEMORY: &str = "memory";
/// Import name of the emulator's function table.
const IMPORT_TABLE: &str = "table";
/// Names of the exports, followed by the function's number.
const EXPORT: &str = "region";

/// Linear addresses that the code of an emulator's instance may access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout(ContextLayout);

/// The function of a region, for [`module`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Its body, as in a code section, after its length, and hints.
    pub function: Vec<u8>,
    /// Its entries: offset in the page, and node.
    pub entries: Vec<(u16, u8)>,
}

impl Layout {
    /// Reads the layout of an emulator; `None` if that has another version of the
    /// translator, whose state this one does not know.
    pub fn of(words: &[u32; LAYOUT_WORDS]) -> Option<Self> {
        ContextLayout::from_words(words).map(Self)
    }

    /// Whether all of it is in a memory of that many bytes.
    pub fn is_within(&self, memory: usize) -> bool {
        self.0.end() <= memory as u64
    }
}

/// Translates the region of a page with these entries, for user mode only or for any mode,
/// optimised for speed or size. The page may be followed by the first two bytes of the next
/// one. `None` if it has no code to translate, or the arguments are no page and no entries of
/// it.
pub fn translate(
    layout: &Layout,
    (page, is_user): (&[u8], bool),
    entries: &[u16],
    is_small: bool,
) -> Option<Translation> {
    let is_entry = |offset: &u16| offset.is_multiple_of(2) && usize::from(*offset) < PAGE_SIZE;
    let is_page = matches!(page.len(), PAGE_SIZE | WITH_NEXT);
    let is_valid = is_page && entries.len() <= MAX_ENTRIES;
    if !is_valid || !entries.iter().all(is_entry) {
        return None;
    }
    let region = Region::find(page, entries)?;
    let opt_level = match is_small {
        true => OptLevel::Size,
        false => OptLevel::Speed,
    };
    let layout = layout.0.for_mode(is_user);
    let function = emit::function(std::slice::from_ref(&region), 0, &layout, opt_level);
    let entries = structure::members(region.entries);
    let entries = entries.map(|node| (region.nodes[node].offset, layout.entry(node)));
    (function.len() <= MAX_FUNCTION).then(|| Translation {
        function,
        entries: entries.collect(),
    })
}

/// Encodes a module of functions, which imports the emulator's memory and table and exports
/// the functions in their order.
pub fn module(functions: &[&[u8]]) -> Vec<u8> {
    let mut kinds = WasmCode::default();
    kinds.unsigned(TYPES.len() as u32);
    for (parameters, results) in TYPES {
        kinds.op(0x60);
        for list in [parameters, results] {
            let bytes: Vec<u8> = list.iter().map(|kind| *kind as u8).collect();
            kinds.block(&bytes);
        }
    }
    let mut imports = WasmCode::default();
    let (from, memory, table) = (IMPORT_MODULE, IMPORT_MEMORY, IMPORT_TABLE);
    imports.unsigned(2);
    // At least one page; at least one function reference.
    imports.block(from.as_bytes()).block(memory.as_bytes());
    imports.ops(&[0x02, 0x00, 0x01]);
    imports.block(from.as_bytes()).block(table.as_bytes());
    imports.ops(&[0x01, 0x70, 0x00, 0x01]);
    let mut exports = WasmCode::default();
    let mut code = WasmCode::default();
    let mut of_types = WasmCode::default();
    let mut hints = WasmCode::default();
    hints.block(BRANCH_HINTS.as_bytes());
    for list in [&mut exports, &mut code, &mut of_types, &mut hints] {
        list.unsigned(functions.len() as u32);
    }
    for (number, function) in (0..).zip(functions) {
        let name = format!("{EXPORT}{number}");
        exports.block(name.as_bytes()).op(0).unsigned(number);
        let (body, unlikely) = split(function).unwrap_or_default();
        code.block(body);
        branch_hints(&mut hints, number, unlikely);
        of_types.op(0);
    }
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for (number, section) in [
        (1, kinds),
        (2, imports),
        (3, of_types),
        (7, exports),
        (0, hints),
        (10, code),
    ] {
        let mut encoded = WasmCode::default();
        encoded.op(number).block(section.bytes());
        module.extend(encoded.bytes());
    }
    module
}

/// Name of the custom section with hints of branches (branch hinting proposal).
pub const BRANCH_HINTS: &str = "metadata.code.branch_hint";

/// Splits a translated function into its body, and the positions of seldom taken branches in
/// it (32 bits each).
pub fn split(function: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = function.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Appends the hints of a function to the section's vector.
fn branch_hints(hints: &mut WasmCode, function: u32, unlikely: &[u8]) {
    hints.unsigned(function);
    hints.ops(&encode_hints(unlikely));
}

/// Encodes the positions of [`split`] as the hints of a function.
pub fn encode_hints(unlikely: &[u8]) -> Vec<u8> {
    let (positions, _) = unlikely.as_chunks();
    let mut hints = WasmCode::default();
    hints.unsigned(positions.len() as u32);
    for position in positions {
        // The size of the hint, and the hint: not taken.
        hints.unsigned(u32::from_le_bytes(*position)).ops(&[1, 0]);
    }
    hints.bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::USER_NODE;

    /// addi a0, a0, -1; bnez a0, .-4; ret
    fn page() -> Vec<u8> {
        let words = [0xfff5_0513u32, 0xfe05_1ee3, 0x0000_8067];
        let mut page: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        page.resize(PAGE_SIZE, 0);
        page
    }

    fn layout() -> Layout {
        let mut words = ContextLayout::default().words();
        words[0] = 4096;
        Layout::of(&words).expect("this version")
    }

    #[test]
    fn the_same_input_gives_the_same_code() {
        let of = |page: &[u8], entries: &[u16]| translate(&layout(), (page, false), entries, false);
        let once = of(&page(), &[0]).expect("a region");
        assert_eq!(Some(&once), of(&page(), &[0]).as_ref());
        assert_eq!(once.entries, [(0, 0)]);
        assert_ne!(
            Some(&once),
            translate(&layout(), (&page(), false), &[0], true).as_ref()
        );
        // Only user mode may enter the code for it.
        let of_user = translate(&layout(), (&page(), true), &[0], false).expect("a region");
        assert_eq!(of_user.entries, [(0, USER_NODE)]);
        let mut other = page();
        other[3] = 0xfe;
        assert_ne!(Some(&once), of(&other, &[0]).as_ref());
        let other = Layout::of(&ContextLayout::default().words()).expect("this version");
        assert_ne!(Some(once), translate(&other, (&page(), false), &[0], false));
    }

    #[test]
    fn the_start_of_the_next_page_counts() {
        // Half of `addi a0, zero, 2`, then of `addi a0, zero, 3`.
        let mut short = page();
        short[PAGE_SIZE - 2..].copy_from_slice(&[0x13, 0x05]);
        let last = PAGE_SIZE as u16 - 2;
        let of = |page: &[u8]| translate(&layout(), (page, false), &[last], false);
        assert_eq!(of(&short), None);
        let two = [&short[..], &[0x20, 0x00]].concat();
        let three = [&short[..], &[0x30, 0x00]].concat();
        assert!(of(&two).is_some());
        assert_ne!(of(&two), of(&three));
    }

    #[test]
    fn lies_are_refused() {
        let of = |page: &[u8], entries: &[u16]| translate(&layout(), (page, false), entries, false);
        assert_eq!(of(&page(), &[1]), None);
        assert_eq!(of(&page(), &[4096]), None);
        assert_eq!(of(&page(), &[u16::MAX - 1]), None);
        assert_eq!(of(&page(), &[]), None);
        assert_eq!(of(&page(), &[0; MAX_ENTRIES + 1]), None);
        assert_eq!(of(&page()[1..], &[0]), None);
        for more in [1, 3, PAGE_SIZE] {
            let long = [page(), vec![0; more]].concat();
            assert_eq!(of(&long, &[0]), None);
        }
        // In the middle of an instruction, at illegal ones, and at the last half.
        for offset in (0..4096).step_by(2) {
            of(&page(), &[offset]);
        }
        let mut words = ContextLayout::default().words();
        words[LAYOUT_WORDS - 1] ^= 1;
        assert_eq!(Layout::of(&words), None);
        words[LAYOUT_WORDS - 1] ^= 1;
        words[LAYOUT_WORDS - 2] ^= 1;
        assert_eq!(Layout::of(&words), None);
    }
}
