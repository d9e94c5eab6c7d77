//! Collected errors, reported together.

use proc_macro2::TokenStream;
use quote::ToTokens;
use std::fmt::Display;

/// Errors, each at its token.
#[derive(Default)]
pub(crate) struct Findings {
    all: Option<syn::Error>,
    count: usize,
}

impl Findings {
    /// Adds an error at these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, text: impl Display) {
        self.push(syn::Error::new_spanned(tokens, text));
    }

    /// Adds an error.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.count += 1;
        match &mut self.all {
            Some(all) => all.combine(error),
            None => self.all = Some(error),
        }
    }

    /// The value; an error is recorded.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Number of errors.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Converts to compile errors.
    pub(crate) fn into_errors(self) -> TokenStream {
        self.all
            .map_or_else(TokenStream::new, |e| e.to_compile_error())
    }
}
