//! Extended attributes, limited to `user.`: `security.` and `trusted.` have a meaning to
//! the host's kernel, and `system.` attributes are access control lists.

use super::Server;
use super::data::refuse_privileged;
use super::descriptors::CountedFd;
use super::fid::{Fid, File, MAX_XATTR_BYTES, XattrWrite};
use super::host::Node;
use super::wire::{MAX_NAME_BYTES, Reader, Writer};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, OFlags, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

/// Prefix of the permitted attributes.
const USER: &[u8] = b"user.";

impl XattrWrite {
    /// Appends the next bytes of the value, which come in order.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        if offset != self.value.len() as u64 || bytes.len() > self.size - self.value.len() {
            return Err(Errno::INVAL);
        }
        self.value.extend_from_slice(bytes);
        Ok(())
    }
}

impl Server {
    /// Makes a fid that reads an attribute, or the list of names if the name is empty.
    pub(super) fn xattrwalk(
        &mut self,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
    ) -> Result<(), Errno> {
        let (fid, new_fid, name) = (r.u32()?, r.u32()?, r.string()?);
        let value = match self.fids.get(fid)? {
            Fid::Root if name.is_empty() => Vec::new(),
            Fid::Root => return Err(Errno::NODATA),
            _ => {
                let node = &self.file(fid)?.node;
                if name.is_empty() {
                    self.list_xattrs(node)?
                } else {
                    self.read_xattr(node, name)?
                }
            }
        };
        let size = value.len() as u64;
        self.fids.insert(new_fid, Fid::XattrRead(value))?;
        w.u64(size);
        Ok(())
    }

    fn list_xattrs(&self, node: &Node) -> Result<Vec<u8>, Errno> {
        let mut names = Vec::with_capacity(MAX_XATTR_BYTES);
        match self.open_any(node) {
            Ok(file) => flistxattr(file, spare_capacity(&mut names))?,
            // Other file types have no attributes that a guest may see.
            Err(Errno::OPNOTSUPP) => 0,
            Err(errno) => return Err(errno),
        };
        let ours = names
            .split_inclusive(|byte| *byte == 0)
            .filter(|name| name.starts_with(USER));
        Ok(ours.flatten().copied().collect())
    }

    fn read_xattr(&self, node: &Node, name: &[u8]) -> Result<Vec<u8>, Errno> {
        check_name(name)?;
        let file = self.open_any(node)?;
        let mut value = Vec::with_capacity(MAX_XATTR_BYTES);
        fgetxattr(file, name, spare_capacity(&mut value))?;
        value.shrink_to_fit();
        Ok(value)
    }

    pub(super) fn xattrcreate(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let (fid, name) = (r.u32()?, r.string()?);
        let (size, flags) = (r.u64()?, r.u32()?);
        check_name(name)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_XATTR_BYTES {
            return Err(Errno::TOOBIG);
        }
        if flags > XattrFlags::REPLACE.bits() {
            return Err(Errno::INVAL);
        }
        let File { node, open: None } = self.file(fid)? else {
            return Err(Errno::BADF);
        };
        self.check_change(node)?;
        refuse_privileged(node)?;
        let write = XattrWrite {
            node: node.clone(),
            name: name.to_vec(),
            flags,
            size,
            value: Vec::new(),
        };
        self.fids.start_xattr(fid, write)
    }

    /// Stores the attribute that was written to a clunked fid, if any. An empty value that
    /// must replace an attribute is how Linux's client requests a removal.
    ///
    /// # Errors
    /// The host's; `EINVAL` if the value is incomplete.
    pub(super) fn store_xattr(&self, fid: Fid) -> Result<(), Errno> {
        let Fid::XattrWrite(write) = fid else {
            return Ok(());
        };
        if write.value.len() != write.size {
            return Err(Errno::INVAL);
        }
        // The file may have got a protected name meanwhile.
        self.check_change(&write.node)?;
        let file = self.open_any(&write.node)?;
        let flags = XattrFlags::from_bits_retain(write.flags);
        let before = attribute_bytes(&file, &write.name);
        let spent = self.spent(&write.node);
        if write.value.is_empty() && flags == XattrFlags::REPLACE {
            spent.set_attribute(&file, before, 0, || fremovexattr(&file, &*write.name))
        } else {
            let after = write.name.len() + write.value.len();
            spent.set_attribute(&file, before, after, || {
                fsetxattr(&file, &*write.name, &write.value, flags)
            })
        }
    }

    /// Bytes of all attributes of a file, if the guest may have set any.
    pub(super) fn attribute_bytes(&self, node: &Node) -> usize {
        if !self.spent(node).has_attributes() {
            return 0;
        }
        let Ok(names) = self.list_xattrs(node) else {
            return 0;
        };
        let Ok(file) = self.open_any(node) else {
            return 0;
        };
        let names = names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty());
        names.map(|name| attribute_bytes(&file, name)).sum()
    }

    /// Opens a file for its attributes: for reading, or, if its mode forbids that, for
    /// writing.
    ///
    /// # Errors
    /// `ENOTSUP` for file types without `user.` attributes.
    fn open_any(&self, node: &Node) -> Result<CountedFd, Errno> {
        match node.kind {
            FileType::Directory | FileType::RegularFile => {}
            _ => return Err(Errno::OPNOTSUPP),
        }
        match self.host.reopen(node, OFlags::RDONLY) {
            Err(Errno::ACCESS) if self.check_writable(node).is_ok() => {
                self.host.reopen(node, OFlags::WRONLY)
            }
            opened => opened,
        }
    }
}

/// Bytes of an attribute with its name; 0 if the file does not have it.
fn attribute_bytes(file: &CountedFd, name: &[u8]) -> usize {
    let mut value = Vec::with_capacity(MAX_XATTR_BYTES);
    match fgetxattr(file, name, spare_capacity(&mut value)) {
        Ok(length) => name.len() + length,
        Err(_) => 0,
    }
}

/// Checks that the guest may use an attribute name.
///
/// # Errors
/// `ENOTSUP` for attributes outside `user.`, `ERANGE` for a name that is too long or empty.
fn check_name(name: &[u8]) -> Result<(), Errno> {
    if !name.starts_with(USER) {
        return Err(Errno::OPNOTSUPP);
    }
    if name.len() > MAX_NAME_BYTES || name.len() == USER.len() || name.contains(&0) {
        return Err(Errno::RANGE);
    }
    Ok(())
}
