//! Expensive programs: generated from the engine's tables of atoms, builtins and operators,
//! over inputs of hostile shapes, out of bytes.
//!
//! `cargo xtask search` looks for the most CPU time or memory per fuel; the fuzz target `cost`
//! judges memory alone ([`judge`]), which is reproducible.

pub mod counting;
mod genome;
mod grow;
mod judge;
mod steps;
mod tables;
mod values;

pub use counting::Counting;
pub use genome::{Genome, HEAD, MAX_STEPS, STEP};
pub use grow::{Program, SIZES};
pub use judge::{
    ALLOCATED_BYTES_A_UNIT, CEILING, HELD_BESIDES, HELD_FACTOR, Memory, judge, memory,
};
pub use values::{Made, Shape};

#[cfg(test)]
mod tests {
    use super::*;
    use a99_core::builtins::{FUNCTIONS, METHODS};
    use agent99::{AtomBody, Engine, all_atoms};
    use std::collections::BTreeSet;

    fn bytes(seed: u64, count: usize) -> Vec<u8> {
        let mut state = seed;
        let mut byte = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            (state >> 56) as u8
        };
        (0..count).map(|_| byte()).collect()
    }

    #[test]
    fn every_row_of_the_tables_is_called() {
        let mut rows = BTreeSet::new();
        for kind in [0_u8, 5, 8] {
            for row in 0..=u16::from(u8::MAX) {
                let mut step = [0; STEP];
                (step[0], step[1], step[2]) = (kind, row as u8, (row >> 8) as u8);
                let genome = Genome {
                    head: [0; HEAD],
                    steps: vec![step],
                };
                rows.extend(genome.program(10).rows);
            }
        }
        let methods = METHODS.iter().map(|row| format!(".{}", row.name));
        let functions = FUNCTIONS.iter().map(|row| match row.ns {
            "" => row.name.to_owned(),
            ns => format!("{ns}.{}", row.name),
        });
        let atoms = all_atoms();
        let bodies = atoms
            .iter()
            .filter(|atom| !matches!(atom.body, AtomBody::Form));
        let atoms = bodies.map(|atom| atom.sig.name.to_string());
        let missing: Vec<String> = methods
            .chain(functions)
            .chain(atoms)
            .filter(|row| !rows.contains(row))
            .collect();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn most_programs_compile_and_are_the_same_each_time() {
        let engine = Engine::builder().build();
        let mut refused = 0;
        for seed in 0..300 {
            let bytes = bytes(seed * 7_919, HEAD + 3 * STEP);
            let genome = Genome::from_bytes(&bytes);
            let program = genome.program(30);
            assert_eq!(program.ast, genome.program(30).ast);
            for ast in [&program.ast, &program.idle] {
                refused += usize::from(engine.compile(ast.to_string()).is_err());
            }
        }
        assert!(refused < 150, "{refused} of 600");
    }
}
