//! The test image, built once, and a network for it.

use a99_sandbox::c2w::{FrameLink, Image, Machine, Options, Output, Run, Wake};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

/// Built and compiled once for all tests.
pub static IMAGE: LazyLock<Image> = LazyLock::new(|| build("tests/c2w_image/image.rs"));

/// Builds and compiles a program as an image.
pub fn build(sources: &str) -> Image {
    let (_folder, image) = module(sources);
    Image::open(&image).expect("an image")
}

/// Builds a program as an image; the file is removed with the folder.
pub fn module(sources: &str) -> (tempfile::TempDir, PathBuf) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(sources);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let image = folder.path().join("image.wasm");
    let rustc = || {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut rustc = Command::new(rustc);
        rustc
            .args(["--edition", "2024", "-O", "-C", "strip=symbols"])
            .args(["--target", "wasm32-wasip1"]);
        rustc
    };
    // Dependency of sources of the guest's crate.
    let abi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../abi/src/lib.rs");
    let built = rustc()
        .args(["--crate-name", "a99_sandbox_abi", "--crate-type", "rlib"])
        .arg("--out-dir")
        .args([folder.path(), &abi])
        .status();
    assert!(built.expect("rustc runs").success(), "the ABI builds");
    let library = folder.path().join("liba99_sandbox_abi.rlib");
    let built = rustc()
        .arg("--extern")
        .arg(format!("a99_sandbox_abi={}", library.display()))
        .arg("-o")
        .args([&image, &sources])
        .status();
    assert!(built.expect("rustc runs").success(), "the image builds");
    (folder, image)
}

pub fn start(options: Options) -> Machine {
    Machine::start(&IMAGE, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Limits that a test does not reach.
pub fn limits() -> Run {
    Run {
        timeout: Some(Duration::from_secs(30)),
        ..Run::default()
    }
}

#[track_caller]
pub fn run(machine: &Machine, script: &str) -> Output {
    let output = machine.exec(script, &limits());
    output.unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// Output of a command that must succeed.
#[track_caller]
pub fn text(machine: &Machine, script: &str) -> String {
    let output = run(machine, script);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.exit_code, 0, "{script}: {text}");
    text
}

/// Address of the network's gateway.
const GATEWAY: [u8; 4] = [192, 168, 127, 1];

/// Address that the network assigns.
const GIVEN: [u8; 4] = [192, 168, 127, 3];

/// Answers DHCP requests, and echoes frames of the tests' own type.
#[derive(Default)]
pub struct Network {
    wake: Option<Wake>,
    answers: VecDeque<Vec<u8>>,
}

impl FrameLink for Network {
    fn on_frames(&mut self, wake: Wake) {
        self.wake = Some(wake);
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let answer = match &frame[12..14] {
            [0x88, 0xb5] => Some(frame.to_vec()),
            [8, 0] => dhcp_answer(frame),
            _ => None,
        };
        if let (Some(answer), Some(wake)) = (answer, &self.wake) {
            self.answers.push_back(answer);
            wake();
        }
        true
    }

    fn receive(&mut self, frame: &mut Vec<u8>) -> bool {
        match self.answers.pop_front() {
            Some(answer) => {
                frame.extend(answer);
                true
            }
            None => false,
        }
    }
}

/// Answers DISCOVER with OFFER, and REQUEST with ACK (RFC 2131).
fn dhcp_answer(frame: &[u8]) -> Option<Vec<u8>> {
    let udp = frame.get(34..)?;
    let bootp = udp.get(8..)?;
    if frame[23] != 17 || udp[2..4] != [0, 67] || bootp.get(236..241)? != [99, 130, 83, 99, 53] {
        return None;
    }
    let kind = match bootp.get(242)? {
        1 => 2,
        3 => 5,
        _ => return None,
    };
    let mut answer = bootp[..236].to_vec();
    answer[0] = 2;
    answer[16..20].copy_from_slice(&GIVEN);
    answer.extend([99, 130, 83, 99, 53, 1, kind, 54, 4]);
    answer.extend(GATEWAY);
    answer.push(255);
    let mut reply = frame[6..12].to_vec();
    reply.extend([0x5a, 0x94, 0xef, 0xe4, 0x0c, 0xdd, 8, 0, 0x45, 0]);
    let udp_len = 8 + answer.len() as u16;
    reply.extend((20 + udp_len).to_be_bytes());
    reply.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    reply.extend(GATEWAY);
    reply.extend([255; 4]);
    reply.extend([0, 67, 0, 68]);
    reply.extend(udp_len.to_be_bytes());
    reply.extend([0, 0]);
    reply.extend(answer);
    Some(reply)
}
