//! Fails when a tier imports one above it, or a dependency's licence is not allowed.
//! Run it as `cargo run -p tiers` anywhere in the repository.
#![forbid(unsafe_code)]

mod graph;
mod licences;
mod rules;

use std::process::ExitCode;

use cargo_metadata::MetadataCommand;

/// Crates that are built on other systems only are none of ours.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

fn main() -> ExitCode {
    let metadata =
        match MetadataCommand::new().other_options(["--filter-platform".to_owned(), PLATFORM.to_owned()]).exec() {
            Ok(metadata) => metadata,
            Err(error) => {
                eprintln!("tiers: cargo metadata failed; run this inside the repository\n{error}");
                return ExitCode::from(2);
            }
        };
    let packages = graph::packages(&metadata);
    let mut wrong = rules::violations(&packages);
    wrong.extend(rules::folders_without_readme(&packages, |folder| {
        metadata.workspace_root.join(folder).join("README.md").is_file()
    }));
    match licences::Allowed::read(metadata.workspace_root.join("deny.toml").as_std_path()) {
        Ok(allowed) => wrong.extend(allowed.violations(&metadata)),
        Err(error) => wrong.push(error.to_string()),
    }
    for line in &wrong {
        eprintln!("tiers: {line}");
    }
    if wrong.is_empty() {
        println!(
            "tiers: {} packages of ours, {} in all: imports go down, licences are allowed",
            packages.len(),
            metadata.packages.len()
        );
        ExitCode::SUCCESS
    } else {
        eprintln!(
            "tiers: {} wrong; the rules are in tools/tiers/src/rules.rs and docs/decisions/0001-tiers.md",
            wrong.len()
        );
        ExitCode::FAILURE
    }
}
