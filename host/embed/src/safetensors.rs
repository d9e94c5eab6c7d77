//! Files of weights in the safetensors format: a JSON header with the offsets of all tensors,
//! then the numbers.
//!
//! The file is untrusted: the header's size is checked before it is read, every range is inside
//! the file and as long as its shape requires, and the ranges cover the file without gaps, as
//! the format requires.

use crate::error::{EmbedCode, EmbedError};
use a99_core::json::{Document, Kind, Limits, NodeId};
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

/// Maximum bytes of a header; the model's has 11 KiB.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Maximum tensors of a file; the model has 104.
const MAX_TENSORS: usize = 4096;

/// Maximum dimensions of a tensor.
const MAX_RANK: usize = 8;

/// Numbers that are read at a time.
const CHUNK: usize = 16 * 1024;

/// Bytes of an element for each type of the format.
const TYPES: [(&[u8], u64); 15] = [
    (b"BOOL", 1),
    (b"U8", 1),
    (b"I8", 1),
    (b"F8_E4M3", 1),
    (b"F8_E5M2", 1),
    (b"I16", 2),
    (b"U16", 2),
    (b"F16", 2),
    (b"BF16", 2),
    (b"I32", 4),
    (b"U32", 4),
    (b"F32", 4),
    (b"I64", 8),
    (b"U64", 8),
    (b"F64", 8),
];

/// A file whose header has been read.
#[derive(Debug)]
pub(crate) struct Safetensors<R> {
    source: R,
    /// The offset of the numbers.
    data: u64,
    tensors: HashMap<String, Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    is_f32: bool,
    shape: Vec<u64>,
    begin: u64,
    end: u64,
}

fn wrong(what: impl Into<String>) -> EmbedError {
    EmbedError::new(EmbedCode::Weights, what)
}

/// Maximum absolute weight: far beyond those of trained models, and small enough that no sum of
/// a pass overflows, which would give vectors of NaN.
const MAX_WEIGHT: f32 = 10_000.0;

impl<R: Read + Seek> Safetensors<R> {
    pub(crate) fn open(mut source: R) -> Result<Safetensors<R>, EmbedError> {
        let failed = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let length = source.seek(SeekFrom::End(0)).map_err(failed)?;
        source.rewind().map_err(failed)?;
        if length < 8 {
            return Err(wrong("the file ends before its header"));
        }
        let mut size = [0; 8];
        source.read_exact(&mut size).map_err(failed)?;
        let size = u64::from_le_bytes(size);
        if size > MAX_HEADER_BYTES {
            let most = MAX_HEADER_BYTES;
            return Err(wrong(format!("a header of {size} bytes; {most} may be")));
        }
        let data = 8 + size;
        if data > length {
            return Err(wrong("the file ends within its header"));
        }
        let mut header = vec![0; size as usize];
        source.read_exact(&mut header).map_err(failed)?;
        let tensors = read_header(header, length - data)?;
        Ok(Safetensors {
            source,
            data,
            tensors,
        })
    }

    /// The names, shapes and bytes of its tensors.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn tensors(&self) -> Vec<(String, Vec<usize>, u64)> {
        let tensors = self.tensors.iter();
        tensors
            .map(|(name, tensor)| {
                let shape = tensor.shape.iter().map(|n| *n as usize).collect();
                (name.clone(), shape, tensor.end - tensor.begin)
            })
            .collect()
    }

    /// Passes the numbers of a tensor of this shape to `take`, in order and in chunks.
    pub(crate) fn read(
        &mut self,
        name: &str,
        shape: &[usize],
        mut take: impl FnMut(&[f32]),
    ) -> Result<(), EmbedError> {
        let Some(tensor) = self.tensors.get(name) else {
            return Err(wrong(format!("{name} is missing")));
        };
        if !tensor.is_f32 {
            return Err(wrong(format!("{name} is not of type F32")));
        }
        if !tensor
            .shape
            .iter()
            .copied()
            .eq(shape.iter().map(|n| *n as u64))
        {
            let found = &tensor.shape;
            return Err(wrong(format!(
                "{name} has the shape {found:?}, not {shape:?}"
            )));
        }
        let failed = |error: std::io::Error| wrong(format!("{name} cannot be read: {error}"));
        let at = SeekFrom::Start(self.data + tensor.begin);
        self.source.seek(at).map_err(failed)?;
        let mut left = ((tensor.end - tensor.begin) / 4) as usize;
        let mut bytes = vec![0; CHUNK.min(left) * 4];
        let mut numbers = vec![0.0; CHUNK.min(left)];
        while left > 0 {
            let count = CHUNK.min(left);
            self.source
                .read_exact(&mut bytes[..count * 4])
                .map_err(failed)?;
            let (words, _) = bytes[..count * 4].as_chunks::<4>();
            for (number, word) in numbers.iter_mut().zip(words) {
                *number = f32::from_le_bytes(*word);
            }
            if !numbers[..count].iter().all(|number| number.is_finite()) {
                return Err(wrong(format!("{name} has numbers that are not finite")));
            }
            if numbers[..count].iter().any(|n| n.abs() > MAX_WEIGHT) {
                let most = MAX_WEIGHT;
                return Err(wrong(format!("{name} has numbers beyond {most}")));
            }
            take(&numbers[..count]);
            left -= count;
        }
        Ok(())
    }
}

