//! Linking: binds an artifact to the atoms of a host.
//!
//! Linking prepares everything that all runs share: constants as machine values, interned
//! keys and shapes, the bodies of atoms, the prices of blocks in both cost models.

pub(crate) mod fast;

use crate::atom::{AtomBody, AtomDef, AtomSet, NativeFn};
use crate::heap::template::Templates;
use crate::heap::{KeyId, ShapeId, StaticShapes, Str, Val};
use crate::helpers::Helpers;
#[cfg(feature = "jit")]
use crate::tier::{CompiledTier, Tier};
use a99_core::costs::CostModel;
use a99_core::diag::codes;
use a99_core::program::{Const, Function, LitOp, NO_SIGNATURE, OpRef, Program, Site, TextRange};
use a99_core::schema::{Gauge, Schema};
use a99_core::sig::{BaseCost, Params};
use a99_core::text::{hex, wtf8_to_string_lossy};
use a99_core::verify::Artifact;
use a99_ecma::wtf8;
use fast::{FastCode, FastOp};
use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Why the host's atoms cannot run an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The host does not grant this atom, or has no body for it.
    MissingAtom(String),
    /// The host's atom has another signature than the one that the program was compiled
    /// against (security B05).
    DifferentAtom(String),
    /// The arguments at a call site do not match the atom.
    Inputs(String),
    /// At the host's prices a part of the program would be free.
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

    /// A suggestion for a fix.
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

/// A literal of the program as stack code: linked once, copied afresh for each evaluation
/// (D33).
pub(crate) type LiteralCode = Box<[LiteralOp]>;

/// One instruction of literal code.
#[derive(Copy, Clone, Debug)]
pub(crate) enum LiteralOp {
    /// Pushes a scalar.
    Push(Val),
    /// Pops this many values into an array.
    Array(u32),
    /// Pops a value for each key into an object.
    Object(ShapeId, u32),
}

/// UTF-16 units that take as long to read as one record of a program.
const UNITS_OF_RECORD: usize = 32;

/// Approximate time per record of a program, in nanoseconds.
const NANOS_OF_RECORD: usize = 64;

/// Approximate size of an interned key or a shape in its tables.
const KEY_BYTES: usize = 64;

/// The price of entering a block.
#[derive(Copy, Clone, Debug)]
pub(crate) struct BlockPrice {
    /// The charges of the block, in micro-units.
    pub(crate) fuel: i64,
    /// Units of work of the block. Straight-line code so reaches yield points as often as
    /// loops do.
    pub(crate) work: i64,
}

impl BlockPrice {
    /// Work of entering a block, with its first instructions.
    const LEAST_WORK: i64 = 16;
    /// Work of an instruction: most take a few nanoseconds, a few take 70.
    const WORK: i64 = 4;

    /// The price of a block with this number of instructions.
    fn new(fuel: i64, instructions: u32) -> BlockPrice {
        let work = BlockPrice::WORK * i64::from(instructions);
        BlockPrice {
            fuel,
            work: work.max(BlockPrice::LEAST_WORK),
        }
    }
}

/// Block prices of every function.
pub(crate) type Prices = Vec<Box<[BlockPrice]>>;

/// The prices of a program in one cost model.
#[derive(Debug)]
struct ModelPrices {
    /// Default price of each op; 0 if it is computed at the call.
    ops: Box<[i64]>,
    blocks: Prices,
}

/// A linked program, ready to run any number of times.
///
/// [`Executable::unshared`] makes copies that share most parts.
#[derive(Clone, Debug)]
pub struct Executable {
    artifact: Artifact,
    pub(crate) consts: Arc<[Val]>,
    pub(crate) statics: Arc<[u8]>,
    pub(crate) shapes: Arc<StaticShapes>,
    pub(crate) keys: Arc<[KeyId]>,
    pub(crate) literals: Arc<[LiteralCode]>,
    /// The code of each function in the format of the fast loop.
    pub(crate) fast: Arc<[Box<[FastOp]>]>,
    /// The atom of each op that steps name.
    pub(crate) atoms: Arc<[Option<Arc<AtomDef>>]>,
    /// For each call site the native body, if a call needs nothing else.
    pub(crate) natives: Arc<[Option<NativeFn>]>,
    metered: Arc<ModelPrices>,
    flat: Arc<ModelPrices>,
    /// Schemas that returned values are projected to.
    pub(crate) schemas: Arc<[Schema]>,
    /// Schema of the arguments.
    pub(crate) input_schema: Option<Arc<Schema>>,
    #[cfg(feature = "jit")]
    pub(crate) tier: Arc<Tier>,
    program_hash: OnceLock<Arc<str>>,
    helpers: OnceLock<Arc<Helpers>>,
}

