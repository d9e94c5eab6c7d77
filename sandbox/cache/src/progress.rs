//! Progress events of a build.

use std::time::Duration;

/// How a step got its result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// The cache had the result.
    Cached,
    /// The step ran.
    Built,
}

/// Progress event of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step starts, since its result is not in the cache.
    Started {
        /// Name of the step.
        step: &'a str,
    },
    /// A part of the running step starts.
    Detail {
        /// Name of the step.
        step: &'a str,
        /// Description of the part.
        text: &'a str,
    },
    /// The running step has done a part of its work.
    Advanced {
        /// Bytes that are done.
        done: u64,
        /// Bytes of the whole.
        of: u64,
    },
    /// A step is done.
    Finished {
        /// Name of the step.
        step: &'a str,
        /// Whether the result came from the cache.
        end: StepEnd,
        /// Duration of the step.
        elapsed: Duration,
    },
    /// A note for the user.
    Note {
        /// One sentence.
        text: &'a str,
    },
}

/// Listener for events; closures implement it.
pub trait Progress {
    /// Called for each event, on the thread that builds.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Progress for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Reports a note.
pub fn note(progress: &mut dyn Progress, text: impl AsRef<str>) {
    let text = text.as_ref();
    progress.event(Event::Note { text });
}
