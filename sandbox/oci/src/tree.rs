//! Tree of an image: its layers, one over the other, in memory.
//!
//! Names are components in maps, so no name of an archive leads out of the tree: `..` in an
//! entry is refused, an absolute path begins at the root, and a link on the way is resolved
//! inside. As in containerd, an entry for a folder replaces a link of that name, and an
//! entry below a link whose name no entry replaces goes where the link leads.

use crate::error::{OciCode, OciError, damaged, limit, quoted};
use crate::limits::{Limits, MAX_LINKS, MAX_STEPS};
use crate::tar::{Entry, EntryKind};
use a99_sandbox_erofs as erofs;
use std::collections::BTreeMap;

/// Number of the root, which stands for no entry too: nothing contains it.
const ROOT: u32 = 0;

/// Longest target of a link, as of the file system.
const MAX_TARGET: usize = erofs::MAX_LINK;

/// Prefix of names that remove, and the name that removes all that layers below have.
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
const RESERVED: &[u8] = b".wh..wh.";

/// Folders of the root that a guest mounts over.
const MOUNT_POINTS: [&[u8]; 4] = [b"dev", b"proc", b"run", b"sys"];

/// Mode of a folder that no entry describes.
const DEFAULT_MODE: u16 = 0o755;

/// A name with the node and the layer that set it last.
#[derive(Clone, Copy, Debug)]
struct Named {
    node: u32,
    layer: u16,
}

#[derive(Debug)]
enum Kind {
    Folder {
        names: BTreeMap<Box<[u8]>, Named>,
        parent: u32,
        depth: u16,
        /// Layer that removed what those below had here.
        swept: u16,
    },
    Other(erofs::Kind),
}

#[derive(Debug)]
struct Node {
    mode: u16,
    uid: u32,
    gid: u32,
    mtime: i64,
    kind: Kind,
}

/// The tree; see the module.
#[derive(Debug)]
pub(crate) struct Tree<'l> {
    limits: &'l Limits,
    nodes: Vec<Node>,
    /// Number of the current layer, from 1.
    layer: u16,
    names: u64,
    /// Devices that were dropped.
    pub(crate) devices: u64,
}

/// What walking a path finds in the way.
enum Missing {
    /// Makes the folder.
    Make,
    /// Stops.
    Stop,
}

