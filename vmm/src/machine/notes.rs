//! Messages for the user about what the guest touched and the machine does not have, each once.

use std::collections::BTreeSet;

use crate::explain;
use crate::vm::Unmodelled;

/// Ports of system management commands on PC chipsets: a write is meant to interrupt into firmware.
pub const SMI_COMMAND_PORT: u16 = 0xb2;
/// More would hide what the guest prints; the statistics count everything.
const MOST: usize = 24;
const PAGE: u64 = 4096;

/// What was told, and what is to be told.
#[derive(Debug, Default)]
pub struct Notes {
    pages: BTreeSet<u64>,
    smi: bool,
    told: usize,
    texts: Vec<String>,
}

impl Notes {
    fn tell(&mut self, text: String) {
        self.told += 1;
        if self.told < MOST {
            self.texts.push(text);
        } else if self.told == MOST {
            self.texts.push(format!("{text}. This is the last such message; --stats counts all"));
        }
    }

    /// An MSR, or what else the processor does not have.
    pub fn processor(&mut self, what: Unmodelled) {
        let name = |number| explain::msr_name(number).map_or(String::new(), |name| format!(" ({name})"));
        self.tell(match what {
            Unmodelled::SystemManagementInterrupt => {
                "the guest sent a system management interrupt (SMI); there is no SMM, and nothing happens".to_owned()
            }
            Unmodelled::MsrRead(number) => {
                format!("the guest read MSR {number:#x}{}, which is not modelled, and got #GP", name(number))
            }
            Unmodelled::MsrWrite(number) => {
                format!("the guest wrote MSR {number:#x}{}, which is not modelled, and got #GP", name(number))
            }
        });
    }

    /// A guest-physical address with neither memory nor a device: one message a page.
    pub fn memory(&mut self, address: u64) {
        if self.pages.len() < MOST && self.pages.insert(address / PAGE) {
            self.tell(format!(
                "the guest used guest-physical {address:#x}, where there is no memory and no device; reads give ones"
            ));
        }
    }

    /// A write to [`SMI_COMMAND_PORT`].
    pub fn smi_command(&mut self) {
        if !std::mem::replace(&mut self.smi, true) {
            self.tell(format!(
                "the guest asked for a system management interrupt (port {SMI_COMMAND_PORT:#x}); there is no SMM, and \
                 nothing happens"
            ));
        }
    }

    /// Takes the messages since the last call.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_and_the_smi_port_are_told_once() {
        let mut notes = Notes::default();
        for address in [0xfed4_0000, 0xfed4_0008, 0xfed5_0000] {
            notes.memory(address);
        }
        notes.smi_command();
        notes.smi_command();
        notes.processor(Unmodelled::MsrRead(0x6e0));
        let texts = notes.take();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts[0].contains("0xfed40000") && texts[2].contains("0xb2"), "{texts:?}");
        assert!(texts[3].contains("0x6e0 (IA32_TSC_DEADLINE)"), "{texts:?}");
        assert!(notes.take().is_empty());
    }

    #[test]
    fn a_flood_ends_with_a_last_message() {
        let mut notes = Notes::default();
        (0..10_000).for_each(|number| notes.processor(Unmodelled::MsrRead(number)));
        (0..10_000).for_each(|page| notes.memory(page * PAGE));
        let texts = notes.take();
        assert_eq!(texts.len(), MOST);
        assert!(texts[MOST - 1].contains("the last such message"), "{}", texts[MOST - 1]);
    }
}
