//! The stable codes of [`VerifyError`](super::VerifyError)s. A code is never
//! reused for another meaning.

/// A text range lies outside the text, or its bytes are not WTF-8 (D36).
pub const V0001: &str = "A99-V0001";
/// An index lies outside its table (security B03).
pub const V0002: &str = "A99-V0002";
/// A register lies outside the frame (security B03).
pub const V0003: &str = "A99-V0003";
/// Operands contradict each other or the table they name.
pub const V0004: &str = "A99-V0004";
/// Basic blocks do not cover the code, or do not begin with their own `Fuel`.
pub const V0005: &str = "A99-V0005";
/// A jump does not go to a block head (security B02).
pub const V0006: &str = "A99-V0006";
/// The code can run off its end (security B02).
pub const V0007: &str = "A99-V0007";
/// A price or charge is not what it must be (security B04).
pub const V0008: &str = "A99-V0008";
/// Steps are not properly nested or have impossible ranges.
pub const V0009: &str = "A99-V0009";
/// A step can be entered without its charge (security B04).
pub const V0010: &str = "A99-V0010";
/// Handlers are not properly nested or their targets are no handlers.
pub const V0011: &str = "A99-V0011";
/// A register is read that was not written on every path (security B03).
pub const V0012: &str = "A99-V0012";
/// The steps of a literal take values that are not there, or leave not one.
pub const V0013: &str = "A99-V0013";
/// A shape names a key twice.
pub const V0014: &str = "A99-V0014";
/// A place lies outside the code, or places are not in its order.
pub const V0015: &str = "A99-V0015";
/// The program is larger than anything a compiler makes.
pub const V0016: &str = "A99-V0016";
/// Code can run on without being charged (security B04).
pub const V0017: &str = "A99-V0017";
