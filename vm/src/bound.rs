//! Bound calls: repeated runs of one program, with arguments and results by position.
//!
//! [`Vm::run_sync`] takes a tree of names and returns one. For a condition over a million
//! rows that costs more than the program itself. A [`Bound`] looks its names up once. A
//! [`Caller`] keeps one machine, writes arguments where the program reads them, and leaves
//! the result in place: a call with numbers and booleans allocates nothing. Fuel, heap,
//! deadline and errors are those of a run with the same arguments.

use crate::clock::Stopwatch;
use crate::convert::{self, BoundaryLimits};
use crate::driver::{self, Drive};
use crate::heap::{KeyId, Val};
use crate::link::Executable;
use crate::native::{Cx, Fault};
use crate::options::RunOptions;
use crate::run::Session;
use crate::vm::Vm;
use a99_core::error::{ErrorCode, RunError};
use a99_core::fuel::Fuel;
use a99_core::program::{ArgKey, TextRange};
use a99_core::text::{Text, wtf8_to_string_lossy};
use a99_core::value::{Map, Value};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// An argument of a bound call.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub enum Arg<'a> {
    /// As if the argument were missing.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a str),
    /// Any value.
    Value(&'a Value),
}

impl Arg<'_> {
    fn to_value(self) -> Value {
        match self {
            Arg::Undefined => Value::Undefined,
            Arg::Null => Value::Null,
            Arg::Bool(b) => Value::Bool(b),
            Arg::Number(n) => Value::Number(n),
            Arg::Text(text) => Value::from(text),
            Arg::Value(value) => value.clone(),
        }
    }

    /// The value of a number, a boolean or `null`.
    #[inline]
    fn plain(self) -> Option<Val> {
        match self {
            Arg::Null => Some(Val::Null),
            Arg::Bool(b) => Some(Val::Bool(b)),
            Arg::Number(n) => Some(Val::Num(n)),
            Arg::Undefined | Arg::Text(_) | Arg::Value(_) => None,
        }
    }

    fn val(self, cx: &mut Cx<'_>, limits: &BoundaryLimits) -> Result<Val, Fault> {
        match self {
            Arg::Text(text) => convert::from_text(cx, text, limits),
            Arg::Value(value) => convert::from_value(cx, value, limits),
            plain => Ok(plain.plain().unwrap_or(Val::Undefined)),
        }
    }
}

impl From<f64> for Arg<'_> {
    fn from(n: f64) -> Self {
        Arg::Number(n)
    }
}

impl From<i32> for Arg<'_> {
    fn from(n: i32) -> Self {
        Arg::Number(f64::from(n))
    }
}

impl From<bool> for Arg<'_> {
    fn from(b: bool) -> Self {
        Arg::Bool(b)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Arg::Text(text)
    }
}

impl<'a> From<&'a Value> for Arg<'a> {
    fn from(value: &'a Value) -> Self {
        Arg::Value(value)
    }
}

/// A part of a result, borrowed from the heap.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// Missing or `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text; lone surrogates become replacement characters.
    Text(Cow<'a, str>),
    /// A list, an object or another kind of value: [`Reply::to_value`] returns it.
    Other,
}

/// A name of a result, resolved by [`Bound::result`].
#[derive(Copy, Clone, Debug)]
pub struct ResultSlot(Option<KeyId>);

/// The position of an argument that a program reads by its whole name.
#[derive(Copy, Clone, Debug)]
struct Whole {
    place: usize,
    /// The program reads the argument by no other name, so that its value is not shared.
    is_only: bool,
}

