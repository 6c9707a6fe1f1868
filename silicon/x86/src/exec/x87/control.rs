//! Control instructions: they leave FIP, FDP and FOP alone.

use silicon_float::x87::ControlWord;

use super::status::fsw;
use crate::core::Fpu;
use crate::op::Done;
use crate::{Core, Op};

/// Bits of the control word that can be written; bit 6 reads as one.
const FCW_WRITABLE: u16 = 0x1f3f;
const FCW_ONES: u16 = 0x0040;

impl Fpu {
    /// Loads the control word, which may make an exception pending or not.
    pub fn set_control(&mut self, fcw: u16) {
        self.fcw = fcw & FCW_WRITABLE | FCW_ONES;
        self.summarize();
    }

    /// FNINIT: the registers keep their bits, but are empty.
    pub fn init_x87(&mut self) {
        self.fcw = ControlWord::INIT;
        self.fsw = 0;
        self.ftw = 0;
        self.fop = 0;
        self.fip = 0;
        self.fdp = 0;
    }
}

/// FNINIT.
pub fn fninit(core: &mut Core, _: &Op) -> Done {
    core.begin_x87_without_wait()?;
    core.fpu.init_x87();
    Ok(())
}

/// FNCLEX.
pub fn fnclex(core: &mut Core, _: &Op) -> Done {
    core.begin_x87_without_wait()?;
    core.fpu.fsw &= !(fsw::EXCEPTIONS | fsw::SF | fsw::ES | fsw::B);
    Ok(())
}

/// FLDCW.
pub fn fldcw(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let fcw = core.load(op)?;
    core.fpu.set_control(fcw);
    Ok(())
}

/// FNSTCW.
pub fn fnstcw(core: &mut Core, op: &Op) -> Done {
    core.begin_x87_without_wait()?;
    core.store(op, core.fpu.fcw)
}

/// FNSTSW m16.
pub fn fnstsw(core: &mut Core, op: &Op) -> Done {
    core.begin_x87_without_wait()?;
    core.store(op, core.fpu.fsw)
}

/// FNSTSW AX.
pub fn fnstsw_ax(core: &mut Core, op: &Op) -> Done {
    core.begin_x87_without_wait()?;
    core.set(op.a, core.fpu.fsw);
    Ok(())
}

/// FNENI, FNDISI, FNSETPM: what they did on the 8087 and 80287 has no meaning any more.
pub fn nothing(core: &mut Core, _: &Op) -> Done {
    core.begin_x87_without_wait()
}
