//! The work, done by one dialect of Lua.

use std::process::ExitCode;

fn main() -> ExitCode {
    a99_benches_work::protocol::main(peer_mlua::ABOUT, peer_mlua::TIMED)
}
