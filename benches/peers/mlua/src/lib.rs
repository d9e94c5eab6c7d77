//! Lua through mlua: Lua 5.4, Luau, or LuaJIT with its compiler off, by the feature.
//!
//! Each state has its limits on: a hook (in Luau the interrupt) that looks at a budget and
//! a deadline, and a memory limit of 256 MiB.

use a99_benches_work::inputs::{self, TAGS, TenSteps};
use a99_benches_work::list;
use a99_benches_work::protocol::{About, Entry, time};
use a99_benches_work::{Size, Task, ready};
use mlua::serde::SerializeOptions;
use mlua::{
    Function, Lua, LuaOptions, LuaSerdeExt, LuaString, StdLib, Table, Thread, Value, VmState,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What the program says of itself.
pub const ABOUT: About = About {
    name: DIALECT,
    version: VERSION,
    limits: LIMITS,
};

#[cfg(feature = "lua54")]
const DIALECT: &str = "lua54";
#[cfg(feature = "lua54")]
const VERSION: &str = "Lua 5.4 of mlua 0.12.2";
#[cfg(feature = "lua54")]
const LIMITS: &str =
    "hook every 1,000 instructions for budget and deadline, memory limit of 256 MiB";

#[cfg(feature = "luajit")]
const DIALECT: &str = "luajit";
#[cfg(feature = "luajit")]
const VERSION: &str = "LuaJIT 2.1 of mlua 0.12.2, its compiler off";
#[cfg(feature = "luajit")]
const LIMITS: &str =
    "hook every 1,000 instructions for budget and deadline, memory limit of 256 MiB";

#[cfg(feature = "luau")]
const DIALECT: &str = "luau";
#[cfg(feature = "luau")]
const VERSION: &str = "Luau of mlua 0.12.2, interpreted";
#[cfg(feature = "luau")]
const LIMITS: &str = "interrupt for budget and deadline, memory limit of 256 MiB, sandbox";

/// How many instructions pass between two looks at budget and deadline.
#[cfg(not(feature = "luau"))]
const HOOK_EVERY: u32 = 1_000;

/// Interrupts of Luau, which come at calls and at loops' ends, between two looks at the
/// clock.
#[cfg(feature = "luau")]
const CLOCK_EVERY: f64 = 1_000.0;

const BUDGET: f64 = 1e12;
/// Four times ours: garbage lies about until a collection, and 64 MiB are too little for the
/// rows of Luau and LuaJIT and for the calls that mlua drives.
const HEAP_BYTES: usize = 256 << 20;
const TIMEOUT: Duration = Duration::from_secs(600);

/// A new state takes ten times as long as a new run of ours.
const STATES: u32 = 20;

/// A state with its limits on.
pub fn limited() -> Lua {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
    #[cfg(not(feature = "luajit"))]
    let libraries = libraries | StdLib::COROUTINE;
    #[cfg(feature = "luajit")]
    let libraries = libraries | StdLib::JIT;
    let lua = Lua::new_with(libraries, LuaOptions::default()).expect("a state");
    limit(&lua);
    lua
}

#[cfg(not(feature = "luau"))]
fn limit(lua: &Lua) {
    #[cfg(feature = "luajit")]
    lua.load("jit.off() jit.flush()").exec().expect("a switch");
    lua.set_memory_limit(HEAP_BYTES)
        .expect("this allocator has limits");
    let budget = Cell::new(BUDGET);
    let deadline = Instant::now() + TIMEOUT;
    let triggers = mlua::HookTriggers::new().every_nth_instruction(HOOK_EVERY);
    lua.set_global_hook(triggers, move |_, _| {
        budget.set(budget.get() - f64::from(HOOK_EVERY));
        if budget.get() <= 0.0 || Instant::now() >= deadline {
            return Err(mlua::Error::runtime("stopped"));
        }
        Ok(VmState::Continue)
    })
    .expect("a hook");
}

#[cfg(feature = "luau")]
fn limit(lua: &Lua) {
    lua.set_memory_limit(HEAP_BYTES)
        .expect("this allocator has limits");
    let budget = Cell::new(BUDGET);
    let until_clock = Cell::new(CLOCK_EVERY);
    let deadline = Instant::now() + TIMEOUT;
    lua.set_interrupt(move |_| {
        budget.set(budget.get() - 1.0);
        until_clock.set(until_clock.get() - 1.0);
        if until_clock.get() <= 0.0 {
            until_clock.set(CLOCK_EVERY);
            if Instant::now() >= deadline {
                return Err(mlua::Error::runtime("stopped"));
            }
        }
        if budget.get() <= 0.0 {
            return Err(mlua::Error::runtime("stopped"));
        }
        Ok(VmState::Continue)
    });
}

/// Once its globals are there: reads of them are fast in Luau when they cannot change.
fn sealed(lua: Lua) -> Lua {
    #[cfg(feature = "luau")]
    lua.sandbox(true).expect("a sandbox");
    lua
}

const TEN_STEPS: &str = r#"
    local a = ...
    local name, price, quantity, tags = a.name, a.price, a.quantity, a.tags
    local total = price * quantity
    local discount = 0.0
    if total > 100 then discount = 0.1 end
    local net = total * (1 - discount)
    local count = #tags
    local text = name .. " owes " .. net
    local label = string.upper(name)
    local joined = table.concat(tags, ",")
    return { net = net, count = count, text = text, label = label, joined = joined }
"#;

const ROWS: &str = r#"
    local n, tags = ...
    local rows = {}
    for i = 0, n - 1 do
      rows[i + 1] = { id = i, price = i % 97 + 0.5, qty = i % 5 + 1, tag = tags[i % 4 + 1] }
    end
    local totals = {}
    for at, row in ipairs(rows) do
      totals[at] = { id = row.id, tag = row.tag, total = row.price * row.qty }
    end
    local large = {}
    for _, t in ipairs(totals) do
      if t.total > 50 then large[#large + 1] = t end
    end
    local sum = 0.0
    for _, t in ipairs(large) do sum = sum + t.total end
    local counts = {}
    for _, t in ipairs(large) do counts[t.tag] = (counts[t.tag] or 0) + 1 end
    return { sum = sum, counts = counts }
"#;

const WORDS: &str = r#"
    local text = ...
    local words = {}
    for word in string.gmatch(text, "[^ ]+") do words[#words + 1] = word end
    local lines = {}
    for at, word in ipairs(words) do lines[at] = "<li>" .. word .. "</li>" end
    return table.concat(lines, "\n")
"#;

const ORDERS: &str = r#"
    local text = ...
    local orders = decode(text)
    local short = {}
    for at, order in ipairs(orders) do
      local picked = { id = order.id, customer = order.customer, total = order.total }
      local fields = 0
      for _ in pairs(order) do fields = fields + 1 end
      local merged = {}
      for key, value in pairs(picked) do merged[key] = value end
      for key, value in pairs({ seen = true, fields = fields }) do merged[key] = value end
      short[at] = merged
    end
    return encode(short)
"#;

const CONDITION: &str = "a*b + c/d - e%f > 10 and name == 'x'";

/// What takes time.
pub const TIMED: &[Entry] = &[
    (list::W1_MAP, condition_map),
    (list::W1_BOUND, |size| {
        let lua = sealed(limited());
        let run = function(
            &lua,
            &format!("local a, b, c, d, e, f, name = ... return {CONDITION}"),
        );
        Task::all(size.evaluations, move || {
            let _alive = &lua;
            for _ in 0..size.evaluations {
                let args = (3.5, 4.0, 9.0, 2.0, 7.0, 4.0, "x");
                assert!(run.call::<bool>(args).expect("the condition holds"));
            }
        })
    }),
    (list::W1_LOOP, |size| {
        let text = format!(
            "local n, a, b, c, d, e, f, name = ... local i, hits = 0.0, 0.0
             while i < n do if {CONDITION} then hits = hits + 1 end i = i + 1 end return hits"
        );
        let lua = sealed(limited());
        let run = function(&lua, &text);
        let n = f64::from(size.turns);
        Task::all(size.turns, move || {
            let _alive = &lua;
            let args = (n, 3.5, 4.0, 9.0, 2.0, 7.0, 4.0, "x");
            assert_eq!(run.call::<f64>(args).expect("the loop ends"), n);
        })
    }),
    (list::W2, |size| {
        looped(
            "s = s + i * i % 7",
            size,
            inputs::sum_of_remainders(size.turns),
        )
    }),
    (list::W2D, |size| {
        looped("s = s + i * i", size, inputs::sum_of_squares(size.turns))
    }),
    (list::W3, |size| {
        let lua = sealed(limited());
        let run = function(
            &lua,
            "local n = ...
             local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
             return fib(n)",
        );
        let (n, wanted) = (f64::from(size.fib), inputs::fibonacci(size.fib));
        Task::all(inputs::fibonacci_calls(size.fib), move || {
            let _alive = &lua;
            assert_eq!(run.call::<f64>(n).expect("it returns"), wanted);
        })
    }),
    (list::W4, rows),
    (list::W5, |size| {
        let lua = sealed(limited());
        let run = function(&lua, WORDS);
        let text = inputs::text(size.words);
        let page = inputs::page(&text);
        Task::all(size.words, move || {
            let _alive = &lua;
            let found: LuaString = run.call(text.as_str()).expect("it returns");
            assert!(found.as_bytes() == page.as_bytes(), "another page");
        })
    }),
    (list::W6, orders),
    (list::W7_SYNC, |size| {
        let lua = limited();
        let inc = lua.create_function(|_, x: f64| Ok(x + 1.0));
        lua.globals()
            .set("inc", inc.expect("a function"))
            .expect("a global");
        host_calls(sealed(lua), size, |run, n| {
            run.call(n).expect("the loop ends")
        })
    }),
    (list::W7_ASYNC, |size| {
        let lua = limited();
        let inc = lua.create_async_function(|_, x: f64| async move { Ok(x + 1.0) });
        lua.globals()
            .set("inc", inc.expect("a function"))
            .expect("a global");
        host_calls(sealed(lua), size, |run, n| {
            ready(run.call_async(n)).expect("the loop ends")
        })
    }),
    (list::W8_COMPILE, |size| {
        let lua = sealed(limited());
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                drop(function(&lua, TEN_STEPS));
            }
        })
    }),
    (list::W8_COLD, |size| {
        let size = size.few_states(STATES);
        Task::all(size.compiles, move || {
            for _ in 0..size.compiles {
                let lua = sealed(limited());
                once(&lua, &function(&lua, TEN_STEPS));
            }
        })
    }),
    (list::W8_FRESH, fresh),
    (list::W9_START, |size| {
        let size = size.few_states(STATES);
        Task::all(size.waiting, move || drop(waiting(size.waiting)))
    }),
    (list::W9_RESUME, |size| {
        let size = size.few_states(STATES);
        Task::Part {
            operations: u64::from(size.waiting),
            run: Box::new(move || {
                let waiting = waiting(size.waiting);
                // Each coroutine ends; their states do after the time was taken.
                time(|| {
                    for (_, thread) in &waiting {
                        assert_eq!(thread.resume::<f64>(2.0).expect("it ends"), 2.0);
                    }
                })
            }),
        }
    }),
];

