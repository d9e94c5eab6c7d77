//! Progress events of a build.

use std::time::Duration;

/// How a step ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// Its result was there already.
    Cached,
    /// It was run.
    Built,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step begins whose result is not in the cache.
    Started {
        /// The step's name.
        step: &'a str,
    },
    /// A part of the running step begins.
    Detail {
        /// The step's name.
        step: &'a str,
        /// What it does now.
        text: &'a str,
    },
    /// A step is done.
    Finished {
        /// The step's name.
        step: &'a str,
        /// Whether it had to be run.
        end: StepEnd,
        /// How long it took.
        elapsed: Duration,
    },
    /// Something that the user should know.
    Note {
        /// A sentence.
        text: &'a str,
    },
}

/// Listener for events. Closures are listeners too.
pub trait Progress {
    /// Called for each event, on the thread that builds.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Progress for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Reports a sentence.
pub fn note(progress: &mut dyn Progress, text: impl AsRef<str>) {
    let text = text.as_ref();
    progress.event(Event::Note { text });
}
