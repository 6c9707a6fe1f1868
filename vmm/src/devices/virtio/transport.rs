//! The memory-mapped transport: registers, feature negotiation, the queue, and its interrupt.

use std::sync::{Arc, Mutex, PoisonError};

use virtio_bindings::virtio_config::{
    VIRTIO_CONFIG_S_DRIVER_OK, VIRTIO_CONFIG_S_FAILED, VIRTIO_CONFIG_S_FEATURES_OK, VIRTIO_CONFIG_S_NEEDS_RESET,
    VIRTIO_F_VERSION_1,
};
use virtio_bindings::virtio_ids::VIRTIO_ID_BLOCK;
use virtio_bindings::virtio_mmio::{
    VIRTIO_MMIO_CONFIG, VIRTIO_MMIO_CONFIG_GENERATION, VIRTIO_MMIO_DEVICE_FEATURES,
    VIRTIO_MMIO_DEVICE_FEATURES_SEL, VIRTIO_MMIO_DEVICE_ID, VIRTIO_MMIO_DRIVER_FEATURES,
    VIRTIO_MMIO_DRIVER_FEATURES_SEL, VIRTIO_MMIO_INT_CONFIG, VIRTIO_MMIO_INT_VRING, VIRTIO_MMIO_INTERRUPT_ACK,
    VIRTIO_MMIO_INTERRUPT_STATUS, VIRTIO_MMIO_MAGIC_VALUE, VIRTIO_MMIO_QUEUE_AVAIL_HIGH,
    VIRTIO_MMIO_QUEUE_AVAIL_LOW, VIRTIO_MMIO_QUEUE_DESC_HIGH, VIRTIO_MMIO_QUEUE_DESC_LOW, VIRTIO_MMIO_QUEUE_NOTIFY,
    VIRTIO_MMIO_QUEUE_NUM, VIRTIO_MMIO_QUEUE_NUM_MAX, VIRTIO_MMIO_QUEUE_READY, VIRTIO_MMIO_QUEUE_SEL,
    VIRTIO_MMIO_QUEUE_USED_HIGH, VIRTIO_MMIO_QUEUE_USED_LOW, VIRTIO_MMIO_SHM_BASE_HIGH, VIRTIO_MMIO_SHM_BASE_LOW,
    VIRTIO_MMIO_SHM_LEN_HIGH, VIRTIO_MMIO_SHM_LEN_LOW, VIRTIO_MMIO_STATUS, VIRTIO_MMIO_VENDOR_ID,
    VIRTIO_MMIO_VERSION,
};
use virtio_queue::{Queue, QueueT};
use vm_device::MutDeviceMmio;
use vm_device::bus::{MmioAddress, MmioAddressOffset};
use vm_memory::GuestMemoryMmap;

use super::block::Block;
use super::request;
use crate::devices::IrqLines;
use crate::memory::GuestRam;

/// Entries of the queue.
pub const QUEUE_SIZE: u16 = 256;
const MAGIC: u32 = u32::from_le_bytes(*b"virt");
const VERSION: u32 = 2;
const VENDOR: u32 = u32::from_le_bytes(*b"GLSV");
const CONFIG: u64 = VIRTIO_MMIO_CONFIG as u64;

/// Guest memory that devices wrote, for the processor's cache of decoded instructions.
#[derive(Clone, Debug, Default)]
pub struct DirtyRanges(Arc<Mutex<Vec<(u64, u64)>>>);

impl DirtyRanges {
    pub fn add(&self, start: u64, len: u64) {
        if len > 0 {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((start, len));
        }
    }

