//! Lua 5.4 with a count hook and a memory limit.

use crate::ours::{COMPILES, EVALUATIONS, TURNS};
use crate::{Entry, LUA, entry, work};
use a99_benches::{FUEL, HEAP_BYTES, TIMEOUT_MS};
use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Thread, VmState};
use std::cell::Cell;
use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many instructions pass between two looks at budget and deadline.
const HOOK_EVERY: u32 = 1_000;
/// Isolated states at once; fewer than our runs, for they are larger.
const STATES: u64 = 500;
/// Isolated states that run the compiled agent once.
const FRESH: u64 = 500;

/// A state with its limits on.
pub fn limited() -> Lua {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::COROUTINE;
    let lua = Lua::new_with(libraries, LuaOptions::default()).expect("a state");
    lua.set_memory_limit(HEAP_BYTES)
        .expect("this allocator has limits");
    let budget = Cell::new(FUEL);
    let deadline = Instant::now() + Duration::from_millis(TIMEOUT_MS);
    lua.set_global_hook(
        HookTriggers::new().every_nth_instruction(HOOK_EVERY),
        move |_, _| {
            budget.set(budget.get() - f64::from(HOOK_EVERY));
            if budget.get() <= 0.0 || Instant::now() >= deadline {
                return Err(mlua::Error::runtime("stopped"));
            }
            Ok(VmState::Continue)
        },
    )
    .expect("a hook");
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

pub fn entries() -> Vec<Entry> {
    let turn = "local n = ... local i, s = 0.0, 0.0 while i < n do BODY i = i + 1 end return s";
    let body = |text: &str| turn.replace("BODY", text);
    vec![
        looped(work::W2, &body("s = s + i * i % 7")),
        looped(work::W2D, &body("s = s + i * i")),
        looped(work::EMPTY, &body("")),
        looped(work::W7, &body("s = inc(i)")),
        condition_loop(),
        condition_map(),
        compile(),
        cold(),
        fresh(),
        start(),
    ]
}

fn function(lua: &Lua, text: &str) -> Function {
    lua.load(text).into_function().expect("a good chunk")
}

fn looped(work: &'static str, text: &str) -> Entry {
    let lua = limited();
    let inc = lua
        .create_function(|_, x: f64| Ok(x + 1.0))
        .expect("a function");
    lua.globals().set("inc", inc).expect("a global");
    let run = function(&lua, text);
    entry(work, LUA, move || {
        let _alive = &lua;
        black_box(run.call::<f64>(f64::from(TURNS)).expect("the loop ends"));
        u64::from(TURNS)
    })
}

fn condition_loop() -> Entry {
    let lua = limited();
    let run = function(
        &lua,
        r#"local n, a, b, c, d, e, f, name = ...
           local i, hits = 0.0, 0.0
           while i < n do
             if a*b + c/d - e%f > 10 and name == "x" then hits = hits + 1 end
             i = i + 1
           end
           return hits"#,
    );
    entry(work::W1_LOOP, LUA, move || {
        let _alive = &lua;
        let args = (f64::from(TURNS), 3.5, 4.0, 9.0, 2.0, 7.0, 4.0, "x");
        let hits: f64 = run.call(args).expect("the loop ends");
        assert_eq!(hits, f64::from(TURNS));
        u64::from(TURNS)
    })
}

fn condition_map() -> Entry {
    let lua = limited();
    let run = function(
        &lua,
        "local m = ... return m.a*m.b + m.c/m.d - m.e%m.f > 10 and m.name == 'x'",
    );
    let numbers = HashMap::from([
        ("a", 3.5),
        ("b", 4.0),
        ("c", 9.0),
        ("d", 2.0),
        ("e", 7.0),
        ("f", 4.0),
    ]);
    entry(work::W1_MAP, LUA, move || {
        for _ in 0..EVALUATIONS {
            let map = lua.create_table_with_capacity(0, 7).expect("a table");
            for (key, number) in &numbers {
                map.raw_set(*key, *number).expect("a member");
            }
            map.raw_set("name", "x").expect("a member");
            assert!(run.call::<bool>(map).expect("the condition holds"));
        }
        EVALUATIONS
    })
}

fn compile() -> Entry {
    let lua = limited();
    entry(work::W8_COMPILE, LUA, move || {
        for _ in 0..COMPILES {
            black_box(function(&lua, TEN_STEPS));
        }
        COMPILES
    })
}

fn args(lua: &Lua) -> Table {
    let args = lua.create_table().expect("a table");
    args.set("name", "Ada").expect("a member");
    args.set("price", 12.5).expect("a member");
    args.set("quantity", 10.0).expect("a member");
    args.set("tags", ["a", "b", "c"]).expect("a member");
    args
}

fn once(lua: &Lua, run: &Function) -> f64 {
    let result: Table = run.call(args(lua)).expect("the agent runs");
    result.get("net").expect("a number")
}

fn cold() -> Entry {
    entry(work::W8_COLD, LUA, move || {
        for _ in 0..FRESH {
            let lua = limited();
            black_box(once(&lua, &function(&lua, TEN_STEPS)));
        }
        FRESH
    })
}

fn fresh() -> Entry {
    let code = function(&limited(), TEN_STEPS).dump(true);
    entry(work::W8_FRESH, LUA, move || {
        for _ in 0..FRESH {
            let lua = limited();
            let run = lua
                .load(&code[..])
                .set_mode(ChunkMode::Binary)
                .into_function()
                .expect("bytecode");
            black_box(once(&lua, &run));
        }
        FRESH
    })
}

/// An isolated state whose run waits on the host.
pub fn suspended() -> (Lua, Thread) {
    let lua = limited();
    let run = function(
        &lua,
        "local i = 1 local answer = coroutine.yield(i) return answer",
    );
    let thread = lua.create_thread(run).expect("a coroutine");
    thread.resume::<f64>(()).expect("it yields");
    (lua, thread)
}

fn start() -> Entry {
    entry(work::W9_START, LUA, move || {
        let waiting: Vec<_> = (0..STATES).map(|_| suspended()).collect();
        black_box(waiting.len() as u64)
    })
}
