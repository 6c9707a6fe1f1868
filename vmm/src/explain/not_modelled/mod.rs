//! What the machine does not model, as a page: `glassvisor explain not-modelled`, and `docs/not-modelled.md`.
//!
//! What code can tell comes from code: CPUID features, VMX controls and MSRs are asked of the modelled machine. The
//! rest is a table here.

mod devices;
mod features;
mod vmx;

use std::fmt::Write;

use hypervisor::{TimeMode, Vm, VmConfig};

use super::Kind;

/// A row of the page that no code can tell.
struct Row {
    what: &'static str,
    /// What a guest finds that uses it all the same.
    found: &'static str,
}

fn table(out: &mut String, heads: [&str; 2], rows: impl IntoIterator<Item = (String, String)>) {
    let _ = writeln!(out, "| {} | {} |\n|---|---|", heads[0], heads[1]);
    for (left, right) in rows {
        let _ = writeln!(out, "| {left} | {right} |");
    }
    out.push('\n');
}

fn rows(rows: &'static [Row]) -> impl Iterator<Item = (String, String)> {
    rows.iter().map(|row| (row.what.to_owned(), row.found.to_owned()))
}

/// The MSRs that have a name here and do not exist in the machine: ranges of numbers, with the first and last name.
fn missing_msrs() -> Vec<(String, String)> {
    let cpu = hypervisor::cpu_models::DEFAULT.into();
    let config = VmConfig { time: TimeMode::Virtual, seed: 0, wall_clock_ns: 0, cpu };
    let vm = Vm::new(config).and_then(|mut vm| vm.add_vcpu(0).map(|vcpu| (vm, vcpu)));
    let Ok((vm, vcpu)) = vm else { return vec![] };
    let mut missing: Vec<(u32, &str)> = Kind::Msr
        .entries()
        .filter(|entry| !vm.has_msr(vcpu, entry.number))
        .map(|entry| (entry.number, entry.name))
        .collect();
    missing.sort_by_key(|&(number, _)| number);
    missing
        .chunk_by(|before, after| before.0 + 1 == after.0)
        .map(|range| match *range {
            [(number, name)] => (format!("{number:#x}"), name.to_owned()),
            [(first, _), .., (last, _)] => {
                let names: Vec<&str> = range.iter().map(|&(_, name)| name).collect();
                (format!("{first:#x} to {last:#x}"), names.join(", "))
            }
            [] => Default::default(),
        })
        .collect()
}

/// The page, in Markdown.
pub fn page() -> String {
    let mut out = String::from(
        "# What is not modelled\n\n\
         Generated from the tables in the code by `glassvisor explain not-modelled`; a test compares this page with them.\n\n\
         A guest that touches one of these for the first time makes `glassvisor boot` say so on standard error, once for \
         each MSR and each page of memory without a device (not with `--quiet`). Ports without a device are only counted \
         (`--stats`), as every PC system probes for devices that may be there.\n\n\
         ## Processor features\n\n\
         CPUID does not report them in any model, their bits in control registers are reserved, and their instructions are \
         undefined (#UD).\n\n",
    );
    table(&mut out, ["feature", "CPUID"], features::missing());
    out.push_str("## Modes, events and effects\n\n");
    table(&mut out, ["what", "what a guest finds"], rows(devices::MODES));
    out.push_str(
        "## VMX, for the hypervisor on the processor\n\n\
         Controls whose bit the capability MSRs do not allow; VM-entry fails with one of them set. Guests have no VMX at \
         all yet: its instructions are undefined in a guest.\n\n",
    );
    table(&mut out, ["controls", "missing"], vmx::missing());
    out.push_str(
        "## MSRs\n\n\
         Of those that `glassvisor explain` knows by name, a guest gets #GP from these on the default model, as from every \
         number without a name.\n\n",
    );
    table(&mut out, ["number", "name"], missing_msrs());
    out.push_str("## Devices\n\n");
    table(&mut out, ["what", "what a guest finds"], rows(devices::DEVICES));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the page where it differs when GLASSVISOR_BLESS is set.
    #[test]
    fn the_committed_page_is_the_generated_one() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/not-modelled.md");
        let page = page();
        if std::env::var_os("GLASSVISOR_BLESS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == page,
            "docs/not-modelled.md is not what the code says; renew it: \
             GLASSVISOR_BLESS=1 cargo test -p vmm --lib not_modelled"
        );
    }

    #[test]
    fn msrs_that_exist_are_not_on_the_page_and_those_that_do_not_are() {
        let missing = missing_msrs();
        let has = |name: &str| missing.iter().any(|(_, names)| names.split(", ").any(|n| n == name));
        for present in ["IA32_EFER", "IA32_APIC_BASE", "IA32_FS_BASE", "IA32_TSC_DEADLINE", "IA32_PAT"] {
            assert!(!has(present), "{present}: {missing:?}");
        }
        assert!(has("IA32_MPERF") && has("MSR_AMD64_DE_CFG"), "{missing:?}");
    }
}
