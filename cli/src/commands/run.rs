//! `a99 run`: runs a program and prints its outcome.

use super::computer::Computer;
use crate::args::{CostModelArg, RunArgs, StorePlace};
use crate::config::EffectiveConfig;
use crate::config::models::SECTION;
use crate::duration::milliseconds;
use crate::failure::{Exit, Failure, UNDECLARED};
use crate::input::{self, JsonArg};
use crate::output::Format;
use crate::progress::Progress;
use crate::script::Script;
use crate::stream::{self, Stream};
use crate::{agents, embed, help, models, network, output, profile, recording, store};
use a99_core::diag::{Diagnostic, excerpt, suggest};
use agent99::account::{Account, AccountLimits, Money};
use agent99::{
    AbortSignal, Agent, AtomTimeout, CostModel, Engine, ErrorCode, Map, RunOptions, Text,
    TraceLines, Value,
};
use std::collections::HashSet;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

mod outcome;

pub(crate) use outcome::error_text;
use outcome::{as_event, outcome_json, show};

/// Note for a program that ends without a result.
const NO_RESULT: &str = "The program returned no result: a `return` step gives one";

/// Default fuel of a run.
const FUEL: f64 = 1000.0;

/// Default timeout of a run that may reach the network.
const WITH_NETWORK: Duration = Duration::from_secs(600);

/// Most undeclared arguments to report.
const MAX_UNDECLARED: usize = 8;

pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let computer = Computer::of(args)?;
    let config = EffectiveConfig::of(&args.config, Some(&args.program.program))?;
    let input = Inputs::read(args, &config)?;
    let engine = input.script.engine_builder(&config.set)?;
    #[cfg(feature = "jit")]
    let engine = match args.no_jit {
        true => engine.compiled_tier(agent99::CompiledTier::Off),
        false => engine,
    };
    let engine = engine.build();
    check_ops(&config, &engine)?;
    if let (Some((file, granted)), false) = (config.granted_by_file(), args.program.json) {
        let granted = granted.iter().map(|(name, values)| match *name {
            SECTION => format!("[{name}] {values}"),
            name => format!("{name} = {values}"),
        });
        let granted: Vec<String> = granted.collect();
        output::note("grants", &format!("{file}: {}", granted.join("; ")));
    }
    let keys = args.require_signed.as_deref().map(input::trusted_keys);
    let keys = keys.transpose()?;
    let source = input::read(&args.program.program)?;
    if let Some(keys) = &keys {
        source.check_signature(keys)?;
    }
    let (agent, source) = input::agent_in(&engine, source, args.lenient)?;
    // Open it before the run: a failure afterwards would waste the run.
    let trace = open_output(args, &config, "--trace", args.trace.as_deref(), |path| {
        File::create(path)
    })?;
    let record = args.record.as_deref();
    let record = open_output(args, &config, "--record", record, recording::create)?;
    let replay = args.replay.as_deref().map(recording::read).transpose()?;
    let form = args.profile.as_deref().map(profile::form).transpose()?;
    let profile = args.profile.as_deref();
    let profile = open_output(args, &config, "--profile", profile, |path| {
        File::create(path)
    })?;
    let signal = AbortSignal::new();
    let options = options(args, &config, input.context)?.signal(signal.clone());
    let options = match args.program.json {
        true => options,
        false => options.console(stream::log),
    };
    // Options of sub-agents; their steps are not part of this run's trace.
    let of_agents = stream::AgentLines::default();
    let inherited = match args.program.json {
        true => of_agents.of(options.clone()),
        false => options.clone(),
    };
    let options = options.account(Account::new("", account_limits(&config)?));
    let mut notes = undeclared(&agent, &input.args);
    notes.extend(network::unused_headers(&config));
    let progress = args
        .progress
        .then(|| Progress::start(config.set.fuel.unwrap_or(FUEL)));
    let options = match &progress {
        Some(progress) => options.progress(progress.counters()),
        None => options,
    };
    let trace = trace.map(|(name, file)| (name, Arc::new(TraceLines::new(file))));
    let options = match &trace {
        Some((_, lines)) => options.trace_to(Arc::clone(lines)),
        None => options,
    };

    let format = match args.program.json {
        true => Format::Json,
        false => Format::Human,
    };
    let stream = args.stream.then(|| Stream::start(format)).transpose()?;
    let (stream, events) = stream.unzip();
    let options = RunOptions { events, ..options };

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::about("cannot start the runtime", error))?;
    let store = store::open(&config, input.script.clock(&config.set)?)?;
    let mut profiled = None;
    let outcome = runtime.block_on(async {
        if let Some(recording) = &replay {
            on_interrupt(signal)?;
            let replayed = engine.replay(&agent, recording, options).await;
            return Ok(recording::outcome(replayed, &agent));
        }
        let granted = computer.grant(input.script.granted(&config.set).await?)?;
        let granted = network::with_xml(network::grant(&config, granted)?);
        let granted = embed::grant(&config, granted)?;
        let granted = models::grant(&config, granted)?;
        crate::limits::check(&config, &granted)?;
        let granted = store.grant(&config, granted)?;
        let granted = agents::grant(&engine, &config, keys.as_ref(), &inherited, granted)?;
        // Install the handler before the program starts.
        on_interrupt(signal)?;
        match record {
            Some((name, file)) => {
                let mut file = BufWriter::new(file);
                let run = engine.record(&agent, input.args, options, granted, &mut file);
                run.await.map_err(|error| Failure::about(&name, error))
            }
            None if profile.is_some() => {
                let run = engine.run_profiled(&agent, input.args, options, granted);
                let (outcome, found) = run.await;
                profiled = Some(found);
                Ok(outcome)
            }
            None => Ok(engine.run(&agent, input.args, options, granted).await),
        }
    });
    if let Some(progress) = progress {
        let used = outcome.as_ref().ok().map(|end| end.fuel_used.to_f64());
        progress.end(used);
    }
    if let Some(stream) = stream {
        stream.end();
    }
    store.close();
    let mut outcome = outcome?;
    let warnings = config.warnings.iter().map(|text| Text::from(text.as_str()));
    outcome.warnings.extend(warnings);
    let mut place = None;
    if let Some(error) = &mut outcome.error {
        computer.explain(error);
        help::advise(error, &source, engine.atoms());
        place = error.pointer.as_deref().and_then(|at| agent.line_col(at));
    } else if outcome.result.is_undefined() {
        outcome.result = Value::Null;
        outcome.warnings.push(NO_RESULT.into());
    }
    runtime.block_on(computer.stop());
    if let (Some((name, file)), Some(form), Some(found)) = (profile, form, &profiled) {
        let usage = outcome.usage.as_ref().filter(|usage| !usage.is_plain());
        let usage = usage.map(|usage| usage.to_json().to_json());
        let shown = profile::Shown {
            name: &source.name,
            text: &source.bytes,
            profile: found,
            fuel: outcome.fuel_used,
            usage,
        };
        let text = shown.write(form, &agent);
        let written = { file }.write_all(text.as_bytes());
        written.map_err(|error| Failure::about(&name, error))?;
    }

    if let Some((name, lines)) = trace {
        match lines.finish() {
            // A closed pipe is no error.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                return Err(Failure::about(&name, error));
            }
            _ => {}
        }
    }
    if args.program.json {
        of_agents.add_to(&mut outcome);
        let found = agent.warnings().iter().cloned().chain(notes);
        let mut json = outcome_json(&outcome, &found.collect(), place);
        if let (Value::Object(map), Some((file, granted))) = (&mut json, config.granted_by_file()) {
            let mut by_file = Map::new();
            by_file.insert("file", file);
            for (name, values) in granted {
                by_file.insert(name, values);
            }
            map.insert("granted_by_file", by_file);
        }
        output::json(&match args.stream {
            true => as_event(json),
            false => json,
        });
    } else {
        super::show_warnings(&agent, &source);
        for note in &notes {
            let help = note.help.as_deref().unwrap_or_default();
            output::err(&format!(
                "warning[{}]: {}\n  = help: {help}\n",
                note.code, note.message
            ));
        }
        let place = place.map(|place| (source.name.as_str(), place));
        show(&outcome, place);
    }
    let exit = outcome.error.as_ref().map(|error| Exit::of(error.code));
    Ok(exit.unwrap_or(Exit::Ok))
}

