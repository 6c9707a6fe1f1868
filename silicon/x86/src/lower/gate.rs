//! Which instructions the processor has, by the features of its model: one place for all families.

use std::borrow::Cow;

use iced_x86::{Code, CpuidFeature as C, Instruction, Mnemonic as M};

use crate::model::{Feature as F, Model};
use crate::op::{CodeSize, Lowering};

/// The instruction that the bytes mean on this processor, or `None` where it has none (#UD).
///
/// LZCNT and TZCNT are BSR and BSF with a prefix that older processors ignore ("LZCNT - Count the Number of Leading
/// Zero Bits"), so they turn into those.
#[must_use]
pub fn admit<'a>(l: &Lowering<'a>) -> Option<Cow<'a, Instruction>> {
    let insn = l.insn;
    if is_hint(insn.mnemonic()) {
        return Some(Cow::Borrowed(insn));
    }
    if matches!(insn.mnemonic(), M::Lahf | M::Sahf) && l.size == CodeSize::Bits64 && !l.model.has(F::LahfLm) {
        return None;
    }
    if insn.cpuid_features().iter().all(|&c| has(l.model, c)) {
        return Some(Cow::Borrowed(insn));
    }
    let code = before(insn.code())?;
    let mut older = *insn;
    older.set_code(code);
    Some(Cow::Owned(older))
}

/// What a processor without the feature takes the instruction for.
fn before(code: Code) -> Option<Code> {
    Some(match code {
        Code::Lzcnt_r16_rm16 => Code::Bsr_r16_rm16,
        Code::Lzcnt_r32_rm32 => Code::Bsr_r32_rm32,
        Code::Lzcnt_r64_rm64 => Code::Bsr_r64_rm64,
        Code::Tzcnt_r16_rm16 => Code::Bsf_r16_rm16,
        Code::Tzcnt_r32_rm32 => Code::Bsf_r32_rm32,
        Code::Tzcnt_r64_rm64 => Code::Bsf_r64_rm64,
        Code::Wbnoinvd => Code::Wbinvd,
        _ => return None,
    })
}

/// Encodings that do nothing on processors without the feature, by design.
fn is_hint(mnemonic: M) -> bool {
    matches!(
        mnemonic,
        M::Endbr32
            | M::Endbr64
            | M::Rdsspd
            | M::Rdsspq
            | M::Cldemote
            | M::Pause
            | M::Prefetch
            | M::Prefetchw
            | M::Prefetchwt1
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Prefetchnta
    )
}

/// What it takes for a processor to have what the decoder calls a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Every processor in 64-bit mode has it, or its handler decides by a control register or an exit.
    Nothing,
    Feature(F),
    /// The modelled processor does not have it.
    Impossible,
}

fn has(model: &Model, feature: C) -> bool {
    match needs(feature) {
        Needs::Nothing => true,
        Needs::Feature(feature) => model.has(feature),
        Needs::Impossible => false,
    }
}

