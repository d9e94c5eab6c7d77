//! What atoms need of a host: the one table of it. Fields of grants, members of scripts and
//! the advice of commands follow from its rows.

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident: $field:literal, $member:literal;)*) => {
        /// A capability that an atom needs.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// Every capability, in the order of the table.
            pub const ALL: &'static [Capability] = &[$(Capability::$name),*];

            /// The members that scripts have, in the order of the table; rows without one
            /// stand last.
            pub const MEMBERS: &'static [&'static str] = {
                const ALL: &[&str] = &[$($member),*];
                let mut n = ALL.len();
                while n > 0 && ALL[n - 1].is_empty() {
                    n -= 1;
                }
                ALL.split_at(n).0
            };

            /// Its name among what a host grants. `Store` and `Vectors` are parts of one.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Capability::$name => $field,)*
                }
            }

            /// The member of a script that stands in for it; empty for none.
            #[must_use]
            pub const fn member(self) -> &'static str {
                match self {
                    $(Capability::$name => $member,)*
                }
            }
        }
    };
}

capabilities! {
    /// HTTP.
    Fetch: "fetch", "fetch";
    /// Text completion.
    Llm: "llm", "llm";
    /// Chat with tools and images.
    LlmBattery: "llm_battery", "llmBattery";
    /// Language models with streams.
    Ai: "ai", "ai";
    /// Sub-agents.
    Agent: "agent", "agents";
    /// The turn of a long-lived agent. Its atoms may stand in programs of such agents only.
    AgentTurn: "agent_turn", "turn";
    /// XML parsing.
    Xml: "xml", "xml";
    /// Source code to programs.
    Transpiler: "transpiler", "transpile";
    /// A computer to run commands on.
    Shell: "shell", "shell";
    /// Keys, values and queries. Where none is granted, a run has its own.
    Store: "store", "store";
    /// Collections of vectors in a store.
    Vectors: "store", "vectors";
    /// Embeddings.
    Embedder: "embedder", "embed";
    /// The time of day.
    Clock: "clock", "clock";
    /// Randomness.
    Random: "random", "seed";
    /// A document.
    Dom: "dom", "";
    /// A browser's local storage.
    LocalStorage: "local_storage", "";
    /// Stored programs. Where none are granted, a run has its own.
    Procedures: "procedures", "";
}
