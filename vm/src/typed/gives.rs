//! Answers of functions, told by their types: a `Result` by whatever name, or a
//! value that stands for itself.
//!
//! The expansion of `#[atom]` sees tokens, not types. It asks
//! `(&Gives::<T>::new()).__a99_gives()`, for which method look-up has two
//! candidates: one takes the reference as it is and holds for `Result`s, the
//! other takes a reference to it and holds for every type. The first wins where
//! it can. Errors are told in the same way: those that turn into an
//! [`AtomError`] keep their codes, of others the text is kept.

use super::direct::{Answer, Writes};
use super::schema::output_schema;
use crate::atom::AtomError;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::convert::Infallible;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;

/// What a parameter's type must have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of an atom's input",
    label = "a program gives JSON, which must become this type",
    note = "an input's type has `#[derive(Clone, Debug, serde::Deserialize, \
            schemars::JsonSchema)]`, with the crates `serde` and `schemars` among your dependencies",
    note = "what belongs to the host is no input: take `cx: &AtomCx` first and ask for it by \
            `cx.host::<T>()`"
)]
pub trait InputType: DeserializeOwned + JsonSchema + Clone + Debug {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Clone + Debug> InputType for T {}

/// Whether a parameter's type can be one; the expansion asks for its message.
pub const fn input_type<T: InputType>() {}

/// What an answer's type must have to be written as a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of an atom",
    label = "cannot be written as JSON for the program",
    note = "an answer's type has `#[derive(serde::Serialize)]`, with the crate `serde` among your \
            dependencies"
)]
pub trait AnswerType: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> AnswerType for T {}

/// What an answer's type must have to be declared.
#[diagnostic::on_unimplemented(
    message = "the answer `{Self}` of an atom has no schema",
    label = "has no JSON Schema that programs and models can be told",
    note = "an answer's type has `#[derive(schemars::JsonSchema)]`, with the crate `schemars` \
            among your dependencies; or write a schema: `#[atom(output = \"{{..}}\")]`"
)]
pub trait AnswerSchema: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> AnswerSchema for T {}

/// What an error's type must have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of an atom",
    label = "has no text that a program could be told",
    note = "an error has `std::fmt::Display`, or turns into an `AtomError`: \
            `impl From<{Self}> for AtomError`"
)]
pub trait ErrorType: Display {}

#[diagnostic::do_not_recommend]
impl<E: Display> ErrorType for E {}

/// The type that a function names as its answer.
#[derive(Debug)]
pub struct Gives<T>(PhantomData<fn() -> T>);

impl<T> Gives<T> {
    /// The type.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "for the expansion only")]
    pub const fn new() -> Gives<T> {
        Gives(PhantomData)
    }
}

/// A value that stands for itself.
#[derive(Debug)]
pub struct Always<T>(PhantomData<fn() -> T>);

/// A value, or an error.
#[derive(Debug)]
pub struct Perhaps<T, E>(PhantomData<fn() -> (T, E)>);

/// Holds for `Result`s.
pub trait GivesResult {
    /// What is given.
    type Kind;
    /// What is given.
    fn __a99_gives(&self) -> Self::Kind;
}

impl<T, E> GivesResult for Gives<Result<T, E>> {
    type Kind = Perhaps<T, E>;

    fn __a99_gives(&self) -> Perhaps<T, E> {
        Perhaps(PhantomData)
    }
}

/// Holds for every type, and is found after [`GivesResult`].
pub trait GivesValue {
    /// What is given.
    type Kind;
    /// What is given.
    fn __a99_gives(&self) -> Self::Kind;
}

impl<T> GivesValue for &Gives<T> {
    type Kind = Always<T>;

    fn __a99_gives(&self) -> Always<T> {
        Always(PhantomData)
    }
}

impl<T> Always<T> {
    /// The schema of the answer.
    pub fn schema(&self) -> Json
    where
        T: AnswerSchema,
    {
        output_schema::<T>()
    }

    /// There is no error.
    pub const fn error_type(&self) -> Fails<Infallible> {
        Fails(PhantomData)
    }

    /// The type of the value.
    pub const fn value_type(&self) -> Writes<T> {
        Writes::new()
    }

    /// What the function gave.
    pub fn answer(
        &self,
        answer: T,
        value: impl FnOnce(T) -> Answer,
        _: impl FnOnce(Infallible) -> AtomError,
    ) -> Answer {
        value(answer)
    }
}

impl<T, E> Perhaps<T, E> {
    /// The schema of the answer where there is no error.
    pub fn schema(&self) -> Json
    where
        T: AnswerSchema,
    {
        output_schema::<T>()
    }

    /// The type of the error.
    pub const fn error_type(&self) -> Fails<E> {
        Fails(PhantomData)
    }

    /// The type of the value where there is no error.
    pub const fn value_type(&self) -> Writes<T> {
        Writes::new()
    }

    /// What the function gave.
    pub fn answer(
        &self,
        answer: Result<T, E>,
        value: impl FnOnce(T) -> Answer,
        error: impl FnOnce(E) -> AtomError,
    ) -> Answer {
        match answer {
            Ok(answer) => value(answer),
            Err(failed) => Answer::failed(error(failed)),
        }
    }
}

/// The type of a function's error.
#[derive(Debug)]
pub struct Fails<E>(PhantomData<fn() -> E>);

/// An error that turns into an [`AtomError`].
#[derive(Debug)]
pub struct WithCode<E>(PhantomData<fn() -> E>);

/// An error of which the text is kept.
#[derive(Debug)]
pub struct WithText<E>(PhantomData<fn() -> E>);

/// Holds for errors that turn into an [`AtomError`].
pub trait FailsWithCode {
    /// How the error is kept.
    type Kind;
    /// How the error is kept.
    fn __a99_fails(&self) -> Self::Kind;
}

impl<E: Into<AtomError>> FailsWithCode for Fails<E> {
    type Kind = WithCode<E>;

    fn __a99_fails(&self) -> WithCode<E> {
        WithCode(PhantomData)
    }
}

/// Holds for every type, and is found after [`FailsWithCode`].
pub trait FailsWithText {
    /// How the error is kept.
    type Kind;
    /// How the error is kept.
    fn __a99_fails(&self) -> Self::Kind;
}

impl<E> FailsWithText for &Fails<E> {
    type Kind = WithText<E>;

    fn __a99_fails(&self) -> WithText<E> {
        WithText(PhantomData)
    }
}

impl<E> WithCode<E> {
    /// The error with its codes and its help.
    pub fn error(&self, error: E) -> AtomError
    where
        E: Into<AtomError>,
    {
        error.into()
    }
}

impl<E> WithText<E> {
    /// An ordinary failure with the error's text.
    pub fn error(&self, error: E) -> AtomError
    where
        E: ErrorType,
    {
        AtomError::new(error.to_string())
    }
}
