//! Compatibility dialects: the texts of the older generations (v0 to v2), each with its
//! parser.
//!
//! * [`parse_math`]: `mathCalc`, the first generation's grammar with its run-time messages
//!   (language section 3.10, decisions D4 and D5);
//! * [`parse_condition_v2`]: conditions as the second generation's builder reads them, for a
//!   host that chose `Dialect::V2` (language section 3.11, decision D3).
//!
//! Both fill the arena of [the crate](crate), within its limits. Their grammars follow the
//! references and are closed: only [`parse_condition`](crate::parse_condition) gets new
//! language features.

mod condition_v2;
mod error;
mod math;
mod math_scan;
#[cfg(test)]
mod tests;

pub use condition_v2::parse_condition_v2;
pub use error::MathError;
pub use math::parse_math;