/// A program bound to argument positions and options. Threads share it, and each creates its
/// own [`Caller`].
pub struct Bound {
    vm: Arc<Vm>,
    pub(crate) exe: Arc<Executable>,
    names: Box<[Text]>,
    /// Text ranges of the names that the program asks for, ordered by their place in its
    /// text, with the argument positions bound to them.
    places: Box<[(TextRange, usize)]>,
    /// For each argument that the program asks for, the position of its whole name.
    whole: Box<[Option<Whole>]>,
    /// Whether a call needs its arguments as one value: the program uses all, or has an input
    /// schema.
    is_named: bool,
    options: Arc<RunOptions>,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Vm {
    /// Binds the program's arguments to positions, in the order of `names`. A quota of the
    /// options applies to each call; an account and a signal are shared by all calls.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownOp`] if the options name an op that this machine lacks;
    /// [`ErrorCode::Options`] for a repeated name, and for a trace, which bound calls do not
    /// support.
    pub fn bind(
        self: &Arc<Self>,
        exe: &Arc<Executable>,
        names: &[&str],
        options: impl Into<Arc<RunOptions>>,
    ) -> Result<Bound, RunError> {
        let options = options.into();
        let refused = |why: String, help: Option<String>| {
            let mut error = RunError::new(ErrorCode::Options, "vm.bind", why);
            error.help = help;
            error
        };
        self.check_options_of("vm.bind", &options)?;
        if options.trace || options.trace_to.is_some() {
            let why = "A bound call keeps no trace".to_owned();
            let help = "run the program unbound to see its steps".to_owned();
            return Err(refused(why, Some(help)));
        }
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                let why = format!("The argument '{name}' is bound twice");
                return Err(refused(why, None));
            }
        }
        let program = exe.program();
        let place = |name: TextRange| {
            let text = program.text(name);
            names.iter().position(|bound| bound.as_bytes() == text)
        };
        let asked = program.args.iter().flat_map(|key| {
            let root = key.path.as_deref().and_then(<[_]>::first);
            std::iter::once(key.flat).chain(root.copied())
        });
        let mut places: Vec<(TextRange, usize)> = asked
            .filter_map(|name| Some((name, place(name)?)))
            .collect();
        places.sort_unstable_by_key(|(name, _)| (name.start, name.end));
        let mut names_of = vec![0; names.len()];
        places.iter().for_each(|(_, place)| names_of[*place] += 1);
        let whole = |name| {
            let place = place(name)?;
            let is_only = names_of[place] == 1;
            Some(Whole { place, is_only })
        };
        Ok(Bound {
            whole: program.args.iter().map(|key| whole(key.flat)).collect(),
            is_named: exe.input_schema.is_some() || program.args.iter().any(ArgKey::is_all),
            places: places.into(),
            vm: Arc::clone(self),
            exe: Arc::clone(exe),
            names: names.iter().map(|name| Text::from(*name)).collect(),
            options,
        })
    }
}

impl Bound {
    /// Whether the program reads the argument at this position.
    #[must_use]
    pub fn is_read(&self, place: usize) -> bool {
        let all = self.exe.program().args.iter().any(ArgKey::is_all);
        all || self.places.iter().any(|(_, bound)| *bound == place)
    }

    /// Resolves the name of a result's member.
    #[must_use]
    pub fn result(&self, name: &str) -> ResultSlot {
        let program = self.exe.program();
        let mut keys = program.keys.iter().zip(self.exe.keys.iter());
        let found = keys.find(|(range, _)| program.text(**range) == name.as_bytes());
        ResultSlot(found.map(|(_, key)| *key))
    }

    /// Creates a caller, with its own machine.
    #[must_use]
    pub fn caller(self: &Arc<Self>) -> Caller {
        // A separate reference count: callers of other threads do not write it.
        let options = Arc::new(RunOptions::clone(&self.options));
        let mut session = Session::new(Box::default(), &options);
        session.machine.clean(options);
        Caller {
            bound: Arc::clone(self),
            session,
        }
    }

    /// The arguments as a tree, for a run that is not bound.
    fn named(&self, args: &[Arg<'_>]) -> Value {
        let mut named = Map::new();
        for (name, arg) in self.names.iter().zip(args) {
            if *arg != Arg::Undefined {
                named.insert(name.clone(), arg.to_value());
            }
        }
        Value::Object(named)
    }
}

/// Makes calls of a bound program, one after the other.
pub struct Caller {
    bound: Arc<Bound>,
    session: Session,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller")
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}

impl Caller {
    /// Runs the program on this thread. An atom that would have to wait fails.
    ///
    /// # Errors
    /// As a run ([`Outcome::error`](crate::Outcome)); [`ErrorCode::Options`] if the number of
    /// arguments differs from the bound names.
    pub fn call(&mut self, args: &[Arg<'_>]) -> Result<Reply<'_>, RunError> {
        let clock = Stopwatch::lazy();
        self.begin(args, &clock)?;
        driver::drive_sync(&self.bound.vm, &mut self.session, &clock);
        self.end(&clock)
    }

    /// Runs the program and awaits its atoms. Dropping the future cancels the run.
    ///
    /// # Errors
    /// As [`Caller::call`].
    pub async fn call_async(&mut self, args: &[Arg<'_>]) -> Result<Reply<'_>, RunError> {
        let clock = Stopwatch::lazy();
        self.begin(args, &clock)?;
        Drive::new(&self.bound.vm, &mut self.session, &clock).await;
        self.end(&clock)
    }

    fn begin(&mut self, args: &[Arg<'_>], clock: &Stopwatch) -> Result<(), RunError> {
        let Caller { bound, session } = self;
        if args.len() != bound.names.len() {
            let (given, bound) = (args.len(), bound.names.len());
            let why = format!("{given} arguments were given, and {bound} are bound");
            return Err(RunError::new(ErrorCode::Options, "vm.call", why));
        }
        if !bound.options.quotas.is_empty() {
            session.machine.set_options(bound.options.for_a_run());
        }
        let whole = bound.is_named.then(|| bound.named(args));
        session.begin_bound(&bound.vm, clock, |machine, host| {
            machine.start_bound(bound, args, whole.as_ref(), host);
        });
        Ok(())
    }

    fn end(&mut self, clock: &Stopwatch) -> Result<Reply<'_>, RunError> {
        let machine = &mut self.session.machine;
        match machine.end_bound(clock) {
            Some(error) => Err(error),
            None => Ok(Reply { caller: self }),
        }
    }

    /// Fuel that the last call used.
    #[must_use]
    pub fn fuel_used(&self) -> Fuel {
        self.session.machine.fuel_used()
    }
}

/// The result of a call, valid until the next call.
#[derive(Debug)]
pub struct Reply<'c> {
    caller: &'c mut Caller,
}

impl Reply<'_> {
    /// A member of the result by its resolved name.
    #[must_use]
    pub fn at(&self, slot: ResultSlot) -> Part<'_> {
        let (heap, val) = self.caller.session.machine.kept();
        match (val, slot.0) {
            (Val::Obj(r), Some(key)) => self.part(heap.get(r, key)),
            _ => Part::Undefined,
        }
    }

    /// A member of the result by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Part<'_> {
        let (heap, val) = self.caller.session.machine.kept();
        match val {
            Val::Obj(r) => self.part(heap.get_text(r, name.as_bytes())),
            _ => Part::Undefined,
        }
    }

