//! Closing containers: links the children and detects duplicate keys.

use super::parse::{Parser, closer};
use super::recover::{MAX_POINTER, excerpt, pointer_limited};
use super::{NONE, Repeated, Tag, filter, word};
use crate::diag::{Diagnostic, LineIndex, codes};
use crate::pointer;
use crate::text::wtf8_to_string_lossy;
use std::collections::HashMap;

/// Up to this many members, comparing keys one by one is faster than hashing.
const FEW_MEMBERS: usize = 12;
/// Most duplicate keys reported individually; the rest is counted.
const MAX_DUPLICATES: usize = 1000;

impl Parser<'_> {
    /// Closes the innermost container at its bracket.
    pub(super) fn close(&mut self) {
        debug_assert!(
            self.stack
                .last()
                .is_some_and(|frame| self.peek() == Some(closer(frame.object)))
        );
        self.pos += 1;
        let Some((node, base, object)) = self
            .stack
            .last()
            .map(|frame| (frame.node, frame.base, frame.object))
        else {
            return;
        };
        let names = match object {
            true => self.find_duplicates(base),
            false => 0,
        };
        let start = word(self.links.len());
        let count = word(self.pending.len() - base);
        self.links.extend(self.pending.drain(base..));
        let end = word(self.pos);
        if let Some(node) = self.nodes.get_mut(node as usize) {
            (node.a, node.b, node.end) = (start, count, end);
            node.set_names(names);
        }
        self.stack.pop();
        self.add_child(node);
    }

    /// The decoded key of the member whose value is node `at`.
    fn key(&self, at: u32) -> &[u8] {
        self.key_text(at - 1)
    }

    pub(super) fn key_text(&self, key: u32) -> &[u8] {
        let node = &self.nodes[key as usize];
        let buffer = match node.tag {
            Tag::SourceString => self.src,
            _ => &self.strings,
        };
        &buffer[node.a as usize..(node.a + node.b) as usize]
    }

    /// Reports duplicate keys or keeps their last values, and returns the name filter.
    fn find_duplicates(&mut self, base: usize) -> u32 {
        let mut names = 0;
        let members = &self.pending[base..];
        // Positions of the first and of a later member with the same name.
        let mut twice: Vec<(usize, usize)> = Vec::new();
        if members.len() <= FEW_MEMBERS {
            for (index, &at) in members.iter().enumerate() {
                let before = names;
                names |= filter::of(self.key(at));
                if names != before {
                    continue;
                }
                // Compares lengths first: they are already loaded and usually differ.
                let size = self.nodes[at as usize - 1].b;
                let first = members[..index].iter().position(|&other| {
                    self.nodes[other as usize - 1].b == size && self.key(other) == self.key(at)
                });
                twice.extend(first.map(|first| (first, index)));
            }
        } else {
            // The hash key is random, so crafted keys cannot collide (security C10).
            let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(members.len());
            for (index, &at) in members.iter().enumerate() {
                names |= filter::of(self.key(at));
                match seen.get(self.key(at)) {
                    Some(&first) => twice.push((first, index)),
                    None => {
                        seen.insert(self.key(at), index);
                    }
                }
            }
        }
        if twice.is_empty() {
            return names;
        }
        match self.repeated {
            Repeated::Refused => {
                let nodes = twice.iter().map(|&(first, again)| {
                    let members = &self.pending[base..];
                    (members[first], members[again])
                });
                let nodes: Vec<(u32, u32)> = nodes.collect();
                self.report_duplicates(&nodes);
            }
            Repeated::Last => self.keep_last(base, &twice),
        }
        names
    }

    /// Moves the last value of each repeated key to the position of the first.
    fn keep_last(&mut self, base: usize, twice: &[(usize, usize)]) {
        for &(first, again) in twice {
            self.pending[base + first] = self.pending[base + again];
            self.pending[base + again] = NONE;
        }
        let mut to = base;
        for from in base..self.pending.len() {
            if self.pending[from] != NONE {
                self.pending[to] = self.pending[from];
                to += 1;
            }
        }
        self.pending.truncate(to);
    }

    fn report_duplicates(&mut self, twice: &[(u32, u32)]) {
        let room = MAX_DUPLICATES.saturating_sub(self.duplicates);
        self.duplicates += twice.len();
        if room == 0 {
            return;
        }
        let object = self.container_pointer();
        for &(first, again) in twice.iter().take(room) {
            let key = wtf8_to_string_lossy(self.key(again)).into_owned();
            let first_key = self.nodes[first as usize - 1];
            let second_key = self.nodes[again as usize - 1];
            let line = self
                .lines
                .get_or_init(|| LineIndex::new(self.src))
                .line_col(self.src, first_key.start)
                .0;
            let shown = excerpt(&key);
            let mut place = object.clone();
            pointer::push_key(&mut place, &key);
            self.found.push(
                Diagnostic::error(
                    codes::DUPLICATE_KEY,
                    format!("the key \"{shown}\" appears twice in one object"),
                    pointer_limited(place),
                )
                .with_span(second_key.start..second_key.end)
                .with_offending(shown)
                .with_help(format!("remove one of them: the first is on line {line}")),
            );
        }
    }

    /// Reports the number of duplicates that were not reported individually.
    pub(super) fn report_unlisted_duplicates(&mut self) {
        let more = self.duplicates.saturating_sub(MAX_DUPLICATES);
        if more > 0 {
            let message = format!("{more} more keys appear twice in one object");
            self.found
                .push(Diagnostic::error(codes::DUPLICATE_KEY, message, ""));
        }
    }

    /// The pointer to the innermost open container.
    pub(super) fn container_pointer(&self) -> String {
        let depth = self.stack.len().saturating_sub(1);
        self.path(depth)
    }

    /// The pointer to the value that is being read.
    pub(super) fn value_pointer(&self) -> String {
        self.path(self.stack.len())
    }

    /// The pointer through the first `depth` open containers.
    fn path(&self, depth: usize) -> String {
        let mut out = String::new();
        for (index, frame) in self.stack.iter().enumerate().take(depth) {
            if out.len() > MAX_POINTER {
                break;
            }
            if frame.key != NONE {
                let key = self.key_text(frame.key);
                let shown = &key[..key.len().min(MAX_POINTER + 1)];
                pointer::push_key(&mut out, &wtf8_to_string_lossy(shown));
            } else if !frame.object {
                let end = self
                    .stack
                    .get(index + 1)
                    .map_or(self.pending.len(), |inner| inner.base);
                pointer::push_index(&mut out, end - frame.base);
            }
        }
        pointer_limited(out)
    }
}
