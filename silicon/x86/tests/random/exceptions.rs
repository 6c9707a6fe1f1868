//! What is not compared, and why. Everything else that the model executes in 64-bit mode must be.

use iced_x86::{Code, CpuidFeature, FlowControl, Instruction, Mnemonic as M, OpKind};
use silicon_x86::lower::gate::{Needs, needs};
use silicon_x86::model::Register;

use super::mode::Mode;

/// Why an instruction is not compared, if it is not.
pub fn reason(code: Code) -> Option<&'static str> {
    use Code as C;
    Some(match code.mnemonic() {
        M::Syscall
        | M::Sysenter
        | M::Int
        | M::Into
        | M::Int3
        | M::Int1
        | M::Sysret
        | M::Sysretq
        | M::Sysexit
        | M::Sysexitq => "enters or leaves the operating system",
        M::Iret | M::Iretd | M::Iretq | M::Retf => "loads CS from the host's descriptor tables",
        M::Jmp | M::Call
            if matches!(
                code,
                C::Jmp_m1616
                    | C::Jmp_m1632
                    | C::Jmp_m1664
                    | C::Jmp_ptr1616
                    | C::Jmp_ptr1632
                    | C::Call_m1616
                    | C::Call_m1632
                    | C::Call_m1664
                    | C::Call_ptr1616
                    | C::Call_ptr1632
            ) =>
        {
            "loads CS from the host's descriptor tables"
        }
        M::Lss | M::Lfs | M::Lgs | M::Les | M::Lds => "loads a segment of the host's descriptor tables",
        M::Mov if matches!(code, C::Mov_Sreg_rm16 | C::Mov_Sreg_r32m16 | C::Mov_Sreg_r64m16) => {
            "loads a segment of the host's descriptor tables"
        }
        M::Pop
            if matches!(
                code,
                C::Popw_ES
                    | C::Popw_SS
                    | C::Popw_DS
                    | C::Popw_FS
                    | C::Popw_GS
                    | C::Popd_ES
                    | C::Popd_SS
                    | C::Popd_DS
                    | C::Popd_FS
                    | C::Popd_GS
                    | C::Popq_FS
                    | C::Popq_GS
            ) =>
        {
            "loads a segment of the host's descriptor tables"
        }
        M::Lar | M::Lsl | M::Verr | M::Verw => "reads the host's descriptor tables",
        M::Sgdt | M::Sidt | M::Sldt | M::Str | M::Smsw => "UMIP: the host's kernel answers instead",
        M::Rdfsbase | M::Wrfsbase => "FS is the thread pointer of the test",
        M::Cpuid
        | M::Rdtsc
        | M::Rdtscp
        | M::Rdpid
        | M::Rdrand
        | M::Rdseed
        | M::Xgetbv
        | M::Xsetbv
        | M::Getsec
        | M::Getsecq => "gives what the host's processor, time or chance has",
        M::Rdpmc => "the host's kernel may allow it",
        M::Vmcall | M::Vmclear | M::Vmlaunch | M::Vmptrld | M::Vmptrst | M::Vmread | M::Vmresume | M::Vmwrite => {
            "VM-exit"
        }
        M::Vmxoff | M::Vmxon | M::Invept | M::Invvpid => "VM-exit",
        M::Fxsave | M::Fxsave64 | M::Fxrstor | M::Fxrstor64 | M::Fnsave | M::Fnstenv | M::Frstor | M::Fldenv => {
            "x87 instruction pointers and reserved bytes, where makers differ; see sse_state_and_faults and x87"
        }
        M::Xsave | M::Xsave64 | M::Xsaveopt | M::Xsaveopt64 | M::Xsavec | M::Xsavec64 | M::Xrstor | M::Xrstor64 => {
            "x87 instruction pointers and the components in use, where makers differ; see xsave_against_this_processor"
        }
        M::Jmp | M::Call | M::Ret
            if matches!(
                code,
                C::Retnw | C::Retnw_imm16 | C::Jmp_rel8_16 | C::Jmp_rel16 | C::Call_rel16 | C::Jmp_rm16 | C::Call_rm16
            ) =>
        {
            "not of 64-bit mode on Intel"
        }
        M::Reservednop
            if host_is_amd()
                && matches!(
                    code,
                    C::Reservednop_rm16_r16_0F0D | C::Reservednop_rm32_r32_0F0D | C::Reservednop_rm64_r64_0F0D
                ) =>
        {
            "PREFETCHW of a register: a NOP on Intel, #UD on AMD"
        }
        M::Vrcpps | M::Vrcpss | M::Vrsqrtps | M::Vrsqrtss => "an approximation, where makers differ",
        M::Bswap if code == C::Bswap_r16 => "undefined by the manual",
        M::Rcpps | M::Rcpss | M::Rsqrtps | M::Rsqrtss => "an approximation, where makers differ",
        M::Fsin | M::Fcos | M::Fsincos | M::Fptan | M::Fpatan | M::F2xm1 | M::Fyl2x | M::Fyl2xp1 => {
            "an approximation, where makers differ; see x87"
        }
        _ => return None,
    })
}

