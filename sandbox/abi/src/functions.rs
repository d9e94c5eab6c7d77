//! Functions of the ABI: one row for each export and import of the emulator.
//!
//! Each row is a constant with the function's name and type. [`exports!`](crate::exports)
//! and [`imports!`](crate::imports) pass all rows to a macro: the emulator declares its
//! imports from them, and fails to compile if its exports differ.

use std::marker::PhantomData;

/// The module of the emulator's imports.
pub const MODULE: &str = "agent99";

/// Name of the exported linear memory.
pub const MEMORY: &str = "memory";

/// Name of the exported function table that compiled code is added to: the name that
/// linkers give it.
pub const TABLE: &str = "__indirect_function_table";

/// An exported function of the emulator. `P` is its parameter or a tuple of them, `R` its
/// result.
#[derive(Debug)]
pub struct Export<P, R> {
    /// Name of the export.
    pub name: &'static str,
    types: PhantomData<fn(P) -> R>,
}

impl<P, R> Export<P, R> {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            types: PhantomData,
        }
    }
}

impl<P, R> Clone for Export<P, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, R> Copy for Export<P, R> {}

/// A WebAssembly value type, as its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Value {
    /// Carries a `u32`.
    I32 = 0x7f,
    /// Carries a `u64`.
    I64 = 0x7e,
}

/// Parameters and results of a function type.
pub type Signature = (&'static [Value], &'static [Value]);

/// Types of compiled functions, in the order of a module's type section: regions, then the
/// helpers that regions call.
///
/// A region's parameters are its number in the function table, shifted, with the node to
/// enter at; the virtual address of its page; the VM context (for TLBs and jump cache; the
/// other addresses are constants of the instance); and the instructions that may still run. With the parameters that the engine adds, these are
/// as many as fit in registers.
pub const TYPES: [Signature; 2] = [
    (
        &[Value::I32, Value::I64, Value::I32, Value::I64],
        &[Value::I32],
    ),
    (&[Value::I32, Value::I64], &[Value::I32]),
];

/// A function that the host provides.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// Name in [`MODULE`].
    pub name: &'static str,
    /// Parameter types.
    pub params: &'static [Value],
    /// Result type, if the function returns a value.
    pub result: Option<Value>,
}

/// Passes all exports to a macro, as `CONSTANT = name(parameter: type, ...) -> type;`.
#[macro_export]
macro_rules! exports {
    ($each:ident) => {
        $each! {
            /// Runs the constructors of the C library; the first call of all.
            INITIALIZE = _initialize();
            /// Creates the machine; returns an [`Answer`](crate::Answer).
            CREATE = create(ram_bytes: u32, mac: u64, mtu: u32, image_sectors: u64) -> u32;
            /// Returns the address of the argument buffer.
            SCRATCH = scratch() -> u32;
            /// Returns the RAM offsets of kernel (high half) and initial file system.
            LAYOUT = layout(head_len: u32, initrd_len: u32) -> u64;
            /// Returns the address of a range of guest RAM, zero if the range is out of
            /// bounds.
            RAM = ram(offset: u32, len: u32) -> u32;
            /// Enters the kernel; returns an [`Answer`](crate::Answer).
            BOOT = boot(cmdline_len: u32) -> u32;
            /// Runs about `budget` instructions; returns a [`Status`](crate::Status).
            RUN = run(budget: u64) -> u32;
            /// Returns the address of the [`RunReport`](crate::RunReport).
            REPORT = report() -> u32;
            /// Returns the oldest output of a channel as a [`pair`](crate::pair).
            OUTPUT = output(channel: u32) -> u64;
            /// Returns the tag of the channel's oldest message.
            TAG = tag(channel: u32) -> u32;
            /// Consumes `count` bytes of a channel's oldest output, or its oldest message.
            TAKEN = taken(channel: u32, count: u32);
            /// Returns room for input as a [`pair`](crate::pair).
            SPACE = space(channel: u32, len: u32) -> u64;
            /// Commits the first `len` bytes of that room; returns 1 if the guest accepts
            /// them.
            COMMIT = commit(channel: u32, tag: u32, len: u32) -> u32;
            /// Grows the RAM of a resumed machine to a size in bytes; returns an
            /// [`Answer`](crate::Answer).
            GROW_RAM = grow_ram(ram_bytes: u32) -> u32;
            /// Attaches a disk to its drive, which was empty; returns an
            /// [`Answer`](crate::Answer).
            ATTACH_DISK = attach_disk(disk: u32, sectors: u64) -> u32;
            /// Sets the size of the guest's console.
            RESIZE = resize(columns: u32, rows: u32);
            /// Prepares for a snapshot of a guest; returns an [`Answer`](crate::Answer).
            PREPARE_SNAPSHOT = prepare_snapshot() -> u32;
            /// Prepares for an image snapshot, which keeps decoded code; returns an
            /// [`Answer`](crate::Answer).
            PREPARE_IMAGE = prepare_image() -> u32;
            /// Resumes in a new instance; returns an [`Answer`](crate::Answer).
            RESUME = resume(vmgenid_low: u64, vmgenid_high: u64) -> u32;
            /// Configures the translator; returns an [`Answer`](crate::Answer).
            TRANSLATION = translation(samples: u32, age: u32) -> u32;
            /// Returns the address of the [context layout](crate::LAYOUT_WORDS); zero while
            /// translation is off.
            CONTEXT_LAYOUT = context_layout() -> u32;
            /// Starts an execution profile; returns an [`Answer`](crate::Answer).
            BEGIN_PROFILE = begin_profile() -> u32;
            /// Ends the profile; returns its encoding as a [`pair`](crate::pair).
            END_PROFILE = end_profile() -> u64;
            /// Returns room for an argument that exceeds the buffer, as a
            /// [`pair`](crate::pair).
            BYTES = bytes(len: u32) -> u64;
            /// Compiles AOT regions from a profile; returns their functions as a
            /// [`pair`](crate::pair).
            COMPILE_AOT = compile_aot(base: u32, types: u32, room: u32) -> u64;
            /// Enables or disables AOT regions; returns an [`Answer`](crate::Answer).
            ENABLE_AOT = enable_aot(on: u32) -> u32;
            /// Delivers a function for a requested page, with its [entries](crate::entry) in
            /// the argument buffer; returns 1 if the emulator uses it. Function 0 ends the
            /// request.
            TRANSLATED = translated(ticket: u32, function: u32, entries: u32) -> u32;
            /// Returns the address of the integer registers.
            REGISTERS = registers() -> u32;
        }
    };
}

