//! Linking: an artifact meets the atoms of a host.
//!
//! What can be prepared once for all runs is prepared here: constants as
//! machine values, interned keys and shapes, the bodies of atoms, the prices
//! of blocks in both cost models.

use crate::atom::{AtomBody, AtomDef, AtomSet};
use crate::heap::{KeyId, ShapeId, StaticShapes, Str, Val};
use crate::helpers::Helpers;
use a99_core::costs::CostModel;
use a99_core::diag::codes;
use a99_core::program::{Const, LitOp, NO_SIGNATURE, OpRef, Program, TextRange};
use a99_core::schema::Schema;
use a99_core::sig::{BaseCost, Params, Signatures};
use a99_core::text::{hex, wtf8_to_string_lossy};
use a99_core::verify::Artifact;
use a99_ecma::wtf8;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An artifact that the host's atoms cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The host does not grant this atom, or has no body for it.
    MissingAtom(String),
    /// The host's atom of this name takes or gives other things than the one
    /// that the program was compiled against (security B05).
    DifferentAtom(String),
    /// A call site does not pass what the atom takes.
    Inputs(String),
    /// At the host's prices some of the program would run for nothing.
    Free(String),
}

impl LinkError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LinkError::MissingAtom(_) => codes::MISSING_ATOM,
            LinkError::DifferentAtom(_) => codes::DIFFERENT_ATOM,
            LinkError::Inputs(_) => codes::WRONG_INPUTS,
            LinkError::Free(_) => codes::FREE_CODE,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        a99_core::codes::find(self.code()).map_or("", |row| row.help)
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::MissingAtom(name) => write!(
                f,
                "the program needs the atom '{name}', which this host does not grant"
            ),
            LinkError::DifferentAtom(name) => write!(
                f,
                "the program was compiled against another atom '{name}' than this host has"
            ),
            LinkError::Inputs(name) => write!(
                f,
                "the program passes the atom '{name}' another number of inputs than it takes"
            ),
            LinkError::Free(why) => write!(f, "at this host's prices, {why}"),
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

/// About what an interned key or a shape takes in its tables.
const KEY_BYTES: usize = 64;

/// Prices of the blocks of every function.
pub(crate) type Prices = Vec<Box<[i64]>>;

/// The prices of a program in one cost model.
#[derive(Debug)]
struct ModelPrices {
    /// Default price of each op; 0 where it is computed at the call.
    ops: Box<[i64]>,
    blocks: Arc<Prices>,
}

/// A linked program, ready to run any number of times.
#[derive(Debug)]
pub struct Executable {
    artifact: Artifact,
    pub(crate) consts: Box<[Val]>,
    pub(crate) statics: Arc<[u8]>,
    pub(crate) shapes: Arc<StaticShapes>,
    /// The interned form of each key of the program.
    pub(crate) keys: Box<[KeyId]>,
    pub(crate) literals: Box<[LiteralCode]>,
    /// The body behind each op that steps name.
    pub(crate) atoms: Box<[Option<Arc<AtomDef>>]>,
    metered: ModelPrices,
    flat: ModelPrices,
    /// What values that are returned are projected to.
    pub(crate) schemas: Box<[Schema]>,
    /// What arguments must match.
    pub(crate) input_schema: Option<Schema>,
    program_hash: OnceLock<String>,
    helpers: OnceLock<Helpers>,
}

