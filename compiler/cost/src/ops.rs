//! What instructions charge and give.

use crate::build::{Builder, State};
use crate::graph::{Deep, Key, Kind, NodeId, Num, Place, Root, Site, What, Why};
use a99_core::program::{ArgFallback, ConstIdx, LitOp, Op, Reg};

impl Builder<'_> {
    /// Builds an instruction.
    pub(crate) fn op(&mut self, op: Op, state: &mut State, registers: usize) -> Result<(), Why> {
        let program = self.g.program;
        let range = |state: &State, base: Reg, n: usize| state[base.at()..base.at() + n].to_vec();
        match op {
            Op::Nop {}
            | Op::Fuel { .. }
            | Op::Jmp { .. }
            | Op::JTrue { .. }
            | Op::JFalse { .. } => {}
            Op::JNullish { .. }
            | Op::JPresent { .. }
            | Op::CheckMethod { .. }
            | Op::CheckReturn { .. } => {}
            Op::Throw { .. } | Op::ThrowUnbound { .. } | Op::CheckConst { .. } => {}
            Op::CheckFree { .. } | Op::BadMethod { .. } => {}
            Op::Mov { dst, src } => state[dst.at()] = state[src.at()],
            Op::MovBound { dst, src } => {
                state[dst.at()] = self.node(Kind::Or(state[src.at()], state[dst.at()], false));
            }
            Op::MovDefined { dst, src } => {
                state[dst.at()] = self.node(Kind::Or(state[src.at()], state[dst.at()], true));
            }
            Op::LoadK { dst, k } => state[dst.at()] = self.constant(k),
            Op::LoadLit { dst, lit } => {
                let mut stack: Vec<NodeId> = Vec::new();
                for step in &program.literals[lit.at()] {
                    let node = match step {
                        LitOp::Const(k) => self.constant(ConstIdx(*k)),
                        LitOp::Array(n) => {
                            let items = stack.split_off(stack.len().saturating_sub(*n as usize));
                            self.list_of(&items)
                        }
                        LitOp::Object(shape) => {
                            let keys = &program.shapes[*shape as usize];
                            let vals = stack.split_off(stack.len().saturating_sub(keys.len()));
                            self.object_of(keys, &vals)
                        }
                    };
                    stack.push(node);
                }
                state[dst.at()] = stack.pop().unwrap_or(0);
            }
            Op::LoadArg { dst, arg } => {
                let key = &program.args[arg.at()];
                let names = match &key.path {
                    Some(path) => path
                        .iter()
                        .map(|r| Some(program.text(*r).to_vec()))
                        .collect(),
                    None => vec![Some(program.text(key.flat).to_vec())],
                };
                let mut places = vec![names];
                if key.path.is_some() {
                    places.push(vec![Some(program.text(key.flat).to_vec())]);
                }
                let mut all = Vec::new();
                for names in places {
                    let below = false;
                    let place = self.g.place(Place {
                        root: Root::Args,
                        names,
                        below,
                    });
                    all.push(self.node(Kind::Path(place)));
                }
                all.push(match key.fallback {
                    ArgFallback::Undefined => self.node(Kind::Undefined),
                    ArgFallback::Unbound => self.node(Kind::Unbound),
                    ArgFallback::Builtin(n) => self.node(Kind::Builtin(n)),
                    ArgFallback::Const(k) => self.constant(ConstIdx(k)),
                });
                state[dst.at()] = self.node(Kind::Phi(all, Vec::new()));
            }
            Op::Unbind { base, n } => {
                let unbound = self.node(Kind::Unbound);
                state[base.at()..base.at() + n.at()].fill(unbound);
            }
            Op::SlotLoad { dst, slot } => state[dst.at()] = state[registers + slot.at()],
            Op::SlotStore { src, slot } => state[registers + slot.at()] = state[src.at()],
            Op::Add { dst, l, r } => {
                let node = self.node(Kind::Add(state[l.at()], state[r.at()]));
                self.pay(1.0, What::Added(node));
                state[dst.at()] = node;
            }
            Op::Sub { dst, l, r }
            | Op::Mul { dst, l, r }
            | Op::Div { dst, l, r }
            | Op::Rem { dst, l, r }
            | Op::Pow { dst, l, r } => {
                let (l, r) = (state[l.at()], state[r.at()]);
                self.pay(1.0, What::ToNumber(l));
                self.pay(1.0, What::ToNumber(r));
                let num = match op {
                    Op::Sub { .. } => Num::Sub(l, r),
                    Op::Mul { .. } => Num::Mul(l, r),
                    Op::Div { .. } => Num::Div(l, r),
                    Op::Rem { .. } => Num::Floor(l),
                    _ => Num::Unknown,
                };
                state[dst.at()] = self.node(Kind::Num(num));
            }
            Op::Neg { dst, src } | Op::Plus { dst, src } => {
                let src = state[src.at()];
                self.pay(1.0, What::ToNumber(src));
                let kind = match (op, &self.g.nodes[src as usize].kind) {
                    (Op::Neg { .. }, Kind::Number(n)) => Kind::Number(-n),
                    (Op::Plus { .. }, _) => Kind::Num(Num::Plus(src)),
                    _ => Kind::Num(Num::Unknown),
                };
                state[dst.at()] = self.node(kind);
            }
            Op::Not { dst, .. } => state[dst.at()] = self.node(Kind::Scalar),
            Op::Typeof { dst, .. } => state[dst.at()] = self.node(Kind::Units(9)),
            Op::Eq { dst, l, r } | Op::Ne { dst, l, r } => {
                self.equal(state[l.at()], state[r.at()], true);
                state[dst.at()] = self.node(Kind::Scalar);
            }
            Op::SEq { dst, l, r } | Op::SNe { dst, l, r } => {
                self.equal(state[l.at()], state[r.at()], false);
                state[dst.at()] = self.node(Kind::Scalar);
            }
            Op::Lt { dst, l, r } | Op::Le { dst, l, r } => {
                let (l, r) = (state[l.at()], state[r.at()]);
                self.order(l, r);
                state[dst.at()] = self.node(Kind::Less(l, r, matches!(op, Op::Le { .. })));
            }
            Op::Gt { dst, l, r } | Op::Ge { dst, l, r } => {
                let (l, r) = (state[l.at()], state[r.at()]);
                self.order(l, r);
                state[dst.at()] = self.node(Kind::Less(r, l, matches!(op, Op::Ge { .. })));
            }
            Op::JLt { l, r, .. }
            | Op::JNLt { l, r, .. }
            | Op::JLe { l, r, .. }
            | Op::JNLe { l, r, .. } => {
                self.order(state[l.at()], state[r.at()]);
            }
            Op::JEq { l, r, .. } | Op::JNe { l, r, .. } => {
                self.equal(state[l.at()], state[r.at()], true)
            }
            Op::JSEq { l, r, .. } | Op::JSNe { l, r, .. } => {
                self.equal(state[l.at()], state[r.at()], false)
            }
            Op::Member { dst, obj, key } | Op::OwnMember { dst, obj, key } => {
                let key = self.key(key);
                state[dst.at()] = self.load(state[obj.at()], key);
            }
            Op::Index { dst, obj, idx } | Op::OwnIndex { dst, obj, idx } => {
                let idx = state[idx.at()];
                self.pay_name(idx);
                state[dst.at()] = self.load(state[obj.at()], Key::Any);
            }
            Op::Path { dst, root, path } | Op::OwnPath { dst, root, path } => {
                let root = state[root.at()];
                let mut at = root;
                for segment in &program.paths[path.at()] {
                    at = self.load(at, Key::Name(program.text(*segment).to_vec()));
                }
                state[dst.at()] = match op {
                    Op::Path { .. } => self.node(Kind::PathOr(root, at, state[dst.at()])),
                    _ => at,
                };
            }
            Op::PutMember { obj, key, src } => {
                let key = state[key.at()];
                self.pay(1.75 * 100.0, What::Conv(key));
                self.store(state[obj.at()], Some(key), state[src.at()]);
            }
            Op::NewArr { dst, .. } => state[dst.at()] = self.list_of(&[]),
            Op::ArrPush { arr, src } => self.store(state[arr.at()], None, state[src.at()]),
            Op::NewObj {
                dst,
                base,
                n,
                shape,
            } => {
                let vals = range(state, base, n.at());
                state[dst.at()] = self.object_of(&program.shapes[shape.at()], &vals);
            }
            Op::WideObj { dst, arr, shape } => {
                let each = self.load(state[arr.at()], Key::Any);
                let keys = &program.shapes[shape.at()];
                state[dst.at()] = self.object_of(keys, &vec![each; keys.len()]);
            }
            Op::CallMethod {
                dst,
                base,
                n,
                method,
            } => {
                let vals = range(state, base, n.at());
                let (recv, args) = vals.split_first().ok_or("a method without a receiver")?;
                state[dst.at()] = self.method(method.0 as u16, *recv, args);
            }
            Op::CallFn {
                dst,
                base,
                n,
                function,
            } => {
                let args = range(state, base, n.at());
                state[dst.at()] = self.function(function.0 as u16, &args);
            }
            Op::WideMethod { dst, .. } | Op::WideFn { dst, .. } => {
                state[dst.at()] = self.unknown("a call with more arguments than registers");
            }
            Op::CallAtom { dst, base, n, site } => {
                let args = range(state, base, n.at());
                state[dst.at()] = self.atom(site, &args);
            }
            Op::PrepareCall { dst, base, n, site } => {
                let args = range(state, base, n.at());
                let answer = self.atom(site, &args);
                let number = self.node(Kind::Num(Num::Unknown));
                let list = self.list_of(&[answer]);
                state[dst.at()] = self.node(Kind::Phi(vec![number, list], Vec::new()));
            }
            Op::CallAll { dst, arr, .. } => {
                // Each element is what `PrepareCall` put there, in an object.
                let one = self.load(state[arr.at()], Key::Any);
                let answer = self.load(one, Key::Any);
                let root = Root::Error(self.now.at);
                let place = self.g.place(Place {
                    root,
                    names: Vec::new(),
                    below: false,
                });
                let error = self.node(Kind::Path(place));
                let fields = vec![(b"value".to_vec(), answer), (b"error".to_vec(), error)];
                let answered = self.site(Site {
                    fields,
                    ..Site::default()
                });
                let len = vec![(1.0, What::Len(state[arr.at()]))];
                state[dst.at()] = self.site(Site {
                    list: true,
                    len,
                    elems: vec![answered],
                    ..Site::default()
                });
            }
            Op::IterInit { it, src, .. } => {
                state[it.at()] = state[src.at()];
                state[it.at() + 1] = self.node(Kind::Num(Num::Unknown));
            }
            Op::IterNext { dst, it, .. } => {
                state[dst.at()] = self.load(state[it.at()], Key::Any);
                state[it.at() + 1] = self.node(Kind::Num(Num::Unknown));
            }
            Op::Ret { .. } => {}
            Op::Catch { msg, op } => {
                let root = Root::Error(self.now.at);
                let place = self.g.place(Place {
                    root,
                    names: Vec::new(),
                    below: false,
                });
                state[msg.at()] = self.node(Kind::Path(place));
                state[op.at()] = self.node(Kind::Units(64));
            }
            Op::MemoKey { dst, base, n, .. } => {
                for node in range(state, base, n.at()) {
                    self.pay(3.0, What::Json(node));
                }
                self.pay(100_000.0, What::One);
                state[dst.at()] = self.node(Kind::Units(80));
            }
            Op::MemoGet { dst, key, .. } => {
                let kept = self.kept();
                let value = self.load(kept, Key::Any);
                self.pay(3.0, What::Json(state[key.at()]));
                self.copy(value);
                state[dst.at()] = value;
            }
            Op::MemoPut { key, src } => {
                let kept = self.kept();
                self.pay(3.0, What::Json(state[key.at()]));
                self.copy(state[src.at()]);
                self.store(kept, None, state[src.at()]);
            }
            Op::Call {
                dst,
                base,
                n,
                callee,
            } => {
                let args = range(state, base, n.at());
                let params = self.g.program.functions[callee.at()].params;
                let args = args.into_iter().take(usize::from(params)).collect();
                let (frame, result) = self.frame(callee.0, args)?;
                self.pay(1.0, What::Call(frame));
                state[dst.at()] = result;
            }
            Op::RunCode { dst, .. } => {
                state[dst.at()] = self.unknown("code that arrives at run time")
            }
            Op::AgentRun { dst, .. } => state[dst.at()] = self.unknown("another agent"),
            Op::Project { dst, src, schema } => {
                let src = state[src.at()];
                self.pay(100.0, What::Deep(Deep::Units, src));
                self.pay(400.0, What::Deep(Deep::Elements, src));
                self.pay(400.0, What::Deep(Deep::Members, src));
                self.checked(&program.schemas[schema.at()], src, &[], true);
                state[dst.at()] = src;
            }
        }
        Ok(())
    }

    /// What `memoize` keeps for the run, as a list.
    pub(crate) fn kept(&mut self) -> NodeId {
        if let Some(node) = self.kept {
            return node;
        }
        let inside = self.now.inside.take();
        let node = self.list_of(&[]);
        self.now.inside = inside;
        self.kept = Some(node);
        node
    }

    /// Pays for a copy within the run.
    pub(crate) fn copy(&mut self, of: NodeId) {
        use a99_core::costs::{ELEMENT, copied};
        let whole = copied(0) as f64 * ELEMENT as f64;
        let each = copied(1) as f64 * ELEMENT as f64 - whole;
        for (price, deep) in [
            (whole, Deep::Objects),
            (each, Deep::Elements),
            (each, Deep::Members),
        ] {
            self.pay(price, What::Deep(deep, of));
        }
    }

    pub(crate) fn list_of(&mut self, items: &[NodeId]) -> NodeId {
        let fields = items.iter().map(|node| (b"0".to_vec(), *node)).collect();
        let len = vec![(items.len() as f64, What::One)];
        self.site(Site {
            list: true,
            len,
            fields,
            ..Site::default()
        })
    }

    pub(crate) fn object_of(&mut self, keys: &[u32], vals: &[NodeId]) -> NodeId {
        let name = |k: &u32| {
            self.g
                .program
                .text(self.g.program.keys[*k as usize])
                .to_vec()
        };
        let fields = keys.iter().map(name).zip(vals.iter().copied()).collect();
        self.site(Site {
            fields,
            ..Site::default()
        })
    }

    /// Pays for a name that is looked up.
    pub(crate) fn pay_name(&mut self, name: NodeId) {
        match self.g.nodes[name as usize].kind {
            Kind::Units(n) | Kind::Literal(_, n) if n <= 64 => {}
            _ => self.pay(75.0, What::Units(name)),
        }
    }

    pub(crate) fn equal(&mut self, l: NodeId, r: NodeId, loose: bool) {
        let short = |node: NodeId| {
            matches!(
                self.g.nodes[node as usize].kind,
                Kind::Units(..=64) | Kind::Literal(_, ..=64)
            )
        };
        if !short(l) && !short(r) {
            // Three bytes for a unit, of which 16 cost as much as one.
            self.pay(100.0 * 3.0 / 16.0, What::Units(l));
        }
        if loose {
            self.pay(1.0, What::ToNumber(l));
            self.pay(1.0, What::ToNumber(r));
        }
    }

    pub(crate) fn order(&mut self, l: NodeId, r: NodeId) {
        self.pay(1.0, What::ToNumber(l));
        self.pay(1.0, What::ToNumber(r));
    }
}
