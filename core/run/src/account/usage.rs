//! Usage: what an account and those below it used, and its form for machines.

use super::{Money, Spend};
use a99_core::fuel::Fuel;
use a99_core::value::{Map, Value};
use std::time::Duration;

/// What an account used, and those below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// The account's name: that of the agent.
    pub name: String,
    /// Runs that it is the account of.
    pub runs: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Fuel of its own runs, that of sub-agents with budgets from it included.
    pub fuel: Fuel,
    /// Time of its own runs, all together.
    pub time: Duration,
    /// What was used, by those below it, too.
    pub spent: Spend,
    /// What was used beyond the limits, because it was known too late: what a service
    /// reports may be more than was reserved for it.
    pub overdrawn: Spend,
    /// Those below it that are kept.
    pub children: Vec<Usage>,
    /// How many others there were.
    pub unlisted: u64,
}

impl Usage {
    /// Whether nothing but runs and calls of this one account is in it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Spend { tokens, money, .. } = self.spent;
        let alone = self.children.is_empty() && self.unlisted == 0;
        alone && tokens == 0 && money == Money::ZERO && self.overdrawn == Spend::default()
    }

    /// The form for machines: `{name, runs, failed, fuel, time_ms, calls, tokens, money,
    /// children}`, with `overdrawn` and `unlisted` where there are any. `failed`, `tokens`,
    /// `money` and `children` are left out where there are none.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("name", self.name.as_str());
        map.insert("runs", self.runs as f64);
        if self.failed > 0 {
            map.insert("failed", self.failed as f64);
        }
        map.insert("fuel", self.fuel.to_f64());
        map.insert("time_ms", self.time.as_millis() as f64);
        let spent = |map: &mut Map, spent: Spend| {
            map.insert("calls", spent.calls as f64);
            if spent.tokens > 0 {
                map.insert("tokens", spent.tokens as f64);
            }
            if spent.money > Money::ZERO {
                map.insert("money", spent.money.to_f64());
            }
        };
        spent(&mut map, self.spent);
        if self.overdrawn != Spend::default() {
            let mut over = Map::new();
            spent(&mut over, self.overdrawn);
            map.insert("overdrawn", Value::Object(over));
        }
        if !self.children.is_empty() {
            let children: Vec<Value> = self.children.iter().map(Usage::to_json).collect();
            map.insert("children", children);
        }
        if self.unlisted > 0 {
            map.insert("unlisted", self.unlisted as f64);
        }
        Value::Object(map)
    }
}