/// What the decoder's `feature` stands for.
#[must_use]
pub fn needs(feature: C) -> Needs {
    Needs::Feature(match feature {
        C::INTEL8086 | C::INTEL186 | C::INTEL286 | C::INTEL386 | C::INTEL486 | C::X64 => return Needs::Nothing,
        C::INTEL8086_ONLY | C::CPUID | C::MULTIBYTENOP | C::RDPMC | C::FPU387 | C::PAUSE => return Needs::Nothing,
        // Its handler looks at CR4, which cannot enable what the model lacks.
        C::SMX => return Needs::Nothing,
        // The hardware under a hypervisor has VMX whatever its guests are shown; these exit (or are #UD at the handler).
        C::VMX | C::INVEPT | C::INVVPID => return Needs::Nothing,
        C::FPU | C::FPU287 => F::Fpu,
        C::TSC => F::Tsc,
        C::MSR => F::Msr,
        C::CX8 => F::Cx8,
        C::SEP => F::Sep,
        C::CMOV => F::Cmov,
        C::CLFSH => F::Clflush,
        C::MMX => F::Mmx,
        C::FXSR => F::Fxsr,
        C::SSE => F::Sse,
        C::SSE2 => F::Sse2,
        C::SSE3 => F::Pni,
        C::SSSE3 => F::Ssse3,
        C::SSE4_1 => F::Sse41,
        C::SSE4_2 => F::Sse42,
        C::MONITOR => F::Monitor,
        C::PCLMULQDQ => F::Pclmulqdq,
        C::AES => F::Aes,
        C::SHA => F::ShaNi,
        C::XSAVE => F::Xsave,
        C::XSAVEOPT => F::Xsaveopt,
        C::XSAVEC => F::Xsavec,
        C::XSAVES => F::Xsaves,
        // The VEX forms of AES and PCLMULQDQ need both features; with 256 bits they are extensions of their own.
        C::AVX => F::Avx,
        C::AVX2 => F::Avx2,
        C::FMA => F::Fma,
        C::F16C => F::F16c,
        C::CMPXCHG16B => F::Cx16,
        C::MOVBE => F::Movbe,
        C::POPCNT => F::Popcnt,
        C::RDRAND => F::Rdrand,
        C::FSGSBASE => F::Fsgsbase,
        C::BMI1 => F::Bmi1,
        C::BMI2 => F::Bmi2,
        C::INVPCID => F::Invpcid,
        C::RDSEED => F::Rdseed,
        C::ADX => F::Adx,
        C::SMAP => F::Smap,
        C::CLFLUSHOPT => F::Clflushopt,
        C::CLWB => F::Clwb,
        C::RDPID => F::Rdpid,
        C::LZCNT => F::Abm,
        C::SYSCALL => F::Syscall,
        C::RDTSCP => F::Rdtscp,
        C::PKU => F::Pku,
        _ => return Needs::Impossible,
    })
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    /// What the bytes of 64-bit mode mean with the features of `specification`; `None` where they mean nothing.
    fn meaning(specification: &str, bytes: &[u8]) -> Option<M> {
        let model = Model::parse(specification).unwrap();
        let insn = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        let lowering = Lowering { insn: &insn, bytes, size: CodeSize::Bits64, off: 0, model: &model };
        admit(&lowering).map(|insn| insn.mnemonic())
    }

    #[test]
    fn instructions_come_and_go_with_their_feature() {
        for (bytes, feature) in [
            (&[0xf3, 0x0f, 0xb8, 0xc1][..], "popcnt"),
            (&[0x0f, 0x38, 0xf0, 0x01], "movbe"),
            (&[0xf2, 0x0f, 0x38, 0xf0, 0xc1], "sse4_2"),
            (&[0xf3, 0x0f, 0xc7, 0xf8], "rdpid"),
            (&[0xc4, 0xe2, 0x78, 0xf2, 0xc1], "bmi1"),
            (&[0xc4, 0xe2, 0x7b, 0xf6, 0xc1], "bmi2"),
            (&[0x66, 0x0f, 0x38, 0xf6, 0xc1], "adx"),
            (&[0x48, 0x0f, 0xc7, 0x08], "cx16"),
            (&[0x9f], "lahf_lm"),
        ] {
            assert!(meaning("glassvisor-v2", bytes).is_some(), "{feature}");
            assert_eq!(meaning(&format!("glassvisor-v2,-{feature}"), bytes), None, "{feature}");
        }
        for (bytes, feature) in [
            (&[0x66, 0x0f, 0x38, 0xdc, 0xc1][..], "aes"),
            (&[0xc4, 0xe2, 0x79, 0xdc, 0xc1], "aes"),
            (&[0xc4, 0xe3, 0x79, 0x44, 0xc1, 0], "pclmulqdq"),
            (&[0x0f, 0x38, 0xcb, 0xc1], "sha_ni"),
            (&[0xc5, 0xfd, 0xfe, 0xc1], "avx2"),
            (&[0xc4, 0xe2, 0x79, 0x98, 0xc1], "fma"),
            (&[0xc4, 0xe2, 0x79, 0x13, 0xc1], "f16c"),
            (&[0x0f, 0xae, 0x31], "xsaveopt"),
            (&[0x0f, 0xc7, 0x21], "xsavec"),
            (&[0x0f, 0xc7, 0x29], "xsaves"),
        ] {
            assert!(meaning("glassvisor-v3", bytes).is_some(), "{feature}");
            assert_eq!(meaning(&format!("glassvisor-v3,-{feature}"), bytes), None, "{feature}");
            assert_eq!(meaning("glassvisor-v2", bytes), None, "{feature}");
        }
        assert_eq!(meaning("glassvisor-v2", &[0x0f, 0x01, 0xc8]), None, "monitor");
        assert_eq!(meaning("glassvisor-v2,+monitor", &[0x0f, 0x01, 0xc8]), Some(M::Monitor));
    }

    #[test]
    fn wide_forms_of_aes_and_pclmulqdq_are_extensions_that_no_model_has() {
        for bytes in [&[0xc4, 0xe2, 0x7d, 0xdc, 0xc1][..], &[0xc4, 0xe3, 0x7d, 0x44, 0xc1, 0]] {
            assert_eq!(meaning("glassvisor-v3", bytes), None);
        }
    }

    #[test]
    fn counts_of_zeros_are_scans_where_they_do_not_exist() {
        let (lzcnt, tzcnt) = (&[0xf3, 0x0f, 0xbd, 0xc1][..], &[0xf3, 0x0f, 0xbc, 0xc1][..]);
        assert_eq!(meaning("glassvisor-v2", lzcnt), Some(M::Lzcnt));
        assert_eq!(meaning("nehalem", lzcnt), Some(M::Bsr));
        assert_eq!(meaning("glassvisor-v2", tzcnt), Some(M::Tzcnt));
        assert_eq!(meaning("nehalem", tzcnt), Some(M::Bsf));
    }

    #[test]
    fn hints_do_nothing_on_every_model() {
        let endbr = &[0xf3, 0x0f, 0x1e, 0xfa][..];
        assert_eq!(meaning("qemu64", endbr), Some(M::Endbr64));
    }
}
