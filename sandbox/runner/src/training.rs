//! Training workload: a copy of the guest runs typical work with a mount and a network
//! while the emulator profiles it. The guest that is about to be saved then compiles the
//! hottest code ahead of time.

use super::connect::BackendOptions;
use super::error::{VmCode, VmError};
use super::guest::{Guest, Setup};
use super::instance::Linked;
use super::link::NewIndices;
use super::mailbox::Mailbox;
use super::smoke_test::ScriptedGuest;
use a99_egress::{HOST_NAME, Policy};
use a99_sandbox_abi::{functions as abi, unpair};
use a99_sandbox_net as net;
use a99_sandbox_p9::{Mount, MountMode};
use a99_sandbox_protocol::{Ending, Resume};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tempfile::TempDir;

/// Approximate bytes of AOT regions: with them the snapshot stays below 25 MB packed and
/// below 95 MB compiled.
const AOT_BYTES: u32 = 18 << 20;

/// Requests of each kind that the host sends beside the script: enough that their handlers
/// count beside loops.
const REQUESTS: usize = 120;

/// Bytes of standard input in some requests.
const INPUT: usize = 64 << 10;

/// Mount point of a host folder, for the script.
const MOUNT: &str = "/mnt/training";

/// Files in that folder.
const FILES: usize = 200;

/// Variable with the port of an echo service for the script, and the connections that the
/// service accepts.
const PORT: &str = "TRAINING_PORT";
const CONNECTIONS: usize = 20;

/// Runs the workload's script in a copy of a guest that is ready for its snapshot; returns
/// the execution profile for [`compile_aot`].
pub(super) fn profile(linked: &Linked, guest: &Guest, script: &str) -> Result<Vec<u8>, VmError> {
    let (setup, _folder) = environment()?;
    let mut copy = Guest::copy(linked, guest, setup)?;
    copy.emulator.call(abi::BEGIN_PROFILE, ())?;
    let mut guest = ScriptedGuest::new(copy, Instant::now());
    let outcome = guest.run(script)?;
    if outcome.exited.ending != Ending::Code(0) {
        let output = String::from_utf8_lossy(&outcome.stderr);
        let text = format!("the training workload fails in the new guest: {output}");
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
    let pair = emulator.call(abi::END_PROFILE, ())?;
    Ok(emulator.piece(pair)?.to_vec())
}

/// Creates a temporary folder to mount, and a service to connect to.
fn environment() -> Result<(Setup, TempDir), VmError> {
    let failed =
        |error: std::io::Error| VmError::new(VmCode::Io, format!("training workload: {error}"));
    let folder = TempDir::new().map_err(failed)?;
    for number in 0..FILES {
        let path = folder.path().join(format!("file-{number}"));
        std::fs::write(path, [b'x'; 5000]).map_err(failed)?;
    }
    let port = echo().map_err(failed)?;
    let policy: Policy = format!("allow:{HOST_NAME}:{port}")
        .parse()
        .map_err(|error| VmError::new(VmCode::BadOption, format!("training workload: {error}")))?;
    let backends = BackendOptions {
        mounts: vec![Mount::new(MOUNT, folder.path(), MountMode::ReadWrite)],
        network: net::Config::new(policy),
    };
    // The guest's steps poll for frames themselves.
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

/// Starts an echo service on this machine; returns its port.
fn echo() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::Builder::new()
        .name("a99-training".to_owned())
        .spawn(move || {
            for stream in listener.incoming().take(CONNECTIONS).flatten() {
                // The connection ends with the guest.
                let _ = std::io::copy(&mut &stream, &mut &stream);
            }
        })?;
    Ok(port)
}

/// Compiles AOT regions in a guest from the profile of its copy; returns their functions,
/// to be added to its module at these indices.
pub(super) fn compile_aot(
    guest: &mut Guest,
    profile: &[u8],
    indices: &NewIndices,
) -> Result<Vec<u8>, VmError> {
    let emulator = &mut guest.emulator;
    let room = emulator.call(abi::BYTES, profile.len() as u32)?;
    emulator.write(unpair(room).0.into(), profile)?;
    let pair = emulator.call(abi::COMPILE_AOT, (indices.table, indices.types, AOT_BYTES))?;
    if pair == 0 {
        let text = "the emulator refuses its profile";
        return Err(VmError::new(VmCode::Module, text));
    }
    let functions = emulator.piece(pair)?.to_vec();
    emulator.call(abi::BYTES, 0)?;
    Ok(functions)
}
