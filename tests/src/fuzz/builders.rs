//! Chains of builder calls out of bytes: the builder's output is read back as the same program,
//! and all errors of the chain are found.

mod operands;
mod steps;

use super::ENGINE;
use crate::generate::choice::Choices;
use a99_builder::Builder;
use a99_core::disasm::disassemble;
use a99_core::json::{Document, Limits};
use a99_core::text::Text;
use agent99::{Agent, Refused};
use std::cell::{Cell, RefCell};

/// Deepest nesting of bodies and operands: enough to combine all kinds.
const MAX_DEPTH: u32 = 6;

/// Builds the chain of the bytes, and compares the program with its JSON.
///
/// # Panics
/// If they differ, or an error is missed or invented.
pub(super) fn round_trip(data: &[u8]) {
    let grower = Grower::new(data);
    let program = grower.chain(Builder::new(), 0);
    assert_eq!(program.findings().len(), grower.faults.get());
    let text = match program.to_json_string() {
        Ok(text) => text,
        Err(refused) => {
            assert_eq!(refused.len(), grower.faults.get());
            assert!(
                refused
                    .iter()
                    .all(|d| d.pointer.starts_with("/steps") || d.pointer.starts_with("/helpers/"))
            );
            return;
        }
    };
    assert_eq!(grower.faults.get(), 0, "a fault was missed");
    let document = Document::parse(text.as_bytes(), &Limits::default()).expect("JSON");
    let read = document.to_value(document.root());
    assert_eq!(read.to_json_string(), text);
    let from_chain = ENGINE.compile_builder(&program);
    let from_value = ENGINE.compile_value(&read);
    assert_eq!(shown(&from_chain), shown(&from_value));
}

/// Result of a compilation: findings with their places, and code.
fn shown(compiled: &Result<Agent, Refused>) -> (Vec<(&str, &str)>, Vec<String>) {
    let (findings, code) = match compiled {
        Ok(agent) => (agent.warnings(), disassemble(agent.artifact().program())),
        Err(refused) => (refused, String::new()),
    };
    let places = findings.iter().map(|d| (d.code, d.pointer.as_str()));
    (places.collect(), code.lines().map(str::to_owned).collect())
}

/// True if the chain has a step whose result can be named.
fn captures(chain: &Builder) -> bool {
    chain
        .steps()
        .last()
        .is_some_and(|step| step.as_object().is_some())
}

/// Grows a chain; bodies share the bytes, so that they are in cells.
struct Grower<'b> {
    choices: RefCell<Choices<'b>>,
    /// Errors that the builder must find.
    faults: Cell<usize>,
}

impl<'b> Grower<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Grower {
            choices: RefCell::new(Choices::new(bytes)),
            faults: Cell::new(0),
        }
    }

    fn below(&self, n: usize) -> usize {
        self.choices.borrow_mut().below(n)
    }

    fn byte(&self) -> u8 {
        self.choices.borrow_mut().byte()
    }

    fn is_empty(&self) -> bool {
        self.choices.borrow().is_empty()
    }

    fn fault(&self, count: usize) {
        self.faults.set(self.faults.get() + count);
    }

    /// A name, sometimes an awkward one.
    fn name(&self) -> &'static str {
        const NAMES: [&str; 10] = [
            "a",
            "b",
            "xs",
            "result",
            "n",
            "a.b",
            "",
            "__proto__",
            "é\u{1F600}",
            "~/\"\\",
        ];
        NAMES[self.below(NAMES.len())]
    }

    /// A literal text, lone surrogates included.
    fn text(&self) -> Text {
        let length = self.below(8);
        let bytes: Vec<u8> = (0..length).map(|_| self.byte()).collect();
        match bytes.first() {
            // A lone high surrogate in WTF-8.
            Some(255) => Text::from_wtf8(vec![0xED, 0xA0, 0x80]),
            _ => Text::from(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// More steps, as many as the bytes choose; a capture does not count as one.
    fn chain(&self, mut chain: Builder, depth: u32) -> Builder {
        let mut helpers = false;
        let mut schema = false;
        while !self.is_empty() {
            let before = chain.steps().len();
            match self.below(16) {
                0 if depth > 0 => break,
                1 | 2 if captures(&chain) || self.below(16) == 15 => {
                    chain = self.capture(chain);
                    assert_eq!(chain.steps().len(), before);
                }
                3 if depth < MAX_DEPTH && self.below(4) == 3 => {
                    helpers = true;
                    let name = self.name();
                    chain = chain.helper(name, &["p", "q"], |b| self.chain(b, depth + 1));
                }
                4 if self.below(8) == 7 => {
                    schema = true;
                    chain = chain.input_schema(self.schema());
                }
                _ => {
                    chain = self.step(chain, depth);
                    assert_eq!(chain.steps().len(), before + 1);
                }
            }
        }
        if depth > 0 {
            self.fault(usize::from(helpers) + usize::from(schema));
        }
        chain
    }

    fn capture(&self, chain: Builder) -> Builder {
        self.fault(usize::from(!captures(&chain)));
        let name = self.name();
        if self.below(2) == 0 {
            chain.as_(name)
        } else {
            chain.as_const(name)
        }
    }
}
