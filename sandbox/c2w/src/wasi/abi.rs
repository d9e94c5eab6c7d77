//! ABI of WASI preview1: numbers and layouts (`wasi_snapshot_preview1.witx`), and access to
//! a program's memory.

/// Errors of calls, by the names of `errno` of preview1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Errno {
    Acces = 2,
    Again = 6,
    Badf = 8,
    Busy = 10,
    Dquot = 19,
    Exist = 20,
    Fault = 21,
    Fbig = 22,
    Ilseq = 25,
    Inval = 28,
    Io = 29,
    Isdir = 31,
    Loop = 32,
    Mfile = 33,
    Mlink = 34,
    Nametoolong = 37,
    Nfile = 41,
    Noent = 44,
    Nomem = 48,
    Nospc = 51,
    Nosys = 52,
    Notdir = 54,
    Notempty = 55,
    Notsock = 57,
    Notsup = 58,
    Nxio = 60,
    Overflow = 61,
    Perm = 63,
    Range = 68,
    Rofs = 69,
    Spipe = 70,
    Txtbsy = 74,
    Xdev = 75,
    Notcapable = 76,
}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Self {
        use rustix::io::Errno as Host;
        match error {
            Host::ACCESS => Errno::Acces,
            Host::AGAIN => Errno::Again,
            Host::BADF => Errno::Badf,
            Host::BUSY => Errno::Busy,
            Host::DQUOT => Errno::Dquot,
            Host::EXIST => Errno::Exist,
            Host::FBIG => Errno::Fbig,
            Host::ILSEQ => Errno::Ilseq,
            Host::INVAL => Errno::Inval,
            Host::ISDIR => Errno::Isdir,
            Host::LOOP => Errno::Loop,
            Host::MFILE => Errno::Mfile,
            Host::MLINK => Errno::Mlink,
            Host::NAMETOOLONG => Errno::Nametoolong,
            Host::NFILE => Errno::Nfile,
            Host::NOENT => Errno::Noent,
            Host::NOMEM => Errno::Nomem,
            Host::NOSPC => Errno::Nospc,
            Host::NOSYS => Errno::Nosys,
            Host::NOTDIR => Errno::Notdir,
            Host::NOTEMPTY => Errno::Notempty,
            Host::NOTSUP => Errno::Notsup,
            Host::NXIO => Errno::Nxio,
            Host::OVERFLOW => Errno::Overflow,
            Host::PERM => Errno::Perm,
            Host::RANGE => Errno::Range,
            Host::ROFS => Errno::Rofs,
            Host::SPIPE => Errno::Spipe,
            Host::TXTBSY => Errno::Txtbsy,
            // `RESOLVE_BENEATH` reports a path that leads out.
            Host::XDEV => Errno::Xdev,
            _ => Errno::Io,
        }
    }
}

/// Result of a call.
pub(crate) type Answer<T = ()> = Result<T, Errno>;

/// Converts a call's result to the number that the program gets.
pub(crate) fn number(answer: Answer) -> i32 {
    match answer {
        Ok(()) => 0,
        Err(errno) => errno as i32,
    }
}

/// `filetype`.
pub(crate) mod filetype {
    pub(crate) const UNKNOWN: u8 = 0;
    pub(crate) const CHARACTER_DEVICE: u8 = 2;
    pub(crate) const DIRECTORY: u8 = 3;
    pub(crate) const REGULAR_FILE: u8 = 4;
    pub(crate) const SOCKET_STREAM: u8 = 6;
    pub(crate) const SYMBOLIC_LINK: u8 = 7;
}

/// `fdflags`.
pub(crate) mod fdflags {
    pub(crate) const APPEND: u16 = 1;
    pub(crate) const DSYNC: u16 = 2;
    pub(crate) const NONBLOCK: u16 = 4;
    pub(crate) const RSYNC: u16 = 8;
    pub(crate) const SYNC: u16 = 16;
}

/// `oflags` of `path_open`.
pub(crate) mod oflags {
    pub(crate) const CREAT: u16 = 1;
    pub(crate) const DIRECTORY: u16 = 2;
    pub(crate) const EXCL: u16 = 4;
    pub(crate) const TRUNC: u16 = 8;
}

/// `rights`: the two that determine how a file is opened.
pub(crate) mod rights {
    pub(crate) const FD_READ: u64 = 1 << 1;
    pub(crate) const FD_WRITE: u64 = 1 << 6;
    /// All rights of files and directories: the low 30 bits without the socket's.
    pub(crate) const ALL: u64 = (1 << 30) - 1;
}

/// `lookupflags`: follow the last component if it is a symbolic link.
pub(crate) const SYMLINK_FOLLOW: u32 = 1;

/// `fstflags`.
pub(crate) mod fstflags {
    pub(crate) const ATIM: u16 = 1;
    pub(crate) const ATIM_NOW: u16 = 2;
    pub(crate) const MTIM: u16 = 4;
    pub(crate) const MTIM_NOW: u16 = 8;
}