/// Token and money limits of the run.
pub(crate) fn account_limits(config: &EffectiveConfig) -> Result<AccountLimits, Failure> {
    let money = config.set.max_money.map(|units| {
        let wrong = || config.wrong("max-money", 0, "it is too much", "write a smaller number");
        Money::from_units(units).ok_or_else(wrong)
    });
    Ok(AccountLimits {
        tokens: config.set.max_tokens,
        money: money.transpose()?,
        ..AccountLimits::default()
    })
}

/// Inputs of a run in addition to the program.
struct Inputs {
    args: Value,
    context: Option<Value>,
    script: Script,
}

impl Inputs {
    fn read(args: &RunArgs, config: &EffectiveConfig) -> Result<Inputs, Failure> {
        input::only_one_stdin(input_files(args))?;
        let context = args.context.as_ref().map(|given| given.object("--context"));
        let context = context.transpose()?;
        let script = match &args.script {
            Some(path) => Script::parse(&input::read_for("--script", path)?)?,
            None => Script::default(),
        };
        Ok(Inputs {
            args: match &args.args {
                Some(given) => given.object("--args")?,
                None => Value::Object(Map::new()),
            },
            context: with_env(context, config)?,
            script,
        })
    }
}

/// The request context with the environment variables that atoms may read.
pub(crate) fn with_env(
    context: Option<Value>,
    config: &EffectiveConfig,
) -> Result<Option<Value>, Failure> {
    let names = &config.set.env;
    if names.is_empty() {
        return Ok(context);
    }
    let mut env = Map::new();
    for (at, name) in names.iter().enumerate() {
        // Parsing has refused unreadable names already.
        let Ok(name) = &name.0 else { continue };
        let value = name
            .read()
            .map_err(|wrong| config.wrong("env", at, wrong.text, wrong.help))?;
        env.insert(&*name.0, value);
    }
    let mut context = context.unwrap_or_else(|| Value::Object(Map::new()));
    let wrong = |why: &str, help: &str| Err(config.wrong("env", 0, why, help));
    match &mut context {
        Value::Object(map) if map.get("env").is_none() => {
            map.insert("env", Value::Object(env));
            Ok(Some(context))
        }
        Value::Object(_) => wrong(
            "it and the member `env` of --context exclude each other",
            "leave one of them out",
        ),
        // A given context is an object.
        _ => Ok(Some(context)),
    }
}

/// Input files of a run.
pub(crate) fn input_files(args: &RunArgs) -> impl Iterator<Item = &Path> {
    let values = [&args.args, &args.context];
    let values = values
        .into_iter()
        .filter_map(|arg| arg.as_ref().and_then(JsonArg::path));
    [args.program.program.as_path()]
        .into_iter()
        .chain(args.script.as_deref())
        .chain(args.replay.as_deref())
        .chain(args.config.config.as_deref())
        .chain(args.require_signed.as_deref())
        .chain(
            args.config
                .set
                .agent
                .iter()
                .map(|agent| agent.file.as_path()),
        )
        .chain(values)
}