fn function(lua: &Lua, text: &str) -> Function {
    lua.load(text).into_function().expect("a good chunk")
}

fn looped(body: &str, size: Size, sum: f64) -> Task {
    let lua = sealed(limited());
    let text =
        format!("local n = ... local i, s = 0.0, 0.0 while i < n do {body} i = i + 1 end return s");
    let run = function(&lua, &text);
    let n = f64::from(size.turns);
    Task::all(size.turns, move || {
        let _alive = &lua;
        assert_eq!(run.call::<f64>(n).expect("the loop ends"), sum);
    })
}

fn condition_map(size: Size) -> Task {
    let lua = sealed(limited());
    let run = function(
        &lua,
        "local m = ... return m.a*m.b + m.c/m.d - m.e%m.f > 10 and m.name == 'x'",
    );
    let numbers = HashMap::from(inputs::CONDITION);
    Task::all(size.evaluations, move || {
        for _ in 0..size.evaluations {
            let map = lua.create_table_with_capacity(0, 7).expect("a table");
            for (key, number) in &numbers {
                map.raw_set(*key, *number).expect("a member");
            }
            map.raw_set("name", "x").expect("a member");
            assert!(run.call::<bool>(map).expect("the condition holds"));
        }
    })
}

fn rows(size: Size) -> Task {
    let lua = sealed(limited());
    let run = function(&lua, ROWS);
    let wanted = inputs::rows(size.rows);
    Task::all(size.rows, move || {
        let tags = lua.create_sequence_from(TAGS).expect("a table");
        let args = (i64::from(size.rows), tags);
        let found: Table = run.call(args).expect("it returns");
        let counts: Table = found.get("counts").expect("a table");
        let counts = TAGS.map(|tag| counts.get::<Option<f64>>(tag).expect("a number"));
        let found = inputs::Rows {
            sum: found.get("sum").expect("a number"),
            counts: counts.map(Option::unwrap_or_default),
        };
        assert_eq!(found, wanted);
    })
}

