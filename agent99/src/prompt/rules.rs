//! Rules of the language and example programs for prompts.

/// A paragraph of the prompt.
pub(super) struct Rule {
    /// Atoms that the paragraph needs; without one of them it is left out.
    pub needs: &'static [&'static str],
    /// The paragraph, in Markdown. Tests run its JSON between backquotes.
    pub text: &'static str,
}

/// The rules before the list of expression nodes.
pub(super) const RULES: &[Rule] = &[
    Rule {
        needs: &["seq"],
        text: "Answer with one JSON object, `{\"op\":\"seq\",\"steps\":[...]}`. A step is an \
object: `op` names an atom, other keys are its inputs, `\"result\":\"x\"` keeps its value as \
variable x, else it is lost.",
    },
    Rule {
        needs: &["mathCalc", "varSet"],
        text: "Where a name stands decides what it is:
- in a `condition`: variable, else argument
- in mathCalc's `expr`: variable of the innermost scope only; the rest by \
`\"vars\":{\"n\":\"args.n\"}`
- as a value, `\"n\"` or `\"n.list.0\"`: the variable, else just text. An argument is \
`\"args.n\"`, here only
- inside a list or object: always text. Write `{\"total\":{\"$expr\":\"ident\",\"name\":\"total\"}}`",
    },
    Rule {
        needs: &["varsImport"],
        text: "Begin with varsImport: it makes arguments variables.",
    },
    Rule {
        needs: &["if"],
        text: "Conditions are texts like JavaScript, with calls: \
`\"name.startsWith('a') && Math.abs(n) > 2\"`. No regex, no `${}`.",
    },
    Rule {
        needs: &["mathCalc"],
        text: "mathCalc knows `order.lines[0].price`, arithmetic, comparisons; no calls, no \
`? :`.",
    },
    Rule {
        needs: &["map", "reduce", "while", "forEach", "break"],
        text: "Loops: map, filter, find, reduce; what a turn's steps leave in variable `result` is \
map's item, reduce's accumulator, all else is lost. forEach and while, with break and \
continue, share the variables around, as if and try do.",
    },
    Rule {
        needs: &["try", "Error"],
        text: "In `catch`, variable `error` is the message.",
    },
    Rule {
        needs: &["return"],
        text: "End with return: `schema` names variables, or `value` is an object. The result is \
always an object.",
    },
    Rule {
        needs: &["callLocal"],
        text: "Helpers: root key `\"helpers\":{\"h\":{\"paramNames\":[\"x\"],\"steps\":[...]}}`, called by \
`{\"op\":\"callLocal\",\"name\":\"h\",\"args\":[\"n\"],\"result\":\"y\"}`. They see parameters and \
arguments only.",
    },
];

/// The rules after the list of expression nodes.
pub(super) const MISTAKES: &[Rule] = &[
    Rule {
        needs: &["mathCalc", "template"],
        text: "`\"a + 1\"` and `\"Hi {{a}}\"` as values are just text: use mathCalc or binary, and \
template, whose holes are bare names of its `vars`.",
    },
    Rule {
        needs: &["memberSet"],
        text: "memberSet changes members, varSet names only. No for, set, throw, no \
functions of your own.",
    },
];

/// Example programs, each with a title.
pub(super) const PROGRAMS: &[(&str, &str)] = &[
    ("A total", include_str!("total.json")),
    ("Capitals", include_str!("capitals.json")),
];
