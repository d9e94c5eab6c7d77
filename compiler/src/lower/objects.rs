//! Object nodes to code, with static or computed keys (D67).

use super::{Held, Lower, MAX_CALL_ARGS, Mark};
use crate::ir::{Ir, ObjKey};
use a99_core::builtins;
use a99_core::diag::codes;
use a99_core::program::{Const, Count, KeyIdx, Op, Reg};
use hashbrown::HashMap;

/// Where the members of an object wait until it is built.
#[derive(Copy, Clone)]
pub(super) enum Fields {
    /// In consecutive registers, from this one on.
    Registers(Reg),
    /// In an array.
    Array(Held),
}

impl<'a> Lower<'_, 'a> {
    /// Reserves room for `count` members, which are added in order.
    pub(super) fn fields(&mut self, count: usize) -> Fields {
        match count <= MAX_CALL_ARGS && !self.is_crowded() {
            true => Fields::Registers(self.peek()),
            false => Fields::Array(self.collector(count)),
        }
    }

    /// Adds a member and releases the registers taken since `mark`.
    pub(super) fn field(&mut self, fields: Fields, src: Reg, mark: Mark) {
        match fields {
            Fields::Registers(_) => {
                self.release(mark);
                let to = self.temp();
                self.mov(to, src);
            }
            Fields::Array(held) => {
                self.collect(held, src);
                self.release(mark);
            }
        }
    }

    /// Builds the object from these keys and the added members.
    pub(super) fn new_object(&mut self, dst: Reg, keys: &[KeyIdx], fields: Fields) {
        let shape = self.s.pool.shape(keys);
        match fields {
            Fields::Registers(base) => self.e.emit(Op::NewObj {
                dst,
                base,
                n: Count(keys.len() as u8),
                shape,
            }),
            Fields::Array(held) => {
                let arr = self.take(held);
                self.e.emit(Op::WideObj { dst, arr, shape });
            }
        }
    }

    /// Builds an object of these members, which are already charged.
    pub(super) fn object_of(&mut self, dst: Reg, entries: &[(ObjKey<'a>, Ir<'a>)]) {
        let named: Option<Vec<_>> = entries
            .iter()
            .map(|(key, value)| match key {
                ObjKey::Name(name) => Some((*name, *value)),
                ObjKey::Computed(_) => None,
            })
            .collect();
        match named {
            Some(named) => self.object(dst, &named),
            None => self.keyed_object(dst, entries),
        }
    }

    fn object(&mut self, dst: Reg, entries: &[(&'a [u8], Ir<'a>)]) {
        if let Some((name, _)) = entries.iter().find(|(k, _)| builtins::is_forbidden(k)) {
            // A forbidden key fails when it is set: after its value.
            for (key, value) in entries {
                let mark = self.mark();
                self.expr(value);
                self.release(mark);
                if key == name {
                    break;
                }
            }
            let text = builtins::forbidden_text(&Self::shown(name));
            if let Some((_, ir)) = entries.iter().find(|(k, _)| k == name) {
                self.warn_at(ir, codes::FORBIDDEN_MEMBER, &text);
            }
            self.throw_forbidden(name);
            self.load_const(dst, Const::Undefined);
            return;
        }
        // A repeated key keeps its first place and its last value.
        let mut keys: Vec<KeyIdx> = Vec::with_capacity(entries.len());
        let mut places = Vec::with_capacity(entries.len());
        let mut at_key = HashMap::new();
        for (key, _) in entries {
            let key = self.s.pool.key(key);
            let at = *at_key.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() - 1
            });
            places.push(at);
        }
        let shape = self.s.pool.shape(&keys);
        if keys.len() <= MAX_CALL_ARGS && !self.is_crowded() {
            let base = self.temps(keys.len());
            for ((_, value), at) in entries.iter().zip(places) {
                self.expr_to(value, base + at as u8);
            }
            self.e.emit(Op::NewObj {
                dst,
                base,
                n: Count(keys.len() as u8),
                shape,
            });
            return;
        }
        let mut distinct: Vec<Ir<'a>> = Vec::with_capacity(keys.len());
        for ((_, value), at) in entries.iter().zip(places) {
            if at < distinct.len() {
                distinct[at] = *value;
            } else {
                distinct.push(*value);
            }
        }
        let arr = self.array(&distinct);
        self.e.emit(Op::WideObj { dst, arr, shape });
    }

    /// Builds an object with at least one computed key (D67).
    fn keyed_object(&mut self, dst: Reg, entries: &[(ObjKey<'a>, Ir<'a>)]) {
        let mark = self.mark();
        let obj = self.temp();
        let shape = self.s.pool.shape(&[]);
        self.e.emit(Op::NewObj {
            dst: obj,
            base: obj,
            n: Count(0),
            shape,
        });
        let object = self.hold(obj, mark);
        for (key, value) in entries {
            let mark = self.mark();
            let refused = match key {
                ObjKey::Name(name) if builtins::is_forbidden(name) => Some(*name),
                _ => None,
            };
            let key = match key {
                ObjKey::Computed(key) => self.held(key),
                ObjKey::Name(name) => {
                    let before = self.mark();
                    let text = Const::Text(self.s.pool.range(name));
                    let text = self.const_reg(text);
                    self.hold(text, before)
                }
            };
            let src = self.expr(value);
            self.place(value);
            if let Some(name) = refused {
                self.warn_at(
                    value,
                    codes::FORBIDDEN_MEMBER,
                    &builtins::forbidden_text(&Self::shown(name)),
                );
                self.throw_forbidden(name);
                self.release(mark);
                break;
            }
            let (obj, key) = (self.take(object), self.take(key));
            self.e.emit(Op::PutMember { obj, key, src });
            self.release(mark);
        }
        let obj = self.take(object);
        self.mov(dst, obj);
        self.release(mark);
    }
}
