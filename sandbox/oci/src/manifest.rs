//! From an archive's index to the one image for the guest's processor.

use crate::archive::Archive;
use crate::blob::{Digest, read_small};
use crate::error::{OciCode, OciError, damaged, limit, quoted};
use crate::limits::Limits;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt;

/// The guest's processor and system.
const ARCHITECTURE: &str = "riscv64";
const SYSTEM: &str = "linux";

/// What to do with an image for another processor.
const OTHER_ARCHITECTURE: &str = "get it for riscv64: `docker pull --platform linux/riscv64 NAME`, \
     `docker buildx build --platform linux/riscv64`, or \
     `skopeo copy --override-arch riscv64 docker://NAME oci-archive:FILE`";

/// Depth of indexes in indexes.
pub(crate) const MAX_DEPTH: u32 = 4;

/// Annotations that name an image in an index.
pub(crate) const REF_NAMES: [&str; 2] = [
    "io.containerd.image.name",
    "org.opencontainers.image.ref.name",
];

/// The image that was chosen.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// Its name in the archive.
    pub(crate) reference: Option<String>,
    /// Digest of its configuration.
    pub(crate) id: Digest,
    pub(crate) config: ConfigFile,
    pub(crate) layers: Vec<Layer>,
}

/// A layer of the image.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) name: String,
    /// Digest and size of the blob, if the archive names them.
    pub(crate) blob: Option<(Digest, u64)>,
    pub(crate) diff_id: Digest,
}

/// The configuration file of an image.
#[derive(Debug, Deserialize)]
pub(crate) struct ConfigFile {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    pub(crate) config: Option<RunConfig>,
    rootfs: RootFs,
}

