//! The oracle: a plain tree-walking interpreter of programs.
//!
//! It judges the compiler and the virtual machine, so it shares no evaluation code with them:
//! it has separate values, scopes, fuel, error flow, trace and condition parsers. Both use
//! `a99-core` (tables, documents) and `a99-ecma` (primitives). Obvious code is preferred to
//! fast code; memory limits are not modelled.
//!
//! It judges the language: expressions, steps, prices, builtins, and atoms without a host. Of a
//! host it judges the calls, their arguments and their answers. A run that reaches a host atom
//! with host-specific rules (`granted`), or a form that talks to a model, ends unjudged; its
//! recorded vector judges it.

mod agents;
mod arrays;
mod atoms;
mod by_key;
mod call_all;
mod check;
mod coerce;
mod compiled;
mod condition;
mod context;
mod dates;
mod expr;
mod granted;
mod host;
mod io;
mod json;
mod machine;
mod maps;
mod members;
mod memo;
mod meter;
mod options;
mod pattern;
mod prices;
mod regex;
mod regex_escape;
mod regex_find;
mod regex_output;
mod regex_run;
mod regex_set;
mod schemas;
mod statics;
mod steps;
mod stores;
pub mod strict;
mod strings;
mod value;
mod web;

pub use host::{Answer, NoHost, OracleHost};
pub use machine::run;
pub use options::{CostOverride, CustomAtom, OracleOptions, OracleOutcome, Rejected, TraceEvent};
