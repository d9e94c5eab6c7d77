//! Fid table: the files behind the guest's fids, and limits of their number.

use super::Options;
use super::descriptors::CountedFd;
use super::host::Node;
use super::wire::NO_FID;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum size of an extended attribute in bytes (`XATTR_SIZE_MAX` of Linux).
pub const MAX_XATTR_BYTES: usize = 64 << 10;

/// Maximum fids that hold an attribute in this process's memory; Linux needs each only
/// during one call.
const MAX_XATTR_FIDS: usize = 64;

/// Referent of a fid.
#[derive(Debug)]
pub(super) enum Fid {
    /// The root of all mounts, open or not.
    Root,
    /// A file of a mount.
    File(File),
    /// An extended attribute, or the list of attribute names, to be read.
    XattrRead(Vec<u8>),
    /// An extended attribute that is being written.
    XattrWrite(XattrWrite),
    /// A file that could not be found again when the server was restored.
    Stale,
}

/// A file of a mount.
#[derive(Debug)]
pub(super) struct File {
    pub node: Node,
    pub open: Option<OpenFile>,
}

impl File {
    pub(crate) fn closed(node: Node) -> Self {
        Self { node, open: None }
    }

    /// Returns the open file.
    ///
    /// # Errors
    /// `EBADF` if it is not open.
    pub(crate) fn opened(&self) -> Result<&OpenFile, Errno> {
        self.open.as_ref().ok_or(Errno::BADF)
    }
}

/// An open file or folder.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub file: Arc<CountedFd>,
    /// Open flags of the guest, reduced to the meaningful ones.
    pub flags: u32,
    /// Of a folder: the cookie at which the host's kernel continues, if known.
    pub position: Option<u64>,
}

/// An attribute that is stored when its fid is clunked.
#[derive(Debug)]
pub(super) struct XattrWrite {
    pub node: Node,
    pub name: Vec<u8>,
    pub flags: u32,
    pub size: usize,
    pub value: Vec<u8>,
}

impl Fid {
    fn is_xattr(&self) -> bool {
        matches!(self, Self::XattrRead(_) | Self::XattrWrite(_))
    }
}

#[derive(Debug)]
pub(super) struct Fids {
    options: Options,
    table: HashMap<u32, Fid>,
    open: usize,
    xattrs: usize,
}

impl Fids {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            table: HashMap::new(),
            open: 0,
            xattrs: 0,
        }
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.table.contains_key(&number)
    }

    pub(crate) fn get(&self, number: u32) -> Result<&Fid, Errno> {
        self.table.get(&number).ok_or(Errno::BADF)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Result<&mut Fid, Errno> {
        self.table.get_mut(&number).ok_or(Errno::BADF)
    }

    /// Adds a fid that is not open.
    ///
    /// # Errors
    /// `EBADF` if the number is taken or invalid; `EMFILE` if the table is full.
    pub(crate) fn insert(&mut self, number: u32, fid: Fid) -> Result<(), Errno> {
        if number == NO_FID || self.contains(number) {
            return Err(Errno::BADF);
        }
        if self.table.len() >= self.options.max_fids {
            return Err(Errno::MFILE);
        }
        if fid.is_xattr() {
            self.check_xattrs()?;
            self.xattrs += 1;
        }
        self.table.insert(number, fid);
        Ok(())
    }

    /// Adds a fid for a file like [`Fids::insert`], but may replace a fid that is not open.
    pub(crate) fn put(&mut self, number: u32, fid: Fid) -> Result<(), Errno> {
        match self.table.get_mut(&number) {
            None => self.insert(number, fid),
            Some(Fid::File(File { open: Some(_), .. })) => Err(Errno::BADF),
            Some(old @ (Fid::Root | Fid::File(_) | Fid::Stale)) => {
                *old = fid;
                Ok(())
            }
            // Ending these has effects.
            Some(Fid::XattrRead(_) | Fid::XattrWrite(_)) => Err(Errno::BADF),
        }
    }

    pub(crate) fn remove(&mut self, number: u32) -> Result<Fid, Errno> {
        let fid = self.table.remove(&number).ok_or(Errno::BADF)?;
        if matches!(&fid, Fid::File(File { open: Some(_), .. })) {
            self.open -= 1;
        }
        if fid.is_xattr() {
            self.xattrs -= 1;
        }
        Ok(fid)
    }

    /// Checks that one more file may be open.
    ///
    /// # Errors
    /// `EMFILE`.
    pub(crate) fn check_open(&self) -> Result<(), Errno> {
        if self.open >= self.options.max_open {
            return Err(Errno::MFILE);
        }
        Ok(())
    }

    /// Makes a fid refer to an open file: its own, or one just created.
    ///
    /// # Errors
    /// `EBADF` if it is already open or not a file.
    pub(crate) fn set_open(
        &mut self,
        number: u32,
        node: Node,
        open: OpenFile,
    ) -> Result<(), Errno> {
        let Fid::File(file) = self.get_mut(number)? else {
            return Err(Errno::BADF);
        };
        if file.open.is_some() {
            return Err(Errno::BADF);
        }
        *file = File {
            node,
            open: Some(open),
        };
        self.open += 1;
        Ok(())
    }

    fn check_xattrs(&self) -> Result<(), Errno> {
        if self.xattrs >= MAX_XATTR_FIDS {
            return Err(Errno::MFILE);
        }
        Ok(())
    }

    /// Makes a fid refer to an attribute instead of its file, which is not open.
    ///
    /// # Errors
    /// `EMFILE` if there are too many such fids.
    pub(crate) fn start_xattr(&mut self, number: u32, write: XattrWrite) -> Result<(), Errno> {
        self.check_xattrs()?;
        self.xattrs += 1;
        self.table.insert(number, Fid::XattrWrite(write));
        Ok(())
    }

    /// Adds a fid of a snapshot, open or not; fids beyond the limit are dropped.
    pub(crate) fn restore(&mut self, number: u32, fid: Fid) {
        let open = matches!(&fid, Fid::File(File { open: Some(_), .. }));
        if self.insert(number, fid).is_ok() && open {
            self.open += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Fid)> {
        self.table.iter().map(|(number, fid)| (*number, fid))
    }
}
