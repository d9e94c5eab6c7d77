//! Calls of preview1 for which the C library has no equivalent, on descriptors of the host.

/// `errno`: not available now.
pub const AGAIN: u16 = 6;

#[repr(C)]
struct IoVec {
    at: *mut u8,
    len: usize,
}

/// `subscription`: 48 bytes.
#[repr(C)]
#[derive(Default)]
struct Subscription {
    userdata: u64,
    tag: u64,
    id_or_fd: u64,
    timeout: u64,
    precision: u64,
    flags: u64,
}

/// `event`: 32 bytes.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Event {
    userdata: u64,
    error_and_type: u64,
    bytes: u64,
    flags: u64,
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn poll_oneoff(
        from: *const Subscription,
        to: *mut Event,
        count: usize,
        result: *mut usize,
    ) -> u16;
    fn fd_read(fd: u32, iovecs: *const IoVec, count: usize, result: *mut usize) -> u16;
    fn fd_prestat_get(fd: u32, result: *mut [u32; 2]) -> u16;
    fn fd_prestat_dir_name(fd: u32, path: *mut u8, len: usize) -> u16;
    fn sock_accept(fd: u32, flags: u32, result: *mut u32) -> u16;
    fn sock_recv(
        fd: u32,
        iovecs: *const IoVec,
        count: usize,
        flags: u32,
        result: *mut usize,
        out: *mut u16,
    ) -> u16;
    fn sock_send(
        fd: u32,
        iovecs: *const IoVec,
        count: usize,
        flags: u32,
        result: *mut usize,
    ) -> u16;
}

/// `clockid` of the real time, relative.
const REALTIME: u64 = 0;

/// Waits for a descriptor to be readable, at most `milliseconds`; returns whether it is.
pub fn poll(fd: Option<u32>, milliseconds: u64) -> bool {
    let clock = Subscription {
        userdata: 1,
        tag: 0,
        id_or_fd: REALTIME,
        timeout: milliseconds * 1_000_000,
        ..Subscription::default()
    };
    let read = Subscription {
        userdata: 2,
        tag: 1,
        id_or_fd: fd.unwrap_or(0).into(),
        ..Subscription::default()
    };
    let all = [clock, read];
    let count = 1 + usize::from(fd.is_some());
    let mut events = [Event::default(); 2];
    let mut happened = 0;
    // SAFETY: both arrays hold at least `count` elements of the layout of witx.
    let errno = unsafe { poll_oneoff(all.as_ptr(), events.as_mut_ptr(), count, &mut happened) };
    if errno != 0 || happened == 0 {
        eprintln!("poll_oneoff: {errno}, {happened} events");
        std::process::exit(97);
    }
    events[..happened].iter().any(|event| {
        if event.error_and_type & 0xffff != 0 {
            std::process::exit(96);
        }
        event.userdata == 2
    })
}

fn vector(bytes: &mut [u8]) -> IoVec {
    IoVec {
        at: bytes.as_mut_ptr(),
        len: bytes.len(),
    }
}

/// Reads available bytes.
pub fn read(fd: u32, into: &mut [u8]) -> Result<usize, u16> {
    let mut count = 0;
    // SAFETY: the vector names `into`, which outlives the call.
    match unsafe { fd_read(fd, &vector(into), 1, &mut count) } {
        0 => Ok(count),
        errno => Err(errno),
    }
}

/// Accepts a connection.
pub fn accept(fd: u32) -> Result<u32, u16> {
    let mut connection = 0;
    // SAFETY: the result is our own word.
    match unsafe { sock_accept(fd, 4, &mut connection) } {
        0 => Ok(connection),
        errno => Err(errno),
    }
}

/// Receives available bytes.
pub fn receive(fd: u32, into: &mut [u8]) -> Result<usize, u16> {
    let (mut count, mut flags) = (0, 0);
    // SAFETY: the vector names `into`, which outlives the call.
    match unsafe { sock_recv(fd, &vector(into), 1, 0, &mut count, &mut flags) } {
        0 => Ok(count),
        errno => Err(errno),
    }
}

/// Sends.
pub fn send(fd: u32, bytes: &[u8]) -> Result<usize, u16> {
    let mut bytes = bytes.to_vec();
    let mut count = 0;
    // SAFETY: the vector names `bytes`, which outlive the call.
    match unsafe { sock_send(fd, &vector(&mut bytes), 1, 0, &mut count) } {
        0 => Ok(count),
        errno => Err(errno),
    }
}

/// Names of all preopened directories: numbers from 3 on until one is not open; any other
/// error is fatal.
pub fn preopens() -> Vec<String> {
    let mut names = Vec::new();
    for fd in 3.. {
        let mut stat = [0; 2];
        // SAFETY: the result is two words of our own.
        match unsafe { fd_prestat_get(fd, &mut stat) } {
            0 => {}
            8 => break,
            errno => {
                eprintln!("failed to populate preopens: {errno}");
                std::process::exit(1);
            }
        }
        let mut name = vec![0; stat[1] as usize];
        // SAFETY: the buffer has the length that was returned.
        if unsafe { fd_prestat_dir_name(fd, name.as_mut_ptr(), name.len()) } != 0 {
            std::process::exit(1);
        }
        names.push(String::from_utf8(name).expect("text"));
    }
    names
}

/// Seconds since 1970.
pub fn seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
