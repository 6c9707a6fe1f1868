//! Task switches. VMX does not carry them out; the processor's own semantics do.

use silicon_x86::event::{EventKind, Injection};
use silicon_x86::exec::far::{TaskSwitch, TaskSwitchRequest};
use silicon_x86::op::Leave;
use x86_defs::vmx::controls::interruption;
use x86_defs::vmx::{ExitReason, Field};

use super::{Next, Shared, UserExit};
use crate::memory::Mapped;
use crate::vcpu::Vcpu;
use crate::vcpu::inject::dr6;

impl Vcpu {
    pub(super) fn task_switch_exit(&mut self, shared: &mut Shared) -> Next {
        let info = self.processor.core.vmx.exit;
        let event = interrupted_event(info.idt_vectoring, info.idt_vectoring_error, info.instruction_length);
        let by_instruction = event.is_none_or(|event| event.kind.is_software());
        // The switch delivers the event: it is not injected again.
        self.processor.core.vmwrite(Field::EntryInterruptionInformation, 0);
        if event.is_some_and(|event| event.kind == EventKind::Nmi) {
            self.processor.core.events.nmi_blocked = true;
        }
        let request = TaskSwitchRequest {
            source: TaskSwitch::from_qualification(info.qualification),
            selector: info.qualification as u16,
            instruction_length: if by_instruction { info.instruction_length as u8 } else { 0 },
            event,
        };
        loop {
            match self.processor.switch_task(&request) {
                Ok(switched) => {
                    self.processor.core.count.instructions += u64::from(by_instruction);
                    if switched.trap {
                        self.queue_db(dr6::BT);
                    }
                    return Next::Resume;
                }
                Err(Leave::Fault) => {
                    self.queue_processor_fault();
                    return Next::Resume;
                }
                Err(_) => {
                    // A table, a TSS or a stack is in memory that is not mapped yet.
                    let info = self.processor.core.vmx.exit;
                    let write = info.qualification & 2 != 0;
                    let Shared { memory, ept, pool, .. } = shared;
                    match info.reason {
                        Some(ExitReason::TripleFault) => {
                            self.user_exit = Some(UserExit::Shutdown);
                            return Next::User;
                        }
                        Some(ExitReason::EptViolation)
                            if ept.map(&memory.machine, pool, &memory.slots, info.guest_physical, write)
                                == Mapped::Memory => {}
                        reason => {
                            return self.fail(format!(
                                "cannot switch tasks: guest-physical address {:#x} is not memory ({})",
                                info.guest_physical,
                                reason.map_or("no reason", ExitReason::name)
                            ));
                        }
                    }
                }
            }
        }
    }
}

/// The event whose delivery led to a VM-exit.
fn interrupted_event(information: u32, error_code: u32, instruction_length: u32) -> Option<Injection> {
    if information & interruption::VALID == 0 {
        return None;
    }
    let kind = match information & interruption::TYPE {
        interruption::TYPE_EXTERNAL => EventKind::External,
        interruption::TYPE_NMI => EventKind::Nmi,
        interruption::TYPE_SOFTWARE_INTERRUPT => EventKind::SoftwareInterrupt,
        interruption::TYPE_PRIVILEGED_SOFTWARE_EXCEPTION => EventKind::PrivilegedSoftwareException,
        interruption::TYPE_SOFTWARE_EXCEPTION => EventKind::SoftwareException,
        _ => EventKind::HardwareException,
    };
    Some(Injection {
        vector: (information & interruption::VECTOR) as u8,
        kind,
        error_code: (information & interruption::DELIVER_ERROR_CODE != 0).then_some(error_code),
        instruction_length: instruction_length as u8,
    })
}
