//! Every crate that we build with carries a licence that `deny.toml` allows. A quick stand-in for `cargo deny check
//! licenses` where building cargo-deny takes longer than all other checks; it reads the same file.

use std::path::Path;

use cargo_metadata::Metadata;
use thiserror::Error;

/// Why the allowed licences could not be read.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// deny.toml cannot be read
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// deny.toml is not TOML
    #[error("deny.toml: {0}")]
    Syntax(#[from] toml::de::Error),
    /// deny.toml has no list of licences
    #[error("deny.toml: expected a list of SPDX identifiers at [licenses] allow")]
    NoList,
}

/// SPDX identifiers that a dependency may have.
#[derive(Debug)]
pub struct Allowed(Vec<String>);

impl Allowed {
    /// Read `[licenses] allow` of a `deny.toml`.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PolicyError::Read { path: path.display().to_string(), source })?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, PolicyError> {
        let table: toml::Table = text.parse()?;
        table
            .get("licenses")
            .and_then(|licenses| licenses.get("allow"))
            .and_then(toml::Value::as_array)
            .and_then(|list| list.iter().map(|id| id.as_str().map(str::to_owned)).collect())
            .map(Allowed)
            .ok_or(PolicyError::NoList)
    }

    /// What is wrong with the licence of a package; `None` when it is allowed.
    pub fn objection(&self, licence: Option<&str>) -> Option<String> {
        let Some(licence) = licence else {
            return Some("its manifest names no licence".to_owned());
        };
        match spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX) {
            Err(error) => Some(format!("'{licence}' is not an SPDX expression: {}", error.reason)),
            Ok(expression) => {
                let allowed = expression.evaluate(|requirement| self.0.contains(&requirement.to_string()));
                (!allowed).then(|| format!("'{licence}' is not allowed by deny.toml"))
            }
        }
    }

    /// One line for each package whose licence is not allowed.
    pub fn violations(&self, metadata: &Metadata) -> Vec<String> {
        metadata
            .packages
            .iter()
            .filter_map(|package| {
                let objection = self.objection(package.license.as_deref())?;
                Some(format!("{} {}: {objection}", package.name, package.version))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Allowed {
        Allowed::parse("[licenses]\nallow = [\"MIT\", \"Apache-2.0\", \"Apache-2.0 WITH LLVM-exception\"]")
            .expect("a policy")
    }

    #[test]
    fn alternatives_pass_when_one_is_allowed() {
        assert_eq!(allowed().objection(Some("GPL-3.0-only OR MIT")), None);
        assert_eq!(allowed().objection(Some("MIT/Apache-2.0")), None);
        assert_eq!(allowed().objection(Some("Apache-2.0 WITH LLVM-exception")), None);
    }

    #[test]
    fn conjunctions_need_every_part() {
        assert!(allowed().objection(Some("MIT AND GPL-3.0-only")).is_some());
        assert_eq!(allowed().objection(Some("MIT AND Apache-2.0")), None);
    }

    #[test]
    fn missing_unknown_and_forbidden_licences_are_named() {
        for (licence, part) in [
            (None, "no licence"),
            (Some("do what you like"), "not an SPDX expression"),
            (Some("AGPL-3.0-only"), "'AGPL-3.0-only' is not allowed"),
        ] {
            let objection = allowed().objection(licence).expect("an objection");
            assert!(objection.contains(part), "{objection}");
        }
    }

    #[test]
    fn policy_without_list_is_an_error() {
        assert!(matches!(Allowed::parse("[bans]\n"), Err(PolicyError::NoList)));
        assert!(matches!(Allowed::parse("[licenses]\nallow = [1]"), Err(PolicyError::NoList)));
        assert!(matches!(Allowed::parse("[licenses"), Err(PolicyError::Syntax(_))));
    }
}
