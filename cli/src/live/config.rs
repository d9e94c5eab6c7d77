//! Agents of agents.toml: program, channels and grants of each.

mod fields;
mod include;
mod methods;

use crate::args::{DurabilityArg, KEYS};
use crate::config::file::{Mistakes, Places, Reading, several, table_of, text_of};
use crate::config::{BAD_VALUE, EffectiveConfig};
use crate::failure::{Failure, USAGE};
use crate::models::SECTION;
use a99_runtime::program::ProgramMethod;
use a99_runtime::{
    AgentKey, Delivery, EventOptions, HostOptions, OnDead, Policy, Replay, Tables, next_occurrence,
};
use a99_runtime_stores::Durability;
use fields::{At, Fields};
use serde_json::Value as Json;
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const FILE: &str = "agents.toml";

/// Default file of the store.
const STORE: &str = "agents.db";

const TOP: &[&str] = &["include", "store", SECTION, "agent"];

const OF_STORE: &[&str] = &["path", "durability", "keep-turns"];

/// Keys of an agent, in addition to settings of its runs.
const OF_AGENT: &[&str] = &[
    "name",
    "program",
    "channel",
    "channels",
    "handle",
    "config",
    "delivery",
    "concurrency",
    "retry",
    "on-dead",
    "on-lost",
    "invites",
    "max-deaths",
    "targeted-only",
    "respond-when-solo",
    "replay",
    "timers",
    "methods",
    "stream",
    "tables",
    "migrations",
];

/// Settings that a turn replaces with its time and randomness.
const NOT_OF_AGENT: &[&str] = &["seed", "now"];

const OF_RETRY: &[&str] = &["attempts", "first", "most"];

const OF_TIMER: &[&str] = &["name", "cron", "zone", "payload"];

/// Names of durabilities.
const DURABILITIES: &[(&str, Durability)] = &[
    ("process", Durability::Process),
    ("power", Durability::Power),
    ("relaxed", Durability::Relaxed),
];

impl From<DurabilityArg> for Durability {
    fn from(arg: DurabilityArg) -> Durability {
        match arg {
            DurabilityArg::Process => Durability::Process,
            DurabilityArg::Power => Durability::Power,
            DurabilityArg::Relaxed => Durability::Relaxed,
        }
    }
}

/// A parsed agents.toml with all included files.
#[derive(Clone, Debug)]
pub(super) struct AgentsFile {
    pub(super) store: PathBuf,
    /// Which commits a power cut may lose.
    pub(super) durability: Durability,
    /// How many of each agent's last turns are kept.
    pub(super) keep_turns: u32,
    /// All agents, including those of included files.
    pub(super) agents: Vec<Arc<AgentSpec>>,
}

#[derive(Debug)]
pub(super) struct AgentSpec {
    pub(super) name: String,
    /// The program or artifact.
    pub(super) program: PathBuf,
    /// Position in the file, for messages.
    pub(super) place: String,
    /// A key for each of its channels.
    pub(super) keys: Vec<AgentKey>,
    /// Default configuration, which users can change.
    pub(super) config: Json,
    /// Delivery policy of its events.
    pub(super) policy: Policy,
    /// Events that it receives.
    pub(super) events: EventOptions,
    /// Where its stream begins.
    pub(super) replay: Replay,
    pub(super) timers: Vec<TimerSpec>,
    /// Methods that others may call, by name.
    pub(super) methods: Vec<(String, ProgramMethod)>,
    /// Whether output of its models is streamed.
    pub(super) is_streaming: bool,
    /// Whether its program gets an event about lost turns.
    pub(super) hears_lost: bool,
    /// Names of the agents that its program may invite and remove.
    pub(super) guests: Vec<String>,
    pub(super) tables: Option<Tables>,
    /// Limits and grants of its runs.
    pub(super) run: EffectiveConfig,
}

/// A recurring timer.
#[derive(Clone, Debug)]
pub(super) struct TimerSpec {
    pub(super) name: String,
    pub(super) cron: String,
    pub(super) zone: Option<String>,
    pub(super) payload: Json,
}

impl AgentsFile {
    /// Reads the file with all files that it includes.
    ///
    /// # Errors
    /// All mistakes of one of them.
    pub(super) fn read(path: &Path, named: bool) -> Result<AgentsFile, Failure> {
        let mut file = read_one(path, named, true)?;
        for included in include::files(path, &file.include)? {
            let more = read_one(&included, named, false)?;
            file.agents.extend(more.agents);
        }
        check_names(&file.agents)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(AgentsFile {
            store: folder.join(file.store.unwrap_or_else(|| STORE.into())),
            durability: file.durability.unwrap_or(Durability::Process),
            keep_turns: (file.keep_turns).unwrap_or(HostOptions::default().keep_turns),
            agents: file.agents.into_iter().map(Arc::new).collect(),
        })
    }