impl<'l> Tree<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            nodes: vec![folder(ROOT, 0)],
            layer: 0,
            names: 0,
            devices: 0,
        }
    }

    /// Begins the next layer.
    pub(crate) fn next_layer(&mut self) {
        self.layer = self.layer.saturating_add(1);
    }

    /// Applies an entry whose content stands at `offset`.
    pub(crate) fn apply(&mut self, entry: &Entry, offset: u64) -> Result<(), OciError> {
        let parts = components(&entry.path)?;
        let Some((name, parents)) = parts.split_last() else {
            if entry.kind == EntryKind::Folder {
                self.describe(ROOT, entry);
                return Ok(());
            }
            return Err(damaged(quoted(&entry.path), "the root is not a folder"));
        };
        if parents.iter().any(|part| part.starts_with(WHITEOUT)) {
            let text = "an entry below the mark of a removed one";
            return Err(damaged(quoted(&entry.path), text));
        }
        if let Some(removed) = name.strip_prefix(WHITEOUT) {
            return self.remove(name, removed, parents, entry);
        }
        if name.len() > erofs::MAX_NAME {
            let most = erofs::MAX_NAME as u64;
            return Err(limit(quoted(&entry.path), "bytes in a name", most));
        }
        let parent = self
            .walk(parents, &entry.path, &Missing::Make)?
            .unwrap_or(ROOT);
        let kind = match entry.kind {
            EntryKind::Folder => return self.add_folder(parent, name, entry),
            EntryKind::HardLink => return self.add_hard_link(parent, name, entry),
            EntryKind::Device => {
                self.devices += 1;
                self.unname(parent, name);
                return Ok(());
            }
            EntryKind::File => erofs::Kind::File {
                offset,
                size: entry.size,
            },
            EntryKind::Link if entry.target.is_empty() || entry.target.len() > MAX_TARGET => {
                let text = "a link with an empty or too long target";
                return Err(damaged(quoted(&entry.path), text));
            }
            EntryKind::Link => {
                self.count_name(&entry.target, &entry.path)?;
                erofs::Kind::Link(entry.target.as_slice().into())
            }
            EntryKind::Fifo => erofs::Kind::Fifo,
        };
        let node = self.add(Kind::Other(kind), &entry.path)?;
        self.describe(node, entry);
        self.name(parent, name, node, &entry.path)
    }

    fn add_folder(&mut self, parent: u32, name: &[u8], entry: &Entry) -> Result<(), OciError> {
        let node = match self.find(parent, name) {
            Some(found) if self.names_of(found.node).is_some() => found.node,
            _ => self.make_folder(parent, &entry.path)?,
        };
        self.describe(node, entry);
        self.name(parent, name, node, &entry.path)
    }

    fn add_hard_link(&mut self, parent: u32, name: &[u8], entry: &Entry) -> Result<(), OciError> {
        let missing = |text: &str| {
            OciError::new(OciCode::Path, quoted(&entry.path), text).help(
                "a hard link needs a file of the same or an earlier layer: build the image again",
            )
        };
        let parts = components(&entry.target)?;
        let found = match parts.split_last() {
            Some((last, above)) => self
                .walk(above, &entry.target, &Missing::Stop)?
                .and_then(|folder| self.find(folder, last)),
            None => None,
        };
        let found = found.ok_or_else(|| missing("a hard link to what is not there"))?;
        if self.names_of(found.node).is_some() {
            return Err(missing("a hard link to a folder"));
        }
        self.name(parent, name, found.node, &entry.path)
    }

    /// Applies a mark that removes.
    fn remove(
        &mut self,
        name: &[u8],
        removed: &[u8],
        parents: &[&[u8]],
        entry: &Entry,
    ) -> Result<(), OciError> {
        if matches!(removed, b"" | b"." | b"..") {
            let text = "a mark that removes no name";
            return Err(damaged(quoted(&entry.path), text));
        }
        let Some(folder) = self.walk(parents, &entry.path, &Missing::Stop)? else {
            return Ok(());
        };
        if name == OPAQUE {
            self.sweep(folder);
        } else if !name.starts_with(RESERVED)
            && let Some(found) = self.find(folder, removed)
        {
            // A mark removes what layers below have, wherever it stands in its own.
            if found.layer < self.layer {
                self.unname(folder, removed);
            } else {
                self.sweep(found.node);
            }
        }
        Ok(())
    }

    /// Removes from a folder what layers below set, once in a layer: nothing of them comes
    /// back while the layer is read.
    fn sweep(&mut self, folder: u32) {
        let layer = self.layer;
        let mut waiting = vec![folder];
        while let Some(id) = waiting.pop() {
            let Some(node) = self.nodes.get_mut(id as usize) else {
                continue;
            };
            if let Kind::Folder { names, swept, .. } = &mut node.kind
                && *swept != layer
            {
                *swept = layer;
                names.retain(|_, named| named.layer == layer);
                waiting.extend(names.values().map(|named| named.node));
            }
        }
    }

    /// Walks folders from the root; `None` if one is missing.
    fn walk(
        &mut self,
        parts: &[&[u8]],
        path: &[u8],
        missing: &Missing,
    ) -> Result<Option<u32>, OciError> {
        let lost = |text| {
            OciError::new(OciCode::Path, quoted(path), text)
                .help("the image has links that lead in circles: build it again")
        };
        let mut here = ROOT;
        let (mut links, mut steps) = (0, 0);
        // The next component is the last.
        let mut waiting: Vec<Box<[u8]>> = parts.iter().rev().map(|part| (*part).into()).collect();
        while let Some(part) = waiting.pop() {
            steps += 1;
            if steps > MAX_STEPS {
                return Err(lost("a path of too many steps"));
            }
            if *part == *b".." {
                here = self.parent(here);
                continue;
            }
            let found = self.find(here, &part);
            let kind = found.and_then(|found| self.nodes.get(found.node as usize));
            match (found, kind.map(|node| &node.kind)) {
                (Some(found), Some(Kind::Folder { .. })) => {
                    if matches!(missing, Missing::Make) {
                        // The layer has the folder too, whether it says so or not.
                        self.stamp(here, &part);
                    }
                    here = found.node;
                }
                (Some(_), Some(Kind::Other(erofs::Kind::Link(target)))) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(lost("a path through too many links"));
                    }
                    if target.starts_with(b"/") {
                        here = ROOT;
                    }
                    let parts = target.rsplit(|byte| *byte == b'/');
                    let parts = parts.filter(|part| !matches!(*part, b"" | b"."));
                    waiting.extend(parts.map(Box::<[u8]>::from));
                }
                _ if matches!(missing, Missing::Stop) => return Ok(None),
                _ => {
                    if part.len() > erofs::MAX_NAME {
                        let most = erofs::MAX_NAME as u64;
                        return Err(limit(quoted(path), "bytes in a name", most));
                    }
                    let made = self.make_folder(here, path)?;
                    self.name(here, &part, made, path)?;
                    here = made;
                }
            }
        }
        Ok(Some(here))
    }

    fn make_folder(&mut self, parent: u32, path: &[u8]) -> Result<u32, OciError> {
        let depth = match self.nodes.get(parent as usize).map(|node| &node.kind) {
            Some(Kind::Folder { depth, .. }) => depth.saturating_add(1),
            _ => 0,
        };
        if depth > self.limits.depth {
            let most = u64::from(self.limits.depth);
            return Err(limit(quoted(path), "folders in each other", most));
        }
        self.add(folder(parent, depth).kind, path)
    }

    fn add(&mut self, kind: Kind, path: &[u8]) -> Result<u32, OciError> {
        if self.nodes.len() as u64 > self.limits.entries {
            return Err(limit(quoted(path), "entries", self.limits.entries));
        }
        self.nodes.push(Node {
            mode: DEFAULT_MODE,
            uid: 0,
            gid: 0,
            mtime: 0,
            kind,
        });
        Ok(self.nodes.len() as u32 - 1)
    }

    fn describe(&mut self, node: u32, entry: &Entry) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.mode = entry.mode;
            (node.uid, node.gid, node.mtime) = (entry.uid, entry.gid, entry.mtime);
        }
    }

    fn count_name(&mut self, name: &[u8], path: &[u8]) -> Result<(), OciError> {
        self.names += name.len() as u64;
        if self.names > self.limits.names {
            let most = self.limits.names;
            return Err(limit(quoted(path), "bytes of names", most));
        }
        Ok(())
    }

    fn name(&mut self, folder: u32, name: &[u8], node: u32, path: &[u8]) -> Result<(), OciError> {
        self.count_name(name, path)?;
        let layer = self.layer;
        if let Some(names) = self.names_of_mut(folder) {
            names.insert(name.into(), Named { node, layer });
        }
        Ok(())
    }

    fn stamp(&mut self, folder: u32, name: &[u8]) {
        let layer = self.layer;
        let named = self
            .names_of_mut(folder)
            .and_then(|names| names.get_mut(name));
        if let Some(named) = named {
            named.layer = layer;
        }
    }

    fn unname(&mut self, folder: u32, name: &[u8]) {
        if let Some(names) = self.names_of_mut(folder) {
            names.remove(name);
        }
    }

    fn find(&self, folder: u32, name: &[u8]) -> Option<Named> {
        self.names_of(folder)?.get(name).copied()
    }

    fn parent(&self, folder: u32) -> u32 {
        match self.nodes.get(folder as usize).map(|node| &node.kind) {
            Some(Kind::Folder { parent, .. }) => *parent,
            _ => ROOT,
        }
    }

    fn names_of(&self, node: u32) -> Option<&BTreeMap<Box<[u8]>, Named>> {
        match &self.nodes.get(node as usize)?.kind {
            Kind::Folder { names, .. } => Some(names),
            Kind::Other(_) => None,
        }
    }

    fn names_of_mut(&mut self, node: u32) -> Option<&mut BTreeMap<Box<[u8]>, Named>> {
        match &mut self.nodes.get_mut(node as usize)?.kind {
            Kind::Folder { names, .. } => Some(names),
            Kind::Other(_) => None,
        }
    }

    /// Finds a file by its path, through links: its place and size.
    pub(crate) fn file(&mut self, path: &[u8]) -> Option<(u64, u64)> {
        let mut path = path.to_vec();
        for _ in 0..MAX_LINKS {
            let (folder, name) = {
                let parts: Vec<&[u8]> = path
                    .split(|byte| *byte == b'/')
                    .filter(|part| !matches!(*part, b"" | b"."))
                    .collect();
                let (name, parents) = parts.split_last()?;
                let folder = self.walk(parents, &path, &Missing::Stop).ok()??;
                (folder, name.to_vec())
            };
            let found = self.find(folder, &name)?;
            match &self.nodes.get(found.node as usize)?.kind {
                Kind::Other(erofs::Kind::File { offset, size }) => return Some((*offset, *size)),
                Kind::Other(erofs::Kind::Link(target)) if target.starts_with(b"/") => {
                    path = target.to_vec();
                }
                Kind::Other(erofs::Kind::Link(target)) => {
                    let cut = path.len() - name.len().min(path.len());
                    path.truncate(cut);
                    path.extend(target.iter());
                }
                _ => return None,
            }
            if path.len() > self.limits.path {
                return None;
            }
        }
        None
    }

    /// Makes a folder that is not there, with those on the way: runtimes of containers make
    /// the working directory of an image.
    pub(crate) fn make_folders(&mut self, path: &[u8]) -> Result<(), OciError> {
        let parts = path.split(|byte| *byte == b'/');
        let parts: Vec<&[u8]> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
        self.walk(&parts, path, &Missing::Make).map(drop)
    }

    /// Makes folders of names of the root where a guest mounts what is its own: a link there
    /// would lead the mount elsewhere.
    pub(crate) fn free_mount_points(&mut self) -> Result<(), OciError> {
        for name in MOUNT_POINTS {
            let found = self.find(ROOT, name);
            if found.is_some_and(|found| self.names_of(found.node).is_none()) {
                let made = self.make_folder(ROOT, name)?;
                self.name(ROOT, name, made, name)?;
            }
        }
        Ok(())
    }

    /// Returns the nodes for the file system, the root first.
    pub(crate) fn into_nodes(self) -> Vec<erofs::Node> {
        let plain = |node: Node| {
            let kind = match node.kind {
                Kind::Folder { names, .. } => {
                    let names = names.into_iter();
                    erofs::Kind::Folder(names.map(|(name, named)| (name, named.node)).collect())
                }
                Kind::Other(kind) => kind,
            };
            erofs::Node {
                mode: node.mode,
                uid: node.uid,
                gid: node.gid,
                mtime: node.mtime,
                kind,
            }
        };
        self.nodes.into_iter().map(plain).collect()
    }
}

fn folder(parent: u32, depth: u16) -> Node {
    Node {
        mode: DEFAULT_MODE,
        uid: 0,
        gid: 0,
        mtime: 0,
        kind: Kind::Folder {
            names: BTreeMap::new(),
            parent,
            depth,
            swept: 0,
        },
    }
}

/// Splits the path of an entry; `..` is refused.
fn components(path: &[u8]) -> Result<Vec<&[u8]>, OciError> {
    let parts = path.split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) {
        let text = "a path with .., which leads out of the image";
        return Err(OciError::new(OciCode::Path, quoted(path), text)
            .help("no tool makes such archives: do not trust this one"));
    }
    Ok(parts)
}
