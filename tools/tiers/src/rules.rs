//! Which tier may import which: the picture at the head of `docs/decisions/0001-tiers.md` as code.

use crate::graph::{Import, ImportKind, Package};

/// A folder at the root of the repository. The first five are ordered: each may use itself and what is before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Modelled hardware; knows nothing of KVM.
    Silicon,
    /// What a host kernel gives KVM.
    Host,
    /// KVM's own logic.
    Hypervisor,
    /// KVM's files and ioctls.
    Api,
    /// Machine, boot loaders, devices, command line.
    Vmm,
    /// Experiments: may use all, nothing uses it.
    Lab,
    /// Code that runs inside guests: uses no tier.
    Guest,
    /// Checks on the repository itself: use nothing, nothing uses them.
    Tools,
}

impl Tier {
    const ALL: [(&'static str, Tier); 8] = [
        ("silicon", Tier::Silicon),
        ("host", Tier::Host),
        ("hypervisor", Tier::Hypervisor),
        ("api", Tier::Api),
        ("vmm", Tier::Vmm),
        ("lab", Tier::Lab),
        ("guest", Tier::Guest),
        ("tools", Tier::Tools),
    ];

    /// The tier that a top-level folder is.
    pub fn of_folder(folder: &str) -> Option<Tier> {
        Self::ALL.iter().find(|(name, _)| *name == folder).map(|(_, tier)| *tier)
    }

    /// The folder's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, tier)| *tier == self).map_or("?", |(name, _)| *name)
    }
}

/// Crates from outside that a tier must not use, with the reason.
const FOREIGN: [(Tier, &str, &str); 4] = [
    (Tier::Silicon, "kvm-bindings", "silicon knows nothing of KVM"),
    (Tier::Silicon, "kvm-ioctls", "silicon knows nothing of KVM"),
    (Tier::Host, "kvm-bindings", "host is what a kernel gives KVM, not KVM"),
    (Tier::Host, "kvm-ioctls", "host is what a kernel gives KVM, not KVM"),
];

/// Why `from` may not import `to`; `None` when it may.
fn refusal(from: Tier, to: Tier, kind: ImportKind) -> Option<&'static str> {
    use Tier::{Guest, Lab, Silicon, Tools, Vmm};
    match (from, to) {
        (Tools, Tools) | (Guest, Guest) | (Lab, Lab) => None,
        (_, Tools) => Some("nothing uses tools"),
        (Tools, _) => Some("tools use no tier, so that they can check a tree that does not build"),
        (_, Lab) => Some("nothing uses lab"),
        (Guest, _) => Some("guest code runs inside guests and uses no tier"),
        (Lab, _) => None,
        (Vmm, Guest) => None,
        (_, Guest) if kind == ImportKind::Dev => None,
        (_, Guest) => Some("guest code is for vmm, lab and tests (dev-dependencies) only"),
        (Silicon, to) if to > Silicon => Some("silicon uses nothing above it"),
        (from, to) if to > from => Some("imports go down: silicon < host < hypervisor < api < vmm"),
        _ => None,
    }
}

/// Every import that the rules refuse, as one line each that says who, whom and why. Empty when all is well.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let Some(from) = tier_of(package) else {
            found.push(format!(
                "{} ({}): the folder '{}' is not a tier; expected one of {}",
                package.name,
                package.manifest,
                package.folder,
                Tier::ALL.map(|(name, _)| name).join(", "),
            ));
            continue;
        };
        for import in &package.imports {
            if let Some(reason) = refused_import(packages, from, import) {
                found.push(format!(
                    "{} ({}) must not use {} ({}): {reason}\n    in {}",
                    package.name,
                    from.name(),
                    import.name,
                    import.kind.section(),
                    package.manifest,
                ));
            }
        }
    }
    found
}

/// Folders of packages that have no README to say what the tier is.
pub fn folders_without_readme(packages: &[Package], has_readme: impl Fn(&str) -> bool) -> Vec<String> {
    let mut folders: Vec<&str> = packages.iter().map(|p| p.folder.as_str()).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
        .into_iter()
        .filter(|folder| !has_readme(folder))
        .map(|folder| {
            format!("{folder}/README.md is missing: what the tier is, what it may import, where to find what")
        })
        .collect()
}

fn tier_of(package: &Package) -> Option<Tier> {
    Tier::of_folder(&package.folder)
}

