//! The work, done by wasmi: WebAssembly that an author would have had compiled, so that its
//! numbers have types and its memory no objects. What needs objects or JSON is left out.

use a99_benches_work::inputs::{self, TenSteps};
use a99_benches_work::protocol::{About, Entry, time};
use a99_benches_work::{Size, Task, list};
use std::fmt;
use std::process::ExitCode;
use wasmi::errors::HostError;
use wasmi::{
    Caller, Config, Engine, Error, Extern, Instance, Linker, Memory, Module, Store, StoreLimits,
    StoreLimitsBuilder, TypedResumableCall, TypedResumableCallHostTrap, Val,
};

const ABOUT: About = About {
    name: "wasmi",
    version: "wasmi 2.0.0",
    limits: "fuel, memory limit of 64 MiB",
};

const FUEL: u64 = 1_000_000_000_000;

/// What a store keeps of its host.
pub type Host = StoreLimits;

/// The compiled agent's module, and what links it.
struct Linked {
    engine: Engine,
    module: Module,
    linker: Linker<Host>,
}

const HEAD: &str = "(module
  (import \"host\" \"inc\" (func $inc (param f64) (result f64)))
  (import \"host\" \"wait\" (func $wait (param f64) (result f64)))
  (import \"host\" \"format\" (func $format (param f64 i32) (result i32)))";

/// A loop of `n` turns that sums what `TERM` leaves; `$i` is the turn.
const LOOP: &str = "
  (func (export \"run\") (param $n f64) (result f64)
    (local $i f64) (local $s f64) (local $x f64)
    (if (f64.lt (local.get $i) (local.get $n)) (then
      (loop $turn
        BODY
        (local.set $i (f64.add (local.get $i) (f64.const 1)))
        (br_if $turn (f64.lt (local.get $i) (local.get $n))))))
    (local.get $s)))";

const SQUARES: &str = "(local.set $s
    (f64.add (local.get $s) (f64.mul (local.get $i) (local.get $i))))";

/// WebAssembly has no remainder of floats; of whole ones this is it.
const REMAINDERS: &str = "
    (local.set $x (f64.mul (local.get $i) (local.get $i)))
    (local.set $s (f64.add (local.get $s)
      (f64.sub (local.get $x)
        (f64.mul (f64.const 7) (f64.trunc (f64.div (local.get $x) (f64.const 7)))))))";

const FIB: &str = "
  (func $fib (export \"run\") (param $n f64) (result f64)
    (if (result f64) (f64.lt (local.get $n) (f64.const 2))
      (then (local.get $n))
      (else (f64.add
        (call $fib (f64.sub (local.get $n) (f64.const 1)))
        (call $fib (f64.sub (local.get $n) (f64.const 2))))))))";

const WAITS: &str = "
  (func (export \"run\") (param $n f64) (result f64) (call $wait (local.get $n))))";

/// The texts go in and out by memory: the name at 64, the tags' places and lengths from
/// 128; the lengths of the texts at 32, the texts at 1024, 2048 and 3072.
const TEN_STEPS: &str = "
  (memory (export \"memory\") 1)
  (data (i32.const 16) \" owes \")
  (func $copy (param $to i32) (param $from i32) (param $n i32) (result i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $n))
    (i32.add (local.get $to) (local.get $n)))
  (func (export \"run\")
    (param $length i32) (param $price f64) (param $quantity f64) (param $count i32)
    (result f64)
    (local $total f64) (local $discount f64) (local $net f64)
    (local $at i32) (local $i i32) (local $c i32)
    (local.set $total (f64.mul (local.get $price) (local.get $quantity)))
    (if (f64.gt (local.get $total) (f64.const 100))
      (then (local.set $discount (f64.const 0.1))))
    (local.set $net
      (f64.mul (local.get $total) (f64.sub (f64.const 1) (local.get $discount))))
    (local.set $at (call $copy (i32.const 1024) (i32.const 64) (local.get $length)))
    (local.set $at (call $copy (local.get $at) (i32.const 16) (i32.const 6)))
    (local.set $at
      (i32.add (local.get $at) (call $format (local.get $net) (local.get $at))))
    (i32.store (i32.const 32) (i32.sub (local.get $at) (i32.const 1024)))
    (block $upper (loop $next
      (br_if $upper (i32.ge_u (local.get $i) (local.get $length)))
      (local.set $c (i32.load8_u offset=64 (local.get $i)))
      (if (i32.lt_u (i32.sub (local.get $c) (i32.const 97)) (i32.const 26))
        (then (local.set $c (i32.sub (local.get $c) (i32.const 32)))))
      (i32.store8 offset=2048 (local.get $i) (local.get $c))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next)))
    (i32.store (i32.const 36) (local.get $length))
    (local.set $at (i32.const 3072))
    (local.set $i (i32.const 0))
    (block $joined (loop $next
      (br_if $joined (i32.ge_u (local.get $i) (local.get $count)))
      (if (local.get $i) (then
        (i32.store8 (local.get $at) (i32.const 44))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))))
      (local.set $c (i32.mul (local.get $i) (i32.const 8)))
      (local.set $at (call $copy (local.get $at)
        (i32.load offset=128 (local.get $c)) (i32.load offset=132 (local.get $c))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next)))
    (i32.store (i32.const 40) (i32.sub (local.get $at) (i32.const 3072)))
    (local.get $net)))";

const ENTRIES: &[Entry] = &[
    (list::W2, |size| {
        looped(REMAINDERS, size, inputs::sum_of_remainders(size.turns))
    }),
    (list::W2D, |size| {
        looped(SQUARES, size, inputs::sum_of_squares(size.turns))
    }),
    (list::W3, |size| {
        let (n, wanted) = (f64::from(size.fib), inputs::fibonacci(size.fib));
        let mut run = runs(FIB);
        Task::all(inputs::fibonacci_calls(size.fib), move || {
            assert_eq!(run(n), wanted)
        })
    }),
    (list::W7_SYNC, |size| {
        let n = f64::from(size.turns);
        let body = "(local.set $s (call $inc (local.get $i)))";
        let (mut calls, mut rest) = (
            runs(&LOOP.replace("BODY", body)),
            runs(&LOOP.replace("BODY", "")),
        );
        Task::Net {
            operations: u64::from(size.turns),
            run: Box::new(move || assert_eq!(calls(n), n)),
            rest: Box::new(move || assert_eq!(rest(n), 0.0)),
        }
    }),
    (list::W8_COMPILE, |size| {
        let (engine, wasm) = (engine(), wasm(TEN_STEPS));
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                drop(Module::new(&engine, &wasm).expect("a module"));
            }
        })
    }),
    (list::W8_COLD, |size| {
        let wasm = wasm(TEN_STEPS);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                once(&Linked::new(&wasm));
            }
        })
    }),
    (list::W8_FRESH, |size| {
        let linked = Linked::new(&wasm(TEN_STEPS));
        Task::all(size.runs, move || {
            for _ in 0..size.runs {
                once(&linked);
            }
        })
    }),
    (list::W9_START, |size| {
        let linked = Linked::new(&wasm(WAITS));
        Task::all(size.waiting, move || drop(waiting(&linked, size.waiting)))
    }),
    (list::W9_RESUME, |size| {
        let linked = Linked::new(&wasm(WAITS));
        Task::Part {
            operations: u64::from(size.waiting),
            run: Box::new(move || {
                let waiting = waiting(&linked, size.waiting);
                time(|| waiting.into_iter().for_each(resumed))
            }),
        }
    }),
];