impl ConfigFile {
    pub(crate) fn platform(&self) -> Platform {
        Platform {
            architecture: self.architecture.clone(),
            os: self.os.clone(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

/// What the image says about its commands.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RunConfig {
    pub(crate) env: Option<Vec<String>>,
    pub(crate) user: Option<String>,
    pub(crate) working_dir: Option<String>,
    pub(crate) cmd: Option<Vec<String>>,
    pub(crate) entrypoint: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    pub(crate) platform: Option<Platform>,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Platform {
    architecture: String,
    os: String,
}

impl Platform {
    /// Whether guests run it.
    pub(crate) fn fits(&self) -> bool {
        self.architecture == ARCHITECTURE && self.os == SYSTEM
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// An index or a manifest: the fields say which.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    pub(crate) manifests: Option<Vec<Descriptor>>,
    pub(crate) config: Option<Descriptor>,
    pub(crate) layers: Option<Vec<Descriptor>>,
}

/// An image of `manifest.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// Chooses the image, by tag if the archive has several.
pub(crate) fn choose(
    archive: &Archive,
    tag: Option<&str>,
    limits: &Limits,
) -> Result<Chosen, OciError> {
    let job = Job { archive, limits };
    let chosen = if let Some(span) = archive.find("index.json")? {
        let bytes = read_small(span, None, None, "index.json", limits)?;
        job.in_index(&bytes, tag)?
    } else if let Some(span) = archive.find("manifest.json")? {
        let bytes = read_small(span, None, None, "manifest.json", limits)?;
        job.in_saved(&bytes, tag)?
    } else {
        let text = "neither index.json nor manifest.json is in it";
        return Err(damaged("archive", text).help(
            "it must be an OCI layout or made by `docker save`; `docker export` does not keep \
             what an image is",
        ));
    };
    Ok(chosen)
}

struct Job<'a> {
    archive: &'a Archive,
    limits: &'a Limits,
}

impl Job<'_> {
    fn in_index(&self, bytes: &[u8], tag: Option<&str>) -> Result<Chosen, OciError> {
        let top: Document = parse(bytes, "index.json")?;
        let top = top.manifests.unwrap_or_default();
        let named = |descriptor: &Descriptor| tag.is_none_or(|tag| has_tag(descriptor, tag));
        let wanted: Vec<Descriptor> = top.iter().filter(|d| named(d)).cloned().collect();
        if wanted.is_empty() {
            return Err(no_tag(tag, top.iter().filter_map(reference)));
        }
        let mut waiting: Vec<(Descriptor, u32)> =
            wanted.into_iter().rev().map(|d| (d, 0)).collect();
        let mut found: Vec<(Option<String>, Document)> = Vec::new();
        let (mut seen, mut others) = (BTreeSet::new(), BTreeSet::new());
        while let Some((descriptor, depth)) = waiting.pop() {
            if let Some(platform) = &descriptor.platform
                && !platform.fits()
            {
                // Attestations have the platform unknown/unknown.
                others.insert(platform.to_string());
                continue;
            }
            if !seen.insert(descriptor.digest.clone()) {
                continue;
            }
            if seen.len() as u64 > self.limits.manifests {
                return Err(limit("index.json", "manifests", self.limits.manifests));
            }
            let name = reference(&descriptor);
            let bytes = self.blob(&descriptor)?;
            let document: Document = parse(&bytes, &descriptor.digest)?;
            match document.manifests {
                Some(_) if depth >= MAX_DEPTH => {
                    return Err(limit(
                        "index.json",
                        "indexes in each other",
                        MAX_DEPTH.into(),
                    ));
                }
                Some(more) => waiting.extend(more.into_iter().rev().map(|mut descriptor| {
                    if descriptor.annotations.is_none() {
                        descriptor
                            .annotations
                            .clone_from(&descriptor_annotations(&name));
                    }
                    (descriptor, depth + 1)
                })),
                None => found.push((name, document)),
            }
        }
        let mut images = Vec::new();
        for (name, document) in found {
            let Document { config, layers, .. } = document;
            let (Some(config), Some(layers)) = (config, layers) else {
                return Err(damaged("manifest", "a manifest without config or layers"));
            };
            let id = Digest::parse(&config.digest)?;
            let bytes = self.blob(&config)?;
            let file: ConfigFile = parse(&bytes, &config.digest)?;
            if file.platform().fits() {
                images.push((name, id, file, layers));
            } else {
                others.insert(file.platform().to_string());
            }
        }
        let names = images.iter().filter_map(|(name, ..)| name.clone());
        let names: Vec<String> = names.collect();
        let (reference, id, config, layers) = one(images, names, &others)?;
        let blobs = layers.into_iter().map(|layer| {
            if layer.media_type.ends_with("+encrypted") {
                let error = OciError::new(OciCode::Unsupported, "manifest", "an encrypted layer");
                return Err(error.help("decrypt the image first"));
            }
            let digest = Digest::parse(&layer.digest)?;
            Ok((blob_name(&digest), Some((digest, layer.size))))
        });
        let blobs = blobs.collect::<Result<Vec<_>, _>>()?;
        self.chosen(reference, id, config, blobs)
    }

    fn in_saved(&self, bytes: &[u8], tag: Option<&str>) -> Result<Chosen, OciError> {
        let all: Vec<Saved> = parse(bytes, "manifest.json")?;
        if all.len() as u64 > self.limits.manifests {
            return Err(limit("manifest.json", "images", self.limits.manifests));
        }
        let tags = |saved: &Saved| saved.repo_tags.clone().unwrap_or_default();
        let known: Vec<String> = all.iter().flat_map(tags).collect();
        let named = |saved: &Saved| {
            tag.is_none_or(|tag| tags(saved).iter().any(|known| is_tag(known, tag)))
        };
        let wanted: Vec<Saved> = all.into_iter().filter(named).collect();
        if wanted.is_empty() {
            return Err(no_tag(tag, known.into_iter()));
        }
        let (mut images, mut others) = (Vec::new(), BTreeSet::new());
        for saved in wanted {
            let id = saved.config.strip_suffix(".json").unwrap_or(&saved.config);
            let id = Digest::from_hex(id.rsplit('/').next().unwrap_or(id));
            let id = id.ok_or_else(|| {
                damaged(
                    "manifest.json",
                    "a configuration whose name is not its digest",
                )
            })?;
            let span = self.archive.get(&saved.config)?;
            let place = quoted(saved.config.as_bytes());
            let bytes = read_small(span, Some(&id), None, &place, self.limits)?;
            let file: ConfigFile = parse(&bytes, &place)?;
            if file.platform().fits() {
                let name = tags(&saved).into_iter().next();
                images.push((name, id, file, saved.layers));
            } else {
                others.insert(file.platform().to_string());
            }
        }
        let (reference, id, config, layers) = one(images, known, &others)?;
        let blobs = layers.into_iter().map(|name| (name, None)).collect();
        self.chosen(reference, id, config, blobs)
    }

    fn chosen(
        &self,
        reference: Option<String>,
        id: Digest,
        config: ConfigFile,
        blobs: Vec<(String, Option<(Digest, u64)>)>,
    ) -> Result<Chosen, OciError> {
        let diff_ids = &config.rootfs.diff_ids;
        if diff_ids.len() != blobs.len() {
            let (named, has) = (diff_ids.len(), blobs.len());
            let text = format!("{has} layers, and {named} in the configuration");
            return Err(damaged("manifest", text));
        }
        if blobs.len() as u64 > self.limits.layers {
            return Err(limit("manifest", "layers", self.limits.layers)
                .help("squash the image, as with `docker build --squash`"));
        }
        let layer = |((name, blob), diff_id): ((String, _), &String)| {
            let diff_id = Digest::parse(diff_id)?;
            Ok(Layer {
                name,
                blob,
                diff_id,
            })
        };
        let layers = blobs.into_iter().zip(diff_ids).map(layer);
        Ok(Chosen {
            reference,
            id,
            layers: layers.collect::<Result<_, OciError>>()?,
            config,
        })
    }

    /// Reads a small blob of an OCI layout.
    fn blob(&self, descriptor: &Descriptor) -> Result<Vec<u8>, OciError> {
        let digest = Digest::parse(&descriptor.digest)?;
        let span = self.archive.get(&blob_name(&digest))?;
        let place = &descriptor.digest;
        read_small(
            span,
            Some(&digest),
            Some(descriptor.size),
            place,
            self.limits,
        )
    }
}

fn descriptor_annotations(
    name: &Option<String>,
) -> Option<std::collections::BTreeMap<String, String>> {
    let name = name.clone()?;
    Some([(REF_NAMES[1].to_owned(), name)].into())
}

/// The one image of those that fit; the same image under several names is one.
fn one<L>(
    mut images: Vec<(Option<String>, Digest, ConfigFile, L)>,
    names: Vec<String>,
    others: &BTreeSet<String>,
) -> Result<(Option<String>, Digest, ConfigFile, L), OciError> {
    images.dedup_by(|a, b| a.1 == b.1);
    if images.len() > 1 {
        let names = names.iter().map(|name| quoted(name.as_bytes()));
        let names: Vec<String> = names.take(8).collect();
        let text = format!("several images: {}", names.join(", "));
        return Err(
            OciError::new(OciCode::NotFound, "archive", text).help("name one of them by --tag TAG")
        );
    }
    images.pop().ok_or_else(|| no_image(others))
}

/// Error of an image that is for other processors or systems alone.
pub(crate) fn no_image(others: &BTreeSet<String>) -> OciError {
    let others = others.iter().map(|name| quoted(name.as_bytes()));
    let others: Vec<String> = others.take(8).collect();
    let (code, text) = match &others[..] {
        [] => (OciCode::NotFound, "there is no image in it".to_owned()),
        _ => (
            OciCode::Architecture,
            format!(
                "it is for {}, and a guest is \"{SYSTEM}/{ARCHITECTURE}\"",
                others.join(", ")
            ),
        ),
    };
    OciError::new(code, "image", text).help(OTHER_ARCHITECTURE)
}

pub(crate) fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn reference(descriptor: &Descriptor) -> Option<String> {
    let annotations = descriptor.annotations.as_ref()?;
    REF_NAMES
        .iter()
        .find_map(|name| annotations.get(*name).cloned())
}

fn has_tag(descriptor: &Descriptor, tag: &str) -> bool {
    let annotations = descriptor.annotations.iter();
    let named = annotations.flat_map(|all| REF_NAMES.iter().filter_map(|name| all.get(*name)));
    named.into_iter().any(|known| is_tag(known, tag))
}

fn is_tag(known: &str, tag: &str) -> bool {
    known == tag
        || known
            .strip_suffix(tag)
            .is_some_and(|name| name.ends_with([':', '/']))
}

fn no_tag(tag: Option<&str>, known: impl Iterator<Item = String>) -> OciError {
    let known: Vec<String> = known.take(8).map(|name| quoted(name.as_bytes())).collect();
    let text = match tag {
        Some(tag) => format!("no image {:?}; it has {}", tag, known.join(", ")),
        None => "there is no image in it".to_owned(),
    };
    OciError::new(OciCode::NotFound, "archive", text).help("name another one by --tag TAG")
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8], place: &str) -> Result<T, OciError> {
    serde_json::from_slice(bytes).map_err(|error| damaged(place, error.to_string()))
}