impl Executable {
    /// Links an artifact with the atoms of a host.
    ///
    /// # Errors
    /// The program calls an atom that the host lacks.
    pub fn link(artifact: &Artifact, atoms: &AtomSet) -> Result<Executable, LinkError> {
        // Never stopped.
        Self::link_watched(artifact, atoms, &|| false)
            .unwrap_or_else(|| Err(LinkError::Free("linking was stopped".to_owned())))
    }

    /// Links a program that a run waits for. `stop` is polled regularly; the result is `None`
    /// once it returns true.
    ///
    /// # Errors
    /// As [`Executable::link`].
    pub fn link_watched(
        artifact: &Artifact,
        atoms: &AtomSet,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<Result<Executable, LinkError>> {
        match Self::linked(artifact, atoms, &LinkPace::new(stop)) {
            Ok(exe) => Some(Ok(exe)),
            Err(LinkStopped::Refused(error)) => Some(Err(error)),
            Err(LinkStopped::Stopped) => None,
        }
    }

    fn linked(
        artifact: &Artifact,
        atoms: &AtomSet,
        pace: &LinkPace<'_>,
    ) -> Result<Executable, LinkStopped> {
        let program = artifact.program();
        let (keys, mut shapes) = interned(program, |records| pace.work(records))?;
        let statics: Arc<[u8]> = program.text.as_slice().into();
        let text = |r: TextRange| {
            let bytes = &statics[r.start as usize..r.end as usize];
            Str::in_statics(r.start, bytes.len() as u32, wtf8::utf16_len(bytes) as u32)
        };
        let mut consts = Vec::with_capacity(program.consts.len());
        for constant in &program.consts {
            pace.work(1)?;
            consts.push(match constant {
                Const::Undefined => Val::Undefined,
                Const::Null => Val::Null,
                Const::Bool(b) => Val::Bool(*b),
                Const::Number(n) => Val::Num(*n),
                Const::Text(r) => Val::Str(text(*r)),
            });
        }
        shapes.templates = Templates::of(&consts, &statics, &shapes, |work| pace.work(work))?;
        let mut literals = Vec::with_capacity(program.literals.len());
        for steps in &program.literals {
            pace.work(steps.len())?;
            literals.push(literal(program, steps, &consts));
        }
        let mut bodies = Vec::with_capacity(program.ops.len());
        for op in &program.ops {
            pace.work(1)?;
            bodies.push(atom(program, op, atoms)?);
        }
        check_sites(program, &bodies, pace)?;
        let costs: Vec<BaseCost> = program
            .ops
            .iter()
            .zip(&bodies)
            .map(|(op, atom)| atom.as_ref().map_or(op.cost, |a| a.sig.cost))
            .collect();
        artifact
            .check_prices_watched(&costs, pace.stop)
            .ok_or(LinkStopped::Stopped)?
            .map_err(|error| LinkError::Free(error.message))?;
        let metered = model_prices(program, CostModel::Metered, &costs, pace)?;
        let flat = model_prices(program, CostModel::Flat, &costs, pace)?;
        let mut fast = Vec::with_capacity(program.functions.len());
        let maker = FastCode::new(program, &consts, &keys, &shapes, || pace.work(1))?;
        for function in &program.functions {
            pace.work(function.code.len())?;
            fast.push(maker.of(function));
        }
        let mut schemas = Vec::with_capacity(program.schemas.len());
        for schema in &program.schemas {
            schemas.push(Schema::read(schema, &mut SchemaPace(pace))?);
        }
        let input_schema = match &program.input_schema {
            Some(schema) => Some(Arc::new(Schema::read(schema, &mut SchemaPace(pace))?)),
            None => None,
        };
        Ok(Executable {
            consts: consts.into(),
            shapes: Arc::new(shapes),
            keys: keys.into(),
            literals: literals.into(),
            fast: fast.into(),
            natives: natives(program, &bodies),
            atoms: bodies.into(),
            metered: Arc::new(metered),
            flat: Arc::new(flat),
            statics,
            schemas: schemas.into(),
            input_schema,
            #[cfg(feature = "jit")]
            tier: Arc::new(Tier::new(CompiledTier::Off, 0)),
            program_hash: OnceLock::new(),
            helpers: OnceLock::new(),
            artifact: artifact.clone(),
        })
    }

    /// Sets when loops are compiled to machine code.
    #[cfg(feature = "jit")]
    #[must_use]
    pub fn with_tier(mut self, when: CompiledTier) -> Executable {
        self.tier = Arc::new(Tier::new(when, self.program().functions.len()));
        self
    }

    /// Copies the program with separate reference counts for the parts that runs clone: the
    /// program itself, and the names of its keys, which results contain. Threads with a copy
    /// each write no shared memory when a run begins or ends. The other parts stay
    /// shared.
    #[must_use]
    pub fn unshared(&self) -> Executable {
        let Ok((_, shapes)) = interned(self.program(), |_| Ok::<_, Infallible>(()));
        Executable {
            shapes: Arc::new(shapes),
            ..self.clone()
        }
    }

    /// A function's code for the fast loop.
    #[inline(always)]
    pub(crate) fn fast_code(&self, function: usize) -> &[FastOp] {
        #[cfg(feature = "jit")]
        return self.hot_code(function);
        #[cfg(not(feature = "jit"))]
        return &self.fast[function];
    }

    /// The atom of an op that a call was made with.
    #[inline]
    pub(crate) fn atom(&self, op: u32) -> &AtomDef {
        let atom = self.atoms[op as usize].as_deref();
        atom.expect("calls are of atoms that are there")
    }

    /// The verified artifact.
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// The program of the artifact.
    pub fn program(&self) -> &Arc<Program> {
        self.artifact.program()
    }

    /// Identity of the program in a shared store (D25): the hash of everything that its
    /// results depend on. It cannot be chosen, and formatting does not change it.
    pub(crate) fn program_hash(&self) -> &str {
        self.program_hash
            .get_or_init(|| hex(&self.program().identity()).into())
    }

    /// The helpers, for inline programs.
    pub(crate) fn helpers(&self) -> &Helpers {
        self.helpers
            .get_or_init(|| Arc::new(Helpers::new(self.program())))
    }

    /// Size of the linked program with its source, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let prices = |prices: &ModelPrices| -> usize {
            let blocks = prices.blocks.iter().map(|blocks| size_of_val(&**blocks));
            size_of_val(&*prices.ops) + blocks.sum::<usize>()
        };
        let literals: usize = self.literals.iter().map(|code| size_of_val(&**code)).sum();
        let fast = self.fast.iter().map(|code| size_of_val(&**code));
        self.program().bytes()
            + size_of_val(&*self.consts)
            + self.statics.len()
            + self.shapes.templates.bytes()
            + literals
            + fast.sum::<usize>()
            + size_of_val(&*self.atoms)
            + size_of_val(&*self.natives)
            + prices(&self.metered)
            + prices(&self.flat)
            + self.keys.len() * KEY_BYTES
            + self.program().shapes.len() * KEY_BYTES
    }

    /// The prices of blocks at default costs.
    pub(crate) fn default_prices(&self, model: CostModel) -> &Prices {
        &self.model(model).blocks
    }

    /// The default price of each op; 0 if it is computed at the call.
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

