//! The translator: hot regions of guest code as WebAssembly functions.
//!
//! A sample at the end of each slice of the budget finds pages that run much;
//! the interpreter's loop pays nothing. A hot page's region is written
//! as a module of one function (`emit`), which the embedder compiles while
//! the guest goes on, shares this memory and function table with, and announces
//! later. Then the blocks at the region's entries become [`Op::Enter`]: only
//! these lead into translated code, so that code whose blocks are dropped never
//! runs again. What typical work needs is found beforehand (`study`), in a copy of
//! the guest, and its functions are in the emulator's own module when the guest
//! starts (`shipped`). From region to region the way is a table of where the
//! interpreter entered them, which every change of mappings or code empties.
//!
//! What it does not do: it translates nothing that changes more than the hart's
//! registers, handles no fault, fills no TLB. There the function leaves to the
//! interpreter, at the very instruction.
//!
//! [`Op::Enter`]: super::inst::Op::Enter

mod access;
mod code;
mod emit;
mod floats;
mod hot;
mod leave;
mod ops;
mod places;
pub mod region;
pub mod shape;
mod shipped;
mod study;

pub use self::emit::{INTERPRET, JUMP, Style};
pub use self::ops::unpack;
pub use self::places::{Helpers, Lent, Places};
pub use self::shipped::Shipped;
pub use self::study::Study;

use self::hot::Hot;
use self::region::Region;
use super::csr::Bank;
use super::hart::{Cursor, Registers};
use super::inst::Inst;
use super::tlb::{DataTlbs, ExecTlb, VIEWS};

/// Modules that may be under way at a time: more would only wait.
const MAX_PENDING: usize = 16;

/// Bytes of a module at most; larger ones are not asked for.
pub const MAX_MODULE: usize = 256 << 10;

/// What is translated while the guest runs, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    /// Samples that make a page hot.
    pub samples: u16,
    /// Instructions before the first sample.
    pub age: u64,
    /// What the functions are to be.
    pub style: Style,
}

/// A region whose code was asked for.
#[derive(Debug)]
struct Pending {
    ticket: u32,
    page: u32,
    /// Offsets of the entries, with the node of each.
    entries: Vec<(u16, u8)>,
}

/// Where translated code is to be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Page of RAM.
    pub page: usize,
    /// Offsets of the entries, with the node of each.
    pub entries: Vec<(u16, u8)>,
}

/// A module that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The module's bytes.
    pub module: Vec<u8>,
    /// What the answer is to name.
    pub ticket: u32,
}

/// What is hot, and what is under way; see the module.
#[derive(Debug, Default)]
pub struct Translator {
    /// Without it nothing is translated.
    places: Option<Places>,
    policy: Policy,
    hot: Hot,
    pending: Vec<Pending>,
    last_ticket: u32,
}

impl Translator {
    /// From now on hot code is translated; [`Places`] must stay true.
    pub fn enable(&mut self, places: Places, policy: Policy) {
        self.places = Some(places);
        self.policy = policy;
    }

    /// Whether the first sample counts already: then every place is looked at.
    pub fn is_eager(&self) -> bool {
        self.policy.samples <= 1
    }

    /// Whether samples are wanted.
    pub fn is_enabled(&self) -> bool {
        self.places.is_some()
    }

    /// Drops everything, and no longer translates.
    pub fn disable(&mut self) {
        *self = Self::default();
    }

    /// Drops what is known of all pages.
    pub fn clear(&mut self) {
        self.hot = Hot::default();
        self.pending.clear();
    }

    /// Drops what is known of a page: its code has changed.
    pub fn drop_page(&mut self, page: usize) {
        self.hot.forget(page as u32);
        self.pending.retain(|pending| pending.page as usize != page);
    }

    /// Counts a sample of code that is not translated. The answer is whether
    /// its page is hot: then [`Translator::want`] follows.
    pub fn sample(&mut self, page: usize, offset: u16) -> bool {
        self.is_enabled() && self.hot.sample(page as u32, offset) >= self.policy.samples
    }

    /// The module for the hot places of a page, of the given bytes.
    pub fn want(&mut self, page: usize, bytes: &[u8]) -> Option<Wanted> {
        let places = self.places?;
        let roots = self.hot.take(page as u32);
        if self.pending.len() >= MAX_PENDING {
            return None;
        }
        let region = Region::find(bytes, &roots)?;
        let module = emit::emit(&region, &places, self.policy.style);
        if module.len() > MAX_MODULE {
            return None;
        }
        self.last_ticket = self.last_ticket.wrapping_add(1).max(1);
        let ticket = self.last_ticket;
        let entries = shape::members(region.entries);
        let entries = entries.map(|node| (region.nodes[node].offset, node as u8));
        self.pending.push(Pending {
            ticket,
            page: page as u32,
            entries: entries.collect(),
        });
        Some(Wanted { module, ticket })
    }

    /// What was asked for under a ticket, unless its page has changed since.
    pub fn take(&mut self, ticket: u32) -> Option<Installed> {
        let found = |pending: &Pending| pending.ticket == ticket;
        let at = self.pending.iter().position(found)?;
        let pending = self.pending.swap_remove(at);
        Some(Installed {
            page: pending.page as usize,
            entries: pending.entries,
        })
    }
}

/// Runs a region: the function that `inst` names, entered at its node, for the
/// page at a virtual address. Cursor and registers must be those of the hart
/// that the region was translated for; the answer is [`JUMP`] or [`INTERPRET`].
/// Where it jumps to other regions, it goes on there by itself.
#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "what the fast loop holds, one by one, so that it stays in registers"
)]
pub fn enter(
    inst: &Inst,
    page: u64,
    x: &mut Registers,
    bank: Bank<'_>,
    data: &[DataTlbs; VIEWS],
    exec: &ExecTlb,
    ram: &mut [u8],
    at: &mut Cursor,
) -> u32 {
    #[cfg(target_arch = "wasm32")]
    return crate::wasm::region(inst, page, x, bank, data, exec, ram, at);
    // Nothing is ever installed here: the interpreter goes on.
    #[cfg(not(target_arch = "wasm32"))]
    {
        let _ = (inst, page, x, bank, data, exec, ram, at);
        INTERPRET
    }
}
