//! Token counts of an answer, as OpenAI's and Gemini's wire formats report them.

use a99_capabilities::ai::Usage;

/// The counters of a report.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) prompt: Option<u64>,
    pub(super) completion: Option<u64>,
    pub(super) total: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) reasoning: Option<u64>,
}

impl Counters {
    /// The usage; `None` if neither the prompt nor the answer is counted.
    ///
    /// Some services count reasoning outside of the answer (xAI, Gemini in OpenAI's wire
    /// format), some count cached tokens outside of the prompt. The total includes both, and
    /// decides.
    pub(super) fn usage(self) -> Option<Usage> {
        self.prompt.or(self.completion)?;
        let cached = self.cached.unwrap_or(0);
        let reasoning = self.reasoning.unwrap_or(0);
        let mut prompt = self.prompt.unwrap_or(0);
        let mut completion = self.completion.unwrap_or(0);
        if let (Some(_), Some(total)) = (self.prompt, self.total) {
            let rest = total.saturating_sub(prompt.saturating_add(completion));
            match rest > 0 && rest == cached && rest != reasoning {
                true => prompt = prompt.saturating_add(rest),
                false => completion = completion.saturating_add(rest),
            }
        }
        if reasoning > completion {
            completion = completion.saturating_add(reasoning);
        }
        Some(Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            cached_tokens: cached,
            reasoning_tokens: reasoning,
            ..Usage::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d3_reasoning_beside_the_answer_is_counted() {
        // Prompt, answer, total, cached, reasoning; then prompt and answer that are paid.
        type Case = ([Option<u64>; 5], (u64, u64));
        let cases: [Case; 11] = [
            // xAI counts reasoning outside of the answer.
            ([Some(12), Some(1), Some(399), None, Some(386)], (12, 387)),
            ([Some(12), Some(1), None, None, Some(386)], (12, 387)),
            // A total that leaves the reasoning out as well.
            ([Some(12), Some(1), Some(13), None, Some(386)], (12, 387)),
            // OpenAI counts it in the answer.
            (
                [Some(12), Some(400), Some(412), Some(8), Some(386)],
                (12, 400),
            ),
            // Gemini behind OpenAI's wire reports no reasoning, but a total.
            ([Some(9), Some(5), Some(90), None, None], (9, 81)),
            // Cached tokens outside of the prompt.
            ([Some(10), Some(5), Some(115), Some(100), None], (110, 5)),
            ([Some(10), None, Some(15), None, None], (10, 5)),
            ([None, Some(5), Some(15), None, None], (0, 5)),
            ([Some(10), Some(5), Some(3), None, None], (10, 5)),
            ([Some(10), Some(5), None, Some(3), Some(5)], (10, 5)),
            (
                [Some(u64::MAX), Some(2), Some(u64::MAX), None, None],
                (u64::MAX, 2),
            ),
        ];
        for (counters, expected) in cases {
            let [prompt, completion, total, cached, reasoning] = counters;
            let usage = Counters {
                prompt,
                completion,
                total,
                cached,
                reasoning,
            };
            let usage = usage.usage().unwrap();
            let found = (usage.prompt_tokens, usage.completion_tokens);
            assert_eq!(found, expected, "{counters:?}");
        }
        let none = Counters {
            total: Some(7),
            ..Counters::default()
        };
        assert_eq!(none.usage(), None);
    }
}
