//! Prices: the cost of tokens in money and in fuel.

use a99_capabilities::ai::{Cost, Usage};
use a99_core::fuel::Fuel;
use a99_run::account::Money;
use serde::Deserialize;

/// The price of a model's tokens, in the currency of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Price of a million prompt tokens.
    pub prompt: f64,
    /// Price of a million cached prompt tokens; defaults to the price of prompts.
    pub cached: Option<f64>,
    /// Price of a million tokens written to a cache; defaults to 1.25 times the price of
    /// prompts, as services charge that charge for it at all.
    pub written: Option<f64>,
    /// Price of a million answer tokens.
    pub completion: f64,
    /// Fuel for each token.
    pub fuel: f64,
    /// The price of requests with long prompts, if it differs.
    pub long: Option<LongPrice>,
}

/// The price of a request's tokens when its prompt is long.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LongPrice {
    /// Tokens that a prompt must exceed.
    pub from: u64,
    /// As in [`Price`].
    pub prompt: f64,
    /// As in [`Price`].
    pub cached: Option<f64>,
    /// As in [`Price`].
    pub written: Option<f64>,
    /// As in [`Price`].
    pub completion: f64,
}

/// Default price of a token written to a cache, as a multiple of a prompt token's.
const WRITTEN: f64 = 1.25;

impl Price {
    /// The cost of tokens. Money is rounded up to millionths, and is never negative.
    ///
    /// ```
    /// use a99_capabilities::ai::Usage;
    /// use a99_models::Price;
    ///
    /// let price = Price { prompt: 3.0, completion: 15.0, ..Price::default() };
    /// let usage = Usage { prompt_tokens: 1_000, completion_tokens: 200, ..Usage::default() };
    /// // 0.006 of whatever the prices are in.
    /// assert_eq!(price.cost(usage).money.micro(), 6_000);
    /// ```
    #[must_use]
    pub fn cost(&self, usage: Usage) -> Cost {
        let cached = usage.cached_tokens.min(usage.prompt_tokens);
        let written = usage.written_tokens.min(usage.prompt_tokens - cached);
        let fresh = usage.prompt_tokens - cached - written;
        // A price for a million tokens equals millionths for one token.
        let picos = |tokens: u64, price: f64| u128::from(tokens) * (price * 1e6).round() as u128;
        let long = self.long.as_ref();
        let (prompt, from_cache, to_cache, completion) = match long {
            Some(long) if usage.prompt_tokens > long.from => {
                (long.prompt, long.cached, long.written, long.completion)
            }
            _ => (self.prompt, self.cached, self.written, self.completion),
        };
        let sum = picos(fresh, prompt)
            .saturating_add(picos(cached, from_cache.unwrap_or(prompt)))
            .saturating_add(picos(written, to_cache.unwrap_or(prompt * WRITTEN)))
            .saturating_add(picos(usage.completion_tokens, completion));
        let micro = (self.fuel * a99_core::fuel::MICRO_PER_UNIT as f64).round() as u128;
        let fuel = micro.saturating_mul(u128::from(usage.total()));
        Cost {
            money: Money::from_micro(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)),
            fuel: Fuel::from_micro(i64::try_from(fuel).unwrap_or(i64::MAX)),
        }
    }

    /// Finds an invalid member.
    pub(crate) fn check(&self) -> Result<(), (&'static str, f64)> {
        for (key, value) in [
            ("prompt", self.prompt),
            ("cached", self.cached.unwrap_or_default()),
            ("written", self.written.unwrap_or_default()),
            ("completion", self.completion),
            ("fuel", self.fuel),
            (
                "long.prompt",
                self.long.as_ref().map_or(0.0, |long| long.prompt),
            ),
            (
                "long.cached",
                self.long
                    .as_ref()
                    .and_then(|long| long.cached)
                    .unwrap_or_default(),
            ),
            (
                "long.written",
                self.long
                    .as_ref()
                    .and_then(|long| long.written)
                    .unwrap_or_default(),
            ),
            (
                "long.completion",
                self.long.as_ref().map_or(0.0, |long| long.completion),
            ),
        ] {
            if !(0.0..=1e6).contains(&value) {
                return Err((key, value));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_exact_and_saturate() {
        let price = Price {
            prompt: 2.5,
            cached: Some(0.25),
            completion: 10.0,
            fuel: 0.01,
            ..Price::default()
        };
        let usage = Usage {
            prompt_tokens: 1_000,
            completion_tokens: 10,
            cached_tokens: 900,
            ..Usage::default()
        };
        let cost = price.cost(usage);
        assert_eq!(cost.money.micro(), 250 + 225 + 100);
        assert_eq!(cost.fuel.micro(), 10_100_000);
        assert_eq!(price.cost(Usage::default()), Cost::default());
        // Of 1,000 tokens 400 are written to a cache, at 1.25 times 2.5.
        let writes = Usage {
            cached_tokens: 500,
            written_tokens: 400,
            ..usage
        };
        assert_eq!(price.cost(writes).money.micro(), 250 + 125 + 1_250 + 100);
        let known = Price {
            written: Some(5.0),
            ..price.clone()
        };
        assert_eq!(known.cost(writes).money.micro(), 250 + 125 + 2_000 + 100);
        let odd = Usage {
            prompt_tokens: 5,
            cached_tokens: u64::MAX,
            ..Usage::default()
        };
        // 1.25 millionths.
        assert_eq!(price.cost(odd).money.micro(), 2);
        let huge = Usage {
            prompt_tokens: u64::MAX,
            completion_tokens: u64::MAX,
            ..Usage::default()
        };
        let dear = Price {
            prompt: 1e6,
            completion: 1e6,
            fuel: 1e6,
            ..Price::default()
        };
        assert_eq!(
            dear.cost(huge),
            Cost {
                money: Money::from_micro(u64::MAX),
                fuel: Fuel::MAX
            }
        );
        let one = Usage {
            prompt_tokens: 1,
            ..Usage::default()
        };
        let cheap = Price {
            prompt: 0.000_001,
            ..Price::default()
        };
        assert_eq!(cheap.cost(one).money.micro(), 1, "rounded up");
    }

    #[test]
    fn prices_are_numbers_from_nothing_on() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
            let price = Price {
                fuel: bad,
                ..Price::default()
            };
            assert_eq!(price.check().unwrap_err().0, "fuel");
        }
    }
}