/// Why linking ended early.
enum LinkStopped {
    Refused(LinkError),
    Stopped,
}

impl From<LinkError> for LinkStopped {
    fn from(error: LinkError) -> LinkStopped {
        LinkStopped::Refused(error)
    }
}

/// Polls the stop function during linking.
struct LinkPace<'s> {
    stop: &'s (dyn Fn() -> bool + Sync),
    left: Cell<usize>,
}

impl<'s> LinkPace<'s> {
    /// Records of a program between two polls.
    const ASK_EVERY: usize = 512;

    fn new(stop: &'s (dyn Fn() -> bool + Sync)) -> LinkPace<'s> {
        let left = Cell::new(Self::ASK_EVERY);
        LinkPace { stop, left }
    }

    /// Counts records that are about to be read.
    fn work(&self, records: usize) -> Result<(), LinkStopped> {
        match self.left.get().checked_sub(records) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }

    fn look(&self) -> Result<(), LinkStopped> {
        self.left.set(Self::ASK_EVERY);
        match (self.stop)() {
            true => Err(LinkStopped::Stopped),
            false => Ok(()),
        }
    }
}

/// Polls while a schema of the program is read.
struct SchemaPace<'p, 's>(&'p LinkPace<'s>);

impl Gauge for SchemaPace<'_, '_> {
    type Stop = LinkStopped;

    fn nodes(&mut self, n: usize) -> Result<(), LinkStopped> {
        self.0.work(n)
    }

    fn reads(&mut self, elements: usize, units: usize) -> Result<(), LinkStopped> {
        self.0.work(elements + units / UNITS_OF_RECORD)
    }

    fn passes(&mut self, nanos: usize) -> Result<(), LinkStopped> {
        self.0.work(nanos / NANOS_OF_RECORD)
    }

    fn holds(&mut self, _: usize) -> Result<(), LinkStopped> {
        Ok(())
    }

