//! Genome: a program as bytes, a head and steps of a fixed length.
//!
//! Any bytes are a genome. A changed byte changes one choice of one step and no others, which
//! helps both mutation search and fuzzing.

/// Bytes of the head: size, variables reset each iteration, version, shapes of the inputs.
pub const HEAD: usize = 16;

/// Bytes of a step.
pub const STEP: usize = 12;

/// Most own steps of a program.
pub const MAX_STEPS: usize = 8;

/// Genome of a program that tries to be expensive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Genome {
    /// Choices that concern the whole program.
    pub head: [u8; HEAD],
    /// The steps.
    pub steps: Vec<[u8; STEP]>,
}

impl Genome {
    /// Reads a genome; missing bytes are zeros.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Genome {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD));
        let steps = rest.chunks(STEP).take(MAX_STEPS).map(padded);
        Genome {
            head: padded(head),
            steps: steps.collect(),
        }
    }

    /// Bytes of the genome.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let steps = self.steps.iter().flatten();
        self.head.iter().chain(steps).copied().collect()
    }
}

fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_were_written() {
        let bytes: Vec<u8> = (0..HEAD + 3 * STEP).map(|i| i as u8).collect();
        let genome = Genome::from_bytes(&bytes);
        assert_eq!(genome.steps.len(), 3);
        assert_eq!(genome.to_bytes(), bytes);
        assert_eq!(Genome::from_bytes(&[]), Genome::default());
        let short = Genome::from_bytes(&bytes[..HEAD + 1]);
        assert_eq!(short.steps, [padded(&[16])]);
    }
}
