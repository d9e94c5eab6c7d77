//! The work, done by starlark: a frozen module, a new module and evaluator for each run. It
//! cannot suspend a run, and has no `while`: its loops go over a `range`.

use a99_benches_work::inputs::{self, TAGS, TenSteps};
use a99_benches_work::protocol::{About, Entry};
use a99_benches_work::{Size, Task, list, protocol};
use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::dict::{AllocDict, DictRef};
use starlark::values::float::UnpackFloat;
use starlark::values::list::AllocList;
use starlark::values::{Heap, UnpackValue, Value};
use std::collections::HashMap;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "starlark",
    version: "starlark 0.14.3",
    limits: "maximum of calls and loop turns; maximum of the heap, of 1 GiB: no garbage is \
             collected inside a function",
};

const LOOP: &str = "
def run(n, a, b, c, d, e, f, name):
    i = 0.0
    s = 0.0
    for _ in range(n):
        BODY
        i = i + 1.0
    return s
";

const CONDITION: &str = "
def run(m):
    return m['a']*m['b'] + m['c']/m['d'] - m['e']%m['f'] > 10.0 and m['name'] == 'x'
";

const FIB: &str = "
def fib(n):
    if n < 2.0:
        return n
    return fib(n - 1.0) + fib(n - 2.0)

def run(n):
    return fib(n)
";

const ROWS: &str = "
def run(n, tags):
    rows = [{'id': i, 'price': i % 97 + 0.5, 'qty': i % 5 + 1, 'tag': tags[i % 4]} for i in range(n)]
    totals = [{'id': row['id'], 'tag': row['tag'], 'total': row['price'] * row['qty']} for row in rows]
    large = [t for t in totals if t['total'] > 50]
    sum = 0.0
    for t in large:
        sum += t['total']
    counts = {}
    for t in large:
        counts[t['tag']] = counts.get(t['tag'], 0) + 1
    return [sum] + [counts.get(tag, 0) for tag in tags]
";

const WORDS: &str = "
def run(text):
    lines = ['<li>' + word + '</li>' for word in text.split(' ')]
    return '\\n'.join(lines)
";

const ORDERS: &str = "
def short(order):
    picked = {'id': order['id'], 'customer': order['customer'], 'total': order['total']}
    fields = len(order.keys())
    return picked | {'seen': True, 'fields': fields}

def run(text):
    return json.encode([short(order) for order in json.decode(text)])
";

const TEN_STEPS: &str = "
def run(name, price, quantity, tags):
    total = price * quantity
    discount = 0.0
    if total > 100:
        discount = 0.1
    net = total * (1 - discount)
    count = len(tags)
    text = name + ' owes ' + str(net)
    label = name.upper()
    joined = ','.join(tags)
    return {'net': net, 'count': count, 'text': text, 'label': label, 'joined': joined}
";

#[starlark_module]
fn host(builder: &mut GlobalsBuilder) {
    fn inc(x: UnpackFloat) -> anyhow::Result<f64> {
        Ok(x.0 + 1.0)
    }
}

const ENTRIES: &[Entry] = &[
    (list::W1_MAP, |size| {
        let module = frozen(&globals(), CONDITION);
        let numbers = HashMap::from(inputs::CONDITION);
        Task::all(size.evaluations, move || {
            for _ in 0..size.evaluations {
                call(
                    &module,
                    |heap| {
                        let numbers = numbers.iter().map(|(key, n)| (*key, heap.alloc(*n)));
                        let name = ("name", heap.alloc("x"));
                        vec![heap.alloc(AllocDict(numbers.chain([name])))]
                    },
                    |found| assert_eq!(found.unpack_bool(), Some(true)),
                );
            }
        })
    }),
    (list::W1_BOUND, |size| {
        let text = "def run(a, b, c, d, e, f, name):
    return a*b + c/d - e%f > 10.0 and name == 'x'";
        let module = frozen(&globals(), text);
        Task::all(size.evaluations, move || {
            for _ in 0..size.evaluations {
                call(
                    &module,
                    |heap| {
                        let numbers = inputs::CONDITION.iter().map(|(_, n)| heap.alloc(*n));
                        numbers.chain([heap.alloc("x")]).collect()
                    },
                    |found| assert_eq!(found.unpack_bool(), Some(true)),
                );
            }
        })
    }),
    (list::W1_LOOP, |size| {
        let body = "if a*b + c/d - e%f > 10.0 and name == 'x':\n            s = s + 1.0";
        looped(body, size, f64::from(size.turns))
    }),
    (list::W2, |size| {
        looped(
            "s = s + i * i % 7.0",
            size,
            inputs::sum_of_remainders(size.turns),
        )
    }),
    (list::W2D, |size| {
        looped("s = s + i * i", size, inputs::sum_of_squares(size.turns))
    }),
    (list::W3, |size| {
        let module = frozen(&globals(), FIB);
        let (n, wanted) = (f64::from(size.fib), inputs::fibonacci(size.fib));
        Task::all(inputs::fibonacci_calls(size.fib), move || {
            call(
                &module,
                |heap| vec![heap.alloc(n)],
                |found| assert_eq!(number(found), wanted),
            );
        })
    }),
    (list::W4, rows),
    (list::W5, |size| {
        let module = frozen(&globals(), WORDS);
        let text = inputs::text(size.words);
        let page = inputs::page(&text);
        Task::all(size.words, move || {
            call(
                &module,
                |heap| vec![heap.alloc(text.as_str())],
                |found| {
                    assert!(found.unpack_str() == Some(&page), "another page");
                },
            );
        })
    }),
    (list::W6, orders),
    (list::W7_SYNC, |size| {
        let n = f64::from(size.turns);
        let (calls, rest) = (
            loop_calls("s = inc(i)", size, n),
            loop_calls("pass", size, 0.0),
        );
        Task::Net {
            operations: u64::from(size.turns),
            run: Box::new(calls),
            rest: Box::new(rest),
        }
    }),
    (list::W8_COMPILE, |size| {
        let globals = globals();
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                drop(frozen(&globals, TEN_STEPS));
            }
        })
    }),
    (list::W8_COLD, |size| {
        // With new globals, which are this engine.
        let size = size.few_states(10);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                once(&frozen(&globals(), TEN_STEPS));
            }
        })
    }),
    (list::W8_FRESH, |size| {
        let module = frozen(&globals(), TEN_STEPS);
        Task::all(size.runs, move || {
            for _ in 0..size.runs {
                once(&module);
            }
        })
    }),
];

