//! Limits of foreign modules: bounds on the size and the locals of functions that are
//! compiled, generous for compiler output.

use super::error::{VmCode, VmError};
use wasmparser::{Parser, Payload};

/// Maximum bytes of code in a module: emulators have 1 to 10 MB.
pub const MAX_CODE: u64 = 64 << 20;

/// Maximum bytes of one function: the largest of an emulator that went through Asyncify,
/// with a margin.
pub const MAX_FUNCTION: u64 = 4 << 20;

/// Maximum bytes of one function compiled in this process: the compiler's time and memory
/// grow faster than a function.
pub const MAX_FUNCTION_HERE: u64 = 512 << 10;

/// Maximum locals of a function, and of all functions together.
const MAX_LOCALS: u64 = 20_000;
const MAX_ALL_LOCALS: u64 = 8_000_000;

/// Maximum functions of a module.
pub const MAX_FUNCTIONS: u64 = 200_000;

/// Checks the functions of a module against the limits of size and locals, each and
/// together.
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

/// Checks a module that is compiled in this process, where a compilation cannot be stopped.
///
/// # Errors
/// [`VmCode::Module`].
pub fn check_code_here(bytes: &[u8]) -> Result<(), VmError> {
    check_functions(bytes, MAX_FUNCTION_HERE).map_err(|error| {
        let text = format!("{}; a worker that compiles apart takes more", error.text);
        VmError::new(error.code, text)
    })
}

/// Error for a value above its limit.
pub fn too_much(what: &str, has: u64, most: u64) -> VmError {
    VmError::new(
        VmCode::Module,
        format!("the image has {has} {what}; at most {most} are allowed"),
    )
}
