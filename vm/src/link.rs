//! Linking: an artifact meets the atoms of a host.
//!
//! What can be prepared once for all runs is prepared here: constants as
//! machine values, interned keys and shapes, the bodies of atoms, the prices
//! of blocks in both cost models.

use crate::atom::{AtomBody, AtomDef, AtomSet};
use crate::heap::{KeyId, ShapeId, StaticShapes, Str, Val};
use a99_core::costs::CostModel;
use a99_core::json::{Document, Kind, NodeId};
use a99_core::program::{Const, Function, Program, TextRange};
use a99_core::sig::BaseCost;
use a99_core::text::wtf8_to_string_lossy;
use a99_core::verify::Artifact;
use a99_ecma::wtf8;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An artifact that the host's atoms cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The host has no body for this atom.
    MissingAtom(String),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::MissingAtom(name) => {
                write!(
                    f,
                    "the program needs the atom '{name}', which this host does not grant"
                )
            }
        }
    }
}

impl std::error::Error for LinkError {}

/// A literal of the program as steps that build it, in the order of a stack
/// machine: linked once, copied fresh for each evaluation (D33).
pub(crate) type LiteralCode = Box<[LiteralOp]>;

/// One step of building a literal.
#[derive(Copy, Clone, Debug)]
pub(crate) enum LiteralOp {
    /// Pushes a scalar.
    Push(Val),
    /// Pops this many values into an array.
    Array(u32),
    /// Pops a value for each key into an object.
    Object(ShapeId, u32),
}

/// Literals up to this many values are prepared when linking; larger ones are
/// rare and read from the source.
const PREPARED_VALUES: usize = 256;

/// Prices of the blocks of every function.
pub(crate) type Prices = Vec<Box<[i64]>>;

/// A linked program, ready to run any number of times.
#[derive(Debug)]
pub struct Executable {
    artifact: Artifact,
    pub(crate) consts: Box<[Val]>,
    pub(crate) statics: Arc<[u8]>,
    pub(crate) shapes: Arc<StaticShapes>,
    /// The interned form of each key of the program.
    pub(crate) keys: Box<[KeyId]>,
    /// The literals that are small enough to be prepared.
    pub(crate) literals: Box<[Option<LiteralCode>]>,
    /// The body behind each op that steps name.
    pub(crate) atoms: Box<[Option<Arc<AtomDef>>]>,
    /// Default price of each op; 0 where it is computed at the call.
    pub(crate) op_prices: Box<[i64]>,
    metered: Arc<Prices>,
    flat: Arc<Prices>,
    source_hash: OnceLock<String>,
}

impl Executable {
    /// Links an artifact with the atoms of a host.
    ///
    /// # Errors
    /// An atom that the program calls and the host does not have.
    pub fn link(artifact: &Artifact, atoms: &AtomSet) -> Result<Executable, LinkError> {
        let program = artifact.program();
        let mut pool = program.text.clone();
        let mut shapes = StaticShapes::default();
        let keys: Vec<_> = program
            .keys
            .iter()
            .map(|r| shapes.key(program.text(*r)))
            .collect();
        for shape in &program.shapes {
            let list: Vec<_> = shape.iter().map(|k| keys[*k as usize]).collect();
            shapes.push_shape(&list);
        }
        let literals = program
            .literals
            .iter()
            .map(|node| literal(&program.source, *node, &mut pool, &mut shapes))
            .collect();
        let statics: Arc<[u8]> = pool.into();
        let text = |r: TextRange| {
            let bytes = &statics[r.start as usize..r.end as usize];
            Str::in_statics(r.start, bytes.len() as u32, wtf8::utf16_len(bytes) as u32)
        };
        let consts = program
            .consts
            .iter()
            .map(|k| match k {
                Const::Undefined => Val::Undefined,
                Const::Null => Val::Null,
                Const::Bool(b) => Val::Bool(*b),
                Const::Number(n) => Val::Num(*n),
                Const::Text(r) => Val::Str(text(*r)),
            })
            .collect();
        let mut bodies = Vec::with_capacity(program.ops.len());
        for op in &program.ops {
            let name = wtf8_to_string_lossy(program.text(op.name));
            let atom = atoms.get(&name).cloned();
            if op.needs_body
                && !atom
                    .as_ref()
                    .is_some_and(|a| !matches!(a.body, AtomBody::Form))
            {
                return Err(LinkError::MissingAtom(name.into_owned()));
            }
            bodies.push(atom);
        }
        let op_prices: Box<[i64]> = program
            .ops
            .iter()
            .map(|op| match op.cost {
                BaseCost::Fixed(n) => n,
                BaseCost::Dynamic(_) => 0,
            })
            .collect();
        let prices = |model| Arc::new(block_prices(program, model, &op_prices));
        Ok(Executable {
            consts,
            shapes: Arc::new(shapes),
            keys: keys.into(),
            literals,
            atoms: bodies.into(),
            metered: prices(CostModel::Metered),
            flat: prices(CostModel::Flat),
            op_prices,
            statics,
            source_hash: OnceLock::new(),
            artifact: artifact.clone(),
        })
    }

