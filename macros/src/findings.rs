//! Everything that is wrong, told together.

use proc_macro2::TokenStream;
use quote::ToTokens;
use std::fmt::Display;

/// Findings, each at its token.
#[derive(Default)]
pub struct Findings(Option<syn::Error>);

impl Findings {
    /// Notes a finding at these tokens.
    pub fn at(&mut self, tokens: impl ToTokens, text: impl Display) {
        self.push(syn::Error::new_spanned(tokens, text));
    }

    /// Notes a finding.
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The value, or a note of why there is none.
    pub fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The findings as compile errors.
    pub fn into_errors(self) -> TokenStream {
        self.0
            .map_or_else(TokenStream::new, |e| e.to_compile_error())
    }
}
