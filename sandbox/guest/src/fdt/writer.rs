//! Device tree writer: nodes and properties in the flattened format.

/// First word of a blob (section 5.2).
pub(super) const MAGIC: u32 = 0xd00d_feed;
/// Version written, and the oldest compatible one.
pub(super) const VERSIONS: (u32, u32) = (17, 16);
/// Tokens of the structure block (section 5.4).
pub(super) const BEGIN_NODE: u32 = 1;
/// See [`BEGIN_NODE`].
pub(super) const END_NODE: u32 = 2;
/// See [`BEGIN_NODE`].
pub(super) const PROP: u32 = 3;
/// See [`BEGIN_NODE`].
pub(super) const END: u32 = 9;

/// Size of the header in words.
const HEADER_WORDS: usize = 10;
/// The memory reservation list is only its end mark: two zero 64-bit words.
const RESERVED_BYTES: usize = 16;

/// A blob being written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    structure: Vec<u8>,
    strings: Vec<u8>,
}

impl Writer {
    /// Creates an empty tree.
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn word(&mut self, value: u32) {
        self.structure.extend_from_slice(&value.to_be_bytes());
    }

    /// Pads the structure block to whole words.
    fn align(&mut self) {
        let len = self.structure.len().next_multiple_of(4);
        self.structure.resize(len, 0);
    }

    /// Opens a node.
    pub(super) fn begin(&mut self, name: &str) {
        self.word(BEGIN_NODE);
        self.structure.extend_from_slice(name.as_bytes());
        self.structure.push(0);
        self.align();
    }

    /// Closes the node opened last.
    pub(super) fn end(&mut self) {
        self.word(END_NODE);
    }

    /// Writes a property of the open node.
    pub(super) fn property(&mut self, name: &str, value: &[u8]) {
        let name = self.string(name);
        self.word(PROP);
        self.word(value.len() as u32);
        self.word(name);
        self.structure.extend_from_slice(value);
        self.align();
    }

    /// Writes a property of 32-bit cells.
    pub(super) fn cells(&mut self, name: &str, cells: &[u32]) {
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        self.property(name, &bytes);
    }

    /// Writes a property of 64-bit numbers, two cells each.
    pub(super) fn wide(&mut self, name: &str, numbers: &[u64]) {
        let bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect();
        self.property(name, &bytes);
    }

    /// Writes a property of strings.
    pub(super) fn strings(&mut self, name: &str, strings: &[&str]) {
        let mut bytes = Vec::new();
        for string in strings {
            bytes.extend_from_slice(string.as_bytes());
            bytes.push(0);
        }
        self.property(name, &bytes);
    }

    /// Offset of a property's name in the strings block.
    fn string(&mut self, name: &str) -> u32 {
        let wanted = [name.as_bytes(), &[0]].concat();
        let known = self
            .strings
            .windows(wanted.len())
            .position(|at| at == wanted);
        let offset = known.unwrap_or_else(|| {
            self.strings.extend_from_slice(&wanted);
            self.strings.len() - wanted.len()
        });
        offset as u32
    }

    /// Returns the blob.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.word(END);
        let reserved_at = HEADER_WORDS * 4;
        let structure_at = reserved_at + RESERVED_BYTES;
        let strings_at = structure_at + self.structure.len();
        let total = strings_at + self.strings.len();
        let header = [
            MAGIC,
            total as u32,
            structure_at as u32,
            strings_at as u32,
            reserved_at as u32,
            VERSIONS.0,
            VERSIONS.1,
            0,
            self.strings.len() as u32,
            self.structure.len() as u32,
        ];
        let mut blob: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
        blob.resize(structure_at, 0);
        blob.append(&mut self.structure);
        blob.append(&mut self.strings);
        blob
    }
}
