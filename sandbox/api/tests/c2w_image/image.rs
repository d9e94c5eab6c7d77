//! A program that behaves like a container2wasm image, as far as a host can see: its
//! arguments, its info text, its waits, its network stream and its console. It is written
//! from the contract and shares no code with the host.
//!
//! Instead of an emulated Linux it holds a terminal ([`tty`]), a DHCP client ([`net`]) and
//! a small shell ([`shell`]) that runs the emulator's turn while it waits. Its directories
//! go through the C library of its target, like those of a real image. The tests build it
//! with `rustc --target wasm32-wasip1`.

mod net;
mod parse;
mod programs;
mod shell;
mod tty;
mod wasi;

use std::cell::RefCell;
use std::rc::Rc;

/// Size in bytes of the file that passes options to the guest.
const INFO_BYTES: usize = 1024;

/// Maximum wait of a turn in milliseconds.
const MAX_DELAY_MS: u64 = 10;

/// Turns between two tries to accept the network.
const ACCEPT_TURNS: u32 = 500;

/// State of the emulated machine.
pub struct Machine {
    pub tty: tty::Tty,
    pub net: Option<net::Net>,
    turns: u32,
}

/// The machine, shared by its programs.
pub type Shared = Rc<RefCell<Machine>>;

impl Machine {
    /// Runs one turn of the main loop: console and network.
    pub fn turn(&mut self, wait: bool) {
        let delay = match wait {
            true => MAX_DELAY_MS,
            false => 0,
        };
        let asks_input = self.tty.has_room();
        if wasi::poll(asks_input.then_some(0), delay) {
            let mut buffer = [0; 128];
            match wasi::read(0, &mut buffer) {
                Ok(0) => std::process::exit(1),
                Ok(count) => buffer[..count]
                    .iter()
                    .for_each(|&byte| self.tty.input(byte)),
                Err(wasi::AGAIN) => {}
                Err(_) => std::process::exit(1),
            }
        }
        if let Some(net) = &mut self.net {
            net.turn(delay, self.turns % ACCEPT_TURNS == 0);
        }
        self.turns = self.turns.wrapping_add(1);
    }
}

/// The options of the command line.
#[derive(Default)]
struct Options {
    entrypoint: Option<String>,
    net: Option<u32>,
    mac: Option<String>,
    rest: Vec<String>,
}

/// Parses like `getopt_long_only` with `+`: one or two dashes, a value after `=` or as the
/// next argument, up to the first non-option.
fn parse_arguments() -> Options {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            options.rest.extend(arguments);
            break;
        }
        let Some(flag) = argument.strip_prefix('-') else {
            options.rest.push(argument);
            options.rest.extend(arguments);
            break;
        };
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        let mut value = || match value.clone().or_else(|| arguments.next()) {
            Some(value) => value,
            None => std::process::exit(1),
        };
        match name {
            "help" | "h" => std::process::exit(0),
            "no-stdin" => {}
            "entrypoint" => options.entrypoint = Some(value()),
            "mac" => options.mac = Some(value()),
            "net" => match value().split_once("=listenfd=") {
                Some(("socket", fd)) => options.net = fd.parse().ok(),
                _ => options.net = Some(3),
            },
            _ => {
                eprintln!("unknown option {name}");
                std::process::exit(1);
            }
        }
    }
    options
}

/// Info text of the options; the program ends if it is too long.
fn info(options: &Options, mounts: &[String]) -> String {
    let escape = |text: &String| text.replace(' ', "\\ ").replace('\n', "\\\n");
    let mut info = String::new();
    if let Some(entrypoint) = &options.entrypoint {
        info += &format!("e: {}\n", escape(entrypoint));
    }
    if !options.rest.is_empty() {
        let rest: Vec<_> = options.rest.iter().map(escape).collect();
        info += &format!("c: {}\n", rest.join(" "));
    }
    for (name, value) in std::env::vars() {
        info += &format!("env: {name}={value}\n");
    }
    if options.net.is_some() {
        info += &format!("n: {}\n", options.mac.as_deref().unwrap_or_default());
    }
    info += &format!("t: {}\n", wasi::seconds());
    for mount in mounts {
        info += &format!("m: {mount}\n");
    }
    if info.len() > INFO_BYTES {
        eprintln!("too many write");
        std::process::exit(1);
    }
    info
}

fn main() {
    let mounts = wasi::preopens();
    let options = parse_arguments();
    let info = info(&options, &mounts);
    let machine = Rc::new(RefCell::new(Machine {
        tty: tty::Tty::default(),
        net: None,
        turns: 0,
    }));
    if let Some(listen) = options.net {
        let mac = options.mac.as_deref().and_then(net::parse_mac);
        machine.borrow_mut().net = Some(net::Net::new(listen, mac));
        // The boot waits for a lease.
        while machine
            .borrow()
            .net
            .as_ref()
            .is_some_and(|net| net.lease.is_none())
        {
            machine.borrow_mut().turn(false);
        }
    }
    machine.borrow_mut().tty.write(b"Welcome\n");
    let mut shell = shell::Shell::new(Rc::clone(&machine), info);
    shell.interact();
    // The guest turns itself off, regardless of its shell's status.
    std::process::exit(0);
}
