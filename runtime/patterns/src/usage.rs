//! Context usage: how full a model's context is, and what a session used.

use a99_capabilities::ai::{Cost, Usage};
use a99_runtime::{AgentError, TurnClient};
use serde::{Deserialize, Serialize};

/// The type of the events that [`ContextUsage::show`] publishes.
const EVENT: &str = "context-usage";

/// The shortest time between two reports, in milliseconds.
const INTERVAL: u64 = 1_000;

/// Sums over calls of a model.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageTotals {
    /// Calls.
    pub calls: u64,
    /// Prompt tokens, including those of a cache.
    pub prompt_tokens: u64,
    /// Answer tokens.
    pub completion_tokens: u64,
    /// Prompt tokens read from a cache.
    pub cached_tokens: u64,
    /// Money in millionths.
    pub micro_money: u64,
}

impl UsageTotals {
    fn add(&mut self, usage: Usage, cost: Option<Cost>) {
        let sum = |to: &mut u64, n: u64| *to = to.saturating_add(n);
        sum(&mut self.calls, 1);
        sum(&mut self.prompt_tokens, usage.prompt_tokens);
        sum(&mut self.completion_tokens, usage.completion_tokens);
        sum(&mut self.cached_tokens, usage.cached_tokens);
        let micro = cost.map_or(0, |cost| cost.money.micro());
        sum(&mut self.micro_money, micro);
    }
}

/// Counts tokens and money of an agent's calls of models. An agent keeps it in its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextUsage {
    /// The model's context window in tokens; 0 if it is unknown.
    limit: u64,
    last_prompt: u64,
    turn: UsageTotals,
    session: UsageTotals,
    reported_at: Option<u64>,
    is_changed: bool,
}

/// What a session used so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// Prompt tokens of the last call: the tokens that the context holds.
    pub context_tokens: u64,
    /// The model's context window in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The used part of the window in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Sums of the present turn.
    pub turn: UsageTotals,
    /// Sums since the agent's first call.
    pub session: UsageTotals,
}

impl ContextUsage {
    /// Sets the context window of the model that answers.
    pub fn set_limit(&mut self, tokens: u64) {
        self.limit = tokens;
    }

    /// Counts a call with its usage and price.
    pub fn record(&mut self, usage: Usage, cost: Option<Cost>) {
        // Each prompt repeats the conversation, so the sum of all says nothing about the window.
        self.last_prompt = usage.prompt_tokens;
        self.turn.add(usage, cost);
        self.session.add(usage, cost);
        self.is_changed = true;
    }

    /// The present figures.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a percentage")]
    pub fn report(&self) -> UsageReport {
        let limit = (self.limit > 0).then_some(self.limit);
        UsageReport {
            context_tokens: self.last_prompt,
            limit,
            percent: limit.map(|limit| self.last_prompt as f64 * 100.0 / limit as f64),
            turn: self.turn,
            session: self.session,
        }
    }

    /// The present figures if they changed and a second has passed since the last report, by
    /// the clock `now` in milliseconds.
    pub fn report_at(&mut self, now: u64) -> Option<UsageReport> {
        // After a clock was set back, the next report is due at once.
        let is_early = self
            .reported_at
            .is_some_and(|before| (before..before.saturating_add(INTERVAL)).contains(&now));
        if is_early || !self.is_changed {
            return None;
        }
        self.reported_at = Some(now);
        self.is_changed = false;
        Some(self.report())
    }

    /// Ends a turn: gives its figures and begins the sums of the next one.
    pub fn end_turn(&mut self) -> UsageReport {
        let report = self.report();
        self.turn = UsageTotals::default();
        self.reported_at = None;
        self.is_changed = false;
        report
    }

    /// Publishes [`ContextUsage::report_at`] as an ephemeral event of the type
    /// `context-usage`, by the clock of the turn.
    ///
    /// # Errors
    /// `turn.over`
    pub async fn show(&mut self, client: &TurnClient) -> Result<(), AgentError> {
        match self.report_at(client.now()) {
            Some(report) => {
                let payload = serde_json::to_value(&report)?;
                client.publish(EVENT, payload, false).await
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ContextUsage;
    use a99_capabilities::ai::{Cost, Usage};
    use a99_run::account::Money;

    fn usage(prompt_tokens: u64) -> Usage {
        Usage {
            prompt_tokens,
            completion_tokens: 10,
            ..Usage::default()
        }
    }

    fn cost(micro: u64) -> Option<Cost> {
        Some(Cost {
            money: Money::from_micro(micro),
            ..Cost::default()
        })
    }

    #[test]
    fn the_window_is_that_of_the_last_prompt() {
        let mut counted = ContextUsage::default();
        counted.record(usage(400), cost(5));
        assert_eq!(counted.report().percent, None);
        counted.set_limit(1_000);
        counted.record(usage(500), cost(7));
        let report = counted.report();
        // Not 90 %: the second prompt contains the first.
        assert_eq!(report.percent, Some(50.0));
        assert_eq!(report.context_tokens, 500);
        assert_eq!(report.session.prompt_tokens, 900);
        assert_eq!(report.session.completion_tokens, 20);
        assert_eq!(report.session.micro_money, 12);
        assert_eq!(counted.end_turn().turn.calls, 2);
        counted.record(usage(600), None);
        let report = counted.report();
        assert_eq!((report.turn.calls, report.session.calls), (1, 3));
        let kept = serde_json::to_string(&counted).expect("JSON");
        let read: ContextUsage = serde_json::from_str(&kept).expect("usage");
        assert_eq!(read, counted);
    }

    #[test]
    fn reports_are_a_second_apart() {
        let mut counted = ContextUsage::default();
        assert_eq!(counted.report_at(0), None);
        counted.record(usage(1), None);
        assert!(counted.report_at(5_000).is_some());
        assert_eq!(counted.report_at(9_000), None, "nothing changed");
        counted.record(usage(2), None);
        assert!(counted.report_at(9_500).is_some());
        counted.record(usage(3), None);
        assert_eq!(counted.report_at(10_499), None);
        assert!(counted.report_at(10_500).is_some());
        counted.record(usage(4), None);
        assert!(counted.report_at(3_000).is_some(), "the clock was set back");
    }
}
