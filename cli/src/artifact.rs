//! Summary of an artifact, for people and as JSON.
//!
//! The file is decoded and verified, but not linked, so an artifact for another host can be
//! inspected too.

use crate::failure::{Exit, Failure};
use crate::input::Source;
use crate::output;
use a99_core::disasm::disassemble;
use a99_core::program::{NO_SIGNATURE, OpRef, Program};
use a99_core::text::{escape_for_terminal, hex};
use agent99::artifact::{
    DecodeOptions, FORMAT_VERSION, Header, header, instruction_set, sign::key_id,
};
use agent99::{Artifact, Map, Value};
use std::fmt::Write as _;

/// Decodes and verifies.
pub(crate) fn decode(source: &Source) -> Result<Artifact, Failure> {
    Artifact::from_bytes(&source.bytes, &DecodeOptions::default())
        .map_err(|error| Failure::artifact(&source.name, error))
}

pub(crate) fn show(source: &Source, artifact: &Artifact, json: bool) -> Result<Exit, Failure> {
    let head = header(&source.bytes, &DecodeOptions::default())
        .map_err(|error| Failure::artifact(&source.name, error))?;
    let program = artifact.program();
    if json {
        output::json(&to_json(&head, program));
    } else {
        output::out(&to_text(&head, program));
    }
    Ok(Exit::Ok)
}

/// The key id of the signature.
fn signer(head: &Header<'_>) -> Option<String> {
    let block = head.signature?;
    Some(key_id(block).map_or_else(|| "of no known kind".to_owned(), |id| id.to_string()))
}

/// The hash of an import; `None` if the compiler knew no atom for the op.
fn import_hash(op: &OpRef) -> Option<String> {
    (op.signature != NO_SIGNATURE).then(|| format!("{:016x}", op.signature))
}

fn import_name(program: &Program, op: &OpRef) -> String {
    String::from_utf8_lossy(program.text(op.name)).into_owned()
}

fn to_json(head: &Header<'_>, program: &Program) -> Value {
    let mut map = Map::new();
    map.insert("format_version", f64::from(FORMAT_VERSION));
    map.insert("instruction_set", format!("{:016x}", instruction_set()));
    map.insert("flags", f64::from(head.flags));
    map.insert("content_hash", hex(&head.content_hash));
    map.insert("signed_by", signer(head).map_or(Value::Null, Value::from));
    let sections = head.sections.iter().zip(&head.offsets);
    let sections = sections.map(|((kind, bytes), offset)| {
        let mut section = Map::new();
        section.insert("name", kind.name());
        section.insert("offset", *offset as f64);
        section.insert("bytes", bytes.len() as f64);
        Value::Object(section)
    });
    map.insert("sections", Value::Array(sections.collect()));
    let imports = program.ops.iter().map(|op| {
        let mut import = Map::new();
        import.insert("name", import_name(program, op));
        import.insert("hash", import_hash(op).map_or(Value::Null, Value::from));
        Value::Object(import)
    });
    map.insert("imports", Value::Array(imports.collect()));
    map.insert("disassembly", disassemble(program));
    Value::Object(map)
}

fn to_text(head: &Header<'_>, program: &Program) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "artifact, format version {FORMAT_VERSION}");
    let _ = writeln!(out, "instruction set  {:016x}", instruction_set());
    let _ = writeln!(out, "content hash     {}", hex(&head.content_hash));
    let signed = signer(head).map_or_else(
        || "no".to_owned(),
        |key| format!("by key {key}, not checked"),
    );
    let _ = writeln!(out, "signed           {signed}");
    let _ = writeln!(out, "\nsections          offset     bytes");
    for ((kind, bytes), offset) in head.sections.iter().zip(&head.offsets) {
        let _ = writeln!(out, "  {:<14}{offset:>8}{:>10}", kind.name(), bytes.len());
    }
    let _ = writeln!(out, "\nimports");
    for op in &program.ops {
        let hash = import_hash(op).unwrap_or_else(|| "unknown atom".to_owned());
        let name = import_name(program, op);
        let _ = writeln!(out, "  {hash:<16}  {}", escape_for_terminal(&name));
    }
    // The disassembler escapes all text of the program.
    let _ = write!(out, "\n{}", disassemble(program));
    out
}
