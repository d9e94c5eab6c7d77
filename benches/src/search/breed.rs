//! Genomes for the search: random, mutated and crossed ones.

use a99_testkit::cost::{Genome, HEAD, MAX_STEPS, STEP};
use a99_testkit::numbers::Numbers;

/// A head and a step of random bytes.
pub(crate) fn fresh(random: &mut Numbers) -> Genome {
    Genome {
        head: std::array::from_fn::<u8, HEAD, _>(|_| random.byte()),
        steps: vec![fresh_step(random)],
    }
}

fn fresh_step(random: &mut Numbers) -> [u8; STEP] {
    std::array::from_fn(|_| random.byte())
}

/// One to four changes.
pub(crate) fn mutated(of: &Genome, random: &mut Numbers) -> Genome {
    let mut genome = of.clone();
    for _ in 0..1 + random.below(4) {
        let place = random.below(genome.steps.len().max(1));
        match random.below(12) {
            0..=1 => genome.head[random.below(HEAD)] = random.byte(),
            2 => genome.head[0] = random.byte(),
            3 if genome.steps.len() < MAX_STEPS => {
                genome.steps.insert(place, fresh_step(random));
            }
            4 if genome.steps.len() > 1 => {
                genome.steps.remove(place);
            }
            5 if genome.steps.len() > 1 => {
                let other = random.below(genome.steps.len());
                genome.steps.swap(place, other);
            }
            6 => {
                // A neighbouring value: another row, literal or variable of the same kind.
                let at = random.below(STEP);
                if let Some(step) = genome.steps.get_mut(place) {
                    step[at] = step[at].wrapping_add(if random.one_in(2) { 1 } else { 255 });
                }
            }
            _ => {
                if let Some(step) = genome.steps.get_mut(place) {
                    step[random.below(STEP)] = random.byte();
                }
            }
        }
    }
    genome
}

/// The head of one, and steps of both.
pub(crate) fn crossed(one: &Genome, other: &Genome, random: &mut Numbers) -> Genome {
    let mut genome = one.clone();
    if random.one_in(4) {
        let at = random.below(HEAD);
        genome.head[at..].copy_from_slice(&other.head[at..]);
    }
    for step in &other.steps {
        if random.one_in(2) || other.steps.len() == 1 {
            let at = random.below(genome.steps.len() + 1);
            genome.steps.insert(at, *step);
        }
    }
    genome.steps.truncate(MAX_STEPS);
    genome
}

/// Genomes with one simplification each: a step removed, bytes about a step's context cleared, a
/// smaller input.
pub(crate) fn simpler(of: &Genome) -> Vec<Genome> {
    let mut out = Vec::new();
    if of.steps.len() > 1 {
        for place in 0..of.steps.len() {
            let mut genome = of.clone();
            genome.steps.remove(place);
            out.push(genome);
        }
    }
    for size in [60, 120, 210].into_iter().filter(|size| *size < of.head[0]) {
        let mut genome = of.clone();
        genome.head[0] = size;
        out.push(genome);
    }
    let mut bytes = |at: usize| {
        for place in 0..of.steps.len() {
            if of.steps[place][at] != 0 {
                let mut genome = of.clone();
                genome.steps[place][at] = 0;
                out.push(genome);
            }
        }
    };
    // The step's context, the use of its value, the number of arguments.
    for at in [7, 8, 10, 6, 5, 4] {
        bytes(at);
    }
    for at in 1..HEAD {
        if of.head[at] != 0 {
            let mut genome = of.clone();
            genome.head[at] = 0;
            out.push(genome);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_what_is_bred() {
        let bred = |seed: u64| {
            let mut random = Numbers::new(seed);
            let (one, other) = (fresh(&mut random), fresh(&mut random));
            let crossed = crossed(&one, &other, &mut random);
            (0..50).fold(crossed, |genome, _| mutated(&genome, &mut random))
        };
        assert_eq!(bred(7), bred(7));
        assert_ne!(bred(7), bred(8));
        assert!(bred(7).steps.len() <= MAX_STEPS);
    }

    #[test]
    fn simpler_genomes_come_to_an_end() {
        let mut genome = fresh(&mut Numbers::new(3));
        let mut rounds = 0;
        while let Some(next) = simpler(&genome).pop() {
            genome = next;
            rounds += 1;
        }
        assert!(rounds <= HEAD + STEP + 3);
        assert_eq!(genome.head[1..], [0; HEAD - 1]);
    }
}
