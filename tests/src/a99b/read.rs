//! Decoder: turns bytes into trees of fields, with a note for each field.

use super::pages::Pages;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A number, including doubles.
    Scalar(String),
    /// A disassembled instruction.
    Op(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Tree>),
    /// An optional field.
    Optional(Option<Box<Tree>>),
    /// A pair.
    Pair(Box<[Tree; 2]>),
    /// A record: its name and fields.
    Record(String, Vec<(String, Tree)>),
    /// A choice: its name and field.
    Choice(String, Option<Box<Tree>>),
}

/// Prints values as Rust does.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Scalar(text) | Tree::Op(text) => f.write_str(text),
            Tree::Bytes(bytes) => write!(f, "{bytes:?}"),
            Tree::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
                }
                f.write_char(']')
            }
            Tree::Optional(None) => f.write_str("None"),
            Tree::Optional(Some(of)) => write!(f, "Some({of})"),
            Tree::Pair(pair) => write!(f, "({}, {})", pair[0], pair[1]),
            Tree::Choice(name, None) => f.write_str(name),
            Tree::Choice(name, Some(of)) => write!(f, "{name}({of})"),
            Tree::Record(name, fields) => {
                write!(f, "{name} {{")?;
                for (i, (name, of)) in fields.iter().enumerate() {
                    write!(f, "{} {name}: {of}", if i == 0 { "" } else { "," })?;
                }
                f.write_str(" }")
            }
        }
    }
}

impl Tree {
    /// A field of a record.
    #[must_use]
    pub fn field(&self, wanted: &str) -> Option<&Tree> {
        match self {
            Tree::Record(_, fields) => fields.iter().find(|f| f.0 == wanted).map(|f| &f.1),
            _ => None,
        }
    }

    /// The entries of a list; empty for other values.
    #[must_use]
    pub fn items(&self) -> &[Tree] {
        match self {
            Tree::List(items) => items,
            _ => &[],
        }
    }
}

/// A field and its byte range in the file.
#[derive(Clone, Debug)]
pub struct Note {
    /// First byte.
    pub offset: usize,
    /// Number of bytes.
    pub length: usize,
    /// The field's path and value.
    pub text: String,
}

/// A decoded file.
#[derive(Clone, Debug)]
pub struct File {
    /// The sections by name. The source map has a list for each function: nodes of its steps,
    /// then places.
    pub sections: BTreeMap<String, Tree>,
    /// SHA-256 over the sections that results depend on.
    pub identity: [u8; 32],
    /// The key that the signature names.
    pub key_id: Option<[u8; 16]>,
    /// Every field in the order of the file.
    pub notes: Vec<Note>,
}

struct Reader<'a> {
    pages: &'a Pages,
    bytes: &'a [u8],
    at: usize,
    end: usize,
    notes: Vec<Note>,
}

type Read<T> = Result<T, String>;

/// Number of the first section that does not affect results.
const SOURCE_MAP: u32 = 32;

