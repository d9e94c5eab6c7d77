//! Makers of archives, well-formed and not.

use a99_sandbox_cache::digest::of_bytes;
use a99_sandbox_oci::{Image, Input, Limits, OciError, read};
use serde_json::{Value as Json, json};
use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tar stream under construction.
#[derive(Clone, Default)]
pub(crate) struct Tar(pub(crate) Vec<u8>);

impl Tar {
    pub(crate) fn raw(
        mut self,
        path: &[u8],
        kind: u8,
        target: &[u8],
        size: u64,
        body: &[u8],
    ) -> Self {
        let mut block = [0u8; 512];
        block[..path.len().min(100)].copy_from_slice(&path[..path.len().min(100)]);
        block[100..107].copy_from_slice(b"0000644");
        block[108..115].copy_from_slice(b"0000007");
        block[116..123].copy_from_slice(b"0000010");
        block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        block[136..147].copy_from_slice(b"00000000017");
        block[156] = kind;
        block[157..157 + target.len()].copy_from_slice(target);
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend(block);
        self.0.extend(body);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn file(self, path: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        if path.len() > 100 {
            return self.pax(&[("path", path.as_bytes())]).raw(
                b"x",
                b'0',
                b"",
                body.len() as u64,
                body,
            );
        }
        self.raw(path.as_bytes(), b'0', b"", body.len() as u64, body)
    }

    pub(crate) fn folder(self, path: &str) -> Self {
        self.raw(path.as_bytes(), b'5', b"", 0, b"")
    }

    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        self.raw(path.as_bytes(), b'2', target.as_bytes(), 0, b"")
    }

    pub(crate) fn hard(self, path: &str, target: &str) -> Self {
        self.raw(path.as_bytes(), b'1', target.as_bytes(), 0, b"")
    }

    pub(crate) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let mut body = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let mut length = rest + rest.to_string().len();
            length = rest + length.to_string().len();
            body.extend(format!("{length} {key}=").into_bytes());
            body.extend(*value);
            body.push(b'\n');
        }
        self.raw(b"pax", b'x', b"", body.len() as u64, &body)
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

/// An OCI layout under construction: files by name.
#[derive(Clone)]
pub(crate) struct Layout {
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) layers: Vec<Json>,
    pub(crate) diff_ids: Vec<String>,
    pub(crate) config: Json,
    pub(crate) architecture: &'static str,
}

impl Layout {
    /// An image of these layers, each unpacked.
    pub(crate) fn new(layers: impl IntoIterator<Item = Tar>) -> Self {
        let mut layout = Self {
            files: Vec::new(),
            layers: Vec::new(),
            diff_ids: Vec::new(),
            config: json!({}),
            architecture: "riscv64",
        };
        for layer in layers {
            let bytes = layer.end();
            layout.layer(&bytes, &bytes);
        }
        layout
    }

    /// Adds a layer: its blob, and what that unpacks to.
    pub(crate) fn layer(&mut self, blob: &[u8], unpacked: &[u8]) {
        let layer = self.blob(blob);
        self.layers.push(layer);
        self.diff_ids.push(format!("sha256:{}", of_bytes(unpacked)));
    }

    /// Adds a blob; returns its descriptor.
    pub(crate) fn blob(&mut self, bytes: &[u8]) -> Json {
        let hex = of_bytes(bytes);
        self.files
            .push((format!("blobs/sha256/{hex}"), bytes.to_vec()));
        json!({"mediaType": "application/x", "digest": format!("sha256:{hex}"), "size": bytes.len()})
    }

    /// Adds configuration and manifest; returns the manifest's descriptor.
    pub(crate) fn manifest(&mut self) -> Json {
        let config = json!({
            "architecture": self.architecture, "os": "linux", "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": self.diff_ids},
        });
        let config = self.blob(config.to_string().as_bytes());
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": self.layers});
        self.blob(manifest.to_string().as_bytes())
    }

    pub(crate) fn index(&mut self, manifests: &[Json]) {
        let index = json!({"schemaVersion": 2, "manifests": manifests});
        self.files
            .push(("index.json".into(), index.to_string().into_bytes()));
    }

    /// The layout as a tar file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let manifest = self.manifest();
        self.index(&[manifest]);
        self.tar()
    }

    pub(crate) fn tar(self) -> Vec<u8> {
        let tar = self
            .files
            .iter()
            .fold(Tar::default(), |tar, (name, bytes)| tar.file(name, bytes));
        tar.end()
    }
}

/// What reading gives: the description and the file system.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) image: Image,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn read_with(archive: &[u8], limits: &Limits) -> Result<Made, OciError> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(archive)
        .and_then(|()| file.rewind())
        .expect("the archive");
    read_file(file, None, limits)
}

pub(crate) fn read_file(
    file: fs::File,
    tag: Option<&str>,
    limits: &Limits,
) -> Result<Made, OciError> {
    let spool = tempfile::tempfile().expect("a file");
    let input = Input {
        archive: file,
        tag,
        spool: &spool,
    };
    let mut bytes = Vec::new();
    let image = read(input, limits, &mut bytes, &mut |_| {})?;
    assert_eq!(image.bytes, bytes.len() as u64);
    Ok(Made { image, bytes })
}

pub(crate) fn made(archive: &[u8]) -> Made {
    read_with(archive, &Limits::default()).expect("an image")
}

/// The code of the error that an archive gives; every error says what to do.
pub(crate) fn refused(archive: &[u8]) -> &'static str {
    refused_with(archive, &Limits::default())
}

pub(crate) fn refused_with(archive: &[u8], limits: &Limits) -> &'static str {
    let error = read_with(archive, limits).expect_err("the archive is hostile");
    assert!(error.to_string().len() < 2000, "{error}");
    error.code.name()
}

/// Extracts a file system by erofs-utils.
pub(crate) fn extract(made: &Made) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (folder.path().join("image"), folder.path().join("out"));
    fs::write(&file, &made.bytes).expect("the image");
    let target = format!("--extract={}", out.display());
    let judged = Command::new("fsck.erofs")
        .arg("-d3")
        .arg(target)
        .arg(&file)
        .output();
    let judged = judged.expect("erofs-utils of Debian is installed");
    let text = String::from_utf8_lossy(&[judged.stdout, judged.stderr].concat()).into_owned();
    assert!(text.contains("Extracted filesystem successfully"), "{text}");
    (folder, out)
}

/// All paths below a folder with what they are, sorted.
pub(crate) fn listing(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .strip_prefix(root)
                .expect("below")
                .to_string_lossy()
                .into_owned();
            let metadata = fs::symlink_metadata(&path).expect("metadata");
            if metadata.is_dir() {
                found.push(format!("{name}/"));
                waiting.push(path);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                found.push(format!("{name} -> {}", target.display()));
            } else {
                let text = fs::read(&path).unwrap_or_default();
                found.push(format!("{name}: {}", String::from_utf8_lossy(&text)));
            }
        }
    }
    found.sort();
    found
}

/// The paths of an image of these layers.
pub(crate) fn flattened(layers: impl IntoIterator<Item = Tar>) -> Vec<String> {
    let made = made(&Layout::new(layers).finish());
    let (_folder, out) = extract(&made);
    listing(&out)
}
