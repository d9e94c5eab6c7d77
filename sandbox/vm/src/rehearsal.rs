//! What ships translated with an image: a copy of the guest runs typical work,
//! with a mount and a network, the emulator notes which code that was, and
//! translates it in the guest that is about to be saved.

use super::connect::BackendOptions;
use super::error::{VmCode, VmError};
use super::guest::{Guest, Setup};
use super::instance::Linked;
use super::link::Places;
use super::mailbox::Mailbox;
use super::smoke_test::ScriptedGuest;
use a99_egress::{HOST_NAME, Policy};
use a99_guest_abi::{functions as abi, unpair};
use a99_sandbox_net as net;
use a99_sandbox_p9::{Mount, MountMode};
use a99_sandbox_protocol::{Ending, Resume};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tempfile::TempDir;

/// Bytes of functions that ship, about: with them the image stays below 25 MB
/// when it is packed, and below 80 MB when it is compiled.
const ROOM: u32 = 10 << 20;

/// Requests of each kind that the host makes, apart from the script: enough that
/// what serves them counts beside loops.
const REQUESTS: usize = 120;

/// Bytes of standard input, in some of them.
const INPUT: usize = 64 << 10;

/// Where the script finds a folder of the host.
const MOUNT: &str = "/mnt/rehearsal";

/// Files in that folder.
const FILES: usize = 200;

/// The variable that tells the script the port of an echo service, and how many
/// connections that serves.
const PORT: &str = "REHEARSAL_PORT";
const CONNECTIONS: usize = 20;

/// Runs a script in a copy of a guest that is ready for its snapshot. The answer
/// is what the emulator found, for [`ship`].
pub(super) fn study(linked: &Linked, guest: &Guest, script: &str) -> Result<Vec<u8>, VmError> {
    let (setup, _folder) = surroundings()?;
    let mut copy = Guest::copy(linked, guest, setup)?;
    copy.emulator.call(abi::STUDY, ())?;
    let mut guest = ScriptedGuest::new(copy, Instant::now());
    let outcome = guest.run(script)?;
    if outcome.exited.ending != Ending::Code(0) {
        let output = String::from_utf8_lossy(&outcome.stderr);
        let text = format!("the rehearsal fails in the new guest: {output}");
        return Err(VmError::new(VmCode::NotReady, text));
    }
    for _ in 0..REQUESTS {
        guest.run("echo hi")?;
        guest.command(&["/bin/echo", "hi"], &[])?;
    }
    for _ in 0..REQUESTS / 10 {
        guest.command(&["wc", "-c"], &[b'x'; INPUT])?;
    }
    let emulator = &mut guest.guest.emulator;
    let pair = emulator.call(abi::STUDIED, ())?;
    Ok(emulator.piece(pair)?.to_vec())
}

/// A folder to mount, which lasts as long as it is held, and a service to
/// connect to.
fn surroundings() -> Result<(Setup, TempDir), VmError> {
    let failed = |error: std::io::Error| VmError::new(VmCode::Io, format!("rehearsal: {error}"));
    let folder = TempDir::new().map_err(failed)?;
    for number in 0..FILES {
        let path = folder.path().join(format!("file-{number}"));
        std::fs::write(path, [b'x'; 5000]).map_err(failed)?;
    }
    let port = echo().map_err(failed)?;
    let policy: Policy = format!("allow:{HOST_NAME}:{port}")
        .parse()
        .map_err(|error| VmError::new(VmCode::BadOption, format!("rehearsal: {error}")))?;
    let backends = BackendOptions {
        mounts: vec![Mount::new(MOUNT, folder.path(), MountMode::ReadWrite)],
        network: net::Config::new(policy),
    };
    // The guest's turns look for frames by themselves.
    let connected = backends.connect(None, &Arc::new(Mailbox::default()), &OnceLock::new())?;
    let variable = (PORT.as_bytes().to_vec(), port.to_string().into_bytes());
    let setup = Setup {
        resume: Resume {
            env: vec![variable],
            network: connected.network,
            mounts: connected.mounts,
            ..Resume::default()
        },
        backends: connected.backends,
        ..Setup::default()
    };
    Ok((setup, folder))
}

/// Starts a service on this machine that sends back what it gets; its port.
fn echo() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::Builder::new()
        .name("a99-rehearsal".to_owned())
        .spawn(move || {
            for stream in listener.incoming().take(CONNECTIONS).flatten() {
                // A guest that goes away ends its connection.
                let _ = std::io::copy(&mut &stream, &mut &stream);
            }
        })?;
    Ok(port)
}

/// Has a guest translate what was studied in its copy. The answer is the
/// functions, which are to be added to its module in these places.
pub(super) fn ship(guest: &mut Guest, study: &[u8], places: &Places) -> Result<Vec<u8>, VmError> {
    let emulator = &mut guest.emulator;
    let room = emulator.call(abi::BYTES, study.len() as u32)?;
    emulator.write(unpair(room).0.into(), study)?;
    let pair = emulator.call(abi::SHIP, (places.table, places.types, ROOM))?;
    if pair == 0 {
        let text = "the emulator refuses its study";
        return Err(VmError::new(VmCode::Module, text));
    }
    let functions = emulator.piece(pair)?.to_vec();
    emulator.call(abi::BYTES, 0)?;
    Ok(functions)
}