/// Refuses options for an unknown op: a misspelt quota would guard nothing.
pub(crate) fn check_ops(config: &EffectiveConfig, engine: &Engine) -> Result<(), Failure> {
    let set = &config.set;
    let quotas = set.quota.iter().map(|(op, _)| op).enumerate();
    let costs = set.cost.iter().map(|(op, _)| op).enumerate();
    let times = set.atom_timeout.iter().map(|(op, _)| op).enumerate();
    let all = quotas
        .map(|of| ("quota", of))
        .chain(costs.map(|of| ("cost", of)))
        .chain(times.map(|of| ("atom-timeout", of)));
    let mut seen = HashSet::new();
    for (option, (at, op)) in all {
        // Refuse two limits for one op: either choice would be a guess.
        if !seen.insert((option, op)) {
            let text = format!("`{}` is there twice", excerpt(op));
            return Err(config.wrong(option, at, text, "leave one of them out"));
        }
        if engine.atoms().get(op).is_some() {
            continue;
        }
        let known = engine.atoms().iter().map(|atom| &*atom.sig.name);
        let known: Vec<&str> = known.filter(|name| !name.contains(':')).collect();
        let lower = op.to_ascii_lowercase();
        // `fetch` is part of the name `httpFetch`.
        let holds = |name: &&str| lower.len() > 2 && name.to_ascii_lowercase().contains(&lower);
        let nearest = suggest(op, known.iter().copied());
        let nearest = nearest.or_else(|| known.into_iter().find(holds).map(str::to_owned));
        return Err(Failure::coded(
            ErrorCode::UnknownOp.as_str(),
            format!(
                "{}: there is no op named `{}`",
                config.named(option, at),
                excerpt(op)
            ),
            match nearest {
                _ if op.contains(['=', ',']) => {
                    let first = op.split('=').next().unwrap_or(op);
                    format!("repeat the option for each op: `--{option} {first}=N --{option} OP=N`")
                }
                Some(name) => format!("did you mean `{name}`?"),
                None => "`a99 tools` lists them".to_owned(),
            },
        ));
    }
    Ok(())
}

/// Warnings about arguments that the program's `inputSchema` does not declare. Most likely they are
/// misspelt, and the program does not read them.
fn undeclared(agent: &Agent, args: &Value) -> Vec<Diagnostic> {
    let schema = agent.artifact().program().input_schema.as_ref();
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let open = schema.is_some_and(|schema| schema.get("additionalProperties").is_some());
    let (Some(properties), Some(args), false) = (properties, args.as_object(), open) else {
        return Vec::new();
    };
    let names: Vec<_> = properties.keys().map(Text::to_string_lossy).collect();
    // A given argument is not the intended one.
    let free: Vec<&str> = properties
        .keys()
        .zip(&names)
        .filter(|(key, _)| args.get_bytes(key.as_bytes()).is_none())
        .map(|(_, name)| &**name)
        .collect();
    let unknown = args
        .keys()
        .filter(|name| properties.get_bytes(name.as_bytes()).is_none());
    let told = unknown.take(MAX_UNDECLARED).map(|name| {
        let name = name.to_string_lossy();
        let help = match suggest(&name, free.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it declares `{}`", excerpt(&names.join("`, `"))),
        };
        let name = excerpt(&name);
        let message = format!("--args: the program's inputSchema declares no argument `{name}`");
        Diagnostic::warning(UNDECLARED, message, "")
            .with_offending(name)
            .with_help(help)
    });
    told.collect()
}

/// Opens a file that the run writes, which must not overwrite an input of the run (security P06).
fn open_output(
    args: &RunArgs,
    config: &EffectiveConfig,
    option: &str,
    path: Option<&Path>,
    create: impl Fn(&Path) -> std::io::Result<File>,
) -> Result<Option<(String, File)>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    let name = format!("{option} {}", path.display());
    if path == Path::new(input::STDIN) {
        return Err(Failure::about(
            option,
            "name a file: standard output has the result",
        ));
    }
    let real = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    let is_input = real(path)
        .is_some_and(|target| input_files(args).any(|input| real(input).as_ref() == Some(&target)));
    // The store's file may not exist yet.
    let place = |path: &Path| real(path).or_else(|| std::path::absolute(path).ok());
    let store = config
        .set
        .store
        .as_ref()
        .and_then(StorePlace::file)
        .and_then(place);
    if is_input || store.is_some() && store == place(path) {
        return Err(Failure::advised(
            &name,
            "would overwrite an input of this run",
            "name another file",
        ));
    }
    match create(path) {
        Ok(file) => Ok(Some((name, file))),
        Err(error) => Err(Failure::of_file(&name, path, &error)),
    }
}