/// Passes all imports to a macro, in the form of [`exports!`](crate::exports).
#[macro_export]
macro_rules! imports {
    ($each:ident) => {
        $each! {
            /// Monotonic clock in nanoseconds.
            NOW_NS = now_ns() -> u64;
            /// Nanoseconds since 1970-01-01T00:00:00Z.
            WALL_NS = wall_ns() -> u64;
            /// Fills memory with cryptographically secure random bytes.
            RANDOM = random(address: u32, len: u32);
            /// Requests the translation of a page at an address, for user mode only (1) or any
            /// mode (0), hot at `count` entries (16 bits each) at another address; or, with
            /// none, what the host already has for these bytes and this mode. The page is
            /// [`PAGE_BYTES`](crate::PAGE_BYTES) long, and may be followed by
            /// [`NEXT_BYTES`](crate::NEXT_BYTES) of the next one. Returns 1 if the host will
            /// answer under the ticket.
            TRANSLATE = translate(page: u32, len: u32, user: u32, entries: u32, count: u32, ticket: u32) -> u32;
            /// Reads from a disk into memory; returns 1 on success.
            DISK_READ = disk_read(disk: u32, offset: u64, address: u32, len: u32) -> u32;
            /// Writes memory to a disk; returns 1 on success.
            DISK_WRITE = disk_write(disk: u32, offset: u64, address: u32, len: u32) -> u32;
            /// Discards a range of a disk; with `zero` 1 it must then read as zeros.
            DISK_DISCARD = disk_discard(disk: u32, offset: u64, len: u64, zero: u32) -> u32;
            /// Makes earlier writes as durable as the disk; returns 1 on success.
            DISK_FLUSH = disk_flush(disk: u32) -> u32;
            /// Releases unused guest memory, which may then hold any bytes that the guest
            /// may know.
            RELEASE = release(address: u32, len: u32);
            /// Reports why the emulator is about to trap, in UTF-8.
            PANICKED = panicked(address: u32, len: u32);
        }
    };
}

macro_rules! define_exports {
    ($($(#[$doc:meta])* $constant:ident = $name:ident($($param:ident: $of:ty),*) $(-> $result:ty)?;)*) => {
        $(
            $(#[$doc])*
            pub const $constant: Export<define_exports!(@params $($of),*), define_exports!(@result $($result)?)> =
                Export::new(stringify!($name));
        )*
    };
    (@params $of:ty) => { $of };
    (@params $($of:ty),*) => { ($($of),*) };
    (@result $result:ty) => { $result };
    (@result) => { () };
}

macro_rules! define_imports {
    ($($(#[$doc:meta])* $constant:ident = $name:ident($($param:ident: $of:ty),*) $(-> $result:ty)?;)*) => {
        $(
            $(#[$doc])*
            pub const $constant: Import = Import {
                name: stringify!($name),
                params: &[$(<$of as Number>::VALUE),*],
                result: define_imports!(@result $($result)?),
            };
        )*

        /// All imports.
        pub const IMPORTS: &[Import] = &[$($constant),*];
    };
    (@result $result:ty) => { Some(<$result as Number>::VALUE) };
    (@result) => { None };
}

/// A number type with a WebAssembly counterpart.
trait Number {
    const VALUE: Value;
}

impl Number for u32 {
    const VALUE: Value = Value::I32;
}

impl Number for u64 {
    const VALUE: Value = Value::I64;
}

exports!(define_exports);
imports!(define_imports);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_names_and_types() {
        assert_eq!((RUN.name, INITIALIZE.name), ("run", "_initialize"));
        let _: Export<(u32, u64, u32, u64), u32> = CREATE;
        let _: Export<u32, u64> = OUTPUT;
        let _: Export<(), ()> = INITIALIZE;
        assert_eq!(IMPORTS.len(), 10);
        assert_eq!(NOW_NS.result, Some(Value::I64));
        let of_disks = [Value::I32, Value::I64, Value::I32, Value::I32];
        assert_eq!(DISK_READ.params, of_disks);
        assert_eq!(RELEASE.result, None);
    }
}