/// JSON is read and written by functions of the host, from text to tables and back.
fn orders(size: Size) -> Task {
    let lua = limited();
    let decode = lua.create_function(|lua, text: LuaString| {
        let value: serde_json::Value =
            serde_json::from_slice(&text.as_bytes()).map_err(mlua::Error::external)?;
        lua.to_value_with(&value, SerializeOptions::new().set_array_metatable(false))
    });
    let encode = lua.create_function(|_, value: Value| {
        serde_json::to_string(&value).map_err(mlua::Error::external)
    });
    let globals = lua.globals();
    globals
        .set("decode", decode.expect("a function"))
        .expect("a global");
    globals
        .set("encode", encode.expect("a function"))
        .expect("a global");
    let lua = sealed(lua);
    let run = function(&lua, ORDERS);
    let text = inputs::orders(size.orders);
    let first: String = run.call(text.as_str()).expect("it returns");
    inputs::check_orders(&first, size.orders);
    Task::all(text.len() as u64, move || {
        let _alive = &lua;
        let found: LuaString = run.call(text.as_str()).expect("it returns");
        assert_eq!(found.as_bytes().len(), first.len());
    })
}

fn host_calls(lua: Lua, size: Size, call: fn(&Function, f64) -> f64) -> Task {
    let loops = |body: &str| {
        let text = format!(
            "local n = ... local i, s = 0.0, 0.0 while i < n do {body} i = i + 1 end return s"
        );
        function(&lua, &text)
    };
    let (calls, empty) = (loops("s = inc(i)"), loops(""));
    let n = f64::from(size.turns);
    let alive = lua.clone();
    Task::Net {
        operations: u64::from(size.turns),
        run: Box::new(move || {
            let _alive = &lua;
            assert_eq!(call(&calls, n), n);
        }),
        rest: Box::new(move || {
            let _alive = &alive;
            assert_eq!(call(&empty, n), 0.0);
        }),
    }
}