/// What the program with the times does.
pub fn timed() -> ExitCode {
    a99_benches_work::protocol::main(ABOUT, ENTRIES)
}

/// What the program does that counts allocations.
pub fn held(entries: &[Entry]) -> ExitCode {
    a99_benches_work::protocol::main(ABOUT, entries)
}

/// What runs hold that wait.
pub fn bytes(size: Size, allocated: fn() -> usize) -> Task {
    let linked = Linked::new(&wasm(WAITS));
    Task::held(size.waiting, allocated, move |count| {
        waiting(&linked, count)
    })
}

/// The host's answer that is not there yet.
#[derive(Debug)]
struct Later;

impl fmt::Display for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer comes later")
    }
}

impl HostError for Later {}

fn wasm(rest: &str) -> Vec<u8> {
    wat::parse_str(format!("{HEAD}{rest}")).expect("WebAssembly")
}

fn engine() -> Engine {
    Engine::new(Config::default().consume_fuel(true))
}

impl Linked {
    fn new(wasm: &[u8]) -> Linked {
        let engine = engine();
        let module = Module::new(&engine, wasm).expect("a module");
        let mut linker = Linker::new(&engine);
        linker
            .func_wrap("host", "inc", |x: f64| x + 1.0)
            .and_then(|linker| {
                linker.func_wrap("host", "wait", |_: f64| Err::<f64, _>(Error::host(Later)))
            })
            .and_then(|linker| linker.func_wrap("host", "format", format))
            .expect("functions of the host");
        Linked {
            engine,
            module,
            linker,
        }
    }