fn main() -> ExitCode {
    protocol::main(ABOUT, ENTRIES)
}

fn globals() -> Globals {
    GlobalsBuilder::extended_by(&[LibraryExtension::Json])
        .with(host)
        .build()
}

/// Parsed, compiled, and frozen.
fn frozen(globals: &Globals, text: &str) -> FrozenModule {
    let ast = AstModule::parse("agent", text.to_owned(), &Dialect::Standard);
    let ast = ast.expect("a script");
    Module::with_temp_heap(|module| {
        let mut evaluator = Evaluator::new(&module);
        evaluator.eval_module(ast, globals).expect("definitions");
        drop(evaluator);
        module.freeze().expect("a frozen module")
    })
}

/// Calls `run` in a module and an evaluator of its own, with the limits on.
fn call(
    frozen: &FrozenModule,
    args: impl for<'v> FnOnce(Heap<'v>) -> Vec<Value<'v>>,
    check: impl for<'v> FnOnce(Value<'v>),
) {
    let function = frozen.get("run").expect("a function");
    Module::with_temp_heap(|module| {
        let args = args(module.heap());
        // The heap keeps the frozen module alive, as it does for `load`.
        let function = module.heap().access_owned_frozen_value(&function);
        let mut evaluator = Evaluator::new(&module);
        evaluator.set_max_tick_count(1 << 40).expect("set once");
        evaluator.set_max_heap_size(1 << 30).expect("set once");
        check(
            evaluator
                .eval_function(function, &args, &[])
                .expect("it returns"),
        );
    });
}

/// What makes the arguments in a heap: values of one heap are no values of another.
fn arguments<F: for<'v> FnOnce(Heap<'v>) -> Vec<Value<'v>>>(args: F) -> F {
    args
}

fn number(value: Value<'_>) -> f64 {
    UnpackFloat::unpack_value(value)
        .ok()
        .flatten()
        .expect("a number")
        .0
}

fn loop_calls(body: &str, size: Size, sum: f64) -> impl FnMut() + 'static {
    let module = frozen(&globals(), &LOOP.replace("BODY", body));
    move || {
        let args = arguments(|heap| {
            let numbers = inputs::CONDITION.map(|(_, number)| heap.alloc(number));
            let mut args = vec![heap.alloc(size.turns)];
            args.extend(numbers);
            args.push(heap.alloc("x"));
            args
        });
        call(&module, args, |found| assert_eq!(number(found), sum));
    }
}

fn looped(body: &str, size: Size, sum: f64) -> Task {
    Task::all(size.turns, loop_calls(body, size, sum))
}

fn rows(size: Size) -> Task {
    let module = frozen(&globals(), ROWS);
    let wanted = inputs::rows(size.rows);
    Task::all(size.rows, move || {
        let args = arguments(|heap| vec![heap.alloc(size.rows), heap.alloc(AllocList(TAGS))]);
        call(&module, args, |found| {
            let found: Vec<f64> = starlark::values::list::ListRef::from_value(found)
                .expect("a list")
                .iter()
                .map(number)
                .collect();
            let counts = [found[1], found[2], found[3], found[4]];
            assert_eq!(
                inputs::Rows {
                    sum: found[0],
                    counts
                },
                wanted
            );
        });
    })
}

fn orders(size: Size) -> Task {
    let module = frozen(&globals(), ORDERS);
    let text = inputs::orders(size.orders);
    let mut first: Option<String> = None;
    Task::all(text.len() as u64, move || {
        call(
            &module,
            |heap| vec![heap.alloc(text.as_str())],
            |found| {
                let found = found.unpack_str().expect("a text");
                let first = first.get_or_insert_with(|| {
                    inputs::check_orders(found, size.orders);
                    found.to_owned()
                });
                assert!(found == first, "another result");
            },
        );
    })
}

fn once(module: &FrozenModule) {
    let args = arguments(|heap| {
        vec![
            heap.alloc(TenSteps::NAME),
            heap.alloc(TenSteps::PRICE),
            heap.alloc(TenSteps::QUANTITY),
            heap.alloc(AllocList(TenSteps::TAGS)),
        ]
    });
    call(module, args, |found| {
        let found = DictRef::from_value(found).expect("a dictionary");
        let member = |name: &str| found.get_str(name).expect("a member");
        let text = |name: &str| member(name).unpack_str().expect("a text").to_owned();
        let found = TenSteps {
            net: number(member("net")),
            count: number(member("count")),
            text: text("text"),
            label: text("label"),
            joined: text("joined"),
        };
        found.check();
    });
}
