//! `MODEL[,+feature,-feature...]`.

use super::named::{DEFAULT, NAMES, by_name};
use super::{FEATURES, Feature, FeatureSet, Model};

/// Why a CPU model could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No such model.
    #[error("no CPU model '{name}'{}; models: {}", suggestion(.nearest), NAMES.join(", "))]
    UnknownModel { name: String, nearest: Option<&'static str> },
    /// No such feature.
    #[error("no CPU feature '{name}'{}; features are named as in /proc/cpuinfo", suggestion(.nearest))]
    UnknownFeature { name: String, nearest: Option<&'static str> },
    /// The modelled processor lacks it.
    #[error("CPU feature '{name}' is not modelled: leave it out")]
    NotImplemented { name: &'static str },
    /// An extension that the processor does not have, whose features are no rows of the table.
    #[error("CPU feature '{name}': {extension} is absent from the modelled processor: leave it out")]
    Absent { name: String, extension: &'static str },
    /// Neither + nor -.
    #[error("'{text}' is neither +feature nor -feature: write a sign before each feature")]
    NoSign { text: String },
    /// Features without those that they build on.
    #[error(
        "CPU feature{} {} need{} {}: add {} or {}",
        if .names.len() == 1 { "" } else { "s" },
        quoted(.names),
        if .names.len() == 1 { "s" } else { "" },
        quoted(.needed),
        signed('+', .needed),
        signed('-', .names)
    )]
    Dependency { names: Vec<&'static str>, needed: Vec<&'static str> },
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn signed(sign: char, names: &[&str]) -> String {
    names.iter().map(|name| format!("{sign}{name}")).collect::<Vec<_>>().join(",")
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    nearest.map(|n| format!(" (did you mean '{n}'?)")).unwrap_or_default()
}

/// A feature, and one that software may take for granted with it.
const NEEDS: &[(Feature, Feature)] = &[
    (Feature::Sse, Feature::Fxsr),
    (Feature::Sse2, Feature::Sse),
    (Feature::Pni, Feature::Sse2),
    (Feature::Ssse3, Feature::Pni),
    (Feature::Sse41, Feature::Ssse3),
    (Feature::Sse42, Feature::Sse41),
    (Feature::Aes, Feature::Sse2),
    (Feature::Pclmulqdq, Feature::Sse2),
    (Feature::ShaNi, Feature::Sse2),
    (Feature::Xsave, Feature::Fxsr),
    (Feature::Xsaveopt, Feature::Xsave),
    (Feature::Xsavec, Feature::Xsave),
    (Feature::Xgetbv1, Feature::Xsave),
    (Feature::Xsaves, Feature::Xsave),
    (Feature::Avx, Feature::Xsave),
    (Feature::Avx, Feature::Sse2),
    (Feature::Avx2, Feature::Avx),
    (Feature::Fma, Feature::Avx),
    (Feature::F16c, Feature::Avx),
    (Feature::Lm, Feature::Pae),
    (Feature::Lm, Feature::Sse2),
    (Feature::Lm, Feature::Syscall),
    (Feature::Pdpe1gb, Feature::Lm),
    (Feature::X2apic, Feature::Apic),
    (Feature::TscDeadlineTimer, Feature::Apic),
    (Feature::TscDeadlineTimer, Feature::Tsc),
    (Feature::NonstopTsc, Feature::Tsc),
    (Feature::TscAdjust, Feature::Tsc),
    (Feature::Rdtscp, Feature::Tsc),
    (Feature::Fsrm, Feature::Erms),
    (Feature::Stibp, Feature::Ibrs),
    (Feature::Pku, Feature::Lm),
    (Feature::Pks, Feature::Lm),
    (Feature::La57, Feature::Lm),
    (Feature::Lam, Feature::Lm),
];

impl Model {
    /// The default model with every feature that is modelled: what the processor can do, whatever a model offers of it.
    #[must_use]
    pub fn with_every_feature() -> Self {
        let mut model = Self::default();
        for row in FEATURES.iter().filter(|row| row.implemented) {
            model.features.insert(row.feature);
        }
        model.linear_bits = 57;
        model
    }

    /// The model that `text` describes: a name (may be empty: the default), then features to add and to take away.
    ///
    /// # Errors
    /// Names that do not exist, features that are not modelled or lack what they build on.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let mut parts = text.split(',').map(str::trim);
        let mut name = parts.next().unwrap_or_default();
        let mut changes: Vec<&str> = Vec::new();
        if name.starts_with(['+', '-']) {
            changes.push(name);
            name = "";
        }
        changes.extend(parts.filter(|part| !part.is_empty()));
        let name = if name.is_empty() { DEFAULT } else { name };
        let mut model = by_name(name).ok_or_else(|| ModelError::UnknownModel {
            name: name.to_owned(),
            nearest: nearest(name, NAMES.iter().copied()),
        })?;
        for change in changes {
            if let Some(feature) = change.strip_prefix('+') {
                if let Some(extension) = absent(feature) {
                    return Err(ModelError::Absent { name: feature.to_owned(), extension });
                }
                let feature = find(feature)?;
                if !feature.row().implemented {
                    return Err(ModelError::NotImplemented { name: feature.row().name });
                }
                model.features.insert(feature);
            } else if let Some(feature) = change.strip_prefix('-') {
                // What is absent anyway may be taken away, as scripts for other hypervisors do.
                if absent(feature).is_none() {
                    model.features.remove(find(feature)?);
                }
            } else {
                return Err(ModelError::NoSign { text: change.to_owned() });
            }
        }
        model.linear_bits = if model.has(Feature::La57) { 57 } else { 48 };
        model.check_needs()?;
        Ok(model)
    }

    /// Names at once every feature that lacks something, and all that is lacking, so that one change is enough.
    fn check_needs(&self) -> Result<(), ModelError> {
        let mut lacking = FeatureSet::default();
        let mut broken = FeatureSet::default();
        // Needs of needs: a round for each step of the longest chain.
        loop {
            let before = (lacking, broken);
            for &(feature, needed) in NEEDS {
                if (self.has(feature) || lacking.contains(feature)) && !self.has(needed) {
                    lacking.insert(needed);
                }
                if self.has(feature) && (lacking.contains(needed) || broken.contains(needed)) {
                    broken.insert(feature);
                }
            }
            if (lacking, broken) == before {
                break;
            }
        }
        let names = |set: FeatureSet| set.iter().map(|feature| feature.row().name).collect();
        if broken == FeatureSet::default() {
            return Ok(());
        }
        Err(ModelError::Dependency { names: names(broken), needed: names(lacking) })
    }
}

/// Extensions without a row in the table, by the start of their features' names.
const ABSENT: &[(&str, &str)] = &[
    ("cet", "Control-flow Enforcement Technology"),
    ("shstk", "Control-flow Enforcement Technology"),
    ("user_shstk", "Control-flow Enforcement Technology"),
    ("ibt", "Control-flow Enforcement Technology"),
    ("amx", "Advanced Matrix Extensions"),
    ("avx512", "AVX-512"),
    ("avx10", "AVX10"),
    ("vaes", "AES of 256 bits"),
    ("vpclmulqdq", "carry-less multiplication of 256 bits"),
    ("mpx", "Memory Protection Extensions"),
    ("sgx", "Software Guard Extensions"),
];

/// The extension that a feature belongs to, if the processor lacks it as a whole.
fn absent(name: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(start, _)| name.starts_with(start)).map(|(_, extension)| *extension)
}

