//! `a99 lsp`: serves an editor over standard input and output.

use super::fmt::laid_out;
use crate::failure::{Exit, Failure};
use a99_lsp::{Ending, serve};
use agent99::Engine;
use std::io::{BufReader, stdin, stdout};

pub(crate) fn run() -> Result<Exit, Failure> {
    let engine = Engine::builder().lint(true).build();
    let input = BufReader::new(stdin());
    match serve(&engine, &laid_out, input, stdout().lock()) {
        Ok(Ending::Exit) => Ok(Exit::Ok),
        // The protocol wants 1.
        Ok(Ending::Early) => Ok(Exit::Error),
        Err(error) => Err(Failure::about("standard output", error.to_string())),
    }
}
