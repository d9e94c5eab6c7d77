//! The laws of stores that keep what they hold, as tests: what comes back, limits, and
//! namespaces. Each crate with such a store includes them and says at its root what it
//! tests: the type `Tested`, a `store` of the test with what keeps it, a `lasting` one of
//! the process, one `open_at` a place, and how many random cases are tried.

mod conformance;
mod limits;
mod namespaces;
pub(crate) mod processes;
mod values;

pub(crate) use conformance::conforms;