/// Instructions that the decoder knows, with features that the model has, and that are #UD all the same.
pub fn is_undefined(code: Code) -> bool {
    use Code as C;
    match code {
        // A VM function is available where the VMCS enables it, which the modelled VMX cannot.
        C::Vmfunc => true,
        // Of the 8086 alone.
        C::Popw_CS => true,
        // The decoder's old form of UD0.
        C::Ud0 => true,
        _ => false,
    }
}

/// Whether one instruction (not all of its code) cannot be compared.
pub fn is_excluded(insn: &Instruction, bytes: &[u8], mode: Mode) -> bool {
    reason(insn.code()).is_some()
        // The thread pointer of the test.
        || insn.segment_prefix() == iced_x86::Register::FS
        // AMD lets a repeat prefix choose between the two.
        || matches!(insn.mnemonic(), M::Loope | M::Loopne) && has_prefix(bytes, |b| b == 0xf2 || b == 0xf3)
        // Outside of 64-bit mode, where there is no register of 64 bits, W does not count on Intel, and is #UD on AMD.
        || !mode.is_64()
            && host_is_amd()
            && matches!(insn.mnemonic(), M::Vpextrd | M::Vpinsrd)
            && has_vex_w(bytes)
        || mode.is_64() && is_excluded_in_64_bit_mode(insn, bytes)
}

fn is_excluded_in_64_bit_mode(insn: &Instruction, bytes: &[u8]) -> bool {
    // With an operand-size prefix, near branches are 16 bits wide on AMD, and 64 on Intel.
    !matches!(insn.flow_control(), FlowControl::Next | FlowControl::Exception) && has_prefix(bytes, |b| b == 0x66)
        // AMD reads four bytes.
        || insn.code() == Code::Movsxd_r16_rm16 && insn.op1_kind() == OpKind::Memory && host_is_amd()
        // AMD takes this for XCHG R8.
        || insn.mnemonic() == M::Pause && has_prefix(bytes, |b| b & 0xf1 == 0x41)
}

/// Whether VEX.W is set.
fn has_vex_w(bytes: &[u8]) -> bool {
    bytes.iter().position(|&b| b == 0xc4).is_some_and(|at| bytes.get(at + 2).is_some_and(|b| b & 0x80 != 0))
}

/// Whether one of the prefixes is such.
fn has_prefix(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    let prefix = |b: &&u8| matches!(**b, 0x26 | 0x2e | 0x36 | 0x3e | 0x65..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f);
    bytes.iter().take_while(prefix).any(|&b| is(b))
}

/// The feature that the host lacks for an instruction, if it lacks one.
pub fn missing(code: Code) -> Option<&'static str> {
    code.cpuid_features().iter().find_map(|&feature| match needs(feature) {
        Needs::Feature(needed) => {
            let row = needed.row();
            let host = std::arch::x86_64::__cpuid_count(row.leaf, row.subleaf);
            let word = match row.register {
                Register::Eax => host.eax,
                Register::Ebx => host.ebx,
                Register::Ecx => host.ecx,
                Register::Edx => host.edx,
            };
            // User mode has these only where the kernel says so, not CPUID.
            let enabled = match feature {
                CpuidFeature::FSGSBASE => fsgsbase_is_enabled(),
                CpuidFeature::AVX | CpuidFeature::AVX2 | CpuidFeature::FMA | CpuidFeature::F16C => {
                    std::arch::is_x86_feature_detected!("avx")
                }
                _ => true,
            };
            (word >> row.bit & 1 == 0 || !enabled).then_some(row.name)
        }
        Needs::Nothing | Needs::Impossible => None,
    })
}

fn fsgsbase_is_enabled() -> bool {
    const HWCAP2_FSGSBASE: u64 = 2;
    // SAFETY: reads the auxiliary vector.
    (unsafe { libc::getauxval(libc::AT_HWCAP2) }) & HWCAP2_FSGSBASE != 0
}

/// Whether the host is AMD's or one of its like.
pub fn host_is_amd() -> bool {
    std::arch::x86_64::__cpuid(0).ecx == u32::from_le_bytes(*b"cAMD")
}
