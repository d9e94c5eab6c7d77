//! Memory balloon (virtio 1.2 section 5.5), used only for free page reporting: the guest
//! reports unused memory, and the embedder may reclaim it. The contents are undefined when
//! the guest uses the memory again, which the guest expects.
//!
//! The device never asks the guest to give up memory. A driver that inflates the balloon
//! anyway is served.

use super::mmio::Device;
use super::queue::{Queue, QueueFault};
use crate::channels::Channels;
use crate::devices::Env;
use crate::host::Host;
use crate::ram::{PAGE_SHIFT, PAGE_SIZE, RAM_BASE};

/// Free pages are reported (section 5.5.3).
const F_PAGE_REPORTING: u64 = 1 << 5;

/// Queues in order. Queues of features that are not offered have no number.
const INFLATE: usize = 0;
const REPORTING: usize = 2;

/// Maximum page numbers of one chain that are read, each of 4 bytes. Linux sends 256.
const MAX_PAGES: usize = 256;

/// Configuration: pages wanted (zero) and pages held, then two fields of features that are
/// not offered.
const CONFIG: [u8; 16] = [0; 16];

/// The memory balloon.
#[derive(Debug, Default)]
pub struct Balloon {
    chain: super::queue::Chain,
}

impl Balloon {
    /// Creates a balloon that requests no memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Releases pages that the driver names by number.
    fn inflate<H: Host>(&self, env: &mut Env<'_, H>) {
        let mut numbers = [0; 4 * MAX_PAGES];
        let len = self.chain.read(env.ram, 0, &mut numbers);
        for number in numbers[..len].as_chunks::<4>().0 {
            let page = u64::from(u32::from_le_bytes(*number)) << PAGE_SHIFT;
            give_back(env, page, PAGE_SIZE);
        }
    }
}

/// Releases memory to the embedder, if it is RAM.
fn give_back<H: Host>(env: &mut Env<'_, H>, addr: u64, len: usize) {
    if addr >= RAM_BASE
        && let Some(memory) = env.ram.slice_mut(addr, len)
    {
        env.host.release(memory);
    }
}

impl Device for Balloon {
    const ID: u32 = 5;
    // Linux reports 32 ranges at once and needs that many descriptors.
    const QUEUE_SIZES: &'static [u16] = &[16, 16, 32];

    fn features(&self) -> u64 {
        F_PAGE_REPORTING
    }

    fn config(&self) -> &[u8] {
        &CONFIG
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
        for (number, queue) in queues.iter_mut().enumerate() {
            for _ in 0..queue.available(env.ram)? {
                queue.pop(env.ram, &mut self.chain)?;
                match number {
                    INFLATE => self.inflate(env),
                    REPORTING => {
                        for segment in &self.chain.writable {
                            give_back(env, segment.addr, segment.len as usize);
                        }
                    }
                    // Deflated pages are usable at once.
                    _ => {}
                }
                queue.push(env.ram, self.chain.head, 0)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::virtio::driver::Rig;

    #[test]
    fn reported_memory_is_given_back() {
        let mut rig = Rig::new(Balloon::new(), F_PAGE_REPORTING);
        rig.add(2, &[], &[8192, 4096]);
        rig.notify(2);
        assert!(rig.used(2).is_some());
        assert_eq!(rig.host.released, [8192, 4096]);
        assert!(rig.device.interrupt());
    }

    #[test]
    fn pages_are_given_back_by_number() {
        let mut rig = Rig::new(Balloon::new(), F_PAGE_REPORTING);
        let first = (RAM_BASE >> PAGE_SHIFT) as u32;
        let numbers: Vec<u8> = [first, first + 1, 0, u32::MAX]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        rig.add(0, &[&numbers], &[]);
        rig.add(1, &[&numbers], &[]);
        rig.notify(0);
        assert!(rig.used(0).is_some());
        rig.notify(1);
        assert!(rig.used(1).is_some());
        assert_eq!(
            rig.host.released,
            [PAGE_SIZE, PAGE_SIZE],
            "those that are RAM"
        );
        assert!(rig.device.live());
    }
}
