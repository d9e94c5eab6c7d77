//! Registries: an image is downloaded as an OCI layout, which is then read like any other.
//!
//! A registry is as hostile as an archive. Each request and each redirect of it goes through
//! the network policy ([`Access::policy`]); sizes are announced, bounded and then enforced,
//! and every manifest and blob has the digest by which it was asked for. What a download
//! leaves unfinished is removed.

mod client;
mod reference;

use crate::blob::Digest;
use crate::error::{OciCode, OciError, damaged, limit, quoted};
use crate::limits::Limits;
use crate::manifest::{
    self, ConfigFile, Descriptor, Document, MAX_DEPTH, REF_NAMES, blob_name, no_image, parse,
};
use crate::store::Store;
use a99_sandbox_cache::digest::{Hasher, of_bytes};
use client::{Client, keep};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

pub use a99_http::{Policy, Secret};
pub use reference::{Reference, SCHEME};

/// Types of manifests and of indexes.
const MANIFESTS: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];
const INDEXES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// What a download may reach, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The network; by default all public addresses, or an insecure registry alone.
    pub policy: Option<Policy>,
    /// HTTP without TLS to a registry on this machine.
    pub insecure: bool,
    /// User and password, which are sent to the registry and to its own realm alone.
    pub user: Option<(String, Secret)>,
    /// A further host that may ask for them.
    pub auth_host: Option<String>,
}

/// A folder for one download, which is removed on drop.
#[derive(Debug)]
pub struct Download {
    store: Store,
    folder: PathBuf,
    _lock: File,
}

impl Download {
    /// Makes the folder, after other downloads into the store have ended.
    ///
    /// # Errors
    /// [`OciCode::Io`].
    pub fn new(store: &Store) -> Result<Self, OciError> {
        let (folder, lock) = store.download_folder()?;
        Ok(Self {
            store: store.clone(),
            folder,
            _lock: lock,
        })
    }