    /// An isolated instance with its limits on.
    fn instance(&self) -> (Store<Host>, Instance) {
        let limits = StoreLimitsBuilder::new().memory_size(64 << 20).build();
        let mut store = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        store.set_fuel(FUEL).expect("fuel is counted");
        let instance = self
            .linker
            .instantiate_and_start(&mut store, &self.module)
            .expect("an instance");
        (store, instance)
    }
}

/// Writes a number where the module wants it.
fn format(mut caller: Caller<'_, Host>, x: f64, at: u32) -> Result<u32, Error> {
    let text = x.to_string();
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    let memory = memory.ok_or_else(|| Error::new("no memory"))?;
    memory
        .write(&mut caller, at as usize, text.as_bytes())
        .map_err(|error| Error::new(error.to_string()))?;
    Ok(text.len() as u32)
}

/// Calls of the function `run` in one instance.
fn runs(rest: &str) -> impl FnMut(f64) -> f64 + 'static {
    let linked = Linked::new(&wasm(rest));
    let (mut store, instance) = linked.instance();
    let run = instance
        .get_typed_func::<f64, f64>(&store, "run")
        .expect("a function");
    move |n| run.call(&mut store, n).expect("it returns")
}

fn looped(body: &str, size: Size, sum: f64) -> Task {
    let n = f64::from(size.turns);
    let mut run = runs(&LOOP.replace("BODY", body));
    Task::all(size.turns, move || assert_eq!(run(n), sum))
}

fn once(linked: &Linked) {
    let (mut store, instance) = linked.instance();
    let run = instance.get_typed_func::<(i32, f64, f64, i32), f64>(&store, "run");
    let memory: Memory = instance.get_memory(&store, "memory").expect("a memory");
    let name = TenSteps::NAME.as_bytes();
    let data = memory.data_mut(&mut store);
    data[64..64 + name.len()].copy_from_slice(name);
    let mut at = 256;
    for (i, tag) in TenSteps::TAGS.iter().enumerate() {
        data[at..at + tag.len()].copy_from_slice(tag.as_bytes());
        let place = [at as u32, tag.len() as u32].map(u32::to_le_bytes).concat();
        data[128 + 8 * i..136 + 8 * i].copy_from_slice(&place);
        at += tag.len();
    }
    let args = (
        name.len() as i32,
        TenSteps::PRICE,
        TenSteps::QUANTITY,
        TenSteps::TAGS.len() as i32,
    );
    let net = run.expect("a function").call(&mut store, args);
    let data = memory.data(&store);
    let text = |place: usize, from: usize| {
        let length = data[place..place + 4].try_into().expect("four bytes");
        let text = &data[from..from + u32::from_le_bytes(length) as usize];
        String::from_utf8_lossy(text).into_owned()
    };
    let found = TenSteps {
        net: net.expect("it returns"),
        count: TenSteps::TAGS.len() as f64,
        text: text(32, 1_024),
        label: text(36, 2_048),
        joined: text(40, 3_072),
    };
    found.check();
}

type Waiting = (Store<Host>, TypedResumableCallHostTrap<f64>);

fn waiting(linked: &Linked, count: u32) -> Vec<Waiting> {
    let one = |_| {
        let (mut store, instance) = linked.instance();
        let run = instance.get_typed_func::<f64, f64>(&store, "run");
        let run = run.expect("a function").call_resumable(&mut store, 1.0);
        match run {
            Ok(TypedResumableCall::HostTrap(waits)) => (store, waits),
            _ => panic!("it waits on the host"),
        }
    };
    (0..count).map(one).collect()
}

fn resumed((mut store, waits): Waiting) {
    match waits.resume(&mut store, &[Val::F64(2.0.into())]) {
        Ok(TypedResumableCall::Finished(answer)) => assert_eq!(answer, 2.0),
        _ => panic!("it ends"),
    }
}