    /// All keys, by agent.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&AgentKey, &Arc<AgentSpec>)> {
        let agents = self.agents.iter();
        agents.flat_map(|spec| spec.keys.iter().map(move |key| (key, spec)))
    }
}

/// One parsed file.
#[derive(Default)]
struct One {
    include: Vec<(String, String)>,
    store: Option<PathBuf>,
    durability: Option<Durability>,
    keep_turns: Option<u32>,
    agents: Vec<AgentSpec>,
}

fn read_one(path: &Path, named: bool, is_first: bool) -> Result<One, Failure> {
    let name = path.display().to_string();
    let text = text_of(path).map_err(|why| {
        let help = match path.exists() {
            true => "name a file of agents, as `a99 agent new NAME` writes one",
            false => "`a99 agent new NAME` writes one; `--config FILE` names another",
        };
        Failure::coded(USAGE[0], format!("{name}: {why}"), help)
    })?;
    let places = Places::of(&name, &text);
    let table = table_of(&text, &places)?;
    let wrong = RefCell::new(Mistakes::new());
    let top = Fields::new((0, table.get_ref()), "agents.toml", &places, &wrong);
    top.refuse_others(TOP);
    let mut one = One::default();
    for (at, pattern) in top.texts("include", "[\"agents/*\"]") {
        one.include.push((places.at(at, "`include`"), pattern));
    }
    if let Some(store) = top.table("store", "{ path = \"agents.db\" }") {
        let fields = Fields::new(store, "[store]", &places, &wrong);
        fields.refuse_others(OF_STORE);
        one.store = fields.text("path", "\"agents.db\"").and_then(|(at, path)| {
            match path.contains("://") {
                false => Some(path.into()),
                // The password of the environment goes only where an option says.
                true => {
                    let help = "leave it out, and name the server: `--store URL`";
                    fields.blame(at, "`path`: it is a file", help);
                    None
                }
            }
        });
        one.durability = fields.word("durability", DURABILITIES);
        one.keep_turns = fields.count_or_none("keep-turns");
    }
    for key in ["include", "store"] {
        if let (false, Some(value)) = (is_first, top.get(key)) {
            let text = format!("`{key}`: an included file has agents alone");
            top.blame(
                value.span().start,
                &text,
                "put it into the file that includes it",
            );
        }
    }
    for agent in top.tables("agent", "[{ name = \"echo\", program = \"echo.ajs\" }]") {
        let fields = Fields::new(agent, "[[agent]]", &places, &wrong);
        let models = top.get(SECTION);
        if let Some(spec) = agent_of(&fields, (&places, path, named), models, &wrong) {
            one.agents.push(spec);
        }
    }
    match wrong.into_inner() {
        wrong if wrong.is_empty() => Ok(one),
        wrong => Err(several(wrong)),
    }
}

