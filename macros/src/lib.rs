//! `#[atom]`: a function of the host becomes an atom.
//!
//! The attribute works in four steps, a module each: `parse` reads the
//! attribute and the function, `validate` checks them and builds the `model`,
//! `expand` writes the code. Whatever is wrong is told at once,
//! each finding at its own token; the function itself is kept even then, so
//! that nothing else seems to be wrong.
//!
//! The macro decides names and forms only. Reading arguments, writing answers
//! and making schemas is the business of `a99_vm::typed`, which the expansion
//! calls by way of the facade, or of the crate that `crate = path` names.

#![warn(unreachable_pub)]

mod expand;
mod findings;
mod model;
mod names;
mod parse;
mod validate;

use proc_macro::TokenStream;

/// Makes an atom of a function.
///
/// ```
/// use agent99::{AtomSet, atom};
///
/// /// Counts the words of a text.
/// #[atom(cost = 0.5)]
/// fn count_words(text: &str, least: Option<usize>) -> usize {
///     text.split_whitespace()
///         .filter(|word| word.len() >= least.unwrap_or(0))
///         .count()
/// }
///
/// let atoms = AtomSet::new().with(COUNT_WORDS);
/// assert!(atoms.get("countWords").is_some());
/// assert_eq!(count_words("as before", None), 2);
/// ```
///
/// The function stays as it is. Beside it, with its visibility, there are:
///
/// - `COUNT_WORDS`, an `AtomDecl`: name, documentation, schemas, price and
///   code. `AtomSet::with(COUNT_WORDS)` makes it exist for programs.
/// - `CountWordsInput`, a struct with a field for each parameter
///   (`Deserialize`, `JsonSchema`, `Clone`, `Debug`; so the parameters' types
///   have these too).
/// - `CountWordsBuilder`, a trait with the method `count_words` for the fluent
///   builder. Every argument is an `Operand`; `()` leaves one out.
///
/// # The function
///
/// A plain `fn` or an `async fn` outside of `impl` blocks. The first parameter
/// may be `cx: &AtomCx`. The others are named after the step's keys, in
/// camelCase: numbers, `String`, `&str`, `Option`, `Vec`, maps, and any type
/// that has `serde::Deserialize` and `schemars::JsonSchema`. An `Option` need
/// not be given. Documentation comments on parameters describe them in the
/// schema; `#[atom(default = EXPRESSION)]` says what stands in for one that is
/// missing or null, `#[atom(name = "key")]` renames its key.
///
/// A program's literals are read when it is compiled, too: one that no run could
/// read gives the warning `lint.wrong_literal`. Reading must not do anything else,
/// then.
///
/// It gives `T`, or `Result<T, E>`, where `T` has `serde::Serialize` and
/// `schemars::JsonSchema`. What counts as a `Result` is decided by the type, not by
/// its name: aliases are `Result`s, and a struct that is called so is not. `E` turns
/// into an `AtomError` (`impl From<E> for AtomError`), which may have a code of the
/// host's own and advice, or it has `Display`, and then its text is kept.
///
/// The derives of such types come from the crates `serde` and `schemars`, which
/// stand among your dependencies:
///
/// ```toml
/// serde = { version = "1", features = ["derive"] }
/// schemars = "1"
/// ```
///
/// What belongs to the host and not to the program, such as a connection, is no
/// parameter: `cx.host::<T>()` gives the `Arc<T>` that `RunOptions::host` or
/// `EngineBuilder::host` was given.
///
/// The documentation comment is what people and models are told of the atom. One
/// that has none, and no key `docs`, gives a warning of the compiler (as the use of
/// something deprecated, since macros cannot warn otherwise).
///
/// A plain function that takes no `cx` is called inside one instruction; it
/// must then depend on its parameters only (`effect = "pure"`, its default),
/// for the machine may call it twice when memory runs short. All others are
/// calls of the host, made once.
///
/// # Keys
///
/// | key | meaning | default |
/// |---|---|---|
/// | `cost` | price of one execution in units of fuel: a number, or the path of a `fn(&CountWordsInput) -> f64` (an insane price counts as 1) | must be given |
/// | `name` | the `op` that steps name | the function's name in camelCase |
/// | `docs` | what it does, for people and models | the documentation comment |
/// | `timeout_ms` | milliseconds that one execution may take, if it waits; 0 for no limit; a run may change it (`RunOptions::atom_timeout`) | 1000: one second |
/// | `effect` | `"pure"` or `"io"`; an `async fn` is not pure | `"io"` for an `async fn` or one with `cx` |
/// | `output` | the type whose schema the answer must fit, or a JSON Schema as text | the function's own |
/// | `crate` | where `agent99` is, if it has another name | `::agent99` |
#[proc_macro_attribute]
pub fn atom(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::atom(attribute.into(), item.into()).into()
}
