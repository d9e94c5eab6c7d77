//! Functions of the ABI: one row for each export and import of the emulator.
//!
//! A row is the constant by which the host knows a function, its name and its type.
//! [`exports!`](crate::exports) and [`imports!`](crate::imports) give all rows to a
//! macro, so that the emulator declares what it imports from them, and does not
//! compile if what it exports differs.

use std::marker::PhantomData;

/// The module of the emulator's imports.
pub const MODULE: &str = "agent99";

/// The export that is the emulator's linear memory.
pub const MEMORY: &str = "memory";

/// The export that is the table of functions, to which compiled code is added: the
/// name that linkers give it.
pub const TABLE: &str = "__indirect_function_table";

/// A function of the emulator, with its parameters (a tuple, or the only one) and
/// its result.
#[derive(Debug)]
pub struct Export<P, R> {
    /// Its name.
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

/// A type of WebAssembly, with its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Value {
    /// `u32` here.
    I32 = 0x7f,
    /// `u64` here.
    I64 = 0x7e,
}

/// Parameters and results of a function.
pub type Signature = (&'static [Value], &'static [Value]);

/// The types of compiled functions, in the order in which a module has them:
/// regions, and the helpers that those call.
///
/// A region gets the node to enter at; the virtual address of its page; the VM
/// context, of which it uses TLBs and jump cache (the others are constants of the
/// instance); the instructions that may still run. With what the engine adds, there
/// are as many as fit its registers.
pub const TYPES: [Signature; 2] = [
    (
        &[Value::I32, Value::I64, Value::I32, Value::I64],
        &[Value::I32],
    ),
    (&[Value::I32, Value::I64], &[Value::I32]),
];

/// A function of the host.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// Its name in [`MODULE`].
    pub name: &'static str,
    /// Its parameters.
    pub params: &'static [Value],
    /// Its result.
    pub result: Option<Value>,
}

/// Gives all exports to a macro: `CONSTANT = name(parameter: type, ...) -> type;`.
#[macro_export]
macro_rules! exports {
    ($each:ident) => {
        $each! {
            /// Runs the constructors of the C library; before all else.
            INITIALIZE = _initialize();
            /// Makes the machine. An [`Answer`](crate::Answer).
            CREATE = create(ram_bytes: u32, mac: u64, mtu: u32, image_sectors: u64) -> u32;
            /// Address of the bytes for arguments.
            SCRATCH = scratch() -> u32;
            /// Offsets in RAM of kernel (high half) and initial file system.
            LAYOUT = layout(head_len: u32, initrd_len: u32) -> u64;
            /// Address of a piece of guest RAM; zero for what is none.
            RAM = ram(offset: u32, len: u32) -> u32;
            /// Enters the kernel. An [`Answer`](crate::Answer).
            BOOT = boot(cmdline_len: u32) -> u32;
            /// Runs about so many instructions. A [`Status`](crate::Status).
            RUN = run(budget: u64) -> u32;
            /// Address of the [`RunReport`](crate::RunReport).
            REPORT = report() -> u32;
            /// The oldest output of a channel, a [`pair`](crate::pair).
            OUTPUT = output(channel: u32) -> u64;
            /// The tag of that message.
            TAG = tag(channel: u32) -> u32;
            /// So many bytes of that output, or the message, were taken.
            TAKEN = taken(channel: u32, count: u32);
            /// Room for input, a [`pair`](crate::pair).
            SPACE = space(channel: u32, len: u32) -> u64;
            /// The first bytes of that room are filled; 1 if they are the guest's.
            COMMIT = commit(channel: u32, tag: u32, len: u32) -> u32;
            /// Puts a disk into the guest's drive. An [`Answer`](crate::Answer).
            ATTACH_DISK = attach_disk(sectors: u64) -> u32;
            /// Tells the guest the size of its console.
            RESIZE = resize(columns: u32, rows: u32);
            /// Gets ready for a snapshot of a guest. An [`Answer`](crate::Answer).
            PREPARE_SNAPSHOT = prepare_snapshot() -> u32;
            /// The same for an image: decoded code stays. An [`Answer`](crate::Answer).
            PREPARE_IMAGE = prepare_image() -> u32;
            /// Goes on in a new instance. An [`Answer`](crate::Answer).
            RESUME = resume(vmgenid_low: u64, vmgenid_high: u64) -> u32;
            /// Switches the translator. An [`Answer`](crate::Answer).
            TRANSLATION = translation(samples: u32, age: u32, is_small: u32) -> u32;
            /// Begins an execution profile. An [`Answer`](crate::Answer).
            BEGIN_PROFILE = begin_profile() -> u32;
            /// Ends it: its encoding, a [`pair`](crate::pair).
            END_PROFILE = end_profile() -> u64;
            /// Room for a longer argument, a [`pair`](crate::pair).
            BYTES = bytes(len: u32) -> u64;
            /// Compiles AOT regions by a profile; their functions, a [`pair`](crate::pair).
            COMPILE_AOT = compile_aot(base: u32, types: u32, room: u32) -> u64;
            /// Whether AOT regions are used. An [`Answer`](crate::Answer).
            ENABLE_AOT = enable_aot(on: u32) -> u32;
            /// A module that was asked for is there; 1 if it is used.
            TRANSLATED = translated(ticket: u32, function: u32) -> u32;
            /// Address of the integer registers.
            REGISTERS = registers() -> u32;
        }
    };
}

/// Gives all imports to a macro, in the same form.
#[macro_export]
macro_rules! imports {
    ($each:ident) => {
        $each! {
            /// A clock that never goes back, in nanoseconds.
            NOW_NS = now_ns() -> u64;
            /// Nanoseconds since 1970-01-01T00:00:00Z.
            WALL_NS = wall_ns() -> u64;
            /// Fills memory with bytes fit for keys.
            RANDOM = random(address: u32, len: u32);
            /// Asks for a module to be compiled, off this thread.
            TRANSLATE = translate(address: u32, len: u32, ticket: u32);
            /// Fills memory from a disk: 1 if it could.
            DISK_READ = disk_read(disk: u32, offset: u64, address: u32, len: u32) -> u32;
            /// Writes memory to a disk: 1 if it could.
            DISK_WRITE = disk_write(disk: u32, offset: u64, address: u32, len: u32) -> u32;
            /// Gives up a range of a disk, which with 1 must read as zeros then.
            DISK_DISCARD = disk_discard(disk: u32, offset: u64, len: u64, zero: u32) -> u32;
            /// What was written is to last as long as the disk: 1 if it does.
            DISK_FLUSH = disk_flush(disk: u32) -> u32;
            /// Memory of the guest that is not in use: it may become other bytes
            /// that the guest may know.
            RELEASE = release(address: u32, len: u32);
            /// Says why the emulator is about to trap: UTF-8.
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

/// A number that WebAssembly has.
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