    /// Takes what was written since the last call: start and length.
    pub fn take(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A block device behind the memory-mapped transport.
pub struct MmioTransport {
    block: Block,
    memory: Arc<GuestMemoryMmap>,
    queue: Queue,
    lines: IrqLines,
    gsi: u32,
    dirty: DirtyRanges,
    status: u32,
    interrupt: u32,
    device_features_page: u32,
    driver_features_page: u32,
    driver_features: u64,
    selected_queue: u32,
}

impl MmioTransport {
    /// A device with interrupt `gsi`.
    pub fn new(block: Block, ram: &GuestRam, lines: IrqLines, gsi: u32, dirty: DirtyRanges) -> Self {
        let queue = Queue::new(QUEUE_SIZE).expect("a power of two is a valid queue size");
        Self {
            block,
            memory: ram.mmap().clone(),
            queue,
            lines,
            gsi,
            dirty,
            status: 0,
            interrupt: 0,
            device_features_page: 0,
            driver_features_page: 0,
            driver_features: 0,
            selected_queue: 0,
        }
    }

    fn features(&self) -> u64 {
        self.block.features() | 1 << VIRTIO_F_VERSION_1
    }

    fn reset(&mut self) {
        self.queue.reset();
        self.status = 0;
        self.interrupt = 0;
        self.device_features_page = 0;
        self.driver_features_page = 0;
        self.driver_features = 0;
        self.selected_queue = 0;
    }

    fn register(&self, offset: u32) -> u32 {
        let page = |features: u64, page: u32| match page {
            0 => features as u32,
            1 => (features >> 32) as u32,
            _ => 0,
        };
        match offset {
            VIRTIO_MMIO_MAGIC_VALUE => MAGIC,
            VIRTIO_MMIO_VERSION => VERSION,
            VIRTIO_MMIO_DEVICE_ID => VIRTIO_ID_BLOCK,
            VIRTIO_MMIO_VENDOR_ID => VENDOR,
            VIRTIO_MMIO_DEVICE_FEATURES => page(self.features(), self.device_features_page),
            VIRTIO_MMIO_QUEUE_NUM_MAX if self.selected_queue == 0 => u32::from(QUEUE_SIZE),
            VIRTIO_MMIO_QUEUE_READY if self.selected_queue == 0 => u32::from(self.queue.ready()),
            VIRTIO_MMIO_INTERRUPT_STATUS => self.interrupt,
            VIRTIO_MMIO_STATUS => self.status,
            // There is no shared memory: length and base of any region read as ones.
            VIRTIO_MMIO_SHM_LEN_LOW | VIRTIO_MMIO_SHM_LEN_HIGH | VIRTIO_MMIO_SHM_BASE_LOW
            | VIRTIO_MMIO_SHM_BASE_HIGH => u32::MAX,
            VIRTIO_MMIO_CONFIG_GENERATION => 0,
            _ => 0,
        }
    }

    fn set_status(&mut self, value: u32) {
        if value == 0 {
            return self.reset();
        }
        let mut value = value;
        let wants_features = value & VIRTIO_CONFIG_S_FEATURES_OK != 0;
        if wants_features && self.status & VIRTIO_CONFIG_S_FEATURES_OK == 0 {
            let unknown = self.driver_features & !self.features();
            let modern = self.driver_features & 1 << VIRTIO_F_VERSION_1 != 0;
            if unknown != 0 || !modern {
                // The driver reads this back and gives up.
                value &= !VIRTIO_CONFIG_S_FEATURES_OK;
            }
        }
        self.status = value | self.status & VIRTIO_CONFIG_S_NEEDS_RESET;
    }

    fn set_register(&mut self, offset: u32, value: u32) {
        // The queue may be set up only while it is not in use.
        let queue = self.selected_queue == 0 && !self.queue.ready();
        match offset {
            VIRTIO_MMIO_DEVICE_FEATURES_SEL => self.device_features_page = value,
            VIRTIO_MMIO_DRIVER_FEATURES_SEL => self.driver_features_page = value,
            VIRTIO_MMIO_DRIVER_FEATURES if self.status & VIRTIO_CONFIG_S_FEATURES_OK == 0 => {
                let (shift, mask) = match self.driver_features_page {
                    0 => (0, !0 << 32),
                    1 => (32, !0 >> 32),
                    _ => return,
                };
                self.driver_features = self.driver_features & mask | u64::from(value) << shift;
            }
            VIRTIO_MMIO_QUEUE_SEL => self.selected_queue = value,
            VIRTIO_MMIO_QUEUE_NUM if queue => self.queue.set_size(u16::try_from(value).unwrap_or(0)),
            VIRTIO_MMIO_QUEUE_DESC_LOW if queue => self.queue.set_desc_table_address(Some(value), None),
            VIRTIO_MMIO_QUEUE_DESC_HIGH if queue => self.queue.set_desc_table_address(None, Some(value)),
            VIRTIO_MMIO_QUEUE_AVAIL_LOW if queue => self.queue.set_avail_ring_address(Some(value), None),
            VIRTIO_MMIO_QUEUE_AVAIL_HIGH if queue => self.queue.set_avail_ring_address(None, Some(value)),
            VIRTIO_MMIO_QUEUE_USED_LOW if queue => self.queue.set_used_ring_address(Some(value), None),
            VIRTIO_MMIO_QUEUE_USED_HIGH if queue => self.queue.set_used_ring_address(None, Some(value)),
            VIRTIO_MMIO_QUEUE_READY if self.selected_queue == 0 => self.queue.set_ready(value & 1 != 0),
            VIRTIO_MMIO_QUEUE_NOTIFY if value == 0 => self.process(),
            VIRTIO_MMIO_INTERRUPT_ACK => self.interrupt &= !value,
            VIRTIO_MMIO_STATUS => self.set_status(value),
            _ => {}
        }
    }

    /// Answers every request in the queue.
    fn process(&mut self) {
        let stopped = VIRTIO_CONFIG_S_FAILED | VIRTIO_CONFIG_S_NEEDS_RESET;
        if self.status & VIRTIO_CONFIG_S_DRIVER_OK == 0 || self.status & stopped != 0 {
            return;
        }
        let memory = self.memory.as_ref();
        if !self.queue.is_valid(memory) {
            return self.fail();
        }
        let mut completed = 0;
        // Each pass takes what the guest has made available; more than a queue's worth at once is damage,
        // which the queue reports. Vcpus do not run meanwhile, so the passes end.
        loop {
            // Told here and not in the loop's end: an index that jumps is an error, not an empty queue.
            let available = match self.queue.avail_idx(memory, std::sync::atomic::Ordering::Acquire) {
                Ok(index) => index.0.wrapping_sub(self.queue.next_avail()),
                Err(_) => return self.fail(),
            };
            if available > self.queue.size() {
                return self.fail();
            }
            if available == 0 {
                break;
            }
            let Some(chain) = self.queue.pop_descriptor_chain(memory) else { return self.fail() };
            let head = chain.head_index();
            let written = request::execute(&self.block, chain, &self.dirty);
            if self.queue.add_used(memory, head, written).is_err() {
                return self.fail();
            }
            completed += 1;
            if completed > u32::from(u16::MAX) {
                // Only a device that writes over its own ring of requests gets here.
                return self.fail();
            }
        }
        if completed > 0 {
            let used_ring_len = 6 + 8 * u64::from(self.queue.size());
            self.dirty.add(self.queue.used_ring(), used_ring_len);
            if self.queue.needs_notification(memory).unwrap_or(true) {
                self.signal(VIRTIO_MMIO_INT_VRING);
            }
        }
    }

    /// The driver broke the rules: say so, and do nothing more until it resets the device.
    fn fail(&mut self) {
        self.status |= VIRTIO_CONFIG_S_NEEDS_RESET;
        self.signal(VIRTIO_MMIO_INT_CONFIG);
    }

    fn signal(&mut self, cause: u32) {
        self.interrupt |= cause;
        self.lines.pulse(self.gsi);
    }
}

impl MutDeviceMmio for MmioTransport {
    fn mmio_read(&mut self, _: MmioAddress, offset: MmioAddressOffset, data: &mut [u8]) {
        if offset >= CONFIG {
            let config = self.block.config();
            for (index, byte) in data.iter_mut().enumerate() {
                let at = usize::try_from(offset - CONFIG).ok().and_then(|start| start.checked_add(index));
                *byte = at.and_then(|at| config.get(at)).copied().unwrap_or(0);
            }
        } else if let (Ok(word), Ok(offset)) = (<&mut [u8; 4]>::try_from(&mut *data), u32::try_from(offset)) {
            *word = self.register(offset).to_le_bytes();
        } else {
            // Registers are 32 bits wide; other accesses have no meaning.
            data.fill(0);
        }
    }

    fn mmio_write(&mut self, _: MmioAddress, offset: MmioAddressOffset, data: &[u8]) {
        // The configuration space has nothing writable.
        if let (Ok(word), Ok(offset)) = (<[u8; 4]>::try_from(data), u32::try_from(offset)) {
            self.set_register(offset, u32::from_le_bytes(word));
        }
    }
}