impl Executable {
    /// Links an artifact with the atoms of a host.
    ///
    /// # Errors
    /// An atom that the program calls and the host does not have.
    pub fn link(artifact: &Artifact, atoms: &AtomSet) -> Result<Executable, LinkError> {
        let program = artifact.program();
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
        let statics: Arc<[u8]> = program.text.as_slice().into();
        let text = |r: TextRange| {
            let bytes = &statics[r.start as usize..r.end as usize];
            Str::in_statics(r.start, bytes.len() as u32, wtf8::utf16_len(bytes) as u32)
        };
        let consts: Box<[Val]> = program
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
        let literals = program
            .literals
            .iter()
            .map(|steps| literal(program, steps, &consts))
            .collect();
        let mut bodies = Vec::with_capacity(program.ops.len());
        for op in &program.ops {
            bodies.push(atom(program, op, atoms)?);
        }
        check_sites(program, &bodies)?;
        let costs: Vec<BaseCost> = program
            .ops
            .iter()
            .zip(&bodies)
            .map(|(op, atom)| atom.as_ref().map_or(op.cost, |a| a.sig.cost))
            .collect();
        artifact
            .check_prices(&costs)
            .map_err(|error| LinkError::Free(error.message))?;
        let prices = |model| -> ModelPrices {
            let ops: Box<[i64]> = costs.iter().map(|cost| cost.known_in(model)).collect();
            ModelPrices {
                blocks: Arc::new(block_prices(program, model, &ops)),
                ops,
            }
        };
        Ok(Executable {
            consts,
            shapes: Arc::new(shapes),
            keys: keys.into(),
            literals,
            atoms: bodies.into(),
            metered: prices(CostModel::Metered),
            flat: prices(CostModel::Flat),
            statics,
            schemas: program.schemas.iter().map(Schema::parse).collect(),
            input_schema: program.input_schema.as_ref().map(Schema::parse),
            program_hash: OnceLock::new(),
            helpers: OnceLock::new(),
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

    /// What tells programs apart in a shared store (D25): the hash of all that
    /// its results depend on. Nobody can choose it, and formatting does not
    /// change it.
    pub(crate) fn program_hash(&self) -> &str {
        self.program_hash
            .get_or_init(|| hex(&self.program().identity()))
    }

    /// The helpers, for programs that run inline.
    pub(crate) fn helpers(&self) -> &Helpers {
        self.helpers.get_or_init(|| Helpers::new(self.program()))
    }

    /// Bytes that the program takes, linked and with its source.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let prices = |prices: &ModelPrices| -> usize {
            let blocks = prices.blocks.iter().map(|blocks| size_of_val(&**blocks));
            size_of_val(&*prices.ops) + blocks.sum::<usize>()
        };
        let literals: usize = self.literals.iter().map(|code| size_of_val(&**code)).sum();
        self.program().bytes()
            + size_of_val(&*self.consts)
            + self.statics.len()
            + literals
            + size_of_val(&*self.atoms)
            + prices(&self.metered)
            + prices(&self.flat)
            + self.keys.len() * KEY_BYTES
            + self.program().shapes.len() * KEY_BYTES
    }

    /// The prices of blocks at default costs.
    pub(crate) fn default_prices(&self, model: CostModel) -> Arc<Prices> {
        self.model(model).blocks.clone()
    }

    /// The default price of each op; 0 where it is computed at the call.
    pub(crate) fn op_prices(&self, model: CostModel) -> &[i64] {
        &self.model(model).ops
    }

    fn model(&self, model: CostModel) -> &ModelPrices {
        match model {
            CostModel::Metered => &self.metered,
            CostModel::Flat => &self.flat,
        }
    }
}

/// The host's atom behind an op of the program. What it costs is the host's
/// word, not the program's.
fn atom(program: &Program, op: &OpRef, atoms: &AtomSet) -> Result<Option<Arc<AtomDef>>, LinkError> {
    let name = wtf8_to_string_lossy(program.text(op.name));
    let found = atoms.get(&name);
    if op.signature == NO_SIGNATURE && !op.needs_body {
        // The compiler knew no such atom: its step raises an error.
        return Ok(found.cloned());
    }
    let Some(atom) = found else {
        return Err(LinkError::MissingAtom(name.into_owned()));
    };
    if atoms.fingerprint(&name) != Some(op.signature) {
        return Err(LinkError::DifferentAtom(name.into_owned()));
    }
    if op.needs_body && matches!(atom.body, AtomBody::Form) {
        return Err(LinkError::MissingAtom(name.into_owned()));
    }
    Ok(Some(atom.clone()))
}

/// Every call passes what its atom takes: bodies rely on it.
fn check_sites(program: &Program, atoms: &[Option<Arc<AtomDef>>]) -> Result<(), LinkError> {
    for site in &program.sites {
        let Some(atom) = &atoms[site.op as usize] else {
            continue;
        };
        let takes = match &atom.sig.params {
            Params::Named(params) => params.len(),
            Params::Open | Params::Raw => 1,
        };
        if usize::from(site.inputs) != takes {
            return Err(LinkError::Inputs(atom.sig.name.clone().into_owned()));
        }
    }
    Ok(())
}

/// A literal with its constants as machine values.
fn literal(program: &Program, steps: &[LitOp], consts: &[Val]) -> LiteralCode {
    let step = |step: &LitOp| match *step {
        LitOp::Const(k) => LiteralOp::Push(consts[k as usize]),
        LitOp::Array(n) => LiteralOp::Array(n),
        LitOp::Object(shape) => {
            let keys = program.shapes[shape as usize].len();
            LiteralOp::Object(ShapeId(shape), keys as u32)
        }
    };
    steps.iter().map(step).collect()
}

/// The price of every block under these prices of ops.
pub(crate) fn block_prices(program: &Program, model: CostModel, ops: &[i64]) -> Prices {
    program
        .functions
        .iter()
        .map(|f| {
            (0..f.blocks.len())
                .map(|b| {
                    f.charges_of(b).iter().fold(0i64, |sum, c| {
                        let price =
                            program.price(c, model, |step| ops[f.steps[step as usize].op as usize]);
                        sum.saturating_add(price)
                    })
                })
                .collect()
        })
        .collect()
}
