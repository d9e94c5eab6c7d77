//! The table of capabilities. Fields of grants, members of scripts and the advice of commands
//! derive from its rows.

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident: $field:literal, $member:literal;)*) => {
        /// A capability that an atom requires.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// Every capability, in the order of the table.
            pub const ALL: &'static [Capability] = &[$(Capability::$name),*];

            /// The script members in table order. Rows without a member are at the end.
            pub const MEMBERS: &'static [&'static str] = {
                const ALL: &[&str] = &[$($member),*];
                let mut n = ALL.len();
                while n > 0 && ALL[n - 1].is_empty() {
                    n -= 1;
                }
                ALL.split_at(n).0
            };

            /// Name of the field in a host's grants. `Store` and `Vectors` are parts of one grant.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Capability::$name => $field,)*
                }
            }

            /// The script member that mocks the capability; may be empty.
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
    /// The turn of a long-lived agent. Its atoms may only occur in programs of such agents.
    AgentTurn: "agent_turn", "turn";
    /// XML parsing.
    Xml: "xml", "xml";
    /// Source code to programs.
    Transpiler: "transpiler", "transpile";
    /// A computer to run commands on.
    Shell: "shell", "shell";
    /// Keys, values and queries. Without a grant, a run has a private store.
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
    /// Stored programs. Without a grant, a run has a private table.
    Procedures: "procedures", "";
}
