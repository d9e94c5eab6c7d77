//! Usage of an account and its descendants, and its JSON form.

use super::{Money, Spend};
use a99_core::fuel::Fuel;
use a99_core::value::{Map, Value};
use std::time::Duration;

/// Usage of an account and its descendants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// The account's name: that of the agent.
    pub name: String,
    /// Number of runs of this account.
    pub runs: u64,
    /// Number of failed runs.
    pub failed: u64,
    /// Fuel of the account's own runs, including that of sub-agents that use their budget.
    pub fuel: Fuel,
    /// Total time of the account's own runs.
    pub time: Duration,
    /// The amount spent, including descendants.
    pub spent: Spend,
    /// The amount used beyond the limits, because a service reported more than was reserved.
    pub overdrawn: Spend,
    /// Individually listed children.
    pub children: Vec<Usage>,
    /// Number of unlisted children.
    pub unlisted: u64,
}

impl Usage {
    /// Whether it contains only runs and calls of this one account.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Spend { tokens, money, .. } = self.spent;
        let alone = self.children.is_empty() && self.unlisted == 0;
        alone && tokens == 0 && money == Money::ZERO && self.overdrawn == Spend::default()
    }

    /// The JSON form: `{name, runs, failed, fuel, time_ms, calls, tokens, money, children}`,
    /// with `overdrawn` and `unlisted` if not zero. Empty `failed`, `tokens`, `money` and
    /// `children` are left out.
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
