//! Which hypervisor the program runs on.

pub use hypervisor::{TimeMode, VmConfig};

use crate::vm::{MachineVm, VmError};

/// A processor to choose with `--cpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuModel {
    pub name: String,
    pub description: String,
    pub features: Vec<String>,
}

/// A maker of virtual machines.
pub trait Backend {
    fn open(&self, config: VmConfig) -> Result<Box<dyn MachineVm>, VmError>;
    /// The processors that [`VmConfig::cpu`] can name.
    fn cpu_models(&self) -> Vec<CpuModel>;
}

/// The modelled machine.
#[derive(Clone, Copy, Debug)]
pub struct Modelled;

impl Backend for Modelled {
    fn open(&self, _: VmConfig) -> Result<Box<dyn MachineVm>, VmError> {
        Err(VmError("the modelled processor is not part of this build yet".into()))
    }

    fn cpu_models(&self) -> Vec<CpuModel> {
        Vec::new()
    }
}
