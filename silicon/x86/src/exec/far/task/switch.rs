//! The switch itself ("Task Switching").

use x86_defs::control::cr0;
use x86_defs::rflags;
use x86_defs::segment::{index, rights};

use super::image::{Image, Layout};
use super::{TaskSwitch, load, tss};
use crate::Core;
use crate::core::{Flags, SegmentRegister};
use crate::event::Injection;
use crate::exec::segment::descriptor::{Descriptor, system_type, ts, wrap};
use crate::exec::segment::stack::Stack;
use crate::exec::system::control::load_cr3;
use crate::op::Leave;

/// A task switch to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSwitchRequest {
    pub source: TaskSwitch,
    /// Of the TSS of the new task.
    pub selector: u16,
    /// Bytes of the instruction that asked for the switch: the old task goes on behind it. 0 for an event that no
    /// instruction asked for.
    pub instruction_length: u8,
    /// The event that came through a task gate. Its error code goes on the stack of the new task.
    pub event: Option<Injection>,
}

/// A task switch that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// The T flag of the new TSS is set: #DB with DR6.BT comes before the first instruction.
    pub trap: bool,
}

/// Local enables of breakpoints in DR7, and LE: a new task starts without.
const LOCAL_ENABLES: u64 = 0x155;

/// Bit 1 of the type of a TSS descriptor.
const BUSY: u8 = 2;

/// What a VM-exit in the middle of a switch puts back.
struct Before {
    gpr: [u64; 32],
    flags: Flags,
    rflags_rest: u64,
    rip: u64,
    seg: [SegmentRegister; 8],
    cr0: u64,
    cr3: u64,
    dr7: u64,
    pdptes: [u64; 4],
    /// Linear addresses and values of the type bytes of the TSS descriptors that were changed.
    types: [Option<(u64, u8)>; 2],
}

impl Before {
    fn new(core: &Core) -> Self {
        Self {
            gpr: core.gpr,
            flags: core.flags,
            rflags_rest: core.rflags_rest,
            rip: core.rip,
            seg: core.seg,
            cr0: core.cr0,
            cr3: core.cr3,
            dr7: core.dr[7],
            pdptes: core.vmx.pdptes,
            types: [None; 2],
        }
    }

    /// Undoes what has been done so far. What was stored in the old TSS will be stored again.
    fn restore(&self, core: &mut Core) {
        let exit = core.vmx.exit;
        if core.cr3 != self.cr3 {
            core.cr3 = self.cr3;
            core.vmx.pdptes = self.pdptes;
            core.tlb_cr3_written(crate::mem::Keep::Nothing);
        }
        core.gpr = self.gpr;
        core.flags = self.flags;
        core.rflags_rest = self.rflags_rest;
        core.rip = self.rip;
        core.seg = self.seg;
        core.cr0 = self.cr0;
        core.dr[7] = self.dr7;
        core.update_mode();
        for (at, value) in self.types.into_iter().flatten() {
            // The page was written a moment ago.
            let _ = core.store_system(at, value);
        }
        core.vmx.exit = exit;
    }
}

impl Core {
    /// Carries out a task switch. With a TSS in memory that cannot be reached, nothing has happened.
    ///
    /// # Errors
    /// [`Leave::Fault`]: an exception, of the old task or of the new one as [`Core::rip`] says. [`Leave::Exit`]: a VM-exit
    /// by an access to a TSS, a descriptor table or a stack; nothing has changed.
    pub fn switch_task(&mut self, request: &TaskSwitchRequest) -> Result<Switched, Leave> {
        let self_modify = std::mem::replace(&mut self.self_modify, true);
        let mut before = Before::new(self);
        let done = self.try_switch(request, &mut before);
        self.self_modify = self_modify;
        match done {
            Ok(switched) => {
                self.events.sti_shadow = false;
                self.events.mov_ss_shadow = false;
                Ok(switched)
            }
            Err(Leave::Fault) => match request.event {
                // The exception may be one that makes the event a double fault.
                Some(event) => Err(self.second_fault(&event)),
                None => Err(Leave::Fault),
            },
            Err(left) => {
                before.restore(self);
                Err(left)
            }
        }
    }

    fn try_switch(&mut self, request: &TaskSwitchRequest, before: &mut Before) -> Result<Switched, Leave> {
        let source = request.source;
        let new = tss::find(self, source, request.selector)?;
        let old = self.seg[index::TR];
        let old_layout = if old.rights & 8 == 0 { Layout::Bits16 } else { Layout::Bits32 };
        if old.limit < old_layout.least_limit() {
            return Err(ts(self, old.selector));
        }
        let new_base = new.descriptor().base();
        let image = Image::read(self, new.layout, new_base)?;
        Image::check_write(self, old_layout, old.base)?;
        let old_descriptor = wrap(self, self.gdtr.base.wrapping_add(u64::from(old.selector & !7)) + 5);
        let old_type: u8 = self.load_system(old_descriptor)?;

        // Accesses that can fail by a page fault are over for the old task.
        let return_rip = self.rip.wrapping_add(u64::from(request.instruction_length)) & self.mode.rip_mask;
        let mut eflags = self.rflags();
        if matches!(source, TaskSwitch::Jump | TaskSwitch::Iret) {
            before.types[0] = Some((old_descriptor, old_type));
            self.store_system(old_descriptor, old_type & !BUSY)?;
        }
        if source == TaskSwitch::Iret {
            eflags &= !rflags::NT;
        }
        Image::of(self, return_rip, eflags).write(self, old_layout, old.base)?;
        if source.nests() {
            let link = wrap(self, new_base);
            self.store_system(link, old.selector)?;
        }
        let mut descriptor = new.descriptor();
        if source != TaskSwitch::Iret {
            let at = wrap(self, new.located.linear + 5);
            let kind = (descriptor.0 >> 40) as u8;
            before.types[1] = Some((at, kind));
            self.store_system(at, kind | BUSY)?;
            descriptor = Descriptor(descriptor.0 | u64::from(BUSY) << 40);
        }

        // The new task.
        self.seg[index::TR] =
            SegmentRegister { rights: descriptor.rights() & !rights::UNUSABLE, ..descriptor.segment(new.selector) };
        debug_assert!(matches!(descriptor.system_type(), Some(system_type::TSS_BUSY | system_type::TSS16_BUSY)));
        self.cr0 |= cr0::TS;
        self.dr[7] &= !LOCAL_ENABLES;
        if let Some(cr3) = image.cr3
            && self.cr0 & cr0::PG != 0
        {
            load_cr3(self, u64::from(cr3))?;
        }
        for (register, value) in self.gpr.iter_mut().zip(image.gpr) {
            *register = u64::from(value);
        }
        self.rip = u64::from(image.eip);
        let nested = if source.nests() { rflags::NT } else { 0 };
        self.set_rflags(u64::from(image.eflags) | nested);
        let vm86 = self.rflags_rest & rflags::VM != 0;
        load::selectors(self, &image, vm86);
        load::descriptors(self, &image, vm86)?;
        if self.rip > u64::from(self.seg[index::CS].limit) {
            return Err(self.gp0());
        }
        if let Some(code) = request.event.and_then(|event| event.error_code) {
            let bytes = if new.layout == Layout::Bits16 { 2 } else { 4 };
            let mut stack = Stack::current(self);
            stack.push(self, bytes, u64::from(code))?;
            self.gpr[4] = stack.sp;
        }
        Ok(Switched { trap: image.trap })
    }
}
