//! Static bounds of what agents cost.

use crate::{Agent, Engine};
pub use a99_cost::{Answer, Cost, Formula, Measure, Size, Term, Unbounded};

impl Engine {
    /// A static bound of the fuel, calls and tokens of any run of an agent, as formulas over the
    /// sizes of its inputs, for the atoms of this engine.
    #[must_use]
    pub fn cost(&self, agent: &Agent) -> Cost {
        a99_cost::estimate(agent.artifact(), self.atoms())
    }
}