/// Decodes a file by the rules of the pages.
///
/// # Errors
/// The file violates a rule, with the place.
pub fn read(pages: &Pages, bytes: &[u8]) -> Read<File> {
    let mut r = Reader {
        pages,
        bytes,
        at: 0,
        end: bytes.len(),
        notes: Vec::new(),
    };
    let magic = r.take(8, "magic")?.to_vec();
    let version = r.number(4, "format version")?;
    let flags = r.number(4, "flags")?;
    let set = r.number(8, "instruction set")?;
    let length = r.number(4, "length")? as usize;
    let count = r.number(4, "sections")? as usize;
    let hash = r.take(32, "content hash")?.to_vec();
    if magic != *b"\0a99b\r\n\x1a" || version != 1 || set != pages.instruction_set {
        return Err("another format".into());
    }
    let unsigned = bytes.get(..length).ok_or("too short")?;
    let content = [&unsigned[..32], &unsigned[64..]].concat();
    if Sha256::digest(content)[..] != hash[..] {
        return Err("the hash is another".into());
    }
    let mut table = Vec::new();
    for i in 0..count {
        let entry = [
            r.number(4, &format!("table[{i}].number"))?,
            r.number(4, &format!("table[{i}].offset"))?,
            r.number(4, &format!("table[{i}].length"))?,
        ];
        table.push(entry.map(|n| n as usize));
    }
    let mut identity = Sha256::new();
    let mut sections = BTreeMap::new();
    let mut last = 0;
    for [number, offset, size] in table {
        let section = pages.sections.iter().find(|s| s.number as usize == number);
        let section = section.ok_or("no such section")?;
        if number <= last || offset != r.at {
            return Err(format!("{} is out of order", section.name));
        }
        last = number;
        r.end = offset + size;
        if section.number < SOURCE_MAP {
            identity.update((number as u32).to_le_bytes());
            identity.update((size as u64).to_le_bytes());
            identity.update(bytes.get(offset..r.end).ok_or("too short")?);
        }
        let tree = if section.name == "source-map" {
            r.source_map(&sections)?
        } else {
            r.value(&section.content, &section.name)?
        };
        if r.at != r.end {
            return Err(format!("{} is longer than its fields", section.name));
        }
        sections.insert(section.name.clone(), tree);
    }
    let flag = |name: &str| u64::from(sections.contains_key(name));
    let complete = pages.sections.iter();
    let complete = complete.filter(|s| !s.optional);
    let mut complete = complete.map(|s| &s.name);
    if !complete.all(|name| sections.contains_key(name)) {
        return Err("a section is missing".into());
    }
    let said = flag("source") | flag("source-map") << 1 | flag("origin") << 2;
    if r.at != length || flags != said || flag("origin") != flag("origin-places") {
        return Err("the header says something else".into());
    }
    r.end = bytes.len();
    let key_id = r.signature()?;
    Ok(File {
        sections,
        identity: identity.finalize().into(),
        key_id,
        notes: r.notes,
    })
}

