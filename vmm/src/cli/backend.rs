//! Which hypervisor the program runs on.

pub use hypervisor::{TimeMode, VmConfig};

use hypervisor::cpu_models;

use crate::modelled::ModelledVm;
use crate::vm::{MachineVm, VmError};

/// The processor that is modelled unless another is asked for.
pub const DEFAULT_CPU: &str = cpu_models::DEFAULT;

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
    fn open(&self, config: VmConfig) -> Result<Box<dyn MachineVm>, VmError> {
        Ok(Box::new(ModelledVm::new(config)?))
    }

    fn cpu_models(&self) -> Vec<CpuModel> {
        let models = cpu_models::NAMES.iter().filter_map(|name| cpu_models::Model::parse(name).ok());
        models
            .map(|model| CpuModel {
                name: model.name.into(),
                description: format!(
                    "{}, family {} model {}, TSC at {} kHz",
                    model.brand, model.family, model.model, model.tsc_khz
                ),
                features: model.features.iter().map(|feature| feature.row().name.into()).collect(),
            })
            .collect()
    }
}
