//! CPUID features that no model has.

use hypervisor::cpu_models::FEATURES;

/// A feature that the model's own table does not name: name, what it is, leaf, subleaf, register, bit.
type Absent = (&'static str, &'static str, u32, u32, &'static str, u8);

/// As Linux spells them in /proc/cpuinfo, in the order of CPUID.
const ABSENT: &[Absent] = &[
    ("dtes64", "64-bit debug store", 1, 0, "ECX", 2),
    ("ds_cpl", "debug store by privilege level", 1, 0, "ECX", 4),
    ("smx", "safer mode extensions (GETSEC)", 1, 0, "ECX", 6),
    ("est", "SpeedStep", 1, 0, "ECX", 7),
    ("tm2", "thermal monitor 2", 1, 0, "ECX", 8),
    ("pdcm", "performance capabilities MSR", 1, 0, "ECX", 15),
    ("dca", "direct cache access", 1, 0, "ECX", 18),
    ("pn", "processor serial number", 1, 0, "EDX", 18),
    ("dts", "debug store", 1, 0, "EDX", 21),
    ("acpi", "thermal monitor and clock control", 1, 0, "EDX", 22),
    ("tm", "thermal monitor", 1, 0, "EDX", 29),
    ("sgx", "enclaves (SGX)", 7, 0, "EBX", 2),
    ("hle", "transactional memory: lock elision", 7, 0, "EBX", 4),
    ("rtm", "transactional memory (TSX)", 7, 0, "EBX", 11),
    ("mpx", "bound registers", 7, 0, "EBX", 14),
    ("avx512f", "AVX-512, and all of its extensions", 7, 0, "EBX", 16),
    ("intel_pt", "processor trace", 7, 0, "EBX", 25),
    ("waitpkg", "UMONITOR, UMWAIT, TPAUSE", 7, 0, "ECX", 5),
    ("shstk", "CET: shadow stacks", 7, 0, "ECX", 7),
    ("gfni", "Galois field instructions", 7, 0, "ECX", 8),
    ("vaes", "AES on wide vectors", 7, 0, "ECX", 9),
    ("vpclmulqdq", "carry-less multiplication of wide vectors", 7, 0, "ECX", 10),
    ("tme", "memory encryption", 7, 0, "ECX", 13),
    ("aeskle", "Key Locker", 7, 0, "ECX", 23),
    ("bus_lock_detect", "debug exception on bus locks", 7, 0, "ECX", 24),
    ("cldemote", "CLDEMOTE", 7, 0, "ECX", 25),
    ("movdiri", "MOVDIRI", 7, 0, "ECX", 27),
    ("movdir64b", "MOVDIR64B", 7, 0, "ECX", 28),
    ("enqcmd", "ENQCMD", 7, 0, "ECX", 29),
    ("uintr", "user interrupts", 7, 0, "EDX", 5),
    ("serialize", "SERIALIZE", 7, 0, "EDX", 14),
    ("tsxldtrk", "suspended load tracking", 7, 0, "EDX", 16),
    ("arch_lbr", "architectural last branch records", 7, 0, "EDX", 19),
    ("ibt", "CET: indirect branch tracking", 7, 0, "EDX", 20),
    ("amx_tile", "AMX: tiles, and all of their types", 7, 0, "EDX", 24),
    ("avx_vnni", "AVX-VNNI", 7, 1, "EAX", 4),
    ("fred", "flexible return and event delivery", 7, 1, "EAX", 17),
    ("svm", "AMD's virtualisation", 0x8000_0001, 0, "ECX", 2),
    ("sse4a", "SSE4a", 0x8000_0001, 0, "ECX", 6),
    ("xop", "XOP", 0x8000_0001, 0, "ECX", 11),
    ("fma4", "FMA4", 0x8000_0001, 0, "ECX", 16),
    ("tbm", "TBM", 0x8000_0001, 0, "ECX", 21),
    ("3dnow", "3DNow!", 0x8000_0001, 0, "EDX", 31),
];

fn place(leaf: u32, subleaf: u32, register: &str, bit: u8) -> String {
    let subleaf = if subleaf == 0 && leaf != 7 { String::new() } else { format!(".{subleaf}") };
    format!("{leaf:#x}{subleaf} {register}[{bit}]")
}

/// Name and place in CPUID of each.
pub fn missing() -> Vec<(String, String)> {
    let of_the_model = FEATURES.iter().filter(|row| !row.implemented).map(|row| {
        let register = format!("{:?}", row.register).to_ascii_uppercase();
        (row.name.to_owned(), place(row.leaf, row.subleaf, &register, row.bit))
    });
    let others = ABSENT.iter().map(|&(name, what, leaf, subleaf, register, bit)| {
        (format!("{name}: {what}"), place(leaf, subleaf, register, bit))
    });
    of_the_model.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_knows_is_not_in_the_table_of_what_it_does_not_know() {
        for &(name, _, leaf, subleaf, register, bit) in ABSENT {
            let same = FEATURES.iter().find(|row| {
                let place = (row.leaf, row.subleaf, row.bit) == (leaf, subleaf, bit);
                row.name == name || place && format!("{:?}", row.register).eq_ignore_ascii_case(register)
            });
            assert!(same.is_none(), "{name} is {same:?}: take it out of this table");
        }
    }
}
