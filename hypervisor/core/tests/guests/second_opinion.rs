//! What a real KVM makes of the same case: optional, and only where a user asks for it.
//!
//! With `GLASSVISOR_SECOND_OPINION=/dev/kvm` each case of one vCPU that reached its end is run again, from the same memory
//! and registers, by the KVM behind that file. Its results and exceptions must be equal, but for the cases in
//! `second_opinion.txt`, which says why. Devices answer as they did on the modelled machine.

use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use hypervisor::{kvm_regs, kvm_sregs};
use kvm_ioctls::{Kvm, VcpuExit};
use vmm_sys_util::signal::{Killable, register_signal_handler};

use crate::machine::{Access, Direction, END_PORT, FAULTS, MEMORY, RESULTS, UNEXPECTED_PORT};

const VARIABLE: &str = "GLASSVISOR_SECOND_OPINION";
/// Cases that a real KVM sees otherwise: name, and why.
const EXPECTATIONS: &str = include_str!("second_opinion.txt");
/// Longest run of a case; the modelled machine gives it 50 ms of its own time.
const LIMIT: Duration = Duration::from_secs(10);

/// Where a case starts.
pub struct Start {
    pub memory: Vec<u8>,
    pub regs: kvm_regs,
    pub sregs: kvm_sregs,
}

/// The file of the KVM to ask, if one is wanted.
pub fn wanted() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

/// Why the running case may end differently, if it may.
fn expectation(case: &str) -> Option<&'static str> {
    EXPECTATIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(char::is_whitespace))
        .find(|(name, _)| *name == case)
        .map(|(_, why)| why.trim())
}

/// Compares what the case left behind with what it leaves behind on a real KVM.
pub fn compare(file: &str, start: &Arc<Start>, log: &[Access], modelled: &[u8]) {
    let thread = std::thread::current();
    let case = thread.name().unwrap_or("a case without a name");
    if let Some(why) = expectation(case) {
        eprintln!("second opinion: {case} is not compared: {why}");
        return;
    }
    let real = match run(file, start, log) {
        Ok(memory) => memory,
        Err(why) => panic!("second opinion: {case} does not end on {file}: {why}"),
    };
    for (name, at) in [("result", RESULTS), ("exception record", FAULTS)] {
        let at = at as usize;
        for offset in (0..0x1000).step_by(8) {
            let word = |memory: &[u8]| u64::from_le_bytes(memory[at + offset..][..8].try_into().expect("8 bytes"));
            let (ours, theirs) = (word(modelled), word(&real));
            assert_eq!(
                ours, theirs,
                "second opinion: {case}: {name} at {offset:#x} is {ours:#x}, {theirs:#x} on {file}"
            );
        }
    }
}

fn catch_signal() {
    static CAUGHT: Once = Once::new();
    extern "C" fn nothing(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}
    CAUGHT.call_once(|| register_signal_handler(libc::SIGUSR1, nothing).expect("a signal that can be caught"));
}

/// Runs the case on a thread of its own, which a signal stops when it takes too long.
fn run(file: &str, start: &Arc<Start>, log: &[Access]) -> Result<Vec<u8>, String> {
    catch_signal();
    let (file, start, log) = (file.to_owned(), Arc::clone(start), log.to_vec());
    let started = Instant::now();
    let thread = std::thread::spawn(move || execute(&file, &start, &log));
    while !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
        if started.elapsed() > LIMIT {
            // It ends a KVM_RUN only from inside, so it comes again until the thread has ended.
            let _ = thread.kill(libc::SIGUSR1);
        }
    }
    thread.join().unwrap_or_else(|_| Err("the thread of the vCPU panicked".into()))
}

/// Runs the case; its memory afterwards, or why there is none.
fn execute(file: &str, start: &Start, log: &[Access]) -> Result<Vec<u8>, String> {
    let fail = |what: &'static str| move |error: kvm_ioctls::Error| format!("{what}: {error}");
    let path = std::ffi::CString::new(file).map_err(|error| error.to_string())?;
    let kvm = Kvm::new_with_path(&path).map_err(fail("open"))?;
    let vm = kvm.create_vm().map_err(fail("KVM_CREATE_VM"))?;
    vm.create_irq_chip().map_err(fail("KVM_CREATE_IRQCHIP"))?;
    let mut memory = memmap2::MmapMut::map_anon(MEMORY as usize).map_err(|error| error.to_string())?;
    memory.copy_from_slice(&start.memory);
    let region = kvm_bindings::kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: MEMORY,
        userspace_addr: memory.as_mut_ptr() as u64,
    };
    #[expect(unsafe_code, reason = "guest memory is host memory")]
    // SAFETY: the mapping lives until after the vCPU has stopped for the last time.
    unsafe {
        vm.set_user_memory_region(region).map_err(fail("KVM_SET_USER_MEMORY_REGION"))?;
    }
    let mut vcpu = vm.create_vcpu(0).map_err(fail("KVM_CREATE_VCPU"))?;
    let cpuid =
        kvm.get_supported_cpuid(kvm_bindings::KVM_MAX_CPUID_ENTRIES).map_err(fail("KVM_GET_SUPPORTED_CPUID"))?;
    vcpu.set_cpuid2(&cpuid).map_err(fail("KVM_SET_CPUID2"))?;
    let mut sregs = vcpu.get_sregs().map_err(fail("KVM_GET_SREGS"))?;
    // The local APIC's address and the interrupt bitmap are this KVM's own.
    (sregs.cs, sregs.ds, sregs.es) = (start.sregs.cs, start.sregs.ds, start.sregs.es);
    (sregs.fs, sregs.gs, sregs.ss) = (start.sregs.fs, start.sregs.gs, start.sregs.ss);
    (sregs.tr, sregs.ldt) = (start.sregs.tr, start.sregs.ldt);
    (sregs.gdt, sregs.idt) = (start.sregs.gdt, start.sregs.idt);
    (sregs.cr0, sregs.cr3, sregs.cr4) = (start.sregs.cr0, start.sregs.cr3, start.sregs.cr4);
    sregs.efer = start.sregs.efer;
    vcpu.set_sregs(&sregs).map_err(fail("KVM_SET_SREGS"))?;
    vcpu.set_regs(&start.regs).map_err(fail("KVM_SET_REGS"))?;

    let mut reads = log.iter().filter(|access| matches!(access.direction, Direction::In | Direction::Load));
    let mut answer = |address: u64, data: &mut [u8]| -> Result<(), String> {
        let access = reads.next().ok_or_else(|| format!("a device at {address:#x} is read once too often"))?;
        if access.address != address || access.data.len() != data.len() {
            return Err(format!("reads {} bytes at {address:#x} where {access:x?} was read", data.len()));
        }
        data.copy_from_slice(&access.data);
        Ok(())
    };
    loop {
        match vcpu.run().map_err(fail("KVM_RUN"))? {
            VcpuExit::IoOut(END_PORT, _) => return Ok(memory.to_vec()),
            VcpuExit::IoOut(UNEXPECTED_PORT, _) => return Err("unexpected exceptions".into()),
            VcpuExit::IoOut(..) | VcpuExit::MmioWrite(..) => {}
            VcpuExit::IoIn(port, data) => answer(port.into(), data)?,
            VcpuExit::MmioRead(address, data) => answer(address, data)?,
            other => return Err(format!("{other:?}")),
        }
    }
}