impl<'a> Reader<'a> {
    fn slice(&mut self, n: usize) -> Read<&'a [u8]> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.end);
        let end = end.ok_or("a field goes beyond its section")?;
        let taken = self.bytes.get(self.at..end).ok_or("too short")?;
        self.at = end;
        Ok(taken)
    }

    fn note(&mut self, from: usize, text: String) {
        let (offset, length) = (from, self.at - from);
        self.notes.push(Note {
            offset,
            length,
            text,
        });
    }

    fn take(&mut self, n: usize, path: &str) -> Read<&'a [u8]> {
        let from = self.at;
        let taken = self.slice(n)?;
        self.note(from, path.to_owned());
        Ok(taken)
    }

    fn raw(&mut self, n: usize) -> Read<u64> {
        let bytes = self.slice(n)?.iter().rev();
        Ok(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn number(&mut self, n: usize, path: &str) -> Read<u64> {
        let from = self.at;
        let number = self.raw(n)?;
        self.note(from, format!("{path} = {number}"));
        Ok(number)
    }

    fn scalar(&mut self, n: usize, path: &str, show: impl Fn(u64) -> String) -> Read<Tree> {
        let from = self.at;
        let text = show(self.raw(n)?);
        self.note(from, format!("{path} = {text}"));
        Ok(Tree::Scalar(text))
    }

    fn value(&mut self, layout: &str, path: &str) -> Read<Tree> {
        if let Some(of) = layout.strip_prefix("list of ") {
            let n = self.number(4, &format!("{path}.length"))?;
            let item = |i| self.value(of, &format!("{path}[{i}]"));
            return (0..n).map(item).collect::<Read<_>>().map(Tree::List);
        }
        if let Some(of) = layout.strip_prefix("optional ") {
            return match self.number(1, &format!("{path} is there"))? {
                0 => Ok(Tree::Optional(None)),
                1 => Ok(Tree::Optional(Some(Box::new(self.value(of, path)?)))),
                _ => Err(format!("{path}: neither 0 nor 1")),
            };
        }
        if let Some(of) = layout.strip_prefix("pair of ") {
            let (a, b) = of.split_once(" and ").ok_or("a pair of one")?;
            let first = self.value(a, &format!("{path}.0"))?;
            let second = self.value(b, &format!("{path}.1"))?;
            return Ok(Tree::Pair(Box::new([first, second])));
        }
        match layout {
            "u8" => self.scalar(1, path, |n| n.to_string()),
            "u16" => self.scalar(2, path, |n| n.to_string()),
            "u32" => self.scalar(4, path, |n| n.to_string()),
            "u64" => self.scalar(8, path, |n| n.to_string()),
            "i64" => self.scalar(8, path, |n| (n as i64).to_string()),
            "f64" => self.scalar(8, path, |n| format!("{:?}", f64::from_bits(n))),
            "bool" => self.scalar(1, path, |n| (n == 1).to_string()),
            "op" => self.op(path),
            "json" => {
                let n = self.number(4, &format!("{path}.length"))?;
                Ok(Tree::Bytes(self.take(n as usize, path)?.to_vec()))
            }
            "bytes" | "JSON text" => {
                let n = self.end - self.at;
                Ok(Tree::Bytes(self.take(n, path)?.to_vec()))
            }
            name => self.named(name, path),
        }
    }

    /// A record or a choice.
    fn named(&mut self, name: &str, path: &str) -> Read<Tree> {
        let pages = self.pages;
        if let Some(fields) = pages.records.get(name) {
            let mut read = Vec::new();
            for (field, layout) in fields {
                read.push((
                    field.clone(),
                    self.value(layout, &format!("{path}.{field}"))?,
                ));
            }
            return Ok(Tree::Record(name.to_owned(), read));
        }
        let variants = pages.choices.get(name);
        let variants = variants.ok_or_else(|| format!("no type {name}"))?;
        let from = self.at;
        let tag = self.raw(1)?;
        let found = variants.iter().find(|v| u64::from(v.0) == tag);
        let (_, name, layout) = found.ok_or_else(|| format!("{path}: no choice {tag}"))?;
        self.note(from, format!("{path}: {name}"));
        let field = layout.as_ref().map(|layout| self.value(layout, path));
        let field = field.transpose()?.map(Box::new);
        Ok(Tree::Choice(name.clone(), field))
    }

    /// An instruction, as defined in "Encoding": the opcode, byte operands from byte 1 on, a
    /// 32-bit operand in bytes 4 to 7, all other bytes 0.
    fn op(&mut self, path: &str) -> Read<Tree> {
        let from = self.at;
        let bytes = self.slice(8)?;
        let pages = self.pages;
        let row = pages.instructions.get(usize::from(bytes[0]));
        let (name, operands) = row.ok_or_else(|| format!("{path}: no opcode {}", bytes[0]))?;
        let mut rest = bytes.to_vec();
        rest[0] = 0;
        let mut next = 1;
        let mut text = name.clone();
        for (i, (name, kind)) in operands.iter().enumerate() {
            let range = if pages.bytes.contains(kind) {
                next += 1;
                next - 1..next
            } else {
                4..8
            };
            let value = bytes[range.clone()].iter().rev();
            let value = value.fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
            rest[range].fill(0);
            let before = if i == 0 { " {" } else { "," };
            let _ = write!(text, "{before} {name}: {value}");
        }
        if !operands.is_empty() {
            text.push_str(" }");
        }
        if rest.iter().any(|byte| *byte != 0) {
            return Err(format!("{path}: unused bytes are not zero"));
        }
        self.note(from, format!("{path} = {text}"));
        Ok(Tree::Op(text))
    }

    /// For each function the nodes of its steps, then its places.
    fn source_map(&mut self, sections: &BTreeMap<String, Tree>) -> Read<Tree> {
        let functions = sections.get("functions").map_or(&[][..], Tree::items);
        let mut list = Vec::new();
        for (i, function) in functions.iter().enumerate() {
            let steps = function
                .field("steps")
                .map_or(0, |steps| steps.items().len());
            let node = |s| self.value("u32", &format!("source-map[{i}].nodes[{s}]"));
            let nodes = (0..steps).map(node).collect::<Read<_>>()?;
            let places =
                self.value("list of SourceLocation", &format!("source-map[{i}].places"))?;
            list.push(Tree::Pair(Box::new([Tree::List(nodes), places])));
        }
        Ok(Tree::List(list))
    }

    fn signature(&mut self) -> Read<Option<[u8; 16]>> {
        if self.at == self.end {
            return Ok(None);
        }
        let magic = self.take(4, "signature")?;
        let algorithm = self.number(4, "signature.algorithm")?;
        let mut id = [0; 16];
        id.copy_from_slice(self.take(16, "signature.key id")?);
        self.take(64, "signature.signature")?;
        if magic != b"a99s" || algorithm != 1 || self.at != self.end {
            return Err("no signature".into());
        }
        Ok(Some(id))
    }
}