fn refused_import(packages: &[Package], from: Tier, import: &Import) -> Option<String> {
    if !import.in_workspace {
        return FOREIGN
            .iter()
            .find(|(tier, name, _)| *tier == from && *name == import.name)
            .map(|(_, _, reason)| (*reason).to_owned());
    }
    // A package in a folder that is no tier has its own line already.
    let to = tier_of(packages.iter().find(|p| p.name == import.name)?)?;
    refusal(from, to, import.kind).map(|reason| format!("it is in tier {}; {reason}", to.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, name: &str, imports: &[(&str, ImportKind)]) -> Package {
        Package {
            name: name.to_owned(),
            folder: folder.to_owned(),
            manifest: format!("{folder}/{name}/Cargo.toml"),
            imports: imports
                .iter()
                .map(|(to, kind)| Import { name: (*to).to_owned(), kind: *kind, in_workspace: true })
                .collect(),
        }
    }

    fn foreign(folder: &str, name: &str, crate_name: &str) -> Package {
        Package {
            imports: vec![Import { name: crate_name.to_owned(), kind: ImportKind::Normal, in_workspace: false }],
            ..package(folder, name, &[])
        }
    }

    use ImportKind::{Build, Dev, Normal};

    fn one_violation(packages: &[Package]) -> String {
        let found = violations(packages);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap_or_default()
    }

    #[test]
    fn downward_imports_and_imports_within_a_tier_pass() {
        let packages = [
            package("silicon", "defs", &[]),
            package("silicon", "cpu", &[("defs", Normal)]),
            package("host", "host", &[("cpu", Normal)]),
            package("hypervisor", "irqchip", &[("defs", Normal)]),
            package("hypervisor", "core", &[("irqchip", Normal), ("host", Normal)]),
            package("api", "ioctls", &[("core", Normal)]),
            package("vmm", "vmm", &[("ioctls", Normal), ("bare", Normal)]),
            package("guest", "bare", &[]),
            package("lab", "lab", &[("vmm", Normal), ("bare", Normal), ("defs", Dev)]),
            package("tools", "tiers", &[]),
        ];
        assert_eq!(violations(&packages), Vec::<String>::new());
    }

    #[test]
    fn upward_import_is_refused_and_names_both_packages_and_the_manifest() {
        let message =
            one_violation(&[package("silicon", "cpu", &[("core", Normal)]), package("hypervisor", "core", &[])]);
        for part in ["cpu (silicon)", "core", "tier hypervisor", "silicon/cpu/Cargo.toml", "[dependencies]"] {
            assert!(message.contains(part), "'{part}' is not in: {message}");
        }
    }

    #[test]
    fn every_upward_pair_of_the_ordered_tiers_is_refused() {
        let order = ["silicon", "host", "hypervisor", "api", "vmm"];
        for (low, from) in order.iter().enumerate() {
            for to in &order[low + 1..] {
                for kind in [Normal, Dev, Build] {
                    let packages = [package(from, "a", &[("b", kind)]), package(to, "b", &[])];
                    assert_eq!(violations(&packages).len(), 1, "{from} -> {to} as {kind:?}");
                }
            }
        }
    }

    #[test]
    fn dev_dependencies_count() {
        let message = one_violation(&[package("host", "host", &[("vmm", Dev)]), package("vmm", "vmm", &[])]);
        assert!(message.contains("[dev-dependencies]"), "{message}");
    }

    #[test]
    fn tests_of_any_tier_may_use_guest_code_but_the_tier_itself_may_not() {
        let bare = || package("guest", "bare", &[]);
        assert!(violations(&[package("silicon", "cpu", &[("bare", Dev)]), bare()]).is_empty());
        one_violation(&[package("silicon", "cpu", &[("bare", Normal)]), bare()]);
        one_violation(&[package("hypervisor", "core", &[("bare", Build)]), bare()]);
    }

    #[test]
    fn nothing_uses_lab() {
        for folder in ["silicon", "vmm", "guest", "tools"] {
            one_violation(&[package(folder, "a", &[("lab", Dev)]), package("lab", "lab", &[])]);
        }
    }

    #[test]
    fn guest_and_tools_use_no_tier() {
        one_violation(&[package("guest", "bare", &[("defs", Normal)]), package("silicon", "defs", &[])]);
        one_violation(&[package("tools", "tiers", &[("defs", Dev)]), package("silicon", "defs", &[])]);
        one_violation(&[package("vmm", "vmm", &[("tiers", Build)]), package("tools", "tiers", &[])]);
    }

    #[test]
    fn a_package_outside_of_every_tier_is_refused() {
        let message = one_violation(&[package("utils", "strings", &[])]);
        assert!(message.contains("'utils' is not a tier"), "{message}");
    }

    #[test]
    fn a_tier_without_readme_is_named_once() {
        let packages = [package("silicon", "a", &[]), package("silicon", "b", &[]), package("host", "c", &[])];
        let missing = folders_without_readme(&packages, |folder| folder == "host");
        assert_eq!(missing.len(), 1);
        assert!(missing[0].starts_with("silicon/README.md"), "{missing:?}");
    }

    #[test]
    fn silicon_and_host_must_not_know_kvm() {
        one_violation(&[foreign("silicon", "cpu", "kvm-bindings")]);
        one_violation(&[foreign("host", "host", "kvm-ioctls")]);
        assert!(violations(&[foreign("hypervisor", "core", "kvm-bindings")]).is_empty());
        assert!(violations(&[foreign("silicon", "cpu", "bitflags")]).is_empty());
    }
}