fn read_header(header: Vec<u8>, data: u64) -> Result<HashMap<String, Tensor>, EmbedError> {
    // Some writers pad the header with blanks, which JSON allows.
    let limits = Limits {
        max_bytes: MAX_HEADER_BYTES as usize,
        max_depth: 4,
        max_nodes: 256 * 1024,
    };
    let document = Document::parse(header, &limits);
    let document = document.map_err(|_| wrong("the header is not JSON that is allowed here"))?;
    let root = document.root();
    if document.kind(root) != Kind::Object {
        return Err(wrong("the header is no object"));
    }
    if document.len(root) > MAX_TENSORS {
        return Err(wrong(format!("more than {MAX_TENSORS} tensors")));
    }
    let mut tensors = HashMap::new();
    for (key, node) in document.members(root) {
        if key == b"__metadata__" {
            continue;
        }
        let name = String::from_utf8_lossy(key).into_owned();
        let tensor = read_tensor(&document, node, data);
        let tensor = tensor.map_err(|what| wrong(format!("{name} {what}")))?;
        tensors.insert(name, tensor);
    }
    let mut ranges: Vec<(u64, u64)> = tensors.values().map(|t| (t.begin, t.end)).collect();
    ranges.sort_unstable();
    let mut covered = 0;
    for (begin, end) in ranges {
        if begin != covered {
            return Err(wrong("the tensors overlap, or there are gaps between them"));
        }
        covered = end;
    }
    if covered != data {
        return Err(wrong("the file is longer than its tensors"));
    }
    Ok(tensors)
}

fn read_tensor(document: &Document, node: NodeId, data: u64) -> Result<Tensor, String> {
    let member = |key: &str| {
        let found = document.get(node, key);
        found.ok_or_else(|| format!("has no {key}"))
    };
    let integers = |key: &str, most: usize| {
        let list = member(key)?;
        if document.kind(list) != Kind::Array || document.len(list) > most {
            return Err(format!("has a {key} that is no list of at most {most}"));
        }
        let each = document
            .elements(list)
            .map(|item| match document.kind(item) {
                Kind::Number(n) if n >= 0.0 && n.fract() == 0.0 && n < 9e15 => Ok(n as u64),
                _ => Err(format!("has a {key} with something that is no size")),
            });
        each.collect::<Result<Vec<u64>, String>>()
    };
    if document.kind(node) != Kind::Object {
        return Err("is no object".to_owned());
    }
    let dtype = document.str(member("dtype")?).unwrap_or_default();
    let width = TYPES.iter().find(|(name, _)| *name == dtype);
    let &(_, width) = width.ok_or("has a type that the format has not")?;
    let shape = integers("shape", MAX_RANK)?;
    let [begin, end] = integers("data_offsets", 2)?[..] else {
        return Err("has no two data_offsets".to_owned());
    };
    let size = shape.iter().try_fold(width, |size, n| size.checked_mul(*n));
    let size = size.ok_or("has more elements than can be counted")?;
    if begin > end || end > data {
        return Err("lies beyond the end of the file".to_owned());
    }
    if end - begin != size {
        return Err("has other bytes than its shape needs".to_owned());
    }
    Ok(Tensor {
        is_f32: dtype == b"F32",
        shape,
        begin,
        end,
    })
}