/// Other spellings in use: of the manual, and of QEMU.
const ALIASES: &[(&str, Feature)] = &[
    ("invtsc", Feature::NonstopTsc),
    ("sse3", Feature::Pni),
    ("sse4.1", Feature::Sse41),
    ("sse4.2", Feature::Sse42),
    ("lzcnt", Feature::Abm),
    ("sha", Feature::ShaNi),
    ("sha-ni", Feature::ShaNi),
    ("pclmul", Feature::Pclmulqdq),
    ("tsc-deadline", Feature::TscDeadlineTimer),
    ("spec-ctrl", Feature::Ibrs),
    ("arch-capabilities", Feature::ArchCapabilities),
];

fn find(name: &str) -> Result<Feature, ModelError> {
    let alias = || ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, feature)| *feature);
    Feature::from_name(name).or_else(alias).ok_or_else(|| ModelError::UnknownFeature {
        name: name.to_owned(),
        nearest: nearest(name, FEATURES.iter().map(|row| row.name)),
    })
}

/// The candidate that takes the fewest edits to become, if not more than a third of the name.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .filter(|(edits, candidate)| *edits <= 1 + candidate.len() / 3)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_added_and_taken_away_in_order() {
        let model = Model::parse("nehalem,+smep,-popcnt,+pcid,-pcid").unwrap();
        assert!(model.has(Feature::Smep) && !model.has(Feature::Popcnt) && !model.has(Feature::Pcid));
        assert_eq!(Model::parse("").unwrap(), Model::default());
        assert!(!Model::parse("-invtsc").unwrap().has(Feature::NonstopTsc));
    }

    #[test]
    fn errors_name_what_was_probably_meant() {
        let text = |s: &str| Model::parse(s).unwrap_err().to_string();
        assert!(text("nehalm").contains("did you mean 'nehalem'"));
        assert!(text("host").contains("models: glassvisor-v2, "));
        assert!(text("qemu64,+sse4_3").contains("did you mean 'sse4_"));
        assert!(text("qemu64,+zzzzzzzzzzzz").contains("/proc/cpuinfo"));
        assert_eq!(text("qemu64,smep"), "'smep' is neither +feature nor -feature: write a sign before each feature");
        assert_eq!(text("nehalem,-sse4_1"), "CPU feature 'sse4_2' needs 'sse4_1': add +sse4_1 or -sse4_2");
    }

    #[test]
    fn everything_that_lacks_something_is_named_at_once() {
        let text = |s: &str| Model::parse(s).unwrap_err().to_string();
        assert_eq!(text("glassvisor-v2,+avx2"), "CPU feature 'avx2' needs 'xsave' and 'avx': add +xsave,+avx or -avx2");
        assert_eq!(
            text("glassvisor-v3,-avx"),
            "CPU features 'fma', 'f16c' and 'avx2' need 'avx': add +avx or -fma,-f16c,-avx2"
        );
        assert!(Model::parse("glassvisor-v3,-avx,-fma,-f16c,-avx2").is_ok());
        assert!(Model::parse("nehalem,+aes,+pclmulqdq,+xsave,+avx").is_ok());
    }

    #[test]
    fn extensions_that_are_absent_as_a_whole_say_so_and_may_be_taken_away() {
        let text = |s: &str| Model::parse(s).unwrap_err().to_string();
        assert_eq!(
            text("+cet"),
            "CPU feature 'cet': Control-flow Enforcement Technology is absent from the modelled processor: leave it out"
        );
        for name in ["amx_tile", "amx", "avx512f", "shstk", "ibt", "vaes"] {
            assert!(text(&format!("glassvisor-v3,+{name}")).contains("is absent"), "{name}");
            assert_eq!(Model::parse(&format!("glassvisor-v3,-{name}")), Model::parse("glassvisor-v3"), "{name}");
        }
    }

    #[test]
    fn every_named_model_has_what_its_features_need() {
        for name in NAMES {
            assert!(Model::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!((distance("kitten", "sitting"), distance("", "abc"), distance("x", "x")), (3, 3, 0));
    }
}
