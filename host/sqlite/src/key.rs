//! Keys in the format that all stores of this project share.

pub(crate) use a99_capabilities::StoredKey as Key;

/// The kind of text keys.
pub(crate) const TEXT: u8 = Key::TEXT;