/// Reads an agent; `None` after a mistake.
fn agent_of(
    fields: &Fields<'_, '_>,
    (places, path, named): (&Places<'_>, &Path, bool),
    models: Option<&toml::Spanned<toml::de::DeValue<'_>>>,
    wrong: &RefCell<Mistakes>,
) -> Option<AgentSpec> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let before = wrong.borrow().len();
    let mut reading = Reading::new(places, named);
    for (word, value) in fields.table.iter() {
        let (at, key) = (word.span().start, word.get_ref());
        if OF_AGENT.contains(&key.as_ref()) {
            continue;
        }
        let mut settings = KEYS.iter().filter(|key| !NOT_OF_AGENT.contains(&key.name));
        match settings.find(|setting| setting.name == key) {
            Some(setting) => reading.take(setting, at, value),
            None => {
                let settings = KEYS.iter().map(|key| key.name);
                let settings = settings.filter(|name| !NOT_OF_AGENT.contains(name));
                let known: Vec<_> = OF_AGENT.iter().copied().chain(settings).collect();
                fields.unknown(at, key, &known);
            }
        }
    }
    if let Some(models) = models {
        reading.take_models(models.span().start, models);
    }
    let mistakes = std::mem::take(&mut reading.wrong);
    let seen: Vec<usize> = wrong.borrow().iter().map(|(at, _)| *at).collect();
    // Models are shared by all agents: report their mistakes once.
    let new = mistakes.into_iter().filter(|(at, _)| !seen.contains(at));
    wrong.borrow_mut().extend(new);

    let name = needed(fields, "name", "\"echo\"", OF_AGENT);
    let program = needed(fields, "program", "\"echo.ajs\"", OF_AGENT);
    let mut channels = fields.texts("channel", "\"general\"");
    channels.extend(fields.texts("channels", "[\"general\", \"news\"]"));
    if channels.is_empty()
        && fields.get("channels").is_none()
        && fields.is_missing("channel", OF_AGENT)
    {
        fields.blame(
            fields.at,
            "it lives on no channel",
            "add `channel = \"general\"`",
        );
    }
    let handle = fields.text("handle", "\"echo\"");
    let config = fields.json("config");
    if let Some((at, config)) = &config
        && !config.is_object()
    {
        fields.blame(
            *at,
            "`config`: expected a table",
            "write `config = { greeting = \"Hi\" }`",
        );
    }
    let events = EventOptions {
        targeted_only: fields.flag("targeted-only").unwrap_or(false),
        respond_when_solo: fields.flag("respond-when-solo").unwrap_or(false),
        ..EventOptions::default()
    };
    let replay = fields.word("replay", &[("all", Replay::All), ("skip", Replay::Skip)]);
    let policy = policy(fields, places, wrong);
    let timers = timers(fields, places, wrong);
    let methods = methods::methods(fields, places, wrong);
    let is_streaming = fields.flag("stream");
    let hears_lost = fields.flag("on-lost").unwrap_or(false);
    if hears_lost && policy.delivery != Delivery::AtMostOnce {
        fields.blame(
            fields
                .get("on-lost")
                .map_or(fields.at, |value| value.span().start),
            "`on-lost`: under this delivery no turn is lost",
            "add `delivery = \"at-most-once\"`, or leave it out",
        );
    }
    let guests = fields.texts("invites", "[\"helper\"]");
    let tables = tables(fields, folder, &policy);
    let keys = name
        .as_ref()
        .map(|name| keys(fields, name, &channels, handle.as_ref()));
    let run = match EffectiveConfig::of_file(
        &Default::default(),
        Some(reading.end(folder)),
        Vec::new(),
    ) {
        Ok(run) => Some(run),
        Err(failure) => {
            wrong.borrow_mut().push((fields.at, failure));
            None
        }
    };
    if wrong.borrow().len() > before {
        return None;
    }
    Some(AgentSpec {
        place: places.at(fields.at, ""),
        name: name?.1,
        program: folder.join(program?.1),
        keys: keys?,
        config: config.map_or_else(|| Json::Object(Default::default()), |(_, json)| json),
        policy,
        events,
        replay: replay.unwrap_or_default(),
        timers,
        methods,
        is_streaming: is_streaming.unwrap_or_default(),
        hears_lost,
        guests: guests.into_iter().map(|(_, name)| name).collect(),
        tables,
        run: run?,
    })
}

