//! Shared tests of persistent stores: values, limits and namespaces. Each crate with such a
//! store includes them and defines at its root the type `Tested`, a `store` for a test with its
//! guard, a `lasting` one for the process, `open_at` for a place, and the number of random
//! cases.

mod conformance;
mod limits;
mod namespaces;
pub(crate) mod processes;
mod values;

pub(crate) use conformance::conforms;
