//! Just-in-time compiler: hot regions of guest code as WebAssembly functions.
//!
//! Samples at the end of each slice of the budget find hot pages; the interpreter's loop
//! pays nothing. The emulator passes a hot page to the embedder, which emits the region as a
//! function (`native`, `emit`), compiles it while the guest continues, instantiates it with
//! this memory and function table, and announces it later. Because the embedder translates,
//! its result depends only on the page's bytes, and it may give it to other guests. It is
//! asked for such results at the first sample of a page. Then the blocks at the region's
//! entries become [`Op::Enter`]. Only these lead into translated code, so that the code of dropped blocks
//! never runs again. The code of typical work is found beforehand (`profile`), in a copy of
//! the guest, and its functions are in the emulator's own module when the guest starts
//! (`aot`); those of the hottest pages share functions with their neighbours. Regions reach
//! each other through the jump cache: it records where the interpreter entered them, and
//! every change of mappings or code empties it.
//!
//! The compiler translates no instruction that changes more than the hart's registers,
//! handles no fault and fills no TLB. There the function leaves to the interpreter, at the
//! exact instruction.
//!
//! [`Op::Enter`]: crate::interp::inst::Op::Enter

mod access;
mod aot;
mod code;
mod context;
mod emit;
mod exits;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod native;
mod profile;
pub(crate) mod region;
mod sampler;
pub(crate) mod structure;
mod version;

pub(crate) use self::aot::AotRegions;
pub(crate) use self::context::{ContextLayout, Helpers, USER_NODE};
pub(crate) use self::emit::INTERPRET;
pub(crate) use self::profile::Profile;
#[cfg(not(target_arch = "wasm32"))]
pub use self::version::VERSION;
#[cfg(target_arch = "wasm32")]
pub(crate) use self::{context::VmContext, emit::ops::unpack};

use self::sampler::Sampler;
use crate::hart::csr::Bank;
use crate::hart::{Cursor, Registers};
use crate::interp::inst::Inst;
use crate::mmu::tlb::{DataTlbs, ExecTlb, MMU_INDEXES};
use a99_sandbox_abi::MAX_REQUESTS;

/// Maximum size of a function in bytes; larger ones are not compiled.
pub(crate) const MAX_FUNCTION: usize = a99_sandbox_abi::FUNCTION_BYTES;

/// Policy of translation while the guest runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    /// Samples that make a page hot.
    pub samples: u16,
    /// Instructions before the first sample.
    pub age: u64,
}

/// A page whose translation was requested.
#[derive(Debug)]
struct Pending {
    ticket: u32,
    page: u32,
}

/// Hot code and pending requests; see the module.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    /// Translation is off without it.
    layout: Option<ContextLayout>,
    policy: Policy,
    sampler: Sampler,
    pending: Vec<Pending>,
    last_ticket: u32,
}

impl Translator {
    /// Translates hot code from now on; [`ContextLayout`] must stay valid.
    pub(crate) fn enable(&mut self, layout: ContextLayout, policy: Policy) {
        self.layout = Some(layout);
        self.policy = policy;
    }

    /// Whether the first sample already counts: every position is then sampled.
    pub(crate) fn is_eager(&self) -> bool {
        self.policy.samples <= 1
    }

    /// Whether translation is on.
    pub(crate) fn is_enabled(&self) -> bool {
        self.layout.is_some()
    }

    /// The layout; none while translation is off.
    pub(crate) fn layout(&self) -> Option<&ContextLayout> {
        self.layout.as_ref()
    }

    /// Drops all state, and stops translating.
    pub(crate) fn disable(&mut self) {
        *self = Self::default();
    }

    /// Drops the samples and pending translations of all pages.
    pub(crate) fn clear(&mut self) {
        self.sampler = Sampler::default();
        self.pending.clear();
    }

    /// Drops the samples and pending translations of a page whose code has changed.
    pub(crate) fn drop_page(&mut self, page: usize) {
        self.sampler.flush_page(page as u32);
        self.pending.retain(|pending| pending.page as usize != page);
    }

    /// Counts a sample of untranslated code. Returns the offsets to request of the
    /// embedder: none at the first sample of a page, which asks only for what it has.
    pub(crate) fn sample(&mut self, page: usize, offset: u16) -> Option<Vec<u16>> {
        self.layout?;
        let samples = self.sampler.sample(page as u32, offset);
        // A page that is hot now may ask at its next sample.
        if self.pending.len() >= MAX_REQUESTS {
            return None;
        }
        if samples >= self.policy.samples {
            return Some(self.sampler.take(page as u32));
        }
        (samples == 1).then(Vec::new)
    }

    /// A ticket for the next request.
    pub(crate) fn ticket(&mut self) -> u32 {
        self.last_ticket = self.last_ticket.wrapping_add(1).max(1);
        self.last_ticket
    }

    /// Records that the embedder will answer the request for a page.
    pub(crate) fn requested(&mut self, page: usize, ticket: u32) {
        let page = page as u32;
        self.pending.push(Pending { ticket, page });
    }

    /// The page requested with a ticket, unless it has changed since.
    pub(crate) fn page(&self, ticket: u32) -> Option<usize> {
        let mut pending = self.pending.iter();
        let found = pending.find(|pending| pending.ticket == ticket)?;
        Some(found.page as usize)
    }

    /// Ends a request.
    pub(crate) fn finish(&mut self, ticket: u32) {
        self.pending.retain(|pending| pending.ticket != ticket);
    }
}

/// Runs a region: the function that `inst` names, entered at its node, for the page at a
/// virtual address. Cursor and registers must be those of the hart that the region was
/// translated for. Returns [`JUMP`](emit::JUMP) or [`INTERPRET`]. Jumps to other regions
/// continue inside the call.
#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "what the fast loop holds, one by one, so that it stays in registers"
)]
pub(crate) fn enter(
    inst: &Inst,
    page: u64,
    x: &mut Registers,
    bank: Bank<'_>,
    data: &[DataTlbs; MMU_INDEXES],
    exec: &ExecTlb,
    ram: &mut [u8],
    at: &mut Cursor,
) -> u32 {
    #[cfg(target_arch = "wasm32")]
    return crate::wasm::region(inst, page, x, bank, data, exec, ram, at);
    // No translation is ever installed here: the interpreter continues.
    #[cfg(not(target_arch = "wasm32"))]
    {
        let _ = (inst, page, x, bank, data, exec, ram, at);
        INTERPRET
    }
}
