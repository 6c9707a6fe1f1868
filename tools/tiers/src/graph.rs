//! The part of `cargo metadata` that the rules look at.

use cargo_metadata::{DependencyKind, Metadata};

/// A package of this workspace.
#[derive(Debug)]
pub struct Package {
    /// Its name in `Cargo.toml`.
    pub name: String,
    /// First folder below the workspace root on the way to its manifest.
    pub folder: String,
    /// Path of its manifest, relative to the workspace root.
    pub manifest: String,
    /// All that its manifest names, in every section.
    pub imports: Vec<Import>,
}

/// One dependency as a manifest states it; optional and platform-specific ones included.
#[derive(Debug)]
pub struct Import {
    /// The imported package's own name, also where it was renamed.
    pub name: String,
    /// Section of the manifest.
    pub kind: ImportKind,
    /// Whether it is given by a path, and so lives in this repository.
    pub in_workspace: bool,
}

/// Section of the manifest that an import stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// `[dependencies]`
    Normal,
    /// `[dev-dependencies]`
    Dev,
    /// `[build-dependencies]`
    Build,
}

impl ImportKind {
    /// The section's title as one writes it.
    pub fn section(self) -> &'static str {
        match self {
            ImportKind::Normal => "[dependencies]",
            ImportKind::Dev => "[dev-dependencies]",
            ImportKind::Build => "[build-dependencies]",
        }
    }
}

impl From<DependencyKind> for ImportKind {
    fn from(kind: DependencyKind) -> Self {
        match kind {
            DependencyKind::Development => ImportKind::Dev,
            DependencyKind::Build => ImportKind::Build,
            // A kind that cargo may add later is held to the strictest rules.
            _ => ImportKind::Normal,
        }
    }
}

/// The workspace's own packages, in the order of their manifests.
pub fn packages(metadata: &Metadata) -> Vec<Package> {
    let mut packages: Vec<Package> = metadata
        .workspace_packages()
        .into_iter()
        .map(|package| {
            let manifest =
                package.manifest_path.strip_prefix(&metadata.workspace_root).unwrap_or(&package.manifest_path);
            Package {
                name: package.name.to_string(),
                folder: manifest.components().next().map(|c| c.as_str().to_owned()).unwrap_or_default(),
                manifest: manifest.to_string(),
                imports: package
                    .dependencies
                    .iter()
                    .map(|dependency| Import {
                        name: dependency.name.clone(),
                        kind: dependency.kind.into(),
                        in_workspace: dependency.path.is_some(),
                    })
                    .collect(),
            }
        })
        .collect();
    packages.sort_by(|a, b| a.manifest.cmp(&b.manifest));
    packages
}
