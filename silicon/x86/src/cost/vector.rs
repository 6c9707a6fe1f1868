//! Static cost of floating-point vector instructions in quarter cycles.
//!
//! Reciprocal throughputs of a core with two 256-bit pipes for addition, multiplication and fused multiply-add, from LLVM's
//! scheduling model of Sapphire Rapids (`X86SchedSapphireRapids.td`); those of the divider, which that model leaves out,
//! from the one of Ice Lake (`X86SchedIceLake.td`). Only division and square root take longer with 256 bits. What is not
//! here costs what every instruction does.

use iced_x86::{Code, Instruction, Mnemonic, OpKind};

/// Cost of a floating-point vector instruction, with registers; `None` if it is another one.
#[must_use]
pub fn of(insn: &Instruction) -> Option<u16> {
    use Mnemonic as M;
    let wide = (0..insn.op_count()).any(|i| insn.op_kind(i) == OpKind::Register && insn.op_register(i).is_ymm());
    let half_cycles = match insn.mnemonic() {
        M::Divss | M::Divps | M::Vdivss => 6,
        M::Vdivps => [6, 10][usize::from(wide)],
        M::Divsd | M::Divpd | M::Vdivsd => 8,
        M::Vdivpd => [8, 16][usize::from(wide)],
        M::Sqrtss | M::Sqrtps | M::Vsqrtss => 6,
        M::Vsqrtps => [6, 12][usize::from(wide)],
        M::Sqrtsd | M::Sqrtpd | M::Vsqrtsd => 12,
        M::Vsqrtpd => [12, 24][usize::from(wide)],
        M::Haddps | M::Haddpd | M::Hsubps | M::Hsubpd | M::Vhaddps | M::Vhaddpd | M::Vhsubps | M::Vhsubpd => 4,
        M::Dpps | M::Vdpps => 4,
        M::Dppd | M::Vdppd => 2,
        M::Rcpps | M::Rcpss | M::Rsqrtps | M::Rsqrtss => 2,
        M::Vrcpps | M::Vrcpss | M::Vrsqrtps | M::Vrsqrtss => 2,
        M::Roundps | M::Roundpd | M::Roundss | M::Roundsd => 2,
        M::Vroundps | M::Vroundpd | M::Vroundss | M::Vroundsd => 2,
        M::Comiss | M::Comisd | M::Ucomiss | M::Ucomisd | M::Vcomiss | M::Vcomisd | M::Vucomiss | M::Vucomisd => 2,
        // Conversions that change the size of a lane or the file of registers: a shuffle or a move more.
        M::Cvtpd2ps | M::Cvtps2pd | M::Cvtdq2pd | M::Cvtpd2dq | M::Cvttpd2dq | M::Cvtss2sd | M::Cvtsd2ss => 2,
        M::Vcvtpd2ps | M::Vcvtps2pd | M::Vcvtdq2pd | M::Vcvtpd2dq | M::Vcvttpd2dq | M::Vcvtss2sd | M::Vcvtsd2ss => 2,
        M::Cvtsi2ss | M::Cvtsi2sd | M::Cvtss2si | M::Cvtsd2si | M::Cvttss2si | M::Cvttsd2si => 2,
        M::Vcvtsi2ss | M::Vcvtsi2sd | M::Vcvtss2si | M::Vcvtsd2si | M::Vcvttss2si | M::Vcvttsd2si => 2,
        M::Vcvtph2ps | M::Vcvtps2ph => 2,
        _ if is_arithmetic(insn) => 1,
        _ => return None,
    };
    Some(2 * half_cycles)
}

/// What one of the two pipes does in one go.
fn is_arithmetic(insn: &Instruction) -> bool {
    use Mnemonic as M;
    match insn.mnemonic() {
        M::Addps | M::Addpd | M::Addss | M::Addsd | M::Subps | M::Subpd | M::Subss | M::Subsd => true,
        M::Mulps | M::Mulpd | M::Mulss | M::Mulsd | M::Minps | M::Minpd | M::Minss | M::Minsd => true,
        M::Maxps | M::Maxpd | M::Maxss | M::Maxsd | M::Addsubps | M::Addsubpd => true,
        M::Cmpps | M::Cmppd | M::Cmpss => true,
        // The mnemonic is also that of the string instruction.
        M::Cmpsd => insn.code() == Code::Cmpsd_xmm_xmmm64_imm8,
        M::Cvtdq2ps | M::Cvtps2dq | M::Cvttps2dq | M::Vcvtdq2ps | M::Vcvtps2dq | M::Vcvttps2dq => true,
        M::Vaddps | M::Vaddpd | M::Vaddss | M::Vaddsd | M::Vsubps | M::Vsubpd | M::Vsubss | M::Vsubsd => true,
        M::Vmulps | M::Vmulpd | M::Vmulss | M::Vmulsd | M::Vminps | M::Vminpd | M::Vminss | M::Vminsd => true,
        M::Vmaxps | M::Vmaxpd | M::Vmaxss | M::Vmaxsd | M::Vaddsubps | M::Vaddsubpd => true,
        M::Vcmpps | M::Vcmppd | M::Vcmpss | M::Vcmpsd => true,
        _ => insn.cpuid_features().contains(&iced_x86::CpuidFeature::FMA),
    }
}
