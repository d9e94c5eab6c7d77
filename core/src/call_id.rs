//! Identity of a call within a run.
//!
//! Journals and other records key a run's host calls by it, so its meaning and its text form are
//! stable.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Many times the default nesting depth of sub-agents.
const MAX_DEPTH: usize = 256;

/// Identity of a call within a run. A run that repeats with the same answers makes the same calls
/// with the same identities.
///
/// `step` counts the suspensions of the run for its host, from 0. Pauses, loading of programs and
/// refuelling do not count. A program that runs inline continues its caller's count. `index` is the
/// position among concurrent calls, otherwise 0. The run of a host's sub-agent has the call that
/// started it as its parent.
///
/// The text form is `step.index`, after the identities of the parents: `2.0/0.0` is the first call
/// of a run that the third call of another run started.
///
/// ```
/// use a99_core::call_id::CallId;
///
/// let id: CallId = "2.0/0.0".parse()?;
/// assert_eq!((id.step(), id.index(), id.depth()), (0, 0, 1));
/// assert_eq!(id.parent().map(CallId::step), Some(2));
/// assert_eq!(id.to_string(), "2.0/0.0");
/// # Ok::<(), a99_core::call_id::BadCallId>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    parent: Option<Arc<CallId>>,
    step: u64,
    index: u32,
}

impl CallId {
    /// Identity of a call in a run that the call `parent` started, or in an outermost run.
    #[must_use]
    pub fn new(parent: Option<Arc<CallId>>, step: u64, index: u32) -> CallId {
        CallId {
            parent,
            step,
            index,
        }
    }

    /// Number of the suspension in its run, from 0.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Position among concurrent calls, from 0.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The call that started this call's run.
    #[must_use]
    pub fn parent(&self) -> Option<&CallId> {
        self.parent.as_deref()
    }

    /// Number of ancestors.
    #[must_use]
    pub fn depth(&self) -> usize {
        std::iter::successors(self.parent(), |id| id.parent()).count()
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut path = vec![self];
        path.extend(std::iter::successors(self.parent(), |id| id.parent()));
        for (at, id) in path.iter().rev().enumerate() {
            let slash = if at == 0 { "" } else { "/" };
            write!(f, "{slash}{}.{}", id.step, id.index)?;
        }
        Ok(())
    }
}

/// The error for a text that is not a [`CallId`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BadCallId;

impl fmt::Display for BadCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the identity of a call is `step.index`, after those of its parents: `2.0/0.0`")
    }
}

impl std::error::Error for BadCallId {}

impl FromStr for CallId {
    type Err = BadCallId;

    fn from_str(text: &str) -> Result<CallId, BadCallId> {
        let mut id: Option<CallId> = None;
        for (depth, part) in text.split('/').enumerate() {
            let (step, index) = part.split_once('.').ok_or(BadCallId)?;
            // Rejects the sign and the leading zeros that `parse` accepts.
            let plain = |text: &str| text == "0" || !text.starts_with(['0', '+']);
            if depth > MAX_DEPTH || !plain(step) || !plain(index) {
                return Err(BadCallId);
            }
            id = Some(CallId {
                parent: id.map(Arc::new),
                step: step.parse().map_err(|_| BadCallId)?,
                index: index.parse().map_err(|_| BadCallId)?,
            });
        }
        id.ok_or(BadCallId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_has_one_text() {
        for text in [
            "0.0",
            "7.63",
            "2.0/0.0",
            "1.2/3.4/18446744073709551615.4294967295",
        ] {
            assert_eq!(text.parse::<CallId>().unwrap().to_string(), text);
        }
        for text in [
            "", "1", "1.", ".1", "1.1.1", "+1.0", "01.0", "1.00", "1.0/", "/1.0", "1.-1",
        ] {
            assert_eq!(text.parse::<CallId>(), Err(BadCallId), "{text}");
        }
        assert!("0.0/".repeat(1_000_000).parse::<CallId>().is_err());
    }

    #[test]
    fn calls_are_ordered_as_they_are_made() {
        let id = |text: &str| text.parse::<CallId>().unwrap();
        assert!(id("1.0") < id("2.0") && id("2.0") < id("2.1"));
        assert!(id("9.0") < id("10.0"));
        assert_eq!(id("3.1/0.0").parent(), Some(&id("3.1")));
    }
}
