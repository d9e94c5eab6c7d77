//! The compiler: from the JSON of a program to register bytecode.
//!
//! [`compile`] is a pure function. It reports every diagnostic, not only the first. Only the
//! faults that decision D44 lists reject a program; every other fault is a warning here and a
//! catchable error when reached. The compiler does not know the machine that runs the code: the
//! two meet in `a99_core::program`.
//!
//! ```
//! use a99_atoms::core_atoms;
//! use a99_compiler::{CompileOptions, compile};
//! use a99_core::disasm::disassemble;
//! use a99_core::json::{Document, Limits};
//! use std::sync::Arc;
//!
//! let compile = |text: &str| {
//!     let source = Arc::new(Document::parse(text, &Limits::default())?);
//!     compile(&source, &core_atoms(), &CompileOptions::default())
//! };
//! let program = compile(r#"{"op": "seq", "steps": [{"op": "mathCalc", "expr": "6 * 7"}]}"#)?;
//! assert!(disassemble(&program).contains("mathCalc"));
//!
//! let refused = compile(r#"{"op": "seq", "steps": [{"op": "while", "condition": "a >"}]}"#);
//! assert_eq!(refused.unwrap_err().iter().next().unwrap().pointer, "/steps/0/condition");
//! # Ok::<(), a99_core::diag::Diagnostics>(())
//! ```

#![warn(unreachable_pub)]

pub mod advice;
mod emit;
mod findings;
pub mod ir;
mod limits;
mod lower;
pub mod pass;
mod pool;
pub mod vars;

pub use a99_expr::{self as expr, compat};

use a99_core::diag::Diagnostics;
use a99_core::json::Document;
use a99_core::program::Program;
use a99_core::sig::Signatures;
use a99_core::text::Text;
use pass::NewPass;
use std::sync::Arc;

/// Steps may nest this deep (D38).
pub const MAX_STEP_DEPTH: u32 = 512;

/// Expression nodes may nest this deep (D38).
pub const MAX_EXPR_DEPTH: u32 = 1024;

/// The grammar of condition strings (D3).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The one grammar of decisions D2 and D47.
    #[default]
    Standard,
    /// The second generation's builder grammar, strictly ([`compat`]).
    V2,
}

/// Options of a compilation.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The grammar of condition strings.
    pub dialect: Dialect,
    /// Maximum nesting of steps.
    pub max_step_depth: u32,
    /// Maximum nesting of expression nodes.
    pub max_expr_depth: u32,
    /// Variables of the caller that the program sees (`runCode`), each with whether it is a
    /// constant; they arrive in the first registers.
    pub outer: Vec<(Text, bool)>,
    /// Maximum number of instructions, if the host wants fewer than the size of the source allows.
    pub max_code: Option<usize>,
    /// Whether to run the lint pass, which warns of likely mistakes in accepted programs and takes
    /// more time. `a99_lint::compile` does so; [`compile`] has no rules.
    pub lint: bool,
    /// Whether to check the literals of a program against the host's atoms; a literal that an atom
    /// rejects is a warning.
    pub check_literals: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            dialect: Dialect::Standard,
            max_step_depth: MAX_STEP_DEPTH,
            max_expr_depth: MAX_EXPR_DEPTH,
            outer: Vec::new(),
            max_code: None,
            lint: false,
            check_literals: true,
        }
    }
}

/// Nesting up to which lowering fits an ordinary thread's stack.
const SHALLOW: u32 = 48;

/// Stack for one level of nesting in a build without optimisation, with a margin; deep programs
/// are lowered on a separate thread.
const STACK_PER_LEVEL: usize = 24 << 10;

/// WebAssembly modules start no threads: lowering runs on the caller's stack, whose size the
/// embedder sets (docs/run.md says how).
const NO_THREADS: bool = cfg!(target_family = "wasm");

/// Compiles a program.
///
/// # Errors
/// The diagnostics, at least one of them an error, when the program is
/// rejected. Warnings of an accepted program are in [`Program::warnings`].
pub fn compile(
    source: &Arc<Document>,
    signatures: &(dyn Signatures + Sync),
    options: &CompileOptions,
) -> Result<Program, Diagnostics> {
    compile_watched(source, signatures, options, &|| false)
}

/// Compiles a program that the caller can cancel.
///
/// `stop` is polled; once it returns true, compilation ends with
/// [`STOPPED`](a99_core::diag::codes::STOPPED).
///
/// # Errors
///
/// As [`compile`].
pub fn compile_watched(
    source: &Arc<Document>,
    signatures: &(dyn Signatures + Sync),
    options: &CompileOptions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Program, Diagnostics> {
    compile_with_pass(source, signatures, options, stop, None)
}

/// Compiles a program that a pass watches.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_with_pass(
    source: &Arc<Document>,
    signatures: &(dyn Signatures + Sync),
    options: &CompileOptions,
    stop: &(dyn Fn() -> bool + Sync),
    pass: Option<NewPass>,
) -> Result<Program, Diagnostics> {
    let mut compiled = compile_unlocated(source, signatures, options, stop, pass);
    let findings = match &mut compiled {
        Ok(program) => &mut program.warnings,
        Err(findings) => findings,
    };
    if source.has_origin() {
        // Positions within texts refer to the JSON.
        findings.0.iter_mut().for_each(|found| found.inner = None);
    }
    if let Some(text) = source.shown() {
        findings.locate(text);
    }
    compiled
}

/// Compiles a program into findings without lines and columns.
fn compile_unlocated(
    source: &Arc<Document>,
    signatures: &(dyn Signatures + Sync),
    options: &CompileOptions,
    stop: &(dyn Fn() -> bool + Sync),
    pass: Option<NewPass>,
) -> Result<Program, Diagnostics> {
    let facts = limits::check(source, options, stop)?;
    let depth = facts.depth;
    if depth <= SHALLOW || NO_THREADS {
        return lower::program(source, signatures, options, &facts, stop, pass);
    }
    let stack = (depth as usize + 64) * STACK_PER_LEVEL;
    let facts = &facts;
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("a99-compile".into())
            .stack_size(stack)
            .spawn_scoped(scope, || {
                lower::program(source, signatures, options, facts, stop, pass)
            })
            .ok()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_else(|| Err(limits::no_stack(depth)))
    })
}
