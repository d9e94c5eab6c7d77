//! Limits of foreign modules: what is compiled has functions that compilers make,
//! bounded in size and in locals.

use super::error::{VmCode, VmError};
use wasmparser::{Parser, Payload};

/// Most bytes of code in all: emulators have 1 to 10 MB.
pub const MAX_CODE: u64 = 64 << 20;

/// Most bytes of one function: the largest of an emulator that went through
/// Asyncify, with a margin.
pub const MAX_FUNCTION: u64 = 4 << 20;

/// The same for one that is compiled in the process that asked: the compiler
/// takes time and memory that grow faster than a function.
pub const MAX_FUNCTION_HERE: u64 = 512 << 10;

/// Most locals of a function, and of all together.
const MAX_LOCALS: u64 = 20_000;
const MAX_ALL_LOCALS: u64 = 8_000_000;

/// Most functions.
pub const MAX_FUNCTIONS: u64 = 200_000;

/// Whether the functions of a module are ones that compilers make: bounded in
/// size and in locals, each and together.
///
/// # Errors
/// [`VmCode::Module`].
pub fn check_code(bytes: &[u8]) -> Result<(), VmError> {
    check_functions(bytes, MAX_FUNCTION)
}

fn check_functions(bytes: &[u8], most: u64) -> Result<(), VmError> {
    let bad = |error: wasmparser::BinaryReaderError| {
        VmError::new(VmCode::Module, format!("image: {error}"))
    };
    let (mut code, mut all_locals) = (0, 0);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(bad)? {
            Payload::CodeSectionStart { count, .. } if u64::from(count) > MAX_FUNCTIONS => {
                return Err(too_much("functions", count.into(), MAX_FUNCTIONS));
            }
            Payload::CodeSectionEntry(body) => {
                let size = body.range().len() as u64;
                code += size;
                let mut locals = 0;
                for declared in body.get_locals_reader().map_err(bad)? {
                    locals += u64::from(declared.map_err(bad)?.0);
                }
                all_locals += locals;
                for (what, has, most) in [
                    ("bytes in one function", size, most),
                    ("bytes of code", code, MAX_CODE),
                    ("locals in one function", locals, MAX_LOCALS),
                    ("locals", all_locals, MAX_ALL_LOCALS),
                ] {
                    if has > most {
                        return Err(too_much(what, has, most));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same for a module that is compiled in this process, which nothing can
/// stop.
///
/// # Errors
/// [`VmCode::Module`].
pub fn check_code_here(bytes: &[u8]) -> Result<(), VmError> {
    check_functions(bytes, MAX_FUNCTION_HERE).map_err(|error| {
        let text = format!("{}; a worker that compiles apart takes more", error.text);
        VmError::new(error.code, text)
    })
}

/// More than a limit.
pub fn too_much(what: &str, has: u64, most: u64) -> VmError {
    VmError::new(
        VmCode::Module,
        format!("the image has {has} {what}; at most {most} are allowed"),
    )
}