fn once(lua: &Lua, run: &Function) {
    let args = lua.create_table().expect("a table");
    args.set("name", TenSteps::NAME).expect("a member");
    args.set("price", TenSteps::PRICE).expect("a member");
    args.set("quantity", TenSteps::QUANTITY).expect("a member");
    args.set("tags", TenSteps::TAGS).expect("a member");
    let found: Table = run.call(args).expect("the agent runs");
    let found = TenSteps {
        net: found.get("net").expect("a number"),
        count: found.get("count").expect("a number"),
        text: found.get("text").expect("a text"),
        label: found.get("label").expect("a text"),
        joined: found.get("joined").expect("a text"),
    };
    found.check();
}

/// From bytecode, where the dialect gives it.
fn fresh(size: Size) -> Task {
    let size = size.few_states(STATES);
    #[cfg(not(feature = "luau"))]
    let code = function(&limited(), TEN_STEPS).dump(true);
    #[cfg(feature = "luau")]
    let code = mlua::chunk::Compiler::new()
        .compile(TEN_STEPS)
        .expect("a good chunk");
    Task::all(size.runs, move || {
        for _ in 0..size.runs {
            let lua = sealed(limited());
            let run = lua
                .load(&code[..])
                .set_mode(mlua::chunk::ChunkMode::Binary)
                .into_function();
            once(&lua, &run.expect("bytecode"));
        }
    })
}

/// Isolated states whose runs wait on the host.
pub fn waiting(count: u32) -> Vec<(Lua, Thread)> {
    let one = |_| {
        let lua = limited();
        let run = function(
            &lua,
            "local yield = ... local i = 1 local answer = yield(i) return answer",
        );
        let thread = lua.create_thread(run).expect("a coroutine");
        // LuaJIT has its coroutines in the base library.
        let yields: Function = lua
            .globals()
            .get::<Table>("coroutine")
            .and_then(|library| library.get("yield"))
            .expect("a library");
        assert_eq!(thread.resume::<f64>(yields).expect("it yields"), 1.0);
        (lua, thread)
    };
    (0..count).map(one).collect()
}

/// How many states are held at once.
pub fn held(size: Size) -> u32 {
    size.few_states(STATES).waiting
}