    fn part(&self, val: Option<Val>) -> Part<'_> {
        match val {
            None | Some(Val::Undefined | Val::Unbound) => Part::Undefined,
            Some(Val::Null) => Part::Null,
            Some(Val::Bool(b)) => Part::Bool(b),
            Some(Val::Num(n)) => Part::Number(n),
            Some(Val::Str(s)) => {
                let bytes = self.caller.session.machine.kept().0.bytes(s);
                Part::Text(match std::str::from_utf8(bytes) {
                    Ok(text) => Cow::Borrowed(text),
                    Err(_) => wtf8_to_string_lossy(bytes),
                })
            }
            Some(_) => Part::Other,
        }
    }

    /// Converts the whole result, and pays for it as a run does.
    ///
    /// # Errors
    /// A result that is too large or too deep for the boundary; fuel.
    pub fn to_value(self) -> Result<Value, RunError> {
        let Caller { bound, session } = self.caller;
        let clock = Stopwatch::lazy();
        session.give_kept(&bound.vm, &clock);
        // A program may catch the error of a result that cannot be converted.
        driver::drive_sync(&bound.vm, session, &clock);
        session.machine.take_result()
    }

    /// Fuel that the call used.
    #[must_use]
    pub fn fuel_used(&self) -> Fuel {
        self.caller.fuel_used()
    }
}

/// Values of the bound arguments, converted on first use.
pub(crate) struct Given<'a> {
    bound: &'a Bound,
    args: &'a [Arg<'a>],
    /// One slot per argument; empty until the first conversion.
    made: SmallVec<[Option<Val>; 16]>,
}

impl<'a> Given<'a> {
    pub(crate) fn new(bound: &'a Bound, args: &'a [Arg<'a>]) -> Given<'a> {
        let made = SmallVec::new();
        Given { bound, args, made }
    }

    /// The value of the argument that the program reads at this position, if it needs no
    /// lookup: it is present under its whole name, and is a number, a boolean or `null`.
    #[inline]
    pub(crate) fn plain(&self, asked: usize) -> Option<Val> {
        self.args[self.bound.whole[asked]?.place].plain()
    }

    /// The converted value of an argument that the program reads at no other place.
    #[inline]
    pub(crate) fn direct(
        &self,
        cx: &mut Cx<'_>,
        asked: usize,
        limits: &BoundaryLimits,
    ) -> Result<Option<Val>, Fault> {
        match self.bound.whole[asked] {
            Some(whole) if whole.is_only => match self.args[whole.place] {
                Arg::Undefined => Ok(None),
                arg => arg.val(cx, limits).map(Some),
            },
            _ => Ok(None),
        }
    }

    /// The value of an argument; `None` if it is missing.
    pub(crate) fn get(
        &mut self,
        cx: &mut Cx<'_>,
        name: TextRange,
        limits: &BoundaryLimits,
    ) -> Result<Option<Val>, Fault> {
        let places = &self.bound.places;
        let by_text = |(at, _): &(TextRange, usize)| (at.start, at.end);
        let Ok(found) = places.binary_search_by_key(&(name.start, name.end), by_text) else {
            return Ok(None);
        };
        let place = places[found].1;
        let arg = self.args[place];
        self.made.resize(self.args.len(), None);
        if matches!(arg, Arg::Undefined) || self.made[place].is_some() {
            return Ok(self.made[place]);
        }
        let val = arg.val(cx, limits)?;
        self.made[place] = Some(val);
        Ok(Some(val))
    }
}
