//! Programs in answers of reasoning models.

use agent99::find_program;

const DRAFT: &str = r#"{"op": "seq", "steps": [{"op": "return", "value": "</think> draft"}]}"#;
const FINAL: &str = r#"{"op": "seq", "steps": [{"op": "return", "value": "<think>{[<"}]}"#;

fn program(answer: &str) -> Option<&str> {
    find_program(answer).map(|range| &answer[range])
}

/// Names of tags and fences of reasoning.
const NAMES: [&str; 9] = [
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "analysis",
    "inner_monologue",
];

/// Reasoning as models and servers write it, with a draft in each.
fn thoughts() -> Vec<String> {
    let tags = NAMES.iter().flat_map(|name| {
        [
            format!("<{name}>First {DRAFT}?\n</{name}>\n"),
            format!(
                "<{name} budget=\"5\">\n```json\n{DRAFT}\n```</{}>",
                name.to_uppercase()
            ),
            format!("Before: {DRAFT}\n</{name}>"),
            format!("```{name}\nLet me see\n```json\n{DRAFT}\n```\n{DRAFT}\n```\n"),
        ]
    });
    let others = [
        format!("[THINK]{DRAFT}[/THINK]"),
        format!("◁think▷{DRAFT}◁/think▷"),
        format!("<seed:think>{DRAFT}</seed:think>"),
        format!("<|START_THINKING|>{DRAFT}<|END_THINKING|>"),
        format!("<think>a <think>b {DRAFT}</think> c {DRAFT}</think>"),
        format!(
            "<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>"
        ),
        format!("<|start|>assistant<|channel|>analysis<|message|>{DRAFT}<|end|>\n"),
        format!(
            "<|channel|>commentary<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>"
        ),
    ];
    tags.chain(others).collect()
}

#[test]
fn b8_a_draft_that_was_thought_is_no_program() {
    for thought in thoughts() {
        for before in ["", "Hm.\n"] {
            let answer = format!("{before}{thought}\nHere: {FINAL} Done.");
            assert_eq!(program(&answer), Some(FINAL), "{answer}");
            let fenced = format!("{before}{thought}\n```json\n{FINAL}\n```\n");
            assert_eq!(program(&fenced), Some(FINAL), "{fenced}");
            let nothing = format!("{before}{thought}\nI cannot do that.");
            assert_eq!(program(&nothing), None, "{nothing}");
            let cut = format!("{before}{thought}\n{}", &FINAL[..FINAL.len() - 2]);
            assert_ne!(program(&cut), Some(DRAFT), "{cut}");
        }
    }
    // Truncated during reasoning.
    for open in [
        "<think>",
        "[THINK]",
        "```thinking\n",
        "<|channel|>analysis<|message|>",
    ] {
        assert_eq!(program(&format!("{open} Perhaps {DRAFT}")), None, "{open}");
    }
}

#[test]
fn b8_of_several_programs_that_are_spoken_the_first_counts() {
    let answer = format!("<think>{DRAFT}</think>{FINAL} or {DRAFT}");
    assert_eq!(program(&answer), Some(FINAL));
}

#[test]
fn b8_marks_in_json_and_between_backticks_are_text() {
    for answer in [
        FINAL.to_owned(),
        format!("I write no `<think>` and no `</think>`: {FINAL}"),
        format!("{{\"thought\": \"<think>\", \"program\": {FINAL}}}"),
        format!("{FINAL} That is all of `</think>`."),
        format!("A list [1] < 2 and <b>bold</b>, <thinker> {FINAL}"),
    ] {
        assert_eq!(program(&answer), Some(FINAL), "{answer}");
    }
    let wrapped = format!("<think>{DRAFT}</think>{{\"note\": \"</think>\", \"p\": {FINAL}}}");
    assert_eq!(program(&wrapped), Some(FINAL));
}

#[test]
fn a11_many_marks_are_read_a_bounded_number_of_times() {
    for part in [
        "<think>",
        "</think>",
        "{\"a\":",
        "```think\n",
        "<|channel|>",
        "[THINK",
        "<",
    ] {
        let text = part.repeat((1 << 20) / part.len());
        let begun = std::time::Instant::now();
        let _ = find_program(&text);
        assert!(begun.elapsed().as_secs() < 10, "{part}");
    }
}
