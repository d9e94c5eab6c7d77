//! `memoize` and `cache` (language section 4.9, D25, D26).
//!
//! The key of a site without one is derived from its computation: the canonical text of its
//! body (without the last step's `result`, which only names where the value goes) and the
//! values of the outer variables that the body could read. A variable counts as read when some
//! string of the body is its name or begins with its name and a dot, when an expression text
//! contains it as a word, or when `return` or the inherited `result` names it. The names that
//! steps bind (`key` of `varSet` and `constSet`, `result`, `as`, `accumulator`, `catchParam`)
//! and `op` do not count by themselves.

use super::loops::Jumps;
use super::{Held, Lower, ReturnTo};
use crate::ir::expr_text;
use a99_core::json::{Kind, NodeId};
use a99_core::program::{
    ChargeKind, Const, Count, MemoIdx, MemoSite, Op, Reg, Site, SiteIdx, Target,
};
use std::collections::BTreeSet;

/// Values that one instruction hashes. Each key is an input of the next one, so the last key
/// covers all free variables.
const VALUES_AT_ONCE: usize = 24;

/// Bytes of text that cost as much code budget as one instruction.
const TEXT_PER_ROOM: usize = 8;

impl<'a> Lower<'_, 'a> {
    /// The held key: as given, or computed from the body.
    fn memo_key(&mut self, step: NodeId, with_program: bool) -> Held {
        let doc = self.s.doc;
        let mark = self.mark();
        let key = self.temp();
        match doc.get(step, "key").map(|n| (n, doc.kind(n))) {
            None | Some((_, Kind::Null)) => self.hash_key(step, key, with_program),
            Some((given, Kind::String(text))) if self.vars.is_plain_text(text) => {
                self.value_to(given, key);
            }
            Some((given, _)) => {
                self.value_to(given, key);
                let present = self.e.label();
                self.e.jump(
                    Op::JPresent {
                        src: key,
                        to: Target(0),
                    },
                    present,
                );
                self.hash_key(step, key, with_program);
                self.e.bind(present);
            }
        }
        self.hold(key, mark)
    }

    /// The `hash` step that the reference runs for a site without a key.
    fn hash_key(&mut self, step: NodeId, key: Reg, with_program: bool) {
        let doc = self.s.doc;
        let steps = doc.get(step, "steps").unwrap_or(step);
        let op = self.s.op("hash");
        let scope = self.step_scope();
        let id = self.e.open_step(op, steps, true, scope);
        // Hashing reads and writes the whole body again, also for each memo around it.
        if !self.e.spend(self.s.facts.size(steps)) {
            return self.e.close_step(id, None);
        }
        if with_program && self.s.facts.reads_context {
            // Another run would derive the same key and read values of this run's context.
            self.throw("cache needs a key: the program reads the context");
        }
        let names = self.free_names(steps);
        let body = self.canonical_body(steps);
        self.e.spend(body.len() / TEXT_PER_ROOM);
        let (first, rest) = names.split_at(names.len().min(VALUES_AT_ONCE));
        self.hash_values(key, &body, first, false, with_program);
        for names in rest.chunks(VALUES_AT_ONCE) {
            self.hash_values(key, b"", names, true, false);
        }
        self.e.close_step(id, Some(key));
    }

    /// Hashes a body and the values of these variables; with `on`, also the key so far, which has
    /// no name.
    fn hash_values(
        &mut self,
        key: Reg,
        body: &[u8],
        names: &[&[u8]],
        goes_on: bool,
        with_program: bool,
    ) {
        let mark = self.mark();
        let base = self.peek();
        let mut free = Vec::new();
        if goes_on {
            let r = self.temp();
            self.mov(r, key);
            free.push(self.s.pool.text_const(b"").0);
        }
        for name in names {
            let r = self.temp();
            let mark = self.mark();
            let value = self.name_or_undefined(name);
            self.mov(r, value);
            self.release(mark);
            free.push(self.s.pool.text_const(name).0);
        }
        let body = self.s.pool.range(body);
        let n = free.len() as u8;
        self.s.memos.push(MemoSite {
            body,
            free: free.into(),
            with_program,
        });
        let memo = self.s.memos.len() as u32 - 1;
        self.e.emit(Op::MemoKey {
            dst: key,
            base,
            n: Count(n),
            memo: MemoIdx(memo),
        });
        self.release(mark);
    }

    fn canonical_body(&self, steps: NodeId) -> Vec<u8> {
        let doc = self.s.doc;
        let mut out = vec![b'['];
        let n = doc.len(steps);
        for (i, step) in doc.elements(steps).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            if i + 1 < n || doc.kind(step) != Kind::Object {
                doc.write_json(step, &mut out);
                continue;
            }
            out.push(b'{');
            let mut first = true;
            for (key, node) in doc.members(step).filter(|(key, _)| *key != b"result") {
                if !std::mem::replace(&mut first, false) {
                    out.push(b',');
                }
                a99_core::json::write_json_string(key, &mut out);
                out.push(b':');
                doc.write_json(node, &mut out);
            }
            out.push(b'}');
        }
        out.push(b']');
        out
    }

    /// The visible variables that the body could read, sorted by name.
    fn free_names(&self, steps: NodeId) -> Vec<&'a [u8]> {
        let doc = self.s.doc;
        let mut found: BTreeSet<&'a [u8]> = BTreeSet::new();
        let mut note = |name: &'a [u8]| {
            if self.vars.knows(name) {
                found.insert(name);
            }
        };
        note(b"result");
        let mut work = vec![steps];
        while let Some(node) = work.pop() {
            work.extend(doc.elements(node));
            let op = doc.get(node, "op").and_then(|n| doc.str(n));
            let expression = expr_text(doc, node).filter(|_| self.s.version_4);
            for (key, child) in doc.members(node) {
                let binds = matches!(
                    key,
                    b"op" | b"result" | b"as" | b"accumulator" | b"catchParam"
                ) || (key == b"key" && matches!(op, Some(b"varSet" | b"constSet")));
                match doc.str(child) {
                    Some(_) if binds => {}
                    Some(text)
                        if matches!(key, b"condition" | b"expr" | b"stopWhen")
                            || expression == Some(child) =>
                    {
                        words(text).for_each(&mut note);
                    }
                    Some(text) => roots(text).for_each(&mut note),
                    None => work.push(child),
                }
            }
            for child in doc.elements(node) {
                if let Some(text) = doc.str(child) {
                    roots(text).for_each(&mut note);
                }
            }
            if op == Some(b"return")
                && let Some(p) = doc
                    .get(node, "schema")
                    .and_then(|s| doc.get(s, "properties"))
            {
                doc.members(p).for_each(|(name, _)| note(name));
            }
        }
        found.into_iter().collect()
    }

    /// Runs the body in a new scope and stores its value.
    fn memo_body(&mut self, step: NodeId, value: Held) {
        let doc = self.s.doc;
        let steps = doc.get(step, "steps");
        let end = self.e.label();
        let opened = self.open_scope(&[steps], &[], false);
        self.warn_inherited(step);
        let target = ReturnTo::Region {
            end,
            value: Some(value),
        };
        let was = std::mem::replace(&mut self.returns, target);
        let jumps = std::mem::replace(&mut self.jumps, Jumps::Barred(step));
        self.body(step, steps);
        (self.returns, self.jumps) = (was, jumps);
        let mark = self.mark();
        let r = self.name_or_undefined(b"result");
        self.store(value, r);
        self.release(mark);
        self.e.bind(end);
        self.close_scope(opened);
    }

    pub(super) fn form_memoize(&mut self, step: NodeId) -> Option<Reg> {
        let start = self.mark();
        let bound = self.vars.mark();
        let value = self.place_for();
        let key = self.memo_key(step, false);
        let (hit, end) = (self.e.label(), self.e.label());
        let mark = self.mark();
        let k = self.take(key);
        let dst = self.temp();
        self.e.jump(
            Op::MemoGet {
                dst,
                key: k,
                to: Target(0),
            },
            hit,
        );
        self.release(mark);
        self.memo_body(step, value);
        self.vars.undo(bound);
        self.e.at = Some((step, None));
        let mark = self.mark();
        let (k, v) = (self.take(key), self.take(value));
        self.e.emit(Op::MemoPut { key: k, src: v });
        self.release(mark);
        self.e.jump(Op::Jmp { to: Target(0) }, end);
        self.e.bind(hit);
        self.store(value, dst);
        self.e.bind(end);
        self.finish_memo(step, start, value)
    }

    fn finish_memo(&mut self, step: NodeId, start: super::Mark, value: Held) -> Option<Reg> {
        let r = self.take(value);
        self.release(start);
        let dst = self.temp();
        self.mov(dst, r);
        self.bind_result(step, dst, true);
        Some(dst)
    }

    pub(super) fn form_cache(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let start = self.mark();
        let bound = self.vars.mark();
        let value = self.place_for();
        let key = self.memo_key(step, true);
        let (miss, end) = (self.e.label(), self.e.label());
        let mark = self.mark();
        let base = self.temps(2);
        let k = self.take(key);
        self.mov(base, k);
        self.internal_call(base, base, 1, "cache:get");
        let (hit, val) = (self.s.pool.key(b"hit"), self.s.pool.key(b"val"));
        self.e.emit(Op::Member {
            dst: base + 1,
            obj: base,
            key: hit,
        });
        self.e.jump(
            Op::JFalse {
                src: base + 1,
                to: Target(0),
            },
            miss,
        );
        self.e.emit(Op::Member {
            dst: base + 1,
            obj: base,
            key: val,
        });
        self.store(value, base + 1);
        self.release(mark);
        self.e.jump(Op::Jmp { to: Target(0) }, end);
        self.e.bind(miss);
        self.memo_body(step, value);
        self.vars.undo(bound);
        self.e.at = Some((step, None));
        self.e.charge(ChargeKind::CacheStore);
        let mark = self.mark();
        let base = self.temps(3);
        let k = self.take(key);
        self.mov(base, k);
        let v = self.take(value);
        self.mov(base + 1, v);
        match doc.get(step, "ttlMs") {
            Some(ttl) => self.value_to(ttl, base + 2),
            None => self.load_const(base + 2, Const::Undefined),
        }
        self.internal_call(base, base, 3, "cache:put");
        self.release(mark);
        self.e.bind(end);
        self.finish_memo(step, start, value)
    }

    /// Calls an internal atom, which no program can name, on behalf of the open step.
    pub(super) fn internal_call(&mut self, dst: Reg, base: Reg, n: u8, op: &str) {
        let op = self.s.op(op);
        self.s.sites.push(Site {
            op,
            step: self.e.step,
            inputs: n,
        });
        let site = self.s.sites.len() as u32 - 1;
        self.e.emit(Op::CallAtom {
            dst,
            base,
            n: Count(n),
            site: SiteIdx(site),
        });
    }
}

/// The text itself and the part before its first dot.
fn roots(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let dot = text.iter().position(|b| *b == b'.');
    std::iter::once(text).chain(dot.map(|at| &text[..at]))
}

/// The identifiers in an expression text.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || *b >= 0x80;
    text.split(move |b| !part(b)).filter(|w| !w.is_empty())
}