    /// The folder, an OCI layout after [`Download::fetch`].
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Downloads the image for guests; `progress` gets the bytes so far and in all. Runs
    /// on tokio.
    ///
    /// # Errors
    /// [`OciError`] if the registry has no such image, refuses it, or sends something else.
    pub async fn fetch(
        &self,
        reference: &Reference,
        access: &Access,
        limits: &Limits,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), OciError> {
        let mut job = Job {
            client: Client::new(access, reference, limits.unpacked)?,
            folder: &self.folder,
            limits,
            done: 0,
            total: 0,
            progress,
        };
        let blobs = self.folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(|error| failed(&blobs, &error))?;
        let (digest, size, document) = job.manifest(reference).await?;
        let (Some(config), Some(layers)) = (document.config, document.layers) else {
            return Err(damaged("manifest", "a manifest without config or layers"));
        };
        if layers.len() as u64 > limits.layers {
            return Err(limit("manifest", "layers", limits.layers));
        }
        if config.size > limits.json {
            return Err(limit("configuration", "bytes", limits.json));
        }
        // What the store has is not downloaded again.
        let is_known = self.store.has(Digest::parse(&config.digest)?.hex());
        let mut names = BTreeSet::new();
        let layers = layers.into_iter().filter(|_| !is_known);
        let layers = layers.chain([config.clone()]);
        let wanted: Vec<Descriptor> = layers
            .filter(|blob| names.insert(blob.digest.clone()))
            .collect();
        let sizes = wanted
            .iter()
            .try_fold(0u64, |all, blob| all.checked_add(blob.size));
        job.total = sizes
            .filter(|all| *all <= limits.unpacked)
            .ok_or_else(|| limit("manifest", "bytes of layers", limits.unpacked))?;
        // The configuration first: it knows the processor.
        for blob in wanted.iter().rev() {
            job.blob(blob).await?;
            if blob.digest == config.digest {
                let path = self.folder.join(blob_name(&Digest::parse(&blob.digest)?));
                let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
                let file: ConfigFile = parse(&bytes, "configuration")?;
                if !file.platform().fits() {
                    return Err(no_image(&[file.platform().to_string()].into()));
                }
            }
        }
        let index = json!({"schemaVersion": 2, "manifests": [{
            "mediaType": MANIFESTS[0],
            "digest": format!("sha256:{}", digest.hex()),
            "size": size,
            "annotations": {REF_NAMES[1]: reference.name()},
        }]});
        let path = self.folder.join("index.json");
        fs::write(&path, index.to_string()).map_err(|error| failed(&path, &error))
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        // The next download empties what cannot be removed now.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Job<'a> {
    client: Client<'a>,
    folder: &'a Path,
    limits: &'a Limits,
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Job<'_> {
    /// Downloads the manifest for guests, through indexes; returns its digest and size.
    async fn manifest(
        &mut self,
        reference: &Reference,
    ) -> Result<(Digest, u64, Document), OciError> {
        let accept = [MANIFESTS, INDEXES].concat().join(", ");
        let mut wanted = reference.manifest();
        let mut digest = reference.digest.clone();
        for _ in 0..=MAX_DEPTH {
            let path = format!("manifests/{wanted}");
            let mut bytes = Vec::new();
            let max = self.limits.json;
            let mut sink = keep(&mut bytes);
            let (media_type, named) = self.client.read(&path, &accept, max, &mut sink).await?;
            drop(sink);
            let found = of_bytes(&bytes);
            let named = named.as_deref().map(Digest::parse).transpose()?;
            for named in [&digest, &named].into_iter().flatten() {
                check(&found, named, &path)?;
            }
            let media_type = media_type.split(';').next().unwrap_or_default().trim();
            if !MANIFESTS.contains(&media_type) && !INDEXES.contains(&media_type) {
                let text = format!("a manifest of type {}", quoted(media_type.as_bytes()));
                return Err(
                    OciError::new(OciCode::Unsupported, quoted(path.as_bytes()), text)
                        .help("images have manifests of OCI or of Docker, version 2"),
                );
            }
            let document: Document = parse(&bytes, &path)?;
            let Some(manifests) = document.manifests else {
                let found = Digest::from_hex(&found)
                    .ok_or_else(|| damaged("manifest", "a malformed digest"))?;
                let path = self.folder.join(blob_name(&found));
                fs::write(&path, &bytes).map_err(|error| failed(&path, &error))?;
                return Ok((found, bytes.len() as u64, document));
            };
            if manifests.len() as u64 > self.limits.manifests {
                return Err(limit(path, "manifests", self.limits.manifests));
            }
            let fits = |found: &&Descriptor| {
                found
                    .platform
                    .as_ref()
                    .is_some_and(manifest::Platform::fits)
            };
            let Some(chosen) = manifests.iter().find(fits) else {
                let others = manifests.iter().filter_map(|found| found.platform.as_ref());
                return Err(no_image(&others.map(ToString::to_string).collect()));
            };
            let parsed = Digest::parse(&chosen.digest)?;
            wanted = format!("sha256:{}", parsed.hex());
            digest = Some(parsed);
        }
        Err(limit("index", "indexes in each other", MAX_DEPTH.into()))
    }

    /// Downloads a blob of at most its size, and checks its digest, which a shorter one
    /// does not have.
    async fn blob(&mut self, wanted: &Descriptor) -> Result<(), OciError> {
        let digest = Digest::parse(&wanted.digest)?;
        let path = self.folder.join(blob_name(&digest));
        let name = format!("blobs/sha256:{}", digest.hex());
        let mut file = File::create_new(&path).map_err(|error| failed(&path, &error))?;
        let (mut hasher, mut count) = (Hasher::default(), 0);
        let (done, total) = (self.done, self.total);
        let progress = &mut *self.progress;
        let mut sink = |chunk: &[u8]| {
            hasher.update(chunk);
            count += chunk.len() as u64;
            progress(done + count, total);
            file.write_all(chunk).map_err(|error| failed(&path, &error))
        };
        let read = self.client.read(&name, "*/*", wanted.size, &mut sink);
        read.await?;
        self.done += count;
        check(&hasher.hex(), &digest, &name)
    }
}

const DIFFERS: &str = "the registry sends something else than it names: try again, or another one";

fn check(found: &str, named: &Digest, place: &str) -> Result<(), OciError> {
    if found == named.hex() {
        return Ok(());
    }
    let text = format!("its SHA-256 is {found}, and {} is named", named.hex());
    Err(OciError::new(OciCode::Digest, quoted(place.as_bytes()), text).help(DIFFERS))
}

fn failed(path: &Path, error: &std::io::Error) -> OciError {
    OciError::io(path.display().to_string(), error)
}
