//! Prints the guest's figures: start-up time and costs.
//!
//! Run it with `cargo run --profile sandbox -p a99-sandbox --features testing --example
//! figures [-- [--commands] [MODULE]]`. It measures the image that was built last, or a
//! compiled module; with `--commands` only commands in guests. A child of this process
//! measures the first start of a new process.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use a99_sandbox::cache::{Cache, Event};
use a99_sandbox::vm::{Instances, engine, load};
use a99_sandbox::{Command, GuestJit, Image, Sandbox, VmError, block_on};
use std::error::Error;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Repetitions of steps that take a millisecond.
const MANY: usize = 50;

/// Repetitions of longer steps.
const SOME: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--echo", module] => echo(Path::new(module)),
        ["--commands"] => both(&image(&current()?)?),
        ["--commands", module] => both(&image(Path::new(module))?),
        [] => figures(&current()?),
        [module] => figures(Path::new(module)),
        _ => Err("usage: figures [--commands] [MODULE]".into()),
    }
}

/// Returns the compiled module of the image that was built last.
fn current() -> Result<PathBuf, Box<dyn Error>> {
    let cache = Cache::of_user()?;
    // Recompiles the image if another machine compiled it.
    Image::current(&cache, &mut |_: Event<'_>| {})?;
    let entry = cache.current("module")?;
    Ok(entry.ok_or("no image")?.path("guest.cwasm"))
}

/// Loads a compiled module of the cache.
fn image(path: &Path) -> Result<Image, Box<dyn Error>> {
    Ok(Image::at(&Cache::of_user()?, path)?)
}

fn start(image: &Image, guest_jit: GuestJit) -> Result<Sandbox, VmError> {
    let builder = Sandbox::builder().loaded_image(image);
    builder.guest_jit(guest_jit).start_blocking()
}

fn script(sandbox: &Sandbox, text: &str) -> Result<(), VmError> {
    block_on(sandbox.exec(text)).map(drop)
}

fn run(command: Command) -> Result<(), VmError> {
    block_on(command.output()).map(drop)
}

/// Runs a new process up to the first output of a command.
fn echo(module: &Path) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let image = image(module)?;
    let loaded = begin.elapsed();
    let sandbox = start(&image, GuestJit::default())?;
    let started = begin.elapsed();
    let output = block_on(sandbox.exec("echo hi"))?;
    assert_eq!(output.stdout, b"hi\n");
    let echoed = begin.elapsed();
    println!(
        "{} {} {}",
        loaded.as_micros(),
        started.as_micros(),
        echoed.as_micros()
    );
    // Skips clean-up, as a user's process does.
    std::process::exit(0);
}

fn figures(module: &Path) -> Result<(), Box<dyn Error>> {
    let metadata = fs::metadata(module)?;
    let on_disk = |metadata: &Metadata| format!("{:.1} MB", metadata.blocks() as f64 * 512.0 / 1e6);
    row("precompiled, on disk", &on_disk(&metadata));
    if let Ok(metadata) = fs::metadata(module.with_file_name("guest.disk")) {
        row("the image's disk, on disk", &on_disk(&metadata));
    }
    instantiate(module)?;
    first_process(module)?;
    let image = image(module)?;
    timed("start, first echo, stop", SOME, || {
        let sandbox = start(&image, GuestJit::default())?;
        script(&sandbox, "echo hi")?;
        block_on(sandbox.stop());
        Ok(())
    })?;
    memory(&image)?;
    both(&image)?;
    idle(&image)?;
    Ok(())
}

fn row(name: &str, value: &str) {
    println!("{name:<44} {value}");
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

/// Prints the fastest and the median time.
fn timed(
    name: &str,
    times: usize,
    mut work: impl FnMut() -> Result<(), VmError>,
) -> Result<(), VmError> {
    let mut all = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        work()?;
        all.push(start.elapsed());
    }
    all.sort();
    let (best, median) = (milliseconds(all[0]), milliseconds(all[all.len() / 2]));
    row(name, &format!("{median} median, {best} best"));
    Ok(())
}

/// Prints the same for commands in a guest, with their instructions and this process's
/// processor time: on a busy machine wall-clock time says little.
fn ran(
    name: &str,
    times: usize,
    sandbox: &Sandbox,
    work: impl FnMut() -> Result<(), VmError>,
) -> Result<(), VmError> {
    let (instructions, cpu) = (sandbox.instructions(), cpu_time());
    timed(name, times, work)?;
    let cpu = (cpu_time() - cpu).as_secs_f64() / times as f64;
    let instructions = (sandbox.instructions() - instructions) as f64 / times as f64;
    let mips = instructions / cpu / 1e6;
    let text = format!(
        "{:.3} ms of processor, {:.2} M instructions, {mips:.0} MIPS",
        cpu * 1e3,
        instructions / 1e6
    );
    row("", &text);
    Ok(())
}