/// `clockid`.
pub(crate) mod clock {
    pub(crate) const REALTIME: u32 = 0;
    pub(crate) const MONOTONIC: u32 = 1;
}

/// `eventtype`.
pub(crate) mod eventtype {
    pub(crate) const CLOCK: u8 = 0;
    pub(crate) const FD_READ: u8 = 1;
    pub(crate) const FD_WRITE: u8 = 2;
}

/// Maximum buffers of one call, as in Linux (`IOV_MAX`).
const MAX_IOVECS: u32 = 1024;

/// Maximum bytes of a path, as in Linux (`PATH_MAX`).
const MAX_PATH: u32 = 4096;

/// A program's memory. Addresses come from the program and are untrusted.
pub(crate) struct Memory<'a>(pub &'a mut [u8]);

impl Memory<'_> {
    /// Bytes at an address.
    pub(crate) fn slice(&self, at: u32, len: u32) -> Answer<&[u8]> {
        let end = u64::from(at) + u64::from(len);
        self.0.get(at as usize..end as usize).ok_or(Errno::Fault)
    }

    /// Writable bytes at an address.
    pub(crate) fn slice_mut(&mut self, at: u32, len: u32) -> Answer<&mut [u8]> {
        let end = u64::from(at) + u64::from(len);
        let range = at as usize..end as usize;
        self.0.get_mut(range).ok_or(Errno::Fault)
    }

    fn array<const N: usize>(&self, at: u32) -> Answer<[u8; N]> {
        let slice = self.slice(at, N as u32)?;
        slice.try_into().map_err(|_| Errno::Fault)
    }

    pub(crate) fn u8(&self, at: u32) -> Answer<u8> {
        Ok(self.array::<1>(at)?[0])
    }

    pub(crate) fn u16(&self, at: u32) -> Answer<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&self, at: u32) -> Answer<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, at: u32) -> Answer<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    pub(crate) fn put(&mut self, at: u32, bytes: &[u8]) -> Answer {
        let len = u32::try_from(bytes.len()).map_err(|_| Errno::Overflow)?;
        self.slice_mut(at, len)?.copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn put_u32(&mut self, at: u32, value: u32) -> Answer {
        self.put(at, &value.to_le_bytes())
    }

    pub(crate) fn put_u64(&mut self, at: u32, value: u64) -> Answer {
        self.put(at, &value.to_le_bytes())
    }

    /// Reads a vector of buffers, as address and length.
    pub(crate) fn iovecs(&self, at: u32, count: u32) -> Answer<Vec<(u32, u32)>> {
        if count > MAX_IOVECS {
            return Err(Errno::Inval);
        }
        let vector = self.slice(at, count * 8)?;
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let pairs = vector.as_chunks::<8>().0.iter();
        let pairs: Vec<_> = pairs.map(|pair| (word(pair), word(&pair[4..]))).collect();
        for &(at, len) in &pairs {
            self.slice(at, len)?;
        }
        Ok(pairs)
    }

    /// Copies a path, so that the program cannot change it after it was checked.
    pub(crate) fn path(&self, at: u32, len: u32) -> Answer<Vec<u8>> {
        if len > MAX_PATH {
            return Err(Errno::Nametoolong);
        }
        let path = self.slice(at, len)?;
        match path {
            [] => Err(Errno::Noent),
            [b'/', ..] => Err(Errno::Notcapable),
            _ if path.contains(&0) => Err(Errno::Ilseq),
            _ => Ok(path.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_outside_memory_are_faults() {
        let mut bytes = [7_u8; 64];
        let mut memory = Memory(&mut bytes);
        assert_eq!(memory.u32(60), Ok(0x0707_0707));
        assert_eq!(memory.u32(61), Err(Errno::Fault));
        assert_eq!(memory.u64(u32::MAX), Err(Errno::Fault));
        assert_eq!(memory.put_u32(u32::MAX - 1, 1), Err(Errno::Fault));
        assert_eq!(memory.slice(0, u32::MAX), Err(Errno::Fault));
        assert_eq!(memory.iovecs(0, 1024), Err(Errno::Fault));
        assert_eq!(memory.iovecs(0, u32::MAX), Err(Errno::Inval));
        // A vector whose buffers are out of bounds.
        assert_eq!(memory.iovecs(0, 1), Err(Errno::Fault));
    }

    #[test]
    fn paths_are_relative_and_bounded() {
        let mut bytes = *b"a/b\0/x..";
        let memory = Memory(&mut bytes);
        assert_eq!(memory.path(0, 3), Ok(b"a/b".to_vec()));
        assert_eq!(memory.path(0, 0), Err(Errno::Noent));
        assert_eq!(memory.path(0, 4), Err(Errno::Ilseq));
        assert_eq!(memory.path(4, 2), Err(Errno::Notcapable));
        assert_eq!(memory.path(0, 5000), Err(Errno::Nametoolong));
    }
}
