//! Entropy device (virtio 1.2 section 5.4).

use super::mmio::Device;
use super::queue::{Chain, Queue, QueueFault};
use crate::channels::Channels;
use crate::devices::Env;
use crate::host::Host;

/// Maximum bytes for one request. Linux asks for 64; the device may return fewer than asked
/// (section 5.4.6.1).
const MAX_BYTES: usize = 256;

/// Entropy source: fills each request with bytes from the host.
#[derive(Debug, Default)]
pub struct Rng {
    chain: Chain,
}

impl Rng {
    /// Creates an entropy source.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Device for Rng {
    const ID: u32 = 4;
    const QUEUE_SIZES: &'static [u16] = &[8];

    fn features(&self) -> u64 {
        0
    }

    fn config(&self) -> &[u8] {
        &[]
    }

    fn start(&mut self, _features: u64) {}

    fn reset(&mut self) {}

    fn wants_service(&self, _channels: &Channels) -> bool {
        false
    }

    fn serve<H: Host>(
        &mut self,
        queues: &mut [Queue],
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        let [queue] = queues else { return Ok(()) };
        for _ in 0..queue.available(env.ram)? {
            queue.pop(env.ram, &mut self.chain)?;
            let mut bytes = [0; MAX_BYTES];
            let len = self.chain.writable_len().min(MAX_BYTES);
            env.host.random(&mut bytes[..len]);
            let written = self.chain.write(env.ram, 0, &bytes[..len]);
            queue.push(env.ram, self.chain.head, written)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::virtio::driver::Rig;

    #[test]
    fn gives_bytes_of_the_host() {
        let mut rig = Rig::new(Rng::new(), 0);
        rig.add(0, &[], &[64]);
        rig.add(0, &[], &[100, 1000]);
        rig.notify(0);
        let (_, first) = rig.used(0).expect("served");
        let (_, second) = rig.used(0).expect("served");
        assert_eq!((first.len(), second.len()), (64, MAX_BYTES));
        assert!(second.iter().any(|&byte| byte != 0));
        assert_ne!(first[..], second[..64]);
        assert!(rig.device.interrupt());
    }
}
