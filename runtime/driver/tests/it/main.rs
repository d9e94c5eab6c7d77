//! Agents on a host, with stores of files.

mod echo;
mod support;
