//! VM generation identifier (Microsoft, "Virtual Machine Generation ID"; device tree
//! binding `microsoft,vmgenid`): 16 bytes that change when the guest is restored from a
//! snapshot. The guest then mixes them into its entropy pool.

/// Size of an identifier in bytes.
pub(crate) const ID_BYTES: usize = 16;

/// The identifier, visible to the guest at the start of its page.
#[derive(Debug, Default)]
pub struct VmGenId {
    id: [u8; ID_BYTES],
}

impl VmGenId {
    /// Creates the device with an initial identifier.
    pub fn new(id: [u8; ID_BYTES]) -> Self {
        Self { id }
    }

    /// Changes the identifier; the caller pulses the interrupt.
    pub fn renew(&mut self, id: [u8; ID_BYTES]) {
        self.id = id;
    }

    /// Reads `len` (at most 8) bytes at `offset`, little-endian; zero past the identifier.
    pub fn read(&self, offset: u64, len: usize) -> u64 {
        let byte = |at: u64| {
            let at = usize::try_from(at).ok();
            at.and_then(|at| self.id.get(at)).copied().unwrap_or(0)
        };
        (0..len.min(8) as u64).fold(0, |value, i| {
            value | u64::from(byte(offset.saturating_add(i))) << (8 * i)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_by_any_width() {
        let mut id = VmGenId::new([0; 16]);
        id.renew(std::array::from_fn(|i| i as u8 + 1));
        assert_eq!(id.read(0, 8), 0x0807_0605_0403_0201);
        assert_eq!(id.read(8, 4), 0x0c0b_0a09);
        assert_eq!(id.read(15, 1), 16);
        assert_eq!(id.read(14, 8), 0x100f);
        assert_eq!(id.read(u64::MAX, 8), 0);
    }
}