    /// The artifact.
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        self.artifact.program()
    }

    /// SHA-256 of the program's text, which tells programs apart in a shared
    /// store (D25); computed at its first use.
    pub(crate) fn source_hash(&self) -> &str {
        self.source_hash.get_or_init(|| {
            let source = &self.program().source;
            let mut text = Vec::new();
            source.write_json(source.root(), &mut text);
            crate::digest::sha256_hex(&text)
        })
    }

    /// The prices of blocks at default costs.
    pub(crate) fn default_prices(&self, model: CostModel) -> Arc<Prices> {
        match model {
            CostModel::Metered => self.metered.clone(),
            CostModel::Flat => self.flat.clone(),
        }
    }
}

/// Prepares a literal; its text goes to the pool, its shapes to the statics.
fn literal(
    doc: &Document,
    node: NodeId,
    pool: &mut Vec<u8>,
    shapes: &mut StaticShapes,
) -> Option<LiteralCode> {
    enum Work {
        Visit(NodeId),
        Close(NodeId),
    }
    let mut ops = Vec::new();
    let mut work = vec![Work::Visit(node)];
    while let Some(item) = work.pop() {
        if ops.len() > PREPARED_VALUES {
            return None;
        }
        match item {
            Work::Visit(node) => match doc.kind(node) {
                Kind::Null => ops.push(LiteralOp::Push(Val::Null)),
                Kind::Bool(b) => ops.push(LiteralOp::Push(Val::Bool(b))),
                Kind::Number(n) => ops.push(LiteralOp::Push(Val::Num(n))),
                Kind::String(text) => {
                    let start = pool.len() as u32;
                    pool.extend_from_slice(text);
                    let units = wtf8::utf16_len(text) as u32;
                    let s = Str::in_statics(start, text.len() as u32, units);
                    ops.push(LiteralOp::Push(Val::Str(s)));
                }
                Kind::Array | Kind::Object => {
                    if doc.len(node) > PREPARED_VALUES {
                        return None;
                    }
                    work.push(Work::Close(node));
                    let mut children: Vec<NodeId> = doc.elements(node).collect();
                    children.extend(doc.members(node).map(|m| m.1));
                    work.extend(children.into_iter().rev().map(Work::Visit));
                }
            },
            Work::Close(node) if doc.kind(node) == Kind::Array => {
                ops.push(LiteralOp::Array(doc.len(node) as u32));
            }
            Work::Close(node) => {
                let keys: Vec<_> = doc.members(node).map(|m| shapes.key(m.0)).collect();
                ops.push(LiteralOp::Object(
                    shapes.push_shape(&keys),
                    keys.len() as u32,
                ));
            }
        }
    }
    Some(ops.into())
}

/// The entries of a block's charges.
pub(crate) fn block_charges(f: &Function, block: usize) -> std::ops::Range<usize> {
    let from = f.blocks[block].charges as usize;
    let to = f
        .blocks
        .get(block + 1)
        .map_or(f.charges.len(), |b| b.charges as usize);
    from..to
}

/// The price of every block under these prices of ops.
pub(crate) fn block_prices(program: &Program, model: CostModel, ops: &[i64]) -> Prices {
    program
        .functions
        .iter()
        .map(|f| {
            (0..f.blocks.len())
                .map(|b| {
                    f.charges[block_charges(f, b)].iter().fold(0i64, |sum, c| {
                        let price =
                            program.price(c, model, |step| ops[f.steps[step as usize].op as usize]);
                        sum.saturating_add(price)
                    })
                })
                .collect()
        })
        .collect()
}
