//! Objects of the host by handle.

use crate::failure::{Failure, codes};

/// A handle is a generation, a place and a kind, and less than 2^53: exact as a number of
/// JavaScript.
const KINDS: u64 = 1 << 2;
const PLACES: u64 = 1 << 22;
const GENERATIONS: u64 = 1 << 28;

/// Objects of one kind. A handle is never given twice before 2^28 objects had its place, so that
/// a stale handle finds nothing.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<(u64, Option<T>)>,
    free: Vec<usize>,
    /// Number and name of the kind.
    kind: (u64, &'static str),
}

impl<T> Slab<T> {
    pub(crate) fn new(kind: (u64, &'static str)) -> Slab<T> {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
            kind,
        }
    }

    /// Adds an object and returns its handle.
    pub(crate) fn insert(&mut self, object: T) -> Result<u64, Failure> {
        let handle = self.reserve()?;
        self.put(handle, object);
        Ok(handle)
    }

    /// Returns a handle for an object that [`Slab::put`] will add.
    pub(crate) fn reserve(&mut self) -> Result<u64, Failure> {
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.entries.len() as u64 == PLACES => {
                let message = format!("too many {}s at once: {PLACES}", self.kind.1);
                return Err(Failure::new(codes::BAD_HANDLE, message));
            }
            None => {
                self.entries.push((0, None));
                self.entries.len() - 1
            }
        };
        let (generation, entry) = &mut self.entries[at];
        *generation = (*generation + 1) % GENERATIONS;
        *entry = None;
        Ok((*generation * PLACES + at as u64) * KINDS + self.kind.0)
    }

    fn find(&mut self, handle: u64) -> Option<&mut Option<T>> {
        let (handle, kind) = (handle / KINDS, handle % KINDS);
        let at = usize::try_from(handle % PLACES).ok()?;
        let (generation, entry) = self.entries.get_mut(at)?;
        (*generation == handle / PLACES && kind == self.kind.0).then_some(entry)
    }

    /// The object of a handle.
    pub(crate) fn get(&mut self, handle: u64) -> Result<&mut T, Failure> {
        let missing = self.missing(handle);
        self.find(handle).and_then(Option::as_mut).ok_or(missing)
    }

    /// Takes an object out; its handle stays reserved until [`Slab::put`] or [`Slab::release`].
    pub(crate) fn take(&mut self, handle: u64) -> Result<T, Failure> {
        let missing = self.missing(handle);
        self.find(handle).and_then(Option::take).ok_or(missing)
    }

    /// Puts an object back that was taken.
    pub(crate) fn put(&mut self, handle: u64, object: T) {
        if let Some(entry) = self.find(handle) {
            *entry = Some(object);
        }
    }

    /// Ends a handle whose object was taken.
    pub(crate) fn release(&mut self, handle: u64) {
        let at = (handle / KINDS % PLACES) as usize;
        if self.find(handle).is_some() {
            // The generation is counted up, so that the handle is stale from now on.
            self.entries[at].0 = (self.entries[at].0 + 1) % GENERATIONS;
            self.free.push(at);
        }
    }

    /// Removes an object; false if the handle has none.
    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        let object = self.find(handle)?.take()?;
        self.release(handle);
        Some(object)
    }

    fn missing(&self, handle: u64) -> Failure {
        let message = format!(
            "{handle} is no {}, or it was freed, ended or is in use",
            self.kind.1
        );
        Failure::new(codes::BAD_HANDLE, message)
    }
}
