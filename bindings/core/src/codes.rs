//! Codes of failures in the bindings to other languages. The packages of these languages throw
//! some of them.

/// Constants with their sentences as a table.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ pub(crate) const $name:ident: &str = $code:literal;)*) => {
        $($(#[doc = $doc])+ #[allow(dead_code, reason = "the packages throw it")]
        pub(crate) const $name: &str = $code;)*

        /// Each code with its meaning.
        pub(crate) const TABLE: &[(&str, &str)] = &[$(($code, concat!($($doc),+).trim_ascii()),)*];
    };
}

codes! {
    /// An argument of a function has the wrong type.
    pub(crate) const BAD_ARGUMENT: &str = "binding.bad_argument";
    /// An option is unknown, or its value has the wrong type.
    pub(crate) const BAD_OPTION: &str = "binding.bad_option";
    /// A program, engine or run was freed, has ended, or belongs to another VM.
    pub(crate) const BAD_HANDLE: &str = "binding.bad_handle";
    /// A message between the package and the engine is damaged.
    pub(crate) const BAD_MESSAGE: &str = "binding.bad_message";
    /// The engine failed.
    pub(crate) const PANIC: &str = "binding.panic";
    /// An atom of the host is defined wrongly.
    pub(crate) const BAD_ATOM: &str = "binding.bad_atom";
    /// The engine reported a failure without a code.
    pub(crate) const FAILED: &str = "binding.failed";
    /// An atom of the host raised the fuel of its run.
    pub(crate) const FUEL_RAISED: &str = "binding.fuel_raised";
    /// An atom was executed outside a run.
    pub(crate) const NO_RUN: &str = "binding.no_run";
    /// An atom of the host asked for variables of the program, which the engine does not offer.
    pub(crate) const NO_STATE: &str = "binding.no_state";
    /// The engine was used before it was loaded.
    pub(crate) const NOT_INITIALIZED: &str = "binding.not_initialized";
    /// Neither the addon nor the module of WebAssembly could be loaded.
    pub(crate) const NOT_LOADED: &str = "binding.not_loaded";
    /// A function of an older package has no counterpart.
    pub(crate) const NOT_OFFERED: &str = "binding.not_offered";
    /// Too many runs are within each other, each begun by an atom of the one before.
    pub(crate) const NESTED: &str = "binding.nested";
    /// A program was compiled by another VM, whose atoms may differ.
    pub(crate) const OTHER_MACHINE: &str = "binding.other_machine";
    /// The package and the engine do not understand each other.
    pub(crate) const PROTOCOL: &str = "binding.protocol";
    /// A getter, a proxy or a price function called the engine.
    pub(crate) const REENTRANT: &str = "binding.reentrant";
    /// A run was used after its end.
    pub(crate) const RUN_OVER: &str = "binding.run_over";
    /// A schema is no object.
    pub(crate) const SCHEMA: &str = "binding.schema";
    /// A time limit of an atom is a function.
    pub(crate) const TIMEOUT_FUNCTION: &str = "binding.timeout_function";
    /// The package and the engine have different versions.
    pub(crate) const VERSION: &str = "binding.version";
}
