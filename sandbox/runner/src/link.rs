//! Linker of AOT regions: adds an image's functions to the emulator that holds the guest,
//! so that one file is compiled and loaded.
//!
//! Sections are copied unchanged, except for five that get more items at the end, so every
//! existing index keeps its meaning.

use super::error::{VmCode, VmError};
use a99_sandbox_abi::TYPES;
use a99_sandbox_guest::translate::{BRANCH_HINTS, encode_hints, split};
use wasm_encoder::Encode;
use wasmparser::{BinaryReader, Parser, Payload, TypeRef};

/// Section ids (WebAssembly core specification, "Modules").
mod section {
    pub(super) const CUSTOM: u8 = 0;
    pub(super) const TYPE: u8 = 1;
    pub(super) const FUNCTION: u8 = 3;
    pub(super) const TABLE: u8 = 4;
    pub(super) const ELEMENT: u8 = 9;
    pub(super) const CODE: u8 = 10;
}

/// The indices that new functions of a module start at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewIndices {
    /// Index of the first new function in the table.
    pub table: u32,
    /// Index of the first new type.
    pub types: u32,
    /// Index of the first new function in the module.
    functions: u32,
}

fn failed(what: impl std::fmt::Display) -> VmError {
    VmError::new(VmCode::Module, format!("emulator: {what}"))
}

impl NewIndices {
    /// Finds the indices of a module with one growable table.
    pub(crate) fn of(module: &[u8]) -> Result<Self, VmError> {
        let (mut types, mut functions, mut table) = (0, 0, None);
        for payload in Parser::new(0).parse_all(module) {
            match payload.map_err(failed)? {
                Payload::TypeSection(section) => types = section.count(),
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.map_err(failed)?;
                        functions += u32::from(matches!(import.ty, TypeRef::Func(_)));
                    }
                }
                Payload::FunctionSection(section) => functions += section.count(),
                Payload::TableSection(section) => {
                    for found in section {
                        let found = found.map_err(failed)?;
                        let is_new = table.replace(found.ty).is_none();
                        if !is_new || found.ty.maximum.is_some() {
                            return Err(failed("it has another table than expected"));
                        }
                    }
                }
                _ => {}
            }
        }
        let table = table.and_then(|table| u32::try_from(table.initial).ok());
        Ok(Self {
            table: table.ok_or_else(|| failed("it has no table"))?,
            types,
            functions,
        })
    }

    /// Adds functions to a module, in the format of the emulator's `compile_aot`: each
    /// after its length. They are appended to the table; a function without a body there
    /// is the one before it once more.
    pub(crate) fn add(&self, module: &[u8], functions: &[u8]) -> Result<Vec<u8>, VmError> {
        let numbered = bodies(functions)?;
        let with_body = numbered.iter().filter(|function| !function.is_empty());
        let parts: Option<Vec<_>> = with_body.map(|function| split(function)).collect();
        let parts = parts.ok_or_else(|| failed("its functions are not whole"))?;
        let count = parts.len() as u32;
        let mut linked = Vec::with_capacity(module.len() + functions.len() + (64 << 10));
        // Magic number and version.
        linked.extend(module.get(..8).ok_or_else(|| failed("it is too short"))?);
        for payload in Parser::new(0).parse_all(module) {
            let payload = payload.map_err(failed)?;
            let Some((id, range)) = payload.as_section() else {
                continue;
            };
            let content = &module[range];
            let content = match id {
                section::TYPE => longer(content, TYPES.len() as u32, &types())?,
                section::FUNCTION => {
                    let kind = encoded(self.types);
                    longer(content, count, &kind.repeat(parts.len()))?
                }
                section::TABLE => {
                    // One table of functions, without a maximum.
                    let mut table = vec![1, 0x70, 0];
                    (self.table + numbered.len() as u32).encode(&mut table);
                    table
                }
                section::ELEMENT => longer(content, 1, &self.elements(&numbered)?)?,
                section::CODE => {
                    let mut code = Vec::with_capacity(functions.len());
                    for (body, _) in &parts {
                        body.encode(&mut code);
                    }
                    linked.push(section::CUSTOM);
                    self.hints(&parts).encode(&mut linked);
                    longer(content, count, &code)?
                }
                _ => content.to_vec(),
            };
            linked.push(id);
            content.encode(&mut linked);
        }
        Ok(linked)
    }

    /// The section with hints of branches.
    fn hints(&self, parts: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut hints = Vec::new();
        BRANCH_HINTS.encode(&mut hints);
        (parts.len() as u32).encode(&mut hints);
        for ((_, unlikely), function) in parts.iter().zip(self.functions..) {
            function.encode(&mut hints);
            hints.extend(encode_hints(unlikely));
        }
        hints
    }

    /// An active segment with the new functions, in order.
    fn elements(&self, numbered: &[&[u8]]) -> Result<Vec<u8>, VmError> {
        let mut segment = vec![0, 0x41];
        (self.table as i32).encode(&mut segment);
        segment.push(0x0b);
        (numbered.len() as u32).encode(&mut segment);
        let mut known = 0u32;
        for body in numbered {
            known += u32::from(!body.is_empty());
            let number = known.checked_sub(1);
            let number = number.ok_or_else(|| failed("its first function has no body"))?;
            (self.functions + number).encode(&mut segment);
        }
        Ok(segment)
    }
}

