//! Classification of return types: a `Result` under any name, or a plain value.
//!
//! The expansion of `#[atom]` sees tokens, not types. It calls
//! `(&Gives::<T>::new()).__a99_gives()`, for which method look-up has two candidates: one
//! takes the reference itself and exists for `Result`s, the other takes a reference to it and
//! exists for every type. The first wins if it applies. Errors are classified in the same
//! way: those that convert to an [`AtomError`] keep their codes, others only their text.

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

/// Bound on the type of a parameter.
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

/// Requires an input type; the expansion calls it for the error message.
pub const fn input_type<T: InputType>() {}

/// Bound on the type of a serialized answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of an atom",
    label = "cannot be written as JSON for the program",
    note = "an answer's type has `#[derive(serde::Serialize)]`, with the crate `serde` among your \
            dependencies"
)]
pub trait AnswerType: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> AnswerType for T {}

/// Bound on the type of an answer with a schema.
#[diagnostic::on_unimplemented(
    message = "the answer `{Self}` of an atom has no schema",
    label = "has no JSON Schema that programs and models can be told",
    note = "an answer's type has `#[derive(schemars::JsonSchema)]`, with the crate `schemars` \
            among your dependencies; or write a schema: `#[atom(output = \"{{..}}\")]`"
)]
pub trait AnswerSchema: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> AnswerSchema for T {}

/// Bound on the type of an error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of an atom",
    label = "has no text that a program could be told",
    note = "an error has `std::fmt::Display`, or turns into an `AtomError`: \
            `impl From<{Self}> for AtomError`"
)]
pub trait ErrorType: Display {}

#[diagnostic::do_not_recommend]
impl<E: Display> ErrorType for E {}

/// The return type of a function.
#[derive(Debug)]
pub struct Gives<T>(PhantomData<fn() -> T>);

impl<T> Gives<T> {
    /// Creates the selector.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "for the expansion only")]
    pub const fn new() -> Gives<T> {
        Gives(PhantomData)
    }
}

/// A plain value.
#[derive(Debug)]
pub struct Always<T>(PhantomData<fn() -> T>);

/// A value, or an error.
#[derive(Debug)]
pub struct Perhaps<T, E>(PhantomData<fn() -> (T, E)>);

/// Implemented for `Result`s.
pub trait GivesResult {
    /// The kind of return type.
    type Kind;
    /// Returns the kind.
    fn __a99_gives(&self) -> Self::Kind;
}

impl<T, E> GivesResult for Gives<Result<T, E>> {
    type Kind = Perhaps<T, E>;

    fn __a99_gives(&self) -> Perhaps<T, E> {
        Perhaps(PhantomData)
    }
}

/// Implemented for every type; method look-up finds it after [`GivesResult`].
pub trait GivesValue {
    /// The kind of return type.
    type Kind;
    /// Returns the kind.
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

    /// No error type.
    pub const fn error_type(&self) -> Fails<Infallible> {
        Fails(PhantomData)
    }

    /// The type of the value.
    pub const fn value_type(&self) -> Writes<T> {
        Writes::new()
    }

    /// Converts the function's result to an answer.
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
    /// The schema of the success value.
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

    /// The type of the success value.
    pub const fn value_type(&self) -> Writes<T> {
        Writes::new()
    }

    /// Converts the function's result to an answer.
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

/// An error that converts to an [`AtomError`].
#[derive(Debug)]
pub struct WithCode<E>(PhantomData<fn() -> E>);

/// An error that keeps only its text.
#[derive(Debug)]
pub struct WithText<E>(PhantomData<fn() -> E>);

/// Implemented for errors that convert to an [`AtomError`].
pub trait FailsWithCode {
    /// The kind of error.
    type Kind;
    /// Returns the kind.
    fn __a99_fails(&self) -> Self::Kind;
}

impl<E: Into<AtomError>> FailsWithCode for Fails<E> {
    type Kind = WithCode<E>;

    fn __a99_fails(&self) -> WithCode<E> {
        WithCode(PhantomData)
    }
}

/// Implemented for every type; method look-up finds it after [`FailsWithCode`].
pub trait FailsWithText {
    /// The kind of error.
    type Kind;
    /// Returns the kind.
    fn __a99_fails(&self) -> Self::Kind;
}

impl<E> FailsWithText for &Fails<E> {
    type Kind = WithText<E>;

    fn __a99_fails(&self) -> WithText<E> {
        WithText(PhantomData)
    }
}

impl<E> WithCode<E> {
    /// Converts the error with its codes and help.
    pub fn error(&self, error: E) -> AtomError
    where
        E: Into<AtomError>,
    {
        error.into()
    }
}

impl<E> WithText<E> {
    /// Converts the error to an ordinary failure with its text.
    pub fn error(&self, error: E) -> AtomError
    where
        E: ErrorType,
    {
        AtomError::new(error.to_string())
    }
}