    /// Never called: reading a schema matches no pattern.
    fn matches(
        &mut self,
        _: &[u8],
        _: &[u8],
        _: usize,
    ) -> Result<Result<bool, String>, LinkStopped> {
        Ok(Ok(true))
    }
}

/// Interns the keys of a program and builds its shapes. `work` gets the number of records
/// read next. The same program gives the same ids.
fn interned<E>(
    program: &Program,
    work: impl Fn(usize) -> Result<(), E>,
) -> Result<(Vec<KeyId>, StaticShapes), E> {
    let mut shapes = StaticShapes::default();
    let mut keys = Vec::with_capacity(program.keys.len());
    for key in &program.keys {
        work(1)?;
        keys.push(shapes.key(program.text(*key)));
    }
    for shape in &program.shapes {
        work(shape.len())?;
        let list: Vec<_> = shape.iter().map(|k| keys[*k as usize]).collect();
        shapes.push_shape(&list);
    }
    Ok((keys, shapes))
}

/// The host's atom for an op of the program. Its price comes from the host, not from the
/// program.
fn atom(program: &Program, op: &OpRef, atoms: &AtomSet) -> Result<Option<Arc<AtomDef>>, LinkError> {
    let name = wtf8_to_string_lossy(program.text(op.name));
    let found = atoms.entry(&name);
    if op.signature == NO_SIGNATURE && !op.needs_body {
        // The compiler did not know the atom: its step raises an error.
        return Ok(found.map(|entry| entry.atom.clone()));
    }
    let Some(entry) = found else {
        return Err(LinkError::MissingAtom(name.into_owned()));
    };
    let atom = &entry.atom;
    let is_earlier = || atom.sig.inputs_of_earlier(op.signature).is_some();
    if entry.fingerprint() != op.signature && !is_earlier() {
        return Err(LinkError::DifferentAtom(name.into_owned()));
    }
    if op.needs_body && matches!(atom.body, AtomBody::Form) {
        return Err(LinkError::MissingAtom(name.into_owned()));
    }
    Ok(Some(atom.clone()))
}

/// Checks that every call passes the inputs of its atom, now or as compiled: bodies rely on
/// it.
fn check_sites(
    program: &Program,
    atoms: &[Option<Arc<AtomDef>>],
    pace: &LinkPace<'_>,
) -> Result<(), LinkStopped> {
    for site in &program.sites {
        pace.work(1)?;
        let Some(atom) = &atoms[site.op as usize] else {
            continue;
        };
        let signature = program.ops[site.op as usize].signature;
        let earlier = atom.sig.inputs_of_earlier(signature);
        let takes = earlier.unwrap_or(match &atom.sig.params {
            Params::Named(params) => params.len(),
            Params::Open | Params::Raw => 1,
        });
        if usize::from(site.inputs) != takes {
            return Err(LinkError::Inputs(atom.sig.name.clone().into_owned()).into());
        }
    }
    Ok(())
}

/// The native bodies at the call sites of a program, if a call needs nothing else.
fn natives(program: &Program, atoms: &[Option<Arc<AtomDef>>]) -> Arc<[Option<NativeFn>]> {
    let native = |site: &Site| atoms[site.op as usize].as_ref()?.plain();
    program.sites.iter().map(native).collect()
}

/// Converts a literal, with its constants as machine values.
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

/// Computes the prices of a program in a cost model, at these op costs.
fn model_prices(
    program: &Program,
    model: CostModel,
    costs: &[BaseCost],
    pace: &LinkPace<'_>,
) -> Result<ModelPrices, LinkStopped> {
    let ops: Box<[i64]> = costs.iter().map(|cost| cost.known_in(model)).collect();
    let mut blocks = Vec::with_capacity(program.functions.len());
    for f in &program.functions {
        blocks.push(function_prices(program, f, model, &ops, |charges| {
            pace.work(charges)
        })?);
    }
    Ok(ModelPrices { ops, blocks })
}

/// Computes the price of every block at these op prices.
pub(crate) fn block_prices(program: &Program, model: CostModel, ops: &[i64]) -> Prices {
    let prices = |f| {
        let Ok(prices) = function_prices(program, f, model, ops, |_| Ok::<_, Infallible>(()));
        prices
    };
    program.functions.iter().map(prices).collect()
}

/// Computes the prices of a function's blocks. `work` gets the number of records read next.
fn function_prices<E>(
    program: &Program,
    f: &Function,
    model: CostModel,
    ops: &[i64],
    work: impl Fn(usize) -> Result<(), E>,
) -> Result<Box<[BlockPrice]>, E> {
    let blocks = f.blocks.iter().enumerate();
    blocks
        .map(|(number, block)| {
            let charges = f.charges_of(number);
            work(1 + charges.len())?;
            let fuel = charges.iter().fold(0i64, |sum, c| {
                let step_price = |step: u32| ops[f.steps[step as usize].op as usize];
                sum.saturating_add(program.price(c, model, step_price))
            });
            Ok(BlockPrice::new(fuel, block.end - block.start))
        })
        .collect()
}
