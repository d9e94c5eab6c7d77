//! The process that kills the other one again and again.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// All kill points of the driver, and of the store's tables.
const POINTS: [&str; 27] = [
    "record.before",
    "record.after",
    "handler.before",
    "handler.after",
    "commit.before",
    "commit.after",
    "commit.told",
    "commit.held",
    "tables.before",
    "tables.between",
    "tables.redo",
    "tables.migrated",
    "append.before",
    "append.after",
    "step.before",
    "step.after",
    "save.before",
    "save.after",
    "timer.due",
    "hook.before",
    "hook.after",
    "wake.before",
    "wake.after",
    "lost.before",
    "lost.after",
    "sleep.before",
    "sleep.after",
];

/// A small generator of numbers (xorshift), so that a seed tells the whole run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// This program as the process that is killed; a variable names its folder, and says which of
/// them it is.
pub(crate) fn process(folder: &Path, variable: &str) -> Command {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "child", "--ignored", "--nocapture"]);
    command.env(variable, folder);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(std::fs::File::create(folder.join("stderr")).expect("a file"));
    command
}

fn child(folder: &Path, mode: &str) -> Command {
    let mut command = process(folder, "A99_CRASH_FOLDER");
    command.env("A99_CRASH_MODE_OF_CHILD", mode);
    command
}

/// Waits for the end, at most so long.
fn end_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    None
}

/// Whether the child found a broken promise, or ended otherwise than it may.
fn judge(folder: &Path, status: ExitStatus, how: &str) {
    use std::os::unix::process::ExitStatusExt;
    let by_signal = matches!(status.signal(), Some(6 | 9));
    if !by_signal && !status.success() {
        let told = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
        let kept = std::env::temp_dir().join("a99-crash-failed");
        let _ = std::fs::remove_dir_all(&kept);
        let _ = std::fs::rename(folder, &kept);
        panic!(
            "{how}: {status}: {told}\nthe files are in {}",
            kept.display()
        );
    }
}

/// Kills so often, then lets the agent end its work, and looks at all of it.
pub(crate) fn kills(mode: &str, kills: u64, seed: u64) {
    let files = tempfile::tempdir().expect("a folder");
    let folder = &files.path().join("run");
    std::fs::create_dir(folder).expect("a folder");
    let mut dice = Dice::new(seed);
    let start = Instant::now();
    let (mut at_points, mut at_random, mut ended) = (0, 0, 0);
    let mut round = 0;
    while at_points + at_random < kills {
        round += 1;
        let mut command = child(folder, mode);
        let mut how = format!("{mode}, seed {seed}, round {round}");
        if dice.below(4) == 0 {
            command.env("A99_CRASH_DRAIN", dice.below(30).to_string());
        }
        let point = round % 4 != 0;
        if point {
            let at = usize::try_from(round).expect("small") % POINTS.len();
            let wanted = format!("{}:{}", POINTS[at], 1 + dice.below(6));
            how = format!("{how}, {wanted}");
            command.env("A99_KILL_POINT", wanted);
            if POINTS[at].starts_with("sleep") {
                command.env("A99_CRASH_DRAIN", "10");
            }
        }
        let wait = match point {
            true => Duration::from_millis(400),
            false => Duration::from_micros(dice.below(60_000)),
        };
        let mut running = command.spawn().expect("a child");
        if let Some(status) = end_within(&mut running, wait) {
            judge(folder, status, &how);
            match status.success() {
                true => ended += 1,
                false => at_points += 1,
            }
            continue;
        }
        // It may have ended meanwhile.
        let _ = running.kill();
        judge(folder, running.wait().expect("a child"), &how);
        at_random += 1;
    }
    let took = start.elapsed();
    let mut last = child(folder, mode);
    let status = last.env("A99_CRASH_FINISH", "1").status().expect("a child");
    judge(folder, status, "at the end");
    let lines = |what: &str| {
        let text = std::fs::read_to_string(folder.join(what)).unwrap_or_default();
        text.lines().count()
    };
    let figures = format!(
        "{mode}: {at_points} kills at points, {at_random} at random, {ended} ended well, in \
         {took:.1?}: {} events run, {} alarms, {} steps",
        lines("runs"),
        lines("alarms"),
        lines("steps"),
    );
    writeln!(std::io::stderr(), "{figures}").expect("a place for figures");
}