fn options(
    args: &RunArgs,
    config: &EffectiveConfig,
    context: Option<Value>,
) -> Result<RunOptions, Failure> {
    let set = &config.set;
    let mut options = limits(config)?;
    // A run that waits for others needs more time than its fuel stands for.
    let waits = !set.allow.is_empty() || set.llm.is_some() || config.models.is_some();
    let usual = waits.then_some(WITH_NETWORK);
    let time = args.timeout_ms.map(Duration::from_millis);
    if let Some(time) = set.timeout.filter(|_| time.is_none()).or(time).or(usual) {
        options = options.timeout_ms(milliseconds(time));
    }
    if let Some(context) = context {
        options = options.context(context);
    }
    Ok(options)
}

/// Options that limit a run, except its timeout.
pub(crate) fn limits(config: &EffectiveConfig) -> Result<RunOptions, Failure> {
    let set = &config.set;
    let bad = |name: &str, at: usize, error: &dyn std::fmt::Display| {
        config.wrong(name, at, error, "write a smaller number")
    };
    let mut options = RunOptions::new()
        .fuel(set.fuel.unwrap_or(FUEL))
        .map_err(|error| bad("fuel", 0, &error))?
        .cost_model(match set.cost_model {
            Some(CostModelArg::Flat) => CostModel::Flat,
            Some(CostModelArg::Metered) | None => CostModel::Metered,
        });
    for (op, time) in &set.atom_timeout {
        let limit = time.map_or(AtomTimeout::None, |time| {
            AtomTimeout::Ms(milliseconds(time))
        });
        options = options.atom_timeout(op, limit);
    }
    if let Some(mib) = set.heap_mib {
        let bytes = (mib as usize).saturating_mul(1 << 20);
        options = options.heap_bytes(bytes);
    }
    for (at, (op, units)) in set.cost.iter().enumerate() {
        options = options
            .cost(op, *units)
            .map_err(|error| bad("cost", at, &error))?;
    }
    for (op, calls) in &set.quota {
        options = options.quota(op, *calls);
    }
    Ok(options.readable_context(set.readable_context.iter().map(String::as_str)))
}

/// The first interrupt aborts the run; the second ends the process, in case the run does not react.
/// Returns when the handler is installed.
///
/// A separate thread waits for interrupts: the run's thread is blocked while the program executes a
/// single long operation.
fn on_interrupt(signal: AbortSignal) -> Result<(), Failure> {
    let failed = |error| Failure::about("cannot listen for interrupts", error);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let (listens, listening) = std::sync::mpsc::channel::<()>();
    let listen = async move {
        loop {
            let mut interrupt = pin!(tokio::signal::ctrl_c());
            // The first poll installs the handler.
            let first = poll_fn(|cx| Poll::Ready(interrupt.as_mut().poll(cx))).await;
            let _ = listens.send(());
            let interrupted = match first {
                Poll::Ready(interrupted) => interrupted,
                Poll::Pending => interrupt.await,
            };
            match interrupted {
                Ok(()) if signal.is_aborted() => {
                    std::process::exit(i32::from(Exit::Aborted.code()));
                }
                Ok(()) => signal.abort(),
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new()
        .name("interrupts".to_owned())
        .spawn(move || runtime.block_on(listen))
        .map_err(failed)?;
    // If interrupts cannot be handled, they end the process.
    let _ = listening.recv();
    Ok(())
}