/// The encoded types of the new functions.
fn types() -> Vec<u8> {
    let mut types = Vec::new();
    for (parameters, results) in TYPES {
        types.push(0x60);
        for list in [parameters, results] {
            let bytes: Vec<u8> = list.iter().map(|kind| *kind as u8).collect();
            bytes.encode(&mut types);
        }
    }
    types
}

/// Splits a run of pieces, each after its length (32 bits, little-endian).
pub(super) fn bodies(mut bytes: &[u8]) -> Result<Vec<&[u8]>, VmError> {
    let mut bodies = Vec::new();
    while !bytes.is_empty() {
        let split = bytes.split_first_chunk();
        let split =
            split.and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
        let (body, rest) = split.ok_or_else(|| failed("its functions are not whole"))?;
        bodies.push(body);
        bytes = rest;
    }
    Ok(bodies)
}

/// Appends items to a section, whose content begins with their count.
fn longer(content: &[u8], more: u32, items: &[u8]) -> Result<Vec<u8>, VmError> {
    let mut reader = BinaryReader::new(content, 0);
    let count = reader.read_var_u32().map_err(failed)?;
    let mut longer = encoded(count + more);
    longer.extend(&content[reader.current_position()..]);
    longer.extend(items);
    Ok(longer)
}

/// Encodes a number.
fn encoded(number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    number.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::{Instance, Module, Store};

    /// `(table (export "t") 2 funcref) (func (export "a") (result i32) 42)`, which is
    /// element 1.
    const MODULE: &[u8] = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7f\x03\x02\x01\0\x04\x04\x01\x70\0\x02\
        \x07\x09\x02\x01t\x01\0\x01a\0\0\x09\x07\x01\0\x41\x01\x0b\x01\0\x0a\x06\x01\x04\0\x41\x2a\x0b";

    /// A function without locals that returns its first parameter plus a number.
    fn function(number: u8) -> Vec<u8> {
        let body = [0, 0x20, 0, 0x41, number, 0x6a, 0x0b];
        let size = |bytes: usize| (bytes as u32).to_le_bytes();
        [&size(body.len() + 4)[..], &size(body.len()), &body].concat()
    }

    #[test]
    fn functions_are_added_to_module_and_table() {
        let indices = NewIndices::of(MODULE).expect("a module");
        assert_eq!((indices.table, indices.types, indices.functions), (2, 1, 1));
        let linked = indices
            .add(MODULE, &[function(1), function(5), vec![0; 4]].concat())
            .expect("it fits");
        let engine = super::super::engine().expect("an engine");
        let module = Module::new(&engine, &linked).expect("a module");
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).expect("an instance");
        let table = instance.get_table(&mut store, "t").expect("a table");
        assert_eq!(table.size(&store), 5);
        for (at, sum) in [(2, 8), (3, 12), (4, 12)] {
            let function = table.get(&mut store, at).expect("there");
            let function = *function.unwrap_func().expect("a function");
            let typed = function
                .typed::<(i32, i64, i32, i64), i32>(&store)
                .expect("a region");
            assert_eq!(typed.call(&mut store, (7, 0, 0, 0)).expect("no trap"), sum);
        }
        let old = instance.get_typed_func::<(), i32>(&mut store, "a");
        assert_eq!(
            old.expect("there").call(&mut store, ()).expect("no trap"),
            42
        );
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let indices = NewIndices::of(MODULE).expect("a module");
        assert!(indices.add(MODULE, &function(1)[..9]).is_err());
        assert!(indices.add(MODULE, &[1, 0]).is_err());
        // Without a body, and without one before it.
        assert!(indices.add(MODULE, &[1, 0, 0, 0, 7]).is_err());
        assert!(indices.add(MODULE, &[0; 4]).is_err());
        assert!(indices.add(&MODULE[..7], &function(1)).is_err());
        assert!(NewIndices::of(&MODULE[..40]).is_err());
    }
}
