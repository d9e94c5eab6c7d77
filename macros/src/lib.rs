//! `#[atom]`: turns a host function into an atom.
//!
//! The attribute works in four steps, a module each: `parse` parses the attribute and the
//! function, `validate` checks them and builds the `model`, `expand` generates the code. All
//! errors are reported at once, each at its own token. The function is kept even then, so
//! that no further errors follow.
//!
//! The macro handles only names and forms. `a99_vm::typed` reads arguments, writes answers
//! and creates schemas. The expansion calls it through the facade, or through the crate given
//! by `crate = path`.

#![warn(unreachable_pub)]

mod expand;
mod findings;
mod model;
mod names;
mod parse;
mod validate;

use proc_macro::TokenStream;

/// Turns a function into an atom.
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
/// The function is unchanged. The macro adds, with the function's visibility:
///
/// - `COUNT_WORDS`, an `AtomDecl`: name, documentation, schemas, price and code.
///   `AtomSet::with(COUNT_WORDS)` makes it available to programs.
/// - `CountWordsInput`, a struct with a field for each parameter (`Deserialize`,
///   `JsonSchema`, `Clone`, `Debug`; the parameters' types must implement these too).
/// - `CountWordsBuilder`, a trait with the method `count_words` for the fluent
///   builder. Every argument is an `Operand`; `()` leaves one out.
///
/// # The function
///
/// A plain `fn` or an `async fn` outside of `impl` blocks. The first parameter may be
/// `cx: &AtomCx`. The others correspond to the step's keys, in camelCase: numbers, `String`,
/// `&str`, `Option`, `Vec`, maps, and any type with `serde::Deserialize` and
/// `schemars::JsonSchema`. An `Option` is optional in the step. Documentation comments on
/// parameters describe them in the schema; `#[atom(default = EXPRESSION)]` gives a value for
/// a missing or null one, `#[atom(name = "key")]` renames its key.
///
/// A program's literals are also parsed at compile time: one that no run could accept gives
/// the warning `lint.wrong_literal`. So deserialization must have no side effects.
///
/// It returns `T`, or `Result<T, E>`, where `T` has `serde::Serialize` and
/// `schemars::JsonSchema`. The type, not its name, decides whether it is a `Result`: aliases
/// count, and a struct with that name does not. `E` either converts to an `AtomError`
/// (`impl From<E> for AtomError`), which may have a code of the host and help, or has
/// `Display`, and then its text is kept.
///
/// The derives of such types come from the crates `serde` and `schemars`, which your
/// `Cargo.toml` must list:
///
/// ```toml
/// serde = { version = "1", features = ["derive"] }
/// schemars = "1"
/// ```
///
/// Host resources such as a connection are not parameters: `cx.host::<T>()` returns the
/// `Arc<T>` given to `RunOptions::host` or `EngineBuilder::host`.
///
/// People and models see the documentation comment as the atom's description. Without one,
/// and without the key `docs`, the compiler warns (about the use of a deprecated item, since
/// macros cannot warn otherwise).
///
/// A plain function without `cx` is called inside one instruction. It must depend on its
/// parameters only (`effect = "pure"`, its default), because the machine may call it twice if
/// memory runs short. All other functions are host calls, made once.
///
/// # Keys
///
/// | key | meaning | default |
/// |---|---|---|
/// | `cost` | price of one execution in units of fuel: a number, or the path of a `fn(&CountWordsInput) -> f64` (an invalid price counts as 1) | required |
/// | `name` | the `op` that steps name | the function's name in camelCase |
/// | `docs` | the description, for people and models | the documentation comment |
/// | `timeout_ms` | time limit of one execution in milliseconds, for async atoms; 0 for no limit; a run may change it (`RunOptions::atom_timeout`) | 1000: one second |
/// | `effect` | `"pure"` or `"io"`; an `async fn` is not pure | `"io"` for an `async fn` or one with `cx` |
/// | `output` | the type whose schema the answer must match, or a JSON Schema as text | the function's own |
/// | `crate` | the path of `agent99`, if it has another name | `::agent99` |
#[proc_macro_attribute]
pub fn atom(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::atom(attribute.into(), item.into()).into()
}
