//! Keys as every store of this project keeps them.

pub(crate) use a99_capabilities::StoredKey as Key;

/// The kind of keys that are texts.
pub(crate) const TEXT: u8 = Key::TEXT;
