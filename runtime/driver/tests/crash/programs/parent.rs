//! The process that lets others run a scene, and looks at what they leave.

use super::scene::Scene;
use crate::parent::process;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// Points of a turn at which it is killed.
const POINTS: [&str; 7] = [
    "call.before",
    "step.before",
    "step.after",
    "handler.after",
    "commit.before",
    "commit.after",
    "commit.told",
];

/// What was done.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) kills: usize,
    /// Answers of calls that processes found in the journal when they went on.
    pub(super) found: usize,
    pub(super) made: usize,
    pub(super) again: usize,
}

impl Figures {
    pub(super) fn add(&mut self, other: &Figures) {
        self.kills += other.kills;
        self.found += other.found;
        self.made += other.made;
        self.again += other.again;
    }
}

/// What processes left in a folder.
#[derive(Debug, PartialEq)]
struct Left {
    /// How runs ended, each turn once.
    ends: BTreeSet<String>,
    /// State, log, timers, dead letters.
    rest: Json,
    /// Which calls were made.
    calls: BTreeSet<String>,
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // A line that was cut was not written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

impl Left {
    fn of(folder: &Path) -> Left {
        let rest = fs::read_to_string(folder.join("left.json")).expect("what is left");
        Left {
            ends: lines(&folder.join("ends")).into_iter().collect(),
            rest: serde_json::from_str(&rest).expect("JSON"),
            calls: lines(&folder.join("calls")).into_iter().collect(),
        }
    }

    /// Whether calls of one step are made at the same time.
    fn is_parallel(&self) -> bool {
        let batches = self.calls.iter().map(|id| steps(id));
        batches.flatten().any(|(_, index)| index != "0")
    }
}

/// The calls that lead to a call, it last: where each is in its run.
fn steps(id: &str) -> Vec<(u64, &str)> {
    let calls = id.split('/').map(|call| {
        let (step, index) = call.split_once('.').expect("an identity");
        (step.parse().expect("a number"), index)
    });
    calls.collect()
}

/// Whether a call is of a later step than another, in the run that both have in common: it is
/// made when the other was answered.
fn is_after(later: &str, id: &str) -> bool {
    let (later, id) = (steps(later), steps(id));
    let apart = later.iter().zip(&id).find(|(a, b)| a != b);
    apart.is_some_and(|(a, b)| a.0 > b.0)
}

fn child(folder: &Path, set: &[(&str, &str)]) -> ExitStatus {
    let mut command = process(folder, "A99_PROGRAM_FOLDER");
    command.envs(set.iter().copied());
    command.status().expect("a child")
}

/// A new folder with the scene in it.
fn folder(scene: &Scene) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = serde_json::to_string(scene).expect("JSON");
    fs::write(folder.path().join("scene.json"), text).expect("written");
    folder
}

fn stderr(folder: &Path) -> String {
    fs::read_to_string(folder.join("stderr")).unwrap_or_default()
}

/// Kills a process at each point that the scene passes, or at each of so many from one on,
/// and gives what was done.
pub(super) fn kill_everywhere(scene: &Scene, from: usize, each: usize) -> Figures {
    let name = &scene.name;
    let files = folder(scene);
    let passed = files.path().join("passed");
    let noted = passed.to_str().expect("a path");
    let status = child(files.path(), &[("A99_KILL_PASSED", noted)]);
    assert!(
        status.success(),
        "{name}: {status}: {}",
        stderr(files.path())
    );
    let whole = Left::of(files.path());
    assert!(!whole.ends.is_empty(), "{name}: no run");
    let once = lines(&files.path().join("calls")).len();
    assert_eq!(
        once,
        whole.calls.len(),
        "{name}: calls twice without a kill"
    );
    let answers: BTreeSet<String> = scene.answers.keys().cloned().collect();
    assert_eq!(
        whole.calls, answers,
        "{name}: other calls than beside a host"
    );
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for point in lines(&passed) {
        *counts.entry(point).or_default() += 1;
    }
    let passes = |point| 1..=counts.get(point).copied().unwrap_or_default();
    let all = POINTS
        .iter()
        .flat_map(|point| passes(*point).map(move |pass| format!("{point}:{pass}")));
    let mut figures = Figures::default();
    for wanted in all.skip(from).step_by(each) {
        figures.add(&kill_at(scene, &wanted, &whole));
    }
    // Each call is one point, and its answer is written.
    let calls = counts.get("call.before").copied().unwrap_or_default();
    assert!(calls >= answers.len(), "{name}: {calls} calls");
    figures
}

fn kill_at(scene: &Scene, wanted: &str, whole: &Left) -> Figures {
    let files = folder(scene);
    let folder = files.path();
    let name = format!("{}, killed at {wanted}", scene.name);
    let status = child(folder, &[("A99_KILL_POINT", wanted)]);
    let told = stderr(folder);
    assert_eq!(status.signal(), Some(9), "{name}: {status}: {told}");
    let before = lines(&folder.join("calls"));
    let status = child(folder, &[]);
    assert!(status.success(), "{name}: {status}: {}", stderr(folder));
    let answered = fs::read_to_string(folder.join("answered.json")).expect("a file");
    let answered: BTreeSet<String> = serde_json::from_str(&answered).expect("JSON");
    let all = lines(&folder.join("calls"));
    let (first, after) = all.split_at(before.len());
    let is_once = |calls: &[String]| calls.iter().collect::<BTreeSet<_>>().len() == calls.len();
    assert!(
        is_once(first) && is_once(after),
        "{name}: a process made a call twice: {all:?}"
    );
    let twice: Vec<_> = after.iter().filter(|id| answered.contains(*id)).collect();
    assert!(
        twice.is_empty(),
        "{name}: answered calls were made again: {twice:?}"
    );
    assert_eq!(&Left::of(folder), whole, "{name}");
    let again: Vec<&String> = after.iter().filter(|id| first.contains(id)).collect();
    for id in &again {
        let later = first.iter().find(|other| is_after(other, id));
        assert_eq!(
            later, None,
            "{name}: {id} was made again, though the program had its answer"
        );
    }
    // Where calls come one after the other, only the one whose answer was to be kept.
    let is_cut = wanted.starts_with("step.before");
    assert!(
        whole.is_parallel() || again.len() <= usize::from(is_cut),
        "{name}: made again: {again:?}"
    );
    Figures {
        kills: 1,
        found: answered.len(),
        made: all.len(),
        again: again.len(),
    }
}
