//! Debian's kernels on the processor with x86-64-v3.

use crate::program::{crypto_initrd, debian, glassvisor, kernel};
use crate::selfcheck::assert_passed;

fn boots_with_avx_state(kernel: &str, cpus: u8) {
    let ended = debian(kernel, "ignore_loglevel").args(&format!("--cpu glassvisor-v3 --cpus {cpus}")).run();
    assert_eq!(ended.status, 0, "{ended}");
    assert!(ended.stdout.contains("GLASSVISOR-DONE status=0 "), "{ended}");
    assert!(!ended.stdout.contains("GLASSVISOR-ERROR"), "{ended}");
    // The kernel uses XSAVES, or else the format would be the standard one.
    for text in [
        "x86/fpu: xstate_offset[2]:  576, xstate_sizes[2]:  256",
        "x86/fpu: Enabled xstate features 0x7, context size is 832 bytes, using 'compacted' format.",
    ] {
        assert!(ended.stdout.contains(text), "{text}: {ended}");
    }
    ended.must_print(&format!("processors: {cpus}"));
    for trouble in ["WARNING:", "BUG:", "Oops"] {
        assert!(!ended.stdout.contains(trouble), "{trouble}: {ended}");
    }
}

#[test]
fn linux_6_12_keeps_avx_state_by_xsaves() {
    boots_with_avx_state("6.12", 1);
}

#[test]
#[ignore = "other numbers of processors: tools/nightly.sh"]
fn linux_6_12_keeps_avx_state_on_2_and_4_processors() {
    for cpus in [2, 4] {
        boots_with_avx_state("6.12", cpus);
    }
}

/// The guest's self-check reads what Linux says, and uses the addresses that only five levels give.
#[test]
fn linux_6_12_uses_five_levels_of_page_tables_where_the_model_has_them() {
    let ended = debian("6.12", "cryptomgr.notests gv.run=selfcheck").args("--cpu glassvisor-v3,+la57 --cpus 2").run();
    assert_passed(&ended);
    ended.must_print("ADDRESSES bits=57");
}

/// A kernel that is told not to takes the flag out of its list.
#[test]
#[ignore = "the other number of levels: tools/nightly.sh"]
fn linux_6_12_uses_four_levels_of_page_tables_when_told_to() {
    let ended = debian("6.12", "cryptomgr.notests no5lvl gv.run=selfcheck").args("--cpu glassvisor-v3,+la57").run();
    assert_passed(&ended);
    ended.must_print("ADDRESSES bits=48");
}

#[test]
#[ignore = "the other kernel: tools/nightly.sh"]
fn linux_6_1_keeps_avx_state_by_xsaves() {
    boots_with_avx_state("6.1", 1);
}

/// Debian's kernel runs its known-answer tests on its AES-NI, PCLMULQDQ, SHA, AVX and AVX2 code.
#[test]
#[ignore = "needs guest/build-crypto-initramfs.sh 6.12: tools/nightly.sh"]
fn the_kernels_vector_cryptography_passes_its_own_tests() {
    let ended = glassvisor("boot --quiet --cpu glassvisor-v3")
        .arg("--kernel", &kernel("6.12"))
        .arg("--initrd", &crypto_initrd("6.12"))
        .arg("--append", "console=ttyS0 ignore_loglevel panic=-1 rdinit=/crypto")
        .run();
    assert_eq!(ended.status, 0, "{ended}");
    assert!(ended.stdout.contains("GLASSVISOR-DONE status=0 "), "{ended}");
    let results: Vec<_> = ended.stdout.lines().filter_map(|line| line.trim().strip_prefix("CRYPTO driver=")).collect();
    let bad: Vec<_> = results.iter().filter(|line| !line.ends_with(" selftest=passed")).collect();
    assert!(bad.is_empty(), "{bad:?} {ended}");
    for driver in [
        "aes-aesni",
        "generic-gcm-aesni-avx",
        "xts-aes-aesni-avx",
        "ghash-clmulni",
        "crc32-pclmul",
        "sha1-ni",
        "sha256-ni",
        "sha512-avx2",
        "nhpoly1305-avx2",
        "cbc-serpent-avx2",
        "cbc-camellia-aesni-avx2",
    ] {
        assert!(results.contains(&format!("{driver} selftest=passed").as_str()), "{driver}: {ended}");
    }
    for trouble in ["WARNING:", "BUG:", "Oops", "GLASSVISOR-ERROR"] {
        assert!(!ended.stdout.contains(trouble), "{trouble}: {ended}");
    }
}