fn first_process(module: &Path) -> Result<(), Box<dyn Error>> {
    let mut all = Vec::new();
    for _ in 0..SOME {
        let start = Instant::now();
        let output = std::process::Command::new(std::env::current_exe()?)
            .arg("--echo")
            .arg(module)
            .output()?;
        let elapsed = start.elapsed();
        let text = String::from_utf8(output.stdout)?;
        let parts: Vec<u64> = text
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
        let [loaded, started, echoed] = parts[..] else {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        };
        all.push((elapsed, loaded, started, echoed));
    }
    all.sort();
    let (elapsed, loaded, started, echoed) = all[all.len() / 2];
    let text = format!(
        "{} median (loaded after {loaded} us, started {started} us, echo {echoed} us)",
        milliseconds(elapsed)
    );
    row("new process to the end of its first echo", &text);
    Ok(())
}

/// Creates an instance of the image with all its memory and no imports.
fn instantiate(module: &Path) -> Result<(), Box<dyn Error>> {
    let engine = engine()?;
    let module = load(&engine, module, &Cache::of_user()?.key()?)?;
    let instances = Instances::of(&module)?;
    let mut stores = Vec::new();
    timed("instantiate", MANY, || {
        stores.push(instances.another().expect("an instance"));
        Ok(())
    })?;
    Ok(())
}

fn commands(image: &Image, guest_jit: GuestJit) -> Result<(), VmError> {
    let sandbox = start(image, guest_jit)?;
    let script = |text: &str| script(&sandbox, text);
    let command = |argv: &[&str]| run(sandbox.command(argv));
    let python = ["python3", "-c", "print(1+1)"];
    // From here on the sandbox counts its instructions.
    script(":")?;
    ran("python3 -c, first", 1, &sandbox, || command(&python))?;
    ran("python3 -c, warm", SOME, &sandbox, || command(&python))?;
    ran("echo hi in the session shell", MANY, &sandbox, || {
        script("echo hi")
    })?;
    ran("/bin/echo hi as a fresh process", MANY, &sandbox, || {
        command(&["/bin/echo", "hi"])
    })?;
    ran("shell loop of 100,000", 1, &sandbox, || {
        script("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    })?;
    let squares = "x=0\nfor i in range(300000): x+=i*i\nprint(x)";
    ran("Python, 300,000 times x+=i*i", 1, &sandbox, || {
        command(&["python3", "-c", squares])
    })?;
    script("head -c 4000000 /dev/urandom > /dev/shm/random")?;
    ran("sha256 of 4 MB", 1, &sandbox, || {
        command(&["sha256sum", "/dev/shm/random"])
    })?;
    ran("8 MB of output", 1, &sandbox, || {
        command(&["head", "-c", "8000000", "/dev/zero"])
    })?;
    ran("64 KB of standard input", SOME, &sandbox, || {
        run(sandbox.command(["wc", "-c"]).stdin(vec![b'x'; 64 << 10]))
    })
}

/// Measures commands in guests with each mode of the JIT compiler.
fn both(image: &Image) -> Result<(), Box<dyn Error>> {
    for guest_jit in [
        GuestJit::Off,
        GuestJit::Aot,
        GuestJit::Auto,
        GuestJit::Eager,
    ] {
        println!("--- guest JIT {guest_jit:?}");
        commands(image, guest_jit)?;
        let done = image.translations();
        row(
            "regions",
            &format!("{} compiled, {} failed", done.compiled, done.failed),
        );
    }
    Ok(())
}

/// Returns the bytes of memory that this process has written, and the bytes of files that
/// it alone maps. The system can drop the latter, and guests share them.
fn private_bytes() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) << 10
    };
    (field("Private_Dirty:"), field("Private_Clean:"))
}

fn memory(image: &Image) -> Result<(), VmError> {
    let before = private_bytes();
    let more = |name: &str| {
        let now = private_bytes();
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let written = megabytes(now.0.saturating_sub(before.0));
        let mapped = megabytes(now.1.saturating_sub(before.1));
        let text = format!("{written:.1} MB (and {mapped:.1} MB of the image's file)");
        row(name, &text);
    };
    let sandbox = start(image, GuestJit::default())?;
    script(&sandbox, "echo hi")?;
    more("private memory after echo");
    run(sandbox.command(["python3", "-c", "print(1+1)"]))?;
    more("private memory after Python");
    let output = block_on(sandbox.exec("stat -f -c '%a %S' /"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<u64> = text.split_whitespace().flat_map(str::parse).collect();
    let free = numbers.iter().product::<u64>() as f64 / 1e6;
    row(
        "free on the guest's disk in memory",
        &format!("{free:.1} MB"),
    );
    Ok(())
}

/// Returns the processor time that this process has used.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let main = text
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let threads: u64 = tasks
        .filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    Duration::from_nanos(threads.max(main))
}

fn idle(image: &Image) -> Result<(), VmError> {
    let sandbox = start(image, GuestJit::default())?;
    script(&sandbox, "echo hi")?;
    std::thread::sleep(Duration::from_millis(200));
    let (before, instructions) = (cpu_time(), sandbox.instructions());
    std::thread::sleep(Duration::from_secs(5));
    let used = milliseconds(cpu_time() - before);
    let count = sandbox.instructions() - instructions;
    row("idle for 5 s", &format!("{used} CPU, {count} instructions"));
    Ok(())
}
