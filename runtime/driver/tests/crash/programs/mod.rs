//! Programs as agents whose process is killed at each suspension point of a turn.
//!
//! A first process runs a scene whole and says what came of it and which kill points it
//! passed. For each of them one process more runs the scene anew and dies there, and another
//! goes on. Calls of the world are answered by their identity, as a script answered them, and
//! each that is made is written down.

pub(crate) mod child;
mod parent;
mod scene;
mod world;

use scene::Scene;
use std::io::Write;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// All examples, and some random programs: at every point, or at each of so many that follow
/// each other.
pub(crate) fn kill_everywhere(randoms: usize, seed: u64, each: usize) {
    let mut scenes = scene::examples();
    assert!(scenes.len() >= 30, "{} examples", scenes.len());
    scenes.extend(scene::random(seed, randoms));
    kill_all(&scenes, each);
}

/// On all processors: processes mostly wait for each other.
fn kill_all(scenes: &[Scene], each: usize) {
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = parent::Figures::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(scene) = scenes.get(at) else { break };
            // Others of the points for each scene.
            match catch_unwind(|| parent::kill_everywhere(scene, at % each, each)) {
                Ok(figures) => done.add(&figures),
                Err(panic) => {
                    // The others need not go on.
                    next.store(scenes.len(), Ordering::Relaxed);
                    resume_unwind(panic);
                }
            }
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = parent::Figures::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in running {
            match thread.join() {
                Ok(done) => all.add(&done),
                Err(panic) => resume_unwind(panic),
            }
        }
    });
    let figures = format!(
        "programs: {} programs, {} kills, {} answers found after them, {} calls made, {} of \
         them again, in {:.1?}",
        scenes.len(),
        all.kills,
        all.found,
        all.made,
        all.again,
        start.elapsed(),
    );
    writeln!(std::io::stderr(), "{figures}").expect("a place for figures");
    // Else nothing was shown of calls that are not made twice.
    assert!(all.found > all.kills, "{figures}");
}
