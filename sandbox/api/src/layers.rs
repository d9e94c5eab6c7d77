//! Layers of a guest's root: files, packs by name, and container images.

use super::builder::Builder;
use crate::cache::Cache;
use a99_sandbox_oci::{Config, OciError, Store, StoredImage};
use a99_sandbox_protocol::Identity;
use a99_sandbox_runner::{Layer, VmCode, VmError};

/// Search path of a container image that sets none, as of Docker.
const CONTAINER_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Builder {
    /// Adds a pack that `a99 sandbox build --pack` made, a layer by name.
    pub fn pack(mut self, name: impl Into<String>) -> Self {
        self.packs.push(name.into());
        self
    }

    /// Adds a layer of files over the image's root, below those added before; at most
    /// [`MAX_LAYERS`](crate::vm::MAX_LAYERS).
    ///
    /// All sandboxes with this layer share its file. A copy of a sandbox needs its layers
    /// again, in any order, except packs and container images that are in the cache.
    pub fn layer(mut self, layer: &Layer) -> Self {
        self.layers.push(layer.clone());
        self
    }

    /// Starts from a container image of the user's store instead of our image.
    ///
    /// Its files are the root. Its variables, user and working directory are the defaults
    /// of commands; those of this builder come after them. Its session shell is its
    /// `/bin/sh`, if it has one.
    ///
    /// # Errors
    /// [`VmCode::UntrustedImage`](crate::vm::VmCode::UntrustedImage) if other users may change its file.
    pub fn container(mut self, stored: &StoredImage) -> Result<Self, VmError> {
        let layer = Layer::of_user(&stored.file, &stored.sha256)?;
        let Config {
            env,
            run_as,
            working_dir,
            ..
        } = &stored.image.config;
        let mut all = vec![("HOME".to_owned(), run_as.home.clone())];
        if let Some(name) = &run_as.name {
            all.extend(["USER", "LOGNAME"].map(|variable| (variable.to_owned(), name.clone())));
        }
        if !env.iter().any(|(name, _)| name == "PATH") {
            all.push(("PATH".to_owned(), CONTAINER_PATH.to_owned()));
        }
        all.extend(env.iter().cloned());
        all.append(&mut self.env);
        self.env = all;
        let folder = working_dir.as_deref().unwrap_or("/");
        self.identity = Some(Identity {
            uid: run_as.uid,
            gid: run_as.gid,
            groups: run_as.groups.clone(),
            folder: folder.as_bytes().to_vec(),
        });
        self.layers.push(layer);
        self.replace_root = true;
        Ok(self)
    }

    /// Adds the container image of a copy's original, whose root has layers with these
    /// hashes, unless the caller named it. One that is gone is an error of the layers.
    ///
    /// # Errors
    /// Those of the user's cache, and of [`Builder::container`].
    pub(super) fn container_of(self, hashes: &[String]) -> Result<Self, VmError> {
        if self.replace_root || hashes.is_empty() {
            return Ok(self);
        }
        let cache = Cache::of_user();
        let cache = cache.map_err(|error| VmError::new(VmCode::Io, error.to_string()))?;
        let of_store = |error: OciError| VmError::new(VmCode::Io, error.to_string());
        let images = Store::of(&cache).map_err(of_store)?.list();
        let mut images = images.into_iter();
        match images.find(|image| hashes.contains(&image.sha256)) {
            Some(image) => self.container(&image),
            None => Ok(self),
        }
    }
}
