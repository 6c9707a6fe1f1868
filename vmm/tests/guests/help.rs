//! The help that users read.

use crate::program::glassvisor;

/// Options of a help text, each with what is said of it.
fn options(help: &str) -> Vec<(String, String)> {
    let mut options: Vec<(String, String)> = Vec::new();
    let section = help.split("Options:").nth(1).expect("a list of options");
    let section = section.split("\nExamples:").next().unwrap_or(section);
    for line in section.lines() {
        let text = line.trim();
        // Possible values are listed behind a dash and a blank.
        if text.starts_with('-') && !text.starts_with("- ") {
            let (name, said) = text.split_once("  ").unwrap_or((text, ""));
            options.push((name.to_owned(), said.trim().to_owned()));
        } else if let Some((_, said)) = options.last_mut() {
            said.push(' ');
            said.push_str(text);
        }
    }
    options
}

#[test]
fn every_option_of_boot_is_described() {
    let ended = glassvisor("boot --help").run();
    assert_eq!(ended.status, 0, "{ended}");
    let options = options(&ended.stdout);
    for wanted in [
        "--kernel",
        "--firmware",
        "--boot-menu-wait",
        "--debug-console",
        "--answer",
        "--screen",
        "--until-screen",
        "--initrd",
        "--append",
        "--memory",
        "--cpus",
        "--cpu",
        "--disk",
        "--time",
        "--seed",
        "--stats",
        "--stats-file",
        "--trace",
        "--builtin",
        "--progress",
        "--quiet",
        "--max-time",
    ] {
        let (_, said) = options
            .iter()
            .find(|(name, _)| name.split([' ', ',']).any(|word| word == wanted))
            .unwrap_or_else(|| panic!("{wanted} is missing: {ended}"));
        assert!(said.split_whitespace().count() >= 2, "{wanted} is not described: '{said}'");
    }
    for (name, said) in &options {
        assert!(!said.trim().is_empty(), "{name} is not described: {ended}");
    }
}

#[test]
fn help_shows_examples_and_exit_codes_that_are_true() {
    let ended = glassvisor("boot --help").run();
    for text in ["Examples:", "Exit codes:", "  4    could not start", "  8    triple fault", "  130  Ctrl-C"] {
        assert!(ended.stdout.contains(text), "{text}: {ended}");
    }
    let ended = glassvisor("--help").run();
    for text in ["boot", "explain", "cpus", "glassvisor boot --builtin"] {
        assert!(ended.stdout.contains(text), "{text}: {ended}");
    }
    let version = glassvisor("--version").run();
    assert!(version.stdout.starts_with("glassvisor "), "{version}");
}

#[test]
fn a_wrong_command_is_answered_with_the_right_one() {
    glassvisor("bot --builtin").run().must_say(2, &["'bot'", "'boot'"]);
    glassvisor("").run().must_say(2, &["Usage: glassvisor <COMMAND>"]);
}
