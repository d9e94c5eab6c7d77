//! Just-in-time compiler: hot regions of guest code as WebAssembly functions.
//!
//! Samples at the end of each slice of the budget find hot pages; the interpreter's loop
//! pays nothing. The region of a hot page is emitted as a module of one function (`emit`).
//! The embedder compiles it while the guest continues, instantiates it with this memory and
//! function table, and announces it later. Then the blocks at the region's entries become
//! [`Op::Enter`]. Only these lead into translated code, so that the code of dropped blocks
//! never runs again. The code of typical work is found beforehand (`profile`), in a copy of
//! the guest, and its functions are in the emulator's own module when the guest starts
//! (`aot`). Regions reach each other through the jump cache: it records where the
//! interpreter entered them, and every change of mappings or code empties it.
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
mod profile;
pub(crate) mod region;
mod sampler;
pub(crate) mod structure;

pub(crate) use self::aot::AotRegions;
pub(crate) use self::context::{ContextLayout, Helpers};
pub(crate) use self::emit::{INTERPRET, OptLevel};
pub(crate) use self::profile::Profile;
#[cfg(target_arch = "wasm32")]
pub(crate) use self::{context::VmContext, emit::ops::unpack};

use self::region::Region;
use self::sampler::Sampler;
use crate::hart::csr::Bank;
use crate::hart::{Cursor, Registers};
use crate::interp::inst::Inst;
use crate::mmu::tlb::{DataTlbs, ExecTlb, MMU_INDEXES};

/// Maximum modules under compilation at a time: more would only wait.
const MAX_PENDING: usize = 16;

/// Maximum size of a module in bytes; larger ones are not requested.
pub(crate) const MAX_MODULE: usize = a99_sandbox_abi::MODULE_BYTES;

/// Policy of translation while the guest runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    /// Samples that make a page hot.
    pub samples: u16,
    /// Instructions before the first sample.
    pub age: u64,
    /// Optimisation goal of the functions.
    pub opt_level: OptLevel,
}

/// A region whose compilation was requested.
#[derive(Debug)]
struct Pending {
    ticket: u32,
    page: u32,
    /// Offsets of the entries, with the node of each.
    entries: Vec<(u16, u8)>,
}

/// Entries of an installed translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Page of RAM.
    pub page: usize,
    /// Offsets of the entries, with the node of each.
    pub entries: Vec<(u16, u8)>,
}

/// A module to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Encoded module.
    pub module: Vec<u8>,
    /// Ticket that the result must carry.
    pub ticket: u32,
}

/// Hot code and pending compilations; see the module.
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

    /// Counts a sample of untranslated code. Returns whether its page is hot;
    /// [`Translator::want`] then follows.
    pub(crate) fn sample(&mut self, page: usize, offset: u16) -> bool {
        self.is_enabled() && self.sampler.sample(page as u32, offset) >= self.policy.samples
    }

    /// Emits the module for the hot offsets of a page with these bytes.
    pub(crate) fn want(&mut self, page: usize, bytes: &[u8]) -> Option<Wanted> {
        let layout = self.layout?;
        let roots = self.sampler.take(page as u32);
        if self.pending.len() >= MAX_PENDING {
            return None;
        }
        let region = Region::find(bytes, &roots)?;
        let module = emit::emit(&region, &layout, self.policy.opt_level);
        if module.len() > MAX_MODULE {
            return None;
        }
        self.last_ticket = self.last_ticket.wrapping_add(1).max(1);
        let ticket = self.last_ticket;
        let entries = structure::members(region.entries);
        let entries = entries.map(|node| (region.nodes[node].offset, node as u8));
        self.pending.push(Pending {
            ticket,
            page: page as u32,
            entries: entries.collect(),
        });
        Some(Wanted { module, ticket })
    }

    /// Takes the pending translation of a ticket, unless its page has changed since.
    pub(crate) fn take(&mut self, ticket: u32) -> Option<Installed> {
        let found = |pending: &Pending| pending.ticket == ticket;
        let at = self.pending.iter().position(found)?;
        let pending = self.pending.swap_remove(at);
        Some(Installed {
            page: pending.page as usize,
            entries: pending.entries,
        })
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