fn needed(
    fields: &Fields<'_, '_>,
    key: &str,
    example: &'static str,
    known: &[&'static str],
) -> Option<At<String>> {
    if fields.is_missing(key, known) {
        let help = format!("add `{key} = {example}`");
        fields.blame(fields.at, &format!("`{key}` is missing"), help);
    }
    fields.text(key, example)
}

fn keys(
    fields: &Fields<'_, '_>,
    (at, name): &At<String>,
    channels: &[At<String>],
    handle: Option<&At<String>>,
) -> Vec<AgentKey> {
    let (handle_at, handle) = handle.map_or((*at, name), |(at, handle)| (*at, handle));
    let mut keys: Vec<AgentKey> = Vec::new();
    for (channel_at, channel) in channels {
        match AgentKey::new(name, channel, handle) {
            Ok(key) if keys.contains(&key) => {
                let text = format!("it is on the channel `{channel}` twice");
                fields.blame(*channel_at, &text, "leave one of them out");
            }
            Ok(key) => keys.push(key),
            Err(error) => {
                let text = error.to_string();
                let at = match &text {
                    text if text.starts_with("the agent") => *at,
                    text if text.starts_with("the handle") => handle_at,
                    _ => *channel_at,
                };
                let help = "names have letters, digits and other signs, but no `/`";
                fields.blame(at, &text, help);
                // The others would repeat the mistake.
                break;
            }
        }
    }
    keys
}

fn policy(fields: &Fields<'_, '_>, places: &Places<'_>, wrong: &RefCell<Mistakes>) -> Policy {
    let mut policy = Policy::default();
    let deliveries = [
        ("at-most-once", Delivery::AtMostOnce),
        ("at-least-once", Delivery::AtLeastOnce),
        ("exactly-once-state", Delivery::ExactlyOnceState),
    ];
    policy.delivery = fields.word("delivery", &deliveries).unwrap_or_default();
    let dead = [("continue", OnDead::Continue), ("stop", OnDead::Stop)];
    policy.on_dead = fields.word("on-dead", &dead).unwrap_or_default();
    if let Some(count) = fields.count("concurrency").and_then(NonZeroU32::new) {
        policy.concurrency = count;
    }
    if let Some(count) = fields.count("max-deaths") {
        policy.max_deaths = count;
    }
    let example = "{ attempts = 5, first = \"500ms\", most = \"30s\" }";
    if let Some(table) = fields.table("retry", example) {
        let retry = Fields::new(table, "[[agent]]: `retry`", places, wrong);
        retry.refuse_others(OF_RETRY);
        let ms = |time: At<Duration>| u64::try_from(time.1.as_millis()).unwrap_or(u64::MAX);
        policy.retry.max_attempts = retry.count("attempts").unwrap_or(policy.retry.max_attempts);
        policy.retry.first = retry.time("first").map_or(policy.retry.first, ms);
        policy.retry.most = retry.time("most").map_or(policy.retry.most, ms);
    }
    policy
}

fn timers(
    fields: &Fields<'_, '_>,
    places: &Places<'_>,
    wrong: &RefCell<Mistakes>,
) -> Vec<TimerSpec> {
    let mut timers: Vec<TimerSpec> = Vec::new();
    for table in fields.tables("timers", "[{ name = \"tick\", cron = \"0 9 * * *\" }]") {
        let timer = Fields::new(table, "[[agent]]: `timers`", places, wrong);
        timer.refuse_others(OF_TIMER);
        let name = needed(&timer, "name", "\"tick\"", OF_TIMER);
        let cron = needed(&timer, "cron", "\"0 9 * * MON-FRI\"", OF_TIMER);
        let zone = timer.text("zone", "\"Europe/Berlin\"");
        let payload = timer.json("payload").map_or(Json::Null, |(_, json)| json);
        let (Some((at, name)), Some((cron_at, cron))) = (name, cron) else {
            continue;
        };
        if timers.iter().any(|other| other.name == name) {
            let text = format!("there is a timer `{name}` already");
            timer.blame(at, &text, "give it another name");
        }
        let zone_name = zone.as_ref().map(|(_, zone)| zone.as_str());
        if let Err(error) = next_occurrence(&cron, zone_name, 0) {
            let text = error.to_string();
            let zone_at = zone.as_ref().map_or(cron_at, |(at, _)| *at);
            let at = match text.starts_with("no time zone") {
                true => zone_at,
                false => cron_at,
            };
            timer.blame(at, &text, "write it as in `cron = \"0 9 * * MON-FRI\"`");
        }
        timers.push(TimerSpec {
            name,
            cron,
            zone: zone.map(|(_, zone)| zone),
            payload,
        });
    }
    timers
}

/// Private tables of an agent; migrations are SQL files beside this file.
fn tables(fields: &Fields<'_, '_>, folder: &Path, policy: &Policy) -> Option<Tables> {
    let files = fields.texts("migrations", "[\"tables.sql\"]");
    let is_said = fields.flag("tables");
    let at = |key: &str| {
        fields
            .get(key)
            .map_or(fields.at, |value| value.span().start)
    };
    if is_said == Some(false) && !files.is_empty() {
        let text = "`migrations`: it has no tables";
        fields.blame(at("migrations"), text, "leave `tables = false` out");
    }
    if !is_said.unwrap_or(!files.is_empty()) {
        return None;
    }
    if policy.concurrency.get() > 1 {
        let text = "`concurrency`: an agent with tables has one turn at a time";
        fields.blame(at("concurrency"), text, "leave it out, or the tables");
    }
    let mut tables = Tables::new();
    for (at, name) in files {
        match std::fs::read_to_string(folder.join(&name)) {
            Ok(sql) => tables = tables.migration(sql),
            Err(error) => {
                let text = format!("`migrations`: {name}: {error}");
                fields.blame(at, &text, "name files of SQL beside this one, oldest first");
            }
        }
    }
    Some(tables)
}

/// Refuses two agents with the same name, and two with the same handle on a channel.
fn check_names(agents: &[AgentSpec]) -> Result<(), Failure> {
    for (n, agent) in agents.iter().enumerate() {
        for other in &agents[..n] {
            let place = agent.place.trim_end_matches(": ");
            let before = other.place.trim_end_matches(": ");
            if other.name == agent.name {
                let text = format!("{place}: there is an agent `{}` at {before}", agent.name);
                return Err(Failure::coded(BAD_VALUE, text, "give it another name"));
            }
            let same = agent.keys.iter().find(|key| {
                let mut others = other.keys.iter();
                others.any(|o| {
                    o.channel() == key.channel() && o.handle().eq_ignore_ascii_case(key.handle())
                })
            });
            if let Some(key) = same {
                let text = format!(
                    "{place}: the handle @{} is that of the agent at {before} on the channel `{}`",
                    key.handle(),
                    key.channel()
                );
                let help = "write another `handle = \"...\"`";
                return Err(Failure::coded(BAD_VALUE, text, help));
            }
        }
    }
    Ok(())
}
