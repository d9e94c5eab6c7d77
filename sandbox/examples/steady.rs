//! Throwaway.
use a99_guest_agent::protocol::Exec;
use a99_sandbox::vm::{Image, Options, Run, Sandbox, Translate};
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let image = Image::at(std::path::Path::new(&a[1])).unwrap();
    let t = match a[2].as_str() { "on" => Translate::On, "auto" => Translate::Auto, "ready" => Translate::Ready, _ => Translate::Off };
    let sb = Sandbox::start(&image, &Options { translate: t, ..Options::default() }).unwrap();
    let run = Run::default();
    sb.script("head -c 4000000 /dev/urandom > /dev/shm/random", &run).unwrap();
    let n: usize = a[3].parse().unwrap();
    for text in &a[4..] {
        for _ in 0..n {
            let (i, s) = (sb.instructions(), Instant::now());
            if let Some(p) = text.strip_prefix("P:") {
                sb.command(Exec { argv: ["python3", "-c", &p.replace("\\n", "\n")].iter().map(|a| a.as_bytes().to_vec()).collect(), ..Exec::default() }, &run).unwrap();
            } else if let Some(p) = text.strip_prefix("C:") {
                sb.command(Exec { argv: p.split(' ').map(|a| a.as_bytes().to_vec()).collect(), ..Exec::default() }, &run).unwrap();
            } else { sb.script(text, &run).unwrap(); }
            let (i, s) = (sb.instructions() - i, s.elapsed().as_secs_f64());
            println!("{:.50} {:.1} M {:.3} s {:.0} MIPS", text, i as f64 / 1e6, s, i as f64 / s / 1e6);
        }
    }
    println!("{:?}", image.translations());
}
